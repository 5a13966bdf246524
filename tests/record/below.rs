//! Trials at a part of the rate that a server reached.

use std::path::Path;

use serde_json::Value;

use super::schemas::Schemas;
use super::{THRONG, finish, json, text, throng_run, trial_lines};

/// A run of two servers whose rates are measured twice, and then taken at a part.
fn run_below(directory: &Path) {
    let mut command = throng_run(directory, "200ms");
    command.args(["--models", "epoll,poll", "--clients", "20"]);
    command.args(["--repeats", "2", "--seed", "3", "--below", "40", "--json"]);
    finish(command);
}

fn of<'a>(trials: &'a [Value], purpose: &str) -> Vec<&'a Value> {
    let trials = trials.iter();
    trials.filter(|trial| trial["purpose"] == purpose).collect()
}

fn number(value: &Value) -> f64 {
    let number = value.as_f64();
    number.unwrap_or_else(|| panic!("no number: {value}"))
}

/// The median rate of a server's timed trials, of which there are two.
fn reached(trials: &[Value], server: &Value) -> f64 {
    let timed = of(trials, "timed");
    let rates = timed.iter().filter(|trial| trial["server"] == *server);
    let rates: Vec<f64> = rates
        .map(|trial| number(&trial["load"]["window"]["replies_per_s"]))
        .collect();
    assert_eq!(rates.len(), 2);
    rates.iter().sum::<f64>() / 2.0
}

#[test]
fn response_times_are_taken_at_a_part_of_the_rate_that_was_reached() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    run_below(directory);
    let schemas = Schemas::read();
    schemas.check_run(&json(&directory.join("run.json")));
    let trials = trial_lines(directory);
    assert_eq!(trials.len(), 6);
    // They come when the rates are known.
    assert!(trials[4..].iter().all(|trial| trial["purpose"] == "below"));
    for trial in &trials[4..] {
        schemas.check_trial(trial);
        assert!(trial["failure"].is_null(), "{trial:#}");
        assert_eq!(trial["below"]["percent"], 40);
        let asked = number(&trial["below"]["rate_per_s"]);
        let part = asked / reached(&trials, &trial["server"]);
        assert!((part - 0.4).abs() < 0.001, "{part}");
        let load = &trial["load"];
        assert_eq!(load["clients"], 20);
        let open = &load["open_loop"];
        assert!(number(&open["response_time"]["p50_us"]) > 0.0);
        assert!(trial["server_side"]["metrics"]["cpu_ms"].is_number());
        // By count, as random arrivals have it: so many requests came due as the rate says.
        let expected = asked * number(&load["window"]["duration_s"]);
        let due = number(&open["due"]);
        let by_chance = 6.0 * expected.sqrt() + 10.0;
        assert!((due - expected).abs() < by_chance, "{due} of {expected}");
    }
    let summary = json(&directory.join("summary.json"));
    let rows = summary["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "no rows of their own");
    for row in rows {
        let rate = number(&row["replies_per_s"]["median"]);
        let below = &row["below"][0];
        assert!((number(&below["rate_asked_per_s"]) / rate - 0.4).abs() < 0.001);
        assert!(below["response_time"]["p50_us"].is_number(), "{row:#}");
    }
    assert!(text(&directory.join("report.md")).contains("## Below the maximum"));
    assert!(text(&directory.join("report.html")).contains("Below the maximum"));
    assert!(directory.join("figures/below-maximum.svg").exists());
}

#[test]
fn a_run_cut_off_before_its_parts_takes_them_from_the_rates_it_has() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    run_below(directory);
    let whole = trial_lines(directory);
    let path = directory.join("trials.jsonl");
    let lines = text(&path);
    let kept: Vec<&str> = lines.lines().take(4).collect();
    std::fs::write(&path, kept.join("\n") + "\n").unwrap();
    let resume = |directory: &Path| {
        let mut command = std::process::Command::new(THRONG);
        command.args(["run", "--json", "--resume"]).arg(directory);
        finish(command);
        trial_lines(directory)
    };
    let resumed = resume(directory);
    assert_eq!(resumed[..4], whole[..4]);
    let asked = |trials: &[Value]| -> Vec<Value> {
        let parts = trials[4..].iter();
        parts
            .map(|trial| serde_json::json!([trial["server"], trial["below"]]))
            .collect()
    };
    assert_eq!(
        asked(&resumed),
        asked(&whole),
        "the same parts of the same rates"
    );

    // Without any figures at full speed there is nothing to take a part of.
    let failed = kept.iter().map(|line| {
        let mut trial: Value = serde_json::from_str(line).expect("JSON");
        if trial["server"] == "poll" {
            trial["load"].take();
            trial["failure"] = serde_json::json!({"stage": "load", "reason": "it broke"});
        }
        let fields = trial.as_object_mut().expect("a trial");
        fields.retain(|_, value| !value.is_null());
        trial.to_string() + "\n"
    });
    std::fs::write(&path, failed.collect::<String>()).unwrap();
    let resumed = resume(directory);
    let of_poll = of(&resumed, "below")
        .into_iter()
        .find(|trial| trial["server"] == "poll");
    let trial = of_poll.expect("it has its place in the plan");
    Schemas::read().check_trial(trial);
    let reason = trial["failure"]["reason"].as_str().unwrap();
    assert!(
        reason.contains("there is no rate to take a part of"),
        "{reason}"
    );
    assert!(trial["below"]["rate_per_s"].is_null() && trial["load"].is_null());
}
