//! Warnings about the clients of one load.

use std::collections::BTreeMap;

use super::warning;
use throng_record::format;
use throng_record::{AtLoad, Load, Warning};
use throng_stats::steadiness;

/// Share of the requests of an open loop that may wait for a client without a warning.
const WAITED: f64 = 0.01;
/// A schedule is kept if 90 % of the requests leave within this fraction of the mean interval between two requests.
const LATE_GAPS: f64 = 1.0;
/// No timer is more precise than this.
const LATE_US: f64 = 1000.0;

/// Warnings about a load.
pub fn of_load(load: &Load) -> Vec<Warning> {
    [
        unbalanced(load),
        unexpected(load),
        redirected(load),
        rejected(load),
        unsteady(load),
        behind(load),
        too_few(load),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Warnings about a load below the server's maximum: drift and waiting requests are due to the schedule and to chance,
/// and are part of its response time.
pub(super) fn of_load_at(load: &Load, at_load: &AtLoad) -> Vec<Warning> {
    [
        unbalanced(load),
        unexpected(load),
        redirected(load),
        rejected(load),
        behind(load),
        rate_missed(load, at_load),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Every request has a reply, or a known reason not to have one.
fn unbalanced(load: &Load) -> Option<Warning> {
    let missing = load.requests.saturating_sub(load.replies());
    let explained = load.without_reply;
    (missing > explained).then(|| {
        warning(
            "unbalanced",
            format!("{missing} replies are missing, but only {explained} requests failed or were open at the end"),
            "do not trust this trial; run it again",
        )
    })
}

/// A server that fails fast is not fast.
fn unexpected(load: &Load) -> Option<Warning> {
    let count = load.unexpected();
    (count > 0).then(|| {
        warning(
            "unexpected-status",
            of_replies(load, count, "had an unexpected status", &load.unexpected),
            "check --path and the server's log, or set --expect-status",
        )
    })
}

/// A server that redirects does less work than one that replies.
fn redirected(load: &Load) -> Option<Warning> {
    let place = load.redirect.as_deref()?;
    let (count, all) = (load.redirects(), load.replies());
    let to = match place {
        "" => "an unknown URL".to_owned(),
        place => format::printable(place),
    };
    Some(if count == all {
        warning(
            "redirected",
            format!("all replies are redirects to {to}"),
            "load that URL instead; throng does not follow redirects",
        )
    } else {
        warning(
            "redirected",
            format!("{count} of {all} replies are redirects, for example to {to}"),
            "request their targets instead; throng does not follow redirects",
        )
    })
}

/// A server that rejects a request does less work than one that accepts it, and looks faster.
fn rejected(load: &Load) -> Option<Warning> {
    let count = load.rejected.values().sum();
    (count > 0).then(|| {
        warning(
            "rejected",
            of_replies(load, count, "rejected the request", &load.rejected),
            "send smaller uploads, or raise the server's limit (--max-upload of `throng serve`)",
        )
    })
}

/// "5 of 10 replies had an unexpected status: 3 404, 2 500".
fn of_replies(load: &Load, count: u64, what: &str, kinds: &BTreeMap<String, u64>) -> String {
    let kinds: Vec<String> = kinds
        .iter()
        .map(|(kind, n)| format!("{n} {kind}"))
        .collect();
    format!(
        "{count} of {} replies {what}: {}",
        load.replies(),
        kinds.join(", ")
    )
}

fn unsteady(load: &Load) -> Option<Warning> {
    if load.open_loop.is_some() && !load.falls_short() {
        return None; // it followed its schedule, whose rate may rise
    }
    let intervals = &load.window.intervals;
    let trend = steadiness::trend(intervals).filter(|_| steadiness::is_unsteady(intervals))?;
    Some(warning(
        "unsteady",
        format!(
            "the rate changed by {:+.0} % during the measurement (correlation with time {:.2})",
            trend.change * 100.0,
            trend.correlation
        ),
        "use a longer --warm-up and --duration",
    ))
}

/// An open loop whose requests left later than planned: the clients were the limit, not the server.
fn behind(load: &Load) -> Option<Warning> {
    let open = load.open_loop.as_ref()?;
    let late = load.lateness.as_ref()?;
    let gap_us = load.window.duration_s * 1e6 / open.due.max(1) as f64;
    // A request that waited for a client is late because of the server.
    let generator = open.waited as f64 <= open.due as f64 * WAITED;
    (generator && late.p90_us > LATE_US.max(gap_us * LATE_GAPS)).then(|| {
        warning(
            "behind-schedule",
            format!(
                "requests were sent late although clients were idle: p50 {}, p90 {}",
                format::time(late.p50_us),
                format::time(late.p90_us)
            ),
            "the load generator is the bottleneck: lower --rate, or give it more CPUs and --threads",
        )
    })
}

/// An open loop in which requests waited for an idle client.
fn too_few(load: &Load) -> Option<Warning> {
    let open = load.open_loop.as_ref()?;
    (open.waited as f64 > open.due as f64 * WAITED).then(|| {
        warning(
            "overloaded",
            format!(
                "{} of {} requests were due while no client was idle ({} were never sent): the \
                 server cannot keep up with this rate",
                open.waited, open.due, open.never_sent
            ),
            "read the response time, which includes their wait; lower --rate, or raise --clients if the \
             server has CPU time left",
        )
    })
}

/// A rate that the server missed, although it is below its maximum.
fn rate_missed(load: &Load, at_load: &AtLoad) -> Option<Warning> {
    let open = load.open_loop.as_ref().filter(|_| load.falls_short())?;
    Some(warning(
        "rate-not-kept",
        format!(
            "at {} % of the rate that it had reached, the server answered only {} of {} requests ({}/s): \
             this load was not below its maximum",
            at_load.percent,
            load.window.replies,
            open.due,
            format::or_absent(load.window.replies_per_s, format::number)
        ),
        "read its response time as that of a full server; use a lower --latency-at, or more --runs and a \
         longer --duration for a more certain maximum",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_record::{Latency, OpenLoop, Window};

    fn kinds(load: &Load) -> Vec<String> {
        of_load(load)
            .into_iter()
            .map(|warning| warning.kind)
            .collect()
    }

    #[test]
    fn refused_replies_are_reported_by_reason() {
        let mut load = Load {
            verified: 7,
            ..Load::default()
        };
        assert_eq!(kinds(&load), [""; 0]);
        load.unexpected = BTreeMap::from([("404".to_owned(), 1), ("500".to_owned(), 2)]);
        load.rejected = BTreeMap::from([("over-limit".to_owned(), 2)]);
        let warnings = of_load(&load);
        let messages: Vec<&str> = warnings.iter().map(|w| w.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "3 of 10 replies had an unexpected status: 1 404, 2 500",
                "2 of 10 replies rejected the request: 2 over-limit"
            ]
        );
    }

    #[test]
    fn a_rate_that_falls_is_unsteady() {
        let mut load = Load::default();
        load.window.intervals = vec![100, 96, 91, 88, 82, 79, 75, 70, 66];
        assert_eq!(kinds(&load), ["unsteady"]);
        load.open_loop = Some(OpenLoop::default());
        assert_eq!(kinds(&load), [""; 0], "the schedule is kept");
        load.open_loop = None;
        load.window.intervals = vec![100, 101, 99, 100, 102, 98, 100, 99, 101];
        assert_eq!(kinds(&load), [""; 0]);
    }

    #[test]
    fn unexplained_missing_replies_are_reported() {
        let mut load = Load {
            requests: 10,
            verified: 7,
            without_reply: 2,
            ..Load::default()
        };
        assert_eq!(kinds(&load), ["unbalanced"]);
        load.without_reply = 3;
        assert_eq!(kinds(&load), [""; 0]);
    }

    /// 1000 requests per second, one per millisecond.
    fn open(waited: u64, late_p90_us: f64) -> Load {
        Load {
            window: Window {
                duration_s: 1.0,
                ..Window::default()
            },
            open_loop: Some(OpenLoop {
                due: 1000,
                waited,
                ..OpenLoop::default()
            }),
            lateness: Some(Latency {
                p90_us: late_p90_us,
                ..Latency::default()
            }),
            ..Load::default()
        }
    }

    #[test]
    fn a_part_of_a_rate_that_is_not_kept_is_no_longer_below_the_maximum() {
        let at_load = AtLoad {
            percent: 80,
            rate_per_s: Some(1000.0),
        };
        let with = |replies| {
            let mut load = open(500, 5000.0);
            load.window.replies = replies;
            // Random arrivals are irregular.
            load.window.intervals = vec![100, 96, 91, 88, 82, 79, 75, 70, 66];
            of_load_at(&load, &at_load)
        };
        assert_eq!(with(990), [], "who waited for a client is in its figures");
        let warned = with(700);
        assert_eq!(warned.len(), 1);
        assert_eq!(warned[0].kind, "rate-not-kept");
        assert!(warned[0].message.contains("80 %"), "{warned:?}");
        assert!(
            warned[0].message.contains("700 of 1000 requests"),
            "{warned:?}"
        );
    }

    #[test]
    fn a_missed_schedule_is_reported_with_its_cause() {
        assert_eq!(kinds(&open(0, 30.0)), [""; 0]);
        assert_eq!(kinds(&open(0, 5000.0)), ["behind-schedule"]);
        assert_eq!(kinds(&open(500, 5000.0)), ["overloaded"]);
    }
}
