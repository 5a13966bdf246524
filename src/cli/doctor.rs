//! `throng doctor`: what on this machine would skew results, and how to fix it.

use super::{Exit, output};
use crate::measure::host;
use crate::measure::{probes::PROBES, processes::own_group, runner::plan};
use crate::record::findings::machine::{NO_GROUPS, UNSUPPORTED};
use crate::record::findings::{Planned, of_machine};
use crate::record::format::counted;
use crate::record::{Finding, GroupLimits, Host, Settings};
use crate::registry::{Entry, Unsupported};
use crate::report::document::{Block, Role, Text, terminal};
use crate::report::facts;
use crate::serve::models::MODELS;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  throng doctor
  throng doctor --json

It changes nothing. Each finding comes with a remedy (`throng list findings`).")]
pub(super) struct Arguments {
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let host = Host {
        other_processes: host::busiest_processes(),
        ..host::examine()
    };
    let of_machine = examine(&host, &host::group_limits(), &host::usable_cpus());
    let groups = own_group::check();
    let without_groups = no_groups(&groups);
    let entries = MODELS.iter().map(|model| *model as &dyn Entry);
    let probes = PROBES.iter().map(|probe| *probe as &dyn Entry);
    let unsupported = probes.chain(entries).filter_map(|entry| {
        // Missing control groups have their own finding.
        let why = entry
            .supported()
            .err()
            .filter(|why| groups.as_ref().err() != Some(why))?;
        let text = format!("{}: {}", entry.info().name, why.reason);
        Some(UNSUPPORTED.found_with(text, &why.remedy))
    });
    let problems = of_machine.len();
    let findings: Vec<Finding> = of_machine
        .into_iter()
        .chain(without_groups)
        .chain(unsupported)
        .collect();
    if arguments.json {
        output::json(&findings)?;
    } else {
        let blocks = describe(&host, &findings, problems);
        output::text(&terminal::blocks(&blocks, output::width()))?;
    }
    Ok(Exit::Done)
}

/// Findings about a machine with these CPUs.
fn examine(host: &Host, group: &GroupLimits, cpus: &[u32]) -> Vec<Finding> {
    let (server_cpus, client_cpus) = plan::divide_cpus(cpus);
    let settings = Settings {
        server_cpus,
        client_cpus,
        ..Settings::default()
    };
    let planned = Planned {
        host,
        settings: &settings,
        servers: &[],
        seeks_limit: false,
    };
    of_machine(&planned, group)
}

/// Whether throng can create control groups, and whether the kernel accounts memory in them.
fn no_groups(found: &Result<bool, Unsupported>) -> Option<Finding> {
    match found {
        Ok(true) => None,
        Ok(false) => {
            let text = "control groups have no memory controller: memory is summed over processes, without the kernel's \
                        own share";
            Some(NO_GROUPS.found(text.to_owned()))
        }
        Err(Unsupported { reason, remedy }) => {
            let text = format!(
                "{reason}: CPU time and memory are summed over processes, and some daemons outlive a killed run"
            );
            Some(NO_GROUPS.found_with(text, remedy))
        }
    }
}

/// The machine, the findings, and how many of them are problems of the machine.
fn describe(host: &Host, findings: &[Finding], problems: usize) -> Vec<Block> {
    let facts = facts::of_machine(host);
    let shown = facts
        .iter()
        .map(|fact| (Text::from(&fact.name), Text::from(fact.text())));
    let verdict = match problems {
        0 => "No problems found.".to_owned(),
        count => format!("{} may skew results.", counted(count as u32, "problem")),
    };
    let mut blocks = vec![Block::Facts(shown.collect())];
    blocks.extend(findings.iter().map(Block::of_finding));
    blocks.push(Block::paragraph(Role::Lead, verdict));
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::OtherProcess;

    fn names(findings: &[Finding]) -> Vec<&'static str> {
        findings.iter().map(|finding| finding.kind.name).collect()
    }

    #[test]
    fn a_good_machine_has_no_problems() {
        let host = Host {
            cpus: 8,
            cpu_quota: Some(8.0),
            descriptors_hard: Some(1 << 20),
            ephemeral_ports: Some((32_768, 60_999)),
            somaxconn: Some(4096),
            governor: Some("performance".to_owned()),
            ..Host::default()
        };
        let cpus: Vec<u32> = (0..8).collect();
        for host in [
            host,
            Host {
                cpus: 8,
                ..Host::default()
            },
        ] {
            assert_eq!(examine(&host, &GroupLimits::default(), &cpus), []);
        }
    }

    #[test]
    fn each_problem_is_found() {
        let host = Host {
            cpus: 1,
            cpu_quota: Some(0.5),
            descriptors_hard: Some(1024),
            ephemeral_ports: Some((50_000, 50_999)),
            somaxconn: Some(128),
            virtual_machine: Some("yes".to_owned()),
            governor: Some("powersave".to_owned()),
            other_processes: vec![OtherProcess {
                name: "cc1plus".to_owned(),
                cpu_percent: 90.0,
            }],
            ..Host::default()
        };
        let tight = GroupLimits {
            cpu_weight: Some(20),
            memory_high: Some(1 << 20),
            memory_max: Some(1 << 21),
            threads: Some(99),
            io: Some("8:0 rbps=1024".to_owned()),
            ..GroupLimits::default()
        };
        let found = examine(&host, &tight, &[0]);
        assert_eq!(
            names(&found),
            [
                "shared-cpus",
                "virtual-machine",
                "busy-machine",
                "small-cpu-quota",
                "few-descriptors",
                "narrow-ports",
                "short-accept-queue",
                "cpu-frequency",
                "group-limits",
            ]
        );
        // Regression: half a CPU by a quota was "2 usable".
        assert_eq!(found[3].text, "1 usable CPU, of which a quota allows 0.50");
        assert_eq!(found[8].text.split("; ").count(), 5, "{found:?}");
        let none = Unsupported {
            reason: "no control groups are mounted".to_owned(),
            remedy: "mount them".to_owned(),
        };
        assert_eq!(no_groups(&Ok(true)), None);
        assert!(no_groups(&Ok(false)).is_some());
        assert_eq!(no_groups(&Err(none)).unwrap().remedy, "mount them");
        let two = Host {
            cpus: 2,
            ..Host::default()
        };
        assert_eq!(
            names(&examine(&two, &GroupLimits::default(), &[0, 1])),
            ["few-cpus"]
        );
    }
}
