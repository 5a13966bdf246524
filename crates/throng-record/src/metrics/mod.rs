//! The catalogue of metrics: everything that throng measures, each under one name.
//!
//! Reports, thresholds, claims, published figures and exporters read only this table: a metric's name, label, unit
//! and direction, how a trial yields it, how trials are combined, and where it is shown. A metric is one entry, in
//! the file of its source: [`clients`] for the clients' results, and one file per probe.

mod absence;
pub mod accept_queue;
pub mod capture;
pub mod clients;
mod condition;
pub mod control_group;
pub mod counters;
pub mod cpu;
mod entry;
pub mod established;
mod find;
pub mod kernel_memory;
pub mod limits;
pub mod machine;
pub mod memory;
mod over_clients;
pub mod switches;
pub mod syscalls;
pub mod tcp;
mod times;
mod unit;
mod values;

use serde::Serialize;

use super::{Load, Purpose, Side, Slice, Trial};
use crate::format::{lowered, or_absent};
pub use absence::Absence;
pub use condition::{Condition, ConditionResult};
pub use find::{UnknownMetric, find, named};
pub use over_clients::{BoundedValue, OverClients};
use throng_spec::registry::{Entry, Info};
use times::{Statistic, Times};
pub use unit::Unit;
pub use values::{Quantity, Value, Values};

/// A metric.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Metric {
    /// Its only name everywhere, with the unit last: `latency_p99_us`.
    pub name: &'static str,
    /// Short names for users.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub aliases: &'static [&'static str],
    /// Heading of tables and axes.
    pub label: &'static str,
    /// Description.
    pub help: &'static str,
    /// Unit.
    pub unit: Unit,
    /// Better direction.
    pub better: Better,
    /// Its subject.
    pub subject: Subject,
    /// The trials that yield it.
    pub purpose: Purpose,
    /// How trials are combined.
    pub combine: Combine,
    /// Its probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<&'static str>,
    /// The relative difference below which two values count as equal.
    #[serde(skip)]
    pub least_difference: f64,
    /// The count that it is a part of, for conditions in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_of: Option<&'static str>,
    /// Where it is shown by default.
    #[serde(skip)]
    pub shown: ShownIn,
    #[serde(skip)]
    source: Source,
    /// Its value in a slice, if trials come in slices.
    #[serde(skip)]
    pub slice: Option<fn(&Slice) -> Option<f64>>,
    /// Its name within a sentence, if that is neither a statistic of times nor the label.
    #[serde(skip)]
    noun: Option<&'static str>,
    #[serde(skip)]
    nature: Nature,
    /// Whether it is a rate of replies or derived from one: if the load sets the pace, it says nothing about the
    /// server.
    #[serde(skip)]
    pub follows_rate: bool,
    /// Whether it needs [enough replies](crate::Fairness::FEWEST_REPLIES) per client.
    #[serde(skip)]
    needs_replies: bool,
}

/// What a metric is about, beyond its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nature {
    /// The pace of the work itself.
    Speed,
    /// CPU time, or derived from CPU time.
    Cpu,
    Other,
}

/// The metrics that rank servers.
pub fn ranked() -> impl Iterator<Item = &'static Metric> {
    METRICS.iter().filter(|metric| metric.shown.ranked)
}

/// The better direction of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Higher is better.
    Higher,
    /// Lower is better.
    Lower,
    /// Neither is better.
    Neutral,
}

/// The subject of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// The clients' results.
    Clients,
    /// The server's process tree.
    Server,
    /// The load generator's processes.
    LoadGenerator,
    /// The connections between both.
    Network,
}

/// How the trials of a server are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Combine {
    /// The median of the values of trials, or of slices. Only this estimate has an interval.
    Median,
    /// The percentile of all requests of all trials: histograms are merged. A single slow trial can decide it.
    Merge,
    /// The sum, for events that should not happen: a median would hide some.
    Sum,
    /// The maximum, for the same reason.
    Greatest,
}

