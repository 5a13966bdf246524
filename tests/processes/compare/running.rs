//! Servers that run already: measured like others, and left as they are.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::process::Command;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use throng::record::{self, Run, ServerInfo};

use super::compare;
use crate::support::program::{THRONG, words};
use crate::support::server::Server;

/// Properties of a process that must not change: its CPUs, and its priority.
fn standing(pid: Pid) -> (String, String) {
    let read = |name: &str| {
        let path = format!("/proc/{}/{name}", pid.as_raw_nonzero());
        fs::read_to_string(path).expect("it runs")
    };
    let status = read("status");
    let mut lines = status.lines();
    let cpus = lines.find(|line| line.starts_with("Cpus_allowed_list:"));
    let stat = read("stat");
    let after = stat.rsplit(')').next().unwrap_or_default();
    // Priority and nice value are the 18th and 19th fields, two of which precede.
    let fields: Vec<&str> = after.split_whitespace().skip(15).take(2).collect();
    (cpus.expect("it has CPUs").to_owned(), fields.join(" "))
}

/// Whether a child of ours was ever stopped, continued or ended since it was started.
fn was_disturbed(pid: Pid) -> bool {
    let any = WaitIdOptions::STOPPED | WaitIdOptions::CONTINUED | WaitIdOptions::EXITED;
    let look = any | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(pid), look)
        .expect("it is our child")
        .is_some()
}

fn http(model: &str) -> Server {
    Server::start(&[model, "--protocol", "http"]).expect("it starts")
}

fn url(server: &Server) -> String {
    format!("http://{}", server.address())
}

fn pids(server: &ServerInfo) -> BTreeSet<u32> {
    let running = server.running().expect("it runs already");
    running
        .processes
        .iter()
        .map(|process| process.pid)
        .collect()
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().cast_unsigned()
}

fn kinds(run: &Run) -> Vec<&str> {
    run.findings
        .iter()
        .map(|finding| finding.kind.name)
        .collect()
}

/// One of them uses CPU time at rest: a server that throng started would be stopped between its slices.
#[test]
fn running_servers_are_compared_with_others_and_left_as_they_are() {
    let servers = [http("polling"), http("epoll")];
    let before = servers.each_ref().map(|server| standing(server.pid()));
    let urls = servers.each_ref().map(url);
    let names = ["-n", "polls", "-n", "waits", "-n", "own"];
    let there = words(
        "{} {} epoll -r 10 --control none",
        &[urls[0].as_str(), &urls[1]],
    );
    let ran = compare(&[&there[..], &names].concat());
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    let run = record::read(&ran.record()).expect("a record");
    let trials = ran.trials();
    assert_eq!(trials.len(), 3, "{}", ran.err);
    for (place, trial) in trials.iter().enumerate() {
        assert_eq!(trial.failure, None, "{}", ran.err);
        assert!(
            trial
                .slices
                .iter()
                .any(|slice| slice.server_cpu_ns.is_some())
        );
        let side = trial.server_side.as_ref().expect("its side is known");
        assert!(
            side.metrics.contains_key("cpu_percent"),
            "{place}: {side:?}"
        );
        assert!(side.metrics.contains_key("pss_bytes"), "{place}: {side:?}");
    }
    for (info, server) in run.servers.iter().zip(&servers) {
        assert_eq!(pids(info), BTreeSet::from([number(server.pid())]));
        assert!(info.command.is_empty());
        let running = info.running().expect("it runs already");
        assert!(
            running.processes[0]
                .program
                .as_ref()
                .is_some_and(|file| file.sha256.is_some())
        );
    }
    assert!(kinds(&run).contains(&"ran-before"), "{:?}", kinds(&run));
    assert!(!kinds(&run).contains(&"same-processes"));
    for (server, before) in servers.into_iter().zip(before) {
        assert!(!was_disturbed(server.pid()));
        assert_eq!(standing(server.pid()), before);
        let counts = server.stop().expect("it still serves");
        assert!(counts["requests"].as_u64() > Some(0), "{counts}");
    }
}

