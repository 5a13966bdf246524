//! The probes' counts agree with those of other programs: strace(1) by name, perf(1) within 2 %, and
//! our own clients to the last reply. What a machine lacks is left out, with the reason printed.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;

use serde_json::Value;
use throng::measure::probes::{
    ClientPresence, Moment, Panel, ProbeKind, Subject, Target, Tree, choose,
};
use throng::record::{Purpose, Side};
use throng::registry::Entry as _;

use crate::support::program::THRONG;

/// The probe of this name, unless this machine has nothing for it.
fn probe(name: &str) -> Option<&'static ProbeKind> {
    let kind = choose(&[name.to_owned()]).expect("the probe exists")[0];
    kind.supported()
        .inspect_err(|unsupported| eprintln!("skipped: {unsupported}"))
        .ok()
        .map(|()| kind)
}

/// Whether a program can be started.
fn installed(program: &str, version: &str) -> bool {
    let mut command = Command::new(program);
    let quiet = command
        .arg(version)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let there = quiet.status().is_ok_and(|status| status.success());
    if !there {
        eprintln!("skipped: {program} is not installed, or does not run here");
    }
    there
}

/// Runs `command` to its end, counted by `kind` as trials count. `beside` is called before it starts, with the
/// thread whose children it and all its processes are, and what it returns once it has ended.
fn counted<F: FnOnce()>(
    kind: &'static ProbeKind,
    mut command: Command,
    beside: impl FnOnce(rustix::process::Pid) -> F,
) -> Side {
    let (prepared, panel) = channel();
    let (go, gone) = channel();
    let (done, ended) = channel();
    let (looked, may_end) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let panel = Panel::prepare(&[kind], Subject::Processes, Purpose::Profiled);
            let prepared = prepared.send((panel, rustix::thread::gettid()));
            prepared.expect("the test waits for it");
            gone.recv().expect("the test says when");
            let output = command.output().expect("the command can be started");
            assert!(output.status.success(), "{output:?}");
            done.send(()).expect("the test waits for it");
            // What a thread's own end takes is not counted one time and left out the next.
            may_end.recv().expect("the test looks");
        });
        let (mut panel, thread): (Panel, _) = panel.recv().expect("the panel can be prepared");
        panel.attach(Target {
            tree: Tree::of(std::process::id()),
            server: SocketAddr::from(([127, 0, 0, 1], 9)).into(),
            clients: 1,
            files: PathBuf::new(),
            presence: ClientPresence::default(),
        });
        Panel::sample_all(std::slice::from_mut(&mut panel), Moment::Before);
        let finish = beside(thread);
        go.send(()).expect("the thread waits for it");
        ended.recv().expect("the command ends");
        finish();
        Panel::sample_all(std::slice::from_mut(&mut panel), Moment::After);
        looked.send(()).expect("the thread waits for it");
        panel.finish().0
    })
}

/// A tree of processes that does the same however fast: `rounds` times two, one after the other.
fn work(rounds: u32) -> [String; 3] {
    let copy = "dd if=/dev/zero of=/dev/null bs=1000 count=20 2>/dev/null";
    let script = format!("i=0; while [ $i -lt {rounds} ]; do {copy}; {copy}; i=$((i+1)); done");
    ["sh".to_owned(), "-c".to_owned(), script]
}

fn command(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// Calls by name as strace counts them.
fn by_strace(words: &[String], directory: &Path) -> BTreeMap<String, f64> {
    let file = directory.join("strace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-c", "-o"]).arg(&file).args(words);
    let output = strace.output().expect("strace can be started");
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(file).expect("strace has written");
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (calls, name) = (words.get(3)?.parse().ok()?, words.last()?);
        Some(((*name).to_owned(), calls))
    };
    text.lines().filter_map(line).collect()
}

/// The difference between counts of many rounds and of few, without starting and ending.
fn difference(count: impl Fn(u32) -> BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    let (few, many) = (count(5), count(45));
    let less = |name: &str| few.get(name).copied().unwrap_or(0.0);
    many.iter()
        .map(|(name, value)| (name.clone(), value - less(name)))
        .filter(|(_, value)| *value > 0.0)
        .collect()
}

#[test]
fn calls_by_name_are_those_of_strace_exactly() {
    let Some(kind) = probe("syscalls") else {
        return;
    };
    if !installed("strace", "-V") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let theirs = difference(|rounds| by_strace(&work(rounds), directory.path()));
    let ours = difference(|rounds| counted(kind, command(&work(rounds)), |_| || ()).metrics);
    // 40 rounds of two times 20 blocks.
    assert!(theirs["write"] >= 1600.0, "{theirs:?}");
    let mut compared = 0;
    for (name, value) in &ours {
        let Some(call) = name.strip_prefix("syscalls_") else {
            continue;
        };
        // The thread that starts the command is counted by us, and may have to wait.
        if ["other", "futex", "sched_yield"].contains(&call) {
            continue;
        }
        let theirs = theirs.get(call).copied();
        assert_eq!(theirs, Some(*value), "{call}: strace and ours");
        compared += 1;
    }
    assert!(compared >= 6, "{ours:?}");
}

/// perf, counting a thread and what it starts, from its start until it is finished.
struct Perf {
    process: Child,
    commands: File,
    answers: BufReader<File>,
}

