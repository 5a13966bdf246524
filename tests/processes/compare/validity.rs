//! Trials with unusable results, and servers with unexpected replies.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use throng::record::findings::cpu::OTHERS;
use throng::record::findings::generator::STALLED;
use throng::record::findings::replies::{UNEXPECTED_STATUS, UNSERVED};
use throng::record::{self, Purpose, Severity, Trial};

use super::{compare, python, server};
use crate::support::program::{THRONG, words};

/// Regression test: a server that answers only status 500 was compared as if it were well.
#[test]
fn a_server_that_only_fails_is_not_compared() {
    let (Some(good), Some(broken)) = (python(""), python("broken")) else {
        return;
    };
    for method in ["slices", "trials"] {
        let ran = compare(&[
            &good, &broken, "-n", "good", "-n", "broken", "-r", "1", "--method", method,
        ]);
        assert_eq!(ran.code, 1, "{} {}", ran.out, ran.err);
        let why = "all responses were 500 instead of 2xx,3xx";
        assert!(ran.err.contains(why), "{}", ran.err);
        let report = std::fs::read_to_string(ran.record().join("report.md")).expect("a report");
        assert!(report.contains(why), "{report}");
    }
    let expected = ["--expect-status", "500", "--fail-if", "status_5xx < 100%"];
    let ran = compare(&[&[&*broken, "-r", "1", "-d", "100ms"], &expected[..]].concat());
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
}

/// One that fails under load is measured, but not ranked, and its errors are no threshold's success.
#[test]
fn a_server_that_fails_under_load_is_not_ranked() {
    let (Some(good), Some(busy)) = (python(""), python("busy")) else {
        return;
    };
    let ran = compare(&words(
        "{} {} -n good -n busy -r 2 -d 300ms --fail-if {} --fail-if {}",
        &[&good, &busy, "errors > 0", "busy: status_5xx > 0"],
    ));
    assert_eq!(ran.code, 3, "{} {}", ran.out, ran.err);
    let summary = ran.summary();
    let missed: Vec<bool> = summary["thresholds"]
        .as_array()
        .expect("thresholds")
        .iter()
        .map(|judged| judged["server"] == "busy" && judged["missed"] == true)
        .collect();
    assert_eq!(missed, [false, true, true], "{summary:#}");
    let text: Vec<&str> = ran.out.split_whitespace().collect();
    let text = text.join(" ");
    assert!(text.contains("had an unexpected status (500)"), "{text}");
    for trial in ran.trials().iter().filter(|trial| trial.server == "busy") {
        assert!(trial.invalid().is_some(), "most replies were 500");
        let found = trial.found(&UNEXPECTED_STATUS).expect("it is one of them");
        assert_eq!(found.severity, Severity::Invalid);
    }
}

/// Regression test: a server that failed under load met `p99 > 1s`, and was graded good.
#[test]
fn the_speed_of_a_server_that_fails_under_load_is_not_judged() {
    let Some(busy) = python("busy") else {
        return;
    };
    let ran = compare(&words(
        "{} -n busy -r 2 -d 300ms --fail-if {} --fail-if {}",
        &[&busy, "p99 > 1s", "status_5xx < 0.1%"],
    ));
    assert_eq!(ran.code, 3, "{} {}", ran.out, ran.err);
    let summary = ran.summary();
    assert_eq!(summary["grade"]["level"], "unusable", "{summary:#}");
    let (speed, count) = (&summary["thresholds"][0], &summary["thresholds"][1]);
    let seen = speed["seen"].as_str().expect("a text");
    assert!(
        seen.starts_with("not judged: ") && seen.contains("(500)"),
        "{seen}"
    );
    assert_eq!(
        (&speed["missed"], &count["missed"]),
        (&true.into(), &false.into())
    );
    assert!(!ran.out.contains("is not ranked"), "said once: {}", ran.out);
    assert!(!ran.out.contains("did not serve all"), "{}", ran.out);
    // Nothing at all is no better.
    let text = reported_with(&ran.record(), "");
    let out = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        out.contains("Grade: unusable (no trial was recorded)"),
        "{out}"
    );
    assert!(out.contains("not judged: no trial was recorded"), "{out}");
}

