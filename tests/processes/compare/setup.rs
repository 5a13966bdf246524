//! Starting and ending servers: commands that run once, readiness, stopping, and errors that end a run.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use throng::record::{self, Ending};

use super::{compare, left_behind, python, with_time_to_start, words_in};
use crate::support::program::{THRONG, words};
use throng::record::findings::servers::STOPPED_LATE;

/// Short trials, one for each server.
const ONE: [&str; 6] = ["-r", "1", "-d", "100ms", "--control", "none"];

#[test]
fn some_commands_run_once_with_what_they_left_running_until_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let log_name = log.display();
    // A helper on purpose: it lives until the end of all trials, and no longer.
    let setup = format!("sleep 61 & echo $! > {log_name}.pid; echo setup >> {log_name}");
    let prepare = format!("kill -0 $(cat {log_name}.pid) && echo trial >> {log_name}");
    let cleanup = format!("kill -0 $(cat {log_name}.pid) && echo cleanup >> {log_name}");
    let hooks = [
        "--setup",
        &setup,
        "--prepare",
        &prepare,
        "--cleanup",
        &cleanup,
    ];
    let ran = compare(&[&["epoll", "--shell", "-r", "3", "-d", "50ms"], &hooks[..]].concat());
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    assert_eq!(
        words_in(&log),
        ["setup", "trial", "trial", "trial", "cleanup"]
    );
}

#[test]
fn a_setup_that_fails_ends_it_with_its_output_and_is_cleaned_up() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let cleanup = format!("echo cleared >> {}", log.display());
    let setup = "echo no database >&2; exit 5";
    let ran = compare(&words(
        "epoll poll --shell --setup {} --cleanup {}",
        &[setup, &cleanup],
    ));
    assert_eq!(ran.code, 1, "{} {}", ran.out, ran.err);
    for part in [
        "epoll: the command of --setup",
        "exit status: 5",
        "no database",
    ] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    assert_eq!(words_in(&log), ["cleared"], "the other one was not begun");
    let run = record::read(&ran.record()).unwrap();
    assert_eq!(run.ending, Ending::ServerFailed);
}

#[test]
fn an_interrupted_run_is_cleaned_up() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let mark = format!("{}-life", std::process::id());
    let mut command = Command::new(THRONG);
    command.args("compare epoll --shell -d 60s --control none --setup".split(' '));
    command.arg(format!("echo setup >> {}", log.display()));
    command
        .arg("--cleanup")
        .arg(format!("echo cleanup >> {}", log.display()));
    command.arg("-o").arg(directory.path().join("record"));
    command.args(["--env", &format!("THRONG_MARK={mark}")]);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_mins(1);
    // Its server runs.
    while words_in(&log).is_empty() || left_behind(&mark).is_empty() {
        assert!(Instant::now() < deadline, "it never began");
        std::thread::sleep(Duration::from_millis(10));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(words_in(&log), ["setup", "cleanup"]);
    assert_eq!(left_behind(&mark), [""; 0]);
}

/// Regression test: a command that never listened was tried again and again, for four minutes.
#[test]
fn a_server_that_does_not_start_ends_it_at_once_with_its_last_output() {
    let ran = compare(&["sleep 60", "epoll", "--ready-timeout", "3s"]);
    assert_eq!(ran.code, 1, "{} {}", ran.out, ran.err);
    let reason = "sleep did not start: the server accepted no connection on 127.0.0.1:";
    assert!(ran.err.contains(reason), "{}", ran.err);
    // Once, and not in a line of progress too.
    let why = "accepted no connection";
    assert_eq!(ran.err.matches(why).count(), 1, "{}", ran.err);
    assert!(
        ran.err.contains("--keep-going measures the other servers"),
        "{}",
        ran.err
    );
    assert_eq!(ran.trials().len(), 1);
    let loud = "sh -c 'for n in 1 2 3; do echo cheese $n >&2; done; echo noise; exit 3'";
    for method in ["slices", "trials"] {
        let ran = compare(&["epoll", loud, "--method", method]);
        assert_eq!(ran.code, 1, "{} {}", ran.out, ran.err);
        for part in ["exit status: 3", "\n  cheese 1\n  cheese 2\n  cheese 3\n"] {
            assert!(ran.err.contains(part), "{part}: {}", ran.err);
        }
        assert!(!ran.err.contains("noise"), "{}", ran.err);
        let failed = ran
            .trials()
            .into_iter()
            .filter(|trial| trial.failure.is_some());
        assert_eq!(failed.count(), 1);
    }
}

