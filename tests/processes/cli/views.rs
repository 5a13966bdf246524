//! Two records side by side, and all records of a directory as a page.

mod drill;
mod refused;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use throng::record::metrics::Quantity;
use throng::record::{
    Ending, LIVE, LivePoint, LiveTrial, Lock, Run, SCHEMA_VERSION, ServerSoFar, SideBySide, Store,
    Study, StudyPart, Trial,
};

use super::throng;
use crate::support::program::{THRONG, word};

/// Time limit of each step on a machine that is busy with other tests.
const TIMEOUT: Duration = Duration::from_mins(2);

/// A whole record that is a part of this repository, and the same with another beginning.
fn record(number: usize, started_at: &str) -> (Run, Vec<Trial>) {
    let text = include_str!("../../../fuzz/corpus/records.json");
    let records: Vec<Value> = serde_json::from_str(text).expect("the corpus is JSON");
    let of = |part: &str| records[number][part].clone();
    let mut run: Run = serde_json::from_value(of("run")).expect("it is a run");
    let trials: Vec<Trial> = serde_json::from_value(of("trials")).expect("they are trials");
    started_at.clone_into(&mut run.started_at);
    run.trials_planned = trials.len() as u32;
    (run, trials)
}

fn write(directory: &Path, (run, trials): &(Run, Vec<Trial>)) {
    let mut store = Store::create(directory).expect("there is room");
    store.write_run(run).expect("there is room");
    for trial in trials {
        store.add_trial(trial).expect("there is room");
    }
    release(store, directory);
}

/// Ends writing to a record.
fn release(store: Store, directory: &Path) {
    drop(store);
    // A process that another test has just forked holds the lock as well, until it runs its program.
    let deadline = Instant::now() + TIMEOUT;
    while Lock::is_taken(directory) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Compresses the trials of a record.
fn archive(record: &Path) {
    let plain = record.join("trials.jsonl");
    let text = fs::read(&plain).expect("it is there");
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&text).expect("memory takes it");
    let bytes = gzip.finish().expect("memory takes it");
    fs::write(record.join("trials.jsonl.gz"), bytes).expect("there is room");
    fs::remove_file(plain).expect("it is there");
}

/// A running `throng view`.
pub(super) struct View {
    child: Child,
    address: SocketAddr,
    /// What gives access.
    token: String,
}

impl View {
    fn start(directory: &Path) -> Self {
        Self::start_in(directory, &[".".to_owned()])
    }

    /// With these arguments, in a directory.
    pub(super) fn start_in(directory: &Path, arguments: &[String]) -> Self {
        let mut command = Command::new(THRONG);
        command.arg("view").args(arguments).current_dir(directory);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().expect("the program can be started");
        let out = child.stdout.take().expect("it is piped");
        let mut line = String::new();
        let read = BufReader::new(out).read_line(&mut line);
        read.expect("it says where it listens");
        let url = line.trim().strip_prefix("listening on http://");
        let parts = url.and_then(|url| url.split_once("/?token="));
        let address = parts.and_then(|(address, _)| address.parse().ok());
        let (Some(address), Some((_, token))) = (address, parts) else {
            panic!("its first line is `{line}`");
        };
        Self {
            child,
            address,
            token: token.to_owned(),
        }
    }

    /// A request with the cookie of a browser that opened the URL.
    fn with_cookie(&self, request: &str) -> String {
        let (port, token) = (self.address.port(), &self.token);
        let cookie = format!("\r\nCookie: other=1; throng-{port}={token}\r\n");
        request.replacen("\r\n", &cookie, 1)
    }

    /// Stops it; returns its exit code.
    pub(super) fn end(self) -> Option<i32> {
        self.end_by(Signal::TERM)
    }

