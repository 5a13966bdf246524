//! Figures of a server over all its numbers of clients: how far it came, with crowds or in a search for
//! its limit.

use crate::record::{Found, SearchEnding, Trial, Tried};
use crate::report::format::{counted, whole};
use crate::report::metrics::{Metric, Unit};

/// A figure of a server over all numbers of clients.
#[derive(Debug)]
pub struct OverClients {
    /// The name typed in study files.
    pub name: &'static str,
    /// Heading in tables.
    pub title: &'static str,
    /// What it is measured in.
    pub unit: Unit,
    /// Where it comes from.
    pub(super) source: Source,
}

/// A value from trials by number of clients.
type OfCrowds = fn(&[(u32, Vec<&Trial>)]) -> Reach;

/// Where a figure comes from.
#[derive(Debug)]
pub(super) enum Source {
    /// The trials of a server by number of clients, rising.
    Crowds(OfCrowds),
    /// What was found of a server, and its trials; else why it says nothing.
    Search(fn(&Found, &[&Trial]) -> Result<Reach, String>),
}

/// Every one. To add one: a line here.
pub const OVER_CLIENTS: &[OverClients] = &[
    OverClients {
        name: "first_failure",
        title: "First failure",
        unit: Unit::Count,
        source: Source::Crowds(first_failure),
    },
    OverClients {
        name: "limit",
        title: "Limit",
        unit: Unit::Count,
        source: Source::Search(limit),
    },
    OverClients {
        name: "established_at_limit",
        title: "Most connections at the limit",
        unit: Unit::Count,
        source: Source::Search(established_at_limit),
    },
];

impl OverClients {
    /// Whether it comes of a search for a limit.
    pub(super) fn is_of_search(&self) -> bool {
        matches!(self.source, Source::Search(_))
    }
}

/// What such a figure came to, and what it is known to lie between.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reach {
    /// The value; none where it is only known to be more than what was tried.
    pub(super) value: Option<f64>,
    /// The least that it can be.
    pub(super) low: f64,
    /// The most that it can be.
    pub(super) high: f64,
    /// In a table.
    pub(super) text: String,
    /// In a sentence, with what it rests on.
    pub(super) evidence: String,
}

impl Reach {
    /// A value that is known.
    fn exactly(value: f64) -> Self {
        Self {
            value: Some(value),
            low: value,
            high: value,
            text: whole(value),
            evidence: whole(value),
        }
    }

    /// Nothing but that it is no less than this.
    fn at_least(low: f64, text: String) -> Self {
        Self {
            value: None,
            low,
            high: f64::INFINITY,
            evidence: text.clone(),
            text,
        }
    }
}

fn first_failure(by_clients: &[(u32, Vec<&Trial>)]) -> Reach {
    let fails = |trial: &&Trial| {
        trial.load.as_ref().is_some_and(|load| {
            // Who is not done was connected by its own account alone: a SYN cookie made it believe so.
            let not_done = load
                .completion
                .as_ref()
                .is_some_and(|jobs| jobs.not_done > 0);
            let failed = load.errors.values().any(|count| *count > 0);
            load.connected < load.clients || failed || not_done
        })
    };
    let first = by_clients
        .iter()
        .find(|(_, trials)| trials.iter().any(fails));
    if let Some((clients, _)) = first {
        return Reach::exactly(f64::from(*clients));
    }
    let most = by_clients.last().map_or(0, |(clients, _)| *clients);
    let text = format!("none up to {}", counted(most, "client"));
    Reach::at_least(f64::from(most) + 1.0, text)
}

/// What held is the limit; what it is short of is what broke.
fn limit(found: &Found, _: &[&Trial]) -> Result<Reach, String> {
    settled(found)?;
    let value = |tried: Tried| tried.value as f64;
    let held = found.held.map_or(0.0, value);
    if found.ending == SearchEnding::AtLeast {
        return Ok(Reach::at_least(held, format!("at least {}", whole(held))));
    }
    let mut reach = Reach::exactly(held);
    reach.high = found
        .broke
        .map_or(f64::INFINITY, |broke| value(broke) - 1.0);
    let times = |tried: Tried| {
        let times = tried.times;
        format!("{times} of {}", counted(times, "time"))
    };
    let ends = [
        found.held.map(|held| format!("held {}", times(held))),
        found
            .broke
            .map(|broke| format!("{} broke {}", whole(value(broke)), times(broke))),
    ];
    let ends: Vec<String> = ends.into_iter().flatten().collect();
    reach.evidence = format!("{} ({})", reach.text, ends.join("; "));
    Ok(reach)
}

