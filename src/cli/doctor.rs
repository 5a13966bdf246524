//! `throng doctor`: what on this machine would skew results, and how to fix it.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::{Exit, output};
use crate::measure::host::{self, GroupLimits};
use crate::measure::{probes::PROBES, processes::own_group};
use crate::record::format::bytes as bytes_as_text;
use crate::record::{Host, OtherProcess};
use crate::registry::{Entry, Unsupported};
use crate::serve::Model;
use crate::serve::models::MODELS;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  throng doctor
  throng doctor --json

It changes nothing. Each problem comes with a command that fixes it, if one does.")]
pub(super) struct Arguments {
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
}

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Level {
    /// No problem.
    Good,
    /// Results are correct but limited.
    Note,
    /// Results would be wrong, or trials would fail.
    Bad,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Finding {
    subject: &'static str,
    level: Level,
    /// The finding.
    found: String,
    /// The problem that it causes, if any.
    #[serde(skip_serializing_if = "String::is_empty")]
    meaning: String,
    /// A fix, if there is one.
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
    let mut findings = examine(&host::examine());
    findings.insert(1, others(&host::busiest_processes()));
    findings.push(control_groups(own_group::check()));
    findings.extend(group_limits(&host::group_limits()));
    for probe in PROBES {
        let finding = missing(*probe, "this is not measured here");
        // Control groups have their own finding.
        findings.extend(finding.filter(|new| findings.iter().all(|old| old.found != new.found)));
    }
    let of_model = |model: &&Model| missing(*model, "this model cannot run here");
    findings.extend(MODELS.iter().filter_map(of_model));
    if arguments.json {
        output::json(&findings)?;
    } else {
        output::text(&describe(&findings))?;
    }
    Ok(Exit::Done)
}

/// All findings about a machine, without any I/O.
fn examine(host: &Host) -> Vec<Finding> {
    let mut findings = vec![cpus(host)];
    findings.extend(host.descriptors_hard.map(descriptors));
    findings.extend(host.ephemeral_ports.map(ports));
    findings.extend(host.somaxconn.map(accept_queue));
    findings.push(virtual_machine(host));
    findings.extend(host.governor.as_deref().map(governor));
    findings
}

/// A finding for a model or probe that this machine does not support.
fn missing(entry: &dyn Entry, meaning: &str) -> Option<Finding> {
    let Unsupported { reason, remedy } = entry.supported().err()?;
    let finding = Finding::good(entry.info().name, reason);
    Some(finding.poor(Level::Note, meaning, &remedy))
}

fn cpus(host: &Host) -> Finding {
    let usable = f64::from(host.cpus);
    if let Some(quota) = host.cpu_quota.filter(|quota| *quota < usable) {
        let found = format!("{} usable, of which a quota allows {quota:.2}", host.cpus);
        return Finding::good("CPUs", found).poor(
            Level::Bad,
            "the kernel stops server and clients once a period's quota is used up",
            "run outside this control group, or raise its quota (cpu.max, cpu.cfs_quota_us)",
        );
    }
    let finding = Finding::good("CPUs", format!("{} usable", host.cpus));
    match host.cpus {
        0 | 1 => finding.poor(
            Level::Bad,
            "server and clients would share a CPU and slow each other down",
            "give this process at least two CPUs: taskset -c 0,1 throng ...",
        ),
        2 | 3 => finding.poor(
            Level::Note,
            "the clients get only one or two CPUs and may be the bottleneck",
            "compare CPU per request rather than requests/s, or use a larger machine",
        ),
        _ => finding,
    }
}

fn others(busiest: &[OtherProcess]) -> Finding {
    let of_one = |process: &OtherProcess| format!("{} {:.0} %", process.name, process.cpu_percent);
    let named: Vec<String> = busiest.iter().map(of_one).collect();
    if named.is_empty() {
        return Finding::good("other processes", "all nearly idle".to_owned());
    }
    let sum: f64 = busiest.iter().map(|process| process.cpu_percent).sum();
    Finding::good("other processes", format!("{} of a CPU", named.join(", "))).poor(
        if sum < 30.0 { Level::Note } else { Level::Bad },
        "other processes take CPU time from server and clients",
        "stop them, or wait",
    )
}

/// Descriptors for ten thousand clients, with a margin.
const MANY: u64 = 11_000;

fn descriptors(limit: u64) -> Finding {
    let finding = Finding::good("descriptors", format!("{limit} per process (hard limit)"));
    if limit >= MANY {
        return finding;
    }
    finding.poor(
        Level::Note,
        "each client takes one on both sides, which limits the number of clients",
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
        "each client needs its own port",
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
        "many clients that connect at once overflow it, and wait 1 s or more for a SYN retry",
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
                "other virtual machines take CPU time unseen; absolute rates vary",
                "compare servers within one run, with more --runs",
            )
        }
    }
}

