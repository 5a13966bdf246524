use std::collections::BTreeMap;

use super::*;
use crate::{
    FailedStage, Failure, Find, Host, HostPart, Load, ServerInfo, ServerMessage, Settings, Side,
};
use throng_spec::ServerCounts;

fn side(figures: &[(&str, f64)]) -> Side {
    let figures = figures.iter();
    let metrics = figures.map(|(name, value)| ((*name).to_owned(), *value));
    Side {
        metrics: metrics.collect(),
        ..Side::default()
    }
}

fn counts(kind: &str, count: u64) -> BTreeMap<String, u64> {
    BTreeMap::from([(kind.to_owned(), count)])
}

/// 100 of 101 clients were served.
fn broken() -> Trial {
    Trial {
        clients: 101,
        load: Some(Load {
            clients: 101,
            connected: 101,
            served: 100,
            threads: 1,
            errors: counts("closed-early", 1),
            ..Load::default()
        }),
        ..Trial::default()
    }
}

fn refusing(why: &str) -> Trial {
    Trial {
        server_counts: Some(ServerCounts {
            refused: counts(why, 1),
            ..ServerCounts::default()
        }),
        ..broken()
    }
}

fn died(how: &str, signal: Option<i32>, output: &str) -> Trial {
    Trial {
        load: None,
        failure: Some(Failure {
            stage: FailedStage::Serve,
            reason: format!("the server ended with {how}"),
            output: output.to_owned(),
            signal,
        }),
        ..broken()
    }
}

fn cause(trial: &Trial) -> Cause {
    let server = ServerInfo {
        command: ["throng", "serve", "epoll", "--max-clients", "100"]
            .map(str::to_owned)
            .to_vec(),
        ..ServerInfo::default()
    };
    let settings = Settings {
        server_cpus: vec![0],
        client_cpus: vec![1],
        ..Settings::default()
    };
    let circumstances = Circumstances {
        server: &server,
        settings: &settings,
        host: &Host::default(),
        find: Find::Clients,
    };
    of(&[], &[trial], &circumstances)
}

#[test]
fn the_servers_own_message_comes_first() {
    let mut trial = refusing("max-clients");
    trial.server_side = Some(side(&[
        ("descriptors_peak", 110.0),
        ("descriptors_limit", 110.0),
    ]));
    let cause = cause(&trial);
    assert_eq!(cause.kind.name, "max-clients");
    assert_eq!(cause.sentence, "its --max-clients is 100");
    assert_eq!(
        cause.evidence,
        ["it rejected 1 of 101 clients because of that limit"]
    );
    assert_eq!(cause.also.len(), 1, "{cause:?}");
    for (why, kind) in [
        ("descriptors", "server-descriptors"),
        ("set-size", "set-size"),
        ("pool-size", "pool-size"),
        ("threads", "threads"),
        ("processes", "threads"),
    ] {
        assert_eq!(super::tests::cause(&refusing(why)).kind.name, kind);
    }
}

#[test]
fn a_servers_message_comes_before_limits_reached() {
    let mut trial = broken();
    let message = |kind: &str, line: &str| ServerMessage {
        kind: kind.to_owned(),
        program: "nginx".to_owned(),
        cause: "each of its workers may have 64 connections (worker_connections)".to_owned(),
        remedy: "raise worker_connections".to_owned(),
        times: 3,
        line: line.to_owned(),
        found_in: "log".to_owned(),
    };
    trial.server_messages = vec![message(
        "connections",
        "64 worker_connections are not enough",
    )];
    trial.server_side = Some(side(&[("cpu_percent", 99.0), ("tasks_peak", 1.0)]));
    let cause = cause(&trial);
    assert_eq!(cause.kind.name, "server-message");
    assert!(cause.sentence.contains("64 connections"), "{cause:?}");
    assert_eq!(
        cause.evidence,
        [
            "nginx reported 3 times: 64 worker_connections are not enough",
            "raise worker_connections"
        ]
    );
    trial.server_messages = vec![message(
        "server-descriptors",
        "accept4() failed (24: Too many open files)",
    )];
    trial.server_side = Some(side(&[
        ("descriptors_peak", 20.0),
        ("descriptors_limit", 60.0),
    ]));
    let cause = super::tests::cause(&trial);
    assert_eq!(cause.kind.name, "server-descriptors");
    assert!(cause.sentence.contains("is 60"), "{cause:?}");
    assert!(
        cause.evidence[0].contains("(24: Too many open files)"),
        "{cause:?}"
    );
}

