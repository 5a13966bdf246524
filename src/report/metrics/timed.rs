//! What trials give that time: rates, times, CPU, memory, evenness.

use super::Subject::{LoadGenerator, Network, Server};
use super::{Better, Metric, Source, Unit, Whole, figure, metric, of_load};
use crate::record::{Completion, Fairness, Latency, Load};

/// They begin with those that servers are compared by.
pub(super) const METRICS: &[Metric] = &[
    of_load(
        "replies_per_s",
        "Replies/s",
        Unit::PerSecond,
        "verified replies a second",
        |load| Some(load.window.replies_per_s),
    ),
    metric(
        "replies_per_cpu_s",
        "Replies/CPU s",
        Unit::PerSecond,
        "verified replies for a second of CPU time of the server's process tree",
        Server,
        Source::Figures("cpu", |side, load| {
            let used_ms = side.metrics.get("cpu_ms").filter(|used| **used > 0.0)?;
            (load.window.replies > 0).then(|| load.window.replies as f64 * 1e3 / used_ms)
        }),
    ),
    of_load("p50", "p50", Unit::Time, "service time: from sending a request to its whole reply; median over requests", |load| {
        Some(service(load)?.p50_us)
    }),
    of_load("p99", "p99", Unit::Time, "service time, 99th percentile", |load| service(load)?.p99_us),
    of_load("response_p50", "Response p50", Unit::Time, "response time of an open loop: from when a request was due to its whole reply; median over requests", |load| {
        Some(response(load)?.p50_us)
    }),
    of_load("response_p99", "Response p99", Unit::Time, "response time, 99th percentile", |load| response(load)?.p99_us),
    of_server("memory", "Memory", Unit::Bytes, "proportional set size of the server's process tree, with all clients connected", "memory", "pss_bytes").also("pss"),
    Metric {
        // An index close to 1 is told apart from itself in its last digits.
        least: 0.01,
        ..of_load("jain", "Fairness", Unit::Index, "Jain's index of replies over the served clients: 1 when all got the same, 1/n when one got all", |load| {
            Some(fairness(load)?.jain)
        })
    }
    .also("fairness"),
    // Of loads in which each client has a job.
    of_load("completion", "Completion", Unit::Time, "from the beginning to the last client done, where each has a job", |load| {
        Some(jobs(load)?.last_done_s? * 1e6)
    }),
    of_load("clients_per_s", "Clients/s", Unit::PerSecond, "clients done a second, where each has a job", |load| {
        jobs(load)?.clients_per_s
    }),
    of_load("job_p50", "Job p50", Unit::Time, "from when a client began to connect until it was done; median over clients", |load| {
        Some(jobs(load)?.job_time.as_ref()?.p50_us)
    }),
    of_load("job_p99", "Job p99", Unit::Time, "the same, 99th percentile", |load| jobs(load)?.job_time.as_ref()?.p99_us),
    of_load("service_sample", "Mean of 50", Unit::Time, "mean service time of 50 requests drawn by chance, where each client has a job", |load| {
        Some(jobs(load)?.service_sample?.mean_us)
    }),
    metric(
        "cpu_per_reply",
        "CPU/reply",
        Unit::Time,
        "CPU time of the server's process tree for one reply",
        Server,
        Source::EachReply(figure("cpu", "cpu_ms"), 1e3),
    ),
    of_load("p90", "p90", Unit::Time, "service time, 90th percentile", |load| Some(service(load)?.p90_us)),
    of_load("p99.9", "p99.9", Unit::Time, "service time, 99.9th percentile", |load| service(load)?.p999_us),
    of_load("max", "Slowest", Unit::Time, "longest service time", |load| Some(service(load)?.max_us)),
    of_load("service_mean", "Mean service time", Unit::Time, "service time, mean over all requests", |load| {
        Some(service(load)?.mean_us)
    }),
    of_load("response_p90", "Response p90", Unit::Time, "response time, 90th percentile", |load| Some(response(load)?.p90_us)),
    of_load("response_p99.9", "Response p99.9", Unit::Time, "response time, 99.9th percentile", |load| {
        response(load)?.p999_us
    }),
    of_load("response_max", "Slowest response", Unit::Time, "longest response time", |load| Some(response(load)?.max_us)),
    of_load("response_mean", "Mean response time", Unit::Time, "response time, mean over all requests", |load| {
        Some(response(load)?.mean_us)
    }),
    of_load("connect_max", "Slowest connection", Unit::Time, "longest wait of a client for its connection", |load| {
        Some(load.connect_time.as_ref()?.max_us)
    }),
    of_load("first_answer", "First answer", Unit::Time, "longest wait of a client from connect() to its first reply", |load| {
        Some(load.first_answer.as_ref()?.max_us)
    }),
    of_load("first_answer_p50", "First answer p50", Unit::Time, "wait of a client from connect() to its first reply, median over clients", |load| {
        Some(load.first_answer.as_ref()?.p50_us)
    }),
    of_load("served", "Served", Unit::Count, "clients that had at least one verified answer", |load| {
        Some(f64::from(load.served))
    })
    .higher(),
    of_load("client_requests_mean", "Replies a client", Unit::Mean, "replies in the steady part to a served client, mean over clients", |load| {
        Some(fairness(load)?.mean)
    })
    .higher(),
    of_load("client_requests_min", "Fewest replies", Unit::Count, "replies in the steady part to the client that got fewest", |load| {
        Some(fairness(load)?.min as f64)
    })
    .higher(),
    of_load("client_requests_max", "Most replies", Unit::Count, "replies in the steady part to the client that got most", |load| {
        Some(fairness(load)?.max as f64)
    })
    .neither(),
    of_load("slowest_decile_share", "Slowest tenth", Unit::Index, "share of all replies that the slowest tenth of the clients got; 0.1 when all are alike", |load| {
        Some(fairness(load)?.slowest_decile_share)
    }),
    of_load("starved", "Starved", Unit::Count, "served clients with fewer replies than a tenth of the mean", |load| {
        Some(f64::from(fairness(load)?.starved))
    })
    .whole(Whole::Greatest),
    of_load(
        "early_bias",
        "Early bias",
        Unit::Index,
        "whether early connections are favoured: Spearman's rank correlation, over clients, of being connected early with replies in the steady part; above 0 early clients got more, below 0 late ones",
        |load| Some(fairness(load)?.early_bias?.coefficient),
    )
    .neither(),
    of_load(
        "early_over_late",
        "Early over late",
        Unit::Ratio,
        "by how much: replies in the steady part to a client of the tenth that connected first, over those to one of the tenth that connected last",
        early_over_late,
    )
    .neither(),
    of_load(
        "early_bias_life",
        "Early bias, all replies",
        Unit::Index,
        "the same with all replies since a client was connected, so that a head start counts",
        |load| Some(fairness(load)?.early_bias_life?.coefficient),
    )
    .neither(),
    of_server("server_cpu_percent", "Server CPU", Unit::Percent, "CPU time of the server's process tree over elapsed time; 100 is one CPU", "cpu", "cpu_percent").neither(),
    metric(
        "client_cpu_percent",
        "Clients' CPU",
        Unit::Percent,
        "CPU time of the load generator over elapsed time; 100 is one CPU",
        LoadGenerator,
        Source::Figure(figure("cpu", "cpu_percent"), 1.0),
    )
    .neither(),
    of_server(
        "peak_memory",
        "Peak memory",
        Unit::Bytes,
        "the most memory that the server's process tree can have had: its proportional set size and what each process has given back since its own peak (VmHWM)",
        "memory",
        "peak_bytes",
    ),
    of_server(
        "parent_cpu_percent",
        "Parent's CPU",
        Unit::Percent,
        "CPU time of the process that was started, without its children, over elapsed time",
        "cpu",
        "parent_cpu_percent",
    )
    .neither(),
    of_server(
        "parent_memory",
        "Parent's memory",
        Unit::Bytes,
        "resident size of the process that was started, without its children and with all it shares",
        "memory",
        "parent_rss_bytes",
    )
    .neither(),
    of_server(
        "parent_peak_memory",
        "Parent's peak",
        Unit::Bytes,
        "its largest resident size (VmHWM)",
        "memory",
        "peak_rss_bytes",
    )
    .neither(),
    of_server("threads", "Threads", Unit::Count, "threads of the server's process tree, with all clients connected", "memory", "threads").neither(),
    of_server("processes", "Processes", Unit::Count, "processes of the server, with all clients connected", "memory", "processes").neither(),
    of_network("established_max", "Most connections", "most established connections to the server at once", "established_max").neither(),
    of_load("errors", "Errors", Unit::Count, "connections that ended with an error", |load| {
        Some(load.errors.values().sum::<u64>() as f64)
    })
    .whole(Whole::Sum),
    of_load("failed_clients", "Failed clients", Unit::Count, "clients that failed before their job was done", |load| {
        Some(f64::from(jobs(load)?.failed))
    })
    .whole(Whole::Sum),
    of_load("not_done", "Not done", Unit::Count, "clients that were not done when the time was over", |load| {
        Some(f64::from(jobs(load)?.not_done))
    })
    .whole(Whole::Sum),
    of_load("never_served", "Never served", Unit::Count, "clients that had no answer and saw no error", |load| {
        Some(f64::from(load.never_served))
    })
    .whole(Whole::Greatest),
    metric(
        "failed_trials",
        "Failed trials",
        Unit::Count,
        "trials without figures",
        super::Subject::Clients,
        Source::Any(|trial| {
            let of_ours = trial.purpose.is_timed();
            of_ours.then(|| f64::from(u8::from(trial.failure.is_some())))
        }),
    )
    .whole(Whole::Sum),
];

