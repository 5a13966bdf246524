//! The replies: clients without one, unexpected ones, and a rate that was not level.

use std::collections::BTreeMap;

use throng_protocol::MOST_STREAMS;
use throng_stats::steadiness;

use super::cause;
use super::generator::WAITED;
use super::{Evidence, FindingKind, Observed, Rule, Severity};
use crate::Load;
use crate::format::{self, counted, list, whole};

/// Share of replies that may have an unexpected status.
pub const UNEXPECTED: f64 = 0.01;
/// Maximum rise or fall of the rate within the window of a valid trial.
const RISE: f64 = 0.5;
const FALL: f64 = -0.33;

/// No reply in the window.
pub static NO_REPLY: FindingKind = FindingKind::new(
    "no-reply",
    Severity::Invalid,
    "No reply arrived during the measurement.",
    "see the errors and the server's output",
    Rule::Trial(no_reply),
)
.of_server();

/// Some clients were not served.
pub static UNSERVED: FindingKind = FindingKind::new(
    "unserved",
    Severity::Invalid,
    "Some clients got no reply, or did not finish their jobs. In a study where `unserved-counts` is set, that is a result, \
     and the trial is valid.",
    "see the errors and the server's output",
    Rule::Trial(unserved),
)
.of_server();

/// Replies had an unexpected status.
pub static UNEXPECTED_STATUS: FindingKind = FindingKind::new(
    "unexpected-status",
    Severity::Note,
    "Replies had an unexpected status. Above 1 % of all replies, the trial is invalid: a server that fails fast is not \
     fast.",
    "check --path and the server's log; --expect-status accepts other HTTP statuses",
    Rule::Trial(unexpected_status),
)
.of_server();

/// The server was not level at the end of its warm-up.
pub static NOT_LEVEL: FindingKind = FindingKind::new(
    "not-level",
    Severity::Invalid,
    "The server's rate or its CPU time per request still rose or fell when the warm-up reached its limit.",
    "raise --warm-up-limit",
    Rule::Trial(not_level),
)
.of_server();

/// The rate drifted during the measurement.
pub static UNSTEADY: FindingKind = FindingKind::new(
    "unsteady",
    Severity::Rough,
    "The rate drifted during the measurement: a change of more than 10 % that follows time. If it rose by more than \
     half or fell by a third, the trial is invalid.",
    "use a longer --warm-up and --duration",
    Rule::Trial(unsteady),
)
.of_server();

/// Replies are missing without a reason.
pub static UNBALANCED: FindingKind = FindingKind::new(
    "unbalanced",
    Severity::Rough,
    "Requests have neither a reply nor a known reason not to have one.",
    "do not trust this trial; run it again",
    Rule::Trial(unbalanced),
);

/// The server redirects.
pub static REDIRECTED: FindingKind = FindingKind::new(
    "redirected",
    Severity::Note,
    "Replies are redirects: a server that redirects does less work than one that replies.",
    "load that URL instead; throng does not follow redirects",
    Rule::Trial(redirected),
);

/// The server rejects requests.
pub static REJECTED: FindingKind = FindingKind::new(
    "rejected",
    Severity::Note,
    "The server rejected requests: it does less work than one that accepts them, and looks faster.",
    "send smaller uploads, or raise the server's limit (--max-upload of `throng serve`)",
    Rule::Trial(rejected),
);

/// The server allows fewer open requests than asked for.
pub static FEW_STREAMS: FindingKind = FindingKind::new(
    "few-streams",
    Severity::Note,
    "The server allows fewer open requests on a connection than `--streams`.",
    "raise the server's limit (nginx: http2_max_concurrent_streams), or lower --streams",
    Rule::Trial(few_streams),
);

/// The server cannot keep up with the rate.
pub static OVERLOADED: FindingKind = FindingKind::new(
    "overloaded",
    Severity::Note,
    "Requests of an open loop were due while no client was idle: the server cannot keep up with the rate.",
    "read the response time, which includes their wait; lower --rate, or raise --clients if the server has CPU time left",
    Rule::Trial(overloaded),
);

/// A load that was meant to be below the server's maximum.
pub static RATE_NOT_KEPT: FindingKind = FindingKind::new(
    "rate-not-kept",
    Severity::Note,
    "The server missed a rate below the maximum that it had reached before.",
    "read its response time as that of a full server; use a lower --latency-at, or more --runs and a longer --duration \
     for a more certain maximum",
    Rule::Trial(rate_not_kept),
);

fn no_reply(seen: &Observed<'_>) -> Option<Evidence> {
    let asks = seen.load.open_loop.as_ref().is_none_or(|open| open.due > 0);
    let is_timed = seen.load.window.duration_s > 0.0;
    let thinks = seen.has_rate() && seen.load.open_loop.is_none();
    (seen.load.window.replies == 0 && asks && is_timed && !thinks)
        .then(|| "no reply arrived during the measurement".to_owned().into())
}