/// Reports a record again with other trials, and returns what is printed.
fn reported_with(record: &Path, trials: &str) -> String {
    std::fs::write(record.join("trials.jsonl"), trials).expect("it can be written");
    let mut report = assert_cmd::Command::new(THRONG);
    let output = report.arg("report").arg(record).output().expect("it runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Regression test: a rate that rose in all windows was good, if none of them rose evenly and by half.
#[test]
fn a_server_that_warms_up_in_every_trial_is_named() {
    let Some(warming) = python("warming") else {
        return;
    };
    let is_named = (0..5).any(|_| {
        let ran = compare(&words("{} -n warming -c 20 -r 6 -d 800ms", &[&warming]));
        // Other tests use the CPUs too. That is said first, and is not what this is about.
        let trials: String = ran
            .trials()
            .into_iter()
            .map(|mut trial| {
                trial.findings.retain(|finding| !finding.is(&OTHERS));
                serde_json::to_string(&trial).expect("it is a record") + "\n"
            })
            .collect();
        reported_with(&ran.record(), &trials);
        let causes = ran.summary()["grade"]["causes"].to_string();
        causes.contains("warming was still warming up: its rate rose in")
    });
    assert!(is_named);
}

/// Regression test: only the children of the first process counted, 186 of 2,451 µs of a request.
#[test]
fn cpu_time_of_ended_children_counts_behind_a_wrapper_too() {
    let Some(forking) = server("python3", "forking.py", "") else {
        return;
    };
    let cost = |command: &str| {
        let ran = compare(&[command, "-n", "it", "-r", "1", "-d", "2s"]);
        let summary = ran.summary();
        let metrics = &summary["rows"][0]["metrics"];
        let value = |name: &str| metrics[name]["value"].as_f64();
        let cost = value("server_cpu_us_per_request");
        (
            cost.unwrap_or_else(|| panic!("{summary:#}")),
            value("server_parent_cpu_percent"),
        )
    };
    let wrapped = format!("sh -c '{forking}; true'");
    for command in [&forking, &wrapped] {
        let (cost_us, parent_percent) = cost(command);
        assert!(cost_us > 1900.0, "{command}: {cost_us}");
        assert!(parent_percent > Some(0.0), "{command}: of the shell");
    }
    // Only a control group counts children that no process waits for.
    if throng::measure::processes::own_group::check().is_ok() {
        let (cost_us, _) = cost(&format!("sh -c '{forking} ignore; true'"));
        assert!(cost_us > 1900.0, "{cost_us}");
    }
}

/// Regression test: one trial of ten with 49 of 50 clients served voided all others.
#[test]
fn a_trial_with_a_client_unserved_is_repeated_and_voids_no_other() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = directory.path().join("starts");
    let Some(shy) = server("python3", "server.py", &format!("shy {}", log.display())) else {
        return;
    };
    let ran = compare(&words(
        "{} -n shy -r 3 -d 200ms --retries 3 --fail-if {}",
        &[&shy, "errors > 0"],
    ));
    let trials = ran.trials();
    let served = |trial: &&Trial| trial.load.as_ref().map(|load| load.served);
    let mut of_seven = trials.iter().filter(|trial| served(trial) == Some(7));
    let (Some(unserved), None) = (of_seven.next(), of_seven.next()) else {
        panic!("{} {}", ran.out, ran.err);
    };
    // Faults of the machine come first, and may make any other trial invalid too: then none is repeated.
    let mut faults = trials.iter().filter_map(Trial::invalid);
    if let Some(fault) = faults.find(|fault| !fault.is(&UNSERVED)) {
        println!("skipped: {}", fault.text);
        return;
    }
    assert!(unserved.invalid().is_some(), "a client was unserved");
    let place = Some(unserved.planned_index());
    assert!(
        trials.iter().any(|trial| trial.repeats == place),
        "{}",
        ran.err
    );
    let summary = ran.summary();
    assert_eq!(summary["rows"][0]["served_all"], true, "{summary:#}");
    let reasons = &summary["invalid"]["reasons"];
    assert!(
        reasons.to_string().contains("7 of 8 clients were served"),
        "{summary:#}"
    );
    assert!(ran.out.contains("invalid: "), "{}", ran.out);
}

/// Each trial of such a server waits for the clients that it leaves unserved.
#[test]
fn a_server_that_leaves_clients_unserved_is_not_asked_again_and_again() {
    let ran = compare(&words(
        "iterative -r 5 -d 100ms --probes cpu,accept-queue",
        &[],
    ));
    let mut trials = ran.trials();
    trials.retain(|trial| trial.purpose == Purpose::Timed);
    assert_eq!(trials.len(), 3, "{} {}", ran.out, ran.err);
    assert!(
        ran.out.contains("iterative served 1 of 8 clients"),
        "{}",
        ran.out
    );
    for trial in &trials {
        let unserved = trial.found(&UNSERVED).expect("a client was unserved");
        assert_eq!(
            unserved.text,
            "1 of 8 clients were served: by design, it serves one client at a time"
        );
    }
    assert!(!ran.out.contains("interrupted"), "{}", ran.out);
}

/// The load process of this one, once it runs.
fn load_of(parent: u32) -> Option<Pid> {
    let processes = std::fs::read_dir("/proc")
        .expect("there is /proc")
        .flatten();
    processes.map(|process| process.path()).find_map(|path| {
        let command = std::fs::read(path.join("cmdline")).ok()?;
        let mut words = command.split(|byte| *byte == 0);
        let is_load = words.any(|word| word == b"--controlled");
        let stat = std::fs::read_to_string(path.join("stat")).ok()?;
        let after_name = stat.rsplit(')').next()?;
        let own = after_name.split_whitespace().nth(1)?.parse() == Ok(parent);
        let pid = path.file_name()?.to_str()?.parse().ok()?;
        (is_load && own).then(|| Pid::from_raw(pid)).flatten()
    })
}

/// Regression test: a load that was stopped for two seconds entered the record without a warning.
#[test]
fn a_load_that_stood_still_makes_no_figures() {
    let directory = tempfile::tempdir().expect("a directory");
    let record = directory.path().join("record");
    let mut command = Command::new(THRONG);
    command.args("run --models epoll --clients 4 -r 1 -d 2s".split(' '));
    command.args(["--control", "none", "--no-ceiling", "--latency-at", "none"]);
    command.args(["--probes", "none", "--retries", "1", "--allow-rough", "-o"]);
    command
        .arg(&record)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let throng = command.spawn().expect("the program can be started");
    let load = loop {
        match load_of(throng.id()) {
            Some(load) => break load,
            None => thread::sleep(Duration::from_millis(5)),
        }
    };
    // Whenever its window is, much of it falls into a pause.
    while kill_process(load, Signal::STOP).is_ok() {
        thread::sleep(Duration::from_millis(700));
        let _ = kill_process(load, Signal::CONT);
        if load_of(throng.id()) != Some(load) {
            break;
        }
        thread::sleep(Duration::from_millis(50));
    }
    let output = throng.wait_with_output().expect("it ends");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    let trials = record::read_trials(&record).expect("a record");
    let stalled = trials[0].found(&STALLED);
    assert!(stalled.is_some(), "{:?}", trials[0].findings);
    assert!(
        printed.contains("invalid: the load generator stalled for"),
        "{printed}"
    );
    assert_eq!(trials[1].repeats, Some(0), "it was repeated");

    // And again on request: as long as nothing is valid.
    let mut resume = Command::new(THRONG);
    resume
        .args(["run", "--retry-invalid", "--allow-rough", "--resume"])
        .arg(&record);
    let output = resume.output().expect("the program can be started");
    assert!(output.status.success(), "{output:?}");
    let again = record::read_trials(&record).expect("a record");
    let expected = usize::from(trials.iter().all(|trial| trial.invalid().is_some()));
    assert!(again.len() >= trials.len() + expected);
}
