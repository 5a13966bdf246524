//! Stop signals in each phase of a measurement: the record and the report are valid, and no process is left.

use std::fs;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::marked::Marked;
use crate::support::program::{THRONG, words};
use crate::support::runs::{json, trial_lines};
use crate::support::schemas::Schemas;

/// Longest wait for anything.
const LIMIT: Duration = Duration::from_mins(2);
/// A server that never listens.
const DEAF: &str = "sleep 62";

/// A run in a phase that is waited for.
struct Run {
    directory: TempDir,
    child: Child,
    marked: Marked,
}

impl Run {
    /// `throng` with these arguments and a record in a directory of its own.
    fn start(words: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().expect("a directory"), words)
    }

    fn start_in(directory: TempDir, words: &[&str]) -> Self {
        // Under nohup, SIGHUP would be ignored.
        let mut command = Command::new("env");
        command
            .args(["--default-signal=HUP", THRONG])
            .args(words)
            .arg("-o")
            .arg(directory.path().join("record"));
        let marked = Marked::by(directory.path(), &mut command);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().expect("it can be started");
        Self {
            directory,
            child,
            marked,
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// After a stop signal: how it ended, and its record.
    fn ended(mut self) -> Ended {
        let mut printed = String::new();
        let mut errors = self.child.stderr.take().expect("it is piped");
        errors.read_to_string(&mut printed).expect("it is UTF-8");
        let code = self.child.wait().expect("it is ours").code();
        assert_eq!(code, Some(130), "{printed}");
        assert!(printed.contains("interrupted: "), "{printed}");
        let record = self.directory.path().join("record");
        let run = json(&record.join("run.json"));
        let resumes = format!(" --resume {}\n", record.display());
        assert_eq!(
            printed.ends_with(&resumes),
            run["ending"] != "complete",
            "{printed}"
        );
        self.marked.assert_all_ended();
        let schemas = Schemas::read();
        schemas.check("run", &run);
        let trials = trial_lines(&record);
        for trial in &trials {
            schemas.check("trial", trial);
        }
        json(&record.join("summary.json"));
        for report in ["report.html", "report.md"] {
            let length = fs::metadata(record.join(report)).map(|report| report.len());
            assert!(
                length.is_ok_and(|length| length > 500),
                "no {report}: {printed}"
            );
        }
        Ended { run, trials }
    }
}

struct Ended {
    run: Value,
    trials: Vec<Value>,
}

impl Ended {
    /// It was cut short in its first trial, which is not recorded.
    fn has_no_trial(&self) {
        assert_eq!(self.run["ending"], "interrupted");
        assert_eq!(self.trials, [Value::Null; 0]);
    }
}

/// The same server twice: a child per client, so that survivors are visible.
const FORKS: [&str; 6] = [
    "compare",
    "--allow-rough",
    "--retries",
    "0",
    "fork",
    "fork --max-clients 99",
];

const LONG: [&str; 8] = [
    "--clients",
    "20",
    "--duration",
    "60s",
    "--control",
    "none",
    "--probes",
    "cpu",
];

#[test]
fn while_the_server_starts() {
    // Ctrl-C, a service manager, a terminal that is closed, Ctrl-\.
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let run = Run::start(
            &[
                &["compare", DEAF, DEAF, "-n", "one", "-n", "other"],
                &LONG[..],
            ]
            .concat(),
        );
        run.marked.wait_for(DEAF);
        run.signal(signal);
        run.ended().has_no_trial();
    }
}

#[test]
fn while_clients_connect() {
    for signal in [Signal::INT, Signal::TERM] {
        // One a second.
        let slowly = ["--connect-rate", "1"];
        let run = Run::start(
            &[
                &words("run --allow-rough --retries 0 --models epoll", &[])[..],
                &LONG[..],
                &slowly,
            ]
            .concat(),
        );
        run.marked.wait_for(" load ");
        run.signal(signal);
        run.ended().has_no_trial();
    }
}

#[test]
fn while_the_load_warms_up() {
    for signal in [Signal::INT, Signal::TERM] {
        let run = Run::start(&[&FORKS[..], &LONG, &["--warm-up", "60s"]].concat());
        run.marked.wait_for_several(21, " serve fork ");
        run.signal(signal);
        run.ended().has_no_trial();
    }
}

