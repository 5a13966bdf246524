//! Costs per request that could not be counted, with reasons.

use std::collections::BTreeSet;

use throng_record::{Purpose, Run, Trial};
use throng_spec::registry::Unsupported;

/// The probes that count events, and so may be unavailable on this machine.
const PROBES: [&str; 2] = ["counters", "syscalls"];

/// Counts that this run lacks: each reason once, with the missing counts.
pub(super) fn not_here(run: &Run, trials: &[Trial]) -> Vec<(String, Unsupported)> {
    let sides = trials
        .iter()
        .filter(|trial| trial.purpose == Purpose::Profiled)
        .flat_map(|trial| [&trial.server_side, &trial.client_side])
        .flatten();
    let mut reasons: Vec<(Unsupported, BTreeSet<String>)> = Vec::new();
    let found = sides.flat_map(|side| &side.unavailable);
    for (name, why) in run.unavailable.iter().chain(found) {
        let (probe, figure) = name.split_once(": ").unwrap_or((name, ""));
        if !PROBES.contains(&probe) {
            continue;
        }
        let what = match (probe, figure) {
            ("syscalls", _) => "system calls".to_owned(),
            (_, "") => "the CPU's counters".to_owned(),
            (_, figure) => figure.replace('_', " "),
        };
        match reasons.iter_mut().find(|(other, _)| other == why) {
            Some((_, names)) => drop(names.insert(what)),
            None => reasons.push((why.clone(), BTreeSet::from([what]))),
        }
    }
    let named = |(why, names): (Unsupported, BTreeSet<String>)| {
        let names: Vec<String> = names.into_iter().collect();
        (names.join(", "), why)
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
            for name in ["counters: cycles", "counters: cache_misses", "memory"] {
                side.unavailable.insert(name.to_owned(), none.clone());
            }
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
                let name = "counters: cycles".to_owned();
                side.unavailable.insert(name, none.clone());
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
