//! Tests: claims about synthetic records.

use serde::Deserialize;
use throng_record::findings::FindingKind;
use throng_record::findings::cause::direct::{DESCRIPTORS, MAX_CLIENTS};

use super::*;
use crate::study::published::Table;
use crate::{Logs, Report, fixture};
use throng_record::claim::{Expectation, Mechanism};
use throng_record::{LeftOut, Run, StudyPart, Trial};

/// An expectation written as in a study file, about part `a` unless it names another.
fn expect(keys: &str) -> Expectation {
    #[derive(Deserialize)]
    struct File {
        expect: Expectation,
    }
    let file: File = toml::from_str(&format!("expect = {{ {keys} }}")).unwrap();
    let mut expect = file.expect;
    if expect.parts.is_empty() {
        expect.parts = vec!["a".to_owned()];
    }
    expect
}

/// The result of checking an expectation against the modified fixture.
fn judged(text: &str, change: impl Fn(&mut Run, &mut Vec<Trial>)) -> JudgedCheck {
    all_judged(&[text], change).remove(0)
}

fn all_judged(texts: &[&str], change: impl Fn(&mut Run, &mut Vec<Trial>)) -> Vec<JudgedCheck> {
    let (mut run, mut trials) = fixture::record();
    run.servers
        .retain(|server| ["epoll", "thread", "fork", "iterative"].contains(&server.name.as_str()));
    trials.retain(|trial| run.servers.iter().any(|server| server.name == trial.server));
    change(&mut run, &mut trials);
    let record = StudyPart {
        name: "a".to_owned(),
        clients: vec![10, 100, 1000, 5000],
        left_out: vec![
            LeftOut {
                clients: vec![5000],
                server: None,
                reason: "too many".to_owned(),
            },
            LeftOut {
                clients: vec![10],
                server: Some("iterative".to_owned()),
                reason: "one at a time".to_owned(),
            },
        ],
        ..StudyPart::default()
    };
    let absent = StudyPart {
        name: "b".to_owned(),
        skipped: Some("no program".to_owned()),
        ..StudyPart::default()
    };
    let of = |record, report| PartReport {
        record,
        report,
        published: Table::default(),
    };
    let report = Report::of(&run, &trials, &Logs::default()).unwrap();
    let parts = [of(&record, Some(report)), of(&absent, None)];
    let judge = Judge { parts: &parts };
    let all: Vec<Expectation> = texts.iter().map(|text| expect(text)).collect();
    judge.expectations(&all)
}

