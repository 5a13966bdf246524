//! Every figure of a trial that has a name: servers are compared by some of them, and conditions,
//! published figures and claims refer to any.
//!
//! A new one is a line in `timed`, `captured` or `counted`, by the trials that it comes from.

mod captured;
mod counted;
mod timed;
mod unit;

use serde::Serialize;

use super::summary::Quantity;
use crate::record::{Load, Purpose, Run, Side, Trial};
use crate::registry::{Entry, Info, Unsupported};
use crate::stats::{bootstrap_median, median};
pub use unit::Unit;

/// A figure of a trial.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Metric {
    /// The name typed in conditions and written as JSON.
    pub name: &'static str,
    /// Another name that users know for it.
    #[serde(skip)]
    also: &'static str,
    /// Heading in tables.
    pub title: &'static str,
    /// What it means.
    pub help: &'static str,
    /// What it is measured in.
    pub unit: Unit,
    /// Which value of it is good.
    pub better: Better,
    /// Whom it tells of.
    pub subject: Subject,
    /// The trials that it comes from.
    pub purpose: Purpose,
    /// How the trials of a server make one value.
    pub whole: Whole,
    /// The share by which two values must differ at least for it to matter.
    #[serde(skip)]
    pub least: f64,
    #[serde(skip)]
    source: Source,
}

/// Which value of a metric is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// A high one.
    Higher,
    /// A low one.
    Lower,
    /// Neither: it describes.
    Neither,
}

/// Whom a metric tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// What the clients saw.
    Clients,
    /// The server's process tree.
    Server,
    /// The load generator's process.
    LoadGenerator,
    /// The connections between both.
    Network,
}

/// How the trials of a server make one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Whole {
    /// Their median.
    Median,
    /// Their sum: of what must not happen at all, a median would hide some.
    Sum,
    /// The greatest, for the same reason.
    Greatest,
}

/// Where in a trial a metric is found.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// In what the clients saw.
    Load(fn(&Load) -> Option<f64>),
    /// In the trial, which may have failed.
    Any(fn(&Trial) -> Option<f64>),
    /// A figure of a probe, times a factor that leads to the metric's unit.
    Figure(Figure, f64),
    /// Such a figure for each reply that the clients had while it was measured.
    EachReply(Figure, f64),
    /// Figures of one probe, put together.
    Figures(&'static str, fn(&Side, &Load) -> Option<f64>),
}

/// A figure in records, by the name of its probe and its own.
#[derive(Debug, Clone, Copy)]
struct Figure {
    probe: &'static str,
    name: &'static str,
    /// Other figures of the probe without which there is none.
    needs: &'static [&'static str],
}

const fn figure(probe: &'static str, name: &'static str) -> Figure {
    Figure {
        probe,
        name,
        needs: &[],
    }
}

/// Verified replies a second.
pub const RATE: &Metric = &METRICS[0];
/// Verified replies for a second of CPU time of the server.
pub const RATE_PER_CPU: &Metric = &METRICS[1];

/// How many of [`METRICS`] servers are compared by.
pub const COMPARED: usize = 13;

/// Every metric, the ones that servers are compared by first.
pub const METRICS: &[Metric] = &ALL;

static ALL: [Metric; timed::METRICS.len() + captured::METRICS.len() + counted::METRICS.len()] =
    joined(&[timed::METRICS, captured::METRICS, counted::METRICS]);

/// All of these, of which there are `N`, in one.
const fn joined<const N: usize>(parts: &[&[Metric]]) -> [Metric; N] {
    let mut all = [parts[0][0]; N];
    let (mut place, mut part, mut first) = (0, 0, 0);
    while place < N {
        while place - first == parts[part].len() {
            first = place;
            part += 1;
        }
        all[place] = parts[part][place - first];
        place += 1;
    }
    all
}

impl Metric {
    /// Its value in one trial; none when that failed, was for another purpose or did not measure it.
    pub fn of(&self, trial: &Trial) -> Option<f64> {
        if let Source::Any(value) = self.source {
            return value(trial);
        }
        if trial.failure.is_some() || !self.comes_from(trial) {
            return None;
        }
        let load = trial.load.as_ref()?;
        let figure = |figure: Figure| self.side(trial)?.metrics.get(figure.name).copied();
        match self.source {
            Source::Any(value) => value(trial),
            Source::Load(value) => value(load),
            Source::Figure(name, factor) => Some(figure(name)? * factor),
            Source::EachReply(name, factor) => {
                let replies = match self.purpose {
                    Purpose::Counted => load.replies_while_counting(),
                    _ => load.window.replies,
                };
                let total = figure(name)? * factor;
                (replies > 0).then(|| total / replies as f64)
            }
            Source::Figures(_, value) => value(self.side(trial)?, load),
        }
    }

