//! The limit of each server: trials, result and cause.

mod words;

use std::collections::BTreeMap;

use serde::Serialize;

use throng_record::format::{number, or_absent, whole};
use throng_record::metrics::{Metric, Unit, of_trial};
use throng_record::{Cause, Find, LimitResult, Purpose, Run, SearchEnding, Trial, TriedValue};

/// A search for limits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limits {
    pub find: Find,
    /// One search per server, in the order of the servers.
    pub servers: Vec<ServerLimit>,
}

/// The limit of one server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerLimit {
    /// Its name.
    pub server: String,
    /// How its search ended; absent if it has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<SearchEnding>,
    /// The highest value that passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed: Option<TriedValue>,
    /// The lowest value above it that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<TriedValue>,
    /// The cause of the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The limit and its cause in words.
    pub sentences: Vec<String>,
    /// The trials, by value, ascending.
    pub tries: Vec<SearchTrial>,
}

/// One trial of a search.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchTrial {
    /// Index among all trials, from 0.
    pub trial: u32,
    /// Its purpose.
    pub purpose: Purpose,
    /// The value tried: clients, or requests per second.
    pub value: u64,
    /// Requested number of clients.
    pub clients: u32,
    /// The metrics of the trial, by their names in the catalogue.
    pub metrics: BTreeMap<&'static str, f64>,
    /// Whether it passed.
    pub passed: bool,
    /// Why it did not pass.
    pub reasons: Vec<String>,
}

/// The columns of the table of tries after the value tried: the metrics that at least one try has.
pub fn columns(tries: &[SearchTrial]) -> Vec<&'static Metric> {
    let is_there = |metric: &&Metric| tries.iter().any(|one| one.value_of(metric.name).is_some());
    of_trial().filter(is_there).collect()
}

impl Limits {
    /// The results of a run's searches, if it searched.
    pub fn of(run: &Run, trials: &[Trial]) -> Option<Self> {
        let asked = run.limit.as_ref()?;
        let servers = run.servers.iter().map(|server| {
            let mut tries: Vec<SearchTrial> = trials
                .iter()
                .filter(|trial| trial.server == server.name)
                .filter_map(SearchTrial::of)
                .collect();
            tries.sort_by_key(|one| (one.value, one.trial));
            let found = asked.found.iter().find(|found| found.server == server.name);
            ServerLimit::of(&server.name, asked.find, found, &asked.max_reason, tries)
        });
        Some(Self {
            find: asked.find,
            servers: servers.collect(),
        })
    }

    /// The answer: an overview of several servers, then each server.
    pub(super) fn sentences(&self) -> Vec<String> {
        let mut sentences: Vec<String> = words::overview(self).into_iter().collect();
        match self.servers.as_slice() {
            // A table has how certain it is.
            [only] => sentences.extend(only.sentences.iter().cloned()),
            several => sentences.extend(several.iter().map(|one| {
                let certainty = words::certainty(one, self.find);
                let each = one.sentences.iter().cloned().chain(certainty);
                each.collect::<Vec<_>>().join(" ")
            })),
        }
        sentences
    }

    /// The servers, the highest limit first.
    pub fn best_first(&self) -> Vec<&ServerLimit> {
        let mut servers: Vec<&ServerLimit> = self.servers.iter().collect();
        servers.sort_by_key(|one| std::cmp::Reverse(one.passed.map(|passed| passed.value)));
        servers
    }

    /// The unit of the limit: "clients", "requests per second".
    pub fn unit(&self) -> &'static str {
        unit(self.find)
    }
}

impl ServerLimit {
    fn of(
        server: &str,
        find: Find,
        found: Option<&LimitResult>,
        max_reason: &str,
        tries: Vec<SearchTrial>,
    ) -> Self {
        Self {
            server: server.to_owned(),
            ending: found.map(|found| found.ending),
            passed: found.and_then(|found| found.passed),
            failed: found.and_then(|found| found.failed),
            cause: found.and_then(|found| found.cause.clone()),
            sentences: words::sentences(server, find, found, max_reason),
            tries,
        }
    }

