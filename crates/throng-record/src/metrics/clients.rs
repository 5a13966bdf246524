//! The clients' results: rates, times, short-lived clients, fairness, and errors.

use super::Better::{Higher, Lower, Neutral};
use super::{Combine, Detail, Load, Metric, Source, Statistic, Subject, Times, Unit};
use crate::{Completion, Fairness, LifeFairness, Slice, Trial};
use throng_spec::ServerCounts;

#[rustfmt::skip]
pub const METRICS: &[Metric] = &[
    Metric::of_load("requests_per_s", "Requests/s", Unit::PerSecond, Higher, "requests answered per second of the measurement", |load| load.window.replies_per_s)
        .called("throughput").aliases(&["rps", "throughput"]).of_speed().in_slices(Slice::requests_per_s).column(20).bar().terminal(0).compared().ranked().of_trial(),

    // From sending a request to its complete reply: the only times of a closed loop.
    Metric::of_times("latency_p50_us", "p50", "median latency, from sending a request to its complete reply", Times::Latency, Statistic::P50)
        .aliases(&["p50"]).in_slices(|slice| Some(slice.p50_us)).column(30).terminal(5).compared().ranked().of_trial(),
    Metric::of_times("latency_p90_us", "p90", "90th percentile of latency", Times::Latency, Statistic::P90)
        .aliases(&["p90"]).in_slices(|slice| Some(slice.p90_us)).column(31),
    Metric::of_times("latency_p95_us", "p95", "95th percentile of latency", Times::Latency, Statistic::P95)
        .aliases(&["p95"]),
    Metric::of_times("latency_p99_us", "p99", "99th percentile of latency", Times::Latency, Statistic::P99)
        .aliases(&["p99"]).in_slices(|slice| Some(slice.p99_us)).column(32).terminal(1).compared().ranked().of_trial(),
    Metric::of_times("latency_p999_us", "p99.9", "99.9th percentile of latency", Times::Latency, Statistic::P999)
        .aliases(&["p99.9", "p999", "latency_p99.9"]),
    Metric::of_times("latency_p99_all_us", "p99, all requests", "99th percentile of the latency of all requests together, which a single slow trial or slice can decide", Times::Latency, Statistic::P99)
        .aliases(&["p99_all"]).combined(Combine::Merge),
    Metric::of_times("latency_p999_all_us", "p99.9, all requests", "99.9th percentile of the latency of all requests together", Times::Latency, Statistic::P999)
        .aliases(&["p99.9_all", "p999_all"]).combined(Combine::Merge),
    Metric::of_times("latency_max_us", "Max", "longest latency of any request", Times::Latency, Statistic::Max)
        .aliases(&["max"]).column(33).detail(Detail::Others(&[("latency_p99_all_us", "p99 of all requests {}")])),
    Metric::of_times("latency_mean_us", "Mean latency", "mean latency", Times::Latency, Statistic::Mean)
        .in_slices(|slice| Some(slice.mean_us)),

    // From when a request was due in an open loop.
    Metric::of_times("response_p50_us", "Response p50", "median response time, from a request's scheduled time to its complete reply (open loop)", Times::Response, Statistic::P50)
        .column(34).compared().of_trial(),
    Metric::of_times("response_p90_us", "Response p90", "90th percentile of response time", Times::Response, Statistic::P90),
    Metric::of_times("response_p95_us", "Response p95", "95th percentile of response time", Times::Response, Statistic::P95),
    Metric::of_times("response_p99_us", "Response p99", "99th percentile of response time", Times::Response, Statistic::P99)
        .column(35).compared().of_trial(),
    Metric::of_times("response_p999_us", "Response p99.9", "99.9th percentile of response time", Times::Response, Statistic::P999)
        .aliases(&["response_p99.9"]),
    Metric::of_times("response_p99_all_us", "Response p99, all requests", "99th percentile of the response time of all requests together", Times::Response, Statistic::P99)
        .aliases(&["response_p99_all"]).combined(Combine::Merge),
    Metric::of_times("response_p999_all_us", "Response p99.9, all requests", "99.9th percentile of the response time of all requests together", Times::Response, Statistic::P999)
        .aliases(&["response_p999_all", "response_p99.9_all"]).combined(Combine::Merge),
    Metric::of_times("response_max_us", "Max response", "longest response time of any request", Times::Response, Statistic::Max),
    Metric::of_times("response_mean_us", "Mean response", "mean response time", Times::Response, Statistic::Mean),

    Metric::of_times("connect_max_us", "Max connect time", "longest time a client took to connect, TLS handshake included", Times::Connect, Statistic::Max),
    Metric::of_load("tls_handshakes_per_s", "TLS handshakes/s", Unit::PerSecond, Neutral, "TLS handshakes completed per second of the measurement", |load| load.tls.as_ref()?.handshakes_per_s),
    Metric::of_times("tls_handshake_p50_us", "TLS handshake p50", "median time from an established connection to the end of its TLS handshake", Times::Handshake, Statistic::P50),
    Metric::of_times("tls_handshake_p90_us", "TLS handshake p90", "90th percentile of TLS handshake time", Times::Handshake, Statistic::P90),
    Metric::of_times("tls_handshake_p99_us", "TLS handshake p99", "99th percentile of TLS handshake time", Times::Handshake, Statistic::P99),
    Metric::of_times("tls_handshake_max_us", "Max TLS handshake", "longest TLS handshake", Times::Handshake, Statistic::Max),
    Metric::of_load("tls_handshakes", "TLS handshakes", Unit::Count, Neutral, "TLS handshakes completed, warm-up included", |load| Some(load.tls.as_ref()?.handshakes as f64))
        .combined(Combine::Sum),
    Metric::of_load("tls_resumed", "TLS resumptions", Unit::Count, Neutral, "TLS handshakes that resumed an earlier session; a threshold in % is a share of all handshakes", |load| Some(load.tls.as_ref()?.resumed as f64))
        .combined(Combine::Sum).share_of("tls_handshakes"),
    Metric::of_times("first_reply_p50_us", "First reply p50", "median time from connect() to a client's first reply", Times::FirstAnswer, Statistic::P50),
    Metric::of_times("first_reply_max_us", "First reply", "longest time from connect() to a client's first reply", Times::FirstAnswer, Statistic::Max)
        .column(40).detail(Detail::Others(&[("connect_max_us", "connect {}")])).terminal(8),

    // Loads whose requests are the steps of sessions.
    Metric::of_load("sessions_per_s", "Sessions/s", Unit::PerSecond, Higher, "complete sessions of a flow per second of the measurement", |load| load.sessions.as_ref()?.per_s)
        .called("sessions per second").of_speed().column(25).terminal(7).compared(),
    Metric::of_times("session_p50_us", "Session p50", "median session time, from when a session was due, or began, until its last reply, the delays before its steps included", Times::Session, Statistic::P50)
        .column(26).compared(),
    Metric::of_times("session_p99_us", "Session p99", "99th percentile of session time", Times::Session, Statistic::P99)
        .column(27).compared(),
    Metric::of_load("sessions_failed", "Failed sessions", Unit::Count, Lower, "sessions that ended at a step that failed, or with their connection", |load| Some(load.sessions.as_ref()?.failed as f64))
        .combined(Combine::Sum),

    // Loads with short-lived clients.
    Metric::of_load("completion_s", "Completion", Unit::Seconds, Lower, "time from the first connect() until the last short-lived client finished, think time included", |load| counted_jobs(load)?.last_done_s)
        .called("completion time").of_speed().column(12).bar().terminal(0).compared().ranked(),
    Metric::of_load("clients_per_s", "Clients/s", Unit::PerSecond, Higher, "short-lived clients that finished, per second of the completion time", |load| counted_jobs(load)?.clients_per_s)
        .called("clients per second").of_speed().column(13).terminal(7).compared(),
    Metric::of_times("job_p50_us", "Job p50", "median time from a short-lived client's connect() to its end", Times::Job, Statistic::P50)
        .column(37).compared(),
    Metric::of_times("job_p99_us", "Job p99", "99th percentile of job time", Times::Job, Statistic::P99)
        .column(38).compared(),
    Metric {
        source: Source::Trial(connection_time),
        subject: Subject::Server,
        ..Metric::of_load("server_connection_mean_us", "Connection time", Unit::Microseconds, Lower, "mean time from accept() of a short-lived client's connection until its end, by the server's own clock, without the wait in the accept queue; the few connections that check the server count too (built-in servers only)", |_| None)
    }
        .called("server time per connection").column(36),
    Metric::of_load("think_mean_s", "Think time", Unit::Seconds, Neutral, "mean think time before a request of short-lived clients", |load| jobs(load)?.think_s_mean),

    Metric::of_load("warm_up_s", "Warm-up", Unit::Seconds, Neutral, "warm-up time until the request rate was level", |load| Some(load.warm_up?.took_s)),

    Metric::of_load("clients_connected", "Connected", Unit::Clients, Higher, "clients that established a connection", |load| Some(f64::from(load.connected))),
    Metric::of_load("clients_served", "Served", Unit::Clients, Higher, "clients that received at least one reply", |load| Some(f64::from(load.served)))
        .column(10).detail(Detail::Others(&[("failed_trials", ", {} failed")])).terminal(2).of_trial(),
    Metric::of_load("clients_done", "Done", Unit::Clients, Higher, "short-lived clients that finished", |load| Some(f64::from(jobs(load)?.clients_done)))
        .column(11).detail(Detail::Others(&[("clients_failed", ", {} failed"), ("clients_unfinished", ", {} not done")])).terminal(2),
    Metric::of_load("clients_failed", "Failed clients", Unit::Count, Lower, "short-lived clients that failed before they finished", |load| Some(f64::from(jobs(load)?.failed)))
        .combined(Combine::Sum),
    Metric::of_load("clients_unfinished", "Unfinished", Unit::Count, Lower, "short-lived clients that had not finished when the trial ended", |load| Some(f64::from(jobs(load)?.unfinished)))
        .combined(Combine::Sum),
    Metric::of_load("clients_never_served", "Never served", Unit::Count, Lower, "clients that received no reply and saw no error", |load| Some(f64::from(load.never_served)))
        .combined(Combine::Greatest),

    Metric {
        // An index close to 1 needs its last digits.
        least_difference: 0.01,
        ..Metric::of_load("fairness_jain", "Fairness", Unit::Index, Higher, "Jain's fairness index of replies per served client: 1 is even, 1/n if one client got all; needs 20 replies per client on average", |load| Some(fairness(load)?.jain))
    }
        .of_fairness().aliases(&["fairness", "jain"]).column(60)
        .detail(Detail::Others(&[("requests_per_client_min", "{}"), ("requests_per_client_max", "–{}"), ("clients_starved", ", {} starved")]))
        .terminal(4).compared().ranked(),
    Metric::of_load("requests_per_client_mean", "Requests/client", Unit::Mean, Higher, "mean replies per served client during the measurement", |load| Some(fairness(load)?.mean))
        .of_rate(),
    Metric::of_load("requests_per_client_min", "Min requests/client", Unit::Count, Higher, "replies to the least-served client during the measurement", |load| Some(fairness(load)?.min as f64))
        .of_rate(),
    Metric::of_load("requests_per_client_max", "Max requests/client", Unit::Count, Neutral, "replies to the most-served client during the measurement", |load| Some(fairness(load)?.max as f64)),
    Metric::of_load("slowest_decile_share", "Slowest tenth", Unit::Index, Higher, "share of all replies that went to the slowest tenth of the clients; 0.1 is even", |load| Some(fairness(load)?.slowest_decile_share))
        .of_fairness(),
    Metric::of_load("requests_per_client_cv", "CV of requests/client", Unit::Ratio, Lower, "coefficient of variation of replies per client: standard deviation over mean; 0 is even", |load| Some(spread(fairness(load)?.jain)))
        .of_fairness(),
    Metric::of_load("requests_per_client_max_over_min", "Max/min requests/client", Unit::Ratio, Lower, "replies to the most-served client over those to the least-served one, if that got any", |load| fairness(load).and_then(|all| over(all.max, all.min)))
        .of_fairness(),
    Metric::of_load("requests_per_client_mean_life", "Lifetime requests/client", Unit::Mean, Higher, "mean replies per served client since it connected", |load| Some(life(load)?.mean))
        .of_rate(),
    Metric::of_load("requests_per_client_min_life", "Lifetime min requests/client", Unit::Count, Higher, "replies to the least-served client since it connected", |load| Some(life(load)?.min as f64))
        .of_rate(),
    Metric::of_load("requests_per_client_max_life", "Lifetime max requests/client", Unit::Count, Neutral, "replies to the most-served client since it connected", |load| Some(life(load)?.max as f64)),
    Metric::of_load("requests_per_client_cv_life", "Lifetime CV of requests/client", Unit::Ratio, Lower, "coefficient of variation of replies per client since it connected", |load| Some(spread(life(load)?.jain)))
        .of_fairness(),
    Metric::of_load("requests_per_client_max_over_min_life", "Lifetime max/min requests/client", Unit::Ratio, Lower, "replies to the most-served client since it connected, over those to the least-served one", |load| life(load).and_then(|all| over(all.max, all.min)))
        .of_fairness(),
    Metric::of_load("clients_starved", "Starved", Unit::Count, Lower, "served clients with less than a tenth of the mean replies per client", |load| Some(f64::from(fairness(load)?.starved)))
        .of_fairness().combined(Combine::Greatest),
    Metric::of_load("early_bias", "Early bias", Unit::Index, Neutral, "rank correlation (Spearman) of connecting early with replies during the measurement; above 0 favours early clients", |load| Some(fairness(load)?.early_bias?.coefficient)),
    Metric::of_load("early_bias_life", "Lifetime early bias", Unit::Index, Neutral, "rank correlation (Spearman) of connecting early with all replies, so that a head start counts", |load| Some(fairness(load)?.early_bias_life?.coefficient)),
    Metric::of_load("early_over_late", "Early/late", Unit::Ratio, Neutral, "replies to the first tenth of clients to connect, over those to the last tenth, during the measurement", |load| fairness(load)?.early_over_late),
    Metric::of_load("early_over_late_life", "Lifetime early/late", Unit::Ratio, Neutral, "replies to the first tenth of clients to connect, over those to the last tenth, since they connected", |load| life(load)?.early_over_late),

    Metric::of_load("requests", "Requests", Unit::Count, Neutral, "requests sent, warm-up included", |load| Some(load.requests as f64))
        .combined(Combine::Sum),
    Metric::of_load("requests_asked", "Requests asked", Unit::Count, Neutral, "requests sent, and those of a given number that clients failed to send", |load| Some(load.asked() as f64))
        .combined(Combine::Sum),
    Metric::of_load("errors", "Errors", Unit::Count, Lower, "failed requests: connection errors, unexpected statuses, and requests never sent; a threshold in % is a share of all requests asked", |load| Some(load.failed_requests() as f64))
        .combined(Combine::Sum).share_of("requests_asked").column(70).detail(Detail::Errors).terminal(6).of_trial(),
    Metric::of_load("unexpected_statuses", "Unexpected statuses", Unit::Count, Lower, "replies with an unexpected status: by default, any but 2xx and 3xx", |load| Some(load.unexpected() as f64))
        .combined(Combine::Sum).share_of("requests_asked"),
    Metric::of_load("rejected", "Rejected", Unit::Count, Lower, "replies that rejected the request, such as an upload over the server's limit", |load| Some(load.rejected.values().sum::<u64>() as f64))
        .combined(Combine::Sum).share_of("requests_asked"),
    Metric::of_load("status_2xx", "2xx", Unit::Count, Neutral, "HTTP replies with a 2xx status, warm-up included", |load| of_class(load, '2'))
        .combined(Combine::Sum).share_of("requests_asked"),
    Metric::of_load("status_3xx", "3xx", Unit::Count, Neutral, "HTTP replies with a 3xx status, warm-up included", |load| of_class(load, '3'))
        .combined(Combine::Sum).share_of("requests_asked"),
    Metric::of_load("status_4xx", "4xx", Unit::Count, Neutral, "HTTP replies with a 4xx status, warm-up included", |load| of_class(load, '4'))
        .combined(Combine::Sum).share_of("requests_asked"),
    Metric::of_load("status_5xx", "5xx", Unit::Count, Neutral, "HTTP replies with a 5xx status, warm-up included", |load| of_class(load, '5'))
        .combined(Combine::Sum).share_of("requests_asked"),
    Metric::of_load("redirects", "Redirects", Unit::Count, Neutral, "HTTP redirects (301, 302, 303, 307, 308); clients do not follow them", |load| (!load.statuses.is_empty()).then(|| load.redirects() as f64))
        .combined(Combine::Sum).share_of("requests_asked"),
    Metric::of_load("reply_p50_bytes", "Reply body", Unit::Bytes, Neutral, "median body size of HTTP replies as received, warm-up included", |load| Some(load.reply_bytes?.p50 as f64)),
    Metric::of_load("reply_min_bytes", "Min reply body", Unit::Bytes, Neutral, "smallest body of an HTTP reply as received", |load| Some(load.reply_bytes?.min as f64)),
    Metric::of_load("reply_max_bytes", "Max reply body", Unit::Bytes, Neutral, "largest body of an HTTP reply as received", |load| Some(load.reply_bytes?.max as f64)),
    Metric::of_load("reconnects", "Reconnects", Unit::Count, Neutral, "connections that replaced an earlier one of the same client, which was closed, expired or failed", |load| Some(load.reconnects as f64))
        .combined(Combine::Sum).share_of("requests_asked"),
    Metric {
        source: Source::Trial(|trial| trial.purpose.is_timed().then(|| f64::from(u8::from(trial.failure.is_some())))),
        ..Metric::of_load("failed_trials", "Failed trials", Unit::Count, Lower, "trials that failed and have no measurements", |_| None)
    }
        .combined(Combine::Sum),
    Metric {
        source: Source::Trial(notifications),
        subject: Subject::Server,
        ..Metric::of_load("server_notifications_per_request", "Notifications/request", Unit::Mean, Lower, "readiness notifications from select, poll or epoll per request, over the life of the server (built-in servers only)", |_| None)
    },
];

