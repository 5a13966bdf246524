//! Tests of all rules, by their findings.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::load_stats::Times;
use crate::{
    AtLoad, HostPart, Latency, OpenLoop, OtherProcess, Purpose, Running, RunningProcess,
    ServerMessage, Settling, Spin, StartSkew, Unsettled, WarmUp, Window,
};
use throng_spec::registry::Unsupported;
use throng_spec::{Close, LoadSpec};

#[test]
fn every_finding_has_its_own_name_and_a_remedy() {
    let mut names: Vec<&str> = FINDINGS.iter().map(|entry| entry.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), FINDINGS.len());
    for entry in FINDINGS {
        assert!(entry.meaning.ends_with('.'), "{}", entry.name);
        assert!(!entry.remedy.is_empty(), "{}", entry.name);
        let finding = entry.found("so".to_owned());
        let stored = serde_json::to_string(&finding).unwrap();
        let read: Finding = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, finding);
    }
    let unknown = r#"{"kind":"nonsense","severity":"note","text":"so"}"#;
    assert!(serde_json::from_str::<Finding>(unknown).is_err());
}

/// A valid trial.
fn good() -> Trial {
    let mut load = Load {
        clients: 50,
        served: 50,
        verified: 1000,
        threads: 2,
        longest_gap_s: Some(0.01),
        ..Load::default()
    };
    load.window.duration_s = 2.0;
    load.window.replies = 900;
    Trial {
        load: Some(load),
        ..Trial::default()
    }
}

/// What the rules find in a trial.
fn found_in(mut trial: Trial, settings: &Settings, cpus: u32) -> Vec<Finding> {
    let host = Host {
        cpus,
        ephemeral_ports: Some((32_768, 60_999)),
        ..Host::default()
    };
    trial.findings.clear();
    trial.examine(&ServerInfo::default(), settings, &host);
    trial.findings
}

/// The same in a valid trial after a change.
fn found(change: impl Fn(&mut Trial, &mut Load)) -> Vec<Finding> {
    let mut trial = good();
    let mut load = trial.load.take().unwrap();
    change(&mut trial, &mut load);
    trial.load = Some(load);
    found_in(trial, &Settings::default(), 4)
}

/// What makes a trial invalid after a change.
fn invalid(change: impl Fn(&mut Trial, &mut Load)) -> Option<Finding> {
    let trial = Trial {
        findings: found(change),
        ..Trial::default()
    };
    trial.invalid().cloned()
}

fn cause(change: impl Fn(&mut Trial, &mut Load)) -> Option<&'static str> {
    invalid(change).map(|finding| finding.kind.0.name)
}

fn names(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().map(|finding| finding.kind.0.name).collect()
}

fn named<T: Copy>(values: &[(&str, T)]) -> BTreeMap<String, T> {
    values
        .iter()
        .map(|(name, value)| ((*name).to_owned(), *value))
        .collect()
}

fn side(metrics: &[(&str, f64)]) -> Side {
    Side {
        metrics: named(metrics),
        ..Side::default()
    }
}

