//! Every exit code, provoked by what it is for.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use throng::cli::EXIT_CODES;

use super::throng;
use crate::support::program::{THRONG, words};
use crate::support::server::Server;

/// Options of a brief measurement in trials.
const QUICK: [&str; 12] = [
    "--retries",
    "0",
    "-d",
    "100ms",
    "--warm-up",
    "0ms",
    "--probes",
    "none",
    "--clients",
    "4",
    "-r",
    "3",
];

#[test]
fn every_exit_code_is_provoked() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name).display().to_string();
    let server = Server::start(&["epoll", "--protocol", "http"]).unwrap();
    let url = format!("http://{}/", server.address());
    let load = |more: &[&str]| throng(&[&["load", &url, "-n", "200"], more].concat());
    let compare = |name: &str, more: &[&str]| {
        let place = place(name);
        let all = [&["compare"], &QUICK[..], &["-o", &place], more].concat();
        throng(&all)
    };
    // A server whose second start fails.
    let count = place("starts");
    let once_broken = format!(
        "echo >> {count}; test $(wc -l < {count}) != 2 || exit 9; \
         exec {THRONG} serve epoll --protocol http --listen 127.0.0.1:{{port}}"
    );
    let broken = [
        &once_broken,
        "--shell",
        "-n",
        "broken",
        "--fail-if",
        "errors > 0",
    ];

    let mut provoked = BTreeSet::new();
    for (finished, code, says) in [
        (load(&["--fail-if", "errors > 0.1%"]), 0, "met"),
        (
            load(&["--expect-status", "404"]),
            1,
            "no reply was correct: 200 200",
        ),
        (load(&["--fail-if", "p98 > 1ms"]), 2, "unknown metric `p98`"),
        (
            load(&["--fail-if", "memory > 1MB"]),
            2,
            "`throng load` does not measure",
        ),
        (
            load(&["--fail-if", "status_2xx > 0"]),
            3,
            "missed: fail if status_2xx > 0: 200",
        ),
        (
            compare(
                "3",
                &[
                    "epoll",
                    "--protocol",
                    "http",
                    "--fail-if",
                    "status_2xx > 50%",
                ],
            ),
            3,
            "",
        ),
        (compare("4", &broken), 4, "1 of 3 trials failed"),
        (interrupted(), 130, ""),
    ] {
        assert_eq!(finished.code, code, "{finished:?}");
        assert!(
            finished.err.contains(says),
            "`{says}` is not in {finished:?}"
        );
        provoked.insert(u8::try_from(code).unwrap());
    }
    std::fs::remove_file(&count).unwrap();
    let accepted = compare("accepted", &[&broken[..], &["--allow-rough"]].concat());
    assert_eq!(accepted.code, 0, "{accepted:?}");
    let codes: BTreeSet<u8> = EXIT_CODES.iter().map(|(code, _)| *code).collect();
    assert_eq!(provoked, codes);
}

#[test]
fn a_run_may_have_thresholds_too() {
    let directory = tempfile::tempdir().unwrap();
    for (condition, code) in [("errors > 0", 0), ("p50 > 1ns", 3), ("poll: p50 > 1ns", 2)] {
        let place = directory.path().join(condition).display().to_string();
        let run = words(
            "run --models epoll --no-ceiling --control none --allow-rough",
            &[],
        );
        let all = [&run[..], &QUICK, &["-o", &place, "--fail-if", condition]].concat();
        let finished = throng(&all);
        assert_eq!(finished.code, code, "{condition}: {finished:?}");
    }
}

#[test]
fn help_and_manual_list_the_codes() {
    let finished = throng(&["--help"]);
    let text: Vec<&str> = finished.out.split_whitespace().collect();
    for (code, what) in EXIT_CODES {
        let printed = format!("{code} {what}");
        assert!(
            text.join(" ").contains(&printed),
            "`{printed}` is not in {finished:?}"
        );
    }
}

/// A load that is stopped once its clients are connected.
fn interrupted() -> super::Finished {
    let silent = TcpListener::bind("127.0.0.1:0").expect("it is there");
    let address = silent.local_addr().expect("it is there").to_string();
    let mut command = Command::new(THRONG);
    command.args(["load", &address, "-c", "1", "--size", "3"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let load = command.spawn().expect("it is there");
    let mut client = silent.accept().expect("it is there").0;
    client.read_exact(&mut [0; 3]).expect("it is there");
    kill_process(Pid::from_child(&load), Signal::INT).expect("it is there");
    let output = load.wait_with_output().expect("it is there");
    super::Finished {
        code: output.status.code().expect("it handles the signal"),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// For a bug: the default place took another way than --output.
#[test]
fn a_default_place_that_cannot_be_made_is_wrong_usage() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("throng-results"), "").unwrap();
    let mut command = Command::new(THRONG);
    command
        .args(["measure", "epoll"])
        .current_dir(directory.path());
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(
        printed.contains("cannot create throng-results"),
        "{printed}"
    );
}
