//! The trials of a server under one load combined, metric by metric.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::{Deserialize, Serialize, Serializer};

use super::{Combine, METRICS, Metric, Source, named};
use crate::Trial;
use crate::load_stats::Times as Merged;
use throng_stats::Sample;
use throng_stats::paired::{LEVEL, LogRatio};

/// A value over several trials or slices, with its 95 % interval from 6 on; of 2 to 5, with their range. Both are those
/// of the median: [`Quantity::estimator`] names it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Quantity {
    pub value: f64,
    /// Lower end of the interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of the interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Whether these ends are the minimum and maximum of too few trials, instead of a 95 % interval.
    #[serde(default, rename = "range", skip_serializing_if = "std::ops::Not::not")]
    pub is_range: bool,
    /// Whether it is the median of slices, instead of trials.
    #[serde(default, rename = "slices", skip_serializing_if = "std::ops::Not::not")]
    pub is_of_slices: bool,
    /// Of a ratio: whether the true one is at least as far from 1.
    #[serde(default, rename = "bound", skip_serializing_if = "std::ops::Not::not")]
    pub is_bound: bool,
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
            is_of_slices: false,
            is_bound: false,
        }
    }

    /// The estimate of a sample with its interval, or else the range of its values; `None` without values.
    fn of_sample(sample: &Sample) -> Option<Self> {
        let interval = sample.interval();
        let ends = interval.map(|interval| (interval.low, interval.high));
        let (low, high) = ends.or_else(|| sample.range()).unzip();
        Some(Self {
            low,
            high,
            is_range: ends.is_none() && low.is_some(),
            is_of_slices: sample.is_of_slices(),
            is_bound: false,
            ..Self::bare(sample.estimate()?)
        })
    }

    /// What those of these values are that have an interval or a range, as a sentence for captions: "Median over
    /// slices, with its 95 % interval."; empty if none has.
    pub fn estimator(shown: impl IntoIterator<Item = Self>) -> String {
        let shown: Vec<Self> = shown.into_iter().filter(|one| one.low.is_some()).collect();
        let all_or_none = |is: fn(&Self) -> bool| {
            let all = shown.iter().all(is);
            (all || !shown.iter().any(is)).then_some(all)
        };
        let of = match all_or_none(|one| one.is_of_slices) {
            _ if shown.is_empty() => return String::new(),
            Some(true) => "slices",
            Some(false) => "trials",
            None => "trials or slices",
        };
        let ends = match all_or_none(|one| one.is_range) {
            Some(true) => "their range",
            Some(false) => "its 95 % interval",
            None => "its 95 % interval (below 6, the range)",
        };
        format!("Median over {of}, with {ends}.")
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

    /// As a ratio: "1.52 (1.47–1.58)".
    pub fn as_ratio(&self) -> String {
        let (low, high) = (
            self.low.unwrap_or(self.value),
            self.high.unwrap_or(self.value),
        );
        // Enough to distinguish the ends of a narrow interval from 1.
        let decimals = match self.value {
            ..0.01 => 4,
            ..0.1 => 3,
            ..1.0 if self.is_bound => 3,
            ..10.0 if self.is_bound => 2,
            ..2.0 if high - low < 0.01 => 4,
            ..2.0 if high - low < 0.1 => 3,
            ..10.0 => 2,
            ..100.0 => 1,
            _ => 0,
        };
        // A bound is rounded towards 1.
        let power = 10_f64.powi(decimals);
        let (sign, shown) = match (self.is_bound, self.value < 1.0) {
            (true, true) => ("≤", (self.value * power).ceil() / power),
            (true, false) => ("≥", (self.value * power).floor() / power),
            _ => ("", self.value),
        };
        let places = decimals as usize;
        let value = format!("{sign}{shown:.places$}");
        match (self.low, self.high) {
            (Some(least), Some(most)) => format!("{value} ({least:.places$}–{most:.places$})"),
            _ => value,
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
        let mut all: Vec<&Trial> = trials.into_iter().collect();
        all.sort_by_key(|trial| trial.round);
        let mut values = Self::default();
        for metric in METRICS {
            values.add(metric, &all)?;
        }
        Ok(values)
    }

    fn add(&mut self, metric: &'static Metric, trials: &[&Trial]) -> anyhow::Result<()> {
        let own = || trials.iter().filter(|trial| metric.comes_from(trial));
        let by_trial: Vec<(u32, f64)> = own()
            .filter_map(|trial| Some((trial.round, metric.of(trial)?)))
            .collect();
        let values = || by_trial.iter().map(|(_, value)| *value);
        let exact = match metric.combine {
            Combine::Median => None,
            Combine::Merge => of_all_requests(metric, own().copied())?,
            Combine::Sum => (!by_trial.is_empty()).then(|| values().sum()),
            Combine::Greatest => values().max_by(f64::total_cmp),
        };
        let sample = match by_slice(metric, trials) {
            Some(slices) if !by_trial.is_empty() => Sample::of_slices(slices),
            _ => Sample::of_values(by_trial),
        };
        let quantity = if metric.is_exact() {
            exact.map(Quantity::bare)
        } else {
            Quantity::of_sample(&sample)
        };
        if let Some(quantity) = quantity {
            self.0.insert(metric.name, Value { quantity, sample });
        }
        Ok(())
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

/// A percentile of all requests of these trials, in microseconds; `None` if there are too few.
fn of_all_requests<'a>(
    metric: &Metric,
    trials: impl Iterator<Item = &'a Trial>,
) -> anyhow::Result<Option<f64>> {
    let Source::Times(times, statistic) = metric.source else {
        return Ok(None);
    };
    let good = trials.filter(|trial| trial.failure.is_none());
    let recorded = good.filter_map(|trial| times.of(trial.load.as_ref()?));
    let merged = Merged::merged(recorded).context("a histogram in the record cannot be read")?;
    let percentile = merged.zip(statistic.quantile());
    Ok(percentile
        .filter(|(histogram, (_, fewest))| histogram.len() >= *fewest)
        .map(|(histogram, (quantile, _))| histogram.value_at_quantile(quantile) as f64 / 1e3))
}
