//! Studies of several parts: run, interrupted, resumed, reported; and errors in their files.

mod refused;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use throng::record::{self, Ending};

use crate::support::program::{THRONG, printed, throng, word, words};

const STUDY: &str = r#"
name = "tiny"
question = "does it run?"
source = "nobody"
clients = [2, 5]
runs = 2
duration = "30ms"
warm-up = "0s"
probes = ["cpu"]
control = "none"
ceiling = false

[[part]]
name = "own"
title = "Ours"
servers = [{ model = "epoll", options = { backlog = 5 } }, { model = "poll" }]
load = { eager = true }

[[part.published]]
metric = "latency_p50_us"
unit = "ms"
values = { epoll = [1, 2.5], poll = [3, "not told"] }

[[part.published]]
metric = "first_failure"
unit = "count"
values = { epoll = 900 }

[[part]]
name = "partly"
as-far-as-possible = true
clients = [2, 4_000_000]
pinned = false
load = { client-threads = "one-each" }
servers = [{ model = "thread" }, { command = ["no-such-program", "{port}"] }]

[[part]]
name = "never"
servers = [{ command = ["no-such-program", "{port}"] }]

[[claim]]
text = "Everybody is served."
fidelity = "There are few of them."
[claim.mechanism]
metrics = ["server_notifications_per_request"]
[[claim.expect]]
parts = ["own"]
metric = "errors"
relation = "at-most"
baseline = 0
[[claim.expect]]
parts = ["own"]
metric = "clients_never_served"
relation = "at-most"
baseline = 0

[[claim]]
text = "A program that is not there is quick."
[[claim.expect]]
parts = ["never"]
metric = "latency_p50_us"
relation = "less"
baseline = "1 s"
"#;

/// A file in a directory, and where the record is to go.
fn written(scratch: &Path, text: &str) -> (PathBuf, PathBuf) {
    let file = scratch.join("tiny.toml");
    fs::write(&file, text).expect("the file can be written");
    (file, scratch.join("record"))
}

/// Runs a study, with its summary as JSON, whether trials are valid or not.
fn run(file: &Path, directory: &Path) -> Output {
    let any_trial = ["run", "--allow-rough", "--retries", "0"];
    let words = [word(file), "-o", word(directory), "--json"];
    throng(&[any_trial, words].concat())
}

/// Notes of a claim, and a load with a thread per client, on any CPU.
fn states_what_was_seen(summary: &Value, directory: &Path) {
    let notified = summary["claims"][0]["cause"]["seen"][0]
        .as_str()
        .unwrap_or_default();
    assert!(
        notified.starts_with("notifications/request with 5 clients: epoll "),
        "{notified}"
    );
    let trials = record::read_trials(&directory.join("partly")).expect("it can be read");
    let loads: Vec<_> = trials
        .iter()
        .filter_map(|trial| trial.load.as_ref())
        .collect();
    assert!(
        !loads.is_empty() && loads.iter().all(|load| load.threads == 2),
        "{loads:?}"
    );
    let lives = loads.iter().filter_map(|load| load.fairness.as_ref()?.life);
    assert_eq!(lives.count(), loads.len());
    assert!(
        record::read(&directory.join("partly"))
            .expect("it can be read")
            .settings
            .server_cpus
            .is_empty()
    );
}

