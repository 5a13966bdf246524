//! Servers: those that were already running, their output and messages, and what happened at their end.

use std::collections::BTreeSet;

use super::{Evidence, Finding, FindingKind, Planned, Rule, Severity};
use crate::format::{self, counted, list};
use crate::{Running, ServerInfo, Trial};

/// Output of a server during one load above which it is reported.
const MUCH_OUTPUT: u64 = 1 << 20;

/// The server wrote much output.
pub static OUTPUT: FindingKind = FindingKind::new(
    "output",
    Severity::Note,
    "The server wrote much output under load, which takes CPU time of both sides.",
    "lower its log level, or redirect its output to /dev/null",
    Rule::Met,
);

/// The server did not stop in time.
pub static STOPPED_LATE: FindingKind = FindingKind::new(
    "stopped-late",
    Severity::Note,
    "The server did not stop in time.",
    "raise --stop-timeout, or set --stop-signal",
    Rule::Met,
);

/// The server named the cause of a failure.
pub static SERVER_SAYS: FindingKind = FindingKind::new(
    "server-says",
    Severity::Note,
    "In a trial with failures, the server reported their cause in its output, its log or a reply.",
    "see the message",
    Rule::Met,
);

/// A program changed during a run.
pub static FILES_CHANGED: FindingKind = FindingKind::new(
    "files-changed",
    Severity::Note,
    "A program or script of a server changed after the run had begun.",
    "measure everything again with throng reproduce",
    Rule::Met,
);

/// Commands after all trials failed.
pub static CLEANUP_FAILED: FindingKind = FindingKind::new(
    "cleanup-failed",
    Severity::Note,
    "A command of --cleanup failed.",
    "clean up manually, and fix the command of --cleanup",
    Rule::Met,
);

/// The processes of a running server are unknown.
pub static CLIENTS_SIDE_ONLY: FindingKind = FindingKind::new(
    "clients-side-only",
    Severity::Note,
    "Only the clients were measured: the processes of a running server are unknown.",
    "name its processes with --pid, --unit or --cgroup",
    Rule::Met,
);

/// Servers were already running.
pub static RAN_BEFORE: FindingKind = FindingKind::new(
    "ran-before",
    Severity::Note,
    "A server was already running: throng neither restarts it for each trial nor binds it to CPUs.",
    "write commands instead of addresses, so that throng starts the servers",
    Rule::Run(ran_before),
);

/// Servers share processes.
pub static SAME_PROCESSES: FindingKind = FindingKind::new(
    "same-processes",
    Severity::Note,
    "Running servers share processes, so only the time of each request separates their CPU time.",
    "run them as separate processes to compare their costs",
    Rule::Run(same_processes),
);

/// The output of a server during measurement, if it was much.
pub fn output(bytes: u64) -> Option<Finding> {
    (bytes > MUCH_OUTPUT).then(|| {
        let written = format::bytes(bytes as f64);
        OUTPUT.found(format!(
            "the server wrote {written} of output under load, which takes CPU time of both sides"
        ))
    })
}

/// The messages of a server in a trial with failures.
pub(super) fn messages(trial: &Trial) -> Vec<Finding> {
    let load = trial.load.as_ref();
    let turned_away = load.is_some_and(|load| {
        load.served < load.clients || !load.errors.is_empty() || !load.unexpected.is_empty()
    });
    if trial.failure.is_none() && trial.invalid().is_none() && !turned_away {
        return Vec::new();
    }
    let found = trial.server_messages.iter().map(|message| {
        let text = format!(
            "{} reported {}: {} (\"{}\")",
            message.program,
            counted(message.times.try_into().unwrap_or(u32::MAX), "time"),
            message.cause,
            message.line
        );
        SERVER_SAYS.found_with(text, &message.remedy)
    });
    found.collect()
}

/// Servers of which only the clients can be measured, each with its reason.
pub(super) fn clients_side_only(servers: &[ServerInfo]) -> Vec<Finding> {
    let found = running(servers).filter_map(|(server, running)| {
        let why = running.unknown.as_ref()?;
        let text = format!(
            "{}: only the clients were measured: {}",
            server.name, why.reason
        );
        Some(CLIENTS_SIDE_ONLY.found_with(text, &why.remedy))
    });
    found.collect()
}

fn running(servers: &[ServerInfo]) -> impl Iterator<Item = (&ServerInfo, &Running)> {
    let each = servers.iter();
    each.filter_map(|server| Some((server, server.running()?)))
}

fn ran_before(planned: &Planned<'_>) -> Option<Evidence> {
    let names: Vec<&str> = running(planned.servers)
        .map(|(server, _)| server.name.as_str())
        .collect();
    (!names.is_empty()).then(|| {
        let were = if names.len() == 1 { "was" } else { "were" };
        let text = format!(
            "{} {were} already running: not restarted for each trial, not bound to CPUs, with other work of the same \
             processes included, and without counts of system calls and hardware events",
            list(&names)
        );
        text.into()
    })
}

fn same_processes(planned: &Planned<'_>) -> Option<Evidence> {
    let shared: Vec<&str> = running(planned.servers)
        .filter(|(server, own)| {
            let mut others = running(planned.servers);
            others.any(|(other, theirs)| other.name != server.name && share(own, theirs))
        })
        .map(|(server, _)| server.name.as_str())
        .collect();
    (!shared.is_empty()).then(|| {
        let text = format!(
            "{} share processes: only the time of each request separates their CPU time, and memory, threads and \
             descriptors are those of both",
            list(&shared)
        );
        text.into()
    })
}

fn share(one: &Running, other: &Running) -> bool {
    let pids = |running: &Running| -> BTreeSet<u32> {
        let processes = running.processes.iter();
        processes.map(|process| process.pid).collect()
    };
    !pids(one).is_disjoint(&pids(other))
}
