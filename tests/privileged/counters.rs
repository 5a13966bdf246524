//! What the probes count agrees with what others count: strace(1) by name, perf(1) within 2 %, and
//! our own clients to the last reply. What a machine lacks is left out, with the reason printed.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;

use serde_json::Value;
use throng::measure::probes::{
    ClientPresence, Moment, Panel, ProbeKind, Subject, Target, Tree, choose,
};
use throng::record::{Purpose, Side};
use throng::registry::Entry as _;

use crate::support::program::THRONG;

/// The probe of this name, unless this machine has nothing for it.
fn probe(name: &str) -> Option<&'static ProbeKind> {
    let kind = choose(&[name.to_owned()]).expect("the probe exists")[0];
    kind.supported()
        .inspect_err(|unsupported| eprintln!("skipped: {unsupported}"))
        .ok()
        .map(|()| kind)
}

/// Whether a program can be started.
fn installed(program: &str, version: &str) -> bool {
    let mut command = Command::new(program);
    let quiet = command
        .arg(version)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let there = quiet.status().is_ok_and(|status| status.success());
    if !there {
        eprintln!("skipped: {program} is not installed, or does not run here");
    }
    there
}

/// Runs `command` to its end, counted by `kind` as trials count.
fn counted(kind: &'static ProbeKind, mut command: Command) -> Side {
    let (prepared, panel) = channel();
    let (go, gone) = channel();
    let (done, ended) = channel();
    let (looked, may_end) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let panel = Panel::prepare(&[kind], Subject::Processes, Purpose::Profiled);
            prepared.send(panel).expect("the test waits for it");
            gone.recv().expect("the test says when");
            let output = command.output().expect("the command can be started");
            assert!(output.status.success(), "{output:?}");
            done.send(()).expect("the test waits for it");
            // What a thread's own end takes is not counted one time and left out the next.
            may_end.recv().expect("the test looks");
        });
        let mut panel: Panel = panel.recv().expect("the panel can be prepared");
        panel.attach(Target {
            tree: Tree::of(std::process::id()),
            server: SocketAddr::from(([127, 0, 0, 1], 9)).into(),
            clients: 1,
            files: PathBuf::new(),
            presence: ClientPresence::default(),
        });
        panel.sample(Moment::Before);
        go.send(()).expect("the thread waits for it");
        ended.recv().expect("the command ends");
        panel.sample(Moment::After);
        looked.send(()).expect("the thread waits for it");
        panel.finish().0
    })
}

/// A tree of processes that does the same however fast: `rounds` times two, one after the other.
fn work(rounds: u32) -> [String; 3] {
    let copy = "dd if=/dev/zero of=/dev/null bs=1000 count=20 2>/dev/null";
    let script = format!("i=0; while [ $i -lt {rounds} ]; do {copy}; {copy}; i=$((i+1)); done");
    ["sh".to_owned(), "-c".to_owned(), script]
}

fn command(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// Calls by name as strace counts them.
fn by_strace(words: &[String], directory: &Path) -> BTreeMap<String, f64> {
    let file = directory.join("strace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-c", "-o"]).arg(&file).args(words);
    let output = strace.output().expect("strace can be started");
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(file).expect("strace has written");
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (calls, name) = (words.get(3)?.parse().ok()?, words.last()?);
        Some(((*name).to_owned(), calls))
    };
    text.lines().filter_map(line).collect()
}

/// What many rounds count more than few do: starting and ending are not in it.
fn difference(count: impl Fn(u32) -> BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    let (few, many) = (count(5), count(45));
    let less = |name: &str| few.get(name).copied().unwrap_or(0.0);
    many.iter()
        .map(|(name, value)| (name.clone(), value - less(name)))
        .filter(|(_, value)| *value > 0.0)
        .collect()
}

#[test]
fn calls_by_name_are_those_of_strace_exactly() {
    let Some(kind) = probe("syscalls") else {
        return;
    };
    if !installed("strace", "-V") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let theirs = difference(|rounds| by_strace(&work(rounds), directory.path()));
    let ours = difference(|rounds| counted(kind, command(&work(rounds))).metrics);
    // 40 rounds of two times 20 blocks.
    assert!(theirs["write"] >= 1600.0, "{theirs:?}");
    let mut compared = 0;
    for (name, value) in &ours {
        let Some(call) = name.strip_prefix("syscalls_") else {
            continue;
        };
        // The thread that starts the command is counted by us, and may have to wait.
        if ["other", "futex", "sched_yield"].contains(&call) {
            continue;
        }
        let theirs = theirs.get(call).copied();
        assert_eq!(theirs, Some(*value), "{call}: strace and ours");
        compared += 1;
    }
    assert!(compared >= 6, "{ours:?}");
}

