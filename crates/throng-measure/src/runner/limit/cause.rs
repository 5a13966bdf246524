//! The cause of a limit, derived from all probes in the failed trials; pure.
//!
//! Each sign is one function here. Direct signs weigh most: a server that reports rejections with a reason, or a
//! kernel that killed it, before a limit that was reached, before a resource that was full. The strongest is the
//! cause; the others are reported with it.

mod direct;
mod failed_trial;
mod indirect;

use failed_trial::FailedTrial;
use throng_record::{Cause, Find, Host, ServerInfo, Settings, Trial};

/// Additional information.
pub(super) struct Circumstances<'a> {
    pub(super) server: &'a ServerInfo,
    pub(super) settings: &'a Settings,
    pub(super) host: &'a Host,
    pub(super) find: Find,
}

/// A sign of the resource that failed.
struct Sign {
    kind: &'static str,
    weight: Weight,
    sentence: String,
    evidence: Vec<String>,
}

/// The directness of a sign, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// Nothing was full, so the bottleneck is something else.
    Exclusion,
    /// A resource was full.
    Full,
    /// Clients had to wait.
    Queue,
    /// A limit by design.
    Design,
    /// The server ended.
    Crash,
    /// A limit was reached.
    Reached,
    /// The kernel, the server or the client reports it.
    Direct,
}

/// All signs.
const SIGNS: &[fn(&FailedTrial<'_>) -> Option<Sign>] = &[
    direct::server_message,
    direct::refused_by_max_clients,
    direct::refused_by_set_size,
    direct::refused_by_pool,
    direct::mappings,
    direct::memory,
    direct::descriptors,
    direct::threads,
    direct::ports,
    direct::client_descriptors,
    direct::crash,
    indirect::one_at_a_time,
    indirect::accept_queue,
    indirect::client,
    indirect::server_cpu,
    indirect::waits,
];

/// The checks made, if nothing was found.
const CHECKED: &str = "the server's output and rejected clients; descriptors, threads and memory of the server, its \
                       control group and the machine; the accept queue; source ports; the CPU of both sides";

/// The cause that the failed trials point at. `passed` are the trials of the value that passed.
pub(super) fn of(passed: &[&Trial], failed: &[&Trial], circumstances: &Circumstances<'_>) -> Cause {
    let mut signs: Vec<Sign> = Vec::new();
    for trial in failed {
        let seen = FailedTrial {
            trial,
            passed: passed.last().copied(),
            circumstances,
        };
        for sign in SIGNS.iter().filter_map(|sign| sign(&seen)) {
            // Of several trials, the first one with a sign counts.
            if !signs.iter().any(|known| known.kind == sign.kind) {
                signs.push(sign);
            }
        }
    }
    signs.sort_by_key(|sign| std::cmp::Reverse(sign.weight));
    let mut signs = signs.into_iter();
    let Some(first) = signs.next() else {
        return Cause {
            kind: "unknown".to_owned(),
            sentence: "the cause is unknown".to_owned(),
            evidence: vec![format!(
                "checked: {CHECKED}; --server-log adds the server's log"
            )],
            also: Vec::new(),
        };
    };
    Cause {
        kind: first.kind.to_owned(),
        sentence: first.sentence,
        evidence: first.evidence,
        also: signs
            // A crash is already evidence of its cause, and full resources are common.
            .filter(|sign| sign.weight > Weight::Full && sign.kind != "crash")
            .map(|sign| sign.sentence)
            .collect(),
    }
}

#[cfg(test)]
mod tests;