#[test]
fn one_running_server_is_measured_without_a_ratio_and_can_be_a_gate() {
    let server = http("prefork");
    let url = url(&server);
    let pid = number(server.pid()).to_string();
    let short = ["-r", "2", "-d", "100ms", "--pid", &pid];
    let ran = compare(&[&[url.as_str(), "--fail-if", "p99 >= 0ms"], &short[..]].concat());
    assert_eq!(ran.code, 3, "{} {}", ran.out, ran.err);
    let summary = ran.summary();
    let pairs = summary["comparison"]["pairs"].as_array();
    assert!(pairs.is_none_or(Vec::is_empty), "{summary:#}");
    assert!(!ran.out.contains("ratio"), "{}", ran.out);
    let run = record::read(&ran.record()).expect("a record");
    let running = run.servers[0].running().expect("it runs already");
    assert_eq!(running.named_by, Some(format!("pid {pid}")));
    assert!(running.processes.len() > 1, "its children too: {running:?}");
    assert!(
        ran.err.contains(&format!("found by pid {pid}")),
        "{}",
        ran.err
    );
    assert!(!was_disturbed(server.pid()));
    let limited = assert_cmd::Command::new(THRONG)
        .args(words("limit {} --from 2 --max 4 --duration 50ms", &[&url]))
        .args([
            "--warm-up",
            "0ms",
            "--confirm",
            "1",
            "--probes",
            "none",
            "-o",
        ])
        .arg(ran.directory.path().join("limit"))
        .output()
        .expect("it ends");
    assert!(limited.status.success(), "{limited:?}");
    assert!(!was_disturbed(server.pid()));
    server.stop().expect("it still serves");
}

#[test]
fn one_process_under_two_names_is_reported() {
    let server = http("epoll");
    let url = url(&server);
    let ran = compare(&[&url, &url, "-r", "10", "--control", "none"]);
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    let run = record::read(&ran.record()).expect("a record");
    assert!(kinds(&run).contains(&"same-processes"), "{:?}", kinds(&run));
    server.stop().expect("it still serves");
}

/// Each gets its own path, and all get a common one.
#[test]
fn the_path_of_a_url_is_requested() {
    let server = http("epoll");
    let url = url(&server);
    // throng's own servers have one page.
    let ran = compare(&[&format!("{url}/nowhere"), "-r", "1", "-d", "50ms"]);
    let run = record::read(&ran.record()).expect("a record");
    assert!(
        run.settings.dialogue.contains("/nowhere"),
        "{}",
        run.settings.dialogue
    );
    let ran = compare(&[&url, &format!("{url}/nowhere"), "-r", "1", "-d", "50ms"]);
    let run = record::read(&ran.record()).expect("a record");
    let paths: Vec<_> = run
        .servers
        .iter()
        .map(|info| info.running().and_then(|it| it.path.clone()))
        .collect();
    assert_eq!(paths, [Some("/".to_owned()), Some("/nowhere".to_owned())]);
    server.stop().expect("it still serves");
}

#[test]
fn options_that_need_a_started_server_are_rejected() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = free.local_addr().expect("it has an address").to_string();
    drop(free);
    let url = format!("http://{address}");
    let ran = compare(&[&url]);
    assert_eq!(ran.code, 1, "{} {}", ran.out, ran.err);
    assert!(ran.err.contains("nothing listens on"), "{}", ran.err);
    let refused: [(&[&str], &str); 7] = [
        (
            &[&url, "--server-limit", "nofile=50"],
            "is for servers that throng starts",
        ),
        (
            &[&url, "--ready", "tcp"],
            "is for servers that throng starts",
        ),
        (&["epoll", "--pid", "self"], "expected a process ID"),
        (&["epoll", "--unit", "nginx"], "is for a running server"),
        (
            &[&url, "--protocol", "echo"],
            "http:// is for http, not for echo",
        ),
        (&["http://192.0.2.1:80/"], "--allow-remote"),
        (
            &[&format!("{url}/a"), "--path", "/b"],
            "give all paths with --path",
        ),
    ];
    for (arguments, why) in refused {
        compare(arguments).is_usage_error(why);
    }
}

/// Without the right to see a server's processes there is only the clients' side, with a warning.
#[test]
fn without_visible_processes_only_the_clients_side_is_measured() {
    let server = http("epoll");
    let directory = tempfile::tempdir().expect("a directory");
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(directory.path(), everybody).expect("it is ours");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", THRONG]);
    let tried = command.arg("--version").output();
    if !tried.is_ok_and(|output| output.status.success()) {
        println!("not tried: this needs root, setpriv, and a program that everybody may run");
        return;
    }
    let mut command = assert_cmd::Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", THRONG]);
    command.args(words("measure {} -c 4 -r 1 -d 100ms", &[&url(&server)]));
    command.args("--allow-rough --retries 0 --probes cpu,memory -o".split(' '));
    command.arg(directory.path().join("record"));
    let output = command.output().expect("it ends");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    assert!(err.contains("only the clients are measured"), "{err}");
    let record = directory.path().join("record");
    let run = record::read(&record).expect("a record");
    assert!(
        kinds(&run).contains(&"clients-side-only"),
        "{:?}",
        kinds(&run)
    );
    let trials = record::read_trials(&record).expect("trials");
    let side = trials[0]
        .server_side
        .as_ref()
        .expect("why nothing is known of it");
    assert!(side.metrics.is_empty(), "{side:?}");
    assert!(
        side.unavailable["cpu"]
            .reason
            .contains("belongs to another user"),
        "{side:?}"
    );
    server.stop().expect("it still serves");
}
