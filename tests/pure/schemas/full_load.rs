//! The result of a load, with every possible value.

use std::collections::BTreeMap;

use throng::record::{
    Ceiling, Completion, Correlation, Fairness, FirstFailure, Latency, LifeFairness, Load,
    OpenLoop, ProbeClients, ReplyBytes, ServiceSample, Settling, TimesOverWindow, TlsFigures,
    Unsettled, WarmUp, Window,
};

use super::full::counts;

pub(super) fn full_load() -> Load {
    let latency = || {
        Some(Latency {
            count: 1,
            min_us: 1.0,
            mean_us: 1.0,
            p50_us: 1.0,
            p90_us: 1.0,
            p99_us: Some(1.0),
            p999_us: Some(1.0),
            p9999_us: Some(1.0),
            max_us: 1.0,
            histogram: "HISTFAAA".to_owned(),
        })
    };
    Load {
        clients: 1,
        connected: 1,
        served: 1,
        never_served: 0,
        requests: 1,
        without_reply: 1,
        left: 1,
        verified: 1,
        longest_gap_s: Some(0.1),
        silent_threads: 1,
        rejected: counts("over-limit"),
        statuses: counts("500"),
        unexpected: counts("500"),
        redirect: Some("/a".to_owned()),
        reply_bytes: Some(full_reply_bytes()),
        warm_up: Some(full_warm_up()),
        window: full_window(),
        service_time: latency(),
        connect_time: latency(),
        first_reply: latency(),
        fairness: Some(full_fairness()),
        connections: 1,
        reconnects: 1,
        open_loop: Some(OpenLoop {
            due: 1,
            waited: 1,
            never_sent: 1,
            unanswered: 1,
            lost: 1,
            response_time: latency(),
        }),
        lateness: latency(),
        errors: counts("reset"),
        errors_first_s: BTreeMap::from([("reset".to_owned(), 0.5)]),
        error_details: BTreeMap::from([("wrong-reply".to_owned(), "a".to_owned())]),
        probe: Some(ProbeClients {
            clients: 1,
            rate_per_s: 1.0,
            due: 1,
            response_time: latency(),
            service_time: latency(),
            errors: counts("reset"),
        }),
        tls: Some(Box::new(full_tls(latency()))),
        ceiling: Some(Ceiling {
            model: "epoll".to_owned(),
            replies_per_s: 1.0,
            cpu_us_per_reply: 1.0,
            share: 1.0,
        }),
        completion: Some(Box::new(full_completion(latency()))),
        cpu_s: Some(1.0),
        stopped_by: "duration".to_owned(),
        threads: 1,
        engine: "epoll".to_owned(),
    }
}

fn full_tls(handshake_time: Option<Latency>) -> TlsFigures {
    TlsFigures {
        handshakes: 1,
        resumed: 1,
        handshakes_per_s: Some(1.0),
        handshake_time,
        negotiated: counts("TLS 1.3, TLS13_AES_128_GCM_SHA256, http/1.1"),
    }
}

fn full_reply_bytes() -> ReplyBytes {
    ReplyBytes {
        replies: 1,
        min: 1,
        p50: 1,
        p99: 1,
        max: 1,
        mean: 1.0,
    }
}

fn full_window() -> Window {
    Window {
        duration_s: 1.0,
        replies: 1,
        replies_per_s: Some(1.0),
        bytes_sent: 1,
        bytes_received: 1,
        intervals: vec![1],
        intervals_by_tenth: vec![vec![1]],
        times: Some(TimesOverWindow {
            from_ns: vec![1, 2],
            counts: vec![vec![1]],
        }),
    }
}

fn full_completion(job_time: Option<Latency>) -> Completion {
    Completion {
        requests_each: 1,
        at_once: 1,
        clients_done: 1,
        failed: 0,
        unfinished: 0,
        last_done_s: Some(1.0),
        clients_per_s: Some(1.0),
        think_s_mean: Some(1.0),
        job_time,
        service_sample: Some(ServiceSample {
            count: 1,
            mean_us: 1.0,
            seed: 1,
        }),
        connect_failures: counts("refused"),
        first_failure: Some(FirstFailure {
            client: 0,
            at_s: 1.0,
            kind: "refused".to_owned(),
            connected: false,
        }),
    }
}

fn correlation() -> Correlation {
    Correlation {
        coefficient: 0.5,
        low: Some(0.4),
        high: Some(0.6),
    }
}

fn full_warm_up() -> WarmUp {
    WarmUp {
        took_s: 1.0,
        unsettled: Some(Unsettled {
            what: Settling::Rate,
            change: 0.1,
        }),
    }
}

fn full_fairness() -> Fairness {
    Fairness {
        mean: 1.0,
        min: 1,
        max: 1,
        jain: 1.0,
        slowest_decile_share: 1.0,
        starved: 0,
        early_bias: Some(correlation()),
        early_bias_life: Some(correlation()),
        early_over_late: Some(1.0),
        bias_absent: Some("too many".to_owned()),
        life: Some(LifeFairness {
            mean: 1.0,
            min: 1,
            max: 1,
            jain: 1.0,
            early_over_late: Some(1.0),
        }),
    }
}
