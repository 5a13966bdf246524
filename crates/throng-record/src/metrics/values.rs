//! The trials of a server under one load combined, metric by metric.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context as _;
use serde::{Serialize, Serializer};

use super::{Combine, METRICS, Metric, Source, Statistic, Times, named};
use crate::{Latency, Trial};
use throng_stats::paired::{LEVEL, LogRatio};
use throng_stats::{Distributions, Sample};

/// A value over several trials, with its 95 % interval from 6 trials on; with 2 to 5 trials, with their range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quantity {
    pub value: f64,
    /// Lower end of the interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of the interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Whether these ends are the minimum and maximum of too few trials, instead of a 95 % interval.
    #[serde(rename = "range", skip_serializing_if = "std::ops::Not::not")]
    pub is_range: bool,
}

/// A metric over several trials.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// The combined value.
    pub quantity: Quantity,
    /// The values of trials, or of their slices, for ratios.
    pub sample: Sample,
}

/// All metrics of a server's trials under one load.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Values(BTreeMap<&'static str, Value>);

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, value)| (name, value.quantity)))
    }
}

impl Quantity {
    /// Without an interval.
    pub fn bare(value: f64) -> Self {
        Self {
            value,
            low: None,
            high: None,
            is_range: false,
        }
    }

    /// A ratio with its 95 % interval.
    pub fn of_ratio(ratio: LogRatio) -> Self {
        let interval = ratio.interval(LEVEL);
        Self {
            low: Some(interval.low),
            high: Some(interval.high),
            ..Self::bare(interval.estimate)
        }
    }

    /// Multiplied by a factor.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            low: self.low.map(|low| low * factor),
            high: self.high.map(|high| high * factor),
            ..self
        }
    }
}

impl Values {
    /// All metrics of these trials of one server under one load. Timed trials should all have one purpose.
    ///
    /// # Errors
    /// When a histogram in the record is invalid.
    pub fn of<'a>(trials: impl IntoIterator<Item = &'a Trial>) -> anyhow::Result<Self> {
        let mut trials: Vec<&Trial> = trials.into_iter().collect();
        trials.sort_by_key(|trial| trial.round);
        let mut values = Self::default();
        for times in Times::ALL {
            let of_times =
                |metric: &&Metric| matches!(metric.source, Source::Times(of, _) if of == times);
            let metrics: Vec<&'static Metric> = METRICS.iter().filter(of_times).collect();
            values.add_times(&trials, times, &metrics)?;
        }
        for metric in METRICS {
            if !matches!(metric.source, Source::Times(..)) {
                let rounds = trials.iter().filter_map(|trial| {
                    let comes_from = metric.comes_from(trial);
                    Some((trial.round, metric.of(trial).filter(|_| comes_from)?))
                });
                values.add(metric, Sample::of_values(rounds.collect()), &trials);
            }
        }
        Ok(values)
    }

    fn add_times(
        &mut self,
        trials: &[&Trial],
        times: Times,
        metrics: &[&'static Metric],
    ) -> anyhow::Result<()> {
        let good = trials
            .iter()
            .filter(|trial| trial.failure.is_none() && trial.purpose.is_timed());
        let good: Vec<(u32, &Latency)> = good
            .filter_map(|trial| Some((trial.round, times.of(trial.load.as_ref()?)?)))
            .filter(|(_, latency)| latency.count > 0)
            .collect();
        let counted: Vec<Vec<(f64, u64)>> = good
            .iter()
            .map(|(_, latency)| counted(latency))
            .collect::<anyhow::Result<_>>()?;
        let rounds: Vec<u32> = good.iter().map(|(round, _)| *round).collect();
        let all = Arc::new(Distributions::new(&counted));
        for metric in metrics {
            let Source::Times(_, statistic) = metric.source else {
                continue;
            };
            let sample = match (statistic, statistic.quantile()) {
                (_, Some((_, fewest))) if all.count() < fewest => continue,
                (_, Some((quantile, _))) => {
                    Sample::of_quantile(rounds.clone(), quantile, Arc::clone(&all))
                }
                (Statistic::Mean, _) => {
                    let means = good.iter();
                    let means = means.map(|(round, one)| (*round, one.mean_us, one.count));
                    Sample::of_means(means.collect())
                }
                _ => Sample::of_values(
                    good.iter()
                        .map(|(round, latency)| (*round, latency.max_us))
                        .collect(),
                ),
            };
            self.add(metric, sample, trials);
        }
        Ok(())
    }

    fn add(&mut self, metric: &'static Metric, sample: Sample, trials: &[&Trial]) {
        let sample = match (by_slice(metric, trials), sample.estimate()) {
            (Some(slices), Some(whole)) => Sample::of_slices(whole, slices),
            _ => sample,
        };
        let own = || sample.by_round().into_iter().map(|(_, value)| value);
        let value = match metric.combine {
            _ if sample.trials() == 0 => None,
            Combine::Median | Combine::Merge => sample.estimate(),
            Combine::Sum => Some(own().sum()),
            Combine::Greatest => own().max_by(f64::total_cmp),
        };
        let Some(value) = value else { return };
        let quantity = match (sample.interval(), sample.range()) {
            _ if metric.is_exact() => Quantity::bare(value),
            (Some(interval), _) => Quantity {
                low: Some(interval.low),
                high: Some(interval.high),
                ..Quantity::bare(value)
            },
            (None, Some((low, high))) => Quantity {
                low: Some(low),
                high: Some(high),
                is_range: true,
                ..Quantity::bare(value)
            },
            (None, None) => Quantity::bare(value),
        };
        self.0.insert(metric.name, Value { quantity, sample });
    }

    /// The metric of this name; `None` if it was not measured.
    pub fn get(&self, name: &str) -> Option<&Value> {
        debug_assert!(named(name).is_some(), "there is no metric {name}");
        self.0.get(name)
    }

    /// With its interval.
    pub fn quantity(&self, name: &str) -> Option<Quantity> {
        self.get(name).map(|value| value.quantity)
    }

    /// Without an interval.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.get(name).map(|value| value.quantity.value)
    }

    /// Its values per trial.
    pub fn sample(&self, name: &str) -> Option<&Sample> {
        self.get(name).map(|value| &value.sample)
    }

    /// All metrics, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }
}

/// The values of slices, by round, if a trial came in slices.
fn by_slice(metric: &Metric, trials: &[&Trial]) -> Option<Vec<(u32, f64)>> {
    let value = metric.slice?;
    let good = trials.iter().filter(|trial| trial.failure.is_none());
    let mut in_slices = good.filter(|trial| !trial.slices.is_empty());
    let (trial, None) = (in_slices.next()?, in_slices.next()) else {
        return None;
    };
    let slices = trial.slices.iter();
    Some(
        slices
            .filter_map(|slice| Some((slice.round, value(slice)?)))
            .collect(),
    )
}

/// The values of a histogram in microseconds, with their counts.
fn counted(latency: &Latency) -> anyhow::Result<Vec<(f64, u64)>> {
    let histogram = latency
        .times()
        .context("a histogram in the record cannot be read")?;
    let values = histogram.iter_recorded().map(|step| {
        let value = histogram.highest_equivalent(step.value_iterated_to());
        (value as f64 / 1000.0, step.count_at_value())
    });
    Ok(values.collect())
}
