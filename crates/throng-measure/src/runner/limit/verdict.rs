//! Whether a server passed a trial of a search; pure.

use crate::runner::search::Verdict;
use throng_record::findings::replies::{REJECTED, UNEXPECTED_STATUS};
use throng_record::format::{counted, list, number, or_absent, time, whole};
use throng_record::metrics::Condition;
use throng_record::{FailedStage, Failure, Find, Limit, Load, Trial};

/// Share of the requests that must be answered within the period in which they were due.
const KEEPS_UP: f64 = 0.95;
/// Allowed growth of the backlog, as a share of the requests. With few requests, this is within chance.
const GROWTH: f64 = 0.01;
/// Allowed difference between the numbers of open requests at the start and at the end of the period.
const ON_THEIR_WAY: f64 = 3.0;

/// The conditions of a trial.
pub(super) struct Criteria {
    find: Find,
    until: Vec<(String, Condition)>,
    /// Whether arrivals are random, so that small differences in their number mean nothing.
    by_chance: bool,
}

/// The verdict on a trial.
pub(super) enum Judgement {
    /// Passed, or failed and why.
    Decided(Verdict, Vec<String>),
    /// Undecided, and why.
    Void(String),
}

impl Criteria {
    pub(super) fn new(asked: &Limit, by_chance: bool) -> anyhow::Result<Self> {
        let read = |text: &String| -> anyhow::Result<(String, Condition)> {
            let condition = Condition::parse(text).map_err(anyhow::Error::msg)?;
            Ok((text.clone(), condition))
        };
        Ok(Self {
            find: asked.find,
            until: asked
                .until
                .iter()
                .map(read)
                .collect::<anyhow::Result<_>>()?,
            by_chance,
        })
    }

    pub(super) fn judge(&self, trial: &Trial) -> Judgement {
        if let Some(failure) = &trial.failure {
            return of_failure(failure);
        }
        let Some(load) = &trial.load else {
            return Judgement::Void("the clients reported nothing".to_owned());
        };
        let mut reasons = unserved(load);
        let of_replies = [&REJECTED, &UNEXPECTED_STATUS]
            .into_iter()
            .filter_map(|kind| trial.found(kind));
        reasons.extend(of_replies.map(|finding| finding.text.clone()));
        let behind = match self.find {
            Find::Clients => None,
            Find::Rate | Find::Sessions => self.behind(load),
        };
        let reached = match self.find {
            Find::Clients => Some(u64::from(load.served)).filter(|_| load.served < load.clients),
            Find::Rate | Find::Sessions => behind.is_some().then(|| {
                let sessions = load.sessions.as_ref().and_then(|sessions| sessions.per_s);
                let rate = sessions.or(load.window.replies_per_s);
                rate.unwrap_or_default().floor() as u64
            }),
        };
        reasons.extend(behind);
        for (text, condition) in &self.until {
            match condition.of_trial(trial) {
                Some((true, value)) => reasons.push(format!("{text} (it was {value})")),
                Some((false, _)) => {}
                None => {
                    reasons.push(format!("`{text}` cannot be checked: it was not measured"));
                }
            }
        }
        let verdict = Verdict {
            passed: reasons.is_empty(),
            reached,
        };
        Judgement::Decided(verdict, reasons)
    }

    /// Why the server did not keep up with an open loop, if it did not.
    fn behind(&self, load: &Load) -> Option<String> {
        let open = load.open_loop.as_ref()?;
        let (due, replies) = (open.due as f64, load.window.replies as f64);
        let grown = due - replies;
        let chance = if self.by_chance {
            2.0 * due.sqrt()
        } else {
            0.0
        };
        let is_behind = grown > (due * GROWTH).max(chance + ON_THEIR_WAY);
        if replies < due * KEEPS_UP && grown > ON_THEIR_WAY {
            return Some(format!(
                "{} of {} requests/s were answered",
                or_absent(load.window.replies_per_s, number),
                number(due / load.window.duration_s.max(1e-9))
            ));
        }
        is_behind.then(|| {
            let slowest = open
                .response_time
                .as_ref()
                .map_or(0.0, |times| times.max_us);
            format!(
                "response times kept rising, to {}: {} of {} due requests were answered",
                time(slowest),
                whole(replies),
                whole(due)
            )
        })
    }
}

/// A server that did not survive its trial failed. Other failures say nothing about its limit.
fn of_failure(failure: &Failure) -> Judgement {
    if matches!(failure.stage, FailedStage::Serve | FailedStage::Stop) {
        return Judgement::Decided(Verdict::default(), vec![failure.reason.clone()]);
    }
    Judgement::Void(format!("{}: {}", failure.stage, failure.reason))
}

