//! A record is reproduced, and the verdicts of both are compared.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::program::{THRONG, printed, throng, word, words};
use crate::support::runs::json as read_json;
use crate::support::schemas::Schemas;

/// Options of a brief measurement.
const QUICK: [&str; 7] = [
    "--allow-rough",
    "--retries",
    "0",
    "--warm-up",
    "10ms",
    "--probes",
    "cpu,memory",
];

/// Measures into a directory, which is to succeed.
fn measure(arguments: &[&str], directory: &Path) {
    let output = throng(&[arguments, &QUICK, &["-o", word(directory)]].concat());
    assert!(output.status.success(), "{}", printed(&output));
}

/// Reproduces it; whether verdicts held depends on the machine.
fn reproduce(directory: &Path, more: &[&str]) -> (Value, String) {
    let fixed = ["reproduce", word(directory), "--json", "--allow-rough"];
    let output = throng(&[&fixed, more].concat());
    let code = output.status.code();
    let result: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {code:?} {}", printed(&output)));
    let failed = result["sentences"]
        .as_array()
        .is_some_and(|all| !all.is_empty());
    assert_eq!(
        code,
        Some(if failed { 3 } else { 0 }),
        "{}",
        printed(&output)
    );
    (result, printed(&output))
}

/// Every verdict of an earlier comparison, as (clients, server, metric, verdict).
fn verdicts(summary: &Value) -> Vec<[Value; 4]> {
    let pairs = summary["comparison"]["pairs"].as_array().expect("pairs");
    let of_pair = |pair: &Value| -> Vec<[Value; 4]> {
        let measures = pair["measures"].as_array().expect("measures").iter();
        let named = measures.map(|measured| {
            [
                &pair["clients"],
                &pair["server"],
                &measured["name"],
                &measured["verdict"],
            ]
            .map(Value::clone)
        });
        named.collect()
    };
    pairs.iter().flat_map(of_pair).collect()
}

#[test]
fn each_earlier_verdict_is_named_with_what_became_of_it() {
    let scratch = tempfile::tempdir().unwrap();
    let slices = "--runs 8 --slice 10ms";
    let trials = "--runs 6 -d 40ms";
    for (name, method) in [("slices", slices), ("trials", trials)] {
        let method: Vec<&str> = method.split(' ').collect();
        let directory = scratch.path().join(name);
        let servers = words(
            "compare epoll poll --control none --clients 3 --warm-up-limit 10ms",
            &[],
        );
        measure(&[&servers[..], &method].concat(), &directory);
        let (result, _) = reproduce(&directory, &[]);
        let earlier = verdicts(&read_json(&directory.join("summary.json")));
        let repeated = result["parts"][0]["verdicts"].as_array().expect("verdicts");
        assert!(earlier.len() > 4, "{result:#}");
        let again: Vec<[Value; 4]> = repeated
            .iter()
            .map(|one| {
                // A spoilt trial of the later run can leave nothing to compare.
                let is_compared = one["later"].is_object();
                assert!(is_compared || one["outcome"] == "not-comparable", "{one}");
                assert!(one["outcome"].is_string(), "{one}");
                let names = ["clients", "server", "metric"].map(|key| one[key].clone());
                let [clients, server, metric] = names;
                [clients, server, metric, one["earlier"]["verdict"].clone()]
            })
            .collect();
        assert_eq!(again, earlier, "{name}");

        // The new record is a record like any other, made by the same plan.
        let new = scratch.path().join(format!("{name}-again"));
        assert_eq!(
            result["runs"][1]["directory"],
            json!(fs::canonicalize(&new).unwrap())
        );
        let [then, now] = [&directory, &new].map(|path| read_json(&path.join("run.json")));
        Schemas::read().check("run", &now);
        for same in ["settings", "seed", "study", "comparison"] {
            assert_eq!(then[same], now[same], "{same}");
        }
        assert_eq!(
            now["throng_program"]["sha256"],
            then["throng_program"]["sha256"]
        );
        assert_eq!(
            now["throng_program"]["sha256"].as_str().map(str::len),
            Some(64)
        );
        let page = fs::read_to_string(new.join("reproduction.md")).unwrap();
        for one in repeated {
            let word = one["earlier"]["word"].as_str().expect("a word");
            assert!(page.contains(word), "{word}: {page}");
        }
        assert!(new.join("reproduction.html").exists());
    }
    // Without --json, for a reader; the name is taken by now.
    let directory = scratch.path().join("slices");
    let output = throng(&["reproduce", word(&directory), "--allow-rough"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("verdict") && text.contains("poll compared with epoll"),
        "{text}"
    );
    assert!(scratch.path().join("slices-again-2").exists());
}

#[test]
fn a_script_that_changed_is_named_before_and_after() {
    let scratch = tempfile::tempdir().unwrap();
    let (script, directory) = (
        scratch.path().join("server.sh"),
        scratch.path().join("record"),
    );
    let serve = format!("exec {THRONG} serve epoll --protocol http --listen 127.0.0.1:$1\n");
    fs::write(&script, &serve).unwrap();
    let server = format!("sh {} {{port}}", word(&script));
    let compared = [
        "compare", &server, "epoll", "-n", "scripted", "--runs", "1", "-d", "40ms",
    ];
    measure(&compared, &directory);
    let run = read_json(&directory.join("run.json"));
    let program = &run["servers"][0]["foreign"]["program"];
    assert_eq!(program["file"]["word"], "sh");
    assert_eq!(program["scripts"][0]["word"], word(&script), "{run:#}");

    let (unchanged, reported) = reproduce(&directory, &[]);
    assert!(!reported.contains("has changed"), "{reported}");
    assert!(reported.contains("scripted: command: sh "), "{reported}");
    let differs = |result: &Value| {
        let mut facts = result["differences"]
            .as_array()
            .expect("a list")
            .clone()
            .into_iter();
        facts.any(|fact| fact["kind"] == "files" && fact["name"] == "scripted")
    };
    assert!(!differs(&unchanged), "{unchanged:#}");

    fs::write(&script, format!("# changed\n{serve}")).unwrap();
    let new = scratch.path().join("other");
    let (changed, reported) = reproduce(&directory, &["-o", word(&new)]);
    let warning = format!(
        "scripted: {} has changed since",
        fs::canonicalize(&script).unwrap().display()
    );
    assert!(reported.contains(&warning), "{reported}");
    assert!(differs(&changed), "{changed:#}");
    assert!(new.join("run.json").exists());

    fs::remove_file(&script).unwrap();
    refused(&directory, "server.sh` no longer exists");
}

/// Nothing is begun.
fn refused(directory: &Path, why: &str) {
    let beside = || {
        let place = directory.parent().expect("it lies somewhere");
        fs::read_dir(place).expect("it can be read").count()
    };
    let before = beside();
    let output = throng(&["reproduce", word(directory)]);
    assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
    assert!(printed(&output).contains(why), "{}", printed(&output));
    assert_eq!(before, beside(), "{}", printed(&output));
}

#[test]
fn limits_and_runs_are_made_again() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("limit");
    let limit = words("limit epoll --from 2 --max 4 --confirm 1 -d 30ms", &[]);
    measure(&limit, &directory);
    let (result, _) = reproduce(&directory, &[]);
    let limits = &result["parts"][0]["limits"];
    assert_eq!(limits[0]["server"], "epoll", "{result:#}");
    assert!(limits[0]["outcome"].is_string(), "{result:#}");
    a_limit_that_was_lower_did_not_hold(&directory);

    let directory = scratch.path().join("run");
    let run = words("run --models epoll,poll --clients 3 --runs 1 -d 30ms", &[]);
    measure(&run, &directory);
    let (result, _) = reproduce(&directory, &[]);
    let verdicts = result["parts"][0]["verdicts"].as_array().expect("verdicts");
    // One of both was the best, unless the trial of the other one was invalid.
    assert!(
        verdicts.iter().all(|one| one["server"] != one["reference"]),
        "{result:#}"
    );
    runs_that_cannot_be_repeated_are_rejected(&directory);
    refused(&scratch.path().join("nowhere"), "does not exist");
}