    /// The trials below the limit, then the last one at the limit and the last one that failed above it.
    pub fn around(&self) -> Vec<&SearchTrial> {
        let below = self
            .tries
            .iter()
            .filter(|one| one.purpose == Purpose::Share);
        let last = |tried: Option<TriedValue>, passed| {
            let of_value = move |one: &&SearchTrial| {
                one.passed == passed && tried.is_some_and(|tried| tried.value == one.value)
            };
            self.tries.iter().rfind(of_value)
        };
        let ends = [last(self.passed, true), last(self.failed, false)];
        let mut around: Vec<&SearchTrial> = below.chain(ends.into_iter().flatten()).collect();
        around.dedup_by_key(|one| one.trial);
        around
    }

    /// The limit as shown in tables.
    pub fn text(&self) -> String {
        let value = |tried: Option<TriedValue>| tried.map(|tried| whole(tried.value as f64));
        match (self.ending, value(self.passed), value(self.failed)) {
            (Some(SearchEnding::Found), Some(passed), _) => passed,
            (Some(SearchEnding::AtLeast), Some(passed), _) => format!("at least {passed}"),
            (Some(SearchEnding::Nothing), ..) => "none".to_owned(),
            (_, Some(passed), Some(failed)) => format!("{passed} to {failed}"),
            (_, Some(passed), None) => format!("at least {passed}"),
            _ => throng_record::format::ABSENT.to_owned(),
        }
    }
}

impl ServerLimit {
    /// Its cause as shown in tables and captions.
    pub fn cause_text(&self) -> &str {
        match (&self.cause, self.failed) {
            (Some(cause), _) => &cause.sentence,
            (None, None) => "not reached",
            (None, Some(_)) => "unknown",
        }
    }
}

impl SearchTrial {
    fn of(trial: &Trial) -> Option<Self> {
        let attempt = trial.attempt.as_ref()?;
        let listed = of_trial().filter_map(|metric| Some((metric.name, metric.of(trial)?)));
        Some(Self {
            trial: trial.index,
            purpose: trial.purpose,
            value: attempt.value,
            clients: trial.clients,
            metrics: listed.collect(),
            passed: attempt.passed,
            reasons: attempt.reasons.clone(),
        })
    }

    /// A cell of the table.
    pub fn text(&self, metric: &Metric) -> String {
        or_absent(self.value_of(metric.name), |value| match metric.unit {
            Unit::Clients => format!("{} of {}", whole(value), whole(f64::from(self.clients))),
            _ => metric.text(value),
        })
    }

    /// The value of one of the listed metrics.
    pub fn value_of(&self, metric: &str) -> Option<f64> {
        self.metrics.get(metric).copied()
    }

    /// 99th percentile of the response time in an open loop, or of the latency in a closed loop.
    pub fn p99_us(&self) -> Option<f64> {
        let response = self.value_of("response_p99_us");
        response.or_else(|| self.value_of("latency_p99_us"))
    }

    /// "passed", "failed", with the purpose of a trial outside the search.
    pub fn verdict(&self) -> String {
        let word = if self.passed { "passed" } else { "failed" };
        match self.purpose {
            Purpose::Confirm => format!("{word} again"),
            Purpose::Share => format!("{word}, below the limit"),
            _ => word.to_owned(),
        }
    }
}

fn unit(find: Find) -> &'static str {
    match find {
        Find::Clients => "clients",
        Find::Rate => "requests per second",
        Find::Sessions => "sessions per second",
    }
}

/// "1,234 clients", "500 requests per second".
fn amount(value: u64, find: Find) -> String {
    match (value, find) {
        (1, Find::Clients) => "1 client".to_owned(),
        (1, Find::Rate) => "1 request per second".to_owned(),
        (1, Find::Sessions) => "1 session per second".to_owned(),
        (value, Find::Clients) => format!("{} clients", whole(value as f64)),
        (value, find) => format!("{} {}", number(value as f64), unit(find)),
    }
}

#[cfg(test)]
mod tests;