fn unserved(seen: &Observed<'_>) -> Option<Evidence> {
    let load = seen.load;
    let served = load
        .completion
        .as_ref()
        .map_or(load.served, |jobs| jobs.clients_done);
    (served < load.clients).then(|| {
        let cause = cause::of_unserved(&[seen.trial], &seen.circumstances)
            .map_or_else(String::new, |cause| format!(": {}", cause.sentence));
        let text = format!(
            "{} of {} were served{cause}",
            whole(f64::from(served)),
            counted(load.clients, "client")
        );
        let counts = seen.circumstances.settings.unserved_counts;
        Evidence::from(text).severe(Severity::Note, counts)
    })
}

fn unexpected_status(seen: &Observed<'_>) -> Option<Evidence> {
    let load = seen.load;
    let count = load.unexpected();
    (count > 0).then(|| {
        let text = of_replies(load, count, load.unexpected_in_words(), &load.unexpected);
        let share = count as f64 / load.replies().max(1) as f64;
        let evidence = Evidence::from(text).severe(Severity::Invalid, share > UNEXPECTED);
        match load.sessions {
            Some(_) => evidence.remedy("`throng load --debug` shows a session step by step"),
            None => evidence,
        }
    })
}

fn not_level(seen: &Observed<'_>) -> Option<Evidence> {
    Some(seen.load.warm_up?.fault()?.into())
}

fn unsteady(seen: &Observed<'_>) -> Option<Evidence> {
    let load = seen.load;
    // Below the maximum, drift is due to the schedule and to chance; a schedule that is kept may rise by itself.
    let is_scheduled = load.open_loop.is_some() && !load.falls_short();
    if seen.trial.at_load.is_some() || is_scheduled {
        return None;
    }
    let intervals = &load.window.intervals;
    let trend = steadiness::trend(intervals);
    let steady = trend.filter(|_| steadiness::is_unsteady(intervals));
    let rise = steadiness::rise(intervals).filter(|_| seen.is_paced_by_server());
    let change = rise.or_else(|| Some(steady?.change))?;
    let is_strong = seen.is_paced_by_server() && !(FALL..=RISE).contains(&change);
    (is_strong || steady.is_some()).then(|| {
        let percent = 100.0 * change;
        let text = format!("the rate changed by {percent:+.0} % during the measurement");
        Evidence::from(text).severe(Severity::Invalid, is_strong)
    })
}

fn unbalanced(seen: &Observed<'_>) -> Option<Evidence> {
    let load = seen.load;
    let missing = load.requests.saturating_sub(load.replies());
    let explained = load.without_reply;
    (missing > explained).then(|| {
        let text = format!(
            "{missing} replies are missing, but only {explained} requests failed or were open at the end"
        );
        text.into()
    })
}

fn redirected(seen: &Observed<'_>) -> Option<Evidence> {
    if seen.load.sessions.is_some() {
        return None; // a step says which statuses it expects
    }
    let place = seen.load.redirect.as_deref()?;
    let (count, all) = (seen.load.redirects(), seen.load.replies());
    let to = match place {
        "" => "an unknown URL".to_owned(),
        place => format::printable(place),
    };
    Some(if count == all {
        format!("all replies are redirects to {to}").into()
    } else {
        Evidence::from(format!(
            "{count} of {all} replies are redirects, for example to {to}"
        ))
        .remedy("request their targets instead; throng does not follow redirects")
    })
}

fn rejected(seen: &Observed<'_>) -> Option<Evidence> {
    let rejected = &seen.load.rejected;
    let count = rejected.values().sum();
    (count > 0).then(|| of_replies(seen.load, count, "rejected the request", rejected).into())
}

/// "5 of 10 replies had an unexpected status: 3 404, 2 500"; "all 10 replies ...".
fn of_replies(load: &Load, count: u64, what: &str, kinds: &BTreeMap<String, u64>) -> String {
    let counts: Vec<String> = kinds
        .iter()
        .map(|(kind, of_kind)| format!("{of_kind} {kind}"))
        .collect();
    let all = load.replies();
    format!("{count} of {all} replies {what}: {}", list(&counts))
}

fn few_streams(seen: &Observed<'_>) -> Option<Evidence> {
    let allowed = *seen.load.server_limits.get(MOST_STREAMS)?;
    let asked = seen.circumstances.settings.load.pipeline;
    (allowed < asked.into()).then(|| {
        let text = format!("the server allows {allowed} open requests per connection, not {asked}");
        text.into()
    })
}

fn overloaded(seen: &Observed<'_>) -> Option<Evidence> {
    let open = seen.load.open_loop.as_ref()?;
    let waited = open.waited as f64 > open.due as f64 * WAITED;
    (waited && seen.trial.at_load.is_none()).then(|| {
        let text = format!(
            "{} of {} requests were due while no client was idle ({} were never sent): the server cannot keep up with \
             this rate",
            open.waited, open.due, open.never_sent
        );
        text.into()
    })
}

fn rate_not_kept(seen: &Observed<'_>) -> Option<Evidence> {
    let at_load = seen.trial.at_load.as_ref()?;
    let load = seen.load;
    let open = load.open_loop.as_ref().filter(|_| load.falls_short())?;
    let text = format!(
        "at {} % of the rate that it had reached, the server answered only {} of {} requests ({}/s): this load was not \
         below its maximum",
        at_load.percent,
        load.window.replies,
        open.due,
        format::or_absent(load.window.replies_per_s, format::number)
    );
    Some(text.into())
}
