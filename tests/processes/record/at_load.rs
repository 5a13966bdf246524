//! Trials at a part of the rate that a server reached.

use serde_json::Value;
use throng::record::{Purpose, ServerInfo, Trial, counting};

use super::{carry_out, plan};
use crate::support::runs::{finish, json, number, text, throng_run, trial_lines};
use crate::support::schemas::Schemas;

/// The median rate of a server's timed trials that count: one or two.
fn reached(trials: &[Value], server: &Value) -> f64 {
    let typed = trials
        .iter()
        .map(|trial| serde_json::from_value(trial.clone()).expect("a trial"));
    let typed: Vec<Trial> = typed.collect();
    let counting = counting(&typed);
    let timed = counting
        .iter()
        .filter(|trial| trial.purpose == Purpose::Timed);
    let own = timed.filter(|trial| *server == *trial.server);
    let rates: Vec<f64> = own
        .filter_map(|trial| trial.load.as_ref()?.window.replies_per_s)
        .collect();
    assert!(matches!(rates.len(), 1 | 2));
    rates.iter().sum::<f64>() / rates.len() as f64
}

#[test]
fn response_times_are_taken_at_a_part_of_the_rate_that_was_reached() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let mut command = throng_run(directory, "500ms");
    command.args(["--models", "epoll,poll", "--clients", "20"]);
    command.args(["--runs", "2", "--seed", "3", "--latency-at", "40", "--json"]);
    finish(command);
    let schemas = Schemas::read();
    schemas.check("run", &json(&directory.join("run.json")));
    let trials = trial_lines(directory);
    assert_eq!(trials.len(), 6);
    // They come when the rates are known.
    assert!(
        trials[4..]
            .iter()
            .all(|trial| trial["purpose"] == "at-load")
    );
    for trial in &trials[4..] {
        schemas.check("trial", trial);
        assert!(trial["failure"].is_null(), "{trial:#}");
        assert_eq!(trial["at_load"]["percent"], 40);
        let asked = number(&trial["at_load"]["rate_per_s"]);
        let part = asked / reached(&trials, &trial["server"]);
        assert!((part - 0.4).abs() < 0.001, "{part}");
        let load = &trial["load"];
        assert_eq!(load["clients"], 20);
        let open = &load["open_loop"];
        assert!(number(&open["response_time"]["p50_us"]) > 0.0);
        assert!(trial["server_side"]["metrics"]["cpu_ms"].is_number());
        // In expectation, since arrivals are random: the rate times the duration.
        let expected = asked * number(&load["window"]["duration_s"]);
        let due = number(&open["due"]);
        let by_chance = 6.0 * expected.sqrt() + 10.0;
        assert!((due - expected).abs() < by_chance, "{due} of {expected}");
    }
    let summary = json(&directory.join("summary.json"));
    let rows = summary["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "no rows of their own");
    for row in rows {
        let rate = number(&row["metrics"]["requests_per_s"]["value"]);
        let at_load = &row["at_load"][0];
        assert!((number(&at_load["rate_asked_per_s"]) / rate - 0.4).abs() < 0.001);
        assert!(
            at_load["metrics"]["response_p50_us"]["value"].is_number(),
            "{row:#}"
        );
    }
    assert!(text(&directory.join("report.md")).contains("## Latency at load"));
    assert!(text(&directory.join("report.html")).contains("Latency at load"));
    assert!(directory.join("figures/latency-at-load.svg").exists());
}

#[test]
fn without_a_rate_at_full_speed_there_is_no_part_to_ask_for() {
    let server = ServerInfo {
        name: "broken".to_owned(),
        command: vec!["false".to_owned()],
        ..ServerInfo::default()
    };
    let mut plan = plan(vec![server], 5);
    plan.settings.latency_at_percent = vec![50, 80];
    let (_, trials) = carry_out(&plan);
    assert_eq!(trials.len(), 3);
    for (trial, percent) in trials[1..].iter().zip([50, 80]) {
        Schemas::read().check("trial", &serde_json::json!(trial));
        assert_eq!((trial.purpose, trial.round), (Purpose::AtLoad, 0));
        let at_load = trial.at_load.unwrap();
        assert_eq!((at_load.percent, at_load.rate_per_s), (percent, None));
        assert!(trial.load.is_none());
        let reason = &trial.failure.as_ref().unwrap().reason;
        let says = "its highest rate is unknown";
        assert!(reason.contains(says), "{reason}");
    }
}
