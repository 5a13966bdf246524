//! No path of a record leads out of it: neither what is read, nor what is written.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::{Value, json};
use throng::record::{SCHEMA_VERSION, Store};

use super::hostile_text::records;
use super::{throng, word};

/// A record as it is written.
fn write(directory: &Path, record: &Value) {
    fs::create_dir_all(directory).expect("there is room");
    fs::write(directory.join("run.json"), record["run"].to_string()).expect("there is room");
    let trials = record["trials"].as_array().expect("there are trials");
    let lines: String = trials.iter().map(|trial| format!("{trial}\n")).collect();
    fs::write(directory.join("trials.jsonl"), lines).expect("there is room");
}

fn study(parts: &Value) -> String {
    json!({
        "schema_version": throng::record::SCHEMA_VERSION, "throng_version": "0.1.0", "name": "s", "question": "?",
        "started_at": "2026-01-01T12:00:00Z", "arguments": [], "parts": parts,
    })
    .to_string()
}

#[test]
fn parts_of_a_study_are_within_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let record = records().swap_remove(2);
    let outside = directory.path().join("outside");
    write(&outside, &record);
    let inside = directory.path().join("study");
    fs::create_dir(&inside).expect("there is room");
    symlink(&outside, inside.join("link")).expect("links can be made");
    for (name, why) in [
        ("../outside", "line 1, column "),
        (word(&outside), "line 1, column "),
        ("", "line 1, column "),
        (".", "line 1, column "),
        ("link", "leads out of the record"),
    ] {
        let part = json!([{"name": name, "title": "T", "question": "?", "clients": [1]}]);
        fs::write(inside.join("study.json"), study(&part)).expect("there is room");
        throng(&["report", word(&inside)]).is_refused(&[why]);
        throng(&["run", "--allow-rough", "--resume", word(&inside)]).begins_nothing(&[why]);
    }
    assert!(!outside.join("report.html").exists());
}

#[test]
fn only_files_of_the_record_are_read() {
    let record = records().swap_remove(2);
    let trial: throng::record::Trial =
        serde_json::from_value(record["trials"][0].clone()).expect("it is a trial");
    for place in ["run.json", "trials.jsonl", "clients", "baseline"] {
        let directory = tempfile::tempdir().expect("a directory");
        let (inside, outside) = (directory.path().join("in"), directory.path().join("out"));
        write(&inside, &record);
        write(&outside, &record);
        for part in ["clients", "baseline"] {
            let file = outside.join(part).join(trial.file_stem() + ".csv");
            fs::create_dir_all(outside.join(part)).expect("there is room");
            fs::write(file, "secret").expect("there is room");
        }
        let _ = fs::remove_file(inside.join(place));
        symlink(outside.join(place), inside.join(place)).expect("links can be made");
        let finished = throng(&["report", word(&inside)]);
        finished.is_refused(&[place, "leads out of the record"]);
        assert!(
            !finished.err.contains("secret") && !finished.out.contains("secret"),
            "{}",
            finished.err
        );
    }
}

#[test]
fn only_files_of_the_record_are_written() {
    let record = records().swap_remove(2);
    for place in ["report.html", "report.md", "summary.json", "figures"] {
        let directory = tempfile::tempdir().expect("a directory");
        let (inside, outside) = (directory.path().join("in"), directory.path().join("out"));
        write(&inside, &record);
        fs::create_dir(&outside).expect("there is room");
        fs::write(outside.join("mine"), "precious").expect("there is room");
        let to = if place == "figures" {
            outside.clone()
        } else {
            outside.join("mine")
        };
        symlink(to, inside.join(place)).expect("links can be made");
        throng(&["report", word(&inside)]).is_refused(&[place, "leads out of the record"]);
        assert_eq!(
            fs::read_to_string(outside.join("mine")).expect("it is there"),
            "precious"
        );
        assert_eq!(fs::read_dir(&outside).expect("it is there").count(), 1);
    }
}

#[test]
fn a_report_waits_for_no_pipe_and_changes_no_file_with_another_name() {
    let record = records().swap_remove(2);
    for place in ["report.html", "summary.csv", "figures/overview.svg"] {
        let directory = tempfile::tempdir().expect("a directory");
        let (inside, mine) = (directory.path().join("in"), directory.path().join("mine"));
        write(&inside, &record);
        fs::create_dir(inside.join("figures")).expect("there is room");
        fs::write(&mine, "precious").expect("there is room");
        fs::hard_link(&mine, inside.join(place)).expect("links can be made");
        assert_eq!(throng(&["report", word(&inside)]).code, 0);
        assert_eq!(fs::read_to_string(&mine).expect("it is there"), "precious");
        let file = inside.join(place);
        assert!(fs::metadata(&file).expect("it was written").len() > 100);
        fs::remove_file(&file).expect("it is there");
        mkfifoat(CWD, &file, Mode::RWXU).expect("pipes can be made");
        let finished = throng(&["report", word(&inside)]);
        finished.begins_nothing(&[place, "it is not a regular file"]);
    }
}

