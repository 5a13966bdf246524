//! Direct signs: clients rejected for a reason, a killed process, a limit that was reached.

use super::super::FindingKind;
use super::{FailedTrial, Sign, Weight};
use crate::ServerMessage;
use crate::format::{bytes, counted, whole};

/// The signal that cannot be caught, with which the kernel ends processes when memory runs out.
const SIGKILL: i32 = 9;

/// Within this distance of the limit no descriptors are left for clients: servers reserve a few.
const FEW_DESCRIPTORS: f64 = 4.0;
/// Free address space, as a share of the whole, that is too small for a thread's stack or the next chunk of an
/// allocator.
const LITTLE_ROOM: f64 = 0.1;

/// A known message of the server.
pub static SERVER_MESSAGE: FindingKind = FindingKind::cause(
    "server-message",
    "The server named the cause itself.",
    "see the message",
    server_message,
)
.of_server();

/// Rejected beyond `--max-clients`.
pub static MAX_CLIENTS: FindingKind = FindingKind::cause(
    "max-clients",
    "The server rejected clients beyond its --max-clients.",
    "raise --max-clients",
    refused_by_max_clients,
)
.of_server();

/// Rejected beyond FD_SETSIZE.
pub static SET_SIZE: FindingKind = FindingKind::cause(
    "set-size",
    "The descriptor of a client did not fit into the sets of select() (FD_SETSIZE).",
    "raise --fd-setsize, or use a model without select()",
    refused_by_set_size,
)
.of_server();

/// Rejected without a free thread of the pool.
pub static POOL_SIZE: FindingKind = FindingKind::cause(
    "pool-size",
    "The C library's thread pool for asynchronous I/O was full.",
    "raise --aio-threads",
    refused_by_pool,
)
.of_server();

/// Memory mappings.
pub static MAPPINGS: FindingKind = FindingKind::cause(
    "mappings",
    "A process reached its limit of memory mappings.",
    "raise vm.max_map_count",
    mappings,
)
.of_server();

/// Memory.
pub static MEMORY: FindingKind = FindingKind::cause(
    "memory",
    "The server ran out of memory: that of its control group, its address space or the machine.",
    "raise the limit of memory",
    memory,
)
.of_server();

/// The server's file descriptors.
pub static DESCRIPTORS: FindingKind = FindingKind::cause(
    "server-descriptors",
    "The server ran out of file descriptors.",
    "raise the descriptor limit (ulimit -Hn, fs.nr_open)",
    descriptors,
);

/// Threads and processes.
pub static THREADS: FindingKind = FindingKind::cause(
    "threads",
    "No more threads or processes could be started.",
    "raise the limit of threads (ulimit -u, pids.max, kernel.threads-max)",
    threads,
)
.of_server();

/// The clients' ports.
pub static SOURCE_PORTS: FindingKind = FindingKind::cause(
    "source-ports",
    "The clients ran out of source ports, not the server.",
    "use more client addresses or hosts",
    ports,
);

/// The clients' file descriptors.
pub static CLIENT_DESCRIPTORS: FindingKind = FindingKind::cause(
    "client-descriptors",
    "The clients ran out of file descriptors, not the server.",
    "use more client hosts, or raise the descriptor limit (ulimit -Hn, fs.nr_open)",
    client_descriptors,
);

/// An unexpected end.
pub static CRASH: FindingKind = FindingKind::cause(
    "crash",
    "The server ended by itself.",
    "see its output",
    crash,
)
.of_server();

/// A known message of the server. Messages about descriptors are combined with other evidence.
fn server_message(seen: &FailedTrial<'_>) -> Option<Sign> {
    let message = seen
        .trial
        .server_messages
        .iter()
        .find(|message| message.kind != ServerMessage::DESCRIPTORS)?;
    Some(Sign {
        weight: Weight::Direct,
        sentence: message.cause.clone(),
        evidence: vec![quoted(message), message.remedy.clone()],
    })
}