impl Perf {
    fn start(thread: rustix::process::Pid, directory: &Path) -> Self {
        let fifo = |name: &str| {
            let path = directory.join(name);
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            let node = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, &path, node, mode, 0).expect("FIFOs can be made");
            let file = File::options().read(true).write(true).open(&path);
            (path, file.expect("FIFOs can be opened"))
        };
        let ((commands, to_perf), (answers, from_perf)) = (fifo("commands"), fifo("answers"));
        let events = "task-clock,page-faults,context-switches,instructions,cycles";
        let mut perf = Command::new("perf");
        perf.args(["stat", "-x", ";", "-D", "-1", "-e", events, "-o"])
            .arg(directory.join("perf"))
            .args(["-t", &thread.as_raw_nonzero().to_string()])
            .args([
                "--control",
                &format!("fifo:{},{}", commands.display(), answers.display()),
            ]);
        let mut perf = Self {
            process: perf
                .stderr(Stdio::null())
                .spawn()
                .expect("perf can be started"),
            commands: to_perf,
            answers: BufReader::new(from_perf),
        };
        perf.ask("enable");
        perf
    }

    /// Sends a command, and waits until perf has obeyed.
    fn ask(&mut self, command: &str) {
        writeln!(self.commands, "{command}").expect("perf reads its commands");
        let fd = self
            .answers
            .get_ref()
            .as_fd()
            .try_clone_to_owned()
            .expect("a descriptor can be duplicated");
        let tenth = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 100_000_000,
        };
        let mut poll = [rustix::event::PollFd::new(
            &fd,
            rustix::event::PollFlags::IN,
        )];
        while rustix::event::poll(&mut poll, Some(&tenth)).is_ok_and(|ready| ready == 0) {
            let ended = self.process.try_wait().expect("perf was started");
            assert!(ended.is_none(), "perf did not {command}: {ended:?}");
        }
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("perf answers");
        assert!(answer.contains("ack"), "{answer:?}");
    }

    fn finish(mut self) {
        self.ask("disable");
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("perf runs");
        self.process.wait().expect("perf ends");
    }
}

#[test]
fn counters_agree_with_perf_within_two_percent() {
    let Some(kind) = probe("counters") else {
        return;
    };
    if !installed("perf", "--version") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let beside = |thread| {
        let perf = Perf::start(thread, directory);
        || perf.finish()
    };
    let mut counts = counted(kind, command(&work(180)), beside).metrics;
    for line in std::fs::read_to_string(directory.join("perf"))
        .unwrap()
        .lines()
    {
        let words: Vec<&str> = line.split(';').collect();
        if let (Some(Ok(value)), Some(event)) =
            (words.first().map(|word| word.parse::<f64>()), words.get(2))
        {
            // perf reports clocks in milliseconds.
            let unit = if *event == "task-clock" { 1e6 } else { 1.0 };
            counts.insert(format!("perf: {event}"), value * unit);
        }
    }
    let mut compared = 0;
    for (ours, theirs) in [
        ("task_clock_ns", "task-clock"),
        ("page_faults", "page-faults"),
        ("context_switches", "context-switches"),
        ("instructions", "instructions"),
        ("cycles", "cycles"),
    ] {
        let both = (counts.get(ours), counts.get(&format!("perf: {theirs}")));
        let (Some(our), Some(their)) = both else {
            eprintln!("skipped: {theirs} are not counted here: {both:?}");
            continue;
        };
        assert!(
            (our - their).abs() <= 0.02 * their + 10.0,
            "{theirs}: {counts:?}"
        );
        compared += 1;
    }
    assert!(compared >= 3, "{counts:?}");
}

#[test]
fn a_thread_receives_and_sends_once_for_each_reply() {
    if probe("syscalls").is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let mut run = Command::new(THRONG);
    run.args(
        "run --allow-rough --retries 0 --models thread,fork --clients 7,200 --runs 1".split(' '),
    );
    run.args("--duration 100ms --warm-up 50ms --probes syscalls".split(' '));
    run.args(["--control", "none", "--no-ceiling", "-o"])
        .arg(directory);
    let output = run.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines = std::fs::read_to_string(directory.join("trials.jsonl")).unwrap();
    let trials = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let counted: Vec<Value> = trials
        .filter(|trial: &Value| trial["purpose"] == "profiled")
        .collect();
    assert_eq!(counted.len(), 4);
    for trial in counted {
        let load = &trial["load"];
        assert_eq!(load["served"], trial["clients"], "{trial:#}");
        let number = |value: &Value| value.as_f64().unwrap();
        let replies = number(&load["verified"]) - number(&load["served"]);
        // A client may have its reply before its thread receives again: after counting has begun, or has ended.
        let late = number(&load["served"]);
        for (side, call, tolerance) in [
            ("server_side", "syscalls_recvfrom", late),
            ("server_side", "syscalls_sendto", 0.0),
            ("client_side", "syscalls_sendto", 0.0),
        ] {
            let count = number(&trial[side]["metrics"][call]);
            assert!(
                (count - replies).abs() <= tolerance,
                "{side} {call} {count}: {trial:#}"
            );
        }
    }
}