/// An expectation and its result.
const EXPECTED: &str = r#"
    metric = "server_cpu_us_per_request", servers = ["epoll"], relation = "less", baseline = { server = "thread" } => Confirmed
    metric = "server_cpu_us_per_request", servers = ["thread"], relation = "less", baseline = { server = "epoll" } => Refuted
    metric = "server_cpu_us_per_request", servers = ["thread"], relation = "greater", baseline = { server = "epoll", factor = 1.3 } => Confirmed
    metric = "server_cpu_us_per_request", servers = ["thread"], relation = "less", clients = { max = 100 }, baseline = { server = "fork" } => Confirmed
    metric = "server_cpu_us_per_request", relation = "at-least", baseline = { server = "epoll" } => Confirmed
    metric = "server_cpu_us_per_request", servers = ["thread", "fork"], relation = "greater", baseline = { server = "epoll" }, clients = [100] => Confirmed
    metric = "server_cpu_us_per_request", servers = ["epoll"], relation = "less", baseline = { server = "epoll" } => Equivalent
    metric = "server_cpu_us_per_request", servers = ["thread"], relation = "greater", baseline = { server = "epoll" }, margin = 80 => Equivalent
    metric = "server_cpu_us_per_request", servers = ["epoll"], relation = "at-most", baseline = { server = "epoll" } => Confirmed
    metric = "server_cpu_us_per_request", servers = ["thread"], relation = "at-most", baseline = { server = "epoll" } => Refuted
    metric = "server_cpu_us_per_request", servers = ["thread"], relation = "at-most", baseline = { server = "epoll" }, margin = 80 => Confirmed
    metric = "server_cpu_us_per_request", servers = ["epoll", "epoll"], relation = "alike" => Confirmed
    metric = "server_cpu_us_per_request", servers = ["epoll", "fork"], relation = "alike", clients = [100] => Refuted
    metric = "server_cpu_us_per_request", servers = ["epoll", "thread"], relation = "alike", margin = 80 => Confirmed
    metric = "server_cpu_us_per_request", servers = ["epoll"], relation = "alike", baseline = { server = "thread" }, margin = 80 => Confirmed
    metric = "server_pss_bytes", relation = "alike" => Refuted
    metric = "server_pss_bytes", servers = ["thread"], relation = "grows" => Confirmed
    metric = "server_pss_bytes", servers = ["thread"], relation = "falls" => Refuted
    metric = "server_pss_bytes", servers = ["thread"], relation = "flat" => Refuted
    metric = "server_cpu_us_per_request", servers = ["epoll"], relation = "flat", margin = 10 => Confirmed
    metric = "server_cpu_us_per_request", servers = ["epoll"], relation = "grows", clients = { min = 1000 } => Censored
    metric = "server_pss_bytes", servers = ["epoll"], relation = "greater", clients = [1000], baseline = { clients = 10 } => Confirmed
    metric = "server_cpu_us_per_request", servers = ["epoll"], relation = "lowest", clients = [100] => Confirmed
    metric = "server_cpu_us_per_request", servers = ["fork"], relation = "lowest", clients = [100] => Refuted
    metric = "server_cpu_us_per_request", servers = ["epoll"], relation = "less", baseline = "1 ms" => Confirmed
    metric = "server_cpu_us_per_request", servers = ["epoll"], relation = "greater", baseline = "1 ms" => Refuted
    metric = "errors", relation = "at-most", baseline = 0 => Confirmed
    metric = "clients_never_served", servers = ["iterative"], relation = "greater", baseline = 0, clients = { min = 100 } => Confirmed
    metric = "first_failure", servers = ["epoll"], relation = "at-least", baseline = 1000 => Confirmed
    metric = "latency_p50_us", servers = ["iterative"], relation = "less", clients = [100], baseline = { server = "epoll" } => NotTestable
    metric = "latency_p50_us", servers = ["epoll"], relation = "less", clients = [5000], baseline = "1s" => Censored
    parts = ["b"], metric = "latency_p50_us", servers = ["epoll"], relation = "less", baseline = "1s" => NotTestable
    metric = "latency_p50_us", servers = ["epoll"], relation = "less", baseline = { part = "b" } => NotTestable
    metric = "latency_p50_us", servers = ["epoll"], relation = "less", baseline = "1 kB" => NotTestable
    metric = "nonsense", servers = ["epoll"], relation = "lowest" => NotTestable
"#;

#[test]
fn results_confirm_refute_and_leave_open() {
    let rows = EXPECTED.trim().lines().map(|row| row.split_once(" => "));
    let rows: Vec<(&str, &str)> = rows.map(Option::unwrap).collect();
    let checks: Vec<&str> = rows.iter().map(|(check, _)| *check).collect();
    let mut sentences = String::new();
    for ((check, expected), found) in rows.iter().zip(all_judged(&checks, |_, _| ())) {
        assert_eq!(
            format!("{:?}", found.verdict),
            *expected,
            "{check}: {found:#?}"
        );
        sentences += &format!(
            "{}\n  {}: {}\n",
            found.text,
            found.verdict.text(),
            found.sentence
        );
    }
    insta::assert_snapshot!(sentences);
}

#[test]
fn sentences_have_the_numbers() {
    let found = judged(
        r#"metric = "server_cpu_us_per_request", servers = ["epoll"], relation = "less", clients = [100], baseline = { server = "thread" }"#,
        |_, _| (),
    );
    assert_eq!(
        found.sentence,
        "In part a, with 100 clients, thread has 1.50x the CPU per request of epoll (1.49–1.51x): 10.2 µs vs 6.77 µs."
    );
    let ratio = found.evidence[0].ratio.unwrap();
    let (low, high) = ratio.low.zip(ratio.high).unwrap();
    assert!(low < ratio.value && ratio.value < high && high < 1.0);
    let found = judged(
        r#"metric = "latency_p50_us", servers = ["iterative"], relation = "less", clients = [100], baseline = { server = "epoll" }"#,
        |_, _| (),
    );
    assert!(
        found
            .sentence
            .contains("it served 1 of 100 clients (by design, it serves one client at a time)"),
        "{}",
        found.sentence
    );
    let found = judged(
        r#"parts = ["b"], metric = "latency_p50_us", servers = ["epoll"], relation = "less", baseline = "1s""#,
        |_, _| (),
    );
    assert_eq!(
        found.sentence,
        "Part b does not run on this machine: no program."
    );
}

