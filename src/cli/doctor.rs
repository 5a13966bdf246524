//! `throng doctor`: what on this machine would spoil a measurement, and what mends it.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::{Exit, output};
use crate::measure::{host, own_group};
use crate::record::Host;
use crate::registry::{Entry as _, Unsupported};
use crate::serve::Model;
use crate::serve::models::MODELS;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  throng doctor
  throng doctor --json

Nothing is changed: each finding names the command that mends it, where one does.")]
pub(super) struct Arguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Level {
    /// As it should be.
    Good,
    /// Figures are right but narrower than they could be.
    Note,
    /// Figures would be wrong or trials would fail.
    Bad,
}

/// One thing looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Finding {
    subject: &'static str,
    level: Level,
    /// What was found.
    found: String,
    /// What it means, when it is not as it should be.
    #[serde(skip_serializing_if = "String::is_empty")]
    meaning: String,
    /// What mends it, when something does.
    #[serde(skip_serializing_if = "String::is_empty")]
    remedy: String,
}

impl Finding {
    fn good(subject: &'static str, found: impl Into<String>) -> Self {
        Self {
            subject,
            level: Level::Good,
            found: found.into(),
            meaning: String::new(),
            remedy: String::new(),
        }
    }

    fn poor(mut self, level: Level, meaning: &str, remedy: &str) -> Self {
        self.level = level;
        meaning.clone_into(&mut self.meaning);
        remedy.clone_into(&mut self.remedy);
        self
    }
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let mut findings = examine(&host::look());
    findings.push(control_groups(own_group::look()));
    findings.extend(MODELS.iter().filter_map(|model| missing(model)));
    if arguments.json {
        output::json(&findings)?;
    } else {
        output::text(&describe(&findings))?;
    }
    Ok(Exit::Done)
}

/// All findings about a machine; pure.
fn examine(host: &Host) -> Vec<Finding> {
    let mut findings = vec![cpus(host)];
    findings.extend(host.load_average_1min.map(busy));
    findings.extend(host.descriptors_hard.map(descriptors));
    findings.extend(host.ephemeral_ports.map(ports));
    findings.extend(host.somaxconn.map(accept_queue));
    findings.push(virtual_machine(host));
    findings.extend(host.governor.as_deref().map(governor));
    findings
}

/// A model that this machine does not support.
fn missing(model: &Model) -> Option<Finding> {
    let Unsupported { reason, remedy } = model.supported().err()?;
    let finding = Finding::good(model.info.name, reason);
    Some(finding.poor(Level::Note, "this model is left out", &remedy))
}

fn cpus(host: &Host) -> Finding {
    let finding = Finding::good("CPUs", format!("{} usable", host.cpus));
    match host.cpus {
        0 | 1 => finding.poor(
            Level::Bad,
            "server and clients would share one and slow each other",
            "give this process at least two CPUs (taskset -c 0,1)",
        ),
        2 | 3 => finding.poor(
            Level::Note,
            "one for the server and one or two for the clients: the clients may be the limit",
            "read CPU per request rather than requests per second, or use a larger machine",
        ),
        _ => finding,
    }
}

fn busy(load: f64) -> Finding {
    let finding = Finding::good("load average", format!("{load:.2} over the last minute"));
    if load < 0.5 {
        return finding;
    }
    finding.poor(
        if load < 1.0 { Level::Note } else { Level::Bad },
        "something else runs here and takes CPU from server and clients",
        "find it with `top` and end it, or wait",
    )
}

/// Below this, a crowd of ten thousand does not fit.
const MANY: u64 = 11_000;

fn descriptors(limit: u64) -> Finding {
    let finding = Finding::good("descriptors", format!("{limit} a process (hard limit)"));
    if limit >= MANY {
        return finding;
    }
    finding.poor(
        Level::Note,
        "each client takes one on either side, so crowds are smaller than that",
        "as root: prlimit --nofile=1048576:1048576 --pid $$",
    )
}

fn ports((first, last): (u16, u16)) -> Finding {
    let count = u32::from(last.saturating_sub(first)) + 1;
    let finding = Finding::good("ports", format!("{count} ephemeral ({first} to {last})"));
    if count >= 28_000 {
        return finding;
    }
    finding.poor(
        Level::Note,
        "each client needs one of its own",
        "as root: sysctl net.ipv4.ip_local_port_range='1024 65535'",
    )
}

fn accept_queue(somaxconn: u32) -> Finding {
    let finding = Finding::good("accept queue", format!("net.core.somaxconn is {somaxconn}"));
    if somaxconn >= 4096 {
        return finding;
    }
    finding.poor(
        Level::Bad,
        "a crowd that arrives at once overflows it, and clients wait 1 s and more to connect",
        "as root: sysctl net.core.somaxconn=4096",
    )
}

