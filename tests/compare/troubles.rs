//! Servers that fail, each in a way of its own: the trial says which, and the run goes on.

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{THRONG, compare, left_behind, python};

/// Each of these servers once, beside a good one; where each failed, why and with what output.
fn failures(servers: &[(&str, &str)], more: &[&str]) -> Vec<(String, String, String)> {
    let mut arguments = vec!["epoll", "-n", "good"];
    for (name, command) in servers {
        arguments.extend([*command, "-n", *name]);
    }
    arguments.extend(["-r", "1", "-d", "150ms", "--control", "none"]);
    arguments.extend(more);
    let ran = compare(&arguments);
    assert_eq!(ran.code, 1, "{} {}", ran.out, ran.err);
    assert!(
        ran.err.contains("failed; the reasons are in the report"),
        "{}",
        ran.err
    );
    let trials = ran.trials();
    let of = |name: &str| {
        let mut of_server = trials.iter().filter(|trial| trial.server == name);
        of_server
            .next()
            .unwrap_or_else(|| panic!("{name} had no trial: {}", ran.err))
    };
    assert_eq!(of("good").failure, None);
    servers
        .iter()
        .map(|(name, _)| {
            let failure = of(name).failure.clone();
            let failure = failure.unwrap_or_else(|| panic!("{name} did not fail"));
            assert!(of(name).load.is_none(), "{name} has no figures");
            (failure.stage, failure.reason, failure.output)
        })
        .collect()
}

#[test]
fn every_trouble_is_told_and_ended() {
    let occupied = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = occupied.local_addr().expect("it has an address").port();
    let Some([crashing, stubborn, daemon, stray, plain]) =
        ["crash", "stubborn", "daemon", "stray", ""]
            .map(python)
            .into_iter()
            .collect::<Option<Vec<String>>>()
            .and_then(|all| <[String; 5]>::try_from(all).ok())
    else {
        return;
    };
    let on_taken = plain.replace("{port}", &taken.to_string());
    let another = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let elsewhere = another.local_addr().expect("it has an address").port();
    drop(another);
    let elsewhere = plain.replace("{port}", &elsewhere.to_string());
    let found = failures(
        &[
            ("crashing", &crashing),
            ("stubborn", &stubborn),
            ("daemon", &daemon),
            ("stray", &stray),
            ("taken", &on_taken),
            ("elsewhere", &elsewhere),
            ("deaf", "sleep 60"),
            ("short", "sh -c 'echo out of cheese >&2; exit 3'"),
        ],
        &["--start-timeout", "2s"],
    );
    drop(occupied);
    let expected = [
        ("load", "exit status: 7", ""),
        ("stop", "did not stop within 5 s of SIGTERM", ""),
        (
            "start",
            "in the background; keep the server in the foreground",
            "",
        ),
        ("load", "left the server's process tree", ""),
        ("start", "exit status: 1", "Address already in use"),
        ("start", "write {port} where", ""),
        ("start", "accepted no connection", ""),
        ("start", "exit status: 3", "out of cheese"),
    ];
    for ((stage, reason, output), expected) in found.iter().zip(expected) {
        assert_eq!(stage, expected.0, "{reason}: {output}");
        assert!(reason.contains(expected.1), "{expected:?}: {reason}");
        assert!(output.contains(expected.2), "{expected:?}: {output}");
    }
}

#[test]
fn a_server_is_ready_when_its_output_says_so() {
    let Some(late) = python("late") else {
        return;
    };
    let ready = [
        "--ready",
        "^ready for",
        "-r",
        "1",
        "-d",
        "100ms",
        "--control",
        "none",
    ];
    let ran = compare(&[&["epoll", &late], &ready[..]].concat());
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    let found = failures(
        &[("silent", &late)],
        &["--ready", "open for business", "--start-timeout", "1s"],
    );
    let (stage, reason, output) = &found[0];
    assert_eq!(stage, "start");
    assert!(
        reason.contains("did not match --ready within 1s"),
        "{reason}"
    );
    assert!(output.contains("ready for customers"), "{output}");
}

#[test]
fn an_interrupted_comparison_leaves_nothing_behind() {
    let Some(stray) = python("stray") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let mark = format!("{}-interrupted", std::process::id());
    let child = Command::new(THRONG)
        .args([
            "compare",
            &stray,
            "epoll",
            "-d",
            "30s",
            "--control",
            "none",
            "-o",
        ])
        .arg(directory.path().join("record"))
        .args(["--env", &format!("THRONG_MARK={mark}")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut child = child.expect("it can be started");
    let deadline = Instant::now() + Duration::from_secs(30);
    while left_behind(&mark).is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(left_behind(&mark), [""; 0]);
}
