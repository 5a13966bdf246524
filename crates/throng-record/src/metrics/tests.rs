use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::{FailedStage, Run, Window};
use throng_spec::registry::Unsupported;

/// A trial with 100 requests, and these values from probes of the server's side.
fn trial(round: u32, purpose: Purpose, values: &[(&str, f64)]) -> Trial {
    Trial {
        round,
        purpose,
        load: Some(Load {
            clients: 10,
            served: 10,
            verified: 110,
            window: Window {
                replies: 100,
                replies_per_s: Some(50.0 + f64::from(round)),
                ..Window::default()
            },
            ..Load::default()
        }),
        server_side: Some(Side {
            metrics: values
                .iter()
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect(),
            ..Side::default()
        }),
        ..Trial::default()
    }
}

#[test]
fn metrics_are_found_as_users_write_them() {
    for (typed, name) in [
        ("latency_p99_us", "latency_p99_us"),
        ("p99", "latency_p99_us"),
        ("p99.9", "latency_p999_us"),
        ("Latency p99", "latency_p99_us"),
        ("response p99.9", "response_p999_us"),
        ("completion", "completion_s"),
        ("memory", "server_pss_bytes"),
        ("rps", "requests_per_s"),
        (" clients-never-served ", "clients_never_served"),
        ("server cycles", "server_cycles"),
    ] {
        assert_eq!(find(typed).map(|metric| metric.name), Ok(name), "{typed}");
    }
    let suggested = |typed| find(typed).unwrap_err().suggestions;
    assert_eq!(
        suggested("requests_per_server_cpu"),
        ["requests_per_server_cpu_s"]
    );
    assert!(suggested("").is_empty());
    assert_eq!(suggested("latency")[..4], ["p50", "p90", "p95", "p99"]);
    let error = find("weight").unwrap_err().to_string();
    assert_eq!(
        error,
        "unknown metric `weight`; `throng list metrics` lists all"
    );
}

#[test]
fn every_name_is_there_once_and_ends_with_its_unit() {
    let mut names = BTreeSet::new();
    for metric in METRICS {
        for name in metric.aliases.iter().chain([&metric.name]) {
            assert!(names.insert(*name), "{name} twice");
            assert_eq!(find(name).map(|found| found.name), Ok(metric.name));
        }
        let suffix = metric.unit.suffix();
        let per = format!("{suffix}_per_");
        let ends = metric.name.ends_with(suffix) || metric.name.contains(&per);
        // A unit after "per" is part of the name.
        let rate = metric.unit == Unit::PerSecond && metric.name.ends_with("_cpu_s");
        assert!(ends || rate, "{} is in {}", metric.name, metric.unit.name());
        let described = !metric.help.is_empty() && !metric.help.ends_with('.');
        assert!(described && !metric.label.is_empty(), "{}", metric.name);
    }
}

#[test]
fn columns_have_a_place_each_and_small_print_that_is_there() {
    let mut places = BTreeSet::new();
    for metric in METRICS {
        let Some(column) = metric.shown.results else {
            assert!(!metric.shown.compared, "{} has no column", metric.name);
            continue;
        };
        assert!(places.insert(column.place), "{}", metric.name);
        if let Detail::Others(others) = column.detail {
            assert!(
                others
                    .iter()
                    .all(|(name, text)| named(name).is_some() && text.contains("{}"))
            );
        }
    }
    assert!(compared().iter().all(|metric| metric.purpose.is_timed()));
}

#[test]
fn every_value_of_a_side_has_a_metric_of_the_server_and_one_of_the_clients() {
    let of = |subject| -> BTreeMap<&str, &str> {
        let of_side = METRICS.iter().filter(|metric| metric.subject == subject);
        of_side
            .filter_map(|metric| Some((metric.recorded_as()?, metric.name)))
            .collect()
    };
    let (server, clients) = (of(Subject::Server), of(Subject::LoadGenerator));
    assert!(server.keys().eq(clients.keys()));
    for (value, name) in server {
        assert_eq!(name, format!("server_{value}"));
        assert_eq!(clients[value], format!("client_{value}"));
    }
}

#[test]
fn trials_are_combined_as_the_metric_says() {
    let mut trials = [
        trial(0, Purpose::Timed, &[("cpu_ms", 10.0), ("threads", 4.0)]),
        trial(1, Purpose::Timed, &[("cpu_ms", 20.0), ("threads", 6.0)]),
        trial(0, Purpose::Profiled, &[("cycles", 1000.0)]),
    ];
    let values = |trials: &[Trial]| Values::of(trials).unwrap();
    let all = values(&trials);
    let is = |name: &str, expected: f64| {
        let value = all.value(name).unwrap();
        assert!((value - expected).abs() < 1e-9, "{name}: {value}");
    };
    is("server_threads", 5.0);
    is("server_cpu_us_per_request", 150.0);
    // While events are counted, the first request of each client is excluded.
    is("server_cycles_per_request", 10.0);
    is("counted_requests", 100.0);
    let rate = all.quantity("requests_per_s").unwrap();
    assert_eq!((rate.low, rate.high), (Some(50.0), Some(51.0)));
    assert_eq!(
        all.quantity("server_cycles").unwrap().low,
        None,
        "one trial"
    );
    for (trial, errors) in trials.iter_mut().zip([3, 4]) {
        let load = trial.load.as_mut().unwrap();
        load.errors.insert("reset".to_owned(), errors);
        load.never_served = errors as u32;
    }
    let all = values(&trials);
    assert_eq!(all.value("errors"), Some(7.0));
    assert_eq!(all.value("clients_never_served"), Some(4.0));
    assert_eq!(all.quantity("errors").unwrap().low, None);
    trials[1].load = None;
    trials[1].failure = Some(crate::Failure {
        stage: FailedStage::Load,
        reason: "it was lost".to_owned(),
        output: String::new(),
        signal: None,
    });
    let all = values(&trials);
    assert_eq!(all.value("failed_trials"), Some(1.0));
    assert_eq!(all.value("server_threads"), Some(4.0));
    assert!(values(&[]).iter().next().is_none());
}

