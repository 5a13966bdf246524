//! SIGKILL of a run, which can then neither write nor end anything any more.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use throng::record::{self, Ending, FailedStage, Failure, StoreError};

use crate::support::marked::Marked;
use crate::support::program::{THRONG, printed, words};
use crate::support::runs::{json, text, throng_run, trial_lines};
use crate::support::schemas::Schemas;

/// Default of `THRONG_KILLS`, the number of kills in all.
const KILLS: u32 = 20;
/// Runs that are killed side by side.
const CHAINS: u32 = 2;
/// Within this time of its start a run is killed, or it has ended.
const LATEST_MS: u64 = 500;

/// A server that starts a helper, which the kernel does not end with it.
fn with_a_helper() -> String {
    format!(
        "sh -c 'sleep 61 & exec {THRONG} serve poll --protocol http --listen 127.0.0.1:{{port}}'"
    )
}

/// A run of this kind into a directory.
fn run(kind: u32, record: &Path) -> Command {
    let mut command = if kind.is_multiple_of(2) {
        let mut command = throng_run(record, "30ms");
        command.args(["--models", "fork,prefork", "--runs", "4"]);
        command
    } else {
        let mut command = Command::new(THRONG);
        command.args(words(
            "compare {} fork --runs 4 --retries 0 --allow-rough",
            &[&with_a_helper()],
        ));
        command.args(["--duration", "30ms", "--warm-up", "0s", "--probes", "cpu"]);
        command.args(["--control", "none", "-o"]).arg(record);
        command
    };
    command.args(["--clients", "2"]);
    command
}

/// A record written by runs that are killed one after the other.
struct Chain {
    kind: u32,
    directory: TempDir,
    /// The files on disk after the last kill.
    lines: Vec<String>,
}

impl Chain {
    fn new(kind: u32) -> Self {
        Self {
            kind,
            directory: tempfile::tempdir().expect("a directory"),
            lines: Vec::new(),
        }
    }

    fn record(&self) -> PathBuf {
        self.directory.path().join("record")
    }

    /// The run that begins the record, or resumes it.
    fn command(&self) -> Command {
        // It may have been killed before there was anything to resume.
        if let Err(StoreError::Missing(_) | StoreError::Absent(_)) = record::read(&self.record()) {
            return run(self.kind, &self.record());
        }
        let mut command = Command::new(THRONG);
        command
            .args(["run", "--allow-rough", "--resume"])
            .arg(self.record());
        command
    }

    /// Starts the run and kills it after this time. Whether it was still there.
    fn kill_after(&mut self, time: Duration) -> bool {
        let mut command = self.command();
        let marked = Marked::by(self.directory.path(), &mut command);
        let mut child = quiet(&mut command);
        let moment = Instant::now() + time;
        while Instant::now() < moment && child.try_wait().expect("it is ours").is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let was_there = child.try_wait().expect("it is ours").is_none();
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        marked.assert_all_ended();
        self.check_kept();
        was_there
    }

    /// Nothing that was on disk before is lost or changed, and the content is valid.
    fn check_kept(&mut self) {
        let record = self.record();
        let Ok(trials) = record::read_trials(&record) else {
            assert!(self.lines.is_empty());
            return;
        };
        let written = if trials.is_empty() {
            String::new()
        } else {
            text(&record.join("trials.jsonl"))
        };
        let lines: Vec<String> = written
            .lines()
            .take(trials.len())
            .map(str::to_owned)
            .collect();
        assert!(lines.starts_with(&self.lines), "a finished trial was lost");
        self.lines = lines;
        if record.join("run.json").exists() {
            Schemas::read().check("run", &json(&record.join("run.json")));
        }
    }

    /// Resumes to the end, after which each trial exists once.
    fn complete(mut self) {
        let output = self.command().output().expect("it can be started");
        assert!(output.status.success(), "{}", printed(&output));
        self.check_kept();
        let run = record::read(&self.record()).expect("a record");
        assert_eq!(run.ending, Ending::Complete);
        let trials = record::read_trials(&self.record()).expect("a record");
        let places: Vec<u32> = trials.iter().map(|trial| trial.index).collect();
        assert_eq!(places, (0..run.trials_planned).collect::<Vec<_>>());
        // On a busy machine a server may stop later than it should, which is no fault of a record.
        let is_fault = |failure: &Failure| failure.stage != FailedStage::Stop;
        let failed = trials
            .iter()
            .find(|trial| trial.failure.as_ref().is_some_and(is_fault));
        assert!(failed.is_none(), "{failed:?}");
        let schemas = Schemas::read();
        for trial in trial_lines(&self.record()) {
            schemas.check("trial", &trial);
        }
        assert!(
            text(&self.record().join("report.md")).contains("fork"),
            "a report"
        );
    }
}

fn quiet(command: &mut Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("it can be started")
}