/// "nginx reported 12 times: ..."
fn quoted(message: &ServerMessage) -> String {
    let times = counted(message.times.try_into().unwrap_or(u32::MAX), "time");
    format!("{} reported {times}: {}", message.program, message.line)
}

fn refused_by_max_clients(seen: &FailedTrial<'_>) -> Option<Sign> {
    let refused = seen.refused("max-clients")?;
    let stated = option(&seen.circumstances.server.command, "--max-clients");
    Some(Sign {
        weight: Weight::Direct,
        sentence: match stated {
            Some(value) => format!("its --max-clients is {value}"),
            None => "its --max-clients was reached".to_owned(),
        },
        evidence: vec![rejected(refused, "because of that limit", seen)],
    })
}

fn refused_by_set_size(seen: &FailedTrial<'_>) -> Option<Sign> {
    let refused = seen.refused("set-size")?;
    let size = option(&seen.circumstances.server.command, "--fd-setsize").unwrap_or("1024");
    Some(Sign {
        weight: Weight::Direct,
        sentence: format!("the sets of select() hold {size} descriptors (FD_SETSIZE)"),
        evidence: vec![rejected(
            refused,
            "whose descriptor did not fit into the set",
            seen,
        )],
    })
}

fn refused_by_pool(seen: &FailedTrial<'_>) -> Option<Sign> {
    let refused = seen.refused("pool-size")?;
    Some(Sign {
        weight: Weight::Direct,
        sentence: "the C library's thread pool for asynchronous I/O is full (--aio-threads)"
            .to_owned(),
        evidence: vec![rejected(refused, "without a free thread", seen)],
    })
}

/// File descriptors: the server reports that it ran out, or uses as many as its limit allows.
fn descriptors(seen: &FailedTrial<'_>) -> Option<Sign> {
    let refused = seen.refused("descriptors");
    let (open, limit) = (
        seen.server("descriptors_peak"),
        seen.server("descriptors_limit"),
    );
    let reached =
        matches!((open, limit), (Some(open), Some(limit)) if open + FEW_DESCRIPTORS >= limit);
    let message = seen.message(ServerMessage::DESCRIPTORS);
    if refused.is_none() && message.is_none() && !reached {
        return None;
    }
    let mut evidence = Vec::new();
    evidence.extend(message.map(quoted));
    evidence.extend(
        refused.map(|refused| rejected(refused, "because it had no free descriptor", seen)),
    );
    if let (Some(open), Some(limit)) = (open, limit) {
        evidence.push(format!(
            "its process with the most had at least {} of {} descriptors open (RLIMIT_NOFILE)",
            whole(open),
            whole(limit)
        ));
    }
    evidence.extend(message.map(|message| message.remedy.clone()));
    Some(Sign {
        weight: if refused.is_some() || message.is_some() {
            Weight::Direct
        } else {
            Weight::Reached
        },
        sentence: match limit {
            Some(limit) => format!(
                "it ran out of file descriptors (ulimit -n is {})",
                whole(limit)
            ),
            None => "it ran out of file descriptors (ulimit -n)".to_owned(),
        },
        evidence,
    })
}

/// Threads and processes: the limit of its user, its control group or the machine, or just the fact that none could be
/// started.
fn threads(seen: &FailedTrial<'_>) -> Option<Sign> {
    let refused = [("threads", "thread"), ("processes", "process")]
        .into_iter()
        .find_map(|(why, what)| Some((seen.refused(why)?, what)));
    let mut evidence = Vec::new();
    evidence.extend(refused.map(|(refused, what)| {
        rejected(
            refused,
            &format!("because no {what} could be started"),
            seen,
        )
    }));
    let limit = limit_of_threads(seen, &mut evidence);
    // A thread needs memory too. If that is short, its own sign shows it.
    if limit.is_none() && (refused.is_none() || address_space(seen).is_some()) {
        return None;
    }
    Some(Sign {
        weight: if refused.is_some() {
            Weight::Direct
        } else {
            Weight::Reached
        },
        sentence: limit
            .unwrap_or_else(|| "no more threads or processes could be started".to_owned()),
        evidence,
    })
}

