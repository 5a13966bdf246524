//! Servers side by side, in slices.

use std::collections::BTreeSet;

use throng::record::findings::replies::NOT_LEVEL;
use throng::record::{self, Method, Purpose, Trial};

use super::{Ran, compare, python};
use crate::support::program::words;

fn method(ran: &Ran) -> Method {
    let run = record::read(&ran.record()).expect("a record");
    run.settings.method
}

/// The timed trial of a server.
fn timed<'a>(trials: &'a [Trial], server: &str) -> &'a Trial {
    let mut of_server = trials
        .iter()
        .filter(|trial| trial.server == server && trial.purpose == Purpose::Timed);
    of_server.next().expect("it has a timed trial")
}

#[test]
fn every_server_has_a_slice_in_each_round_and_all_replies_are_counted() {
    // One that works at rest too, and is stopped then.
    let measured = || {
        compare(&words(
            "epoll select polling --runs 25 --slice 20ms --warm-up-limit 30s",
            &[],
        ))
    };
    // While other tests take the CPUs, a server may get none for 20 slices.
    let mut ran = measured();
    for _ in 0..3 {
        if ran.code != 0 {
            ran = measured();
        }
    }
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    let trials = ran.trials();
    for server in ["epoll", "select", "polling"] {
        let trial = timed(&trials, server);
        assert_eq!(trial.failure, None);
        let load = trial.load.as_ref().expect("it has figures");
        let rounds: BTreeSet<u32> = trial.slices.iter().map(|slice| slice.round).collect();
        // Without a slice if its clients did not run long enough.
        assert_eq!(rounds.len(), trial.slices.len());
        assert!(rounds.iter().all(|round| *round < 25));
        let replies: u64 = trial.slices.iter().map(|slice| slice.replies).sum();
        assert_eq!(load.window.replies, replies);
        assert!(load.errors.is_empty(), "{:?}", load.errors);
        let warm_up = load.warm_up.expect("it is warmed up until it is level");
        assert!(warm_up.fault().is_some() || trial.found(&NOT_LEVEL).is_none());
        let counts = trial.server_counts.as_ref().expect("it is one of ours");
        assert!(counts.requests >= load.verified, "{counts:?}");
    }
    let control = trials
        .iter()
        .find(|trial| trial.purpose == Purpose::Control)
        .expect("the reference is its own control");
    assert!(
        control
            .slices
            .iter()
            .all(|slice| (1..3).contains(&(slice.round % 15)))
    );
    assert!(matches!(
        method(&ran),
        Method::Slices {
            rounds: Some(25),
            ..
        }
    ));
}

#[test]
fn a_foreign_server_takes_part_and_survives_the_death_of_another() {
    let (Some(server), Some(crashing)) = (python(""), python("crash")) else {
        return;
    };
    let whole = compare(&[&server, &server, "-n", "one", "-n", "other", "--runs", "10"]);
    assert_eq!(whole.code, 0, "{} {}", whole.out, whole.err);
    let ended = compare(&words(
        "epoll {} -n good -n bad --protocol http --runs 30 --control none",
        &[&crashing],
    ));
    assert_eq!(ended.code, 1, "{} {}", ended.out, ended.err);
    let trials = ended.trials();
    assert!(timed(&trials, "bad").failure.is_some());
    let good = timed(&trials, "good");
    assert!(good.failure.is_none() && good.load.is_some());
    assert!(!good.slices.is_empty(), "it went on");
}

#[test]
fn options_without_slices_are_rejected_or_use_trials() {
    let refused = compare(&["epoll", "poll", "--method", "slices", "--think", "10ms"]);
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(
        refused
            .err
            .contains("--method slices cannot be used with --think"),
        "{}",
        refused.err
    );
    let refused = compare(&["epoll", "--budget", "5s"]);
    assert_eq!(refused.code, 2, "{}", refused.err);
    let why = "--budget is for slices, which cannot be used with a single server";
    assert!(refused.err.contains(why), "{}", refused.err);
    let trials = compare(&words(
        "epoll poll --rate 500 --runs 1 --duration 100ms",
        &[],
    ));
    assert_eq!(trials.code, 0, "{}", trials.err);
    assert_eq!(method(&trials), Method::Trials);
}