fn virtual_machine(host: &Host) -> Finding {
    match host.virtual_machine.as_deref() {
        None => Finding::good("machine", "no sign of a hypervisor"),
        Some(name) => {
            let name = if name == "yes" {
                String::new()
            } else {
                format!(" ({name})")
            };
            Finding::good("machine", format!("a virtual machine{name}")).poor(
                Level::Note,
                "neighbours take time that it cannot see; absolute rates vary",
                "compare within one run, with more --runs",
            )
        }
    }
}

/// What throng can do with control groups of its own: whether it can make some, and whether memory is counted in them.
fn control_groups(found: Result<bool, Unsupported>) -> Finding {
    match found {
        Ok(true) => Finding::good("control groups", "one for each server, which ends with it; CPU time and memory counted"),
        Ok(false) => Finding::good("control groups", "one for each server, which ends with it; CPU time counted").poor(
            Level::Note,
            "memory is not counted in them, so it is that of the processes alone",
            "run throng where the memory controller is on for groups below its own",
        ),
        Err(Unsupported { reason, remedy }) => Finding::good("control groups", reason).poor(
            Level::Note,
            "a daemon without an environment outlives a run that is killed, and CPU time and memory are those that \
             processes report",
            &remedy,
        ),
    }
}

fn governor(name: &str) -> Finding {
    let finding = Finding::good("CPU frequency", format!("governor {name}"));
    if name == "performance" {
        return finding;
    }
    finding.poor(
        Level::Note,
        "the clock changes with the load, and figures with it",
        "as root: cpupower frequency-set -g performance",
    )
}

fn describe(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let (sign, colour) = match finding.level {
            Level::Good => ("ok  ", AnsiColor::Green),
            Level::Note => ("note", AnsiColor::Yellow),
            Level::Bad => ("bad ", AnsiColor::Red),
        };
        let style = Style::new().fg_color(Some(colour.into())).bold();
        let _ = writeln!(
            text,
            "{style}{sign}{style:#}  {:<17} {}",
            finding.subject, finding.found
        );
        for (label, line) in [("", &finding.meaning), ("mend: ", &finding.remedy)] {
            if !line.is_empty() {
                let _ = writeln!(text, "{:<23} {label}{line}", "");
            }
        }
    }
    let bad = findings
        .iter()
        .filter(|finding| finding.level == Level::Bad)
        .count();
    let verdict = match bad {
        0 => "Nothing here would spoil a measurement.".to_owned(),
        1 => "One thing here would spoil a measurement.".to_owned(),
        _ => format!("{bad} things here would spoil a measurement."),
    };
    let _ = writeln!(text, "\n{verdict}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(host: &Host) -> Vec<(&'static str, Level)> {
        let findings = examine(host);
        findings
            .iter()
            .map(|finding| (finding.subject, finding.level))
            .collect()
    }

    #[test]
    fn a_good_machine_has_nothing_to_mend() {
        let host = Host {
            cpus: 8,
            load_average_1min: Some(0.1),
            descriptors_hard: Some(1 << 20),
            ephemeral_ports: Some((32_768, 60_999)),
            somaxconn: Some(4096),
            governor: Some("performance".to_owned()),
            ..Host::default()
        };
        assert!(levels(&host).iter().all(|(_, level)| *level == Level::Good));
        assert!(describe(&examine(&host)).contains("Nothing here would spoil"));
    }

    #[test]
    fn each_trap_is_found() {
        let host = Host {
            cpus: 1,
            load_average_1min: Some(3.0),
            descriptors_hard: Some(1024),
            ephemeral_ports: Some((50_000, 50_999)),
            somaxconn: Some(128),
            virtual_machine: Some("yes".to_owned()),
            governor: Some("powersave".to_owned()),
            ..Host::default()
        };
        assert!(levels(&host).iter().all(|(_, level)| *level != Level::Good));
        let none = Unsupported {
            reason: "no control groups are mounted".to_owned(),
            remedy: "mount them".to_owned(),
        };
        let groups = [Ok(false), Err(none)].map(control_groups);
        for finding in examine(&host).into_iter().chain(groups) {
            assert!(
                !finding.meaning.is_empty() && !finding.remedy.is_empty(),
                "{finding:?}"
            );
        }
    }

    #[test]
    fn what_cannot_be_known_is_not_judged() {
        let host = Host {
            cpus: 4,
            ..Host::default()
        };
        assert_eq!(
            levels(&host),
            [("CPUs", Level::Good), ("machine", Level::Good)]
        );
    }
}