/// Whether throng can create control groups, and whether the kernel accounts memory in them.
fn control_groups(found: Result<bool, Unsupported>) -> Finding {
    match found {
        Ok(true) => Finding::good("control groups", "one per server, with CPU time and memory"),
        Ok(false) => Finding::good("control groups", "one per server, with CPU time").poor(
            Level::Note,
            "memory is summed over processes, without the kernel's own share",
            "run throng where the memory controller is enabled for child groups",
        ),
        Err(Unsupported { reason, remedy }) => Finding::good("control groups", reason).poor(
            Level::Note,
            "CPU time and memory are summed over processes, and some daemons outlive a killed run",
            &remedy,
        ),
    }
}

/// Limits of the control group that slow down or end what runs in it.
fn group_limits(limits: &GroupLimits) -> Vec<Finding> {
    let of_bytes = |name, bytes: u64| format!("{name} is {}", bytes_as_text(bytes as f64));
    let weight = limits.cpu_weight.filter(|weight| *weight < 100);
    let threads = limits.threads.filter(|threads| *threads < MANY);
    let found = [
        (
            weight.map(|weight| format!("cpu.weight is {weight} (usual: 100)")),
            "other groups get more CPU time when all CPUs are busy",
        ),
        (
            limits.memory_high.map(|high| of_bytes("memory.high", high)),
            "the kernel slows down what needs more memory",
        ),
        (
            limits.memory_max.map(|max| of_bytes("memory.max", max)),
            "the kernel ends what needs more memory",
        ),
        (
            threads.map(|threads| format!("pids.max is {threads}")),
            "it limits servers with a thread or a process per client",
        ),
        (
            limits.io.as_ref().map(|first| format!("io.max is {first}")),
            "servers that read or write files wait for it",
        ),
    ];
    let found = found.into_iter().filter_map(|(found, meaning)| {
        let finding = Finding::good("group limit", found?);
        Some(finding.poor(
            Level::Note,
            meaning,
            "run outside this control group, or raise the limit",
        ))
    });
    found.collect()
}

fn governor(name: &str) -> Finding {
    let finding = Finding::good("CPU frequency", format!("governor {name}"));
    if name == "performance" {
        return finding;
    }
    finding.poor(
        Level::Note,
        "the CPU frequency changes with the load, and results with it",
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
        for (label, line) in [("", &finding.meaning), ("fix: ", &finding.remedy)] {
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
        0 => "No problems found.".to_owned(),
        1 => "1 problem would skew results.".to_owned(),
        _ => format!("{bad} problems would skew results."),
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
    fn a_good_machine_has_no_problems() {
        let host = Host {
            cpus: 8,
            descriptors_hard: Some(1 << 20),
            ephemeral_ports: Some((32_768, 60_999)),
            somaxconn: Some(4096),
            governor: Some("performance".to_owned()),
            ..Host::default()
        };
        assert!(levels(&host).iter().all(|(_, level)| *level == Level::Good));
        assert!(describe(&examine(&host)).contains("No problems found."));
        assert_eq!(others(&[]).level, Level::Good);
    }

    #[test]
    fn each_problem_is_found() {
        let host = Host {
            cpus: 1,
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
        let busy = others(&[OtherProcess {
            name: "cc1plus".to_owned(),
            cpu_percent: 90.0,
        }]);
        for finding in examine(&host).into_iter().chain(groups).chain([busy]) {
            assert!(
                !finding.meaning.is_empty() && !finding.remedy.is_empty(),
                "{finding:?}"
            );
        }
    }

    /// Regression: half a CPU by a quota was "2 usable".
    #[test]
    fn limits_of_the_control_group_are_found() {
        let host = Host {
            cpus: 2,
            cpu_quota: Some(0.5),
            ..Host::default()
        };
        let quota = cpus(&host);
        assert_eq!(quota.level, Level::Bad);
        assert_eq!(quota.found, "2 usable, of which a quota allows 0.50");
        let enough = Host {
            cpus: 8,
            cpu_quota: Some(8.0),
            ..Host::default()
        };
        assert_eq!(cpus(&enough).level, Level::Good);
        let tight = GroupLimits {
            cpu_weight: Some(20),
            memory_high: Some(1 << 20),
            memory_max: Some(1 << 21),
            threads: Some(99),
            io: Some("8:0 rbps=1024".to_owned()),
            ..GroupLimits::default()
        };
        let found = group_limits(&tight);
        assert_eq!(found.len(), 5);
        assert!(
            found.iter().all(|one| one.level == Level::Note),
            "{found:?}"
        );
        assert_eq!(group_limits(&GroupLimits::default()), []);
    }

    #[test]
    fn unknown_values_are_not_judged() {
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