/// What a built-in server counted in a timed trial.
fn counted(trial: &Trial) -> Option<&ServerCounts> {
    let is_counted = trial.purpose.is_timed() && trial.failure.is_none();
    trial.server_counts.as_ref().filter(|_| is_counted)
}

fn notifications(trial: &Trial) -> Option<f64> {
    let counts = counted(trial)?;
    let notifications = counts.notifications.filter(|_| counts.requests > 0)?;
    Some(notifications as f64 / counts.requests as f64)
}

fn connection_time(trial: &Trial) -> Option<f64> {
    jobs(trial.load.as_ref()?)?;
    let counts = counted(trial)?;
    (counts.answered > 0).then(|| counts.answered_ns as f64 / counts.answered as f64 / 1e3)
}

fn jobs(load: &Load) -> Option<&Completion> {
    load.completion.as_deref()
}

/// Jobs of a number of requests. If clients live for a time instead, a server has no part in when they are done.
fn counted_jobs(load: &Load) -> Option<&Completion> {
    jobs(load).filter(|jobs| jobs.requests_each.is_some())
}

/// Replies with a status of this class, if replies have statuses.
fn of_class(load: &Load, class: char) -> Option<f64> {
    let of_class = load
        .statuses
        .iter()
        .filter(|(status, _)| status.starts_with(class));
    (!load.statuses.is_empty()).then(|| of_class.map(|(_, count)| *count as f64).sum())
}

fn fairness(load: &Load) -> Option<&Fairness> {
    load.fairness.as_ref()
}

fn life(load: &Load) -> Option<&LifeFairness> {
    fairness(load)?.life.as_ref()
}

/// The coefficient of variation, another form of Jain's index: 1/(1 + cv²).
fn spread(jain: f64) -> f64 {
    (1.0 / jain - 1.0).max(0.0).sqrt()
}

fn over(most: u64, fewest: u64) -> Option<f64> {
    (fewest > 0).then(|| most as f64 / fewest as f64)
}