/// Where a metric is shown by default.
#[derive(Debug, Clone, Copy, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each one is a place by itself"
)]
pub struct ShownIn {
    /// Its column in the table of results.
    pub results: Option<Column>,
    /// Whether it has a column in the table of costs per request.
    pub costs: bool,
    /// Whether servers are ranked by it, in answers and in scenes of studies.
    pub ranked: bool,
    /// Whether servers are compared by it.
    pub compared: bool,
    /// Whether it is listed for single trials.
    pub of_trial: bool,
}

/// A column of the table of results.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its position, from left to right.
    pub place: u8,
    /// The small print of the value.
    pub detail: Detail,
    /// Whether a bar shows the value.
    pub bar: bool,
    /// Its order on a terminal, if it is shown there. If there is too little room, the highest are dropped first; 0 is
    /// never dropped.
    pub terminal: Option<u8>,
}

/// The small print of a value.
#[derive(Debug, Clone, Copy)]
pub enum Detail {
    /// The interval, if there is one.
    Interval,
    /// Other metrics, each as a text with `{}` for its value. Texts that begin with a comma are left out if the value
    /// is 0.
    Others(&'static [(&'static str, &'static str)]),
    /// Failed clients, by kind of error.
    Errors,
}

/// The source of a metric in a trial.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// The clients' results.
    Load(fn(&Load) -> Option<f64>),
    /// A distribution of the clients' times.
    Times(Times, Statistic),
    /// The trial, which may have failed.
    Trial(fn(&Trial) -> Option<f64>),
    /// A value of its probe.
    Value(ProbeValue),
    /// Such a value, times a factor, per reply while it was measured.
    PerRequest(ProbeValue, f64),
    /// Several values of its probe.
    Values(fn(&Side, &Load) -> Option<f64>),
    /// The sum of other metrics.
    Sum(&'static [&'static str]),
    /// The trials of all numbers of clients together.
    OverClients(OverClients),
}

/// A value of a probe, by its name in a [`Side`].
#[derive(Debug, Clone, Copy)]
struct ProbeValue {
    name: &'static str,
    /// Values of the same probe that it requires.
    needs: &'static [&'static str],
}

/// Every metric.
pub const METRICS: &[Metric] = &ALL;

const FILES: &[&[Metric]] = &[
    clients::METRICS,
    over_clients::METRICS,
    cpu::METRICS,
    memory::METRICS,
    control_group::METRICS,
    kernel_memory::METRICS,
    switches::METRICS,
    established::METRICS,
    accept_queue::METRICS,
    tcp::METRICS,
    machine::METRICS,
    limits::METRICS,
    counters::METRICS,
    syscalls::METRICS,
    capture::METRICS,
];

static ALL: [Metric; count(FILES)] = joined(FILES);

/// Number of these metrics.
const fn count(parts: &[&[Metric]]) -> usize {
    let (mut sum, mut part) = (0, 0);
    while part < parts.len() {
        sum += parts[part].len();
        part += 1;
    }
    sum
}

/// All of these, `N` in total, as one array.
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

/// Metrics to list for single trials.
pub fn of_trial() -> impl Iterator<Item = &'static Metric> {
    METRICS.iter().filter(|metric| metric.shown.of_trial)
}

/// Metrics to compare servers by, in the order of their columns.
pub fn compared() -> Vec<&'static Metric> {
    let mut metrics: Vec<_> = METRICS
        .iter()
        .filter(|metric| metric.shown.compared)
        .collect();
    metrics.sort_by_key(|metric| metric.shown.results.map_or(u8::MAX, |column| column.place));
    metrics
}

