//! Disturbances of the network, or of a host, that do not end a run.

use std::time::Duration;

use super::job::{Job, Lab, run, trials};

/// Two trials.
const TWO: &str = "run --models epoll --clients 40 --runs 2 --warm-up 0s --control none --no-ceiling \
    --probes cpu";

/// Clients of a host that a firewall rejects have that error; all others are served.
#[test]
fn a_host_that_a_firewall_refuses_is_seen_in_its_row() {
    let Some(lab) = Lab::up(2) else { return };
    let directory = tempfile::tempdir().unwrap();
    let options = TWO.replace("--runs 2", "--runs 3 --duration 200ms");
    let Some(mut job) = Job::over(&lab, directory.path(), &options) else {
        return;
    };
    job.wait_for_a_trial();
    // New connections only, so that MPI's survive.
    let wall = "nft 'add table ip wall; \
        add chain ip wall leaving { type filter hook output priority 0; }; \
        add rule ip wall leaving tcp flags & (syn | ack) == syn reject with tcp reset'";
    lab.run("client2", wall);
    let (_, record) = job.end();
    assert_eq!(run(&record)["ending"], "complete");
    let trials = trials(&record);
    assert_eq!(trials.len(), 3);
    // In the second trial it may have connected before the rule was set.
    let (hosts, errors) = (&trials[2]["hosts"], &trials[2]["load"]["errors"]);
    assert_eq!(hosts[1]["errors"], hosts[1]["clients"], "{hosts:#}");
    assert_eq!(errors["refused"], hosts[1]["clients"], "{errors:#}");
    assert_eq!(hosts[0]["errors"], 0, "{hosts:#}");
}

/// A host behind a slow link makes the trial invalid; the reason names it.
#[test]
fn a_host_behind_a_slow_link_makes_the_trial_invalid() {
    let Some(lab) = Lab::up(2) else { return };
    // A request and its reply of 1000 bytes each: about a hundred per second.
    let slow = "tc qdisc add dev eth0 root tbf rate 1mbit burst 8kb latency 400ms";
    lab.run("client2", slow);
    let directory = tempfile::tempdir().unwrap();
    let options = TWO.replace("--runs 2", "--runs 1 --duration 1s");
    let Some(job) = Job::over(&lab, directory.path(), &options) else {
        return;
    };
    let (_, record) = job.end();
    let trials = trials(&record);
    let findings = trials[0]["findings"].as_array().expect("it is invalid");
    let text = findings[0]["text"].as_str().unwrap_or_default();
    println!("{text}");
    match findings[0]["kind"].as_str() {
        Some("slow-host") => assert!(text.contains("client on client2 (rank 2) had"), "{text}"),
        // On a busy machine there may be a more important reason.
        Some("generator-stopped" | "start-skew" | "silent-host") => {}
        _ => panic!("{:#}", trials[0]),
    }
}

/// The failure of one host is reported with its name, and does not affect the next trial.
#[test]
fn a_host_without_enough_ports_fails_by_itself() {
    let Some(lab) = Lab::up(2) else { return };
    let few = "echo 60000 60010 > /proc/sys/net/ipv4/ip_local_port_range";
    lab.run("client2", few);
    let directory = tempfile::tempdir().unwrap();
    let options = format!("{TWO} --duration 100ms");
    let Some(job) = Job::over(&lab, directory.path(), &options) else {
        return;
    };
    let (_, record) = job.end();
    let trials = trials(&record);
    assert_eq!(run(&record)["ending"], "complete", "{trials:#?}");
    assert_eq!(trials.len(), 2);
    for trial in &trials {
        let hosts = &trial["hosts"];
        let reason = hosts[1]["failure"]["reason"].as_str().unwrap_or_default();
        let output = hosts[1]["failure"]["output"].as_str().unwrap_or_default();
        assert!(format!("{reason} {output}").contains("port"), "{trial:#}");
        assert!(hosts[0]["failure"].is_null(), "{trial:#}");
        let reason = trial["failure"]["reason"].as_str().unwrap_or_default();
        assert!(reason.contains("client2"), "{trial:#}");
    }
}

/// The link of the server's host carries MPI too. Both survive a temporary failure of it.
#[test]
fn a_temporary_network_failure_is_survived() {
    const BREAK: Duration = Duration::from_millis(600);
    let Some(lab) = Lab::up(2) else { return };
    let directory = tempfile::tempdir().unwrap();
    let options = TWO.replace("--runs 2", "--runs 1 --duration 3s");
    let Some(mut job) = Job::over(&lab, directory.path(), &options) else {
        return;
    };
    let established = "ss -Htn state established | wc -l";
    job.wait_for(|_| {
        let count = lab.run("server", established);
        count.trim().parse().is_ok_and(|count: u32| count >= 40)
    });
    lab.run_on("cut", "server");
    std::thread::sleep(BREAK);
    lab.run_on("join", "server");
    let record = job.succeed();
    let trials = trials(&record);
    let load = &trials[0]["load"];
    assert!(trials[0]["failure"].is_null(), "{:#}", trials[0]);
    assert_eq!(load["verified"], load["requests"]);
    assert_eq!(
        (&load["served"], &load["connections"]),
        (&load["clients"], &load["clients"])
    );
    assert_eq!(run(&record)["ending"], "complete");
    // How much of the failure is in the window depends on the machine.
    println!("the slowest took {} us", load["service_time"]["max_us"]);
}
