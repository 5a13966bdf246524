//! What holds the memory of each client of two servers.
//!
//! In each trial a server is read once before its first client, and once with all of them. The kernel frees memory with
//! a delay: a reading counts as stable within [`ERROR_OF_MEMORY`], which bounds the error of the difference of two
//! readings of two servers. A part differs if it does between any two trials of both.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Difference, LEAST_DIFFERENCE, LEAST_SHARE, Of, Span, large_enough, words};
use throng_record::metrics::named;
use throng_record::{ERROR_OF_MEMORY, MemoryPart, Trial};
use throng_stats::median;

/// Readings of a difference: of both servers, before and after their clients connected.
const READINGS: f64 = 4.0;

/// What holds the memory of each client, of the reference and the server: the server's processes, and the kernel for
/// both ends.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Memory {
    /// Bytes per client of the reference.
    pub reference: f64,
    /// Bytes per client of the server.
    pub server: f64,
    /// Their parts in bytes per client, the largest difference first.
    pub parts: Vec<Difference>,
    /// The difference of all smaller parts, in bytes per client.
    pub other_parts: f64,
    /// The difference that no part has: what the kernel does not name to this user.
    pub unexplained: f64,
}

/// The values of a part in the trials of a server.
struct Seen {
    median: f64,
    least: f64,
    most: f64,
}

impl Seen {
    fn of(values: Vec<f64>) -> Self {
        Self {
            median: median(&values).unwrap_or_default(),
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            most: values.into_iter().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

impl Memory {
    /// Of the trials of each server that show it and had all clients; `None` if the memory of either is unknown.
    pub(super) fn of(trials: &[Vec<&Trial>; 2]) -> Option<Self> {
        let metric = named("memory_bytes_per_client")?;
        let has_all = |trial: &Trial| {
            let load = trial.load.as_ref();
            load.is_some_and(|load| load.served >= trial.clients)
        };
        let shows = |trial: &&&Trial| has_all(trial) && metric.of(trial).is_some();
        let both = [0, 1].map(|side| trials[side].iter().filter(shows).collect::<Vec<_>>());
        let whole_of = |side: usize| {
            let all = both[side].iter().filter_map(|trial| metric.of(trial));
            median(&all.collect::<Vec<_>>())
        };
        let (reference_bytes, server_bytes) = (whole_of(0)?, whole_of(1)?);
        let clients = f64::from(both[0].first()?.clients.max(1));
        let error = READINGS * ERROR_OF_MEMORY / clients;
        let parts_of = |trial: &&&Trial| -> BTreeMap<MemoryPart, f64> {
            let sides = [&trial.server_side, &trial.network].into_iter().flatten();
            let parts = sides.flat_map(|side| &side.memory_per_client);
            parts.map(|(part, bytes)| (part.clone(), *bytes)).collect()
        };
        let parts = [0, 1].map(|side| both[side].iter().map(parts_of).collect::<Vec<_>>());
        let names: BTreeSet<&MemoryPart> =
            parts.iter().flatten().flat_map(BTreeMap::keys).collect();
        if names.is_empty() {
            return None;
        }
        let of = |side: usize, name: &MemoryPart| {
            let each = parts[side]
                .iter()
                .map(|of_trial| of_trial.get(name).copied());
            Seen::of(each.map(Option::unwrap_or_default).collect())
        };
        let differences = names.into_iter().map(|part| {
            let (in_reference, in_server) = (of(0, part), of(1, part));
            let (reference_part, server_part) = (in_reference.median, in_server.median);
            let value = server_part - reference_part;
            let (low, high) = (
                in_server.least - in_reference.most - error,
                in_server.most - in_reference.least + error,
            );
            let which = Of::Memory(part.clone());
            Difference {
                name: words::name(&which),
                of: which,
                reference: reference_part,
                server: server_part,
                difference: Span { value, low, high },
                is_shown: low > 0.0 || high < 0.0,
            }
        });
        let all: Vec<Difference> = differences.collect();
        let of_all: f64 = all.iter().map(|part| part.difference.value).sum();
        let whole = reference_bytes.max(server_bytes);
        let least = LEAST_DIFFERENCE * whole;
        let kept = large_enough(all, LEAST_SHARE * whole, least);
        let listed: f64 = kept.iter().map(|part| part.difference.value).sum();
        Some(Self {
            reference: reference_bytes,
            server: server_bytes,
            parts: kept,
            other_parts: of_all - listed,
            unexplained: server_bytes - reference_bytes - of_all,
        })
    }

    /// How much more the server needs.
    pub fn difference(&self) -> f64 {
        self.server - self.reference
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{hold, own, profile, watched};
    use crate::{Logs, Report};

    #[test]
    fn parts_of_the_memory_add_up_and_the_largest_are_named() {
        let turns = || profile(10, &[(own("a"), 300)], &[], &[]);
        let (run, mut trials) = watched(turns(), turns());
        for trial in trials.iter_mut().filter(|trial| trial.profile.is_some()) {
            let has_threads = trial.server == "poll";
            let (stacks, kernel_stacks) = if has_threads {
                (8192.0, 16384.0)
            } else {
                (0.0, 0.0)
            };
            hold(trial, stacks, kernel_stacks);
        }
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        let memory = report.why[0].memory.clone().unwrap();
        assert!((memory.difference() - 24_576.0).abs() < 1e-6, "{memory:?}");
        let parts: f64 = memory.parts.iter().map(|part| part.difference.value).sum();
        let rest = memory.other_parts + memory.unexplained;
        assert!(
            (parts + rest - memory.difference()).abs() < 1e-6,
            "{memory:?}"
        );
        let shown = memory.parts.iter().filter(|part| part.is_shown);
        let names: Vec<&str> = shown.map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["kernel stacks", "stacks"]);
        let text = report.why[0].sentences.join(" ");
        let wanted = "A client of poll takes 24.0 KiB more memory than one of epoll: 16.0 KiB more for kernel stacks and \
            8.00 KiB more for stacks.";
        assert!(text.ends_with(wanted), "{text}");
    }
}
