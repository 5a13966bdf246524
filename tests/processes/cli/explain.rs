//! `throng explain`: its output, and that no process outlives it.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use throng::serve::models::MODELS;

use super::throng;
use crate::support::program::THRONG;

#[test]
fn without_a_name_it_lists_the_models() {
    let finished = throng(&["explain"]);
    assert_eq!(finished.code, 0, "{finished:?}");
    for model in MODELS {
        let info = model.info;
        assert!(
            finished.out.contains(info.name) && finished.out.contains(info.summary),
            "{finished:?}"
        );
    }
}

#[test]
fn a_name_that_is_nearly_right_is_guessed() {
    throng(&["explain", "epol"]).is_usage_error(&["did you mean `epoll`?"]);
    let both = throng(&["explain", "poll", "--json", "--markdown"]);
    assert_eq!(both.code, 2, "{both:?}");
}

#[test]
fn every_part_of_a_page_is_there_and_fits_a_terminal() {
    for model in MODELS {
        let name = model.info.name;
        let mut command = assert_cmd::Command::new(THRONG);
        command
            .args(["explain", name, "--no-trace"])
            .env("COLUMNS", "80");
        let finished = super::finish(command);
        assert_eq!(finished.code, 0, "{finished:?}");
        for heading in [
            "Who waits where",
            "System calls of one request",
            "fn ",
            "Measured",
            "To try",
        ] {
            assert!(finished.out.contains(heading), "{name}: no `{heading}`");
        }
        assert!(!finished.out.contains('\u{1b}'), "a pipe has no colours");
        // A command stays in one piece, to be copied.
        let is_command = |line: &str| line.trim_start().starts_with("throng ");
        for line in finished.out.lines().filter(|line| !is_command(line)) {
            let columns = line.chars().count();
            assert!(columns <= 80, "{name}: {columns} columns: {line}");
        }
    }
}

#[test]
fn untraceable_parts_have_a_reason_and_the_rest_is_shown() {
    // No descriptor is left for a server's pipes.
    let finished = super::throng_in_shell("ulimit -n 6; \"$@\"", &["explain", "poll"]);
    assert_eq!(finished.code, 0, "{finished:?}");
    for what in [
        "Not traced here: ",
        "Too many open files",
        "Who waits where",
        "To try",
    ] {
        assert!(finished.out.contains(what), "no `{what}`: {finished:?}");
    }
}

/// Status lines of all processes, as `/proc` has them: number, parent, group.
fn processes() -> Vec<(i32, i32, i32)> {
    let entries = std::fs::read_dir("/proc")
        .expect("there is /proc")
        .flatten();
    let stats = entries.filter_map(|entry| {
        let number = entry.file_name().to_string_lossy().parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let (_, after) = stat.rsplit_once(')')?;
        let mut words = after
            .split_whitespace()
            .skip(1)
            .map(|word| word.parse().ok());
        Some((number, words.next()??, words.next()??))
    });
    stats.collect()
}

/// `throng explain MODEL`, as soon as it has started its server, and the server's number. It may be over before a look,
/// and then there is another.
fn explaining(model: &str) -> (Child, i32) {
    let mut tries = (0..50).filter_map(|_| try_to_explain(model));
    tries
        .next()
        .unwrap_or_else(|| panic!("{model}: no server was seen"))
}

fn try_to_explain(model: &str) -> Option<(Child, i32)> {
    let mut command = Command::new(THRONG);
    command
        .args(["explain", model])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().expect("the program can be started");
    let own = child.id().cast_signed();
    let serves = |number: i32| {
        let words = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == b"serve")
    };
    // It ends by itself, within bounds.
    while child.try_wait().expect("it is our child").is_none() {
        let all = processes().into_iter();
        let mut children = all.filter(|(number, parent, _)| *parent == own && serves(*number));
        if let Some((server, ..)) = children.next() {
            return Some((child, server));
        }
    }
    None
}

/// Requires that a server's group has no process left.
fn demand_all_ended(model: &str, server: i32) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while processes().iter().any(|(_, _, group)| *group == server) {
        assert!(
            Instant::now() < deadline,
            "{model}: somebody of {server} is left"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn nothing_outlives_an_interrupt_or_kill() {
    for signal in [Signal::INT, Signal::KILL] {
        for model in ["fork", "aio"] {
            let (mut child, server) = explaining(model);
            let pid = Pid::from_child(&child);
            kill_process(pid, signal).expect("it is not reaped yet");
            let status = child.wait().expect("it is our child");
            // It may have come to its end just before.
            let ended = [Some(130), Some(0)].contains(&status.code());
            assert!(ended || status.signal() == Some(9), "{model}: {status}");
            demand_all_ended(model, server);
        }
    }
}

#[test]
fn exercises_can_be_done() {
    for (model, number) in [("iterative", 0), ("thread-pool", 1)] {
        let page = throng(&["explain", model, "--no-trace", "--markdown"]).out;
        let (_, exercises) = page.split_once("## To try").expect("they end the page");
        let commands: Vec<&str> = exercises
            .lines()
            .filter(|line| line.starts_with("   throng "))
            .collect();
        assert!((3..=5).contains(&commands.len()), "{model}");
        let directory = tempfile::tempdir().expect("there is room");
        // As it is, but for less time.
        let quick = commands[number]
            .trim()
            .replace(
                "--duration 500ms",
                "--duration 50ms --warm-up 10ms --warm-up-limit 10ms",
            )
            .replace(
                "--runs 1 ",
                "--runs 1 --control none --no-ceiling --latency-at none ",
            )
            .replace("--runs 3", "--runs 2")
            .replace("--each 1 ", "--each 1 --control none ");
        let words = shlex::split(&quick).expect("a shell understands it");
        let mut arguments: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
        let place = directory.path().join("record");
        arguments.extend([
            "--probes",
            "cpu",
            "--allow-rough", // a busy machine
            "--output",
            place.to_str().expect("it is UTF-8"),
        ]);
        let finished = throng(&arguments);
        assert_eq!(finished.code, 0, "{quick}: {finished:?}");
        assert!(finished.out.contains(model), "{quick}: {finished:?}");
    }
}

/// How many are slow follows from the schedule, however slow this machine is.
#[test]
fn an_open_loop_sees_what_a_closed_one_leaves_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let figure = directory.path().join("omission.svg");
    let name = figure.to_str().expect("the path is UTF-8");
    let finished = throng(&["explain", "omission", "--svg", name]);
    assert_eq!(finished.code, 0, "{}", finished.err);
    let row = |name: &str| {
        let mut lines = finished.out.lines();
        let line = lines.find(|line| line.trim_start().starts_with(name));
        line.unwrap_or_else(|| panic!("{name}: {}", finished.out))
            .to_owned()
    };
    for name in ["closed loop", "corrected", "open loop"] {
        assert!(row(name).contains('%'), "{}", row(name));
    }
    let drawn = std::fs::read_to_string(&figure).expect("it is written");
    assert!(drawn.ends_with("</svg>\n") && drawn.contains("open loop"));
    throng(&["explain", "poll", "--svg", name]).is_usage_error(&["--svg is for"]);
    throng(&["explain", "omission", "--json"]).is_usage_error(&["has only --svg"]);
}
