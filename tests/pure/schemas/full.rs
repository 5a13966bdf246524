//! Records with every possible value.

mod made_with;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use throng::record::LeftOut;
use throng::record::claim::{
    Baseline, Bounds, Clients, Expectation, Mechanism, Reference, Relation,
};
use throng::record::{
    AtLoad, Attempt, Cause, Claim, ClientHost, ClockOffset, Comparison, Ending, Failure, Find,
    HostPart, Invalid, InvalidCause, Limit, LimitResult, Method, Published, PublishedValue,
    Purpose, Run, SCHEMA_VERSION, Scaled, Scene, SearchEnding, ServerMessage, Settings, Side,
    Slice, Spin, StartSkew, StoppedAt, Study, StudyInfo, StudyPart, Trial, TriedValue, Warning,
};
use throng::registry::Unsupported;
use throng::spec::{
    ClientThreads, Data, LoadSpec, Paths, Payload, RateRange, RequestFile, Spacing, TlsSpec,
};
use throng::spec::{ServerCounts, ServerWorker};

use super::full_load::full_load;
use made_with::{full_host, full_program, server};

/// A study with every possible value.
pub(crate) fn full_study() -> Value {
    let study = Study {
        schema_version: SCHEMA_VERSION,
        throng_version: "0.1.0".to_owned(),
        name: "full".to_owned(),
        question: "is all of it described?".to_owned(),
        summary: Some("it is".to_owned()),
        source: Some("nobody".to_owned()),
        scale: Some(Scaled {
            by: "quick".to_owned(),
            whole: vec!["throng".to_owned()],
            whole_takes_s: 60,
        }),
        started_at: "2026-01-01T12:00:00Z".to_owned(),
        arguments: vec!["throng".to_owned()],
        parts: vec![StudyPart {
            name: "part".to_owned(),
            title: "A part".to_owned(),
            question: "what of it?".to_owned(),
            clients: vec![1],
            skipped: Some("no program".to_owned()),
            left_out: vec![LeftOut {
                clients: vec![1],
                server: Some("epoll".to_owned()),
                reason: "too many".to_owned(),
            }],
            scaled: vec!["clients 1 instead of 10".to_owned()],
            published: vec![Published {
                metric: "p99".to_owned(),
                unit: "ms".to_owned(),
                clients: vec![1, 2],
                note: Some("odd".to_owned()),
                values: BTreeMap::from([(
                    "epoll".to_owned(),
                    vec![
                        PublishedValue::Number(1.5),
                        PublishedValue::Absent("none".to_owned()),
                    ],
                )]),
            }],
            scenes: vec![Scene {
                name: "busy".to_owned(),
                title: "All busy".to_owned(),
                question: "What?".to_owned(),
                when: "All are".to_owned(),
                metric: "requests_per_s".to_owned(),
                clients: Some(10),
                beside: vec!["latency_p99_us".to_owned()],
            }],
        }],
        claims: vec![Claim {
            text: "it is quick".to_owned(),
            expect: vec![full_expectation()],
            mechanism: Some(Mechanism {
                text: Some("it is small".to_owned()),
                expect: vec![full_expectation()],
                metrics: vec!["p99".to_owned()],
            }),
            fidelity: Some("another machine".to_owned()),
        }],
    };
    serde_json::to_value(study).expect("a study is JSON")
}

/// An expectation with every possible key.
fn full_expectation() -> Expectation {
    Expectation {
        metric: "p99".to_owned(),
        parts: vec!["part".to_owned()],
        servers: vec!["epoll".to_owned()],
        clients: Some(Clients::Bounds(Bounds {
            min: Some(1),
            max: Some(2),
        })),
        relation: Relation::AtMost,
        baseline: Some(Baseline::Value(Reference {
            server: Some("poll".to_owned()),
            part: Some("part".to_owned()),
            clients: Some(1),
            factor: Some(1.5),
        })),
        margin: Some(5.0),
        causes: vec!["threads".to_owned()],
    }
}