#[test]
fn each_cause_is_found() {
    assert_eq!(cause(|_, _| ()), None);
    let stopped = cause(|_, load| load.longest_gap_s = Some(1.9));
    assert_eq!(stopped, Some("generator-stopped"));
    let silent = cause(|_, load| load.window.replies = 0);
    assert_eq!(silent, Some("no-reply"));
    let unserved = cause(|_, load| load.served = 49);
    assert_eq!(unserved, Some("unserved"));
    let worker = cause(|_, load| load.silent_threads = 1);
    assert_eq!(worker, Some("silent-worker"));
    let failing = cause(|_, load| {
        load.unexpected.insert("503".to_owned(), 100);
    });
    assert_eq!(failing, Some("unexpected-status"));
    let rising = cause(|_, load| {
        load.warm_up = Some(WarmUp {
            took_s: 30.0,
            unsettled: Some(Unsettled {
                what: Settling::Rate,
                change: 0.3,
            }),
        });
    });
    assert_eq!(rising, Some("not-level"));
    let rises = cause(|_, load| load.window.intervals = (1..=20).map(|n| 100 * n).collect());
    assert_eq!(rises, Some("unsteady"));
    let skew = cause(|trial, _| {
        trial.start_skew = Some(StartSkew {
            skew_us: 300_000.0,
            error_us: 1.0,
        });
    });
    assert_eq!(skew, Some("start-skew"));
    let others = cause(|trial, _| {
        trial.network = Some(side(&[("machine_busy_percent", 390.0)]));
        trial.server_side = Some(side(&[("cpu_percent", 90.0)]));
        trial.client_side = Some(side(&[("cpu_percent", 90.0)]));
    });
    assert_eq!(others, Some("others"));
    let late = cause(|_, load| {
        load.open_loop = Some(OpenLoop {
            due: 900,
            ..OpenLoop::default()
        });
        load.lateness = Some(Latency {
            p50_us: 50_000.0,
            p90_us: 60_000.0,
            ..Latency::default()
        });
    });
    assert_eq!(late, Some("behind-schedule"));
}

/// Hosts of 25 clients each: how many of them were served, their replies, and when they began to count.
fn hosts(of: &[(u32, u64, f64)]) -> Vec<HostPart> {
    let hosts = (1..)
        .zip(of)
        .map(|(rank, &(served, replies, began_us))| HostPart {
            name: "lab".to_owned(),
            rank,
            clients: 25,
            served: Some(served),
            replies: Some(replies),
            start_offset_us: Some(began_us),
            ..HostPart::default()
        });
    hosts.collect()
}

#[test]
fn a_host_that_is_silent_slow_or_late_is_named() {
    let reported = |cause, words: &str, of: &[(u32, u64, f64)]| {
        let found = invalid(|trial, _| {
            trial.hosts = hosts(of);
            let last = of.iter().map(|host| host.2).fold(0.0, f64::max);
            trial.start_skew = Some(StartSkew {
                skew_us: last,
                error_us: 1.0,
            });
        })
        .expect("it is invalid");
        assert_eq!((found.kind.0.name, found.text.as_str()), (cause, words));
    };
    reported(
        "silent-host",
        "the clients on lab (rank 2) got no reply",
        &[(25, 900, 0.0), (25, 0, 0.0)],
    );
    reported(
        "slow-host",
        "each client on lab (rank 3) had 10 % of the replies of one on lab (rank 2)",
        &[(25, 1100, 0.0), (25, 1000, 0.0), (25, 100, 0.0)],
    );
    reported(
        "start-skew",
        "client hosts began to measure 300 ms apart, lab (rank 2) last, in a window of 2.00 s",
        &[(25, 900, 0.0), (25, 900, 300_000.0), (25, 900, 9.0)],
    );
    for fine in [
        &[(25, 1000, 0.0), (25, 260, 0.0)][..],
        &[(25, 190, 0.0), (25, 10, 0.0)],
        // The server did not serve them, which is its fault.
        &[(25, 1000, 0.0), (24, 100, 0.0)],
        &[(25, 1000, 0.0)],
    ] {
        assert_eq!(cause(|trial, _| trial.hosts = hosts(fine)), None);
    }
}

#[test]
fn failed_clients_of_a_search_do_not_invalidate_a_trial() {
    let found = cause(|trial, load| {
        trial.purpose = Purpose::Search;
        load.served = 3;
    });
    assert_eq!(found, None);
}

#[test]
fn a_few_unexpected_replies_are_errors_and_no_more() {
    let few = cause(|_, load| {
        load.unexpected.insert("503".to_owned(), 5);
    });
    assert_eq!(few, None);
}

