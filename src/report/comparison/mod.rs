//! Servers compared with one of them, and with what they were: ratios with intervals, what they allow
//! to be said, and what was demanded.

mod baseline;
mod condition;
mod pair;
mod words;

use serde::Serialize;

use super::format::counted;
use super::summary::Summary;
use crate::record::{Purpose, Run, Trial};
use crate::stats::interval::false_alarm_rate;
pub use baseline::Baseline;
pub use condition::{Condition, Judged};
pub use pair::{Measured, Pair, Word};
use pair::{Source, Together, Values};

/// The comparison that was asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The server that the others are compared with.
    pub reference: String,
    /// Every other server beside it, the largest number of clients first.
    pub pairs: Vec<Pair>,
    /// Servers beside what they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// What was demanded, and whether it was missed.
    pub demands: Vec<Judged>,
}

impl Comparison {
    /// Compares as `run` asks for it, if it does.
    ///
    /// # Errors
    /// When the baseline's histograms cannot be read.
    pub fn of(
        run: &Run,
        trials: &[Trial],
        summary: &Summary,
        baseline: Option<&(Run, Vec<Trial>)>,
    ) -> anyhow::Result<Option<Self>> {
        let Some(asked) = &run.comparison else {
            return Ok(None);
        };
        let now = Source {
            run,
            summary,
            trials,
        };
        let names = || run.servers.iter().map(|server| server.name.as_str());
        let mut pairs = Vec::new();
        for &clients in summary.clients.iter().rev() {
            let Some(reference) = now.side(&asked.reference, clients, &asked.reference) else {
                continue;
            };
            for name in names().filter(|name| *name != asked.reference) {
                let side = now.side(name, clients, name);
                pairs.extend(side.map(|side| now.pair(&side, &reference, Together::Interleaved)));
            }
        }
        let baseline = match baseline {
            Some((then, then_trials)) => Some(Baseline::of(run, now, then, then_trials)?),
            None => None,
        };
        let mut demands = conditions(run, trials, summary);
        if let Some(percent) = asked.slower_percent {
            let against = baseline.as_ref().map_or(&pairs, |baseline| &baseline.pairs);
            demands.extend(against.iter().map(|pair| pair.not_slower(percent)));
        }
        Ok(Some(Self {
            reference: asked.reference.clone(),
            pairs,
            baseline,
            demands,
        }))
    }

    /// Whether anything that was demanded was missed.
    pub fn missed(&self) -> bool {
        self.demands.iter().any(|judged| judged.missed)
    }

    /// Every pair, those of one run first.
    pub fn all_pairs(&self) -> impl Iterator<Item = &Pair> {
        let then = self.baseline.iter().flat_map(|baseline| &baseline.pairs);
        self.pairs.iter().chain(then)
    }

    /// What limits the trust in it.
    pub(super) fn notes(&self, summary: &Summary) -> Vec<String> {
        let mut notes: Vec<String> = self
            .baseline
            .iter()
            .map(|baseline| baseline.caveat.clone())
            .collect();
        let compared = self.all_pairs().flat_map(|pair| &pair.measures);
        let compared = compared
            .filter(|measured| measured.verdict != Word::Withheld)
            .count();
        let trials = summary
            .rows
            .iter()
            .map(|row| row.trials_ok)
            .filter(|trials| *trials > 1);
        let alarms = compared as f64 * false_alarm_rate(trials.min().unwrap_or(0) as usize);
        let controlled = self
            .all_pairs()
            .flat_map(|pair| &pair.measures)
            .any(|m| m.noise.is_some());
        if alarms >= 0.25 && !controlled {
            notes.push(format!(
                "{} were made, each at 95 %: of equal servers about {alarms:.1} of them would seem to \
                 differ by chance.",
                counted(compared as u32, "comparison"),
            ));
        }
        notes
    }
}

/// Judges every condition of every server that it is about.
fn conditions(run: &Run, trials: &[Trial], summary: &Summary) -> Vec<Judged> {
    let asked = run.comparison.iter().flat_map(|asked| &asked.fail_if);
    let read = asked.filter_map(|text| Some((text, Condition::parse(text).ok()?)));
    let mut judged = Vec::new();
    for (text, condition) in read {
        for row in &summary.rows {
            if condition
                .server
                .as_ref()
                .is_none_or(|server| *server == row.server)
            {
                let values = Values::new(trials, &row.server, row.clients, Purpose::Timed);
                judged.push(condition.judge(text, &values, run.seed));
            }
        }
    }
    judged
}