#[test]
fn what_would_fill_the_memory_is_refused_with_its_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut record = records().swap_remove(2);
    let trial = record["trials"][0].clone();
    let planned = record["run"]["trials_planned"].as_u64().expect("a number");
    let retries = record["run"]["settings"]["retries"].as_u64().unwrap_or(0);
    // With ten repeats by --retry-invalid.
    let most = (planned * (11 + retries)) as usize;
    record["trials"] = vec![trial; most + 1].into();
    write(directory.path(), &record);
    let finished = throng(&["report", word(directory.path())]);
    finished.is_refused(&[&format!(
        "trials.jsonl, line {}, column 1: the run has at most {most} trials",
        most + 1
    )]);
    let server = record["run"]["servers"][0].clone();
    record["run"]["servers"] = vec![server; 3000].into();
    write(directory.path(), &record);
    let finished = throng(&["report", word(directory.path())]);
    finished.is_refused(&["run.json, line 1, column ", "appears twice"]);
}

#[test]
fn going_on_with_a_record_writes_nowhere_else() {
    let record = records().swap_remove(2);
    for place in [
        "trials.jsonl",
        "clients",
        "samples",
        "server",
        "samples/any.csv",
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let (inside, outside) = (directory.path().join("in"), directory.path().join("out"));
        write(&inside, &record);
        fs::create_dir(&outside).expect("there is room");
        let _ = fs::remove_file(inside.join(place));
        if place.contains('/') {
            fs::create_dir(inside.join("samples")).expect("there is room");
        }
        symlink(outside.join("x"), inside.join(place)).expect("links can be made");
        let finished = throng(&["run", "--allow-rough", "--resume", word(&inside)]);
        finished.begins_nothing(&[place, "leads out of the record"]);
        assert_eq!(fs::read_dir(&outside).expect("it is there").count(), 0);
    }
}

#[test]
fn a_record_that_cannot_be_is_refused_at_its_place() {
    let directory = tempfile::tempdir().expect("a directory");
    let record = records().swap_remove(2);
    let replaced = |from: &str, to: &str| {
        let text = record["run"].to_string();
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    };
    let version = |number: u32| {
        let current = format!("\"schema_version\":{SCHEMA_VERSION}");
        replaced(&current, &format!("\"schema_version\":{number}"))
    };
    let deep = format!("{}1{}", "[".repeat(200_000), "]".repeat(200_000));
    for (run, why) in [
        (String::new(), "line 1, column 1"),
        ("{\"schema_version\": 4".to_owned(), "line 1, column "),
        (deep, "line 1, column "),
        (
            replaced("\"runs\":", "\"runs\":18446744073709551615,\"x\":"),
            "line 1, column ",
        ),
        (
            replaced("\"size\":", "\"size\":99999999999999999,\"x\":"),
            "line 1, column ",
        ),
        (
            replaced("\"probe-rate\":", "\"probe-rate\":NaN,\"x\":"),
            "expected value",
        ),
        (
            version(1),
            "the record has format version 1, and this throng reads version",
        ),
        (version(SCHEMA_VERSION + 1), "read it with a newer throng"),
        (
            replaced("\"runs\":", "\"more\":1,\"runs\":"),
            "unknown field `more`",
        ),
    ] {
        write(directory.path(), &record);
        fs::write(directory.path().join("run.json"), run).expect("there is room");
        let finished = throng(&["report", word(directory.path())]);
        finished.is_refused(&["run.json, line ", ", column ", why]);
        throng(&["run", "--allow-rough", "--resume", word(directory.path())])
            .is_refused(&["run.json, line "]);
    }
    write(directory.path(), &record);
    let stem = |trial: &Value| {
        let trial: throng::record::Trial = serde_json::from_value(trial.clone()).expect("a trial");
        trial.file_stem() + ".csv"
    };
    let stems: Vec<String> = record["trials"]
        .as_array()
        .expect("trials")
        .iter()
        .map(stem)
        .collect();
    for (part, text, why) in [
        (
            "clients",
            "connected_at_us,first_reply_us,window_replies\ninf,1,1\n",
            "line 2, column connected_at_us",
        ),
        ("clients", "a\n", "it has no column connected_at_us"),
    ] {
        fs::create_dir_all(directory.path().join(part)).expect("there is room");
        for stem in &stems {
            fs::write(directory.path().join(part).join(stem), text).expect("there is room");
        }
        throng(&["report", word(directory.path())]).begins_nothing(&[part, ".csv", why]);
        fs::remove_dir_all(directory.path().join(part)).expect("it is there");
    }
}

#[test]
fn a_draft_is_written_where_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let (inside, outside) = (directory.path().join("in"), directory.path().join("mine"));
    let store = Store::create(&inside).expect("a new record");
    fs::write(&outside, "precious").expect("there is room");
    symlink(&outside, inside.join("run.json.new")).expect("links can be made");
    let run = serde_json::from_value(records().swap_remove(0)["run"].take());
    store
        .write_run(&run.expect("it is a run"))
        .expect("it is written");
    assert_eq!(
        fs::read_to_string(&outside).expect("it is there"),
        "precious"
    );
    assert!(fs::read_to_string(inside.join("run.json")).is_ok());
}