#[test]
fn a_server_without_a_cpu_is_told_from_one_that_is_slow() {
    let found_with = |cpu_percent: f64, waiting: f64| {
        let found = found(|trial, _| {
            trial.server_side = Some(side(&[
                ("cpu_percent", cpu_percent),
                ("tasks_peak", 1.0),
                ("threads_waiting_for_cpu", waiting),
            ]));
        });
        names(&found).contains(&"no-cpu")
    };
    // A neighbour on its CPU; a full CPU; an idle server.
    assert!(found_with(50.0, 0.5));
    assert!(!found_with(98.0, 0.9));
    assert!(!found_with(50.0, 0.1));
}

/// What is found in a load, by name; it had replies.
fn kinds(load: &Load) -> Vec<&'static str> {
    let mut answered = load.clone();
    answered.window.replies = answered.window.replies.max(1);
    names(&of_load(&answered, 2, &BTreeMap::new()))
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
    let findings = of_load(&load, 2, &BTreeMap::new());
    let texts: Vec<&str> = findings.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "3 of 10 replies had an unexpected status: 1 404 and 2 500",
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
        let trial = Trial {
            at_load: Some(at_load),
            load: Some(load),
            ..Trial::default()
        };
        found_in(trial, &Settings::default(), 2)
    };
    assert_eq!(with(990), [], "who waited for a client is in its figures");
    let warned = with(700);
    assert_eq!(warned.len(), 1);
    assert_eq!(names(&warned), ["rate-not-kept"]);
    assert!(warned[0].text.contains("80 %"), "{warned:?}");
    assert!(
        warned[0].text.contains("700 of 1000 requests"),
        "{warned:?}"
    );
}

#[test]
fn a_missed_schedule_is_reported_with_its_cause() {
    assert_eq!(kinds(&open(0, 30.0)), [""; 0]);
    assert_eq!(kinds(&open(0, 5000.0)), ["behind-schedule"]);
    assert_eq!(kinds(&open(500, 5000.0)), ["overloaded"]);
}

fn parts(metrics: &[(&str, f64)], close: Close) -> Vec<(String, String)> {
    let trial = Trial {
        purpose: Purpose::Captured,
        network: Some(side(metrics)),
        ..good()
    };
    let settings = Settings {
        load: LoadSpec {
            close,
            ..LoadSpec::default()
        },
        ..Settings::default()
    };
    let found = found_in(trial, &settings, 2).into_iter();
    found
        .map(|finding| (finding.kind.0.name.to_owned(), finding.text))
        .collect()
}

#[test]
fn connections_that_failed_are_reported_with_how_they_ended() {
    let flows = [
        ("flows", 1000.0),
        ("complete_flows", 1000.0),
        ("refused_flows", 0.0),
        ("unanswered_flows", 2.0),
        ("flows_reset_by_server", 11.0),
        ("capture_dropped", 0.0),
    ];
    let parts = parts(&flows, Close::Orderly);
    let message = "some of 1,000 captured connections failed: 2 without a reply to their SYN and 11 reset \
                   by the server";
    assert_eq!(parts, [("failed-flows".to_owned(), message.to_owned())]);
}

#[test]
fn a_client_that_is_to_reset_has_not_failed() {
    let flows = [("flows", 5.0), ("flows_reset_by_client", 5.0)];
    assert_eq!(parts(&flows, Close::Orderly).len(), 1);
    assert_eq!(parts(&flows, Close::Reset), []);
}

#[test]
fn packets_that_the_kernel_dropped_are_reported() {
    let flows = [
        ("flows", 5.0),
        ("packets", 90_000.0),
        ("capture_dropped", 1200.0),
    ];
    let parts = parts(&flows, Close::Orderly);
    assert_eq!(parts.len(), 1);
    assert_eq!(parts[0].0, "dropped-packets");
    assert!(parts[0].1.contains("1,200 packets"), "{parts:?}");
    assert!(parts[0].1.contains("(90,000 were captured)"), "{parts:?}");
}

