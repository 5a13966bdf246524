//! Ctrl-C in the middle of a run.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use throng::record;

use crate::support::marked::Marked;
use crate::support::program::{THRONG, words};
use crate::support::runs::{json, throng_run, trial_lines};
use crate::support::schemas::Schemas;

#[test]
fn an_interrupted_run_keeps_its_trials_and_leaves_no_process() {
    let directory = tempfile::tempdir().unwrap();
    let record_at = directory.path().join("record");
    let mut command = throng_run(&record_at, "100ms");
    command.args("--models fork,epoll,prefork --clients 2,5 --runs 50".split(' '));
    let marked = Marked::by(directory.path(), &mut command);
    let mut run = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let announced = lines.next().unwrap_or_default();
    assert!(announced.starts_with("300 trials, about "), "{announced}");
    // A line a finished trial: after two of them the third one runs.
    let shown: Vec<String> = lines.by_ref().take(2).collect();
    assert!(
        shown.iter().all(|line| line.contains("requests/s")),
        "{shown:?}"
    );
    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    let last = lines.last().unwrap_or_default();
    let status = run.wait().unwrap();
    assert_eq!(status.code(), Some(130), "{last}");

    let trials = trial_lines(&record_at);
    // Trials on a busy machine may be invalid.
    let is_valid = |trial: &&serde_json::Value| {
        let mut findings = trial["findings"].as_array().into_iter().flatten();
        !findings.any(|one| one["severity"] == "invalid")
    };
    let valid = trials.iter().filter(is_valid).count();
    assert!(
        last.contains(&format!("interrupted: {valid} of 300 trials")),
        "{last}"
    );
    assert!((2..300).contains(&trials.len()), "{} trials", trials.len());
    let run = json(&record_at.join("run.json"));
    let schemas = Schemas::read();
    schemas.check("run", &run);
    for trial in &trials {
        schemas.check("trial", trial);
    }
    assert_eq!(run["ending"], "interrupted");
    assert!(run["finished_at"].is_string(), "{run:#}");
    assert_eq!(record::read_trials(&record_at).unwrap().len(), trials.len());
    marked.assert_all_ended();
}

/// Presses Ctrl-C until a process has ended; returns its exit code.
fn insist(child: &mut Child) -> Option<i32> {
    let deadline = Instant::now() + Duration::from_mins(2);
    loop {
        kill_process(Pid::from_child(child), Signal::INT).expect("it is ours");
        let next = Instant::now() + Duration::from_millis(200);
        while Instant::now() < next {
            if let Some(status) = child.try_wait().expect("it is ours") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(next < deadline, "it does not end");
    }
}

/// The first Ctrl-C lets the command after a trial run for its whole time.
#[test]
fn a_second_ctrl_c_ends_a_run_whatever_it_waits_for() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(THRONG);
    command.args(words(
        "compare epoll --conclude {} --hook-timeout 1h -r 1 -d 50ms -c 2 --control none -o",
        &["sleep 3601"],
    ));
    command.arg(directory.path().join("record"));
    let marked = Marked::by(directory.path(), &mut command);
    let mut run = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    marked.wait_for("sleep 3601");
    assert_eq!(insist(&mut run), Some(130));
    marked.assert_all_ended();
}

/// Whether a thread of a process waits in send().
fn is_sending(process: &Child) -> bool {
    let number = if cfg!(target_arch = "x86_64") {
        "44 "
    } else {
        "206 "
    };
    let mut tasks = std::fs::read_dir(format!("/proc/{}/task", process.id()))
        .into_iter()
        .flatten()
        .flatten();
    tasks.any(|task| {
        let call = std::fs::read_to_string(task.path().join("syscall"));
        call.is_ok_and(|call| call.starts_with(number))
    })
}

/// Nothing in this server looks for a second signal. Its reply is larger than the buffers of all sockets.
#[test]
fn a_second_ctrl_c_ends_a_server_that_waits_for_its_clients() {
    let mut command = Command::new(THRONG);
    let options = "serve thread --protocol http --size 64MiB --drain 1h --listen 127.0.0.1:0";
    let mut server = command
        .args(options.split(' '))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    let address = line.strip_prefix("listening on ").unwrap();
    let mut client = TcpStream::connect(address.split(' ').next().unwrap()).unwrap();
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: it\r\n\r\n")
        .unwrap();
    // It never reads the reply, so the server's thread stays in send().
    let patience = Instant::now() + Duration::from_mins(1);
    while !is_sending(&server) && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(insist(&mut server), Some(130));
}

/// The default action of SIGXCPU would end it without a word.
#[test]
fn a_run_beyond_its_limit_of_cpu_time_ends_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = throng_run(&directory.path().join("record"), "100ms");
    command.args("--models epoll --clients 2 --runs 200".split(' '));
    let mut run = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap())
        .lines()
        .map_while(Result::ok);
    assert!(lines.any(|line| line.contains("requests/s")));
    kill_process(Pid::from_child(&run), Signal::XCPU).unwrap();
    let last = lines.last().unwrap_or_default();
    assert_eq!(run.wait().unwrap().code(), Some(130), "{last}");
    assert!(last.contains("the limit of CPU time (ulimit -t)"), "{last}");
    assert!(last.contains("--resume"), "{last}");
}

/// The default action of SIGXFSZ would end it without a word.
#[test]
fn a_record_beyond_the_limit_of_a_file_ends_a_run_like_a_full_disk() {
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("record");
    let mut command = Command::new("sh");
    let limited = format!(
        "ulimit -f 48; exec {THRONG} measure epoll -r 50 -d 20ms --warm-up 0s --probes none -o {}",
        record.display()
    );
    let output = command.args(["-c", &limited]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    for part in ["cannot write ", "File too large", "--resume"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    assert!(!record::read_trials(&record).unwrap().is_empty());
}
