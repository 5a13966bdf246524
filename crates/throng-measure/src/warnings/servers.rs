//! Warnings about servers: those that were already running, those that did not stop in time, and their own messages.

use std::collections::BTreeSet;

use super::warning;
use throng_record::format::{counted, list};
use throng_record::{Running, ServerInfo, Trial, Warning};

/// Warnings about servers that were already running.
pub(in super::super) fn of_running(servers: &[ServerInfo]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let running = || {
        servers
            .iter()
            .filter_map(|server| Some((server, server.running()?)))
    };
    for (server, running) in running() {
        let name = &server.name;
        if let Some(why) = &running.unknown {
            warnings.push(warning(
                "clients-side-only",
                format!("{name}: only the clients were measured: {}", why.reason),
                &why.remedy,
            ));
        }
    }
    let names: Vec<&str> = running().map(|(server, _)| server.name.as_str()).collect();
    if !names.is_empty() {
        let were = if names.len() == 1 { "was" } else { "were" };
        warnings.push(warning(
            "ran-before",
            format!(
                "{} {were} already running: not restarted for each trial, not bound to CPUs, with other work of the \
                 same processes included, and without counts of system calls and hardware events",
                list(&names)
            ),
            "write commands instead of addresses, so that throng starts the servers",
        ));
    }
    let shared: Vec<&str> = running()
        .filter(|(server, own)| {
            running().any(|(other, theirs)| other.name != server.name && share(own, theirs))
        })
        .map(|(server, _)| server.name.as_str())
        .collect();
    if !shared.is_empty() {
        warnings.push(warning(
            "same-processes",
            format!(
                "{} share processes: only the time of each request separates their CPU time, and memory, threads \
                 and descriptors are those of both",
                list(&shared)
            ),
            "run them as separate processes to compare their costs",
        ));
    }
    warnings
}

fn share(one: &Running, other: &Running) -> bool {
    let pids = |running: &Running| -> BTreeSet<u32> {
        running
            .processes
            .iter()
            .map(|process| process.pid)
            .collect()
    };
    !pids(one).is_disjoint(&pids(other))
}

/// A warning about a server that did not stop in time.
pub(in super::super) fn of_stopping(late: Option<String>) -> Option<Warning> {
    late.map(|reason| {
        warning(
            "stopped-late",
            format!("{reason}; its results are kept"),
            "raise --stop-timeout, or set --stop-signal",
        )
    })
}

/// A warning about failures of commands after all trials.
pub(in super::super) fn of_cleanup(faults: &[String]) -> Option<Warning> {
    (!faults.is_empty()).then(|| {
        warning(
            "cleanup-failed",
            format!("cleanup failed: {}", faults.join("; ")),
            "clean up manually, and fix the command of --cleanup",
        )
    })
}

/// Warnings about the messages of a server in a trial with failures.
pub(in super::super) fn of_messages(trial: &Trial) -> Vec<Warning> {
    let load = trial.load.as_ref();
    let turned_away = load.is_some_and(|load| {
        load.served < load.clients || !load.errors.is_empty() || !load.unexpected.is_empty()
    });
    if trial.failure.is_none() && trial.invalid.is_none() && !turned_away {
        return Vec::new();
    }
    let message = trial.server_messages.iter().map(|message| {
        warning(
            "server-says",
            format!(
                "{} reported {}: {} (\"{}\")",
                message.program,
                counted(message.times.try_into().unwrap_or(u32::MAX), "time"),
                message.cause,
                message.line
            ),
            &message.remedy,
        )
    });
    message.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_record::{Foreign, Load, RunningProcess, ServerMessage};
    use throng_spec::registry::Unsupported;

    fn running(name: &str, pids: &[u32], unknown: bool) -> ServerInfo {
        let processes = pids.iter().map(|pid| RunningProcess {
            pid: *pid,
            ..RunningProcess::default()
        });
        let why = || Unsupported {
            reason: "it is far away".to_owned(),
            remedy: "go there".to_owned(),
        };
        ServerInfo {
            name: name.to_owned(),
            foreign: Some(Foreign {
                running: Some(Running {
                    processes: processes.collect(),
                    unknown: unknown.then(why),
                    ..Running::default()
                }),
                ..Foreign::default()
            }),
            ..ServerInfo::default()
        }
    }

    fn kinds(servers: &[ServerInfo]) -> Vec<String> {
        let warnings = of_running(servers).into_iter();
        warnings.map(|warning| warning.kind).collect()
    }

    #[test]
    fn limitations_of_running_servers_are_reported() {
        assert_eq!(kinds(&[ServerInfo::default()]), [""; 0]);
        assert_eq!(kinds(&[running("a", &[1], false)]), ["ran-before"]);
        let unknown = [running("a", &[], true), running("b", &[], true)];
        assert_eq!(
            kinds(&unknown),
            ["clients-side-only", "clients-side-only", "ran-before"]
        );
        let shared = [
            running("a", &[1, 2], false),
            running("b", &[2], false),
            running("c", &[3], false),
        ];
        assert_eq!(kinds(&shared), ["ran-before", "same-processes"]);
        assert!(of_running(&shared)[1].message.starts_with("a and b share"));
    }

    #[test]
    fn a_servers_message_counts_only_after_a_failure() {
        let mut trial = Trial {
            load: Some(Load {
                clients: 2,
                served: 2,
                ..Load::default()
            }),
            server_messages: vec![ServerMessage {
                program: "nginx".to_owned(),
                cause: "it is full".to_owned(),
                times: 3,
                ..ServerMessage::default()
            }],
            ..Trial::default()
        };
        assert_eq!(of_messages(&trial), []);
        trial.load.as_mut().unwrap().served = 1;
        let warned = of_messages(&trial);
        assert!(
            warned[0]
                .message
                .starts_with("nginx reported 3 times: it is full"),
            "{warned:?}"
        );
    }
}
