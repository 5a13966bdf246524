//! Tests: claims about synthetic records.

use serde::Deserialize;
use throng_record::findings::FindingKind;
use throng_record::findings::cause::direct::{DESCRIPTORS, MAX_CLIENTS};

use super::*;
use crate::study::published::Table;
use crate::{Logs, Report, fixture};
use throng_record as record;
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

/// A claim of one expectation, judged by the modified fixture.
fn judged(text: &str, change: impl Fn(&mut Run, &mut Vec<Trial>)) -> JudgedClaim {
    all_judged(&[text], change).remove(0)
}

/// Claims of one expectation each. Each is judged by itself.
fn all_judged(texts: &[&str], change: impl Fn(&mut Run, &mut Vec<Trial>)) -> Vec<JudgedClaim> {
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
    let claims = texts.iter().map(|text| {
        let claim = Claim {
            text: (*text).to_owned(),
            expect: vec![expect(text)],
            ..Claim::default()
        };
        let study = record::Study {
            claims: vec![claim],
            ..study_of(&record)
        };
        judge(&study, &parts).remove(0)
    });
    claims.collect()
}

/// An expectation and its result.
const EXPECTED: &str = r#"
    metric = "server_cpu_us_per_request", servers = ["epoll"], relation = "less", baseline = { server = "thread" } => Yes
    metric = "server_cpu_us_per_request", servers = ["thread"], relation = "less", baseline = { server = "epoll" } => No
    metric = "server_cpu_us_per_request", servers = ["thread"], relation = "greater", baseline = { server = "epoll", factor = 1.3 } => Yes
    metric = "server_cpu_us_per_request", servers = ["thread"], relation = "less", clients = { max = 100 }, baseline = { server = "fork" } => Yes
    metric = "server_cpu_us_per_request", relation = "at-least", baseline = { server = "epoll" } => Partly
    metric = "server_cpu_us_per_request", servers = ["thread", "fork"], relation = "greater", baseline = { server = "epoll" }, clients = [100] => Yes
    metric = "server_cpu_us_per_request", servers = ["epoll"], relation = "less", baseline = { server = "epoll" } => Tie
    metric = "server_cpu_us_per_request", servers = ["thread"], relation = "greater", baseline = { server = "epoll" }, margin = 80 => Tie
    metric = "server_cpu_us_per_request", servers = ["epoll"], relation = "at-most", baseline = { server = "epoll" } => Yes
    metric = "server_cpu_us_per_request", servers = ["thread"], relation = "at-most", baseline = { server = "epoll" } => No
    metric = "server_cpu_us_per_request", servers = ["thread"], relation = "at-most", baseline = { server = "epoll" }, margin = 80 => Yes
    metric = "server_cpu_us_per_request", servers = ["epoll", "epoll"], relation = "alike" => Yes
    metric = "server_cpu_us_per_request", servers = ["epoll", "fork"], relation = "alike", clients = [100] => No
    metric = "server_cpu_us_per_request", servers = ["epoll", "thread"], relation = "alike", margin = 80 => Yes
    metric = "server_cpu_us_per_request", servers = ["epoll"], relation = "alike", baseline = { server = "thread" }, margin = 80 => Yes
    metric = "server_pss_bytes", relation = "alike" => No
    metric = "server_pss_bytes", servers = ["thread"], relation = "grows" => Yes
    metric = "server_pss_bytes", servers = ["thread"], relation = "falls" => No
    metric = "server_pss_bytes", servers = ["thread"], relation = "flat" => No
    metric = "server_cpu_us_per_request", servers = ["epoll"], relation = "flat", margin = 10 => Yes
    metric = "server_cpu_us_per_request", servers = ["epoll"], relation = "grows", clients = { min = 1000 } => NotMeasured
    metric = "server_pss_bytes", servers = ["epoll"], relation = "greater", clients = [1000], baseline = { clients = 10 } => Yes
    metric = "server_cpu_us_per_request", servers = ["epoll"], relation = "lowest", clients = [100] => Yes
    metric = "server_cpu_us_per_request", servers = ["fork"], relation = "lowest", clients = [100] => No
    metric = "server_cpu_us_per_request", servers = ["epoll"], relation = "less", baseline = "1 ms" => Yes
    metric = "server_cpu_us_per_request", servers = ["epoll"], relation = "greater", baseline = "1 ms" => No
    metric = "errors", relation = "at-most", baseline = 0 => Yes
    metric = "clients_never_served", servers = ["iterative"], relation = "greater", baseline = 0, clients = { min = 100 } => Yes
    metric = "first_failure", servers = ["epoll"], relation = "at-least", baseline = 1000 => Yes
    metric = "latency_p50_us", servers = ["iterative"], relation = "less", clients = [100], baseline = { server = "epoll" } => NotMeasured
    metric = "latency_p50_us", servers = ["epoll"], relation = "less", clients = [5000], baseline = "1s" => NotMeasured
    parts = ["b"], metric = "latency_p50_us", servers = ["epoll"], relation = "less", baseline = "1s" => NotMeasured
    metric = "latency_p50_us", servers = ["epoll"], relation = "less", baseline = { part = "b" } => NotMeasured
    metric = "latency_p50_us", servers = ["epoll"], relation = "less", baseline = "1 kB" => NotMeasured
    metric = "nonsense", servers = ["epoll"], relation = "lowest" => NotMeasured
