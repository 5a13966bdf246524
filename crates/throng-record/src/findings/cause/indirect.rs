//! Indirect signs: waiting clients, and full CPUs.

use super::super::FindingKind;
use super::{FailedTrial, Sign, Weight};
use crate::findings::cpu::CpuUse;
use crate::findings::generator::BEHIND_SCHEDULE;
use crate::format::{counted, number, time, whole};

/// A limit by design.
pub static DESIGN: FindingKind = FindingKind::cause(
    "design",
    "The server handles one client at a time by design, or one per worker.",
    "use more workers, or another model",
    one_at_a_time,
)
.of_server();

/// Clients that were not accepted.
pub static ACCEPT_QUEUE: FindingKind = FindingKind::cause(
    "accept-queue",
    "The server did not accept clients in time, and they waited in its accept queue.",
    "accept faster, or listen with a longer backlog",
    accept_queue,
)
.of_server();

/// Segments that the kernel dropped.
pub static TCP_MEMORY: FindingKind = FindingKind::cause(
    "tcp-memory",
    "TCP ran short of memory and dropped segments.",
    "raise net.ipv4.tcp_mem, or use fewer clients or smaller messages",
    tcp_memory,
);

/// Full or late clients.
pub static CLIENT: FindingKind = FindingKind::cause(
    "client",
    "The clients were the bottleneck, not the server.",
    "give the clients more CPUs (--client-cpus) or hosts",
    client,
);

/// A full CPU.
pub static SERVER_CPU: FindingKind = FindingKind::cause(
    "server-cpu",
    "The server's CPU was full.",
    "give the server more CPUs, or make a request cheaper",
    server_cpu,
)
.of_server();

/// What is left.
pub static SERVER_WAITS: FindingKind = FindingKind::cause(
    "server-waits",
    "Neither side's CPU was full: the server waited for something else.",
    "look for a lock, a disk, a timer or too few threads",
    waits,
)
.of_server();

/// A server that handles one client at a time by design, or one per worker.
fn one_at_a_time(seen: &FailedTrial<'_>) -> Option<Sign> {
    let server = seen.circumstances.server;
    let limit = server.structural_limit.as_ref()?;
    let load = seen.trial.load.as_ref()?;
    let unfinished = load.completion.as_ref().map_or(0, |jobs| jobs.unfinished);
    // While clients wait to be accepted, others cannot even reach the queue.
    let waited =
        load.never_served > 0 || unfinished > 0 || seen.failed("connect-timeout").is_some();
    // Servers that reject clients count them, and that is reported directly.
    (server.keeps_waiting && waited).then(|| Sign {
        weight: Weight::Design,
        sentence: format!("by design, {limit}"),
        evidence: waiting(seen).into_iter().collect(),
    })
}

/// Maximum length of the accept queue.
fn waiting(seen: &FailedTrial<'_>) -> Option<String> {
    let most = seen
        .network("accept_queue_max")
        .filter(|most| *most > 0.0)?;
    let queue = match seen.network("accept_backlog") {
        Some(backlog) => format!("the accept queue of {}", whole(backlog)),
        None => "the accept queue".to_owned(),
    };
    Some(format!(
        "up to {} waited in {queue}",
        counted(most as u32, "client")
    ))
}

/// Clients that the server did not accept, or not in time.
fn accept_queue(seen: &FailedTrial<'_>) -> Option<Sign> {
    let load = seen.trial.load.as_ref()?;
    let overflows = seen
        .network("listen_overflows")
        .filter(|times| *times > 0.0);
    let turned_away = seen.failed("connect-timeout").is_some() || load.never_served > 0;
    let counts = seen.trial.server_counts.as_ref();
    let accepted = counts.map(|counts| counts.accepted);
    let all_accepted = accepted.is_some_and(|accepted| accepted >= u64::from(load.clients));
    if !turned_away || all_accepted {
        return None;
    }
    let mut evidence: Vec<String> = waiting(seen).into_iter().collect();
    if let Some(overflows) = overflows {
        let again = seen.network("syn_retransmits").unwrap_or(0.0);
        evidence.push(format!(
            "it was full for {} handshakes (ListenOverflows), and SYNs were retransmitted {} times",
            whole(overflows),
            whole(again)
        ));
        let backlog = seen.network("accept_backlog");
        return Some(Sign {
            weight: Weight::Queue,
            sentence: format!(
                "its accept queue{} overflowed",
                backlog.map_or_else(String::new, |backlog| format!(" of {}", whole(backlog)))
            ),
            evidence,
        });
    }
    let most = seen.network("accept_queue_max")?;
    (most >= 1.0).then(|| Sign {
        weight: Weight::Queue,
        sentence: format!(
            "it accepts at most {} at a time; others wait in its accept queue",
            counted(
                accepted.map_or(load.served, |accepted| accepted as u32),
                "client"
            )
        ),
        evidence,
    })
}