impl Metric {
    /// Its value in one trial; `None` if the trial failed, had another purpose or did not measure it.
    pub fn of(&self, trial: &Trial) -> Option<f64> {
        if let Source::Trial(value) = self.source {
            return value(trial);
        }
        if trial.failure.is_some() || !self.comes_from(trial) {
            return None;
        }
        let load = trial.load.as_ref()?;
        let value = |value: ProbeValue| self.side(trial)?.metrics.get(value.name).copied();
        match self.source {
            Source::Trial(of_trial) => of_trial(trial),
            Source::Load(_) if self.has_too_few_replies(load) => None,
            Source::Load(of_load) => of_load(load),
            Source::Times(times, statistic) => statistic.of(times.of(load)?),
            Source::Value(name) => value(name),
            Source::PerRequest(name, factor) => {
                let requests = match self.purpose {
                    Purpose::Profiled => load.replies_while_counting(),
                    _ => load.window.replies,
                };
                let total = value(name)? * factor;
                (requests > 0).then(|| total / requests as f64)
            }
            Source::Values(of_values) => of_values(self.side(trial)?, load),
            Source::Sum(names) => names.iter().map(|name| named(name)?.of(trial)).sum(),
            Source::OverClients(_) => None,
        }
    }

    /// Its name within a sentence, without its unit: "throughput", "p99 latency".
    pub fn noun(&self) -> String {
        match (self.noun, self.source) {
            (Some(noun), _) => noun.to_owned(),
            (None, Source::Times(times, statistic)) => {
                format!("{} {}", statistic.name(), times.noun())
            }
            (None, _) => lowered(self.label),
        }
    }

    /// Whether it is CPU time, or derived from CPU time.
    pub fn is_cpu(&self) -> bool {
        self.nature == Nature::Cpu
    }

    /// Whether it is the pace of the work itself. If the clients were the limit, it says nothing about the server.
    pub fn is_speed(&self) -> bool {
        self.nature == Nature::Speed
    }

    /// The words for a better value, and for a worse one.
    pub fn words(&self) -> [&'static str; 2] {
        match (self.subject, self.unit) {
            _ if self.is_cpu() => ["cheaper", "costlier"],
            (Subject::Clients, Unit::PerSecond) => ["faster", "slower"],
            (Subject::Clients, _) if self.is_time() => ["faster", "slower"],
            (_, Unit::Bytes) if self.better == Better::Lower => ["smaller", "larger"],
            _ => ["better", "worse"],
        }
    }

