//! Wrong usage whose message depends on the machine. `messages` has everything else.

use std::process::Command;

use super::{throng, throng_in_shell};
use crate::support::program::{THRONG, printed};

#[test]
fn a_privileged_port_is_reported() {
    let first_free = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    if first_free.is_ok_and(|port| port.trim().parse().is_ok_and(|port: u16| port <= 25)) {
        println!("not tried: on this machine every user may take port 25");
        return;
    }
    let arguments = ["serve", "epoll", "--listen", "127.0.0.1:25"];
    let finished = if rustix::process::geteuid().is_root() {
        // Root without the one capability that it takes.
        let script = "exec setpriv --bounding-set=-net_bind_service \"$@\"";
        if throng_in_shell("command -v setpriv", &[]).code != 0 {
            println!("not tried: root may take port 25, and there is no setpriv");
            return;
        }
        throng_in_shell(script, &arguments)
    } else {
        throng(&arguments)
    };
    assert_eq!(finished.code, 1, "{finished:?}");
    let says = "port 25 is privileged; choose one from 1024";
    assert!(finished.err.contains(says), "{finished:?}");
}

#[test]
fn more_clients_than_descriptors_are_reported_before_the_load() {
    let says = [
        "33 clients need 65 descriptors",
        "limited to 64",
        "at most 32 clients",
    ];
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("record");
    let run = ["run", "--clients", "33", "-o", record.to_str().unwrap()];
    throng_in_shell("ulimit -n 64; exec \"$@\"", &run).is_usage_error(&says);
    // The threads of a load have separate tables, but that does not help if a table is too small for anything.
    let says = [
        "1 clients need 33 descriptors",
        "limited to 32",
        "not a single",
    ];
    let load = ["load", "127.0.0.1:1", "--clients", "1"];
    throng_in_shell("ulimit -n 32; exec \"$@\"", &load).is_usage_error(&says);
}

#[test]
fn values_of_any_length_are_not_echoed_whole() {
    let long = "n".repeat(100_000);
    for arguments in [
        &["load", "127.0.0.1:1", "-c", &long][..],
        &["load", "127.0.0.1:1", "--fail-if", &long],
        &["run", &long],
        &[&long],
    ] {
        let finished = throng(arguments);
        finished.is_usage_error(&["nnn … nnn"]);
        assert!(finished.err.len() < 10_000, "{}", finished.err.len());
    }
}

#[test]
fn a_record_is_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("run.json"), "{}").unwrap();
    let path = directory.path().to_str().unwrap();
    throng(&["run", "-o", path]).is_usage_error(&["already contains a record", path]);
}

#[test]
fn a_run_that_does_not_begin_leaves_no_directory() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in ["run --clients 33", "compare epoll --export-json absent/a"] {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n 64; exec \"$@\"", "sh", THRONG]);
        command.args(arguments.split(' '));
        let output = command.current_dir(directory.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
        let results = std::fs::read_dir(directory.path().join("throng-results"));
        assert_eq!(results.unwrap().count(), 0, "{arguments}");
    }
}
