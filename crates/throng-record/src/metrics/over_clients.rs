//! Metrics of a server over all its numbers of clients: the first failure, or its limit.

use super::Better::Higher;
use super::{Combine, Metric, Source, Unit, named};
use crate::format::{counted, whole};
use crate::{LimitResult, Purpose, SearchEnding, Trial, TriedValue};

pub(super) const METRICS: &[Metric] = &[
    Metric {
        source: Source::OverClients(OverClients {
            of_trials: Some(first_failure),
            of_search: Some(lowest_failed),
        }),
        ..over_clients(
            "first_failure",
            "First failure",
            "smallest number of clients at which any client failed or was not served; in a search for a limit, the fewest clients, or requests per second, that failed",
        )
    },
    Metric {
        purpose: Purpose::Search,
        source: Source::OverClients(OverClients {
            of_trials: None,
            of_search: Some(limit),
        }),
        ..over_clients(
            "limit",
            "Limit",
            "most clients, or requests per second, that passed in a search for the limit",
        )
    },
    Metric {
        purpose: Purpose::Search,
        source: Source::OverClients(OverClients {
            of_trials: None,
            of_search: Some(established_at_limit),
        }),
        ..over_clients(
            "established_at_limit",
            "Max connections at the limit",
            "most simultaneous established connections in trials at the limit",
        )
    },
];

const fn over_clients(name: &'static str, label: &'static str, help: &'static str) -> Metric {
    Metric {
        combine: Combine::Greatest,
        ..Metric::of_load(name, label, Unit::Count, Higher, help, |_| None)
    }
}

/// The trials of a server with one number of clients.
type TrialsAt<'a> = (u32, Vec<&'a Trial>);