    fn end_by(mut self, signal: Signal) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), signal).expect("it is there");
        self.child.wait().expect("it ends").code()
    }

    /// Its reply to a request of a browser that opened the URL.
    fn answer(&self, request: &str) -> Answer {
        self.answer_to_anyone(&self.with_cookie(request))
    }

    /// Its reply to raw bytes; status 0 if it closes instead.
    fn answer_to_anyone(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        let is_set = stream.set_read_timeout(Some(TIMEOUT));
        is_set.expect("it is a socket");
        let mut bytes = Vec::new();
        // What is refused need not be read to its end.
        let finished = stream
            .write_all(request.as_bytes())
            .and_then(|()| stream.read_to_end(&mut bytes));
        let text = String::from_utf8_lossy(&bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        Answer {
            status: status.unwrap_or(0),
            head: head.to_lowercase(),
            body: if status.is_some() {
                body.to_owned()
            } else {
                format!("{finished:?}")
            },
        }
    }

    fn ask(&self, method: &str, path: &str) -> Answer {
        let host = self.address;
        self.answer(&format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        ))
    }

    fn get(&self, path: &str) -> Answer {
        self.ask("GET", path)
    }

    fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{}", answer.body);
        serde_json::from_str(&answer.body).expect("it is JSON")
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    #[track_caller]
    fn assert_contains(&self, status: u16, words: &[&str]) {
        // A page has a megabyte of scripts.
        let body: String = self.body.chars().take(3000).collect();
        assert_eq!(self.status, status, "{body}");
        for word in words {
            assert!(self.body.contains(word), "no `{word}` in: {body}");
        }
    }
}

#[test]
fn two_records_are_put_side_by_side() {
    let directory = tempfile::tempdir().expect("a directory");
    let [old, new, another] = ["old", "new", "another"].map(|name| directory.path().join(name));
    write(&old, &record(0, "2026-01-01T00:00:00Z"));
    write(&new, &record(0, "2026-01-02T00:00:00Z"));
    write(&another, &record(1, "2026-01-02T00:00:00Z"));
    let finished = throng(&["report", word(&new), "--diff", word(&old)]);
    assert_eq!(finished.code, 0, "{finished:?}");
    for printed in ["thread in A", "Ratio (95 %)", "They were not", "diff.html"] {
        assert!(finished.out.contains(printed), "{printed}: {finished:?}");
    }
    for file in ["diff.html", "diff.md", "diff.json"] {
        assert!(
            new.join(file).exists() && !old.join(file).exists(),
            "{file}"
        );
    }
    let json = throng(&["report", word(&new), "--diff", word(&old), "--json"]).json();
    assert_eq!(json["parts"][0]["pairs"][0]["clients"], 2000);
    for (arguments, assert_contains) in [
        (vec![&new, &old, &new], "--diff compares two records"),
        (vec![&old, &old], "are the same run"),
        (vec![&another, &old], "have nothing in common"),
    ] {
        let (other, directories) = arguments.split_last().expect("there are some");
        let mut line = vec!["report"];
        line.extend(directories.iter().map(|directory| word(directory)));
        line.extend(["--diff", word(other)]);
        throng(&line).is_usage_error(&[assert_contains]);
    }
    let missing = directory.path().join("nothing");
    let finished = throng(&["report", word(&new), "--diff", word(&missing)]);
    finished.is_usage_error(&["nothing does not exist"]);
}

