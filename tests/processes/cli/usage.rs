//! Wrong usage is reported before anything is started: exit code 2 and what to do about it.

use std::net::TcpListener;

use super::{throng, throng_in_shell};

#[test]
fn unknown_names_are_reported_with_the_nearest() {
    throng(&["serve", "epol"])
        .is_usage_error(&["there is no model `epol`", "did you mean `epoll`?"]);
    throng(&["serve", "quux"])
        .is_usage_error(&["there is no model `quux`", "there are: iterative"]);
    throng(&["serve", "epoll", "--protocol", "ecko"]).is_usage_error(&["no protocol", "`echo`"]);
    throng(&["load", "127.0.0.1:1", "--protocol", "ecko"]).is_usage_error(&["no protocol"]);
    throng(&["run", "overviev"]).is_usage_error(&["no study", "did you mean `overview`?"]);
    throng(&["run", "--models", "epoll,tread"]).is_usage_error(&["did you mean `thread`?"]);
    throng(&["list", "models", "epol"]).is_usage_error(&["did you mean `epoll`?"]);
}

#[test]
fn sets_of_select_are_for_select_and_never_smaller() {
    throng(&["serve", "epoll", "--fd-setsize", "4096"]).is_usage_error(&["is for select"]);
    throng(&["serve", "select", "--fd-setsize", "64"]).is_usage_error(&["from 1024"]);
}

#[test]
fn a_taken_port_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let finished = throng(&["serve", "epoll", "--listen", &address.to_string()]);
    finished.is_usage_error(&[
        "cannot listen on",
        &format!("port {} is taken", address.port()),
    ]);
}

#[test]
fn an_address_of_another_machine_is_reported() {
    let finished = throng(&[
        "serve",
        "epoll",
        "--listen",
        "192.0.2.1:0",
        "--allow-remote",
    ]);
    finished.is_usage_error(&["192.0.2.1 is no address of this machine", "ip address"]);
}

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
    finished.is_usage_error(&["port 25 is privileged", "1024"]);
}

#[test]
fn impossible_numbers_of_clients_are_refused() {
    let zero = throng(&["load", "127.0.0.1:1", "--clients", "0"]);
    assert_eq!(zero.code, 2, "{zero:?}");
    assert!(zero.err.contains("it must be at least 1"), "{zero:?}");
    throng(&["load", "127.0.0.1:1", "--clients", "10", "--requests", "9"])
        .is_usage_error(&["9 requests are fewer than 10 clients"]);
}

#[test]
fn more_clients_than_descriptors_are_reported_before_the_load() {
    let says = [
        "33 clients need 65 descriptors",
        "may have 64",
        "at most 32 clients",
    ];
    let run = ["run", "--clients", "33"];
    throng_in_shell("ulimit -n 64; exec \"$@\"", &run).is_usage_error(&says);
    // The threads of a load have separate tables, but that does not help if a table is too small for anything.
    let says = ["1 clients need 33 descriptors", "may have 32", "not one"];
    let load = ["load", "127.0.0.1:1", "--clients", "1"];
    throng_in_shell("ulimit -n 32; exec \"$@\"", &load).is_usage_error(&says);
}

#[test]
fn other_machines_are_not_loaded_unasked() {
    let finished = throng(&["load", "192.0.2.1:80"]);
    finished.is_usage_error(&[
        "192.0.2.1 is not on this machine's loopback",
        "--allow-remote",
    ]);
    throng(&["load", "nonsense"]).is_usage_error(&["the port is missing; write nonsense:PORT"]);
}

#[test]
fn a_place_that_cannot_be_written_is_reported_before_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    let below = file.join("results");
    let below = below.to_str().unwrap();
    throng(&["run", "-o", below]).is_usage_error(&["cannot create", below]);
    throng(&["load", "127.0.0.1:1", "--clients-csv", below])
        .is_usage_error(&["cannot write", below]);
    throng(&["serve", "epoll", "--listen", "127.0.0.1:0", "--log", below])
        .is_usage_error(&["cannot write", below]);
}

#[test]
fn a_record_is_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("run.json"), "{}").unwrap();
    let path = directory.path().to_str().unwrap();
    throng(&["run", "-o", path]).is_usage_error(&["holds a record already", path]);
}

#[test]
fn a_wrong_study_is_reported_with_line_and_column() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mine.toml");
    let text = "name = \"mine\"\nquestion = \"why\"\nclients = [1]\n  clinets = [2]\n";
    std::fs::write(&file, text).unwrap();
    let finished = throng(&["run", file.to_str().unwrap()]);
    finished.is_usage_error(&["mine.toml", "line 4, column 3", "clinets"]);
    let missing = directory.path().join("missing.toml");
    throng(&["run", missing.to_str().unwrap()])
        .is_usage_error(&["cannot read the study", "missing.toml"]);
}

#[test]
fn parts_of_a_maximum_that_make_no_sense_are_reported() {
    for wrong in ["0", "100", "50,", "half", "-5", "50;80", "none,50"] {
        let finished = throng(&["run", &format!("--latency-at={wrong}")]);
        assert_eq!(finished.code, 2, "{wrong}: {finished:?}");
        assert!(
            finished.err.contains("write percentages from 1 to 99"),
            "{finished:?}"
        );
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mine.toml");
    let text = "name = \"mine\"\nquestion = \"why\"\nclients = [1]\nlatency-at = [120]\n";
    std::fs::write(&file, text).unwrap();
    throng(&["run", file.to_str().unwrap()]).is_usage_error(&["`latency-at` has percentages"]);
    for option in ["--rate=100", "--think=1ms"] {
        let name = option.split('=').next().unwrap();
        throng(&["compare", "epoll", "poll", "--latency-at", "80", option]).is_usage_error(&[
            name,
            "not the server that sets the rate",
            "--latency-at",
        ]);
    }
}

#[test]
fn a_directory_without_a_record_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let finished = throng(&["report", directory.path().to_str().unwrap()]);
    assert_eq!(finished.code, 1, "{finished:?}");
    assert!(finished.err.contains("holds no record"), "{finished:?}");
}
