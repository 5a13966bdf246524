//! Costs per request that could not be counted, with reasons.

use std::collections::BTreeSet;
use std::iter;

use throng_record::{Purpose, Run, Side, Trial};
use throng_spec::registry::Unsupported;

/// The probes that count events, and so may be unavailable on this machine, and what they count.
const PROBES: [(&str, &str); 2] = [
    ("counters", "the CPU's counters"),
    ("syscalls", "system calls"),
];

/// Counts that this run lacks: each reason once, with the missing counts.
pub(super) fn not_here(run: &Run, trials: &[Trial]) -> Vec<(String, Unsupported)> {
    let sides: Vec<&Side> = trials
        .iter()
        .filter(|trial| trial.purpose == Purpose::Profiled)
        .flat_map(|trial| [&trial.server_side, &trial.client_side])
        .flatten()
        .collect();
    let mut reasons: Vec<(Unsupported, BTreeSet<String>)> = Vec::new();
    let of_probes = sides.iter().map(|side| &side.unavailable);
    let of_values = sides
        .iter()
        .filter_map(|side| side.missing.get("counters"))
        .flatten()
        .map(|(value, why)| (value.replace('_', " "), why));
    let found = iter::once(&run.unavailable)
        .chain(of_probes)
        .flatten()
        .filter_map(|(probe, why)| {
            let (_, what) = PROBES.iter().find(|(name, _)| name == probe)?;
            Some(((*what).to_owned(), why))
        })
        .chain(of_values);
    for (what, why) in found {
        match reasons.iter_mut().find(|(other, _)| other == why) {
            Some((_, names)) => drop(names.insert(what)),
            None => reasons.push((why.clone(), BTreeSet::from([what]))),
        }
    }
    let named = |(why, names): (Unsupported, BTreeSet<String>)| {
        let all: Vec<String> = names.into_iter().collect();
        (all.join(", "), why)
    };
    reasons.into_iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use throng_record::metrics;

    #[test]
    fn a_reason_is_reported_once_for_all_that_it_keeps_from_us() {
        let (mut run, mut trials) = fixture::record();
        assert_eq!(not_here(&run, &trials), []);
        let none = Unsupported {
            reason: "none".to_owned(),
            remedy: "buy one".to_owned(),
        };
        run.unavailable.insert("tcp".to_owned(), none.clone());
        for trial in &mut trials {
            let side = trial.server_side.as_mut().unwrap();
            side.note_missing("counters", "cycles", none.clone());
            side.note_missing("counters", "cache_misses", none.clone());
            side.unavailable.insert("memory".to_owned(), none.clone());
        }
        let expected = [("cache misses, cycles".to_owned(), none.clone())];
        assert_eq!(not_here(&run, &trials), expected);
        run.unavailable.insert("syscalls".to_owned(), none);
        assert!(not_here(&run, &trials)[0].0.contains("system calls"));
    }

    #[test]
    fn the_reason_of_an_absent_metric_is_known() {
        let (run, mut trials) = fixture::record();
        let none = Unsupported {
            reason: "none".to_owned(),
            remedy: "buy one".to_owned(),
        };
        for trial in &mut trials {
            if let (Purpose::Profiled, Some(side)) = (trial.purpose, &mut trial.server_side) {
                side.note_missing("counters", "cycles", none.clone());
            }
        }
        let why = |name: &str| metrics::named(name).unwrap().why_absent(&run, &trials);
        assert_eq!(why("server_cycles"), Some(&none));
        assert_eq!(why("server_cycles_per_request"), Some(&none));
        assert_eq!(why("server_cpu_ghz"), Some(&none), "it follows from cycles");
        for other in ["client_cycles", "server_branches", "latency_p99_us"] {
            assert_eq!(why(other), None);
        }
    }
}
