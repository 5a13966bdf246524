//! Tests: the output follows the rules of the format, whatever the names.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::{Logs, fixture};
use throng_record::format::harmless;

fn exported(report: &Report<'_>) -> String {
    let mut text = Vec::new();
    render(report, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// Parses a sample as the format defines it: a name, labels in quotes, a value.
fn read(line: &str) -> Result<(String, BTreeMap<String, String>, f64), String> {
    let (name, rest) = line.split_once('{').ok_or("no labels")?;
    let mut labels = BTreeMap::new();
    let mut rest = rest.chars().peekable();
    loop {
        let label: String = std::iter::from_fn(|| rest.next_if(|c| *c != '=')).collect();
        if (rest.next(), rest.next()) != (Some('='), Some('"')) {
            return Err("no value".to_owned());
        }
        let mut value = String::new();
        loop {
            match rest.next().ok_or("a value without an end")? {
                '"' => break,
                '\\' => value.push(match rest.next() {
                    Some('n') => '\n',
                    Some(c @ ('\\' | '"')) => c,
                    other => return Err(format!("\\ before {other:?}")),
                }),
                '\n' => return Err("a line break".into()),
                c => value.push(c),
            }
        }
        if labels.insert(label.clone(), value).is_some() {
            return Err(format!("{label} twice"));
        }
        match rest.next() {
            Some(',') => {}
            Some('}') => break,
            other => return Err(format!("{other:?} after a label")),
        }
    }
    let value: String = rest.collect();
    let value = value.strip_prefix(' ').ok_or("no space")?;
    let value = value.parse().map_err(|error| format!("{value}: {error}"))?;
    Ok((name.to_owned(), labels, value))
}

fn is_name(name: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(first) && name.chars().all(|c| first(c) || c.is_ascii_digit())
}

/// Checks that the output follows the rules, and returns all samples.
fn checked(text: &str) -> Vec<(String, BTreeMap<String, String>, f64)> {
    let body = text.strip_suffix("# EOF\n").expect("it ends with # EOF");
    assert!(!body.contains("# EOF") && !body.contains("\n\n"), "{text}");
    let (mut families, mut samples) = (BTreeSet::new(), Vec::new());
    let mut family = String::new();
    let mut seen = BTreeSet::new();
    let mut described: Vec<&str> = Vec::new();
    for line in body.lines() {
        if let Some(words) = line.strip_prefix("# ") {
            let (what, rest) = words.split_once(' ').unwrap();
            let (name, rest) = rest.split_once(' ').unwrap();
            match what {
                "TYPE" => {
                    assert!(families.insert(name), "{name} is there twice");
                    assert!(is_name(name) && rest == "gauge", "{line}");
                    let reserved = ["_total", "_created", "_bucket", "_count", "_sum"];
                    assert!(!reserved.iter().any(|end| name.ends_with(end)), "{line}");
                    (family, described) = (name.to_owned(), Vec::new());
                }
                "HELP" => assert!(!rest.replace("\\\"", "").contains('"'), "{line}"),
                _ => panic!("{line}"),
            }
            assert_eq!(name, family, "{line} does not stand with its family");
            assert!(!described.contains(&what), "{line} is there twice");
            described.push(what);
            continue;
        }
        let (name, labels, value) = read(line).unwrap_or_else(|why| panic!("{why}: {line}"));
        assert_eq!(name, family, "{line} does not stand with its family");
        assert!(labels.keys().all(|label| is_name(label)), "{line}");
        assert!(value.is_finite(), "{line}");
        assert!(
            seen.insert((name.clone(), labels.clone())),
            "{line} is there twice"
        );
        samples.push((name, labels, value));
    }
    samples
}

#[test]
fn a_whole_record_follows_the_rules_of_the_format() {
    let (run, trials) = fixture::record();
    let report = Report::of(&run, &trials, &Logs::default()).unwrap();
    let samples = checked(&exported(&report));
    let find = |name: &str, of: &[(&str, &str)]| {
        let has = |labels: &BTreeMap<String, String>| {
            of.iter()
                .all(|(name, value)| labels.get(*name).is_some_and(|other| other == value))
        };
        let mut found = samples
            .iter()
            .filter(|(other, labels, _)| other == name && has(labels));
        found.next().map(|(_, _, value)| *value)
    };
    let row = report
        .summary
        .rows
        .iter()
        .find(|row| row.server == "epoll" && row.clients == 100);
    let rate = row.unwrap().quantity("requests_per_s").unwrap();
    let epoll = [("server", "epoll"), ("clients", "100")];
    let of_rate = |estimate| {
        let labels = [epoll[0], epoll[1], ("estimate", estimate)];
        find("throng_requests_per_s", &labels)
    };
    assert_eq!(of_rate("value"), Some(rate.value));
    assert_eq!((of_rate("low"), of_rate("high")), (rate.low, rate.high));
    let p99 = find("throng_latency_p99_us", &epoll).unwrap();
    assert!(p99 > 1.0 && p99 < 1e6, "{p99} µs");
    let failed = [("server", "fork"), ("clients", "1000"), ("state", "failed")];
    assert_eq!(find("throng_trials", &failed), Some(2.0));
    assert_eq!(
        find("throng_run_info", &[("study", &run.study.name)]),
        Some(1.0)
    );
    assert_eq!(
        find("throng_server_pss_bytes", &[("server", "nobody")]),
        None
    );
}

#[test]
fn names_are_escaped() {
    let (mut run, mut trials) = fixture::record();
    let name = "a \"b\" \\n\n{c=\"d\"}\r, µ";
    trials.retain(|trial| trial.server == "epoll");
    for trial in &mut trials {
        trial.server = name.to_owned();
    }
    run.servers.retain(|server| server.name == "epoll");
    run.servers[0].name = name.to_owned();
    let report = Report::of(&run, &trials, &Logs::default()).unwrap();
    let samples = checked(&exported(&report));
    let servers: BTreeSet<&String> = samples
        .iter()
        .filter_map(|(_, labels, _)| labels.get("server"))
        .collect();
    assert_eq!(servers, BTreeSet::from([&harmless(name)]));
}

#[test]
fn limits_are_exported() {
    let (run, trials) = fixture::searched();
    let report = Report::of(&run, &trials, &Logs::default()).unwrap();
    let samples = checked(&exported(&report));
    let limits = report.limits.as_ref().unwrap();
    let passed = limits
        .servers
        .iter()
        .find_map(|server| Some((server.passed?.value, &server.server)));
    let (value, server) = passed.unwrap();
    let of_limit = samples.iter().find(|(name, labels, _)| {
        name == "throng_limit" && labels["server"] == *server && labels["state"] == "passed"
    });
    assert!((of_limit.unwrap().2 - value as f64).abs() < 0.5);
}