/// Clients that were not served correctly.
fn unserved(load: &Load) -> Vec<String> {
    let mut reasons = Vec::new();
    let failed: u64 = load.errors.values().sum();
    if failed > 0 {
        let kinds: Vec<String> = load
            .errors
            .iter()
            .map(|(kind, count)| format!("{} {kind}", whole(*count as f64)))
            .collect();
        reasons.push(format!(
            "{} of {} failed ({})",
            whole(failed as f64),
            counted(load.clients, "client"),
            list(&kinds)
        ));
    }
    if load.never_served > 0 {
        reasons.push(format!(
            "{} of {} got no reply",
            whole(f64::from(load.never_served)),
            counted(load.clients, "client")
        ));
    }
    if load.connected < load.clients && reasons.is_empty() {
        reasons.push(format!(
            "{} of {} connected",
            whole(f64::from(load.connected)),
            counted(load.clients, "client")
        ));
    }
    if let Some(jobs) = &load.completion
        && jobs.clients_done < load.clients
        && reasons.is_empty()
    {
        reasons.push(format!(
            "{} of {} finished",
            whole(f64::from(jobs.clients_done)),
            counted(load.clients, "client")
        ));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use throng_record::{Latency, OpenLoop, Window};

    fn criteria(find: Find, until: &[&str]) -> Criteria {
        let asked = Limit {
            find,
            until: until.iter().map(ToString::to_string).collect(),
            ..Limit::default()
        };
        Criteria::new(&asked, false).unwrap()
    }

    fn judged(criteria: &Criteria, load: Load) -> (bool, Option<u64>, String) {
        let trial = Trial {
            load: Some(load),
            ..Trial::default()
        };
        match criteria.judge(&trial) {
            Judgement::Decided(verdict, reasons) => {
                (verdict.passed, verdict.reached, reasons.join("; "))
            }
            Judgement::Void(why) => panic!("{why}"),
        }
    }

    fn served(clients: u32, served: u32) -> Load {
        Load {
            clients,
            connected: clients,
            served,
            never_served: clients - served,
            ..Load::default()
        }
    }

    #[test]
    fn every_client_must_be_served_without_an_error() {
        let criteria = criteria(Find::Clients, &[]);
        assert_eq!(judged(&criteria, served(9, 9)), (true, None, String::new()));
        let judgement = judged(&criteria, served(9, 7));
        assert_eq!(
            judgement,
            (false, Some(7), "2 of 9 clients got no reply".to_owned())
        );
        let mut load = served(9, 9);
        load.errors = BTreeMap::from([("reset".to_owned(), 2)]);
        let judgement = judged(&criteria, load);
        assert_eq!(
            judgement,
            (false, None, "2 of 9 clients failed (2 reset)".to_owned())
        );
    }

    #[test]
    fn any_metric_can_be_what_ends_a_search() {
        let slow = criteria(Find::Clients, &["p99 > 50ms"]);
        let with = |p99_us| Load {
            service_time: Some(Latency {
                p99_us,
                ..Latency::default()
            }),
            ..served(9, 9)
        };
        assert!(judged(&slow, with(Some(49_000.0))).0);
        let judgement = judged(&slow, with(Some(61_000.0)));
        assert_eq!(
            judgement,
            (false, None, "p99 > 50ms (it was 61.0 ms)".to_owned())
        );
        assert!(judged(&slow, with(None)).2.contains("not measured"));
    }

    /// A load with 1000 requests due within one second.
    fn at_a_rate(replies: u64) -> Load {
        Load {
            window: Window {
                duration_s: 1.0,
                replies,
                replies_per_s: Some(replies as f64),
                ..Window::default()
            },
            open_loop: Some(OpenLoop {
                due: 1000,
                ..OpenLoop::default()
            }),
            ..served(9, 9)
        }
    }

    #[test]
    fn a_rate_is_held_when_due_requests_are_answered() {
        let constant = criteria(Find::Rate, &[]);
        for (replies, passed) in [(1003, true), (1000, true), (991, true), (985, false)] {
            assert_eq!(judged(&constant, at_a_rate(replies)).0, passed, "{replies}");
        }
        let (_, reached, why) = judged(&constant, at_a_rate(498));
        assert_eq!(reached, Some(498));
        assert!(
            why.contains("498 of 1 000") || why.contains("498 of 1,000"),
            "{why}"
        );
        let by_chance = Criteria {
            by_chance: true,
            ..constant
        };
        for (replies, passed) in [(950, true), (930, false)] {
            assert_eq!(
                judged(&by_chance, at_a_rate(replies)).0,
                passed,
                "{replies}"
            );
        }
    }

    #[test]
    fn a_server_that_ended_did_not_hold_and_other_failures_decide_nothing() {
        let criteria = criteria(Find::Clients, &[]);
        let failed = |stage: FailedStage| {
            let trial = Trial {
                failure: Some(Failure {
                    stage,
                    reason: "killed".to_owned(),
                    output: String::new(),
                    signal: None,
                }),
                ..Trial::default()
            };
            matches!(
                criteria.judge(&trial),
                Judgement::Decided(Verdict { passed: false, .. }, _)
            )
        };
        assert!(failed(FailedStage::Serve) && failed(FailedStage::Stop));
        assert!(!failed(FailedStage::Load) && !failed(FailedStage::Start));
    }
}
