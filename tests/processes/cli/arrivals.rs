//! Open loops keep to their schedule, and report misses; clients of closed loops pause.

use std::ops::RangeInclusive;

use serde_json::Value;

use super::throng;
use crate::support::runs::{count, number};
use crate::support::server::Server;

const CLIENTS: u64 = 20;

/// The result of a load on a server that is well, once everything in it agrees.
fn load(options: &str) -> Value {
    let server = Server::start(&["epoll"]).expect("it can be started");
    let address = server.address().to_string();
    let mut arguments = vec!["load", &address, "--json", "-c", "20", "--warm-up", "0s"];
    arguments.extend(options.split_whitespace());
    let finished = throng(&arguments);
    let result = finished.json();
    assert_eq!(finished.code, 0, "{finished:?}");
    assert_eq!(result["errors"], serde_json::json!({}), "{result}");
    assert_eq!(result["verified"], result["requests"], "{result}");
    let counts = server.stop().expect("it ends well");
    assert_eq!(
        counts["requests"], result["requests"],
        "both sides count alike"
    );
    let window = &result["window"];
    let intervals = window["intervals"].as_array().expect("a list");
    let replies: u64 = intervals.iter().filter_map(Value::as_u64).sum();
    assert_eq!(window["replies"], replies, "{result}");
    result
}

/// The result of an open loop in which all due requests are accounted for. The mean rate is `per_s`; by randomness, or
/// truncated bursts, this many may be missing or in excess.
fn open_loop(options: &str, per_s: f64, by_chance: f64) -> Value {
    let result = load(options);
    let open = &result["open_loop"];
    let [due, waited, never_sent, unanswered, lost] =
        ["due", "waited", "never_sent", "unanswered", "lost"].map(|name| count(&open[name]));
    // The clock is read at slightly different moments.
    let planned = number(&result["window"]["duration_s"]) * per_s;
    let tolerance = by_chance + 2.0 + planned / 100.0;
    assert!(
        (due as f64 - planned).abs() <= tolerance,
        "{due} instead of {planned}: {result}"
    );
    let (service, response) = (&result["service_time"], &open["response_time"]);
    let replies = count(&service["count"]);
    assert_eq!(due, replies + never_sent + lost, "{result}");
    assert!(unanswered <= replies, "{result}");
    assert_eq!(count(&response["count"]), due - lost, "{result}");
    assert_eq!(
        count(&result["lateness"]["count"]),
        due - never_sent,
        "{result}"
    );
    assert!(never_sent <= waited && waited <= due, "{result}");
    // Of the replies in the window some were due before, others that were due in it came after.
    let difference = count(&result["window"]["replies"]).abs_diff(replies);
    assert!(difference <= CLIENTS, "{result}");
    for figure in ["min_us", "mean_us", "p50_us", "p90_us", "max_us"] {
        // A histogram with 3 digits may be a thousandth off.
        let (longer, shorter) = (number(&response[figure]), number(&service[figure]));
        assert!(longer >= shorter * 0.998, "{figure}: {result}");
    }
    result
}

/// Six standard deviations of the number of random requests.
fn chance(count: f64) -> f64 {
    6.0 * count.sqrt()
}

#[test]
fn random_arrivals_keep_to_their_rate() {
    open_loop("--rate 500 --arrival poisson -d 2s", 500.0, chance(1000.0));
}

#[test]
fn constant_arrivals_keep_to_their_rate() {
    open_loop("--rate 500 -d 1s", 500.0, 0.0);
    open_loop(
        "--rate 500 --arrival constant -d 1s --threads 3",
        500.0,
        0.0,
    );
}

#[test]
fn bursts_keep_the_mean_rate() {
    let result = open_loop("--rate 1000 --arrival burst:200 -d 1s", 1000.0, 200.0);
    // Of 200 at once no more than 20 find a free client.
    assert!(
        number(&result["open_loop"]["waited"]) >= 4.0 * 180.0,
        "{result}"
    );
}

#[test]
fn a_rate_rises_over_the_load() {
    let result = open_loop("--rate 0..1000 -d 2s", 500.0, 0.0);
    let intervals = result["window"]["intervals"].as_array().unwrap();
    let (early, late) = intervals.split_at(intervals.len() / 2);
    let sum = |intervals: &[Value]| intervals.iter().filter_map(Value::as_u64).sum::<u64>();
    assert!(sum(late) > sum(early), "{result}");
}

/// A rate above any capacity: unsent requests are counted, not left out, and take no time.
#[test]
fn unsent_requests_are_counted() {
    for (arrival, by_chance) in [
        ("constant", 0.0),
        ("poisson", chance(1e8)),
        ("burst:9", 9.0),
    ] {
        let options = format!("--rate 2e8 --arrival {arrival} -d 500ms");
        let result = open_loop(&options, 2e8, by_chance);
        assert!(number(&result["open_loop"]["never_sent"]) > 5e7, "{result}");
        assert!(number(&result["open_loop"]["waited"]) > 0.0, "{result}");
        let longest = number(&result["open_loop"]["response_time"]["max_us"]);
        assert!(
            longest > number(&result["service_time"]["max_us"]),
            "{result}"
        );
    }
}

/// Whether a request left just before the end or a moment earlier, its reply is waited for.
#[test]
fn requests_under_way_at_the_end_are_answered() {
    for seed in 0..20 {
        load(&format!(
            "--rate 5000 --arrival poisson -d 50ms --seed {seed}"
        ));
    }
}

#[test]
fn clients_that_think_ask_less_often() {
    // A minimum think time bounds the requests per second.
    for (think, range) in [("100ms", 0..=20 * 11), ("50ms..150ms", 0..=20 * 21)] {
        asks_in_a_second(think, range);
    }
    // 20 clients with 20 requests per second each, without any service time.
    let most = 400.0 + chance(400.0) + CLIENTS as f64;
    asks_in_a_second("exp:50ms", 0..=most as u64);
}

fn asks_in_a_second(think: &str, expected: RangeInclusive<u64>) {
    let result = load(&format!("--think {think} -d 1s"));
    let replies = result["window"]["replies"].as_u64().expect("a count");
    assert!(
        replies > 0 && expected.contains(&replies),
        "{think}: {result}"
    );
    assert!(
        result["open_loop"].is_null(),
        "a closed loop has none: {result}"
    );
}
