//! Servers that fail in different ways: the trial names each, and the run continues.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{compare, left_behind, python, with_time_to_start};
use crate::support::program::{THRONG, words};
use throng::record::findings::servers::OUTPUT;

/// Runs each of these servers once, next to a good one; how each failed, why and with what output.
fn failures(servers: &[(&str, &str)], more: &[&str]) -> Vec<(String, String, String)> {
    let mut arguments = vec!["epoll", "-n", "good"];
    for (name, command) in servers {
        arguments.extend([*command, "-n", *name]);
    }
    // Other tests may stop the load generator for so long that a trial is invalid.
    arguments.extend("-r 1 -d 600ms --retries 5 --control none --keep-going".split(' '));
    arguments.extend(more);
    let ran = compare(&arguments);
    assert_eq!(ran.code, 1, "{} {}", ran.out, ran.err);
    assert!(
        ran.err.contains("failed; see the report for the reasons"),
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
    let report = std::fs::read_to_string(ran.record().join("report.md")).expect("a report");
    let report = report.replace('\\', ""); // as escaped as Markdown has it
    for (name, _) in servers {
        let why = of(name)
            .failure
            .as_ref()
            .map_or("", |failure| &failure.reason);
        assert!(ran.err.contains(why), "{why} is not in: {}", ran.err);
        assert!(report.contains(why), "{why} is not in {report}");
    }
    servers
        .iter()
        .map(|(name, _)| {
            let failure = of(name).failure.clone();
            let failure = failure.unwrap_or_else(|| panic!("{name} did not fail"));
            assert!(of(name).load.is_none(), "{name} has no figures");
            (failure.stage.to_string(), failure.reason, failure.output)
        })
        .collect()
}

#[test]
fn every_trouble_is_reported_and_ended() {
    let occupied = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = occupied.local_addr().expect("it has an address").port();
    let Some([crashing, daemon, stray, plain]) = ["crash", "daemon", "stray", ""]
        .map(python)
        .into_iter()
        .collect::<Option<Vec<String>>>()
        .and_then(|all| <[String; 4]>::try_from(all).ok())
    else {
        return;
    };
    let on_taken = plain.replace("{port}", &taken.to_string());
    let elsewhere = plain.replace("{port}", "0"); // where the kernel likes
    let mut found = failures(
        &[
            ("crashing", &crashing),
            ("daemon", &daemon),
            ("stray", &stray),
            ("taken", &on_taken),
            ("short", "sh -c 'echo out of cheese >&2; exit 3'"),
        ],
        &["--ready-timeout", "60s"],
    );
    drop(occupied);
    let waited_for = [("elsewhere", elsewhere.as_str())];
    found.extend(with_time_to_start(|limit| {
        let found = failures(&waited_for, &["--ready-timeout", limit]);
        let has_started = found[0].1.contains("write {port} for the port");
        has_started
            .then_some(found.clone())
            .ok_or(found[0].1.clone())
    }));
    let expected = [
        ("serve", "exit status: 7", ""),
        // Whether one is taken for ready before it fails depends on who of both is slower.
        (
            "start or load or serve",
            "in the background; keep the server in the foreground",
            "",
        ),
        ("load", "left the server's process tree", ""),
        ("start or load", "exit status: 1", "Address already in use"),
        ("start", "exit status: 3", "out of cheese"),
        ("start", "write {port} for the port", ""),
    ];
    are_as(&found, &expected);
}

/// Another program may take its port before it does. Then it starts again with another one.
#[test]
fn a_server_whose_port_is_taken_gets_another_one() {
    let Some(server) = python("") else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let first = directory.path().join("first");
    let first = first.display();
    // The first time, the other program has the port, and the server listens elsewhere.
    let prepare = format!(
        "[ -e {first} ] || {{ {} & }}",
        server.replace("{port}", "$PORT")
    );
    let port = format!("$([ -e {first} ] && echo {{port}} || {{ touch {first}; echo 0; }})");
    let server = format!("exec {}", server.replace("{port}", &port));
    let ran = compare(&words(
        "epoll {} -n good -n moved --shell --prepare {} -r 1 -d 100ms --control none --keep-going",
        &[&server, &prepare],
    ));
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    let trials = ran.trials();
    let moved = trials.iter().find(|trial| trial.server == "moved");
    assert_eq!(moved.expect("it had its trial").failure, None);
}

/// Each in this stage (or one of these), for this reason, with this output.
fn are_as(found: &[(String, String, String)], expected: &[(&str, &str, &str)]) {
    assert_eq!(found.len(), expected.len());
    for ((stage, reason, output), expected) in found.iter().zip(expected) {
        let is_expected = expected.0.split(" or ").any(|one| one == stage);
        assert!(is_expected, "{stage}: {reason}: {output}");
        assert!(reason.contains(expected.1), "{expected:?}: {reason}");
        assert!(output.contains(expected.2), "{expected:?}: {output}");
    }
}

/// Stopped by a signal, out of memory, or with children that outlive it.
#[test]
fn servers_that_hang_leak_or_leave_children_are_explained() {
    let troubles = ["hang", "leak", "abandon"];
    let Some(servers) = troubles.map(python).into_iter().collect::<Option<Vec<_>>>() else {
        return;
    };
    let named: Vec<(&str, &str)> = troubles
        .into_iter()
        .zip(servers.iter().map(String::as_str))
        .collect();
    // Threads of Python take much address space and little memory.
    let [patient, hasty] = ["60s", "2s"].map(|time| {
        words(
            "--ready-timeout {} --server-limit as=2GiB --stop-timeout 2s",
            &[time],
        )
    });
    let mut found = failures(&named, &patient);
    // The whole time is waited for them. A shell is stopped long before, however busy the machine is.
    let waited_for = [("still", "sh -c 'kill -STOP $$'"), ("deaf", "sleep 60")];
    found.extend(failures(&waited_for, &hasty));
    let expected = [
        ("stop", "is stopped by a signal (SIGSTOP)", ""),
        ("serve", "exit status: 9", "out of memory"),
        ("serve", "exit status: 0 and left ", ""),
        ("start", "is stopped by a signal (SIGSTOP)", ""),
        ("start", "accepted no connection", ""),
    ];
    are_as(&found, &expected);
}

/// The kernel kills without a message of the server.
#[test]
fn a_server_killed_by_the_oom_killer_is_named() {
    let Some(server) = python("gorge") else {
        return;
    };
    let Some(group) = Group::of_memory(48 << 20) else {
        println!("not tried: no control group of memory can be made here");
        return;
    };
    let inside = format!(
        "sh -c 'echo $$ > {}/cgroup.procs; exec {server}'",
        group.0.display()
    );
    let found = failures(&[("gorging", &inside)], &[]);
    are_as(
        &found,
        &[(
            "serve",
            "signal: 9 (SIGKILL): the kernel killed processes because memory ran out",
            "",
        )],
    );
}

/// A control group that is removed afterwards.
struct Group(PathBuf);

impl Group {
    fn of_memory(bytes: u64) -> Option<Self> {
        let name = format!("throng-test-{}", std::process::id());
        let places = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup/unified", "memory.max"),
            ("/sys/fs/cgroup", "memory.max"),
        ];
        places.into_iter().find_map(|(mount, limit)| {
            let directory = Path::new(mount).join(&name);
            std::fs::create_dir(&directory).ok()?;
            let group = Self(directory);
            let limit = group.0.join(limit);
            // Otherwise it would be a plain file.
            let is_there = limit.exists();
            (is_there && std::fs::write(limit, bytes.to_string()).is_ok()).then_some(group)
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(5);
        // It is busy until its last process has ended.
        while std::fs::remove_dir(&self.0).is_err() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Lines, and on the other stream one line without an end: neither is kept, and neither holds up the server.
#[test]
fn a_flood_of_output_costs_no_memory_and_is_reported() {
    const MOST_KIB: u64 = 400 << 10;
    let Some(flooding) = python("flood") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("record");
    let mut command = Command::new(THRONG);
    command.args([
        "compare", "epoll", &flooding, "-n", "good", "-n", "flooding", "-r", "1",
    ]);
    command.args(
        "-c 8 -d 1s --warm-up 0s --control none --allow-rough --retries 0 --ready-timeout 60s"
            .split(' '),
    );
    command.args(["--probes", "cpu", "-o"]).arg(&record);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = command.spawn().unwrap();
    let mut most = 0;
    let status = loop {
        most = most.max(peak_memory_kib(run.id()).unwrap_or(0));
        if let Some(status) = run.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(status.code(), Some(0));
    assert!((1..MOST_KIB).contains(&most), "{most} KiB");
    let trials = throng::record::read_trials(&record).unwrap();
    let of_flooding = trials.iter().find(|trial| trial.server == "flooding");
    let trial = of_flooding.expect("it had its trial");
    assert_eq!(trial.failure, None);
    let load = trial.load.as_ref().expect("figures");
    assert_eq!(load.served, 8, "{:?}", load.errors);
    let reported = &trial.found(&OUTPUT).expect("it is reported").text;
    assert!(reported.contains("of output under load"), "{reported}");
    let written = std::fs::metadata(record.join("trials.jsonl"))
        .unwrap()
        .len();
    assert!(written < 1 << 20, "{written} bytes");
}

/// The most memory that a process ever had.
fn peak_memory_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.trim().strip_suffix(" kB")?.parse().ok()
}

#[test]
fn readiness_can_be_a_line_of_output() {
    let Some(late) = python("late") else {
        return;
    };
    let ready = words("--ready {} -r 1 -d 100ms --control none", &["^ready for"]);
    let ran = compare(&[&["epoll", &late], &ready[..]].concat());
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    let (stage, reason) = with_time_to_start(|limit| {
        let wrong = ["--ready", "open for business", "--ready-timeout", limit];
        let (stage, reason, output) = failures(&[("silent", &late)], &wrong).remove(0);
        let has_started = output.contains("ready for customers");
        has_started.then_some((stage, reason)).ok_or(output)
    });
    assert_eq!(stage, "start");
    assert!(reason.contains("did not match --ready within "), "{reason}");
}

#[test]
fn an_interrupted_comparison_leaves_nothing_behind() {
    let Some(stray) = python("stray") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let mark = format!("{}-interrupted", std::process::id());
    let child = Command::new(THRONG)
        .args(words(
            "compare --allow-rough --retries 0 {} epoll -d 30s --control none -o",
            &[&stray],
        ))
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

/// For a bug: throng signalled the server's process group alone, and then waited for ever.
#[test]
fn a_server_that_joins_the_process_group_of_throng_is_ended() {
    let Some(joined) = python("joined") else {
        return;
    };
    let ran = compare(&words("{} -r 1 -d 50ms --control none", &[&joined]));
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    for trial in ran.trials() {
        assert_eq!(trial.failure, None);
    }
}

#[test]
fn a_server_that_leaves_its_tree_before_it_is_ready_is_named() {
    let Some(server) = python("") else {
        return;
    };
    let server = format!("sh -c 'setsid -f {server}; exec sleep 600'");
    let ran = compare(&words("{} -r 1 -d 50ms --control none", &[&server]));
    assert_eq!(ran.code, 1, "{} {}", ran.out, ran.err);
    let says = "left the server's process tree and cannot be measured";
    assert!(ran.err.contains(says), "{}", ran.err);
}