/// The limit of threads that was reached, as text.
fn limit_of_threads(seen: &FailedTrial<'_>, evidence: &mut Vec<String>) -> Option<String> {
    if let (Some(refused), Some(limit)) = (
        seen.server("pids_refused").filter(|refused| *refused > 0.0),
        seen.server("pids_limit"),
    ) {
        evidence.push(format!(
            "its control group refused a thread or process {} times (pids.events)",
            whole(refused)
        ));
        return Some(format!(
            "its control group is limited to {} threads and processes (pids.max)",
            whole(limit)
        ));
    }
    if let (Some(tasks), Some(limit)) = (seen.server("tasks_peak"), seen.server("processes_limit"))
        && tasks + 2.0 >= limit
    {
        evidence.push(format!("it had {} threads and processes", whole(tasks)));
        return Some(format!(
            "its user is limited to {} threads and processes (RLIMIT_NPROC, ulimit -u)",
            whole(limit)
        ));
    }
    let (there, limit) = (
        seen.server("machine_tasks_peak")?,
        seen.server("machine_tasks_limit")?,
    );
    (there >= limit * 0.99).then(|| {
        evidence.push(format!("the machine had {} threads", whole(there)));
        format!(
            "this machine is limited to {} threads (kernel.pid_max, kernel.threads-max)",
            whole(limit)
        )
    })
}

/// Memory: the limit of its control group, of its address space, or of the machine.
fn memory(seen: &FailedTrial<'_>) -> Option<Sign> {
    let ended = seen.ended();
    let mut evidence: Vec<String> = ended.iter().map(|it| it.reason.clone()).collect();
    let stated = |weight, sentence, words| {
        Some(Sign {
            weight,
            sentence,
            evidence: words,
        })
    };
    if let Some(kills) = seen.server("oom_kills").filter(|kills| *kills > 0.0) {
        evidence.push(format!(
            "the kernel killed {}, out of memory (oom_kill)",
            counted(kills as u32, "process of its control group")
        ));
        let sentence = match seen.server("memory_limit_bytes") {
            Some(limit) => format!(
                "its control group is limited to {} of memory (memory.max)",
                bytes(limit)
            ),
            None => "the machine ran out of memory".to_owned(),
        };
        return stated(Weight::Direct, sentence, evidence);
    }
    if let Some((largest, limit)) = address_space(seen) {
        evidence.push(format!(
            "the largest address space of its processes was {}",
            bytes(largest)
        ));
        evidence.extend(last_output(seen));
        let sentence = format!(
            "its address space is limited to {} (RLIMIT_AS, ulimit -v)",
            bytes(limit)
        );
        return stated(Weight::Direct, sentence, evidence);
    }
    let killed = ended.is_some_and(|it| it.signal == Some(SIGKILL));
    if seen.message("heap").is_some() {
        // The message about its heap is more specific.
        return None;
    }
    let words = last_output(seen)?;
    evidence.push(words);
    let sentence = "it ran out of memory".to_owned();
    let weight = if killed {
        Weight::Direct
    } else {
        Weight::Reached
    };
    stated(weight, sentence, evidence)
}

/// The largest address space and its limit, if it was full.
fn address_space(seen: &FailedTrial<'_>) -> Option<(f64, f64)> {
    let largest = seen.server("address_space_peak_bytes")?;
    let limit = seen.server("address_space_limit_bytes")?;
    let gave_way = seen.ended().is_some()
        || seen.refused("threads").is_some()
        || seen.refused("processes").is_some()
        || seen
            .trial
            .load
            .as_ref()
            .is_some_and(|load| load.served < load.clients);
    (gave_way && largest >= limit * (1.0 - LITTLE_ROOM)).then_some((largest, limit))
}