#[test]
fn limits_are_distinguished_where_what_they_lie_between_does_not_overlap() {
    use ClaimVerdict::{Censored, Confirmed, NotTestable, Refuted};
    use throng_record::SearchEnding::{Between, Found, OutOfTime};
    let found = |failed_at: Option<u64>, ending| {
        move |run: &mut Run, trials: &mut Vec<Trial>| {
            (*run, *trials) = fixture::searched();
            let found = &mut run.limit.as_mut().unwrap().found;
            let epoll = found.iter_mut().find(|one| one.server == "epoll").unwrap();
            epoll.ending = ending;
            if let (Some(value), Some(failed)) = (failed_at, &mut epoll.failed) {
                failed.value = value;
            }
        }
    };
    for (text, failed_at, ending, expected) in [
        (
            r#"metric = "limit", servers = ["epoll"], relation = "lowest""#,
            None,
            Found,
            Confirmed,
        ),
        (
            r#"metric = "limit", servers = ["epoll"], relation = "less", baseline = { server = "thread" }"#,
            Some(1000),
            Between,
            Confirmed,
        ),
        (
            r#"metric = "limit", servers = ["epoll"], relation = "less", baseline = { server = "thread" }"#,
            Some(1002),
            Between,
            Censored,
        ),
        (
            r#"metric = "limit", servers = ["thread"], relation = "less", baseline = { server = "epoll" }"#,
            None,
            Found,
            Refuted,
        ),
        (
            r#"metric = "limit", servers = ["epoll"], relation = "greater", baseline = 100"#,
            None,
            Found,
            Refuted,
        ),
        (
            r#"metric = "limit", servers = ["thread"], relation = "greater", baseline = 5000"#,
            None,
            Found,
            Censored,
        ),
        (
            r#"metric = "limit", servers = ["epoll"], relation = "ended-by", causes = ["max-clients"]"#,
            None,
            Found,
            Confirmed,
        ),
        (
            r#"metric = "limit", servers = ["epoll"], relation = "ended-by", causes = ["threads", "mappings"]"#,
            None,
            Found,
            Refuted,
        ),
        (
            r#"metric = "limit", servers = ["thread"], relation = "ended-by", causes = ["threads"]"#,
            None,
            Found,
            Censored,
        ),
        (
            r#"metric = "limit", servers = ["epoll"], relation = "lowest""#,
            None,
            OutOfTime,
            NotTestable,
        ),
    ] {
        let check = judged(text, found(failed_at, ending));
        assert_eq!(check.verdict, expected, "{check:#?}");
    }
}

#[test]
fn a_limit_that_all_have_in_common_censors() {
    let by = |kind: &'static FindingKind| {
        move |run: &mut Run, trials: &mut Vec<Trial>| {
            (*run, *trials) = fixture::searched();
            let found = &mut run.limit.as_mut().unwrap().found[0];
            let cause = found.cause.as_mut().unwrap();
            cause.kind = kind.kind();
            "a process of it may have 120 descriptors".clone_into(&mut cause.sentence);
        }
    };
    let less = r#"metric = "limit", servers = ["epoll"], relation = "less", baseline = 150"#;
    assert_eq!(
        judged(less, by(&MAX_CLIENTS)).verdict,
        ClaimVerdict::Confirmed
    );
    let found = judged(less, by(&DESCRIPTORS));
    assert_eq!(found.verdict, ClaimVerdict::Censored);
    assert!(
        found.sentence.contains(
            "it may be higher: a process of it may have 120 descriptors; raise the descriptor limit"
        ),
        "{}",
        found.sentence
    );
}