#[test]
fn whole_captures_and_none_at_all_are_not_worth_a_word() {
    let flows = [("flows", 5.0), ("complete_flows", 5.0), ("packets", 90.0)];
    assert_eq!(parts(&flows, Close::Orderly), []);
    assert_eq!(parts(&[], Close::Orderly), []);
}

fn repeated(server: &str, replies_per_s: f64, server_ns: f64) -> Trial {
    let window = Window {
        replies_per_s: Some(replies_per_s),
        ..Window::default()
    };
    Trial {
        server: server.to_owned(),
        clients: 10,
        load: Some(Load {
            window,
            ..Load::default()
        }),
        spin: Some(Spin {
            server_before_ns: 1.2,
            server_after_ns: server_ns,
            client_before_ns: 1.3,
            client_after_ns: 1.3,
        }),
        ..Trial::default()
    }
}

fn across(trials: &[Trial]) -> Vec<&'static str> {
    names(&of_trials(trials))
}

#[test]
fn quiet_trials_that_agree_are_not_flagged() {
    let trials = [100.0, 110.0, 95.0].map(|rate| repeated("epoll", rate, 1.21));
    assert!(of_trials(&trials).is_empty());
    assert!(of_trials(&[]).is_empty());
}

#[test]
fn a_cpu_that_was_slower_during_a_trial_is_reported() {
    let mut trials: Vec<Trial> = (0..9).map(|_| repeated("epoll", 100.0, 1.2)).collect();
    trials.push(repeated("epoll", 100.0, 2.28));
    let warnings = of_trials(&trials);
    assert_eq!(warnings[0].kind.0.name, "disturbed");
    assert!(
        warnings[0].text.contains("around 1 of 10 trials")
            && warnings[0].text.contains("1.9 times"),
        "{warnings:?}"
    );
}

#[test]
fn equal_trials_with_distant_results_are_noisy() {
    let far = [100.0, 140.0, 95.0].map(|rate| repeated("fork", rate, 1.2));
    assert_eq!(across(&far), ["noisy"]);
    assert_eq!(across(&far[..2]), [""; 0]);
    let mut counted = far.clone();
    counted[1].purpose = Purpose::Profiled;
    assert_eq!(across(&counted), [""; 0]);
}

/// A trial in which both sides used these CPUs.
fn with_cpu(server: &[(&str, f64)], clients: f64) -> Trial {
    Trial {
        server_side: Some(side(server)),
        client_side: Some(side(&[("cpu_percent", clients)])),
        ..good()
    }
}

/// Regression: two rules for full clients disagreed about a server with one thread on two CPUs, and about servers that
/// are not bound to CPUs.
#[test]
fn clients_are_the_limit_only_while_the_server_could_do_more() {
    let limited = |trial: Trial, server_cpus: &[u32]| {
        let settings = Settings {
            server_cpus: server_cpus.to_vec(),
            ..Settings::default()
        };
        names(&found_in(trial, &settings, 8)).contains(&"client-limited")
    };
    let one_thread = [("cpu_percent", 100.0), ("tasks_peak", 1.0)];
    let two_threads = [("cpu_percent", 100.0), ("tasks_peak", 2.0)];
    assert!(!limited(with_cpu(&one_thread, 200.0), &[0, 1]));
    assert!(limited(with_cpu(&two_threads, 200.0), &[0, 1]));
    assert!(!limited(with_cpu(&two_threads, 150.0), &[0, 1]));
    let many = |percent| with_cpu(&[("cpu_percent", percent), ("tasks_peak", 20.0)], 200.0);
    assert!(limited(many(300.0), &[]), "of 8 CPUs");
    assert!(!limited(many(790.0), &[]));
}

#[test]
fn a_full_host_among_several_is_named() {
    let mut trial = with_cpu(&[("cpu_percent", 50.0), ("tasks_peak", 1.0)], 120.0);
    let part = |name: &str, share| HostPart {
        name: name.to_owned(),
        cpu_share: Some(share),
        ..HostPart::default()
    };
    trial.hosts = vec![part("north", 0.99), part("south", 0.3)];
    let found = found_in(trial, &Settings::default(), 4);
    let text = "the CPUs of north, one of 2 client hosts, were full, and the server's were not";
    assert_eq!(found[0].text, text);
}