#[test]
fn a_wrong_reply_ends_it_at_once_and_a_crash_is_described() {
    let Some([broken, crashing]) = ["broken", "crash"]
        .map(python)
        .into_iter()
        .collect::<Option<Vec<_>>>()
        .and_then(|all| <[String; 2]>::try_from(all).ok())
    else {
        return;
    };
    let ran = compare(&[&broken]);
    assert_eq!(ran.code, 1, "{} {}", ran.out, ran.err);
    assert!(
        ran.err
            .contains("gave a wrong reply: all responses were 500"),
        "{}",
        ran.err
    );
    // Under load it is a trial that failed.
    let crashing = format!("sh -c '{crashing}; code=$?; echo so it ended >&2; exit $code'");
    // Long enough for a busy machine: the crash ends it.
    let one = ["-r", "1", "-d", "20s", "--control", "none"];
    let ran = compare(&[&[crashing.as_str()], &one[..]].concat());
    assert_eq!(ran.code, 1, "{} {}", ran.out, ran.err);
    for part in ["exit status: 7", "\n  so it ended\n"] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    let failure = ran.trials()[0].failure.clone().unwrap();
    assert!(failure.output.contains("so it ended"), "{failure:?}");
}

/// Regression: a server that took six seconds to stop lost its results.
#[test]
fn a_server_that_stops_too_late_is_killed_and_its_figures_are_kept() {
    for (trouble, why) in [
        (
            "stubborn",
            "the server did not stop within 500ms of SIGTERM and was killed",
        ),
        ("brood", "the server stopped, but 1 process (python"),
    ] {
        let Some(server) = python(trouble) else {
            return;
        };
        let ran = compare(&[&[&server, "--stop-timeout", "500ms"], &ONE[..]].concat());
        assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
        let [trial] = &ran.trials()[..] else {
            panic!("{}", ran.err);
        };
        assert_eq!(trial.failure, None);
        assert!(trial.load.as_ref().is_some_and(|load| load.served > 0));
        let late = &trial.found(&STOPPED_LATE).expect("it was late").text;
        assert!(
            late.contains(why) && late.contains("its results are kept"),
            "{late}"
        );
    }
}

#[test]
fn a_server_stops_on_its_own_signal_and_has_several_ports() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("stopped");
    let Some(server) = python(&format!("quits {} {{port2}}", file.display())) else {
        return;
    };
    let ran = compare(&[&[&server, "--stop-signal", "SIGQUIT"], &ONE[..]].concat());
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    let ports = words_in(&file);
    assert!(ports.len() == 2 && ports[0] == ports[1], "{ports:?}");
    let port: u16 = ports[0].parse().expect("a port");
    assert!(port > 0);
    let warned = |trial: &record::Trial| trial.found(&STOPPED_LATE).is_some();
    assert!(!ran.trials().iter().any(warned));
}

#[test]
fn a_url_can_signal_readiness_and_names_are_resolved_in_the_servers_directory() {
    if python("").is_none() {
        return;
    }
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/processes/compare");
    let place = place.to_string_lossy();
    let server = ["python3 server.py {port} rising", "--cwd", &place];
    let url = ["--ready", "http://{address}/health"];
    let patient = ["--ready-timeout", "2m"];
    let ran = compare(&[&server[..], &url, &patient, &ONE].concat());
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    let run = record::read(&ran.record()).unwrap();
    let program = run.servers[0]
        .foreign
        .as_ref()
        .and_then(|foreign| foreign.program.as_ref());
    assert!(
        program.is_some_and(|program| program.scripts.len() == 1),
        "{program:?}"
    );
    let late = [
        "sleep 60",
        "--ready-timeout",
        "300ms",
        "--ready",
        "http://{address}/",
    ];
    let ran = compare(&late);
    assert!(ran.err.contains("accepted no connection"), "{}", ran.err);
    let never = ["python3 server.py {port} broken", "--cwd", &place];
    let why = with_time_to_start(|limit| {
        let ran = compare(&[&never[..], &url, &["--ready-timeout", limit]].concat());
        assert_eq!(ran.code, 1, "{} {}", ran.out, ran.err);
        let has_started = !ran.err.contains("accepted no connection");
        has_started.then_some(ran.err.clone()).ok_or(ran.err)
    });
    assert!(why.contains("did not return 2xx or 3xx within "), "{why}");
    assert!(why.contains("; the last reply: status 500"), "{why}");
}