    /// Its value over those of its purpose among the trials of one server with one number of clients, as
    /// `whole` says; with an interval where that is a median of two trials or more.
    pub fn over<'a>(
        &self,
        trials: impl IntoIterator<Item = &'a Trial>,
        seed: u64,
    ) -> Option<Quantity> {
        let values: Vec<f64> = trials
            .into_iter()
            .filter(|trial| trial.purpose == self.purpose)
            .filter_map(|trial| self.of(trial))
            .collect();
        let (value, interval) = match self.whole {
            Whole::Median => (median(&values)?, bootstrap_median(&values, seed)),
            Whole::Sum => (values.first().map(|_| values.iter().sum())?, None),
            Whole::Greatest => (values.into_iter().max_by(f64::total_cmp)?, None),
        };
        Some(Quantity {
            median: value,
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
        })
    }

    /// Why there is no value of it, where a probe of the run or of these trials has said so.
    pub fn why_absent<'a>(
        &self,
        run: &'a Run,
        trials: impl IntoIterator<Item = &'a Trial>,
    ) -> Option<&'a Unsupported> {
        let figure = self.figure()?;
        let probe = figure.probe;
        let mut sides = trials
            .into_iter()
            .filter(|trial| self.comes_from(trial))
            .filter_map(|trial| self.side(trial));
        let of_side = |side: &'a Side| {
            let mut figures = [figure.name]
                .into_iter()
                .chain(figure.needs.iter().copied());
            let named = figures.find_map(|name| side.unavailable.get(&format!("{probe}: {name}")));
            named.or_else(|| side.unavailable.get(probe))
        };
        sides
            .find_map(of_side)
            .or_else(|| run.unavailable.get(probe))
    }

    /// The probe that measures it and the figure of that probe, empty where it is made of several.
    pub fn measured_by(&self) -> Option<(&'static str, &'static str)> {
        self.figure().map(|figure| (figure.probe, figure.name))
    }

    fn figure(&self) -> Option<Figure> {
        match self.source {
            Source::Load(_) | Source::Any(_) => None,
            Source::Figure(figure, _) | Source::EachReply(figure, _) => Some(figure),
            Source::Figures(probe, _) => Some(figure(probe, "")),
        }
    }

    /// Whether trials of this one's purpose give it.
    fn comes_from(&self, trial: &Trial) -> bool {
        match self.purpose {
            Purpose::Timed => trial.purpose.is_timed(),
            purpose => trial.purpose == purpose,
        }
    }

    fn side<'a>(&self, trial: &'a Trial) -> Option<&'a Side> {
        match self.subject {
            Subject::Clients => None,
            Subject::Server => trial.server_side.as_ref(),
            Subject::LoadGenerator => trial.client_side.as_ref(),
            Subject::Network => trial.network.as_ref(),
        }
    }

    /// The metric of this name, or the one that comes closest.
    ///
    /// # Errors
    /// When there is none, with the closest one if one is close.
    pub fn find(name: &str) -> Result<&'static Self, Option<&'static str>> {
        let plain = name.trim().to_lowercase().replace([' ', '-'], "_");
        let named = |name: &str| {
            METRICS
                .iter()
                .find(|metric| metric.name == name || (metric.also == name && !name.is_empty()))
        };
        // A percentile without a word is of the service time.
        let short = plain.strip_prefix("service_").unwrap_or(&plain);
        named(&plain).or_else(|| named(short)).ok_or_else(|| {
            METRICS
                .iter()
                .map(|metric| (strsim::jaro_winkler(metric.name, short), metric.name))
                .filter(|(likeness, _)| *likeness > 0.8)
                .max_by(|a, b| a.0.total_cmp(&b.0))
                .map(|(_, name)| name)
        })
    }

    /// Its unit, which value is good, and the trials it comes from, in words.
    pub fn terms(&self) -> String {
        let better = match self.better {
            Better::Higher => "more is better",
            Better::Lower => "less is better",
            Better::Neither => "",
        };
        let purpose = match self.purpose {
            Purpose::Counted => "counted trials",
            Purpose::Captured => "captured trials",
            _ => "",
        };
        let whole = match self.whole {
            Whole::Median => "",
            Whole::Sum => "sum over trials",
            Whole::Greatest => "worst trial",
        };
        let terms = [self.unit.name(), better, whole, purpose];
        let terms: Vec<&str> = terms.into_iter().filter(|term| !term.is_empty()).collect();
        terms.join(", ")
    }

    /// One that only describes.
    const fn neither(self) -> Self {
        Self {
            better: Better::Neither,
            ..self
        }
    }

    /// One known by another name too.
    const fn also(self, also: &'static str) -> Self {
        Self { also, ..self }
    }

    /// One whose trials make a value in another way than by their median.
    const fn whole(self, whole: Whole) -> Self {
        Self { whole, ..self }
    }
}

impl Entry for Metric {
    fn info(&self) -> Info {
        Info {
            name: self.name,
            summary: self.help,
        }
    }
}

/// A metric of the clients in timed trials.
const fn of_load(
    name: &'static str,
    title: &'static str,
    unit: Unit,
    help: &'static str,
    value: fn(&Load) -> Option<f64>,
) -> Metric {
    metric(
        name,
        title,
        unit,
        help,
        Subject::Clients,
        Source::Load(value),
    )
}

/// A metric of timed trials; where nothing else is said, more of it is better if it is a rate, an
/// index or a share of the work done, and less else.
const fn metric(
    name: &'static str,
    title: &'static str,
    unit: Unit,
    help: &'static str,
    subject: Subject,
    source: Source,
) -> Metric {
    Metric {
        name,
        also: "",
        title,
        help,
        unit,
        better: match unit {
            Unit::PerSecond | Unit::BytesPerSecond | Unit::Index => Better::Higher,
            _ => Better::Lower,
        },
        subject,
        purpose: Purpose::Timed,
        whole: Whole::Median,
        least: 0.0,
        source,
    }
}

#[cfg(test)]
mod tests;