/// As if fewer clients had broken the server then.
fn a_limit_that_was_lower_did_not_hold(directory: &Path) {
    let path = directory.join("run.json");
    let mut run = read_json(&path);
    let found = &mut run["limit"]["found"][0];
    found["ending"] = json!("found");
    found["passed"] = json!({"value": 1, "times": 1});
    found["failed"] = json!({"value": 2, "times": 1});
    fs::write(&path, run.to_string()).expect("it can be written");
    let (result, _) = reproduce(directory, &[]);
    let limit = &result["parts"][0]["limits"][0];
    // Unless the machine let a client down.
    if limit["later"]["word"] == "at least 4" {
        assert_eq!(limit["outcome"], "not-held", "{result:#}");
        let printed = "limit of epoll: was 1, now at least 4 clients";
        assert_eq!(result["sentences"][0], printed, "{result:#}");
    }
}

fn runs_that_cannot_be_repeated_are_rejected(directory: &Path) {
    let path = directory.join("run.json");
    let whole = read_json(&path);
    let write = |run: &Value| fs::write(&path, run.to_string()).expect("it can be written");
    let edited = |pointer: &str, value: Value| {
        let mut run = whole.clone();
        *run.pointer_mut(pointer).expect("it is there") = value;
        write(&run);
    };
    edited("/settings/server_cpus", json!([9999]));
    refused(directory, "CPU 9999, which this process may not use");
    edited("/servers/0/command/1", json!("rm"));
    refused(directory, "its command is not `throng serve`");
    let mut run = whole.clone();
    run["client_hosts"] = json!([{"name": "lab1", "rank": 1, "cpus": 2, "kernel": "Linux"}]);
    write(&run);
    refused(directory, "its clients were on 1 client hosts");
    let mut run = whole;
    run["servers"][0]["foreign"] = json!({});
    run["servers"][0]["command"] = json!(["no-such-program"]);
    write(&run);
    refused(directory, "program `no-such-program` no longer exists");
}

#[test]
fn a_study_is_made_again_with_its_claims() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("tiny.toml");
    fs::write(
        &file,
        r#"
name = "tiny"
question = "does it hold?"
clients = [2]
runs = 1
duration = "30ms"
warm-up = "0s"
probes = ["cpu"]
control = "none"
ceiling = false

[[part]]
name = "own"
title = "Ours"
servers = [{ model = "epoll" }, { model = "poll" }]

[[claim]]
text = "someone is served"
expect = [{ metric = "requests_per_s", servers = ["epoll"], relation = "at-least", baseline = 1 }]
"#,
    )
    .unwrap();
    let directory = scratch.path().join("study");
    let fixed = words(
        "run {} -o {} --allow-rough --retries 0",
        &[word(&file), word(&directory)],
    );
    let output = throng(&fixed);
    assert!(output.status.success(), "{}", printed(&output));
    let (result, _) = reproduce(&directory, &[]);
    assert_eq!(result["parts"][0]["name"], "own", "{result:#}");
    assert_eq!(
        result["claims"][0]["text"], "someone is served",
        "{result:#}"
    );
    let new = scratch.path().join("study-again");
    assert!(new.join("study.json").exists() && new.join("own/run.json").exists());
    assert!(new.join("reproduction.html").exists());
}