#[test]
fn cpu_time_of_other_processes_is_reported() {
    let with = |busy, steal| {
        let mut trial = with_cpu(&[("cpu_percent", 99.0), ("tasks_peak", 1.0)], 90.0);
        trial.network = Some(side(&[
            ("machine_busy_percent", busy),
            ("machine_steal_percent", steal),
        ]));
        let found = found_in(trial, &Settings::default(), 2).into_iter();
        found.map(|finding| finding.text).collect::<String>()
    };
    assert_eq!(with(196.0, 0.0), "");
    assert!(with(230.0, 0.0).contains("41 % of a CPU"));
    assert!(with(190.0, 20.0).contains("host 20 %"));
}

/// Within a millisecond, a single tick of 10 ms is ten CPUs.
#[test]
fn ticks_of_other_processes_do_not_spoil_a_short_trial() {
    let mut trial = with_cpu(&[("cpu_percent", 99.0), ("tasks_peak", 1.0)], 90.0);
    if let Some(load) = &mut trial.load {
        load.window.duration_s = 0.001;
    }
    trial.network = Some(side(&[("machine_busy_percent", 1_400.0)]));
    let found = found_in(trial, &Settings::default(), 2);
    assert!(!names(&found).contains(&"others"), "{found:?}");
}

#[test]
fn a_quota_that_stopped_processes_is_reported() {
    let quota = |throttled| {
        let mut trial = good();
        trial.client_side = Some(side(&[
            ("cpu_quota_percent", 50.0),
            ("quota_periods", 341.0),
            ("throttled_periods", throttled),
        ]));
        found_in(trial, &Settings::default(), 2)
    };
    assert_eq!(names(&quota(2.0)), [""; 0]);
    let text = "a CPU quota of 0.5 CPUs stopped processes in 94 % of its periods";
    assert_eq!(quota(319.0)[0].text, text);
}

#[test]
fn probes_that_struggle_are_reported() {
    let cost = |cost, slowest| {
        Some(Side {
            probe_cost_ms: cost,
            slowest_sample_ms: slowest,
            ..Side::default()
        })
    };
    let with = |server_side: Option<Side>| {
        found(|trial, _| {
            trial.server_side.clone_from(&server_side);
            trial.client_side = cost(1.0, 0.2);
        })
    };
    assert_eq!(with(cost(2.0, 0.3)), []);
    assert_eq!(names(&with(cost(80.0, 0.3))), ["probes"]);
    let slow = with(cost(2.0, 160.0));
    assert!(slow[0].text.contains("160 ms"), "{slow:?}");
}

#[test]
fn processes_outside_the_control_group_are_reported() {
    let with = |used_ms: f64, counted_ms: f64| {
        let metrics = [("cpu_ms", used_ms), ("counted_cpu_ms", counted_ms)];
        names(&found(|trial, _| trial.server_side = Some(side(&metrics))))
    };
    assert_eq!(with(2451.0, 2440.0), [""; 0]);
    assert_eq!(with(100.0, 900.0), [""; 0], "of a slice");
    assert_eq!(with(2451.0, 186.0), ["left-group"]);
}

/// What is known of a run before its first trial.
fn before(host: &Host, settings: &Settings, servers: &[ServerInfo]) -> Vec<Finding> {
    of_run(&Planned {
        host,
        settings,
        servers,
        seeks_limit: false,
    })
}

