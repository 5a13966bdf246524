//! Results written to files and to standard output: `--export-json`, `--export-csv`, `--export-markdown`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::requests::{echo, finished};
use super::throng;
use crate::support::program::words;

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn a_load_is_exported() {
    let echo = echo("1000");
    let address = echo.address().to_string();
    let place = tempfile::tempdir().expect("a directory");
    let file = |name: &str| place.path().join(name);
    let name = |name: &str| file(name).display().to_string();
    let run = finished(&words(
        "load {} -c 2 -n 200 --export-json {} --export-csv {} --export-markdown {}",
        &[&address, &name("j"), &name("c"), &name("m")],
    ));
    assert!(run.out.contains("200 correct of 200 requests"), "{run:?}");
    let load: Value = serde_json::from_str(&read(&file("j"))).expect("JSON");
    assert_eq!(load["verified"], 200);
    let csv = read(&file("c"));
    assert!(
        csv.starts_with("part,server,clients,metric,unit,value,low,high,note\n"),
        "{csv}"
    );
    assert!(csv.contains("\n,,2,requests,count,200,,,\n"), "{csv}");
    let markdown = read(&file("m"));
    assert!(
        markdown.contains("\n| replies | 200 correct of 200 requests"),
        "{markdown}"
    );
    // On standard output alone.
    let run = finished(&words("load {} -c 2 -n 200 --export-json -", &[&address]));
    assert_eq!(run.json()["verified"], 200);
    throng(&["load", &address, "--export-csv", "/nowhere/at/all"])
        .is_usage_error(&["cannot write /nowhere/at/all"]);
}

#[test]
fn a_run_is_exported_and_its_record_has_the_requests() {
    let place = tempfile::tempdir().expect("a directory");
    let file = |name: &str| place.path().join(name);
    let name = |name: &str| file(name).display().to_string();
    let line = r#"{"path": "/some", "weight": 3}"#;
    let other = r#"{"path": "/other", "method": "GET", "body": {"file": "b"}}"#;
    fs::write(file("r"), format!("{line}\n{other}\n")).expect("it can be written");
    fs::write(file("b"), "as it was").expect("it can be written");
    let run = throng(&words(
        "compare epoll --protocol http --request-file {} --clients 4 --runs 1 --duration 100ms \
         --warm-up 10ms --warm-up-limit 10ms --probes cpu --retries 0 --allow-rough -o {} \
         --export-csv - --export-json {} --export-markdown {}",
        &[&name("r"), &name("d"), &name("j"), &name("m")],
    ));
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.out
            .starts_with("part,server,clients,metric,unit,value,low,high,note\n"),
        "{run:?}"
    );
    assert!(run.out.contains("\n,epoll,4,requests_per_s,"), "{run:?}");
    assert!(!run.out.contains("Report:"), "{run:?}");
    assert_eq!(read(&file("j")), read(&file("d").join("summary.json")));
    let (here, report) = (read(&file("m")), read(&file("d").join("report.md")));
    assert_eq!(here.lines().next(), report.lines().next());
    assert_eq!(here.contains("](m.svg)"), file("m.svg").exists(), "{here}");
    // A short run on a busy machine has no picture of its answer.
    let has_figures = report.contains("](figures/");
    assert!(has_figures || !file("m.svg").exists(), "{report}");
    assert_eq!(run.out, read(&file("d").join("summary.csv")));
    let metrics = throng(&["report", &name("d"), "--export", "openmetrics=-"]);
    assert_eq!(metrics.code, 0, "{metrics:?}");
    assert!(
        metrics.out.starts_with("# TYPE throng_run_info gauge\n"),
        "{metrics:?}"
    );
    assert!(metrics.out.ends_with("# EOF\n"), "{metrics:?}");
    let record: Value = serde_json::from_str(&read(&file("d").join("run.json"))).expect("JSON");
    let kept = &record["settings"]["load"]["request-file"];
    assert_eq!(kept["lines"][0], line, "{record}");
    assert_eq!(kept["sha256"].as_str().map(str::len), Some(64), "{record}");
    fs::write(file("b"), "as it is").expect("it can be written");
    throng(&["run", "--resume", &name("d")])
        .is_usage_error(&["b has changed since it was recorded (SHA-256 "]);
}
