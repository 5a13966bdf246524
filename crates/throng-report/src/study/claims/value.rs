//! One side of a comparison: a value with its trials, and whether it is only a bound.

use super::MissingValue;
use crate::study::PartReport;
use crate::study::sample::Sample;
use crate::summary::Row;
use throng_record::format::counted;
use throng_record::metrics::{Better, Metric, Subject};
use throng_record::{Method, Purpose};

/// Why a rate says nothing about a server, and how to fix it.
const CLIENT_LIMITED: &str =
    "the load generator was the limit; give the clients more CPUs (--client-cpus) or hosts";

/// A server in a part, with a number of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place<'a> {
    /// Index of the part.
    pub(super) part: usize,
    pub(super) server: &'a str,
    /// `None` for a value over all numbers of clients.
    pub(super) clients: Option<u32>,
}

/// One side of a comparison, evaluated.
#[derive(Debug, Clone)]
pub(super) struct Value {
    /// The value as text.
    pub(super) text: String,
    /// The ends of the interval as text, if it has one.
    pub(super) ends: Option<String>,
    /// The factor by which the value is multiplied.
    pub(super) factor: f64,
    /// Its trials; `None` for a number from the study and for a value over all numbers of clients.
    pub(super) sample: Option<Sample>,
    /// Where it was measured; `None` for a number from the study.
    pub(super) place: Option<Measured>,
    /// Its bounds.
    pub(super) low: f64,
    pub(super) high: f64,
    /// A difference of this share or less does not matter.
    pub(super) least: f64,
    /// Why it is only a bound, if something other than the server set it.
    pub(super) bound: Option<Bound>,
}

/// Where and how a value was measured.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    /// Index of the part, whose rounds are not paired with those of another part.
    pub(super) part: usize,
    pub(super) server: String,
    pub(super) clients: Option<u32>,
    /// What asks for more of its repetitions.
    pub(super) repeats: Repeats,
}

/// The unit of repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeats {
    /// Timed trials.
    Timed,
    /// Profiled trials, which count events.
    Profiled,
    /// Slices of a trial.
    Slices,
}

/// Why a value is only a bound of what the server can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bound {
    /// Whether the value that the server can reach may be higher; otherwise it may be lower.
    pub(super) may_be_higher: bool,
    /// What set it, and how to lift it.
    pub(super) why: String,
}

impl Bound {
    /// "may be higher: the load generator was the limit"
    pub(super) fn text(&self) -> String {
        let other = if self.may_be_higher {
            "higher"
        } else {
            "lower"
        };
        format!("may be {other}: {}", self.why)
    }
}

impl Place<'_> {
    /// A metric of it, or why there is none.
    pub(super) fn value(
        self,
        parts: &[PartReport<'_>],
        metric: &'static Metric,
    ) -> Result<Value, MissingValue> {
        let found = self.found(&parts[self.part], metric);
        found.map_err(|why| MissingValue {
            server: self.server.to_owned(),
            why,
        })
    }

    fn found(self, part: &PartReport<'_>, metric: &'static Metric) -> Result<Value, String> {
        let place = Measured {
            part: self.part,
            server: self.server.to_owned(),
            clients: self.clients,
            repeats: Repeats::of(part, metric),
        };
        if let Some(over) = metric.over_clients() {
            let reach = part.over(over, self.server)?;
            return Ok(Value {
                place: Some(place),
                low: reach.low,
                high: reach.high,
                bound: reach.censored.map(|why| Bound {
                    may_be_higher: true,
                    why,
                }),
                ..Value::number(reach.value.unwrap_or(reach.low), reach.evidence)
            });
        }
        let clients = self.clients.unwrap_or_default();
        let sample = part.sample(metric, self.server, clients)?;
        if let Some(why) = part.spoilt(metric) {
            return Err(why);
        }
        let (low, high) = match (sample.interval, sample.exact) {
            (Some(interval), false) => interval,
            _ => (sample.value, sample.value),
        };
        let row = part.row(self.server, clients);
        let quantity = row.and_then(|row| row.quantity(metric.name));
        let is_limited = row.is_some_and(Row::client_limited) && rests_on_clients(metric);
        let never = row
            .and_then(|row| row.value("clients_never_served"))
            .filter(|never| *never > 0.0 && metric.is_of_fairness());
        let got_nothing = never.map(|never| Bound {
            may_be_higher: metric.better != Better::Higher,
            why: format!("{} got nothing", counted(never as u32, "client")),
        });
        Ok(Value {
            ends: quantity.and_then(|quantity| metric.range(quantity)),
            place: Some(place),
            low,
            high,
            least: metric.least_difference,
            bound: got_nothing.or(is_limited.then(|| Bound {
                may_be_higher: metric.better == Better::Higher,
                why: CLIENT_LIMITED.to_owned(),
            })),
            text: metric.text(sample.value),
            sample: Some(sample),
            factor: 1.0,
        })
    }
}

impl Repeats {
    /// What is repeated to measure a metric in a part.
    fn of(part: &PartReport<'_>, metric: &Metric) -> Self {
        let method = part
            .report
            .as_ref()
            .map(|report| report.run.settings.method);
        match (metric.purpose, method) {
            (Purpose::Profiled | Purpose::Captured, _) => Self::Profiled,
            (_, Some(Method::Slices { .. })) if metric.is_of_slices() => Self::Slices,
            _ => Self::Timed,
        }
    }
}

impl Value {
    /// A number written in the study.
    pub(super) fn number(value: f64, text: String) -> Self {
        Self {
            text,
            ends: None,
            factor: 1.0,
            sample: None,
            place: None,
            low: value,
            high: value,
            least: 0.0,
            bound: None,
        }
    }

    /// The same multiplied by `factor`.
    pub(super) fn times(mut self, factor: f64) -> Self {
        self.factor *= factor;
        for value in [&mut self.low, &mut self.high] {
            *value *= factor;
        }
        if let Some(sample) = &mut self.sample {
            sample.trials = sample.trials.clone().times(factor);
        }
        self
    }

    /// Whether it is in the same part as another, so that their rounds form pairs.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        let part = |value: &Self| value.place.as_ref().map(|place| place.part);
        part(self) == part(other)
    }

    /// Whether the true value may be higher (or lower, if `higher` is false) than the known one.
    pub(super) fn may_be(&self, higher: bool) -> bool {
        let bound = self.bound.as_ref();
        bound.is_some_and(|bound| bound.may_be_higher == higher)
    }

    /// Its trials, unless it is a plain count over all of them.
    pub(super) fn trials(&self) -> Option<&throng_stats::Sample> {
        let sample = self.sample.as_ref().filter(|sample| !sample.exact)?;
        Some(&sample.trials)
    }
}

/// Whether a saturated load generator makes values of this metric worse: true for rates and for the time that clients
/// wait. Fairness between clients still shows.
fn rests_on_clients(metric: &Metric) -> bool {
    let is_time = metric.is_time() && metric.better == Better::Lower;
    let is_seen = matches!(metric.subject, Subject::Clients | Subject::Network);
    (metric.follows_rate && !metric.is_of_fairness()) || (is_time && is_seen)
}