#[test]
fn known_problems_are_reported_before_the_first_trial() {
    let mut settings = Settings {
        runs: 3,
        server_cpus: vec![0],
        client_cpus: vec![1],
        ..Settings::default()
    };
    let quiet = Host::default();
    let of = |host: &Host, settings: &Settings| names(&before(host, settings, &[]));
    assert_eq!(of(&quiet, &settings), ["few-runs", "loopback"]);
    let busy = Host {
        other_processes: vec![OtherProcess {
            name: "cc1plus".to_owned(),
            cpu_percent: 90.0,
        }],
        virtual_machine: Some("yes".to_owned()),
        ..Host::default()
    };
    let found = before(&busy, &settings, &[]);
    let expected = ["few-runs", "virtual-machine", "loopback", "busy-machine"];
    assert_eq!(names(&found), expected);
    let text = "other processes used 90 % of a CPU when throng started: cc1plus";
    assert_eq!(found[3].text, text);
    settings.runs = 6;
    settings.client_cpus = vec![0, 1];
    assert_eq!(of(&quiet, &settings), ["shared-cpus", "loopback"]);
    settings.server_address = Some("10.213.0.1".parse().unwrap());
    assert_eq!(of(&quiet, &settings), ["shared-cpus"]);
    settings.server_address = Some("127.0.0.2".parse().unwrap());
    assert_eq!(of(&quiet, &settings), ["shared-cpus", "loopback"]);
}

#[test]
fn limitations_of_running_servers_are_reported() {
    let running = |name: &str, pids: &[u32], unknown: bool| {
        let processes = pids.iter().map(|pid| RunningProcess {
            pid: *pid,
            ..RunningProcess::default()
        });
        let why = || Unsupported {
            reason: "it is far away".to_owned(),
            remedy: "go there".to_owned(),
        };
        ServerInfo {
            name: name.to_owned(),
            foreign: Some(Foreign {
                running: Some(Running {
                    processes: processes.collect(),
                    unknown: unknown.then(why),
                    ..Running::default()
                }),
                ..Foreign::default()
            }),
            ..ServerInfo::default()
        }
    };
    let settings = Settings {
        runs: 6,
        server_cpus: vec![0],
        server_address: Some("10.213.0.1".parse().unwrap()),
        ..Settings::default()
    };
    let found = |servers: &[ServerInfo]| before(&Host::default(), &settings, servers);
    assert_eq!(found(&[ServerInfo::default()]), []);
    assert_eq!(names(&found(&[running("a", &[1], false)])), ["ran-before"]);
    let unknown = [running("a", &[], true), running("b", &[], true)];
    assert_eq!(
        names(&found(&unknown)),
        ["clients-side-only", "clients-side-only", "ran-before"]
    );
    let shared = [
        running("a", &[1, 2], false),
        running("b", &[2], false),
        running("c", &[3], false),
    ];
    assert_eq!(names(&found(&shared)), ["ran-before", "same-processes"]);
    assert!(found(&shared)[1].text.starts_with("a and b share"));
}

#[test]
fn a_servers_message_counts_only_after_a_failure() {
    let says = |served: u32| {
        found(move |trial, load| {
            load.served = served;
            trial.server_messages = vec![ServerMessage {
                program: "nginx".to_owned(),
                cause: "it is full".to_owned(),
                times: 3,
                ..ServerMessage::default()
            }];
        })
    };
    assert_eq!(says(50), []);
    let said = says(49);
    assert_eq!(names(&said), ["unserved", "server-says"]);
    assert!(
        said[1]
            .text
            .starts_with("nginx reported 3 times: it is full")
    );
}

/// A distribution, from numbers of requests and their latency in milliseconds.
fn latency(times: &[(u64, f64)]) -> Latency {
    let mut all = Times::default();
    for (count, ms) in times {
        all.record_n((ms * 1e6) as u64, *count);
    }
    all.latency().unwrap()
}