"#;

#[test]
fn results_say_yes_and_no_and_leave_open() {
    let rows: Vec<(&str, &str)> = EXPECTED
        .trim()
        .lines()
        .map(|row| row.split_once(" => "))
        .map(Option::unwrap)
        .collect();
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
            check,
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
        "In \"a\", with 100 clients, epoll has 1.50x less CPU per request than thread (1.49–1.51x): 6.77 µs vs 10.2 µs."
    );
    let ratio = found.cells[0].ratio.unwrap();
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
    use ClaimVerdict::{No, NotMeasured, Yes};
    use throng_record::SearchEnding::{Between, Found, Interrupted};
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
            Yes,
        ),
        (
            r#"metric = "limit", servers = ["epoll"], relation = "less", baseline = { server = "thread" }"#,
            Some(1000),
            Between,
            Yes,
        ),
        (
            r#"metric = "limit", servers = ["epoll"], relation = "less", baseline = { server = "thread" }"#,
            Some(1002),
            Between,
            NotMeasured,
        ),
        (
            r#"metric = "limit", servers = ["thread"], relation = "less", baseline = { server = "epoll" }"#,
            None,
            Found,
            No,
        ),
        (
            r#"metric = "limit", servers = ["epoll"], relation = "greater", baseline = 100"#,
            None,
            Found,
            No,
        ),
        (
            r#"metric = "limit", servers = ["thread"], relation = "greater", baseline = 5000"#,
            None,
            Found,
            NotMeasured,
        ),
        (
            r#"metric = "limit", servers = ["epoll"], relation = "ended-by", causes = ["max-clients"]"#,
            None,
            Found,
            Yes,
        ),
        (
            r#"metric = "limit", servers = ["epoll"], relation = "ended-by", causes = ["threads", "mappings"]"#,
            None,
            Found,
            No,
        ),
        (
            r#"metric = "limit", servers = ["thread"], relation = "ended-by", causes = ["threads"]"#,
            None,
            Found,
            NotMeasured,
        ),
        (
            r#"metric = "limit", servers = ["epoll"], relation = "lowest""#,
            None,
            Interrupted,
            NotMeasured,
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
    assert_eq!(judged(less, by(&MAX_CLIENTS)).verdict, ClaimVerdict::Yes);
    let found = judged(less, by(&DESCRIPTORS));
    assert_eq!(found.verdict, ClaimVerdict::NotMeasured);
    assert!(
        found.sentence.contains(
            "the value of epoll may be higher: a process of it may have 120 descriptors; raise the descriptor limit"
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
        leads: false,
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
        .map(|one| one.cause.as_ref().unwrap().line())
        .collect();
    assert!(
        lines[0].starts_with(
            "select looks at every client. Yes in both comparisons. With 100 clients, select has 1.90x the CPU per request"
        ),
        "{}",
        lines[0]
    );
    assert!(
        lines[1].starts_with("select looks at every client (ruled out). "),
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
            (ClaimVerdict::Yes, Some("One machine."))
        );
        assert!(
            one.cells.iter().all(|cell| cell.ratio.is_some()),
            "{one:#?}"
        );
    }
}

fn study_of(part: &StudyPart) -> record::Study {
    record::Study {
        schema_version: 1,
        throng_version: String::new(),
        name: "s".to_owned(),
        question: String::new(),
        summary: None,
        changed: Vec::new(),
        source: None,
        scale: None,
        started_at: String::new(),
        arguments: Vec::new(),
        parts: vec![part.clone()],
        claims: Vec::new(),
    }
}

#[test]
fn clients_that_got_nothing_are_a_result_where_the_study_says_so() {
    let keys = r#"servers = ["iterative"], clients = [100]"#;
    let text = |rest: &str| format!("{keys}, {rest}");
    let spread = text(r#"metric = "requests_per_client_mean", relation = "greater", baseline = 0"#);
    let nothing = text(r#"metric = "clients_never_served", relation = "greater", baseline = 0"#);
    let counting = |run: &mut Run, trials: &mut Vec<Trial>| {
        run.settings.unserved_counts = true;
        fixture::examine(run, trials);
    };
    assert_eq!(
        judged(&spread, |_, _| ()).verdict,
        ClaimVerdict::NotMeasured
    );
    assert_eq!(judged(&nothing, counting).verdict, ClaimVerdict::Yes);
    let found = judged(&spread, counting);
    assert_eq!(found.verdict, ClaimVerdict::Yes, "{found:#?}");
    let uneven = text(r#"metric = "requests_per_client_cv", relation = "less", baseline = 5"#);
    let found = judged(&uneven, counting);
    assert!(
        found.sentence.contains("99 clients got nothing"),
        "{found:#?}"
    );
}

#[test]
fn one_trial_proves_nothing() {
    let once = |_: &mut Run, trials: &mut Vec<Trial>| trials.retain(|trial| trial.round == 0);
    let found = judged(
        r#"metric = "server_cpu_us_per_request", servers = ["epoll"], relation = "less", baseline = { server = "thread" }"#,
        once,
    );
    assert_eq!(found.verdict, ClaimVerdict::Noisy);
    assert!(
        found
            .sentence
            .contains("It takes at least 6 trials each; there is 1 (--runs 6)."),
        "{}",
        found.sentence
    );
}

#[test]
fn cells_are_counted() {
    use ClaimVerdict::{No, Noisy, NotMeasured, Partly, Tie, Yes};
    let cells = |verdicts: &[ClaimVerdict]| -> Vec<ClaimCell> {
        let found = judged(
            r#"metric = "server_cpu_us_per_request", servers = ["epoll"], relation = "less", clients = [100], baseline = { server = "thread" }"#,
            |_, _| (),
        );
        let each = (0..).zip(verdicts);
        each.map(|(clients, &verdict)| ClaimCell {
            clients: Some(clients),
            verdict,
            ..found.cells[0].clone()
        })
        .collect()
    };
    for (verdicts, expected) in [
        (&[Yes, Yes, Yes][..], Yes),
        (&[Yes, Yes, Noisy], Yes),
        (&[Yes, Noisy, Noisy], Noisy),
        (&[Yes, Yes, No], Partly),
        (&[Yes, Tie, Tie], Partly),
        (&[No, Tie, Tie], No),
        (&[Tie, Tie, Noisy], Tie),
        (&[Yes, NotMeasured, NotMeasured], Partly),
        (&[Yes, Noisy], Partly),
        (&[No, NotMeasured, NotMeasured], No),
        (&[NotMeasured, NotMeasured], NotMeasured),
        (&[], NotMeasured),
    ] {
        assert_eq!(words::verdict(&cells(verdicts)), expected, "{verdicts:?}");
    }
    let sentence = words::sentence(&cells(&[Yes, Yes, No, Noisy]));
    assert!(
        sentence.starts_with(
            "Yes in 2 of 4 comparisons, no in 1 (with 2 clients) and too noisy in 1 (with 3 clients). "
        ),
        "{sentence}"
    );
}