#[test]
fn a_cause_is_named_only_where_it_was_seen() {
    let (run, trials) = fixture::record();
    let report = Report::of(&run, &trials, &Logs::default()).unwrap();
    let record = StudyPart {
        name: "a".to_owned(),
        clients: vec![10, 100, 1000],
        ..StudyPart::default()
    };
    let part = PartReport {
        record: &record,
        report: Some(report),
        published: Table::default(),
    };
    let cpu = r#"metric = "server_cpu_us_per_request", clients = [100]"#;
    let claim = |cause: &str| Claim {
        text: "epoll is cheaper.".to_owned(),
        expect: vec![expect(&format!(
            r#"{cpu}, servers = ["epoll"], relation = "less", baseline = {{ server = "select" }}"#
        ))],
        mechanism: Some(Mechanism {
            text: Some("select looks at every client.".to_owned()),
            expect: vec![expect(cause)],
            metrics: vec!["server_pss_bytes".to_owned()],
        }),
        fidelity: Some("One machine.".to_owned()),
    };
    let grows = r#"metric = "server_cpu_us_per_request", servers = ["select"], relation = "grows""#;
    let study = record::Study {
        claims: vec![claim(grows), claim(&grows.replace("grows", "falls"))],
        ..study_of(&record)
    };
    let judged = judge(&study, &[part]);
    let lines: Vec<String> = judged
        .iter()
        .map(|one| one.mechanism.as_ref().unwrap().line())
        .collect();
    assert!(
        lines[0].starts_with(
            "select looks at every client. select with 1,000 clients has 3.61x the CPU per request"
        ),
        "{}",
        lines[0]
    );
    assert!(
        lines[1].starts_with("Ruled out: select looks at every client. "),
        "{}",
        lines[1]
    );
    assert!(
        lines[0].contains("Memory with 100 clients: epoll "),
        "{}",
        lines[0]
    );
    for one in &judged {
        assert_eq!(
            (one.verdict, one.fidelity.as_deref()),
            (ClaimVerdict::Confirmed, Some("One machine."))
        );
        assert!(one.p.is_some_and(|p| p < 0.01), "{one:#?}");
    }
}

fn study_of(part: &StudyPart) -> record::Study {
    record::Study {
        schema_version: 1,
        throng_version: String::new(),
        name: "s".to_owned(),
        question: String::new(),
        summary: None,
        source: None,
        scale: None,
        started_at: String::new(),
        arguments: Vec::new(),
        parts: vec![part.clone()],
        claims: Vec::new(),
    }
}

#[test]
fn one_trial_proves_nothing() {
    let once = |_: &mut Run, trials: &mut Vec<Trial>| trials.retain(|trial| trial.round == 0);
    let found = judged(
        r#"metric = "server_cpu_us_per_request", servers = ["epoll"], relation = "less", baseline = { server = "thread" }"#,
        once,
    );
    assert_eq!(found.verdict, ClaimVerdict::Inconclusive);
    assert!(
        found
            .sentence
            .contains("It takes at least 6 trials each; there is 1 (--runs 6)."),
        "{}",
        found.sentence
    );
}

#[test]
fn expectations_are_described() {
    let other = r#"baseline = { server = "poll", part = "b", clients = 10, factor = 1.5 }"#;
    for (keys, words) in [
        (
            r#"metric = "server_pss_bytes", relation = "alike", margin = 2.5"#.to_owned(),
            "memory of every server is equal within 2.5 %",
        ),
        (
            r#"metric = "latency_p99_us", servers = ["epoll", "select"], relation = "less", baseline = "10ms", clients = [8, 64]"#
                .to_owned(),
            "p99 latency of epoll and select is less than 10ms with 8 and 64 clients",
        ),
        (
            format!(r#"metric = "latency_p99_us", servers = ["epoll"], relation = "at-most", clients = {{ min = 1000 }}, {other}"#),
            "p99 latency of epoll is at most 1.5 times that of poll in b with 10 clients, give or take 5 % with at least 1,000 clients",
        ),
    ] {
        assert_eq!(super::words::expected(&expect(&keys), None), words);
    }
    let found = judged(
        r#"metric = "server_pss_bytes", servers = ["thread"], relation = "grows""#,
        |_, _| (),
    );
    assert_eq!(
        found.text,
        "a: memory of thread grows with the number of clients"
    );
}
