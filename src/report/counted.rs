//! What one reply cost each side, in the trial in which that was counted.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::record::{Purpose, Run, Side, Trial};
use crate::registry::Unsupported;
use crate::stats::median;

/// The probes that count, and so may have nothing to say here.
const PROBES: [&str; 2] = ["counters", "syscalls"];
/// Figures that do not grow with the number of replies.
const RATIOS: [&str; 4] = [
    "instructions_per_cycle",
    "cpu_ghz",
    "cpus_used",
    "counted_share",
];
/// The metric of system calls, and what those of single ones begin with.
const CALLS: &str = "syscalls";
const CALL: &str = "syscalls_";

/// The counted trials of one server with one number of clients.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Counted {
    /// The replies by which counts are divided, those of each trial by its own: their median.
    pub replies: u64,
    /// What the server spent.
    pub server: Costs,
    /// What the load generator spent.
    pub client: Costs,
}

/// What a side spent.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Costs {
    /// Events for each reply: "instructions", "syscalls", ...
    pub per_reply: BTreeMap<String, f64>,
    /// System calls for each reply, by name.
    pub calls_per_reply: BTreeMap<String, f64>,
    /// Instructions for each cycle, cycles for each nanosecond, ...
    pub ratios: BTreeMap<String, f64>,
    /// What could not be counted, and why.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unavailable: BTreeMap<String, Unsupported>,
}

impl Counted {
    /// Of the trials of one server and one number of clients those that count, figure by figure their
    /// median.
    pub(super) fn of<'a>(trials: impl Iterator<Item = &'a Trial>) -> Option<Self> {
        let counted = trials.filter(|trial| trial.purpose == Purpose::Counted);
        let all: Vec<Self> = counted
            .filter(|trial| trial.failure.is_none())
            .filter_map(Self::of_trial)
            .collect();
        let replies: Vec<f64> = all.iter().map(|one| one.replies as f64).collect();
        Some(Self {
            replies: median(&replies)?.round() as u64,
            server: Costs::median(&all.iter().map(|one| &one.server).collect::<Vec<_>>()),
            client: Costs::median(&all.iter().map(|one| &one.client).collect::<Vec<_>>()),
        })
    }

    fn of_trial(trial: &Trial) -> Option<Self> {
        let load = trial.load.as_ref()?;
        // Counted is from rest to rest.
        let replies = load.replies_while_counting();
        let costs = |side: &Option<Side>| {
            let side = side.as_ref();
            side.map_or_else(Costs::default, |side| Costs::of(side, replies))
        };
        (replies > 0).then(|| Self {
            replies,
            server: costs(&trial.server_side),
            client: costs(&trial.client_side),
        })
    }
}

impl Costs {
    fn of(side: &Side, replies: u64) -> Self {
        let mut costs = Self {
            unavailable: side.unavailable.clone(),
            ..Self::default()
        };
        for (name, value) in &side.metrics {
            let each = value / replies as f64;
            if RATIOS.contains(&name.as_str()) {
                costs.ratios.insert(name.clone(), *value);
            } else if let Some(call) = name.strip_prefix(CALL) {
                costs.calls_per_reply.insert(call.to_owned(), each);
            } else {
                costs.per_reply.insert(name.clone(), each);
            }
        }
        costs
    }

    /// Of the costs of some trials, figure by figure the median of those that have it.
    fn median(all: &[&Self]) -> Self {
        let of = |figures: fn(&Self) -> &BTreeMap<String, f64>| {
            let mut by_name: BTreeMap<String, Vec<f64>> = BTreeMap::new();
            for (name, value) in all.iter().flat_map(|costs| figures(costs)) {
                by_name.entry(name.clone()).or_default().push(*value);
            }
            let medians = by_name.into_iter();
            medians
                .filter_map(|(name, values)| Some((name, median(&values)?)))
                .collect()
        };
        Self {
            per_reply: of(|costs| &costs.per_reply),
            calls_per_reply: of(|costs| &costs.calls_per_reply),
            ratios: of(|costs| &costs.ratios),
            unavailable: all
                .iter()
                .flat_map(|costs| costs.unavailable.clone())
                .collect(),
        }
    }

