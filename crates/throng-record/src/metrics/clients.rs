//! What the clients saw: rates, times, jobs, fairness, and what went wrong.

use super::Better::{Higher, Lower, Neutral};
use super::{Combine, Detail, Load, Metric, Source, Statistic, Subject, Times, Unit};
use crate::{Completion, Fairness, LifeFairness, Slice, Trial};

#[rustfmt::skip]
pub const METRICS: &[Metric] = &[
    Metric::of_load("requests_per_s", "Requests/s", Unit::PerSecond, Higher, "requests answered per second", |load| Some(load.window.replies_per_s))
        .aliases(&["rps", "throughput"]).of_rate().in_slices(Slice::requests_per_s).column(20).bar().terminal(0).compared().of_trial(),

    // From sending a request to its whole reply: the only times of a closed loop.
    Metric::of_times("latency_p50_us", "p50", "latency, from sending a request to its whole reply: median over requests", Times::Latency, Statistic::P50)
        .aliases(&["p50"]).in_slices(|slice| Some(slice.p50_us)).column(30).terminal(5).compared().of_trial(),
    Metric::of_times("latency_p90_us", "p90", "latency, 90th percentile", Times::Latency, Statistic::P90)
        .aliases(&["p90"]).in_slices(|slice| Some(slice.p90_us)).column(31),
    Metric::of_times("latency_p99_us", "p99", "latency, 99th percentile", Times::Latency, Statistic::P99)
        .aliases(&["p99"]).in_slices(|slice| Some(slice.p99_us)).column(32).terminal(1).compared().of_trial(),
    Metric::of_times("latency_p999_us", "p99.9", "latency, 99.9th percentile", Times::Latency, Statistic::P999)
        .aliases(&["p99.9", "p999", "latency_p99.9"]),
    Metric::of_times("latency_max_us", "Slowest", "longest latency of a request", Times::Latency, Statistic::Max)
        .aliases(&["max"]).column(33),
    Metric::of_times("latency_mean_us", "Mean latency", "latency, mean over requests", Times::Latency, Statistic::Mean)
        .in_slices(|slice| Some(slice.mean_us)),

    // From when a request was due in an open loop.
    Metric::of_times("response_p50_us", "Response p50", "response time of an open loop, from when a request was due to its whole reply: median over requests", Times::Response, Statistic::P50)
        .column(34).compared().of_trial(),
    Metric::of_times("response_p90_us", "Response p90", "response time, 90th percentile", Times::Response, Statistic::P90),
    Metric::of_times("response_p99_us", "Response p99", "response time, 99th percentile", Times::Response, Statistic::P99)
        .column(35).compared().of_trial(),
    Metric::of_times("response_p999_us", "Response p99.9", "response time, 99.9th percentile", Times::Response, Statistic::P999)
        .aliases(&["response_p99.9"]),
    Metric::of_times("response_max_us", "Slowest response", "longest response time", Times::Response, Statistic::Max),
    Metric::of_times("response_mean_us", "Mean response time", "response time, mean over requests", Times::Response, Statistic::Mean),

    Metric::of_times("connect_max_us", "Slowest connection", "longest wait of a client for its connection, its TLS handshake included", Times::Connect, Statistic::Max),
    Metric::of_load("tls_handshakes_per_s", "Handshakes/s", Unit::PerSecond, Neutral, "TLS handshakes completed per second of the steady part", |load| load.tls.as_ref()?.handshakes_per_s),
    Metric::of_times("tls_handshake_p50_us", "Handshake p50", "TLS handshake, from an established connection to the end of the handshake: median over connections", Times::Handshake, Statistic::P50),
    Metric::of_times("tls_handshake_p90_us", "Handshake p90", "TLS handshake, 90th percentile", Times::Handshake, Statistic::P90),
    Metric::of_times("tls_handshake_p99_us", "Handshake p99", "TLS handshake, 99th percentile", Times::Handshake, Statistic::P99),
    Metric::of_times("tls_handshake_max_us", "Slowest handshake", "longest TLS handshake", Times::Handshake, Statistic::Max),
    Metric::of_load("tls_handshakes", "Handshakes", Unit::Count, Neutral, "TLS handshakes completed, warm-up included", |load| Some(load.tls.as_ref()?.handshakes as f64))
        .combined(Combine::Sum),
    Metric::of_load("tls_resumed", "Resumed handshakes", Unit::Count, Neutral, "TLS handshakes that resumed an earlier session of their client; with % it is their share of the handshakes", |load| Some(load.tls.as_ref()?.resumed as f64))
        .combined(Combine::Sum).share_of("tls_handshakes"),
    Metric::of_times("first_answer_p50_us", "First answer p50", "wait of a client from connect() to its first reply: median over clients", Times::FirstAnswer, Statistic::P50),
    Metric::of_times("first_answer_max_us", "First answer", "longest wait of a client from connect() to its first reply", Times::FirstAnswer, Statistic::Max)
        .column(40).beside(Detail::Others(&[("connect_max_us", "connect {}")])).terminal(8),

    // Loads in which each client has a job.
    Metric::of_load("completion_s", "Completion", Unit::Seconds, Lower, "from the first connect() until the last client was done, think time included, where each client has a job", |load| jobs(load)?.last_done_s)
        .of_rate().column(12).bar().terminal(0).compared(),
    Metric::of_load("clients_per_s", "Clients/s", Unit::PerSecond, Higher, "clients done per second of the completion time, where each has a job", |load| jobs(load)?.clients_per_s)
        .of_rate().column(13).terminal(7).compared(),
    Metric::of_times("job_p50_us", "Job p50", "from when a client began to connect until it was done: median over clients", Times::Job, Statistic::P50)
        .column(37).compared(),
    Metric::of_times("job_p99_us", "Job p99", "the same, 99th percentile", Times::Job, Statistic::P99)
        .column(38).compared(),
    Metric::of_load("latency_sample_us", "Mean of 50", Unit::Microseconds, Lower, "mean latency of 50 requests drawn at random, where each client has a job", |load| Some(jobs(load)?.service_sample?.mean_us))
        .column(36).compared(),
    Metric::of_load("think_mean_s", "Think time", Unit::Seconds, Neutral, "mean time that clients took before a request, where each has a job", |load| jobs(load)?.think_s_mean),

    Metric::of_load("warm_up_s", "Warm-up", Unit::Seconds, Neutral, "how long a server was loaded before replies counted, where that lasted until its rate was level", |load| Some(load.warm_up?.took_s)),

    Metric::of_load("clients_connected", "Connected", Unit::Clients, Higher, "clients whose connection was established", |load| Some(f64::from(load.connected))),
    Metric::of_load("clients_served", "Served", Unit::Clients, Higher, "clients that had at least one answer", |load| Some(f64::from(load.served)))
        .column(10).beside(Detail::Others(&[("failed_trials", ", {} failed")])).terminal(2).of_trial(),
    Metric::of_load("clients_done", "Done", Unit::Clients, Higher, "clients that made all their requests, where each has a job", |load| Some(f64::from(jobs(load)?.clients_done)))
        .column(11).beside(Detail::Others(&[("clients_failed", ", {} failed"), ("clients_not_done", ", {} not done")])).terminal(2),
    Metric::of_load("clients_failed", "Failed clients", Unit::Count, Lower, "clients that failed before their job was done", |load| Some(f64::from(jobs(load)?.failed)))
        .combined(Combine::Sum),
    Metric::of_load("clients_not_done", "Not done", Unit::Count, Lower, "clients that were not done when the time was over", |load| Some(f64::from(jobs(load)?.not_done)))
        .combined(Combine::Sum),
    Metric::of_load("clients_never_served", "Never served", Unit::Count, Lower, "clients that had no answer and saw no error", |load| Some(f64::from(load.never_served)))
        .combined(Combine::Greatest),

    Metric {
        // An index close to 1 is distinguished from itself in its last digits.
        least_difference: 0.01,
        ..Metric::of_load("fairness_jain", "Fairness", Unit::Index, Higher, "Jain's index of replies over the served clients: 1 when all got the same, 1/n when one got all; absent below 20 replies per client on average", |load| Some(fairness(load)?.jain))
    }
        .of_fairness().aliases(&["fairness", "jain"]).column(60)
        .beside(Detail::Others(&[("requests_per_client_min", "{}"), ("requests_per_client_max", "–{}"), ("clients_starved", ", {} starved")]))
        .terminal(4).compared(),
    Metric::of_load("requests_per_client_mean", "Requests/client", Unit::Mean, Higher, "replies in the steady part to a served client, mean over clients", |load| Some(fairness(load)?.mean))
        .of_rate(),
    Metric::of_load("requests_per_client_min", "Fewest requests/client", Unit::Count, Higher, "replies in the steady part to the client that got fewest", |load| Some(fairness(load)?.min as f64))
        .of_rate(),
    Metric::of_load("requests_per_client_max", "Most requests/client", Unit::Count, Neutral, "replies in the steady part to the client that got most", |load| Some(fairness(load)?.max as f64)),
    Metric::of_load("slowest_decile_share", "Slowest tenth", Unit::Index, Higher, "share of all replies that the slowest tenth of the clients got; 0.1 when all are alike; absent below 20 replies per client on average", |load| Some(fairness(load)?.slowest_decile_share))
        .of_fairness(),
    Metric::of_load("requests_per_client_cv", "Spread", Unit::Ratio, Lower, "coefficient of variation of replies in the steady part over the served clients: their standard deviation over their mean; 0 when all got the same", |load| Some(spread(fairness(load)?.jain)))
        .of_fairness(),
    Metric::of_load("requests_per_client_max_over_min", "Most over fewest", Unit::Ratio, Lower, "replies in the steady part to the client that got most, over those to the client that got fewest; absent where that got none", |load| fairness(load).and_then(|all| over(all.max, all.min)))
        .of_fairness(),
    Metric::of_load("requests_per_client_mean_life", "Requests/client, life", Unit::Mean, Higher, "replies to a served client from when it was connected, mean over clients", |load| Some(life(load)?.mean))
        .of_rate(),
    Metric::of_load("requests_per_client_min_life", "Fewest requests/client, life", Unit::Count, Higher, "the same of the client that got fewest", |load| Some(life(load)?.min as f64))
        .of_rate(),
    Metric::of_load("requests_per_client_max_life", "Most requests/client, life", Unit::Count, Neutral, "the same of the client that got most", |load| Some(life(load)?.max as f64)),
    Metric::of_load("requests_per_client_cv_life", "Spread, life", Unit::Ratio, Lower, "coefficient of variation of replies to clients from when each was connected", |load| Some(spread(life(load)?.jain)))
        .of_fairness(),
    Metric::of_load("requests_per_client_max_over_min_life", "Most over fewest, life", Unit::Ratio, Lower, "the most replies to a client from when it was connected, over the fewest", |load| life(load).and_then(|all| over(all.max, all.min)))
        .of_fairness(),
    Metric::of_load("clients_starved", "Starved", Unit::Count, Lower, "served clients with fewer replies than a tenth of the mean; absent below 20 replies per client on average", |load| Some(f64::from(fairness(load)?.starved)))
        .of_fairness().combined(Combine::Greatest),
    Metric::of_load("early_bias", "Early bias", Unit::Index, Neutral, "whether early connections are favoured: Spearman's rank correlation, over clients, of being connected early with replies in the steady part; above 0 early clients got more, below 0 late ones", |load| Some(fairness(load)?.early_bias?.coefficient)),
    Metric::of_load("early_bias_life", "Early bias, all replies", Unit::Index, Neutral, "the same with all replies since a client was connected, so that a head start counts", |load| Some(fairness(load)?.early_bias_life?.coefficient)),
    Metric::of_load("early_over_late", "Early over late", Unit::Ratio, Neutral, "replies in the steady part to a client of the tenth that connected first, over those to one of the tenth that connected last", early_over_late),
    Metric::of_load("early_over_late_life", "Early over late, life", Unit::Ratio, Neutral, "the same with all replies since a client was connected, so that a head start counts", |load| life(load)?.early_over_late),

    Metric::of_load("requests", "Requests", Unit::Count, Neutral, "requests sent, warm-up included", |load| Some(load.requests as f64))
        .combined(Combine::Sum),
    Metric::of_load("errors", "Errors", Unit::Count, Lower, "requests that failed: connections that ended with an error, and replies of an unexpected status; with % it is their share of the requests", |load| Some(load.failed_requests() as f64))
        .combined(Combine::Sum).share_of("requests").column(70).beside(Detail::Errors).terminal(6).of_trial(),
    Metric::of_load("unexpected_statuses", "Unexpected statuses", Unit::Count, Lower, "replies of a status that was not expected (2xx and 3xx are, unless --expect-status says otherwise)", |load| Some(load.unexpected() as f64))
        .combined(Combine::Sum).share_of("requests"),
    Metric::of_load("rejected", "Rejected", Unit::Count, Lower, "replies in which the server rejected what it was asked, such as an upload over its limit", |load| Some(load.rejected.values().sum::<u64>() as f64))
        .combined(Combine::Sum).share_of("requests"),
    Metric::of_load("status_2xx", "2xx", Unit::Count, Neutral, "HTTP replies of a status 2xx, warm-up included", |load| of_class(load, '2'))
        .combined(Combine::Sum).share_of("requests"),
    Metric::of_load("status_3xx", "3xx", Unit::Count, Neutral, "HTTP replies of a status 3xx, warm-up included", |load| of_class(load, '3'))
        .combined(Combine::Sum).share_of("requests"),
    Metric::of_load("status_4xx", "4xx", Unit::Count, Neutral, "HTTP replies of a status 4xx, warm-up included", |load| of_class(load, '4'))
        .combined(Combine::Sum).share_of("requests"),
    Metric::of_load("status_5xx", "5xx", Unit::Count, Neutral, "HTTP replies of a status 5xx, warm-up included", |load| of_class(load, '5'))
        .combined(Combine::Sum).share_of("requests"),
    Metric::of_load("redirects", "Redirects", Unit::Count, Neutral, "HTTP replies that name another place (301, 302, 303, 307, 308), which are not followed", |load| (!load.statuses.is_empty()).then(|| load.redirects() as f64))
        .combined(Combine::Sum).share_of("requests"),
    Metric::of_load("reply_p50_bytes", "Reply body", Unit::Bytes, Neutral, "bytes in the body of an HTTP reply as they came, median over replies, warm-up included", |load| Some(load.reply_bytes?.p50 as f64)),
    Metric::of_load("reply_min_bytes", "Smallest reply body", Unit::Bytes, Neutral, "the same, the smallest", |load| Some(load.reply_bytes?.min as f64)),
    Metric::of_load("reply_max_bytes", "Largest reply body", Unit::Bytes, Neutral, "the same, the largest", |load| Some(load.reply_bytes?.max as f64)),
    Metric::of_load("reconnects", "Reconnects", Unit::Count, Neutral, "connections that clients made when they had had one before: it was closed after a reply, had served its time, or failed", |load| Some(load.reconnects as f64))
        .combined(Combine::Sum).share_of("requests"),
    Metric {
        source: Source::Trial(|trial| trial.purpose.is_timed().then(|| f64::from(u8::from(trial.failure.is_some())))),
        ..Metric::of_load("failed_trials", "Failed trials", Unit::Count, Lower, "trials without figures", |_| None)
    }
        .combined(Combine::Sum),
    Metric {
        source: Source::Trial(notifications),
        subject: Subject::Server,
        ..Metric::of_load("server_notifications_per_request", "Notifications/request", Unit::Mean, Lower, "how often the kernel told a server of throng's own that a descriptor is ready, per request, over its whole life; of models that ask with select, poll or epoll", |_| None)
    },
];

fn notifications(trial: &Trial) -> Option<f64> {
    let counts = trial.server_counts.as_ref()?;
    let is_counted = trial.purpose.is_timed() && trial.failure.is_none() && counts.requests > 0;
    let notifications = counts.notifications.filter(|_| is_counted)?;
    Some(notifications as f64 / counts.requests as f64)
}

fn jobs(load: &Load) -> Option<&Completion> {
    load.completion.as_deref()
}

/// Replies of a class of statuses, where replies have one.
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

/// The coefficient of variation, which Jain's index is another form of: 1/(1 + cv²).
fn spread(jain: f64) -> f64 {
    (1.0 / jain - 1.0).max(0.0).sqrt()
}

fn over(most: u64, fewest: u64) -> Option<f64> {
    (fewest > 0).then(|| most as f64 / fewest as f64)
}

fn early_over_late(load: &Load) -> Option<f64> {
    let tenths = &load.window.intervals_by_tenth;
    let last = tenths.len().checked_sub(1)?;
    let of = |tenth: usize| tenths[tenth].iter().sum::<u64>() as f64 / load.share_of_tenth(tenth);
    let late = of(last);
    (late > 0.0).then(|| of(0) / late)
}