/// What is found in a load with these errors and these network metrics.
fn warned(load: Load, errors: &[(&str, u64)], network: &[(&str, f64)]) -> Vec<String> {
    let window = Window {
        replies: 1,
        ..Window::default()
    };
    let trial = Trial {
        load: Some(Load {
            errors: named(errors),
            clients: 1000,
            served: 1000,
            connections: 1000,
            connected: 1000,
            window,
            ..load
        }),
        network: Some(side(network)),
        ..Trial::default()
    };
    let settings = Settings {
        backlog: 1,
        ..Settings::default()
    };
    let findings = found_in(trial, &settings, 2).into_iter();
    findings
        .map(|finding| format!("{}: {}", finding.kind.name, finding.text))
        .collect()
}

fn connecting(times: &[(u64, f64)]) -> Load {
    Load {
        connect_time: Some(latency(times)),
        ..Load::default()
    }
}

fn serving(times: &[(u64, f64)]) -> Load {
    Load {
        service_time: Some(latency(times)),
        ..Load::default()
    }
}

const QUIET: [(&str, f64); 3] = [
    ("listen_overflows", 0.0),
    ("accept_backlog", 4096.0),
    ("delayed_acks", 0.0),
];

#[test]
fn normal_trials_have_no_findings() {
    let load = connecting(&[(990, 0.3), (10, 400.0)]);
    assert_eq!(warned(load, &[], &QUIET), [""; 0]);
    assert_eq!(warned(Load::default(), &[], &[]), [""; 0]);
}

#[test]
fn late_connections_are_joined_with_the_queue_that_made_them_late() {
    let load = connecting(&[(873, 0.3), (100, 1001.0), (27, 3020.0)]);
    let network = [
        ("listen_overflows", 311.0),
        ("listen_drops", 311.0),
        ("accept_backlog", 1.0),
    ];
    assert_eq!(
        warned(load.clone(), &[], &network),
        [
            "late-connections: 127 of 1,000 clients connected in steps of 1 s and 3 s: the accept \
             queue of 1 (--backlog 1) overflowed 311 times and SYNs were dropped"
        ]
    );
    assert_eq!(
        warned(load, &[("connect-timeout", 5)], &[]),
        [
            "late-connections: 127 of 1,000 clients connected in steps of 1 s and 3 s and 5 did not \
             connect in time, as if SYNs were lost and retransmitted"
        ]
    );
}

#[test]
fn a_full_queue_is_reported_even_without_late_clients() {
    let network = [("listen_overflows", 2.0), ("accept_backlog", 1.0)];
    assert_eq!(
        warned(connecting(&[(1000, 0.2)]), &[], &network),
        [
            "late-connections: the accept queue of 1 (--backlog 1) overflowed 2 times: handshakes \
             completed only on the clients' side"
        ]
    );
}

#[test]
fn unanswered_clients_are_reported_too() {
    let load = Load {
        never_served: 34,
        first_reply: Some(Latency {
            max_us: 14_336_131.0,
            ..latency(&[(26, 1000.0)])
        }),
        ..connecting(&[(10, 1.0), (50, 1010.0)])
    };
    let network = [("listen_overflows", 99.0), ("accept_backlog", 1.0)];
    assert_eq!(
        warned(load, &[], &network),
        [
            "late-connections: 50 of 1,000 clients connected only after 1 s, 34 clients got no reply and \
             the last client got its first reply after 14.3 s: the accept queue of 1 (--backlog 1) overflowed 99 \
             times and SYNs were dropped"
        ]
    );
}

#[test]
fn a_queue_of_handshakes_is_another_one() {
    let network = [("syn_queue_drops", 40.0), ("accept_backlog", 4096.0)];
    assert_eq!(
        warned(connecting(&[(960, 0.2), (40, 1010.0)]), &[], &network),
        [
            "late-connections: 40 of 1,000 clients connected only after 1 s: the SYN \
             queue was full and 40 SYNs were dropped"
        ]
    );
}

#[test]
fn a_server_that_is_slow_to_be_reached_is_no_step() {
    // Anywhere between one and five seconds: no timer does that.
    let spread: Vec<(u64, f64)> = (0..100)
        .map(|place| (1, 1000.0 + 40.0 * f64::from(place)))
        .collect();
    assert_eq!(warned(connecting(&spread), &[], &QUIET), [""; 0]);
}