#[test]
fn while_it_measures() {
    for (words, signal) in [
        (
            &words(
                "run --allow-rough --retries 0 --models fork --no-ceiling",
                &[],
            )[..],
            Signal::TERM,
        ),
        (&FORKS[..], Signal::HUP),
    ] {
        let run = Run::start(&[words, &LONG, &["--warm-up", "0s"]].concat());
        // Who has had a first answer rests until all have; the load is busy only when it measures.
        let load = run.marked.wait_for(" load ");
        wait_until(|| cpu_ticks(load) >= 20);
        run.signal(signal);
        run.ended().has_no_trial();
    }
}

/// CPU time of a process, in ticks of 10 ms.
fn cpu_ticks(pid: Pid) -> u64 {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    let stat = fs::read_to_string(path).expect("it runs");
    let after_name = stat.rsplit(')').next().expect("there is one");
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = fields[11..13]
        .iter()
        .map(|ticks| ticks.parse::<u64>().expect("a number"));
    ticks.sum()
}

#[test]
fn while_a_limit_is_searched_for() {
    for signal in [Signal::INT, Signal::TERM] {
        let words = ["limit", "fork", "--duration", "60s", "--probes", "cpu"];
        let run = Run::start(&words);
        run.marked.wait_for(" load ");
        run.signal(signal);
        run.ended().has_no_trial();
    }
}

/// Trials follow each other for as long as it takes; signals come at moments of their own.
#[test]
fn between_trials() {
    for signal in [Signal::INT, Signal::TERM] {
        let words = words(
            "run --allow-rough --retries 0 --models epoll --runs 1000 --duration 1ms --warm-up 0s \
             --clients 1 --control none --no-ceiling --probes none",
            &[],
        );
        let run = Run::start(&words);
        let trials = run.directory.path().join("record/trials.jsonl");
        wait_until(|| fs::read(&trials).is_ok_and(|text| text.ends_with(b"}\n")));
        run.signal(signal);
        let ended = run.ended();
        assert_eq!(ended.run["ending"], "interrupted");
        assert!(!ended.trials.is_empty());
    }
}

fn wait_until(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < deadline, "it never came to that");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn while_the_report_is_written() {
    let words = words(
        "run --allow-rough --retries 0 --models epoll --runs 1 --clients 1 --no-ceiling \
         --warm-up 0s --duration 10ms --control none --probes none",
        &[],
    );
    // A run that had written nearly all before the signal came says nothing.
    let ended = (0..20).find_map(|_| {
        let directory = tempfile::tempdir().unwrap();
        let record = directory.path().join("record");
        let mut run = Run::start_in(directory, &words);
        // The first of its files.
        wait_until(|| record.join("report.html").exists());
        run.signal(Signal::STOP);
        let status = format!("/proc/{}/status", run.child.id());
        let is_stopped =
            || fs::read_to_string(&status).is_ok_and(|text| text.contains("(stopped)"));
        let mut is_done = false;
        while !is_stopped() && !is_done {
            is_done = run.child.try_wait().unwrap().is_some();
        }
        is_done |= record.join("summary.json").exists();
        if is_done {
            // It goes on if it was stopped after all.
            let _ = kill_process(Pid::from_child(&run.child), Signal::CONT);
            run.child.wait().unwrap();
        }
        (!is_done).then(|| {
            run.signal(Signal::TERM);
            run.signal(Signal::CONT);
            run.ended()
        })
    });
    let ended = ended.expect("one was still writing");
    assert_eq!(ended.trials.len(), 1);
    assert_eq!(ended.run["ending"], "complete");
}

/// A service manager signals all processes at once. Then a server that ends has not failed, and its trial is to be
/// repeated.
#[test]
fn when_servers_and_loads_are_asked_to_stop_too() {
    let run = Run::start(&[&FORKS[..], &LONG, &["--warm-up", "0s"]].concat());
    run.marked.wait_for_several(21, " serve fork ");
    // The run comes to nothing before all have been reported.
    run.signal(Signal::STOP);
    let server = run.marked.wait_for(" serve fork ");
    kill_process(server, Signal::KILL).unwrap();
    kill_process(run.marked.wait_for(" load "), Signal::TERM).unwrap();
    run.signal(Signal::TERM);
    run.signal(Signal::CONT);
    run.ended().has_no_trial();
}