    /// A figure for each reply, or one that does not depend on their number.
    pub fn figure(&self, name: &str) -> Option<f64> {
        let found = self.per_reply.get(name).or_else(|| self.ratios.get(name));
        found.copied()
    }

    /// Whether it is known why this figure is absent.
    pub fn cannot(&self, name: &str) -> bool {
        let probe = if name == CALLS { CALLS } else { "counters" };
        self.unavailable.contains_key(probe)
            || self.unavailable.contains_key(&format!("{probe}: {name}"))
    }

    /// System calls for each reply by name, most frequent first.
    pub fn calls(&self) -> Vec<(&str, f64)> {
        let calls = self.calls_per_reply.iter();
        let mut calls: Vec<(&str, f64)> = calls.map(|(name, each)| (&**name, *each)).collect();
        calls.sort_by(|one, other| other.1.total_cmp(&one.1));
        calls
    }
}

/// What could not be counted in a run: each reason once, with what it keeps from us.
pub(super) fn not_here(run: &Run, trials: &[Trial]) -> Vec<(String, Unsupported)> {
    let sides = trials
        .iter()
        .filter(|trial| trial.purpose == Purpose::Counted)
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
            (CALLS, _) => "system calls".to_owned(),
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
    use crate::report::fixture;

    #[test]
    fn counts_are_divided_by_the_replies_of_their_own_trial() {
        let (_, trials) = fixture::record();
        let of = |server: &'static str| {
            trials
                .iter()
                .filter(move |trial| trial.server == server && trial.clients == 100)
        };
        let counted = Counted::of(of("epoll")).unwrap();
        let trial = of("epoll").find(|trial| trial.purpose == Purpose::Counted);
        let side = trial.unwrap().server_side.as_ref().unwrap();
        let total = counted.server.figure("syscalls").unwrap() * counted.replies as f64;
        assert!((total - side.metrics["syscalls"]).abs() < 1e-6);
        assert!(counted.server.figure("instructions_per_cycle").unwrap() < 4.0);
        let calls = counted.server.calls();
        assert!(calls.is_sorted_by(|one, other| one.1 >= other.1));
        let sum: f64 = calls.iter().map(|(_, each)| each).sum();
        assert!((sum - counted.server.figure("syscalls").unwrap()).abs() < 1e-9);
        assert!(Counted::of(of("epoll").filter(|trial| trial.purpose.is_timed())).is_none());
    }

    #[test]
    fn of_several_counted_trials_the_median_is_told() {
        let (_, trials) = fixture::record();
        let is_counted = |trial: &&Trial| {
            let pair = trial.server == "epoll" && trial.clients == 100;
            pair && trial.purpose == Purpose::Counted
        };
        let one = trials.iter().find(is_counted).unwrap();
        let with = |factor: f64| {
            let mut trial = one.clone();
            let side = trial.server_side.as_mut().unwrap();
            *side.metrics.get_mut("instructions").unwrap() *= factor;
            trial
        };
        let figure = |trials: &[Trial]| {
            let counted = Counted::of(trials.iter()).unwrap();
            counted.server.figure("instructions").unwrap()
        };
        let alone = figure(&[with(1.0)]);
        let three = figure(&[with(9.0), with(2.0), with(0.5)]);
        assert!((three - 2.0 * alone).abs() < 1e-6 * alone);
    }

    #[test]
    fn a_reason_is_told_once_for_all_that_it_keeps_from_us() {
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
        let costs = Costs::of(trials.last().unwrap().server_side.as_ref().unwrap(), 1);
        assert!(costs.cannot("cycles") && !costs.cannot("syscalls"));
        run.unavailable.insert("syscalls".to_owned(), none);
        assert!(not_here(&run, &trials)[0].0.contains("system calls"));
    }
}