    /// For a statistic of times, which one: "p99".
    pub fn statistic(&self) -> Option<&'static str> {
        match self.source {
            Source::Times(_, statistic) => Some(statistic.name()),
            _ => None,
        }
    }

    /// The unit of an axis up to the greatest of its values, and that unit's size in the metric's own unit; no name for
    /// plain numbers.
    pub fn axis_unit(&self, greatest: f64) -> (Option<&'static str>, f64) {
        match self.unit {
            Unit::Microseconds if self.is_cpu() => (Some("µs"), 1.0),
            Unit::Microseconds => (Some("ms"), 1e3),
            Unit::Bytes if greatest < 1_048_576.0 => (Some("KiB"), 1024.0),
            Unit::Bytes => (Some("MiB"), 1_048_576.0),
            Unit::BytesPerSecond => (Some("KiB/s"), 1024.0),
            Unit::Seconds if greatest < 1.0 => (Some("ms"), 1e-3),
            Unit::Seconds => (Some("s"), 1.0),
            Unit::Percent => (Some("%"), 1.0),
            _ => (None, 1.0),
        }
    }

    /// The highest possible value, if there is one.
    pub fn greatest(&self) -> Option<f64> {
        (self.unit == Unit::Index).then_some(1.0)
    }

    /// Whether it is a time.
    pub fn is_time(&self) -> bool {
        self.unit.microseconds().is_some()
    }

    /// The name of its probe's value in records, if it is just that value.
    pub fn recorded_as(&self) -> Option<&'static str> {
        match self.source {
            Source::Value(value) => Some(value.name),
            _ => None,
        }
    }

    /// The same per request, for values that grow with the number of requests.
    pub fn per_request(&self) -> Option<&'static Self> {
        let name = self.recorded_as()?;
        METRICS.iter().find(|metric| {
            matches!(metric.source, Source::PerRequest(value, _) if value.name == name)
                && metric.subject == self.subject
        })
    }

    /// The same measurement of the other side: of the load generator for one of the server, and the reverse.
    pub fn of_other_side(&self) -> Option<&'static Self> {
        let other = match self.subject {
            Subject::Server => Subject::LoadGenerator,
            Subject::LoadGenerator => Subject::Server,
            Subject::Clients | Subject::Network => return None,
        };
        let mut all = METRICS.iter().filter(|metric| metric.subject == other);
        all.find(|metric| (metric.probe, metric.help) == (self.probe, self.help))
    }

    /// Its value in a trial as text, or "–".
    pub fn shown_of(&self, trial: &Trial) -> String {
        let value = self.of(trial).filter(|value| value.is_finite());
        or_absent(value, |value| self.text(value))
    }

    /// Whether each slice of a trial has it.
    pub fn is_of_slices(&self) -> bool {
        self.slice.is_some()
    }

    /// Whether it is about fairness.
    pub fn is_of_fairness(&self) -> bool {
        self.needs_replies
    }

    /// Whether it is a value of its probe, per request.
    pub fn is_per_request(&self) -> bool {
        matches!(self.source, Source::PerRequest(..))
    }

    /// Whether a trial of this purpose yields it.
    pub fn comes_from(&self, trial: &Trial) -> bool {
        match self.purpose {
            Purpose::Timed => trial.purpose.is_timed(),
            purpose => trial.purpose == purpose,
        }
    }

    /// Whether its combined value has no interval.
    pub fn is_exact(&self) -> bool {
        self.combine != Combine::Median
    }

    /// Its value for readers.
    pub fn text(&self, value: f64) -> String {
        self.unit.text(value)
    }

    /// Its value for readers, which may be a bound of a better one: "≥277,000".
    pub fn bounded(&self, value: f64, is_bound: bool) -> String {
        let mark = match self.better {
            _ if !is_bound => "",
            Better::Higher => "≥",
            Better::Lower | Better::Neutral => "≤",
        };
        mark.to_owned() + &self.text(value)
    }

    /// The ends of its interval in the unit of the value, "1.47–1.58", or with too few trials the ends of their range,
    /// "range 1.47–1.58"; `None` if both ends look equal.
    pub fn range(&self, quantity: Quantity) -> Option<String> {
        let (low, high) = (quantity.low?, quantity.high?);
        let [low, high] = [low, high].map(|end| self.unit.number_in_unit_of(end, quantity.value));
        let range = if quantity.is_range { "range " } else { "" };
        (low != high).then(|| format!("{range}{low}–{high}"))
    }

    fn probe_value(&self) -> Option<ProbeValue> {
        match self.source {
            Source::Value(value) | Source::PerRequest(value, _) => Some(value),
            _ => None,
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

    /// Its unit, better direction and source of trials, as text.
    pub fn terms(&self) -> String {
        let better = match self.better {
            Better::Higher => "higher is better",
            Better::Lower => "lower is better",
            Better::Neutral => "",
        };
        let of_trials = match self.combine {
            Combine::Median => "",
            Combine::Merge => "all requests of all trials",
            Combine::Sum => "sum over trials",
            Combine::Greatest => "worst trial",
        };
        let purpose = match self.purpose {
            Purpose::Profiled => "profiled trials",
            Purpose::Captured => "captured trials",
            Purpose::Search => "search for a limit",
            _ => "",
        };
        let combine = match self.source {
            Source::OverClients(_) => "over all numbers of clients",
            _ => of_trials,
        };
        let terms: Vec<&str> = [self.unit.name(), better, combine, purpose]
            .into_iter()
            .filter(|term| !term.is_empty())
            .collect();
        terms.join(", ")
    }
}

impl PartialEq for &'static Metric {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
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

impl Subject {
    /// Its name in tables with both sides.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clients => "clients",
            Self::Server => "server",
            Self::LoadGenerator => "load generator",
            Self::Network => "network",
        }
    }
}

#[cfg(test)]
mod tests;