#[test]
fn runs_are_listed_opened_and_compared() {
    let directory = tempfile::tempdir().expect("a directory");
    let name = "new & <b>";
    write(
        &directory.path().join("old"),
        &record(0, "2026-01-01T00:00:00Z"),
    );
    write(
        &directory.path().join(name),
        &record(0, "2026-01-02T00:00:00Z"),
    );
    fs::create_dir(directory.path().join("no run")).expect("there is room");
    write(
        &directory.path().join("2026/vm/deep"),
        &record(1, "2025-01-01T00:00:00Z"),
    );
    let view = View::start(directory.path());
    let list = view.json("/runs.json");
    let names: Vec<&str> = list["runs"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|run| run["name"].as_str().expect("a name"))
        .collect();
    let deep = "2026/vm/deep";
    assert_eq!(names, [name, "old", deep], "the newest first");
    let run = &list["runs"][1];
    assert_eq!(
        (&run["state"], &run["trials"], &run["planned"]),
        (&"finished".into(), &7.into(), &7.into())
    );
    assert_eq!(run["servers"], serde_json::json!(["thread", "poll"]));
    let page = view.get("/");
    page.assert_contains(
        200,
        &[
            "new &amp; &lt;b&gt;",
            "/run/new%20%26%20%3Cb%3E/",
            "/run/2026/vm/deep/",
            "fairness",
            "3 runs",
        ],
    );
    let found = view.get("/?q=DEEP").body;
    assert!(
        found.contains("1 run found") && !found.contains("data-run=\"old\""),
        "{found}"
    );
    let report = view.get("/run/new%20%26%20%3Cb%3E/report.html");
    report.assert_contains(200, &["2000 clients", "The answer"]);
    assert!(
        !directory.path().join(name).join("report.html").exists(),
        "it only reads"
    );
    // A report newer than its record is served as it is; but not one of another version.
    let whole = view.get("/run/old/report.html").body;
    let marked = whole.replace("</h1>", " as it lies here</h1>");
    let other = marked.replace("sha256-", "sha256-x");
    for (page, is_taken) in [(&marked, true), (&other, false)] {
        fs::write(directory.path().join("old/report.html"), page).expect("there is room");
        let answer = view.get("/run/old/report.html");
        answer.assert_contains(200, &["The answer"]);
        assert_eq!(answer.body.contains("as it lies here"), is_taken);
    }
    are_compared(&view);
    view.get("/page.css")
        .assert_contains(200, &[".state.running", "--ink"]);
    view.get("/page.js").assert_contains(200, &["use strict"]);
}

/// Two of the runs of a view, "new & <b>" and "old".
fn are_compared(view: &View) {
    let diff = view.get("/compare?run=new+%26+%3Cb%3E&run=old");
    diff.assert_contains(200, &["What changed from old to new", "They were not"]);
    let at = |text: &str| diff.body.find(text).expect("it is there");
    assert!(
        at("2026-01-01T00:00:00Z") < at("2026-01-02T00:00:00Z"),
        "A is the earlier one"
    );
    view.get("/compare?run=old")
        .assert_contains(400, &["Choose two runs to compare; 1 are chosen."]);
    view.get("/compare?run=old&run=old")
        .assert_contains(400, &["are the same run"]);
    view.get("/compare?run=old&run=gone")
        .assert_contains(404, &["No run has this name."]);
}

/// A server that was measured side by side with epoll for some rounds.
fn so_far(name: &str) -> ServerSoFar {
    ServerSoFar {
        name: name.to_owned(),
        requests_per_s: Some(1e5),
        ratio: (name != "epoll").then_some(Quantity {
            low: Some(0.4),
            high: Some(0.6),
            ..Quantity::bare(0.5)
        }),
        ..ServerSoFar::default()
    }
}

/// The run "now" of a view, as its servers warm up and are measured side by side.
fn is_seen_side_by_side(view: &View, record: &Path) {
    let side_by_side = |rounds| {
        let point = LivePoint {
            side_by_side: Some(SideBySide {
                rounds,
                reference: "epoll".to_owned(),
                servers: ["epoll", "select"].map(so_far).into(),
                is_by_cpu: false,
            }),
            share: (rounds > 0).then_some(0.25),
            left_s: (rounds > 0).then_some(12.0),
            ..LivePoint::default()
        };
        let lines = [
            serde_json::to_string(&LiveTrial::default()).expect("a line"),
            serde_json::to_string(&point).expect("a line"),
        ];
        fs::write(record.join(LIVE), lines.join("\n") + "\n").expect("there is room");
        view.get("/run/now/")
    };
    side_by_side(0).assert_contains(200, &["warm-up", "Each server as it warms up"]);
    side_by_side(12).assert_contains(
        200,
        &[
            "round 12",
            "25 %",
            "about 12s left",
            "epoll is ahead so far.",
            "Side by side, after 12 rounds",
            "0.50 (0.40–0.60)",
            "reference",
        ],
    );
    fs::remove_file(record.join(LIVE)).expect("it is there");
}