/// A limit of the kernel's memory for all connections: what arrives beyond it is dropped.
fn tcp_memory(seen: &FailedTrial<'_>) -> Option<Sign> {
    let load = seen.trial.load.as_ref()?;
    let unfinished = load.completion.as_ref().map_or(0, |jobs| jobs.unfinished);
    let times = seen
        .network("memory_pressures")
        .filter(|times| *times > 0.0)?;
    let retransmitted = seen.network("segments_retransmitted").unwrap_or(0.0);
    (load.never_served > 0 || unfinished > 0).then(|| Sign {
        weight: Weight::Queue,
        sentence: "TCP ran short of memory (net.ipv4.tcp_mem) and dropped segments".to_owned(),
        evidence: vec![format!(
            "it reached its limit {} times (TCPMemoryPressures), and {} segments were retransmitted",
            whole(times),
            whole(retransmitted)
        )],
    })
}

/// The clients themselves are the bottleneck.
fn client(seen: &FailedTrial<'_>) -> Option<Sign> {
    let cpu = CpuUse::of_clients(seen.trial, seen.circumstances)?;
    let behind = seen.trial.found(&BEHIND_SCHEDULE).is_some();
    (behind || (cpu.is_full() && server_full(seen).is_none())).then(|| Sign {
        weight: Weight::Full,
        sentence: "the clients were the bottleneck, not the server".to_owned(),
        evidence: [
            Some(cpu.words("the clients'")),
            behind.then(|| "requests were sent late although clients were idle".to_owned()),
        ]
        .into_iter()
        .flatten()
        .collect(),
    })
}

/// The server's CPU use, if that is full.
fn server_full(seen: &FailedTrial<'_>) -> Option<CpuUse> {
    CpuUse::of_server(seen.trial, seen.circumstances).filter(CpuUse::is_full)
}

fn server_cpu(seen: &FailedTrial<'_>) -> Option<Sign> {
    let load = seen.trial.load.as_ref()?;
    let mut evidence = vec![server_full(seen)?.words("its")];
    if let (Some(before), Some(passed)) = (seen.server_before("cpu_percent"), seen.passed) {
        let rate = |stats: Option<&crate::Load>| stats.and_then(|stats| stats.window.replies_per_s);
        if let (Some(then), Some(now)) = (rate(passed.load.as_ref()), rate(Some(load))) {
            evidence.push(format!(
                "{} requests/s, and {} with {before:.0} % in the trial that passed",
                number(now),
                number(then)
            ));
        }
    }
    evidence.extend(cost(seen));
    Some(Sign {
        weight: Weight::Full,
        sentence: "its CPU is full".to_owned(),
        evidence,
    })
}

/// The server's CPU time per reply.
fn cost(seen: &FailedTrial<'_>) -> Option<String> {
    let load = seen.trial.load.as_ref()?;
    let cpu_ms = seen.server("cpu_ms")?;
    (load.window.replies > 0).then(|| {
        let each = cpu_ms * 1000.0 / load.window.replies as f64;
        format!("each reply costs {} of CPU time", time(each))
    })
}

/// Neither side was full: the server waited for something that is not measured.
fn waits(seen: &FailedTrial<'_>) -> Option<Sign> {
    let load = seen.trial.load.as_ref()?;
    let server = seen.server("cpu_percent")?;
    let clients = CpuUse::of_clients(seen.trial, seen.circumstances)?;
    let slow =
        seen.circumstances.find.is_rate() || load.errors.is_empty() && load.never_served == 0;
    (slow && server_full(seen).is_none()).then(|| Sign {
        weight: Weight::Exclusion,
        sentence: "it waits for something other than CPU: too few threads, a lock, a disk, a timer"
            .to_owned(),
        evidence: vec![
            format!("its CPU use was {server:.0} %"),
            clients.words("the clients'"),
        ],
    })
}