#[test]
fn a_plateau_at_40_ms_is_held_back_acknowledgements() {
    let load = serving(&[(20, 0.1), (500, 40.3), (480, 48.9), (3, 60.0)]);
    let warned_of = warned(load.clone(), &[], &[("delayed_acks", 981.0)]);
    assert_eq!(warned_of.len(), 1);
    assert!(
        warned_of[0].starts_with(
            "delayed-ack: 980 of 1003 requests took about 40 ms: one side delayed its ACK \
             (981 delayed ACKs)"
        ),
        "{warned_of:?}"
    );
    // Without the kernel's counter, it is a server that takes 40 ms.
    assert_eq!(warned(load.clone(), &[], &[("delayed_acks", 3.0)]), [""; 0]);
    assert_eq!(warned(load, &[], &[]), [""; 0]);
}

#[test]
fn times_around_40_ms_are_no_plateau() {
    let spread: Vec<(u64, f64)> = (10..90).map(|ms| (20, f64::from(ms))).collect();
    let network = [("delayed_acks", 100_000.0)];
    assert_eq!(warned(serving(&spread), &[], &network), [""; 0]);
    let later = serving(&[(900, 0.1), (80, 201.0)]);
    assert!(warned(later, &[], &network)[0].contains("80 of 980 requests took about 200 ms"));
}

#[test]
fn segments_sent_again_on_loopback_are_reported_with_what_points_at_the_cause() {
    let network = [
        ("segments_sent", 100_000.0),
        ("segments_retransmitted", 50.0),
        ("memory_pressures", 2.0),
        ("retransmit_timeouts", 0.0),
    ];
    assert_eq!(
        warned(Load::default(), &[], &network),
        [
            "retransmissions: 50 of 100000 segments were retransmitted during the measurement, \
             although loopback loses none by itself: TCP ran short of memory (2 times)"
        ]
    );
    let few = [("segments_sent", 1e9), ("segments_retransmitted", 50.0)];
    assert_eq!(warned(Load::default(), &[], &few), [""; 0]);
}

#[test]
fn ports_that_run_out_are_predicted() {
    let network = [("time_wait_max", 20_000.0)];
    let warned_of = warned(Load::default(), &[("no-port", 7)], &network);
    assert_eq!(
        warned_of,
        [
            "few-ports: 7 connections got no local port: up to 20000 closed connections kept \
             their ports for a minute (TIME_WAIT), of 28232 per source address"
        ]
    );
    assert_eq!(
        warned(Load::default(), &[], &[("time_wait_max", 900.0)]),
        [""; 0]
    );
}

proptest! {
    #[test]
    fn every_connection_is_counted_in_one_step_at_most(
        times in prop::collection::vec((1_u64..50, 0.01_f64..130_000.0), 1..40),
    ) {
        let load = connecting(&times);
        let total: u64 = times.iter().map(|(count, _)| count).sum();
        let late: u64 = connections::late_by_seconds(&load).iter().map(|(_, count)| count).sum();
        prop_assert!(late <= total);
    }
}

#[test]
fn a_server_of_others_has_no_option_and_reconnects_are_not_clients() {
    let load = Load {
        clients: 50,
        connections: 4090,
        ..connecting(&[(4000, 0.2), (90, 1010.0)])
    };
    let network = [("listen_overflows", 426.0), ("accept_backlog", 5.0)];
    let found = of_load(&load, 2, &named(&network));
    let warning = found
        .iter()
        .find(|finding| finding.is(&connections::LATE_CONNECTIONS))
        .expect("the queue overflowed");
    assert_eq!(
        warning.text,
        "90 of 4,090 connections opened only after 1 s: the accept queue of 5 overflowed 426 times and SYNs were \
         dropped"
    );
    assert!(!warning.remedy.contains("--backlog"), "{}", warning.remedy);
}