impl Metric {
    /// One of which more is better though its unit does not say so.
    const fn higher(self) -> Self {
        Self {
            better: Better::Higher,
            ..self
        }
    }
}

const fn of_server(
    name: &'static str,
    title: &'static str,
    unit: Unit,
    help: &'static str,
    probe: &'static str,
    of: &'static str,
) -> Metric {
    let source = Source::Figure(figure(probe, of), 1.0);
    metric(name, title, unit, help, Server, source)
}

const fn of_network(
    name: &'static str,
    title: &'static str,
    help: &'static str,
    of: &'static str,
) -> Metric {
    let source = Source::Figure(figure("established", of), 1.0);
    metric(name, title, Unit::Count, help, Network, source)
}

fn service(load: &Load) -> Option<&Latency> {
    load.service_time.as_ref()
}

fn jobs(load: &Load) -> Option<&Completion> {
    load.completion.as_deref()
}

fn response(load: &Load) -> Option<&Latency> {
    load.open_loop.as_ref()?.response_time.as_ref()
}

fn early_over_late(load: &Load) -> Option<f64> {
    let tenths = &load.window.slices_by_tenth;
    let last = tenths.len().checked_sub(1)?;
    let of = |tenth: usize| tenths[tenth].iter().sum::<u64>() as f64 / load.share_of_tenth(tenth);
    let late = of(last);
    (late > 0.0).then(|| of(0) / late)
}

fn fairness(load: &Load) -> Option<&Fairness> {
    load.fairness.as_ref()
}
