//! Commands and rights: a command line is executed as words, without a shell, and nothing that throng does needs root.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use rustix::process::{Resource, geteuid, getrlimit};
use serde_json::Value;

use super::{finished, throng, word};
use crate::support::program::{THRONG, words};
use crate::support::server::Server;

#[test]
fn no_shell_reads_a_command_line_unasked() {
    for text in [
        "touch {}; true",
        "touch {} & true",
        "true | touch {}",
        "touch $(echo {})",
        "touch \"`echo {}`\"",
        "true > {}",
        "touch {}\ntrue",
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let made = directory.path().join("made");
        let text = text.replace("{}", word(&made));
        for arguments in [
            &["compare", &text, "epoll"][..],
            &["limit", &text],
            &words(
                "compare --allow-rough --retries 0 epoll poll --prepare {}",
                &[&text],
            ),
            &words(
                "compare --allow-rough --retries 0 epoll poll --conclude {}",
                &[&text],
            ),
        ] {
            throng(arguments).is_refused(&["needs a shell", "--shell"]);
        }
        assert!(!made.exists(), "{text}");
    }
}

#[test]
fn shell_syntax_is_passed_on_unchanged() {
    let directory = tempfile::tempdir().expect("a directory");
    let name = "$(id); `id` | x & y > z * ~";
    let made = directory.path().join(name);
    let record = directory.path().join("record");
    let prepare = format!("touch '{}'", word(&made));
    let mut command = Command::new(THRONG);
    command.args(words(
        "compare --allow-rough --retries 0 false true --prepare {} --runs 1 -o",
        &[&prepare],
    ));
    command.arg(&record);
    let finished = finished(command);
    // Neither is a server; what went before was run as it stood.
    assert_eq!(finished.code, 1, "{}", finished.err);
    let mut names: Vec<_> = fs::read_dir(directory.path())
        .expect("it is there")
        .map(|entry| entry.expect("it can be read").file_name())
        .collect();
    names.sort();
    assert_eq!(names, [name, "record"]);
}

/// The program in a place where every user may run it: the build's directory may be closed to others.
fn open_to_all(directory: &Path) -> std::path::PathBuf {
    let open = fs::Permissions::from_mode(0o777);
    fs::set_permissions(directory, open).expect("the directory is ours");
    let program = directory.join("throng");
    if fs::hard_link(THRONG, &program).is_err() {
        fs::copy(THRONG, &program).expect("there is room");
    }
    program
}

/// The program run by a user without any rights; `None` if root cannot become one.
fn as_ordinary_user(directory: &Path) -> Option<Command> {
    let program = open_to_all(directory);
    if !geteuid().is_root() {
        return Some(Command::new(program));
    }
    if Command::new("setpriv").arg("--version").output().is_err() {
        println!("not tried: this is root, and there is no setpriv to be another user");
        return None;
    }
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--no-new-privs",
    ]);
    command.arg(program);
    Some(command)
}

/// All that is measured by default, by a user without any rights; what needs more is named with what to do.
#[test]
fn an_ordinary_user_can_measure() {
    let directory = tempfile::tempdir().expect("a directory");
    let record = directory.path().join("record");
    let Some(mut command) = as_ordinary_user(directory.path()) else {
        return;
    };
    command.args(
        "run --allow-rough --retries 0 --models epoll,thread --clients 2 --runs 1".split(' '),
    );
    command.args(["--duration", "100ms", "--warm-up", "50ms", "-o"]);
    command.arg(&record).current_dir(directory.path());
    let finished = finished(command);
    assert_eq!(finished.code, 0, "{}", finished.err);
    let run = fs::read_to_string(record.join("run.json")).expect("there is a record");
    let run: Value = serde_json::from_str(&run).expect("it is JSON");
    assert_eq!(run["ending"], "complete");
    let trials = fs::read_to_string(record.join("trials.jsonl")).expect("there are trials");
    assert!(!trials.contains("\"failure\""), "{trials}");
    for (probe, missing) in run["unavailable"].as_object().into_iter().flatten() {
        let printed = |key: &str| missing[key].as_str().is_some_and(|text| !text.is_empty());
        assert!(printed("reason") && printed("remedy"), "{probe}: {missing}");
    }
}

/// Rings of an ordinary user count as locked memory, of which 8 MiB are usual. Of the largest rings, that is 16.
#[test]
fn an_ordinary_user_has_a_ring_per_cpu_on_a_large_machine() {
    const USUAL: u64 = 8 << 20;
    if let Err(why) = throng::sys::ring::supported() {
        println!("not tried: {why}");
        return;
    }
    let limit = getrlimit(Resource::Memlock).maximum;
    if !geteuid().is_root() && limit.is_some_and(|limit| limit < USUAL) {
        println!("not tried: this user may lock only {limit:?} bytes");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let Some(user) = as_ordinary_user(directory.path()) else {
        return;
    };
    let mut command = Command::new("prlimit");
    command.arg(format!("--memlock={USUAL}"));
    command.arg(user.get_program());
    command.args(user.get_args());
    command.args(["serve", "io-uring-reactors", "--workers", "64"]);
    let server = Server::spawn(command).expect("it listens");
    let load = throng(&words(
        "load {} -n 100 -c 10",
        &[&server.address().to_string()],
    ));
    assert_eq!(load.code, 0, "{}", load.err);
    let counts = server.stop().expect("it ends in time");
    assert!(counts["requests"].as_u64() >= Some(100), "{counts}");
}