#[test]
fn a_running_run_is_watched() {
    let directory = tempfile::tempdir().expect("a directory");
    let view = View::start(directory.path());
    let (mut run, trials) = record(0, "2026-01-01T00:00:00Z");
    let mut store = Store::create(&directory.path().join("now")).expect("there is room");
    assert_eq!(
        view.json("/runs.json")["runs"][0]["state"],
        "running",
        "it has its lock"
    );
    run.ending = Ending::Unfinished;
    run.finished_at = None;
    store.write_run(&run).expect("there is room");
    for (done, trial) in trials.iter().enumerate() {
        let progress = view.json("/run/now/progress.json");
        assert_eq!(progress["state"], "running");
        assert_eq!(
            (&progress["trials"], &progress["planned"]),
            (&done.into(), &7.into())
        );
        assert_eq!(progress["percent"], done * 100 / 7);
        assert_eq!(progress["last"].as_array().expect("a list").len(), done);
        store.add_trial(trial).expect("there is room");
    }
    let page = view.get("/run/now/");
    page.assert_contains(
        200,
        &[
            "trial 7 of 7",
            "100 %",
            "Latest trials: requests/s",
            "Report of the trials so far",
        ],
    );
    is_seen_side_by_side(&view, &directory.path().join("now"));
    view.get("/")
        .assert_contains(200, &["1 running", "<progress"]);
    view.get("/run/now/report.html")
        .assert_contains(200, &["unfinished"]);
    release(store, &directory.path().join("now"));
    assert_eq!(view.json("/run/now/progress.json")["state"], "unfinished");
    run.ending = Ending::Interrupted;
    let (store, ..) = Store::resume(&directory.path().join("now")).expect("nobody has it");
    store.write_run(&run).expect("there is room");
    assert_eq!(
        view.json("/run/now/progress.json")["state"],
        "running",
        "it is gone on with"
    );
    release(store, &directory.path().join("now"));
    assert_eq!(view.json("/run/now/progress.json")["state"], "interrupted");
    assert!(!view.json("/run/now/progress.json")["left_s"].is_number());

    archive(&directory.path().join("now"));
    let progress = view.json("/run/now/progress.json");
    assert_eq!(
        (&progress["trials"], &progress["percent"]),
        (&7.into(), &100.into())
    );
    assert_eq!(progress["last"].as_array().expect("a list").len(), 0);
    view.get("/run/now/report.html")
        .assert_contains(200, &["The answer"]);
}