/// A load with every value; some exclude each other.
fn full_spec() -> LoadSpec {
    let second = Some(Duration::from_secs(1));
    LoadSpec {
        protocol: Some("echo".to_owned()),
        path: Some(Paths::one("/a".to_owned())),
        text: true,
        client_threads: Some(ClientThreads::OneEach),
        send: Some(Payload::Text(b"a".to_vec())),
        expect: Some("close".to_owned()),
        http_method: Some("PUT".to_owned()),
        header: vec!["A: b".to_owned()],
        data: Some(Data::Text("c".to_owned())),
        request_file: Some(RequestFile::holding("a.jsonl", "{}").expect("requests")),
        variables: true,
        cookies: true,
        expect_status: Some("404".to_owned()),
        expect_length: Some(3),
        expect_body: Some("text:abc".to_owned()),
        rate: Some(RateRange::constant(5.0)),
        arrival: Some(Spacing::Burst(3)),
        probe_clients: Some(1),
        duration: second,
        requests: Some(50),
        bytes: Some(50),
        requests_per_client: Some(1),
        at_once: Some(1),
        time_limit: second,
        ramp: second,
        warm_up_limit: second,
        connect_rate: Some(1.0),
        syn_retries: Some(1),
        requests_per_connection: Some(1),
        lifetime: second,
        request_timeout: second,
        source: vec!["127.0.0.2".parse().expect("an address")],
        tls: Some(TlsSpec {
            insecure: true,
            cacert: Some("ca.pem".into()),
            cert: Some("client.pem".into()),
            key: Some("client.key".into()),
            sni: Some("a.example".to_owned()),
            alpn: vec!["http/1.1".to_owned()],
            resume: true,
        }),
        files: [("b.json".to_owned(), "0".repeat(64))].into(),
        ..LoadSpec::default()
    }
}

/// A run with every possible value.
pub(crate) fn full_run() -> Value {
    let run = Run {
        schema_version: SCHEMA_VERSION,
        throng_version: "0.1.0".to_owned(),
        throng_build: "release".to_owned(),
        throng_program: full_program(),
        study: StudyInfo {
            name: "full".to_owned(),
            question: "is all of it described?".to_owned(),
        },
        seed: 1,
        started_at: "2026-01-01T12:00:00Z".to_owned(),
        finished_at: Some("2026-01-01T12:00:01Z".to_owned()),
        ending: Ending::Complete,
        arguments: vec!["throng".to_owned()],
        settings: Settings {
            retries: 3,
            fail_if: vec!["p99 > 1s".to_owned()],
            load: full_spec(),
            dialogue: "echo of 1000 bytes".to_owned(),
            clients: vec![1],
            max_clients: [("epoll".to_owned(), 1)].into(),
            method: Method::Slices {
                length_s: Some(0.03),
                rounds: Some(10),
                budget_s: 30.0,
                warm_up_limit_s: 30.0,
                half_width: 0.01,
            },
            runs: 1,
            profiled_runs: 2,
            ready_timeout_s: 1.0,
            stop_timeout_s: 1.0,
            keep_going: true,
            hook_timeout_s: 1.0,
            server_address: Some(std::net::Ipv4Addr::LOCALHOST.into()),
            loss_percent: Some(0.1),
            backlog: 1,
            server_cpus: vec![0],
            client_cpus: vec![1],
            load_threads: 1,
            latency_at_percent: vec![80],
            probes: vec!["cpu".to_owned()],
            control: Some("epoll".to_owned()),
        },
        servers: vec![server()],
        null_server: Some(server()),
        host: full_host(),
        client_hosts: vec![ClientHost {
            name: "lab1".to_owned(),
            rank: 1,
            cpus: 2,
            kernel: "Linux 6".to_owned(),
            clock: Some(ClockOffset {
                offset_ns: -1,
                error_ns: 1,
            }),
        }],
        comparison: Some(Comparison {
            reference: "epoll".to_owned(),
            slower_percent: Some(5.0),
            baseline: Some("old".to_owned()),
        }),
        limit: Some(full_limit()),
        unavailable: side().unavailable,
        trials_planned: 1,
        warnings: vec![warning()],
    };
    serde_json::to_value(run).expect("a run is JSON")
}

