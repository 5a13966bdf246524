//! Warnings about all trials together: a machine that was slower at times, and equal trials that disagree.

use std::collections::BTreeMap;

use super::warning;
use throng_record::{Purpose, Spin, Trial, Warning};
use throng_stats::median;

/// A CPU that took this many times as long as usual around a trial has disturbed it.
const SLOWER: f64 = 1.25;
/// Trials of one server under one load with this spread, relative to their median, disagree.
const SCATTERED: f64 = 0.25;
/// Minimum trials for this warning.
const FEWEST: usize = 3;
/// Maximum number of servers to name; further ones are counted.
const NAMED: usize = 5;

/// Warnings about all trials of a run together.
pub(crate) fn of_trials(trials: &[Trial]) -> Vec<Warning> {
    disturbed(trials)
        .into_iter()
        .chain(scattered(trials))
        .collect()
}

/// Trials around which a CPU was slower than usual.
fn disturbed(trials: &[Trial]) -> Option<Warning> {
    let server = UsualSpeed::of(trials, |spin| [spin.server_before_ns, spin.server_after_ns])?;
    let client = UsualSpeed::of(trials, |spin| [spin.client_before_ns, spin.client_after_ns])?;
    let paces = trials.iter().filter_map(|trial| trial.spin.as_ref());
    let slowest: Vec<f64> = paces
        .map(|spin| server.times(spin).max(client.times(spin)))
        .collect();
    let count = slowest.iter().filter(|times| **times > SLOWER).count();
    let worst = slowest.iter().copied().fold(0.0, f64::max);
    (count > 0).then(|| {
        warning(
            "disturbed",
            format!(
                "around {count} of {} trials, a CPU took up to {worst:.1} times as long as usual for the same \
                 loop: other virtual machines, or a changing CPU frequency",
                trials.len()
            ),
            "trust ratios within this run more than rates; use more --runs, or a quiet machine",
        )
    })
}

/// The usual duration of a step on a CPU.
struct UsualSpeed {
    step_ns: f64,
    of: fn(&Spin) -> [f64; 2],
}

impl UsualSpeed {
    fn of(trials: &[Trial], of: fn(&Spin) -> [f64; 2]) -> Option<Self> {
        let steps: Vec<f64> = trials
            .iter()
            .filter_map(|trial| trial.spin.as_ref())
            .flat_map(of)
            .filter(|step| step.is_finite() && *step > 0.0)
            .collect();
        let step_ns = median(&steps)?;
        Some(Self { step_ns, of })
    }

    fn times(&self, spin: &Spin) -> f64 {
        let [before, after] = (self.of)(spin);
        before.max(after) / self.step_ns
    }
}

/// Servers whose trials under the same load disagree.
fn scattered(trials: &[Trial]) -> Option<Warning> {
    let mut rates: BTreeMap<(&str, u32), Vec<f64>> = BTreeMap::new();
    for trial in trials {
        if let (Purpose::Timed, None, Some(load)) = (trial.purpose, &trial.failure, &trial.load) {
            let of_row = rates.entry((&trial.server, trial.clients)).or_default();
            of_row.extend(load.window.replies_per_s);
        }
    }
    let mut far: Vec<(f64, String)> = rates
        .into_iter()
        .filter(|(_, rates)| rates.len() >= FEWEST)
        .filter_map(|((server, clients), rates)| {
            let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
            let most = rates.iter().copied().fold(0.0, f64::max);
            let spread = (most - least) / median(&rates)?;
            let warned = format!("{server} with {clients} clients ({:.0} %)", spread * 100.0);
            (spread > SCATTERED).then_some((spread, warned))
        })
        .collect();
    far.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut named: Vec<String> = far.iter().map(|(_, warned)| warned.clone()).collect();
    if named.len() > NAMED {
        let more = named.len() - NAMED;
        named.truncate(NAMED);
        named.push(format!("{more} more"));
    }
    (!named.is_empty()).then(|| {
        warning(
            "noisy",
            format!(
                "the rates of equal trials vary widely, from slowest to fastest: {}",
                named.join(", ")
            ),
            "use more --runs and a longer --duration, and stop other processes",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_record::{Load, Window};

    fn trial(server: &str, replies_per_s: f64, server_ns: f64) -> Trial {
        let window = Window {
            replies_per_s: Some(replies_per_s),
            ..Window::default()
        };
        Trial {
            server: server.to_owned(),
            clients: 10,
            load: Some(Load {
                window,
                ..Load::default()
            }),
            spin: Some(Spin {
                server_before_ns: 1.2,
                server_after_ns: server_ns,
                client_before_ns: 1.3,
                client_after_ns: 1.3,
            }),
            ..Trial::default()
        }
    }

    fn kinds(trials: &[Trial]) -> Vec<String> {
        let warnings = of_trials(trials);
        warnings.into_iter().map(|warning| warning.kind).collect()
    }

    #[test]
    fn quiet_trials_that_agree_are_not_flagged() {
        let trials = [100.0, 110.0, 95.0].map(|rate| trial("epoll", rate, 1.21));
        assert!(of_trials(&trials).is_empty());
        assert!(of_trials(&[]).is_empty());
    }

    #[test]
    fn a_cpu_that_was_slower_during_a_trial_is_reported() {
        let mut trials: Vec<Trial> = (0..9).map(|_| trial("epoll", 100.0, 1.2)).collect();
        trials.push(trial("epoll", 100.0, 2.28));
        let warnings = of_trials(&trials);
        assert_eq!(warnings[0].kind, "disturbed");
        assert!(
            warnings[0].message.contains("around 1 of 10 trials")
                && warnings[0].message.contains("1.9 times"),
            "{warnings:?}"
        );
    }

    #[test]
    fn equal_trials_with_distant_results_are_noisy() {
        let far = [100.0, 140.0, 95.0].map(|rate| trial("fork", rate, 1.2));
        assert_eq!(kinds(&far), ["noisy"]);
        assert_eq!(kinds(&far[..2]), [""; 0]);
        let mut counted = far.clone();
        counted[1].purpose = Purpose::Profiled;
        assert_eq!(kinds(&counted), [""; 0]);
    }
}