fn established_at_limit(found: &Found, trials: &[&Trial]) -> Result<Reach, String> {
    settled(found)?;
    let limit = found.held.map_or(0, |held| held.value);
    let at_limit = trials.iter().filter(|trial| {
        let attempt = trial.attempt.as_ref();
        attempt.is_some_and(|attempt| attempt.value >= limit)
    });
    let most = Metric::find("established_max")
        .ok()
        .and_then(|metric| {
            let values = at_limit.filter_map(|trial| metric.of(trial));
            values.max_by(f64::total_cmp)
        })
        .ok_or("the probe `established` did not measure")?;
    Ok(Reach::exactly(most))
}

/// Whether a search came to its end.
fn settled(found: &Found) -> Result<(), String> {
    match found.ending {
        SearchEnding::Found
        | SearchEnding::Between
        | SearchEnding::AtLeast
        | SearchEnding::Nothing => Ok(()),
        SearchEnding::OutOfTries => Err("the tries were used up before it was certain".to_owned()),
        SearchEnding::OutOfTime => Err("the time was up before it was certain".to_owned()),
        SearchEnding::Interrupted => Err("the search was interrupted".to_owned()),
        SearchEnding::Failed => Err(format!("it could not be searched for: {}", found.failure)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn the_first_failure_is_the_smallest_crowd_with_one() {
        let (_, mut trials) = fixture::record();
        trials.retain(|trial| trial.server == "epoll" && trial.purpose.is_timed());
        for trial in trials
            .iter_mut()
            .filter(|trial| trial.clients >= 100 && trial.round == 1)
        {
            let load = trial.load.as_mut().unwrap();
            load.errors.insert("connect-timeout".to_owned(), 1);
        }
        let by = |clients| -> Vec<&Trial> {
            trials
                .iter()
                .filter(|trial| trial.clients == clients)
                .collect()
        };
        let first = first_failure(&[(10, by(10)), (100, by(100)), (1000, by(1000))]);
        assert_eq!(first, Reach::exactly(100.0));
        let none = first_failure(&[(10, by(10))]);
        assert_eq!(
            (none.value, none.text.as_str()),
            (None, "none up to 10 clients")
        );
    }

    #[test]
    fn a_limit_lies_between_what_held_and_what_broke() {
        let (run, trials) = fixture::searched();
        let found = run.limit.unwrap().found;
        let reach = |server: &str| {
            let of_server = found.iter().find(|found| found.server == server).unwrap();
            limit(of_server, &trials.iter().collect::<Vec<_>>()).unwrap()
        };
        let known = reach("epoll");
        let of_epoll = found.iter().find(|found| found.server == "epoll").unwrap();
        let (held, broke) = (of_epoll.held.unwrap(), of_epoll.broke.unwrap());
        assert_eq!(known.value, Some(held.value as f64));
        assert!((known.high - (broke.value as f64 - 1.0)).abs() < 1e-9);
        assert!(known.evidence.contains(" broke "), "{}", known.evidence);
        let more = reach("thread");
        assert_eq!((more.value, more.high), (None, f64::INFINITY));
        assert!(more.text.starts_with("at least "), "{}", more.text);
    }

    #[test]
    fn a_search_that_came_to_no_end_says_nothing() {
        let (run, _) = fixture::searched();
        let mut found = run.limit.unwrap().found.remove(0);
        for ending in [SearchEnding::OutOfTime, SearchEnding::Interrupted] {
            found.ending = ending;
            assert!(limit(&found, &[]).is_err());
        }
        found.ending = SearchEnding::Found;
        let why = established_at_limit(&found, &[]).unwrap_err();
        assert!(why.contains("established"), "{why}");
    }
}