/// A trial with every possible value, though no real one has all of them.
pub(crate) fn full_trial() -> Value {
    let trial = Trial {
        index: 0,
        round: 0,
        server: "epoll".to_owned(),
        clients: 1,
        purpose: Purpose::AtLoad,
        attempt: Some(Attempt {
            value: 1,
            share: Some(0.5),
            passed: false,
            reasons: vec!["it failed".to_owned()],
        }),
        at_load: Some(AtLoad {
            percent: 80,
            rate_per_s: Some(1.0),
        }),
        started_at: "2026-01-01T12:00:00Z".to_owned(),
        took_s: 1.0,
        failure: Some(Failure {
            stage: "load".to_owned(),
            reason: "it failed".to_owned(),
            output: "why".to_owned(),
        }),
        invalid: Some(Invalid {
            cause: InvalidCause::GeneratorStopped,
            reason: "it stood still".to_owned(),
        }),
        repeats: Some(1),
        load: Some(full_load()),
        server_side: Some(side()),
        client_side: Some(side()),
        hosts: vec![HostPart {
            name: "lab1".to_owned(),
            rank: 1,
            clients: 1,
            served: Some(1),
            replies: Some(1),
            replies_per_s: Some(1.0),
            p50_us: Some(1.0),
            p99_us: Some(1.0),
            errors: Some(1),
            cpu_s: Some(1.0),
            cpu_share: Some(1.0),
            start_offset_us: Some(1.0),
            clock_error_us: Some(1.0),
            side: Some(side()),
            failure: Some(Failure {
                stage: "load".to_owned(),
                reason: "it failed".to_owned(),
                output: "why".to_owned(),
            }),
        }],
        start_skew: Some(StartSkew::default()),
        network: Some(side()),
        slices: vec![Slice {
            round: 0,
            took_ns: 30_000_000,
            replies: 1,
            server_cpu_ns: Some(1),
            server_cpu_late_ns: Some(1),
            client_cpu_ns: 1,
            mean_us: 1.0,
            p50_us: 1.0,
            p90_us: 1.0,
            p99_us: 1.0,
        }],
        spin: Some(Spin::default()),
        server_counts: Some(ServerCounts {
            refused: counts("descriptors"),
            outcomes: counts("drained"),
            notifications: Some(1),
            workers: vec![ServerWorker::default()],
            ..ServerCounts::default()
        }),
        server_messages: vec![server_message()],
        warnings: vec![warning()],
    };
    serde_json::to_value(trial).expect("a trial is JSON")
}

fn server_message() -> ServerMessage {
    ServerMessage {
        kind: "connections".to_owned(),
        program: "nginx".to_owned(),
        cause: "it is full".to_owned(),
        remedy: "make room".to_owned(),
        times: 1,
        line: "64 worker_connections are not enough".to_owned(),
        found_in: "log".to_owned(),
    }
}

fn full_limit() -> Limit {
    let tried = Some(TriedValue { value: 1, times: 1 });
    Limit {
        find: Find::Rate,
        from: 1,
        max: 1,
        max_reason: "--max is 4".to_owned(),
        factor: 2.0,
        within_percent: 2.0,
        tries: 1,
        time_limit_s: 1.0,
        confirm: 1,
        until: vec!["p99 > 1s".to_owned()],
        clients: Some(1),
        found: vec![LimitResult {
            server: "epoll".to_owned(),
            ending: SearchEnding::Found,
            passed: tried,
            failed: tried,
            stopped_at: Some(StoppedAt {
                value: 1,
                reason: "no room".to_owned(),
            }),
            reason: "it failed".to_owned(),
            cause: Some(Cause {
                kind: "unknown".to_owned(),
                sentence: "no evidence".to_owned(),
                evidence: vec!["looked".to_owned()],
                also: vec!["more".to_owned()],
            }),
            failure: "none".to_owned(),
        }],
    }
}

pub(super) fn counts<N: From<u8>>(kind: &str) -> BTreeMap<String, N> {
    BTreeMap::from([(kind.to_owned(), N::from(1))])
}

fn texts(name: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(name.to_owned(), "some".to_owned())])
}

fn side() -> Side {
    let unsupported = Unsupported {
        reason: "none".to_owned(),
        remedy: "some".to_owned(),
    };
    Side {
        slowest_sample_ms: 0.0,
        metrics: BTreeMap::from([("cpu_percent".to_owned(), 1.0)]),
        unavailable: BTreeMap::from([("cpu".to_owned(), unsupported)]),
        probe_cost_ms: 0.1,
    }
}

fn warning() -> Warning {
    Warning {
        kind: "loopback".to_owned(),
        message: "seen".to_owned(),
        remedy: "do".to_owned(),
    }
}