#[test]
fn slices_of_a_trial_are_what_ratios_are_made_of() {
    let trial = |server_ns: u64| Trial {
        load: Some(Load {
            window: crate::Window {
                replies_per_s: Some(1000.0),
                ..crate::Window::default()
            },
            ..Load::default()
        }),
        slices: (0..8)
            .map(|round| crate::Slice {
                round,
                took_ns: server_ns + u64::from(round) * 1000,
                replies: 10,
                ..crate::Slice::default()
            })
            .collect(),
        ..Trial::default()
    };
    let [a, b] = [10_000_000, 20_000_000].map(|took| Values::of([&trial(took)]).unwrap());
    let samples = [&a, &b].map(|values| values.sample("requests_per_s").unwrap());
    let ratio = samples[0].ratio(samples[1]).unwrap();
    assert_eq!(ratio.pairs, 8);
    assert!((ratio.ratio() - 2.0).abs() < 0.01, "{ratio:?}");
    let quantity = a.quantity("requests_per_s").unwrap();
    let middle = 1e9 * 10.0 / 10_003_500.0;
    assert!((quantity.value - middle).abs() < 1e-3, "{quantity:?}");
    assert!(quantity.low.is_some() && !quantity.is_range && quantity.is_of_slices);
}

#[test]
fn every_rate_of_replies_is_known_as_one_and_all_that_follows_from_it() {
    let follow = METRICS.iter().filter(|metric| metric.follows_rate);
    let names: Vec<&str> = follow.map(|metric| metric.name).collect();
    let expected = [
        "requests_per_s",
        "sessions_per_s",
        "completion_s",
        "clients_per_s",
        "fairness_jain",
        "requests_per_client_mean",
        "requests_per_client_min",
        "slowest_decile_share",
        "requests_per_client_cv",
        "requests_per_client_max_over_min",
        "requests_per_client_mean_life",
        "requests_per_client_min_life",
        "requests_per_client_cv_life",
        "requests_per_client_max_over_min_life",
        "clients_starved",
        "delivery_rate_bytes_per_s",
        "flow_throughput_bytes_per_s",
    ];
    assert_eq!(names, expected);
    // A second of CPU time is not a second of the load.
    for metric in METRICS {
        let is_rate = matches!(metric.unit, Unit::PerSecond | Unit::BytesPerSecond)
            && !metric.name.ends_with("_cpu_s");
        let is_judged = metric.better != Better::Neutral;
        assert!(
            !(is_rate && is_judged) || metric.follows_rate,
            "{}",
            metric.name
        );
        assert!(!metric.follows_rate || is_judged, "{}", metric.name);
    }
}

/// Regression test: in trials with one reply per client, 585 clients counted as starved.
#[test]
fn fairness_needs_replies_enough() {
    for (mean, is_known) in [(1.0, false), (19.9, false), (20.0, true)] {
        let mut trial = trial(0, Purpose::Timed, &[]);
        let load = trial.load.get_or_insert_default();
        load.fairness = Some(crate::Fairness {
            mean,
            min: 0,
            max: 90,
            jain: 0.5,
            slowest_decile_share: 0.01,
            starved: 585,
            early_bias: None,
            early_bias_life: None,
            early_over_late: None,
            life: None,
            bias_absent: None,
        });
        for name in ["fairness_jain", "clients_starved", "slowest_decile_share"] {
            let metric = named(name).unwrap();
            assert_eq!(
                metric.of(&trial).is_some(),
                is_known,
                "{name} of {mean} replies"
            );
            let lacks = metric.lacks_replies([&trial]);
            assert_eq!(lacks, !is_known, "{name} of {mean} replies");
        }
    }
}

#[test]
fn a_sum_is_absent_for_the_reason_of_a_term() {
    let sum = named("memory_bytes_per_client").unwrap();
    let mut trial = trial(0, Purpose::Timed, &[("pss_bytes_per_client", 1000.0)]);
    let kernel = ("kernel_bytes_per_client".to_owned(), 24.0);
    trial
        .network
        .get_or_insert_default()
        .metrics
        .extend([kernel]);
    assert_eq!(sum.of(&trial), Some(1024.0));
    let side = trial.server_side.get_or_insert_default();
    side.metrics.clear();
    let gone = Unsupported {
        reason: "the processes had ended".to_owned(),
        remedy: String::new(),
    };
    side.note_missing("memory", "pss_bytes_per_client", gone.clone());
    assert_eq!(sum.of(&trial), None);
    let records = include_str!("../../../../fuzz/corpus/records.json");
    let records: serde_json::Value = serde_json::from_str(records).unwrap();
    let run: Run = serde_json::from_value(records[0]["run"].clone()).unwrap();
    assert_eq!(sum.why_absent(&run, [&trial]), Some(&gone));
}