#[test]
fn a_heap_that_is_full_is_no_memory_of_the_machine() {
    let line = "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory";
    let mut trial = died("signal: 6 (SIGABRT)", Some(6), line);
    trial.server_messages = vec![ServerMessage {
        kind: "heap".to_owned(),
        cause: "its JavaScript heap is full".to_owned(),
        ..ServerMessage::default()
    }];
    let cause = cause(&trial);
    assert_eq!(
        (cause.kind.name, cause.sentence.as_str()),
        ("server-message", "its JavaScript heap is full")
    );
    assert_eq!(cause.also, [""; 0]);
}

#[test]
fn a_reached_limit_explains_servers_that_report_nothing() {
    let mut trial = broken();
    trial.server_side = Some(side(&[
        ("descriptors_peak", 299.0),
        ("descriptors_limit", 300.0),
    ]));
    let cause = cause(&trial);
    assert_eq!(cause.kind.name, "server-descriptors");
    assert!(cause.sentence.contains("is 300"), "{cause:?}");
    trial.server_side = Some(side(&[("pids_refused", 3.0), ("pids_limit", 40.0)]));
    let cause = super::tests::cause(&trial);
    assert_eq!(cause.kind.name, "threads");
    assert!(cause.sentence.contains("pids.max"), "{cause:?}");
    trial.server_side = Some(side(&[("tasks_peak", 40.0), ("processes_limit", 40.0)]));
    assert!(
        super::tests::cause(&trial)
            .sentence
            .contains("RLIMIT_NPROC")
    );
    trial.server_side = Some(side(&[("tasks_peak", 40.0), ("machine_tasks_limit", 50.0)]));
    assert_eq!(super::tests::cause(&trial).kind.name, "unknown");
}

#[test]
fn threads_that_find_no_memory_are_no_limit_of_threads() {
    let mut trial = refusing("threads");
    trial.server_side = Some(side(&[
        ("address_space_peak_bytes", 99e6),
        ("address_space_limit_bytes", 100e6),
    ]));
    let cause = cause(&trial);
    assert_eq!(cause.kind.name, "memory");
    assert!(cause.sentence.contains("RLIMIT_AS"), "{cause:?}");
}

#[test]
fn how_a_server_died_gives_the_reason() {
    let mut trial = died("signal: 9 (SIGKILL)", Some(9), "");
    trial.server_side = Some(side(&[("oom_kills", 1.0), ("memory_limit_bytes", 64e6)]));
    let killed = cause(&trial);
    assert_eq!(killed.kind.name, "memory");
    assert!(killed.evidence[0].contains("SIGKILL"), "{killed:?}");
    let words = "line\nMemoryError\n";
    assert_eq!(
        cause(&died("exit status: 1", None, words)).kind.name,
        "memory"
    );
    let crash = cause(&died("signal: 11 (SIGSEGV)", Some(11), "boom\n"));
    assert_eq!(crash.kind.name, "crash");
    assert_eq!(crash.sentence, "the server ended with signal: 11 (SIGSEGV)");
    assert_eq!(crash.evidence[1], "its last output: boom");
}

#[test]
fn threads_that_find_no_mapping_are_reported_by_how_many_there_were_before() {
    let words = "failed to allocate an alternative stack: Cannot allocate memory (os error 12)\n";
    let mut trial = died("signal: 6 (SIGABRT)", Some(6), words);
    trial.server_side = Some(side(&[("mappings_limit", 65_530.0)]));
    let mut passed = broken();
    passed.server_side = Some(side(&[("mappings", 65_300.0)]));
    let circumstances = Circumstances {
        server: &ServerInfo::default(),
        settings: &Settings::default(),
        host: &Host::default(),
        find: Find::Clients,
    };
    let cause = of(&[&passed], &[&trial], &circumstances);
    assert_eq!(cause.kind.name, "mappings");
    assert!(cause.evidence[0].contains("65,300"), "{cause:?}");
}

#[test]
fn clients_that_nobody_accepts_are_distinguished_from_a_queue_that_overflows() {
    let mut trial = broken();
    let load = trial.load.as_mut().unwrap();
    load.errors.clear();
    load.never_served = 1;
    trial.network = Some(side(&[("accept_queue_max", 1.0), ("accept_backlog", 5.0)]));
    let stopped = cause(&trial);
    assert_eq!(stopped.kind.name, "accept-queue");
    assert!(stopped.sentence.contains("at most 100"), "{stopped:?}");
    trial.network = Some(side(&[
        ("accept_queue_max", 6.0),
        ("accept_backlog", 5.0),
        ("listen_overflows", 9.0),
    ]));
    let overflowed = cause(&trial);
    assert_eq!(overflowed.sentence, "its accept queue of 5 overflowed");
}