#[test]
fn a_study_is_listed_with_its_parts() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("study");
    let part = |name: &str| StudyPart {
        name: name.to_owned(),
        title: format!("Part {name}"),
        ..StudyPart::default()
    };
    let study = Study {
        schema_version: SCHEMA_VERSION,
        throng_version: "0.1.0".to_owned(),
        name: "both".to_owned(),
        question: "What does each do?".to_owned(),
        summary: None,
        changed: Vec::new(),
        source: None,
        scale: None,
        started_at: "2026-01-01T00:00:00Z".to_owned(),
        arguments: Vec::new(),
        parts: vec![part("one"), part("two")],
        claims: Vec::new(),
    };
    let lock = study.create(&place).expect("there is room");
    write(&place.join("one"), &record(0, "2026-01-01T00:00:00Z"));
    let (mut second, _) = record(2, "2026-01-01T00:00:00Z");
    second.ending = Ending::Unfinished;
    write(&place.join("two"), &(second, Vec::new()));
    let view = View::start(directory.path());
    let progress = view.json("/run/study/progress.json");
    assert_eq!(
        (
            &progress["state"],
            progress["parts"].as_array().map(Vec::len)
        ),
        (&"running".into(), Some(2))
    );
    assert_eq!(
        (&progress["trials"], &progress["planned"]),
        (&7.into(), &13.into())
    );
    assert_eq!(
        (&progress["current"], &progress["percent"]),
        (&"study/one".into(), &53.into())
    );
    view.get("/")
        .assert_contains(200, &["both", "2 parts", "7 of 13"]);
    view.get("/run/study/report.html")
        .assert_contains(200, &["What does each do?", "Part one"]);
    view.get("/run/study/one/report.html")
        .assert_contains(200, &["2000 clients, 20 seconds"]);
    assert_eq!(view.get("/run/study/three/report.html").status, 404);
    drop(lock);
    // A child that another test starts just now holds the lock until its exec.
    let state = || view.json("/runs.json")["runs"][0]["state"].clone();
    for _ in 0..1000 {
        if state() != "running" {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(state(), "unfinished");
    // A part that is broken breaks the study, until it is mended.
    let run = place.join("two/run.json");
    let whole = fs::read(&run).expect("it is there");
    fs::write(&run, "{").expect("there is room");
    assert_eq!(view.json("/runs.json")["runs"][0]["state"], "broken");
    fs::write(&run, whole).expect("there is room");
    assert_eq!(view.json("/runs.json")["runs"][0]["state"], "unfinished");
}

#[test]
fn many_runs_are_listed_without_a_look_at_their_trials() {
    const MANY: usize = 1500;
    let directory = tempfile::tempdir().expect("a directory");
    let (mut run, _) = record(0, "2026-01-01T00:00:00Z");
    run.trials_planned = 23;
    let text = serde_json::to_vec(&run).expect("it can be written");
    for number in 0..MANY {
        let path = directory.path().join(format!("run-{number}"));
        fs::create_dir(&path).expect("there is room");
        fs::write(path.join("run.json"), &text).expect("there is room");
        // A reader finds no trial in it.
        fs::write(path.join("trials.jsonl"), "no trial\n").expect("there is room");
    }
    let view = View::start(directory.path());
    let list = view.json("/runs.json");
    let runs = list["runs"].as_array().expect("a list");
    assert_eq!(runs.len(), MANY);
    assert!(
        runs.iter()
            .all(|run| run["state"] == "finished" && run["trials"] == 23)
    );
    view.get("/").assert_contains(200, &["1,500 runs"]);
}

#[test]
fn a_view_ends_when_it_is_asked_to() {
    for signal in [Signal::TERM, Signal::INT] {
        let directory = tempfile::tempdir().expect("a directory");
        let view = View::start(directory.path());
        // A silent client, and one with half a request.
        let silent = TcpStream::connect(view.address).expect("it listens");
        let mut half = TcpStream::connect(view.address).expect("it listens");
        half.write_all(b"GET / HT").expect("it reads");
        assert_eq!(view.get("/").status, 200);
        assert_eq!(view.end_by(signal), Some(0), "{signal:?}");
        drop((silent, half));
    }
}

#[test]
fn silent_connections_are_closed() {
    let directory = tempfile::tempdir().expect("a directory");
    let view = View::start(directory.path());
    let connected = ["", "GET / HTTP/1.1\r\nHo"].map(|sent| {
        let mut stream = TcpStream::connect(view.address).expect("it listens");
        stream.write_all(sent.as_bytes()).expect("it reads");
        stream
    });
    for mut stream in connected {
        let is_set = stream.set_read_timeout(Some(TIMEOUT));
        is_set.expect("it is a socket");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it closes");
    }
    assert_eq!(view.get("/").status, 200);
}
