//! Whether the load set the pace. With a fixed rate or think time, every server that keeps up has the rate of the
//! load.

use serde::Serialize;

use throng_record::Load;

/// If at least this share of the due requests was answered, the open loop set the rate, not the server.
const KEPT_UP: f64 = 0.99;
/// If clients spend at least this share of their time thinking, think time sets the pace.
const THINKING: f64 = 0.95;

/// A setting that sets the pace instead of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pacer {
    /// The rate at which requests come due.
    Rate,
    /// The clients' think time.
    Think,
}

impl Pacer {
    /// The setting that set the pace of all `loads`; `None` if the server set it in any of them.
    pub(super) fn of_all<'a>(loads: impl IntoIterator<Item = &'a Load>) -> Option<Self> {
        let all: Option<Vec<Self>> = loads.into_iter().map(Self::of).collect();
        all?.first().copied()
    }

    fn of(load: &Load) -> Option<Self> {
        if let Some(open) = &load.open_loop {
            let kept_up = load.window.replies as f64 >= KEPT_UP * open.due as f64;
            return kept_up.then_some(Self::Rate);
        }
        if let Some(jobs) = &load.completion {
            let thought = jobs.think_s_mean? * f64::from(jobs.requests_each?);
            return (thought >= THINKING * jobs.last_done_s?).then_some(Self::Think);
        }
        // In a closed loop, requests have due times only if clients think.
        load.lateness.as_ref()?;
        // Little's law: the number of clients waiting for a reply is the rate times the mean latency.
        let waiting = load.window.replies_per_s? * load.service_time.as_ref()?.mean_us / 1e6;
        (waiting <= (1.0 - THINKING) * f64::from(load.served)).then_some(Self::Think)
    }

    /// Its name in a sentence, before "sets the pace".
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Rate => "the request rate",
            Self::Think => "think time",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use throng_record::{Completion, OpenLoop, Window};

    /// A load of 100 clients with this rate of replies and this service time.
    fn closed(replies_per_s: f64, milliseconds: u64) -> Load {
        Load {
            served: 100,
            window: Window {
                replies_per_s: Some(replies_per_s),
                ..Window::default()
            },
            service_time: Some(fixture::latency(&[milliseconds * 1_000_000])),
            lateness: Some(fixture::latency(&[1000])),
            ..Load::default()
        }
    }

    #[test]
    fn thinking_sets_the_pace_where_replies_take_little_of_the_time() {
        let of = |load: Load| Pacer::of_all([&load]);
        // 100 clients that think for 100 ms: 990 replies per second if each takes 1 ms, 500 if each takes 100 ms.
        assert_eq!(of(closed(990.0, 1)), Some(Pacer::Think));
        assert_eq!(of(closed(500.0, 100)), None);
        let without = Load {
            lateness: None,
            ..closed(990.0, 1)
        };
        assert_eq!(of(without), None);
        assert_eq!(
            Pacer::of_all([&closed(990.0, 1), &closed(500.0, 100)]),
            None
        );
        assert_eq!(Pacer::of_all([]), None);
    }

    #[test]
    fn so_does_a_rate_that_was_kept_and_the_thinking_of_a_job() {
        let open = |replies| Load {
            window: Window {
                replies,
                ..Window::default()
            },
            open_loop: Some(OpenLoop {
                due: 1000,
                ..OpenLoop::default()
            }),
            ..Load::default()
        };
        assert_eq!(Pacer::of(&open(995)), Some(Pacer::Rate));
        assert_eq!(Pacer::of(&open(900)), None);
        let jobs = |last_done_s, think_s_mean| Load {
            completion: Some(Box::new(Completion {
                requests_each: Some(2),
                last_done_s: Some(last_done_s),
                think_s_mean,
                ..Completion::default()
            })),
            ..Load::default()
        };
        assert_eq!(Pacer::of(&jobs(18.1, Some(9.0))), Some(Pacer::Think));
        assert_eq!(Pacer::of(&jobs(30.0, Some(9.0))), None);
        assert_eq!(Pacer::of(&jobs(30.0, None)), None);
    }
}