/// Regression: a server that had accepted all clients, and answered none, was said to accept none at a time.
#[test]
fn clients_that_were_all_accepted_did_not_fail_in_the_accept_queue() {
    let mut trial = broken();
    let load = trial.load.as_mut().unwrap();
    load.errors.clear();
    load.never_served = 1;
    trial.server_counts = Some(ServerCounts {
        accepted: 101,
        ..ServerCounts::default()
    });
    let queue = [("accept_queue_max", 6.0), ("listen_overflows", 9.0)];
    trial.network = Some(side(&queue));
    assert_ne!(cause(&trial).kind.name, "accept-queue");
    let short = [("memory_pressures", 2.0), ("segments_retransmitted", 30.0)];
    trial.network = Some(side(&[queue, short].concat()));
    let dropped = cause(&trial);
    assert_eq!(dropped.kind.name, "tcp-memory");
    assert!(dropped.evidence[0].contains("30 segments"), "{dropped:?}");
    let counts = trial.server_counts.as_mut().unwrap();
    counts.accepted = 60;
    trial.network = Some(side(&[("accept_queue_max", 6.0)]));
    assert!(cause(&trial).sentence.contains("at most 60"));
}

#[test]
fn a_full_cpu_is_the_cause_where_nothing_else_is() {
    let mut trial = broken();
    trial.load.as_mut().unwrap().errors.clear();
    trial.server_side = Some(side(&[("cpu_percent", 99.0), ("tasks_peak", 1.0)]));
    trial.client_side = Some(side(&[("cpu_percent", 40.0)]));
    assert_eq!(cause(&trial).kind.name, "server-cpu");
    trial.server_side = Some(side(&[("cpu_percent", 50.0), ("tasks_peak", 1.0)]));
    assert_eq!(cause(&trial).kind.name, "server-waits");
    trial.client_side = Some(side(&[("cpu_percent", 99.0)]));
    assert_eq!(cause(&trial).kind.name, "client");
}

#[test]
fn of_several_client_hosts_the_fullest_shows_whether_the_clients_could_do_no_more() {
    let mut trial = broken();
    trial.load.as_mut().unwrap().errors.clear();
    trial.server_side = Some(side(&[("cpu_percent", 50.0), ("tasks_peak", 1.0)]));
    let part = |name: &str, share| HostPart {
        name: name.to_owned(),
        cpu_share: Some(share),
        ..HostPart::default()
    };
    trial.hosts = vec![part("north", 0.99), part("south", 0.3)];
    let full = cause(&trial);
    assert_eq!(full.kind.name, "client");
    assert_eq!(
        full.evidence[0],
        "the busiest of 2 client hosts was north, with 99 % of its CPUs"
    );
    trial.hosts[0].cpu_share = Some(0.4);
    assert_eq!(cause(&trial).kind.name, "server-waits");
}

#[test]
fn without_a_sign_the_report_lists_what_was_checked() {
    let unknown = cause(&broken());
    assert_eq!(unknown.kind.name, "unknown");
    assert!(unknown.evidence[0].starts_with("checked: "));
}

#[test]
fn unserved_clients_have_a_cause_if_something_kept_them_out() {
    let server = ServerInfo {
        structural_limit: Some("it serves one client at a time".to_owned()),
        keeps_waiting: true,
        ..ServerInfo::default()
    };
    let circumstances = Circumstances {
        server: &server,
        settings: &Settings::default(),
        host: &Host::default(),
        find: Find::Clients,
    };
    let unserved =
        |trials: &[&Trial]| of_unserved(trials, &circumstances).map(|cause| cause.kind.name);
    // A full CPU only makes clients wait.
    let mut busy = broken();
    busy.server_side = Some(side(&[("cpu_percent", 100.0), ("tasks_peak", 1.0)]));
    assert_eq!(unserved(&[&busy]), None);
    let mut queued = broken();
    queued.network = Some(side(&[("listen_overflows", 9.0), ("accept_backlog", 5.0)]));
    let load = queued.load.as_mut().expect("it has a load");
    load.errors = counts("unanswered", 1);
    load.never_served = 1;
    assert_eq!(unserved(&[&busy, &queued]), Some("design"));
    let refused = refusing("threads");
    assert_eq!(unserved(&[&queued, &refused]), Some("threads"));
    // Trials in which all clients were served are ignored.
    let mut complete = refusing("threads");
    complete.load.as_mut().expect("it has a load").served = 101;
    assert_eq!(unserved(&[&complete]), None);
    let foreign = ServerInfo::default();
    let circumstances = Circumstances {
        server: &foreign,
        ..circumstances
    };
    let cause = of_unserved(&[&queued], &circumstances).expect("its queue was full");
    assert_eq!(cause.sentence, "its accept queue of 5 overflowed");
}