/// The last output line that shows that a server ran out of memory.
fn last_output(seen: &FailedTrial<'_>) -> Option<String> {
    const SIGNS: [&str; 5] = [
        "memory allocation of",
        "out of memory",
        "memoryerror",
        "cannot allocate memory",
        "enomem",
    ];
    let output = &seen.ended()?.output;
    let speaks = |line: &&str| {
        let line = line.to_lowercase();
        SIGNS.iter().any(|sign| line.contains(sign))
    };
    let line = output.lines().rev().find(speaks)?;
    Some(format!("its last output: {}", line.trim()))
}

/// Mappings: each thread has several, and a process at the limit gets ENOMEM. The mappings of a dead server cannot be
/// read, so the count from the trial that passed is used instead.
fn mappings(seen: &FailedTrial<'_>) -> Option<Sign> {
    let limit = seen.server("mappings_limit")?;
    let (there, clients) = match seen.server("mappings") {
        Some(there) => (there, seen.trial.clients),
        None => (seen.server_before("mappings")?, seen.passed?.clients),
    };
    let gave_way = seen.ended().is_some() || seen.refused("threads").is_some();
    (gave_way && there >= limit * (1.0 - LITTLE_ROOM)).then(|| {
        let mut evidence = vec![format!(
            "it had {} with {}",
            whole(there),
            counted(clients, "client")
        )];
        evidence.extend(seen.ended().map(|it| it.reason.clone()));
        evidence.extend(last_output(seen));
        Sign {
            weight: Weight::Direct,
            sentence: format!(
                "a process is limited to {} memory mappings (vm.max_map_count), and each thread takes several",
                whole(limit)
            ),
            evidence,
        }
    })
}

fn ports(seen: &FailedTrial<'_>) -> Option<Sign> {
    let failed = seen.failed("no-port")?;
    let range = seen.circumstances.host.ephemeral_ports;
    Some(Sign {
        weight: Weight::Direct,
        sentence: "the clients ran out of source ports, not the server \
                   (net.ipv4.ip_local_port_range, --source)"
            .to_owned(),
        evidence: vec![match range {
            Some((first, last)) => {
                format!("{failed} connections got no port from {first} to {last} (EADDRNOTAVAIL)")
            }
            None => format!("{failed} connections got no port (EADDRNOTAVAIL)"),
        }],
    })
}

fn client_descriptors(seen: &FailedTrial<'_>) -> Option<Sign> {
    let failed = seen.failed("no-descriptor")?;
    Some(Sign {
        weight: Weight::Direct,
        sentence: "the clients ran out of file descriptors, not the server".to_owned(),
        evidence: vec![format!("{failed} connections got no descriptor (EMFILE)")],
    })
}

fn crash(seen: &FailedTrial<'_>) -> Option<Sign> {
    let ended = seen.ended()?;
    let mut evidence = vec![ended.reason.clone()];
    let last = ended
        .output
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty());
    evidence.extend(last.map(|line| format!("its last output: {}", line.trim())));
    Some(Sign {
        weight: Weight::Crash,
        sentence: ended.reason.clone(),
        evidence,
    })
}

/// "it rejected 1 of 1235 clients because it had no free descriptor".
fn rejected(refused: u64, why: &str, seen: &FailedTrial<'_>) -> String {
    format!(
        "it rejected {} of {} {why}",
        whole(refused as f64),
        counted(seen.trial.clients, "client")
    )
}

/// The value of an option on a command line.
fn option<'a>(command: &'a [String], name: &str) -> Option<&'a str> {
    let mut words = command.iter();
    words.find_map(|word| {
        let after = word.strip_prefix(name)?;
        after.strip_prefix('=').or_else(|| {
            let place = command.iter().position(|other| other == name)?;
            command.get(place + 1).map(String::as_str)
        })
    })
}