#[test]
fn a_study_runs_as_far_as_it_can_and_checks_its_claims() {
    let scratch = tempfile::tempdir().unwrap();
    let (file, directory) = written(scratch.path(), STUDY);
    let output = run(&file, &directory);
    assert!(output.status.success(), "{}", printed(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["ending"], "complete");
    let claims = summary["claims"].as_array().unwrap();
    assert_eq!(claims[0]["verdict"], "yes", "{claims:#?}");
    assert_eq!(claims[1]["verdict"], "not-measured", "{claims:#?}");
    let [own, partly, never] = summary["parts"].as_array().unwrap().as_slice() else {
        panic!("{summary:#}")
    };
    let cells = |row: usize| own["published"]["rows"][row]["cells"].as_array().unwrap();
    assert_eq!(cells(0)[0]["published"], "1");
    // Without CPU time there may be no reply.
    let ratio = cells(0)[0]["ratio"].as_f64();
    assert!(
        ratio > Some(0.0) || cells(0)[0]["why"] == "not measured",
        "{own:#}"
    );
    assert_eq!(cells(1)[1]["published"], "not told");
    assert!(cells(1)[1]["measured"].is_string() || cells(1)[1]["why"] == "not measured");
    assert!(cells(1)[1]["ratio"].is_null(), "{own:#}");
    assert_eq!(cells(2)[0]["why"], "none up to 5 clients");
    let left_out = partly["left_out"].as_array().unwrap();
    assert_eq!(
        (left_out.len(), &left_out[0]["clients"][0]),
        (2, &Value::from(4_000_000))
    );
    assert!(
        never["skipped"]
            .as_str()
            .unwrap()
            .contains("no-such-program")
    );

    // The command line of each server and load is that of the file.
    let run = record::read(&directory.join("own")).unwrap();
    assert!(run.settings.load.eager);
    assert!(
        run.servers[0].command.contains(&"--backlog=5".to_owned()),
        "{run:#?}"
    );
    assert_eq!(
        record::read(&directory.join("partly"))
            .unwrap()
            .settings
            .clients,
        [2]
    );
    assert!(!directory.join("never").exists());
    states_what_was_seen(&summary, &directory);

    // It can be reported again without its file.
    fs::remove_file(&file).unwrap();
    let page = fs::read_to_string(directory.join("report.html")).unwrap();
    for part in [
        "report.md",
        "summary.json",
        "own/report.html",
        "partly/report.html",
    ] {
        assert!(directory.join(part).exists(), "{part}");
    }
    assert!(
        page.contains("id=\"own-figure-throughput\"") && page.contains("id=\"partly-results\"")
    );
    let mut ids: Vec<&str> = page
        .split(" id=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "every id is there once");
    let again = throng(&["report", word(&directory), "--json"]);
    assert_eq!(
        String::from_utf8_lossy(&again.stdout),
        String::from_utf8_lossy(&output.stdout)
    );
}

#[test]
fn an_interrupted_study_resumes() {
    let scratch = tempfile::tempdir().unwrap();
    let study = STUDY
        .replace("runs = 2", "runs = 3")
        .replace("duration = \"30ms\"", "duration = \"200ms\"")
        .replace("clients = [2, 5]", "clients = [3]")
        .replace("[1, 2.5]", "1")
        .replace("[3, \"not told\"]", "3");
    let (file, directory) = written(scratch.path(), &study);
    let mut run = Command::new(THRONG)
        .args(words(
            "run --allow-rough --retries 0 {} -o {}",
            &[word(&file), word(&directory)],
        ))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let first = lines.find(|line| line.contains("requests/s"));
    assert!(first.is_some(), "a trial has ended");
    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    let last = lines.last().unwrap_or_default();
    assert_eq!(run.wait().unwrap().code(), Some(130), "{last}");
    let before = record::read_trials(&directory.join("own")).unwrap();
    assert!((1..6).contains(&before.len()), "{} trials", before.len());
    assert_eq!(
        record::read(&directory.join("own")).unwrap().ending,
        Ending::Interrupted
    );
    assert_eq!(
        record::read(&directory.join("partly")).unwrap().ending,
        Ending::Unfinished
    );
    let page = fs::read_to_string(directory.join("report.html")).unwrap();
    assert!(page.contains("interrupted") && page.contains("not run yet"));

    let resumed = throng(&[
        "run",
        "--allow-rough",
        "--resume",
        word(&directory),
        "--json",
    ]);
    assert!(resumed.status.success(), "{}", printed(&resumed));
    let after = record::read_trials(&directory.join("own")).unwrap();
    assert_eq!(after.len(), 6);
    assert_eq!(
        after[..before.len()],
        before,
        "what was finished is not done again"
    );
    assert_eq!(
        record::read_trials(&directory.join("partly"))
            .unwrap()
            .len(),
        3
    );
    let summary: Value = serde_json::from_slice(&resumed.stdout).unwrap();
    assert_eq!(summary["ending"], "complete");
}

#[test]
fn a_part_alone_and_smaller_is_reported_as_such() {
    let scratch = tempfile::tempdir().unwrap();
    let (file, directory) = written(scratch.path(), STUDY);
    let arguments = words(
        "run --allow-rough --retries 0 {} --part own --scale 0.5 --models poll -o {}",
        &[word(&file), word(&directory)],
    );
    let output = throng(&arguments);
    assert!(output.status.success(), "{}", printed(&output));
    let shown = String::from_utf8_lossy(&output.stdout).replace('\n', " ");
    let note = format!(
        "Run at scale 0.5: no claim was checked. `throng run {}`",
        word(&file)
    );
    assert!(shown.contains(&note), "{shown}");
    assert!(!shown.contains("Everybody is served."), "{shown}");
    let study = record::Study::read(&directory).unwrap();
    assert_eq!(
        (
            study.parts.len(),
            study.scale.as_ref().map(|scale| &*scale.by)
        ),
        (1, Some("0.5"))
    );
    let scaled = &study.parts[0].scaled;
    assert_eq!(scaled["clients"], "1; 3 instead of 2; 5", "{study:#?}");
    let run = record::read(&directory.join("own")).unwrap();
    assert_eq!((run.settings.clients, run.servers.len()), (vec![1, 3], 1));
}

const SEARCH: &str = r#"
name = "capacity"
question = "how many?"
probes = ["established"]
duration = "50ms"
warm-up = "0s"

[[part]]
name = "most"
kind = "limit"
limit = { from = 5, max = 40, confirm = 1, within = "0%" }
servers = [
    { model = "epoll" },
    { model = "poll", options = { max-clients = 12 } },
]

[[part.published]]
metric = "limit"
unit = "count"
values = { epoll = 80, poll = 6 }

[[part.published]]
metric = "established_at_limit"
unit = "count"
values = { epoll = 40, poll = 6 }

[[claim]]
text = "poll holds fewest."
expect = [
    { metric = "limit", servers = ["poll"], relation = "lowest" },
    { metric = "limit", servers = ["poll"], relation = "less", baseline = 13 },
    { metric = "established_at_limit", servers = ["epoll"], relation = "at-least", baseline = 40 },
]

[[claim]]
text = "And no less than epoll."
expect = [{ metric = "limit", servers = ["poll"], relation = "at-least", baseline = { server = "epoll" } }]

[[claim]]
text = "epoll holds fifty."
expect = [{ metric = "limit", servers = ["epoll"], relation = "at-least", baseline = 50 }]
"#;

#[test]
fn a_part_may_search_for_limits_and_claim_them() {
    let scratch = tempfile::tempdir().unwrap();
    let (file, directory) = written(scratch.path(), SEARCH);
    let output = run(&file, &directory);
    assert!(output.status.success(), "{}", printed(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let verdict = |place: usize| summary["claims"][place]["verdict"].as_str().unwrap();
    let printed = format!("{:#}", summary["claims"]);
    assert_eq!(verdict(0), "yes", "{printed}");
    assert_eq!(verdict(1), "no", "{printed}");
    assert_eq!(
        verdict(2),
        "not-measured",
        "it passed all that was tried: {printed}"
    );
    assert!(printed.contains("12 (passed "), "{printed}");
    let rows = summary["parts"][0]["published"]["rows"].as_array().unwrap();
    let [epoll, poll] = rows[0]["cells"].as_array().unwrap().as_slice() else {
        panic!("{rows:#?}")
    };
    assert_eq!(
        (&poll["measured"], &poll["ratio"]),
        (&Value::from("12"), &Value::from(2.0))
    );
    assert_eq!(epoll["why"], "at least 40");
    assert!(epoll["measured_value"].is_null() && poll["interval"].is_null());
    assert!(
        rows[1]["cells"][0]["measured_value"].as_f64() >= Some(40.0),
        "{rows:#?}"
    );
    let page = fs::read_to_string(directory.join("report.html")).unwrap();
    assert!(page.contains("id=\"most-limits\"") && page.contains("-max-clients is 12"));
    let again = throng(&["report", word(&directory), "--json"]);
    assert_eq!(again.stdout, output.stdout);
    let resumed = throng(&[
        "run",
        "--allow-rough",
        "--resume",
        word(&directory),
        "--json",
    ]);
    assert_eq!(resumed.stdout, output.stdout, "nothing is left to do");
    let trials = record::read_trials(&directory.join("most")).unwrap();
    assert!(trials.iter().all(|trial| trial.attempt.is_some()));
}

#[test]
fn a_study_is_described() {
    let scratch = tempfile::tempdir().unwrap();
    let (file, _) = written(scratch.path(), STUDY);
    let output = throng(&["list", "studies", word(&file)]);
    let shown = String::from_utf8_lossy(&output.stdout);
    for part in [
        "epoll (epoll --backlog=5) and poll",
        "load      --eager",
        "Everybody is served.",
        "It takes about",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
}

const ON_CPUS: &str = r#"
name = "pinned"
question = "does it run where it should?"
clients = [2]
runs = 1
duration = "30ms"
warm-up = "0s"
probes = ["cpu"]
control = "none"
ceiling = false
servers = [{ model = "epoll" }]

[[part]]
name = "here"
server-cpus = [0]

[[part]]
name = "nowhere"
client-cpus = [1023]
"#;

#[test]
fn a_part_may_name_its_cpus() {
    let usable = throng::measure::host::usable_cpus();
    if usable.len() < 2 || !usable.contains(&0) {
        return println!("not tried: it takes two CPUs");
    }
    let scratch = tempfile::tempdir().unwrap();
    let (file, directory) = written(scratch.path(), ON_CPUS);
    let output = run(&file, &directory);
    assert!(output.status.success(), "{}", printed(&output));
    let settings = record::read(&directory.join("here")).unwrap().settings;
    assert_eq!(settings.server_cpus, [0]);
    let rest: Vec<u32> = usable.into_iter().filter(|cpu| *cpu != 0).collect();
    assert_eq!(settings.client_cpus, rest);
    let study = record::Study::read(&directory).unwrap();
    let why = study.parts[1].skipped.as_ref().expect("it was skipped");
    assert!(
        why.contains("no CPU 1023") && why.contains("--client-cpus"),
        "{why}"
    );
}

const CASES: &str = r#"
name = "cases"
question = "is it as expected?"
protocol = "echo"
clients = [4]
runs = 2
probes = ["cpu"]
control = "none"
ceiling = false
load = { requests-per-client = 5 }
servers = [{ model = "epoll" }]

[[part]]
name = "right"
expect = ["requests = 20", "errors = 0"]

[[part]]
name = "killed"
load = { requests-per-client = 1000000 }
servers = [{ name = "epoll", command = ["timeout", "--signal=KILL", "1", "{throng}", "serve", "epoll", "--listen={address}"] }]
expect-failure = "serve"
"#;

/// What is expected may be a failure; anything else ends with code 3.
#[test]
fn test_cases_compare_what_is_expected_with_what_is_seen() {
    let scratch = tempfile::tempdir().unwrap();
    let (file, directory) = written(scratch.path(), CASES);
    let output = throng(&["run", word(&file), "-o", word(&directory)]);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("All 2 cases are as expected."), "{text}");
    let markdown = fs::read_to_string(directory.join("report.md")).unwrap();
    for seen in [
        "Requests: 20, Errors: 0",
        "the server ended with signal: 9 (SIGKILL)",
    ] {
        assert!(markdown.contains(seen), "{seen}: {markdown}");
    }
    let wrong = CASES
        .replace("requests = 20", "requests = 21")
        .replace(
            "[\"timeout\", \"--signal=KILL\", \"1\", \"{throng}\"",
            "[\"{throng}\"",
        )
        .replace("per-client = 1000000", "per-client = 3");
    let (file, _) = written(scratch.path(), &wrong);
    let directory = scratch.path().join("wrong");
    let output = throng(&["run", word(&file), "-o", word(&directory), "--json"]);
    assert_eq!(output.status.code(), Some(3), "{}", printed(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |place: usize| summary["cases"][place]["servers"][0].clone();
    assert_eq!(of(0)["seen"], "Requests: 20, Errors: 0");
    assert_eq!(of(1)["seen"], "it did not fail");
    assert!((0..2).all(|place| of(place)["as_expected"] == false));
    let wrong = CASES.replace("errors = 0", "error > 0");
    let (file, _) = written(scratch.path(), &wrong);
    let text = printed(&throng(&["run", word(&file), "-o", word(&directory)]));
    assert!(text.contains("unknown metric `error`"), "{text}");
}
