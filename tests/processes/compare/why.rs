//! Why servers differ: what is seen of real ones, and what is said where it may not be seen.

use std::fs;

use throng::record::profile::{Part, Profile, Watched};
use throng::record::{Purpose, Trial};

use super::{Ran, compare, python};

/// The profile of a server.
fn profile(trials: &[Trial], server: &str) -> Profile {
    let mut of_server = trials
        .iter()
        .filter(|trial| trial.server == server && trial.purpose == Purpose::Timed);
    let trial = of_server.next().expect("it has a timed trial");
    trial.profile.clone().expect("it was watched")
}

fn watched(arguments: &[&str]) -> Ran {
    let rounds = ["--runs", "6", "--slice", "20ms"];
    let ran = compare(&[arguments, &rounds].concat());
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    ran
}

#[test]
fn the_parts_and_calls_of_built_in_servers_are_seen_and_named() {
    let ran = watched(&["poll", "epoll", "--profile"]);
    let trials = ran.trials();
    let whys = ran.summary()["why"].clone();
    assert_eq!(whys.as_array().map(Vec::len), Some(1), "{whys}");
    for (server, wait) in [("poll", "poll"), ("epoll", "epoll_pwait")] {
        let seen = profile(&trials, server);
        assert!(seen.turns.iter().all(|turn| turn.replies > 0), "{seen:?}");
        if !seen.unavailable.contains_key(&Watched::Calls) {
            let counted: Vec<_> = seen
                .turns
                .iter()
                .filter(|turn| turn.calls.is_some())
                .collect();
            let loses = seen.turns.iter().any(|turn| turn.lost > 0);
            assert!(counted.len() >= 6 || loses, "{seen:?}");
            for turn in counted {
                let calls = turn.calls.as_ref().expect("chosen by it");
                let [received, sent] = ["recvfrom", "sendto"].map(|call| calls.get(call).copied());
                // A read for each request, and a few more of it if it came in pieces.
                assert!(
                    received >= Some(turn.replies) && sent >= Some(turn.replies),
                    "{turn:?}"
                );
                assert!(
                    sent <= Some(turn.replies + turn.replies / 10 + 8),
                    "{turn:?}"
                );
                assert!(calls.get(wait).is_some_and(|count| *count > 0), "{turn:?}");
            }
        }
        if !seen.unavailable.contains_key(&Watched::Stacks) {
            let samples = || seen.turns.iter().flat_map(|turn| &turn.samples);
            let of_call = |name: &str| samples().any(|one| one.part == Part::Call(name.to_owned()));
            assert!(of_call("sendto"), "{seen:?}");
            let stacks = fs::read_dir(ran.record().join("profiles")).expect("stacks are kept");
            let stacks = stacks.flatten().map(|file| fs::read_to_string(file.path()));
            let all: String = stacks.map(Result::unwrap).collect();
            assert!(all.contains(&format!("models::{server}::")), "{all}");
            let page = fs::read_to_string(ran.record().join("report.html")).expect("a report");
            assert!(page.contains("svg class=\"flames\""));
        }
    }
}

#[test]
fn without_watching_nothing_is_said_and_nothing_is_kept() {
    let ran = watched(&["poll", "epoll", "--why", "off"]);
    assert!(ran.trials().iter().all(|trial| trial.profile.is_none()));
    assert!(!ran.out.contains("Why they differ"), "{}", ran.out);
    assert!(!ran.record().join("profiles").exists());
}

#[test]
fn a_server_that_ends_while_it_is_watched_fails_and_the_others_go_on() {
    let (Some(server), Some(crashing)) = (python(""), python("crash")) else {
        return;
    };
    let names = ["-n", "good", "-n", "crashing", "--why", "on"];
    let servers = [server.as_str(), &crashing];
    let ran = compare(&[&servers[..], &names, &["--runs", "6", "--keep-going"]].concat());
    assert_ne!(ran.code, 101, "{}", ran.err);
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
    let trials = ran.trials();
    assert!(
        trials
            .iter()
            .any(|trial| trial.server == "good" && trial.failure.is_none())
    );
}

/// With think time there are no slices: trials that count events are watched instead.
#[test]
fn mostly_idle_clients_are_watched_in_trials() {
    let trials = ["--think", "100ms", "--why", "on", "--runs", "2"];
    let ran = compare(&[&["select", "epoll"][..], &trials].concat());
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    let seen: Vec<_> = ran
        .trials()
        .into_iter()
        .filter_map(|trial| Some((trial.server, trial.purpose, trial.profile?)))
        .collect();
    assert_eq!(seen.len(), 2, "{seen:?}");
    for (server, purpose, profile) in seen {
        assert_eq!(purpose, Purpose::Profiled, "{server}");
        assert!(
            profile.turns.iter().any(|turn| turn.replies > 0),
            "{profile:?}"
        );
        assert!(
            profile.turns.iter().all(|turn| turn.took_ns > 0),
            "{profile:?}"
        );
    }
    assert_eq!(ran.summary()["why"].as_array().map(Vec::len), Some(1));
}

#[test]
fn flame_graphs_need_two_servers() {
    let ran = compare(&["epoll", "--profile"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    let why = "--profile cannot be used with a single server";
    assert!(ran.err.contains(why), "{}", ran.err);
}
