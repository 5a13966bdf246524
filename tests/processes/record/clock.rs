//! The machine's clock is set while throng measures: nothing that is measured changes.
//!
//! Setting it for good would affect everything else here, so a library preloaded into throng, its servers and loads
//! does it for them alone: with every call the clock jumps by a day, forth and back.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::runs::{finish, json, text, throng_run, trial_lines};

const LIBRARY: &str = r"
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static atomic_long looks;

static long day(void) { return atomic_fetch_add(&looks, 1) % 2 ? 86400 : -86400; }

int clock_gettime(clockid_t clock, struct timespec *at) {
    int result = (int)syscall(SYS_clock_gettime, clock, at);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI))
        at->tv_sec += day();
    return result;
}

int gettimeofday(struct timeval *at, void *zone) {
    (void)zone;
    struct timespec now;
    int result = clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return result;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
";

/// More than anything here takes, and far less than the clock is set by.
const HOURS_S: f64 = 2.0 * 3600.0;

/// The library, or none without a C compiler.
fn library(directory: &Path) -> Option<PathBuf> {
    let (source, library) = (directory.join("clock.c"), directory.join("clock.so"));
    fs::write(&source, LIBRARY).expect("a file");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(&source);
    match compiler.output() {
        Ok(output) if output.status.success() => Some(library),
        other => {
            println!("not tried: there is no C compiler: {other:?}");
            None
        }
    }
}

#[test]
fn a_clock_that_is_set_changes_nothing_measured() {
    let directory = tempfile::tempdir().unwrap();
    let Some(library) = library(directory.path()) else {
        return;
    };
    let record = directory.path().join("record");
    let mut command = throng_run(&record, "150ms");
    command.args("--models fork,tokio,aio --clients 5 --runs 1".split(' '));
    command.args(["--latency-at", "50"]);
    command.env("LD_PRELOAD", &library);
    finish(command);

    let run = json(&record.join("run.json"));
    let now = jiff::Timestamp::now();
    for time in ["started_at", "finished_at"] {
        let reported: jiff::Timestamp =
            run[time].as_str().expect("a time").parse().expect("a time");
        let off = reported.duration_since(now).as_secs_f64().abs();
        assert!(off > HOURS_S, "the clock was not set: {time} is {reported}");
    }
    let trials = trial_lines(&record);
    assert_eq!(trials.len(), 6);
    for trial in &trials {
        if trial["at_load"]["rate_per_s"].is_null() && trial["purpose"] == "at-load" {
            // The server got no CPU time at full speed.
            continue;
        }
        assert!(trial["failure"].is_null(), "{trial:#}");
        let window = trial["load"]["window"]["duration_s"].as_f64();
        assert!(window.is_some_and(|window| window > 0.1), "{trial:#}");
        let mut times = 0;
        check_times("", trial, &mut times);
        assert!(times > 20, "{times} times in {trial:#}");
    }
    let mut rows = 0;
    for part in ["samples", "clients", "server"] {
        for file in fs::read_dir(record.join(part)).unwrap().flatten() {
            rows += check_rows(&file.path());
        }
    }
    assert!(rows > 50, "{rows}");
}

/// The unit of a number with this name in seconds, if it is a time.
fn seconds(name: &str, number: f64) -> Option<f64> {
    let units = [("_ns", 1e-9), ("_us", 1e-6), ("_ms", 1e-3), ("_s", 1.0)];
    let (_, unit) = units.iter().find(|(ending, _)| name.ends_with(ending))?;
    (!name.ends_with("_per_s")).then_some(number * unit)
}

fn check(name: &str, number: f64) -> bool {
    let time = seconds(name, number);
    assert!(
        time.is_none_or(|time| time.abs() < HOURS_S),
        "{name} is {number}"
    );
    time.is_some()
}

/// No time of a trial has anything of the clock in it.
fn check_times(name: &str, value: &Value, times: &mut u32) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                check_times(name, member, times);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| check_times(name, item, times)),
        Value::Number(number) => {
            *times += u32::from(check(name, number.as_f64().expect("a number")));
        }
        _ => {}
    }
}

/// The same for a file of rows; how many it has.
fn check_rows(path: &Path) -> usize {
    let table = text(path);
    let mut lines = table
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap_or_default();
    let mut count = 0;
    for line in lines {
        for (name, cell) in names.iter().zip(line) {
            if let Ok(number) = cell.parse() {
                check(name, number);
            }
        }
        count += 1;
    }
    count
}

/// The time of day is read for dates alone, and to detect a change while packets were captured.
#[test]
fn the_time_of_day_is_asked_for_in_two_places() {
    let words = [
        "SystemTime",
        "Timestamp::now",
        "REALTIME",
        "Realtime",
        "gettimeofday",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut places = vec![root.join("src"), root.join("crates")];
    let mut asking = Vec::new();
    while let Some(place) = places.pop() {
        if place.is_dir() {
            places.extend(
                fs::read_dir(&place)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else if words.iter().any(|word| text(&place).contains(word)) {
            asking.push(
                place
                    .strip_prefix(env!("CARGO_MANIFEST_DIR"))
                    .unwrap()
                    .to_owned(),
            );
        }
    }
    asking.sort();
    let known = [
        "crates/throng-measure/src/probes/capture.rs",
        "crates/throng-measure/src/runner/run_spec.rs",
    ];
    assert_eq!(asking, known.map(PathBuf::from));
}
