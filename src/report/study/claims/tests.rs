//! Claims about made-up records.

use proptest::prelude::*;

use super::language::{AtClients, Check, Operand, Relation, Trend, What};
use super::*;
use crate::record::{LeftOut, Purpose, Run, StudyPart, Trial};
use crate::report::study::published::Table;
use crate::report::{Logs, Report, fixture};

/// What a check comes to about the fixture's record, as changed.
fn judged(text: &str, change: impl Fn(&mut Run, &mut Vec<Trial>), is_scaled: bool) -> JudgedCheck {
    all_judged(&[text], change, is_scaled).remove(0)
}

fn all_judged(
    texts: &[&str],
    change: impl Fn(&mut Run, &mut Vec<Trial>),
    is_scaled: bool,
) -> Vec<JudgedCheck> {
    let (mut run, mut trials) = fixture::record();
    run.servers
        .retain(|server| ["epoll", "thread", "fork", "iterative"].contains(&server.name.as_str()));
    trials.retain(|trial| run.servers.iter().any(|server| server.name == trial.server));
    change(&mut run, &mut trials);
    let record = StudyPart {
        name: "a".to_owned(),
        clients: vec![10, 100, 1000, 5000],
        left_out: vec![LeftOut {
            clients: vec![5000],
            server: None,
            reason: "too many".to_owned(),
        }],
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
    let judge = Judge {
        parts: &parts,
        is_scaled,
    };
    texts.iter().map(|text| judge.check(text)).collect()
}

#[test]
fn results_confirm_refute_and_leave_open() {
    use Finding::{Confirmed, NotChecked, NotDistinguishable, Refuted};
    let expected = [
        (
            "a.cpu_per_reply(epoll) < a.cpu_per_reply(thread)",
            Confirmed,
        ),
        ("a.cpu_per_reply(thread) < a.cpu_per_reply(epoll)", Refuted),
        (
            "a.cpu_per_reply(thread) > 1.3 * a.cpu_per_reply(epoll)",
            Confirmed,
        ),
        (
            "a.cpu_per_reply(epoll) < a.cpu_per_reply(thread) < a.cpu_per_reply(fork) at clients <= 100",
            Confirmed,
        ),
        (
            "a.cpu_per_reply(epoll) < a.cpu_per_reply(epoll)",
            NotDistinguishable,
        ),
        (
            "a.cpu_per_reply(epoll) <= a.cpu_per_reply(epoll)",
            Confirmed,
        ),
        (
            "alike(a.cpu_per_reply(epoll), a.cpu_per_reply(epoll))",
            Confirmed,
        ),
        (
            "alike(a.cpu_per_reply(epoll), a.cpu_per_reply(fork)) at clients = 100",
            Refuted,
        ),
        (
            "alike(a.cpu_per_reply(epoll), a.cpu_per_reply(thread)) within 80 %",
            Confirmed,
        ),
        ("alike(a.memory(*))", Refuted),
        ("a.memory(thread) grows with clients", Confirmed),
        ("a.memory(thread) falls with clients", Refuted),
        ("a.memory(thread) is flat", Refuted),
        ("a.cpu_per_reply(epoll) is flat", Confirmed),
        (
            "a.cpu_per_reply(epoll) grows at clients >= 1000",
            NotChecked,
        ),
        ("a.memory(epoll, 1000) > a.memory(epoll, 10)", Confirmed),
        (
            "a.cpu_per_reply(epoll) is lowest at clients = 100",
            Confirmed,
        ),
        ("a.cpu_per_reply(fork) is lowest at clients = 100", Refuted),
        ("a.cpu_per_reply(epoll) < 1 ms", Confirmed),
        ("1 ms < a.cpu_per_reply(epoll)", Refuted),
        ("a.errors(*) <= 0", Confirmed),
        ("a.never_served(iterative) > 0 at clients >= 100", Confirmed),
        ("a.first_failure(epoll) >= 1000", Confirmed),
        // One client at a time is no crowd.
        (
            "a.p50(iterative) < a.p50(epoll) at clients = 100",
            NotChecked,
        ),
        ("a.p50(epoll) < 1 s at clients = 5000", NotChecked),
        ("b.p50(epoll) < 1 s", NotChecked),
        ("nonsense", NotChecked),
    ];
    let checks: Vec<&str> = expected.iter().map(|(check, _)| *check).collect();
    for ((check, expected), found) in expected.iter().zip(all_judged(&checks, |_, _| (), false)) {
        assert_eq!(found.verdict, *expected, "{check}: {found:#?}");
        assert!(found.sentence.ends_with('.'), "{found:#?}");
    }
}

#[test]
fn sentences_have_the_numbers() {
    let found = judged(
        "a.cpu_per_reply(epoll) < a.cpu_per_reply(thread) at clients = 100",
        |_, _| (),
        false,
    );
    let (start, end) = ("With 100 clients the CPU/reply of epoll (a) is 0.", " µs).");
    assert!(
        found.sentence.starts_with(start) && found.sentence.ends_with(end),
        "{}",
        found.sentence
    );
    assert!(
        found
            .sentence
            .contains("times the CPU/reply of thread (a) ("),
        "{}",
        found.sentence
    );
    let ratio = found.evidence[0].ratio.unwrap();
    assert!(ratio.low < ratio.estimate && ratio.estimate < ratio.high && ratio.high < 1.0);
    let found = judged(
        "a.p50(iterative) < a.p50(epoll) at clients = 100",
        |_, _| (),
        false,
    );
    assert!(
        found
            .sentence
            .contains("it served 1 of 100 clients (it serves one client at a time)"),
        "{}",
        found.sentence
    );
    let found = judged("b.p50(epoll) < 1 s", |_, _| (), false);
    assert_eq!(found.sentence, "Part b does not run here: no program.");
}

#[test]
fn what_differs_less_than_a_server_from_itself_is_left_open() {
    let noisy = |run: &mut Run, trials: &mut Vec<Trial>| {
        run.settings.control = Some("epoll".to_owned());
        let again = trials
            .iter()
            .filter(|trial| trial.server == "epoll" && trial.purpose == Purpose::Timed);
        let mut again: Vec<Trial> = again.cloned().collect();
        for trial in &mut again {
            trial.purpose = Purpose::Control;
            let side = trial.server_side.as_mut().unwrap();
            *side.metrics.get_mut("cpu_ms").unwrap() *= 3.0;
        }
        trials.extend(again);
    };
    let found = judged(
        "a.cpu_per_reply(epoll) < a.cpu_per_reply(thread)",
        noisy,
        false,
    );
    assert_eq!(found.verdict, Finding::NotDistinguishable, "{found:#?}");
    assert!(
        found.sentence.contains("not told from noise"),
        "{}",
        found.sentence
    );
}

#[test]
fn limits_are_told_apart_where_what_they_lie_between_does_not_overlap() {
    use crate::record::SearchEnding::{Between, Found, OutOfTime};
    use Finding::{Confirmed, NotChecked, NotDistinguishable, Refuted};
    let found = |broke_at: Option<u64>, ending| {
        move |run: &mut Run, trials: &mut Vec<Trial>| {
            (*run, *trials) = fixture::searched();
            let found = &mut run.limit.as_mut().unwrap().found;
            let epoll = found.iter_mut().find(|one| one.server == "epoll").unwrap();
            epoll.ending = ending;
            if let (Some(value), Some(broke)) = (broke_at, &mut epoll.broke) {
                broke.value = value;
            }
        }
    };
    for (text, broke_at, ending, expected) in [
        ("a.limit(epoll) is lowest", None, Found, Confirmed),
        (
            "a.limit(epoll) < a.limit(thread)",
            Some(1000),
            Between,
            Confirmed,
        ),
        (
            "a.limit(epoll) < a.limit(thread)",
            Some(1002),
            Between,
            NotDistinguishable,
        ),
        ("a.limit(thread) < a.limit(epoll)", None, Found, Refuted),
        ("a.limit(epoll) > 100", None, Found, Refuted),
        ("a.limit(thread) > 5000", None, Found, NotDistinguishable),
        ("a.limit(epoll) is lowest", None, OutOfTime, NotChecked),
    ] {
        let check = judged(text, found(broke_at, ending), false);
        assert_eq!(check.verdict, expected, "{check:#?}");
    }
}

#[test]
fn one_trial_tells_nothing() {
    let once = |_: &mut Run, trials: &mut Vec<Trial>| trials.retain(|trial| trial.round == 0);
    let found = judged(
        "a.cpu_per_reply(epoll) < a.cpu_per_reply(thread)",
        once,
        false,
    );
    assert_eq!(found.verdict, Finding::NotChecked);
    assert!(
        found.sentence.contains("one trial has no interval"),
        "{}",
        found.sentence
    );
}

#[test]
fn at_another_scale_only_what_is_about_crowds_that_were_run_is_checked() {
    let at_scale = |text| judged(text, |_, _| (), true);
    let found = at_scale("a.cpu_per_reply(epoll) < a.cpu_per_reply(thread) at clients <= 100");
    assert_eq!(found.verdict, Finding::Confirmed);
    let found = at_scale("a.cpu_per_reply(epoll) < a.cpu_per_reply(thread)");
    assert_eq!(found.verdict, Finding::NotChecked);
    assert!(
        found
            .sentence
            .contains("Not at this scale: it is about 5,000 clients"),
        "{}",
        found.sentence
    );
}

#[test]
fn checks_are_read() {
    let check = Check::parse("part-a.p99.9('node s.js') <= 1.5 * p99.9(epoll-et, 1_000) at clients >= 8 and clients < 64").unwrap();
    let What::Order {
        first: Operand::Value(_, first),
        then,
    } = &check.what
    else {
        panic!("{check:?}")
    };
    assert_eq!(
        (first.part.as_deref(), first.server.as_deref()),
        (Some("part-a"), Some("node s.js"))
    );
    let [(Relation::AtMost, Operand::Value(times, second))] = then.as_slice() else {
        panic!("{then:?}")
    };
    assert!((times - 1.5).abs() < 1e-9 && second.clients == Some(1000));
    assert_eq!(check.at[0], AtClients::Related(Relation::AtLeast, 8.0));
    assert!(check.is_about(8) && check.is_about(63) && !check.is_about(64) && !check.is_about(7));
    let flat = Check::parse("memory(*) is flat with clients").unwrap();
    assert!(matches!(&flat.what, What::Trend(value, Trend::Flat) if value.server.is_none()));
    let limit = Check::parse("10ms > p99(epoll) > 2 ms").unwrap();
    assert!(
        matches!(limit.what, What::Order { first: Operand::Number(n), .. } if (n - 10_000.0).abs() < 1e-9)
    );
}

#[test]
fn what_is_wrong_in_a_check_is_pointed_at() {
    for (text, at, why) in [
        ("", 0..0, "a metric of a server is missing"),
        ("p98(epoll) < 1s", 0..3, "no metric `p98`"),
        ("p99 < 1s", 4..5, "`(` is missing after `p99`"),
        ("p99() < 1s", 4..5, "the name of a server is missing"),
        ("p99(epoll", 9..9, "`)` is missing"),
        ("p99(epoll)", 10..10, "what is said of it is missing"),
        ("p99(epoll) <", 12..12, "a metric of a server is missing"),
        ("p99(epoll) < 3 days", 13..19, "`days` is no unit"),
        (
            "p99(epoll) < memory(epoll)",
            13..26,
            "measured in something else",
        ),
        ("1 < 2", 0..5, "a metric of a server is missing"),
        ("1ms < 2ms < p99(epoll)", 0..22, "two numbers"),
        ("alike(p99(epoll))", 6..16, "one value alone"),
        ("alike(p99(*)) within 5", 22..22, "`%` is missing"),
        (
            "first_failure(epoll) grows",
            0..20,
            "cannot go with their number",
        ),
        (
            "first_failure(epoll, 5) > 1",
            21..22,
            "one value over all clients",
        ),
        (
            "p99(epoll) is best",
            14..18,
            "`highest`, `lowest` or `flat`",
        ),
        ("p99(epoll) grows at noon", 20..24, "`clients` is missing"),
        (
            "p99(epoll) grows at clients",
            27..27,
            "a relation is missing",
        ),
        ("p99(epoll) grows now", 17..20, "nothing more can follow"),
        ("p99(epoll, 0) < 1s", 11..12, "no number of clients"),
        ("p99(\"epoll) < 1s", 4..16, "quote is not closed"),
        ("p99(epoll) ~ 1s", 11..12, "belongs nowhere"),
        ("2 * p99(epoll)", 14..14, "a relation is missing"),
    ] {
        let wrong = Check::parse(text).unwrap_err();
        assert!(wrong.why.contains(why), "{text}: {wrong:?}");
        assert_eq!(wrong.at, at, "{text}: {wrong:?}");
    }
}

fn value() -> impl Strategy<Value = String> {
    let metric = prop::sample::select(vec!["p99", "p99.9", "service_mean", "first_answer"]);
    let server = prop::sample::select(vec!["epoll", "'node s.js'", "*", "io-uring"]);
    let part = prop::sample::select(vec!["", "a.", "part-b."]);
    let clients = prop::option::of(1_u32..100_000);
    (part, metric, server, clients).prop_map(|(part, metric, server, clients)| match clients {
        Some(clients) => format!("{part}{metric}({server}, {clients})"),
        None => format!("{part}{metric}({server})"),
    })
}

proptest! {
    /// Whatever is written, it is read or refused at a place that is there.
    #[test]
    fn no_text_breaks_the_parser(text in "[a-z0-9_.*()<>=,%'\" µ-]{0,40}") {
        if let Err(wrong) = Check::parse(&text) {
            prop_assert!(wrong.at.start <= wrong.at.end && wrong.at.end <= text.len());
            prop_assert!(text.is_char_boundary(wrong.at.start) && text.is_char_boundary(wrong.at.end));
        }
    }

    /// A chain of values is read as so many comparisons, however it is spaced.
    #[test]
    fn chains_are_read(values in prop::collection::vec(value(), 2..5), space in " {0,2}") {
        let text = values.join(&format!("{space}<{space}")) + " at clients >= 8";
        let check = Check::parse(&text).unwrap();
        prop_assert_eq!(check.values().len(), values.len());
        for (value, written) in check.values().into_iter().zip(&values) {
            prop_assert_eq!(&text[value.at.clone()], written);
        }
        prop_assert!(check.is_about(8) && !check.is_about(7));
    }

    /// A check that is cut off anywhere is refused, or another whole one.
    #[test]
    fn cut_checks_do_not_break(length in 0_usize..70) {
        let text = "alike(a.p99(epoll), 'b') within 5 % at clients >= 100 and clients < 7";
        let _ = Check::parse(&text[..length.min(text.len())]);
    }
}