/// From the trials of a server by number of clients, ascending.
type OfTrials = fn(&[TrialsAt<'_>]) -> BoundedValue;
/// From the result of a search and its trials; the error says why there is no value.
type OfSearch = fn(&LimitResult, &[&Trial]) -> Result<BoundedValue, String>;

/// How a metric is computed from all numbers of clients.
#[derive(Debug, Clone, Copy)]
pub struct OverClients {
    /// In a run with numbers of clients; `None` if only a search has it.
    pub of_trials: Option<OfTrials>,
    /// In a search for a limit; `None` if it has none.
    pub of_search: Option<OfSearch>,
}

impl Metric {
    /// How it is computed from all numbers of clients, if it is a single value over all of them.
    pub fn over_clients(&self) -> Option<OverClients> {
        match self.source {
            Source::OverClients(over) => Some(over),
            _ => None,
        }
    }

    /// Whether it is a single value over all numbers of clients.
    pub fn is_over_clients(&self) -> bool {
        self.over_clients().is_some()
    }

    /// Whether a search for a limit yields it.
    pub fn is_of_search(&self) -> bool {
        self.over_clients()
            .is_some_and(|over| over.of_search.is_some())
    }

    /// Whether a run with numbers of clients yields it.
    pub fn is_of_trials(&self) -> bool {
        self.over_clients()
            .is_none_or(|over| over.of_trials.is_some())
    }
}

/// The value of such a metric, and its bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundedValue {
    /// The value; `None` if it is only known to be above the values tried.
    pub value: Option<f64>,
    /// Its lower bound.
    pub low: f64,
    /// Its upper bound.
    pub high: f64,
    /// For a table.
    pub text: String,
    /// For a sentence, with its evidence.
    pub evidence: String,
    /// Why the value is only a lower bound, if the server itself did not set it.
    pub censored: Option<String>,
}

impl BoundedValue {
    /// A known value.
    fn exactly(value: f64) -> Self {
        Self {
            value: Some(value),
            low: value,
            high: value,
            text: whole(value),
            evidence: whole(value),
            censored: None,
        }
    }

    /// A lower bound, and its reason.
    fn at_least(low: f64, text: String, because: String) -> Self {
        Self {
            value: None,
            low,
            high: f64::INFINITY,
            evidence: text.clone(),
            text,
            censored: Some(because),
        }
    }
}

fn first_failure(by_clients: &[(u32, Vec<&Trial>)]) -> BoundedValue {
    let fails = |trial: &&Trial| {
        trial.load.as_ref().is_some_and(|load| {
            // With a SYN cookie, a client may believe that it is connected while it is not.
            let unfinished = load
                .completion
                .as_ref()
                .is_some_and(|jobs| jobs.unfinished > 0);
            let failed = load.errors.values().any(|count| *count > 0);
            load.connected < load.clients || failed || unfinished
        })
    };
    let first = by_clients
        .iter()
        .find(|(_, trials)| trials.iter().any(fails));
    if let Some((clients, _)) = first {
        return BoundedValue::exactly(f64::from(*clients));
    }
    let most = by_clients.last().map_or(0, |(clients, _)| *clients);
    let text = format!("none up to {}", counted(most, "client"));
    let because = "no higher number was tried".to_owned();
    BoundedValue::at_least(f64::from(most) + 1.0, text, because)
}

/// The lowest value that failed is the first failure; it is above the highest that passed.
fn lowest_failed(found: &LimitResult, trials: &[&Trial]) -> Result<BoundedValue, String> {
    let passed = limit(found, trials)?;
    let text = match found.failed {
        Some(failed) => whole(failed.value as f64),
        None => format!("none up to {}", whole(passed.low)),
    };
    Ok(BoundedValue {
        value: found.failed.map(|failed| failed.value as f64),
        low: passed.low + 1.0,
        high: passed.high + 1.0,
        evidence: format!("{text} ({})", ends(found, &text)),
        text,
        censored: passed.censored,
    })
}

/// The highest value that passed is the limit; it is below the lowest that failed.
fn limit(found: &LimitResult, _: &[&Trial]) -> Result<BoundedValue, String> {
    check_ending(found)?;
    let value = |tried: TriedValue| tried.value as f64;
    let passed = found.passed.map_or(0.0, value);
    if found.ending == SearchEnding::AtLeast {
        let because = found.stopped_at.as_ref().map_or_else(
            || "no higher value was tried".to_owned(),
            |stopped| stopped.reason.clone(),
        );
        let text = format!("at least {}", whole(passed));
        return Ok(BoundedValue::at_least(passed, text, because));
    }
    let mut reach = BoundedValue::exactly(passed);
    reach.high = found
        .failed
        .map_or(f64::INFINITY, |failed| value(failed) - 1.0);
    reach.evidence = format!("{} ({})", reach.text, ends(found, &reach.text));
    if let Some(cause) = found.cause.as_ref().filter(|cause| cause.is_in_common()) {
        reach.high = f64::INFINITY;
        let remedy = cause
            .remedy()
            .map_or_else(String::new, |remedy| format!("; {remedy}"));
        reach.censored = Some(format!("{}{remedy}", cause.sentence));
    }
    Ok(reach)
}

/// How often the values on both sides of a limit passed and failed; the one that `stated` names is not named again.
fn ends(found: &LimitResult, stated: &str) -> String {
    let end = |tried: Option<TriedValue>, outcome: &str| {
        let TriedValue { value, times } = tried?;
        let outcome = format!("{outcome} {times} of {}", counted(times, "time"));
        let shown = whole(value as f64);
        Some(if shown == stated {
            outcome
        } else {
            format!("{shown} {outcome}")
        })
    };
    let both: Vec<String> = [end(found.passed, "passed"), end(found.failed, "failed")]
        .into_iter()
        .flatten()
        .collect();
    both.join("; ")
}

fn established_at_limit(found: &LimitResult, trials: &[&Trial]) -> Result<BoundedValue, String> {
    check_ending(found)?;
    let limit = found.passed.map_or(0, |passed| passed.value);
    let at_limit = trials.iter().filter(|trial| {
        let attempt = trial.attempt.as_ref();
        attempt.is_some_and(|attempt| attempt.value == limit && attempt.passed)
    });
    let most = named("established_max")
        .and_then(|metric| {
            let values = at_limit.filter_map(|trial| metric.of(trial));
            values.max_by(f64::total_cmp)
        })
        .ok_or("the probe `established` has no value")?;
    let mut reach = BoundedValue::exactly(most);
    reach.censored = self::limit(found, trials)?.censored;
    if reach.censored.is_some() {
        reach.high = f64::INFINITY;
    }
    Ok(reach)
}

/// Checks that a search ended with a result. One that ran out of tries or time has one if it knows both bounds.
fn check_ending(found: &LimitResult) -> Result<(), String> {
    let is_bounded = found.passed.is_some() && found.failed.is_some();
    match found.ending {
        SearchEnding::OutOfTries | SearchEnding::OutOfTime if is_bounded => Ok(()),
        SearchEnding::Found
        | SearchEnding::Between
        | SearchEnding::AtLeast
        | SearchEnding::Nothing => Ok(()),
        SearchEnding::OutOfTries => {
            Err("it ran out of tries before both bounds were known".to_owned())
        }
        SearchEnding::OutOfTime => {
            Err("it ran out of time before both bounds were known".to_owned())
        }
        SearchEnding::Interrupted => Err("the search was interrupted".to_owned()),
        SearchEnding::Failed => Err(format!("the search failed: {}", found.failure)),
    }
}