/// The counts of perf for the same run, next to our own.
fn beside_perf(kind: &'static ProbeKind, rounds: u32, directory: &Path) -> BTreeMap<String, f64> {
    let file = directory.join("perf");
    let events = "task-clock,page-faults,context-switches,instructions,cycles";
    let mut perf = Command::new("perf");
    perf.args(["stat", "-x", ";", "-e", events, "-o"])
        .arg(&file);
    perf.args(work(rounds));
    let mut counts = counted(kind, perf).metrics;
    let text = std::fs::read_to_string(file).expect("perf has written");
    for line in text.lines() {
        let words: Vec<&str> = line.split(';').collect();
        let (Some(Ok(value)), Some(event)) = (words.first().map(|word| word.parse()), words.get(2))
        else {
            continue;
        };
        // perf reports clocks in milliseconds.
        let value: f64 = if *event == "task-clock" {
            value * 1e6
        } else {
            value
        };
        counts.insert(format!("perf: {event}"), value);
    }
    counts
}

#[test]
fn counters_agree_with_perf_within_two_percent() {
    let Some(kind) = probe("counters") else {
        return;
    };
    if !installed("perf", "--version") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    // perf itself is counted by us, and loses its CPU now and then on a busy machine.
    let agreed = (0..3).any(|_| {
        let counts = difference(|rounds| beside_perf(kind, rounds * 4, directory.path()));
        let apart = apart(&counts);
        if !apart.is_empty() {
            eprintln!("{apart:?} differ: {counts:?}");
        }
        apart.is_empty()
    });
    assert!(agreed);
}

/// What perf and we count differently, by more than 2 %.
fn apart(counts: &BTreeMap<String, f64>) -> Vec<&'static str> {
    let mut compared = 0;
    let mut apart = Vec::new();
    for (ours, theirs) in [
        ("task_clock_ns", "task-clock"),
        ("page_faults", "page-faults"),
        ("context_switches", "context-switches"),
        ("instructions", "instructions"),
        ("cycles", "cycles"),
    ] {
        let both = (counts.get(ours), counts.get(&format!("perf: {theirs}")));
        let (Some(ours), Some(other)) = both else {
            eprintln!("skipped: {theirs} are not counted here: {both:?}");
            continue;
        };
        if (ours - other).abs() > 0.02 * other + 10.0 {
            apart.push(theirs);
        }
        compared += 1;
    }
    assert!(compared >= 3, "{counts:?}");
    apart
}

#[test]
fn a_thread_receives_and_sends_once_for_each_reply() {
    if probe("syscalls").is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let mut run = Command::new(THRONG);
    run.args(
        "run --allow-rough --retries 0 --models thread,fork --clients 7,200 --runs 1".split(' '),
    );
    run.args("--duration 100ms --warm-up 50ms --probes syscalls".split(' '));
    run.args(["--control", "none", "--no-ceiling", "-o"])
        .arg(directory);
    let output = run.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines = std::fs::read_to_string(directory.join("trials.jsonl")).unwrap();
    let trials = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let counted: Vec<Value> = trials
        .filter(|trial: &Value| trial["purpose"] == "profiled")
        .collect();
    assert_eq!(counted.len(), 4);
    for trial in counted {
        let load = &trial["load"];
        assert_eq!(load["served"], trial["clients"], "{trial:#}");
        let number = |value: &Value| value.as_f64().unwrap();
        let replies = number(&load["verified"]) - number(&load["served"]);
        for (side, calls) in [
            (
                "server_side",
                ["syscalls_recvfrom", "syscalls_sendto"].as_slice(),
            ),
            ("client_side", &["syscalls_sendto"]),
        ] {
            for call in calls {
                let count = number(&trial[side]["metrics"][call]);
                assert!(
                    (count - replies).abs() < 0.5,
                    "{side} {call} {count}: {trial:#}"
                );
            }
        }
    }
}
