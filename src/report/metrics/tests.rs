use super::*;
use crate::report::fixture;

#[test]
fn metrics_are_found_as_users_write_them() {
    for (typed, name) in [
        ("p99", "p99"),
        ("Service p99", "p99"),
        ("service_mean", "service_mean"),
        ("response p99.9", "response_p99.9"),
        ("pss", "memory"),
        (" never-served ", "never_served"),
        ("server cycles", "server_cycles"),
    ] {
        assert_eq!(Metric::find(typed).unwrap().name, name);
    }
    assert_eq!(
        Metric::find("replies_per_cpu").unwrap_err(),
        Some("replies_per_cpu_s")
    );
    assert_eq!(Metric::find("").unwrap_err(), None);
    assert_eq!(
        (RATE.name, RATE_PER_CPU.name),
        ("replies_per_s", "replies_per_cpu_s")
    );
    let compared = &METRICS[..COMPARED];
    assert_eq!(compared[COMPARED - 1].name, "service_sample");
    assert!(compared.iter().all(|metric| metric.purpose.is_timed()));
}

#[test]
fn every_name_is_there_once_and_can_be_typed() {
    let mut names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
    let others = METRICS.iter().map(|metric| metric.also);
    names.extend(others.filter(|name| !name.is_empty()));
    for name in &names {
        assert!(Metric::find(name).is_ok(), "{name}");
    }
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn each_comes_from_the_trials_of_its_purpose_only() {
    let (_, mut trials) = fixture::record();
    trials.extend(fixture::captured(&trials));
    for metric in METRICS {
        for trial in &trials {
            let purpose = if trial.purpose.is_timed() {
                Purpose::Timed
            } else {
                trial.purpose
            };
            let value = metric.of(trial);
            assert!(
                value.is_none() || purpose == metric.purpose,
                "{}",
                metric.name
            );
        }
    }
}

#[test]
fn totals_are_those_of_the_trial_and_their_share_is_for_the_replies_counted() {
    let (run, trials) = fixture::record();
    let of_epoll = || {
        let trials = trials.iter();
        trials.filter(|trial| trial.server == "epoll" && trial.clients == 100)
    };
    let value = |name: &str| {
        let metric = Metric::find(name).unwrap();
        metric.over(of_epoll(), run.seed).unwrap().median
    };
    let (total, replies) = (value("server_cycles"), value("counted_replies"));
    assert!((total / replies - value("server_cycles_per_reply")).abs() < 1e-6);
    let counted = of_epoll().find(|trial| trial.purpose == Purpose::Counted);
    let side = counted.unwrap().server_side.as_ref().unwrap();
    assert!((total - side.metrics["cycles"]).abs() < 1e-6);
    let clock_ns = side.metrics["task_clock_ns"];
    assert!((value("server_task_clock") * 1e3 - clock_ns).abs() < 1.0);
    assert!(value("server_instructions_per_cycle") < 1.0);
    let cost = value("cpu_per_reply");
    assert!((value("replies_per_cpu_s") * cost / 1e6 - 1.0).abs() < 0.05);
}

#[test]
fn trials_make_one_value_as_the_metric_says() {
    let (run, mut trials) = fixture::record();
    trials.retain(|trial| trial.server == "fork" && trial.clients == 1000);
    let over = |trials: &[Trial], name: &str| {
        let metric = Metric::find(name).unwrap();
        metric.over(trials, run.seed)
    };
    assert!((over(&trials, "failed_trials").unwrap().median - 2.0).abs() < 1e-9);
    let one = over(&trials, "replies_per_s").unwrap();
    assert_eq!(one.low, None, "an interval of one trial");
    trials.retain(|trial| trial.failure.is_none() && trial.purpose.is_timed());
    let mut again = trials[0].clone();
    let load = again.load.as_mut().unwrap();
    load.never_served = 7;
    load.window.replies_per_s *= 2.0;
    trials.push(again);
    let two = over(&trials, "replies_per_s").unwrap();
    assert!(two.low < Some(two.median) && two.high > Some(two.median));
    assert!((over(&trials, "never_served").unwrap().median - 7.0).abs() < 1e-9);
    assert_eq!(over(&[], "errors"), None);
}

#[test]
fn the_reason_of_an_absent_one_is_known() {
    let (run, mut trials) = fixture::record();
    let none = Unsupported {
        reason: "none".to_owned(),
        remedy: "buy one".to_owned(),
    };
    for trial in &mut trials {
        if let (Purpose::Counted, Some(side)) = (trial.purpose, &mut trial.server_side) {
            let name = "counters: cycles".to_owned();
            side.unavailable.insert(name, none.clone());
        }
    }
    let why = |name: &str| Metric::find(name).unwrap().why_absent(&run, &trials);
    assert_eq!(why("server_cycles"), Some(&none));
    assert_eq!(why("server_cycles_per_reply"), Some(&none));
    assert_eq!(why("server_ghz"), Some(&none), "it follows from cycles");
    assert_eq!(why("client_cycles"), None);
    assert_eq!(why("server_branches"), None);
    assert_eq!(why("p99"), None);
}

#[test]
fn early_clients_are_compared_with_late_ones() {
    let (run, trials) = fixture::record();
    let value = |server: &str, clients: u32, name: &str| {
        let of_server = trials
            .iter()
            .filter(|trial| trial.server == server && trial.clients == clients);
        Metric::find(name)
            .unwrap()
            .over(of_server, run.seed)
            .map(|value| value.median)
    };
    // Each tenth of `thread` gets 4 % of the first one's less.
    let by = value("thread", 100, "early_over_late").unwrap();
    assert!((by - 1.0 / 0.64).abs() < 0.01, "{by}");
    let by = value("epoll", 1000, "early_over_late").unwrap();
    assert!((by - 1.0).abs() < 0.01, "{by}");
    assert!(value("thread", 100, "early_bias") > value("epoll", 100, "early_bias"));
}

#[test]
fn trials_below_the_maximum_and_controls_are_no_part_of_the_value() {
    let (run, trials) = fixture::below();
    let of_epoll: Vec<Trial> = trials
        .into_iter()
        .filter(|trial| trial.server == "epoll" && trial.clients == 100)
        .collect();
    let timed = of_epoll
        .iter()
        .filter(|trial| trial.purpose == Purpose::Timed);
    assert!(timed.clone().count() < of_epoll.len());
    assert_eq!(RATE.over(&of_epoll, run.seed), RATE.over(timed, run.seed));
}
