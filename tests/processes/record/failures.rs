//! Servers that fail: their trials say why, and the run continues with the others.

use std::time::Duration;

use throng::record::{Ending, Foreign, Run, ServerInfo, Trial};
use throng::spec::Think;

use super::{carry_out, plan};
use crate::support::program::{THRONG, words};

/// Clients of each trial.
const CLIENTS: u32 = 40;
/// Of each client before a request: other tests need the CPUs too.
const THINK: Duration = Duration::from_millis(10);

/// Runs a server that is started by this shell command, which gets throng's path as $0 and the options of every server,
/// and a good one. Returns the trial of the first.
fn beside_a_good_one(script: &str) -> Trial {
    beside_a_good_one_for(script, Duration::from_millis(500))
}

/// As that, each under load for so long.
fn beside_a_good_one_for(script: &str, duration: Duration) -> Trial {
    let server = |name: &str, command: &[&str]| ServerInfo {
        name: name.to_owned(),
        command: command.iter().map(ToString::to_string).collect(),
        ..ServerInfo::default()
    };
    let good = words("{} serve epoll --listen 127.0.0.1:0 --json", &[THRONG]);
    let servers = vec![
        server("bad", &["sh", "-c", script, THRONG]),
        server("good", &good),
    ];
    let mut plan = plan(servers, CLIENTS);
    plan.settings.load.duration = Some(duration);
    plan.settings.load.think = Think::Fixed(THINK);
    let (run, trials) = carry_out(&plan);
    assert_eq!(run.ending, Ending::Complete);
    let (bad, good): (Vec<Trial>, Vec<Trial>) =
        trials.into_iter().partition(|trial| trial.server == "bad");
    assert_eq!((bad.len(), good.len()), (1, 1));
    assert_eq!(good[0].failure, None);
    assert!(good[0].server_counts.is_some());
    bad.into_iter().next().expect("there is one")
}

fn run(servers: Vec<ServerInfo>) -> (Run, Vec<Trial>) {
    carry_out(&plan(servers, CLIENTS))
}

/// The stage in which a trial failed, after checking its reason and output.
fn failure(trial: &Trial, reason: &str, output: &str) -> &'static str {
    let failure = trial.failure.as_ref().expect("the trial failed");
    assert!(failure.reason.contains(reason), "{failure:?}");
    assert!(failure.output.contains(output), "{failure:?}");
    assert_eq!(
        (&trial.load, &trial.server_counts),
        (&None, &None),
        "no figures"
    );
    failure.stage.name()
}

#[test]
fn a_server_that_dies_at_once() {
    let trial = beside_a_good_one("echo out of cheese >&2; exit 3");
    assert_eq!(failure(&trial, "exit status: 3", "out of cheese"), "start");
}

#[test]
fn a_server_that_cannot_be_started() {
    let name = |name: &str, program: &str| ServerInfo {
        name: name.to_owned(),
        command: vec![program.to_owned()],
        ..ServerInfo::default()
    };
    let (_, trials) = run(vec![
        name("none", "/nonexistent/server"),
        name("neither", "/"),
    ]);
    for trial in &trials {
        assert_eq!(failure(trial, "cannot start the server", ""), "start");
    }
    assert_eq!(trials.len(), 2);
}

#[test]
fn a_server_that_prints_something_else_and_closes_its_output() {
    let trial = beside_a_good_one("echo hello; exec >&-; exec sleep 60");
    assert_eq!(failure(&trial, "closed its output", "hello"), "start");
}

#[test]
fn a_server_that_never_listens() {
    let trial = beside_a_good_one("echo thinking; exec sleep 60");
    assert_eq!(
        failure(&trial, "did not listen within 3s", "thinking"),
        "start"
    );
}

#[test]
fn a_server_that_listens_nowhere() {
    let trial = beside_a_good_one("echo listening on 127.0.0.1:1; exec sleep 60");
    assert_eq!(
        failure(&trial, "a single request", "listening on"),
        "verify"
    );
}

#[test]
fn a_server_that_dies_under_load() {
    // It is under load once it has more descriptors than clients. To see that takes a while where much else runs.
    let script = format!(
        "\"$0\" serve epoll --listen 127.0.0.1:0 \"$@\" & \
         while [ \"$(ls /proc/$!/fd | wc -l)\" -lt {CLIENTS} ]; do sleep 0.02; done; \
         echo killing it >&2; kill -9 $!; wait $!"
    );
    let trial = beside_a_good_one_for(&script, Duration::from_secs(4));
    assert_eq!(
        failure(
            &trial,
            "the server ended with exit status: 137",
            "killing it"
        ),
        "serve"
    );
}

#[test]
fn a_server_that_cannot_write_its_log() {
    let trial =
        beside_a_good_one("exec \"$0\" serve epoll --listen 127.0.0.1:0 --json --log /dev/full");
    let failure = trial.failure.as_ref().expect("the trial failed");
    assert_eq!(failure.stage.name(), "stop", "{failure:?}");
    assert!(failure.reason.contains("exit status: 1"), "{failure:?}");
    let says = ["cannot write /dev/full", "No space left on device"];
    for says in says {
        assert!(failure.output.contains(says), "{failure:?}");
    }
}

/// Neither while waiting for the line with the address, nor for one that matches `--ready`.
#[test]
fn a_server_that_never_stops_talking_and_never_listens() {
    let trial = beside_a_good_one("exec yes thinking");
    let reason = "did not listen within 3s";
    assert_eq!(failure(&trial, reason, "thinking"), "start");
    let foreign = ServerInfo {
        name: "foreign".to_owned(),
        command: ["yes", "thinking"].map(str::to_owned).to_vec(),
        foreign: Some(Foreign {
            ready: Some("listening".to_owned()),
            ..Foreign::default()
        }),
        ..ServerInfo::default()
    };
    let mut plan = plan(vec![foreign], CLIENTS);
    plan.settings.ready_timeout_s = 1.0;
    let (_, trials) = carry_out(&plan);
    let reason = "did not match --ready within 1s";
    assert_eq!(failure(&trials[0], reason, "thinking"), "start");
}