/// Whatever a run is doing when it is killed: no process survives it, and finished trials are kept and not repeated.
#[test]
fn a_run_killed_at_any_moment_leaves_no_process_and_resumes() {
    let reported = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let seed = reported("THRONG_SEED").unwrap_or_else(|| fastrand::u64(..));
    let kills = reported("THRONG_KILLS").unwrap_or(KILLS.into());
    println!("THRONG_SEED={seed} runs the moments");
    let chains = (0..CHAINS).map(|kind| {
        std::thread::spawn(move || {
            let mut random = fastrand::Rng::with_seed(seed.wrapping_add(kind.into()));
            let mut chain = Chain::new(kind);
            let mut left = kills.div_ceil(CHAINS.into());
            while left > 0 {
                let moment = Duration::from_millis(random.u64(..LATEST_MS));
                if chain.kill_after(moment) {
                    left -= 1;
                } else {
                    // It came to its end before.
                    std::mem::replace(&mut chain, Chain::new(kind)).complete();
                }
            }
            chain.complete();
        })
    });
    let chains: Vec<_> = chains.collect();
    for chain in chains {
        chain.join().expect("a chain of runs without a fault");
    }
}

/// A run that measures until it is ended, once its load has started.
fn under_way(server: &str, directory: &Path) -> (Child, Marked) {
    let mut command = Command::new(THRONG);
    // The same twice, whichever comes first.
    command.args(["compare", server, server, "-n", "one", "-n", "other"]);
    command.args(["--duration", "60s", "--warm-up", "0s"]);
    command.args("--clients 3 --control none --probes cpu -o".split(' '));
    command.arg(directory.join("record"));
    command.env("TMPDIR", directory);
    let marked = Marked::by(directory, &mut command);
    let child = quiet(&mut command);
    marked.wait_for(" load ");
    (child, marked)
}

/// A process that left tree, group and session has no parent of ours when throng is gone.
#[test]
fn a_daemon_of_a_server_ends_with_a_killed_run() {
    let directory = tempfile::tempdir().unwrap();
    let server = with_a_helper().replace("sleep", "setsid sleep");
    let (mut run, marked) = under_way(&server, directory.path());
    marked.wait_for("sleep 61");
    run.kill().unwrap();
    run.wait().unwrap();
    marked.assert_all_ended();
}

/// Nor is one known by its environment that has none: but its control group knows it.
#[test]
fn a_daemon_without_an_environment_ends_with_a_killed_run() {
    let doctor = Command::new(THRONG)
        .args(["doctor", "--json"])
        .output()
        .unwrap();
    let findings: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let mut findings = findings.as_array().unwrap().iter();
    if let Some(why) = findings.find(|finding| finding["kind"] == "no-control-groups") {
        return println!("not tried: {why}");
    }
    let directory = tempfile::tempdir().unwrap();
    let pids = directory.path().join("pids");
    let script = directory.path().join("daemon");
    let lines = format!("echo $$ >> {}\nexec sleep 61\n", pids.display());
    std::fs::write(&script, lines).unwrap();
    let daemon = format!("env -i setsid sh {} > /dev/null 2>&1", script.display());
    let server = with_a_helper().replace("sleep 61", &daemon);
    let (mut run, marked) = under_way(&server, directory.path());
    let deadline = Instant::now() + Duration::from_mins(2);
    while !pids.exists() || text(&pids).is_empty() {
        assert!(Instant::now() < deadline, "no daemon was started");
        std::thread::sleep(Duration::from_millis(5));
    }
    let found = text(&pids);
    run.kill().unwrap();
    run.wait().unwrap();
    marked.assert_all_ended();
    let is_left = |pid: &&str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.is_ok_and(|stat| stat.contains("(sleep) ") && !stat.contains(") Z "))
    };
    while let Some(pid) = found.lines().find(is_left) {
        assert!(Instant::now() < deadline, "{pid} is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// For a bug: the directory of the server's unix socket stayed.
#[test]
fn no_directory_of_a_socket_is_left_by_a_killed_run() {
    let directory = tempfile::tempdir().unwrap();
    let server = format!("{THRONG} serve poll --protocol http --listen unix:{{socket}}");
    let (mut run, marked) = under_way(&server, directory.path());
    let left = || {
        let all = std::fs::read_dir(directory.path()).unwrap().flatten();
        all.filter(|entry| entry.file_name() != "record").count()
    };
    assert!(left() > 0);
    run.kill().unwrap();
    run.wait().unwrap();
    marked.assert_all_ended();
    assert_eq!(left(), 0);
}

/// For a bug: `killall -9 throng` ended the watchdog too.
#[test]
fn the_watchdog_has_a_process_name_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let (mut run, marked) = under_way("epoll", directory.path());
    let watchdog = marked.wait_for(" watchdog ");
    let name = text(Path::new(&format!("/proc/{watchdog}/comm")));
    assert!(!name.contains("throng"), "{name}");
    run.kill().unwrap();
    run.wait().unwrap();
    marked.assert_all_ended();
}

/// The watchdog, which ends what a killed run leaves, may be killed itself without harm to the run.
#[test]
fn a_run_continues_without_its_watchdog() {
    let directory = tempfile::tempdir().unwrap();
    let (mut run, marked) = under_way("epoll", directory.path());
    let watchdog = marked.wait_for(" watchdog ");
    kill_process(watchdog, Signal::KILL).unwrap();
    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130));
    marked.assert_all_ended();
    let run = record::read(&directory.path().join("record")).unwrap();
    assert_eq!(run.ending, Ending::Interrupted);
}
