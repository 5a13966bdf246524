//! Several ranks are one load: all counts add up, on this host and over a network.

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use super::job::{Job, Lab, run, trials};

/// Short trials without probes.
const SHORT: &str = "run --models epoll --clients 31 --runs 4 --duration 60ms --warm-up 10ms \
    --control none --no-ceiling --probes cpu";
const TRIALS: usize = 4;
/// Requests of the verification before the load, on a separate connection.
const VERIFICATION_REQUESTS: u64 = 6;

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("no count: {value}"))
}

fn sum(values: &Value, name: &str) -> u64 {
    let values = values.as_array().expect("there are several");
    values.iter().map(|value| number(&value[name])).sum()
}

/// The ranks' counts equal the server's.
fn sides_agree(trial: &Value) {
    assert!(trial["failure"].is_null(), "{trial:#}");
    let (load, counts) = (&trial["load"], &trial["server_counts"]);
    let verified = number(&load["verified"]);
    assert_eq!(number(&load["requests"]), verified, "{trial:#}");
    assert_eq!(
        number(&counts["requests"]),
        verified + VERIFICATION_REQUESTS,
        "{trial:#}"
    );
    assert_eq!(
        number(&counts["accepted"]),
        number(&load["connections"]) + 1,
        "{trial:#}"
    );
    assert_eq!(load["clients"], trial["clients"], "{trial:#}");
    assert_eq!(sum(&trial["hosts"], "clients"), number(&trial["clients"]));
    assert_eq!(
        sum(&trial["hosts"], "replies"),
        number(&load["window"]["replies"])
    );
    assert_eq!(sum(&trial["hosts"], "served"), number(&load["served"]));
    assert_eq!(sum(&trial["hosts"], "errors"), 0, "{trial:#}");
    assert!(trial["start_skew"]["skew_us"].is_number(), "{trial:#}");
    assert!(trial["start_skew"]["error_us"].is_number(), "{trial:#}");
}

/// The percentiles of all service times are those of the merged histogram.
fn times_agree(trial: &Value) {
    let times = &trial["load"]["service_time"];
    if number(&trial["load"]["window"]["replies"]) == 0 {
        // The machine was busy elsewhere for as long as replies counted.
        return;
    }
    let reported: throng::record::Latency = serde_json::from_value(times.clone()).expect("times");
    let histogram = reported.times().expect("it can be read");
    assert_eq!(histogram.len(), reported.count, "{times}");
    let median = histogram.value_at_quantile(0.5) as f64 / 1000.0;
    assert!(
        (median - reported.p50_us).abs() < 0.002,
        "{median}: {times}"
    );
    assert_eq!(reported.count, sum(&trial["hosts"], "replies"));
    // Half of all is below the largest median of a part, and above the smallest.
    let hosts = trial["hosts"].as_array().expect("there are several");
    let medians = hosts.iter().filter_map(|host| host["p50_us"].as_f64());
    let (least, most) = medians.fold((f64::MAX, 0.0), |(least, most), median| {
        (median.min(least), median.max(most))
    });
    let between = least * 0.998..=most * 1.002;
    assert!(between.contains(&median), "{median} of {between:?}");
}

/// Each client of each rank has its row.
fn rows_agree(record: &Path, trial: &Value) {
    let typed: throng::record::Trial = serde_json::from_value(trial.clone()).expect("a trial");
    let path = record.join("clients").join(typed.file_stem() + ".csv");
    let text = fs::read_to_string(path).expect("it is there");
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("names").split(',').collect();
    let column = |name: &str| {
        let found = names.iter().position(|column| *column == name);
        found.unwrap_or_else(|| panic!("no {name} in {names:?}"))
    };
    let (replies, client) = (column("replies"), column("client"));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let summed: u64 = rows
        .iter()
        .map(|row| row[replies].parse::<u64>().expect("a number"))
        .sum();
    assert_eq!(summed, number(&trial["load"]["verified"]));
    let mut clients: Vec<u32> = rows
        .iter()
        .map(|row| row[client].parse().expect("a number"))
        .collect();
    clients.sort_unstable();
    clients.dedup();
    assert_eq!(
        clients.len() as u64,
        number(&trial["clients"]),
        "each has a number of its own"
    );
}

fn check(record: &Path, hosts: usize) {
    let run = run(record);
    // The last trial names a host that was lost, and why.
    let ending = &run["ending"];
    assert_eq!(ending, "complete", "{:#?}", trials(record).last());
    let there = run["client_hosts"].as_array().expect("there are several");
    let ranks: Vec<u64> = there.iter().map(|host| number(&host["rank"])).collect();
    assert_eq!(ranks, (1..=hosts as u64).collect::<Vec<_>>());
    let trials = trials(record);
    assert_eq!(trials.len(), TRIALS);
    for trial in &trials {
        sides_agree(trial);
        times_agree(trial);
        rows_agree(record, trial);
    }
}

#[test]
fn two_four_and_eight_ranks_and_the_server_count_the_same() {
    for ranks in [2, 4, 8] {
        let directory = tempfile::tempdir().unwrap();
        let Some(job) = Job::here(ranks, directory.path(), SHORT) else {
            return;
        };
        check(&job.succeed(), ranks as usize - 1);
    }
}

#[test]
fn hosts_of_a_network_and_the_server_count_the_same() {
    let Some(lab) = Lab::up(5) else { return };
    let directory = tempfile::tempdir().unwrap();
    let Some(job) = Job::over(&lab, directory.path(), SHORT) else {
        return;
    };
    let record = job.succeed();
    check(&record, 5);
    let run = run(&record);
    let hosts = run["client_hosts"].as_array().unwrap();
    let names: Vec<&str> = hosts
        .iter()
        .filter_map(|host| host["name"].as_str())
        .collect();
    assert_eq!(
        names,
        ["client1", "client2", "client3", "client4", "client5"]
    );
    assert_eq!(run["settings"]["server_address"], "10.213.0.1");
}

/// CPU time of a process.
fn cpu_s(pid: rustix::process::Pid) -> f64 {
    let time = throng::sys::clock::process_cpu_time(pid.as_raw_nonzero().get() as u32);
    time.expect("it runs").as_secs_f64()
}

/// Waiting in MPI uses a whole CPU; a relay must use almost none.
#[test]
fn no_rank_spins_while_trials_are_measured() {
    let directory = tempfile::tempdir().unwrap();
    let options = SHORT.replace("60ms", "400ms").replace("runs 4", "runs 5");
    let Some(mut job) = Job::here(3, directory.path(), &options) else {
        return;
    };
    job.wait_for_a_trial();
    let all = |job: &Job| -> Vec<f64> { (0..3).map(|rank| cpu_s(job.relay(rank))).collect() };
    let (before, began) = (all(&job), Instant::now());
    let seen = job.trials().len();
    job.wait_for(|job| job.trials().len() >= seen + 3);
    let (after, took) = (all(&job), began.elapsed().as_secs_f64());
    for (before, after) in before.iter().zip(&after) {
        let share = (after - before) / took;
        println!("a rank used {:.2} % of a CPU", share * 100.0);
        assert!(share < 0.5, "{share}");
    }
    job.succeed();
}
