use super::*;
use crate::document::{markdown, terminal};
use crate::fixture::{self, faster};
use crate::page_diff;
use crate::palette::look;
use crate::sections::of_diff;

fn recorded(directory: &str, measured: (Run, Vec<Trial>)) -> StoredRecord {
    StoredRecord {
        directory: directory.to_owned(),
        study: None,
        parts: vec![RecordedPart {
            name: None,
            title: None,
            measured: Some(measured),
        }],
    }
}

/// Compares the fixture's run with a copy changed by `change`.
fn diff(change: impl Fn(&mut Run, &mut Vec<Trial>)) -> anyhow::Result<Diff> {
    let mut other = fixture::record();
    change(&mut other.0, &mut other.1);
    Diff::of(
        &recorded("then", fixture::record()),
        &recorded("now", other),
    )
}

fn later(run: &mut Run) {
    run.started_at = "2026-02-02T12:00:00Z".to_owned();
}

#[test]
fn a_server_that_became_faster_is_better_and_the_others_are_not() {
    let diff = diff(|run, trials| {
        later(run);
        faster(trials, "epoll", 3.0);
    })
    .unwrap();
    let part = &diff.parts[0];
    let of = |server: &str| {
        let pairs = part.pairs.iter();
        let mut own = pairs.filter(move |compared| compared.server == server);
        own.next().expect("it is in both").pair.clone()
    };
    let rate = &of("epoll").measures[0];
    assert_eq!(rate.verdict, Verdict::Better);
    let ratio = rate.ratio.expect("there are runs");
    assert!((ratio.value - 3.0).abs() < 1e-9 && ratio.low > Some(1.0) && ratio.high > ratio.low);
    assert_eq!(rate.word, "faster");
    assert!(!of("poll").measures[0].verdict.is_difference());
    // Never paired by round: pairing the very same rounds would give ratios of exactly 1.
    assert!(of("poll").measures[0].ratio.expect("one").low < Some(0.999));
    assert_eq!(
        diff.headline.matches(": 3 better in B").count(),
        1,
        "{}",
        diff.headline
    );
    assert!(
        diff.sentences()
            .iter()
            .all(|sentence| sentence.contains("epoll in B"))
    );
    assert!(diff.caveats.is_empty(), "{:?}", diff.caveats);
    assert!(
        diff.notes[0].contains("not interleaved"),
        "{:?}",
        diff.notes
    );
    let text = terminal::text(&of_diff(&diff), 100, false);
    assert!(
        text.contains("3.00x faster") && text.contains("inconclusive"),
        "{text}"
    );
}

#[test]
fn the_same_program_that_was_slower_had_a_slower_machine() {
    let with = |factor: f64| {
        diff(|run, trials| {
            later(run);
            for server in ["epoll", "poll", "select"] {
                faster(trials, server, factor);
            }
        })
        .unwrap()
        .headline
    };
    let slower = with(0.8);
    assert!(
        slower.starts_with("Same program and settings: the machine was slower in B (25 %). Of "),
        "{slower}"
    );
    let equal = with(1.0);
    assert!(
        equal.starts_with("Same program and settings: no difference found."),
        "{equal}"
    );
}

#[test]
fn the_earlier_run_is_a_whichever_is_named_first() {
    let (run, trials) = fixture::record();
    let mut after = run.clone();
    later(&mut after);
    let [first, second] =
        [run, after].map(|run| recorded(&run.started_at, (run.clone(), trials.clone())));
    let forwards = Diff::of(&first, &second).unwrap();
    assert_eq!(forwards, Diff::of(&second, &first).unwrap());
    assert!(forwards.a.started_at < forwards.b.started_at);
}

#[test]
fn another_load_and_another_machine_are_said_and_marked() {
    let diff = diff(|run, _| {
        later(run);
        run.settings.load.duration = Some(std::time::Duration::from_millis(7500));
        run.host.kernel = "Linux 5.0".to_owned();
        run.host
            .sysctls
            .insert("net.core.somaxconn".to_owned(), "7".to_owned());
        run.throng_version = "9.9.9".to_owned();
        run.servers[0].command.push("--more".to_owned());
    })
    .unwrap();
    let all = diff.caveats.join("\n");
    for said in [
        "The loads differ: duration",
        "and 7500ms in B",
        "kernel Linux 6.18.1 in A and Linux 5.0 in B",
        "compare machines as well as servers",
        "and B with throng 9.9.9",
        "Started differently in A and B",
    ] {
        assert!(all.contains(said), "{said}: {all}");
    }
    let differs: Vec<&str> = diff.parts[0]
        .facts
        .iter()
        .filter(|fact| fact.differs)
        .map(|fact| fact.name.as_str())
        .collect();
    for name in ["Measurement", "Kernel", "throng", "Start of iterative"] {
        assert!(differs.contains(&name), "{name}: {differs:?}");
    }
    assert!(!differs.contains(&"Started"), "{differs:?}");
    let page = page_diff(&diff);
    assert!(page.contains("<td class=\"text bad\">differs"));
}

#[test]
fn measurements_of_only_one_run_are_listed() {
    let diff = diff(|run, trials| {
        later(run);
        run.servers.retain(|server| server.name != "fork");
        trials.retain(|trial| trial.server != "fork" && trial.clients != 10);
        trials.retain(|trial| trial.server != "poll" || trial.clients != 100);
        run.servers[0].name = "new".to_owned();
        for trial in trials
            .iter_mut()
            .filter(|trial| trial.server == "iterative")
        {
            trial.server = "new".to_owned();
        }
    })
    .unwrap();
    let [a, b] = &diff.parts[0].only_in;
    assert_eq!(
        a,
        &["iterative", "fork", "10 clients", "poll with 100 clients"]
    );
    assert_eq!(b, &["new"]);
}

#[test]
fn the_same_run_twice_and_runs_with_nothing_in_common_are_refused() {
    let error = diff(|_, _| ()).unwrap_err().to_string();
    assert_eq!(error, "then and now are the same run; name another one");
    let error = diff(|run, trials| {
        run.servers.truncate(1);
        run.servers[0].name = "mine".to_owned();
        trials.retain(|trial| trial.server == "iterative");
        for trial in trials {
            trial.server = "mine".to_owned();
        }
    })
    .unwrap_err()
    .to_string();
    assert!(
        error.starts_with("the records have nothing in common: then has iterative, fork"),
        "{error}"
    );
    assert!(
        error.ends_with("and now has mine with 10, 100 and 1000 clients"),
        "{error}"
    );
}

#[test]
fn limits_are_apart_only_where_what_broke_in_one_held_in_the_other() {
    let with = |passed: u64, failed: u64| {
        let (mut run, trials) = fixture::searched();
        let found = &mut run.limit.as_mut().expect("it searched").found;
        let mut found = found.iter_mut();
        let found = found.find(|found| found.failed.is_some()).expect("one");
        found.passed = found.passed.map(|tried| throng_record::TriedValue {
            value: passed,
            ..tried
        });
        found.failed = found.failed.map(|tried| throng_record::TriedValue {
            value: failed,
            ..tried
        });
        recorded("run", (run, trials))
    };
    for (a, b, verdict) in [
        ((100, 110), (150, 160), Verdict::Better),
        ((100, 110), (110, 120), Verdict::Better),
        ((150, 160), (100, 110), Verdict::Worse),
        ((100, 110), (105, 115), Verdict::Inconclusive),
        ((289, 300), (289, 310), Verdict::Equivalent),
    ] {
        let diff = Diff::of(&with(a.0, a.1), &with(b.0, b.1)).unwrap();
        let limits = &diff.parts[0].limits;
        let apart = limits.iter().map(|limit| limit.verdict);
        let apart: Vec<Verdict> = apart
            .filter(|found| *found != Verdict::Inconclusive)
            .collect();
        let reported = verdict != Verdict::Inconclusive;
        assert_eq!(
            apart.contains(&verdict),
            reported,
            "{a:?} {b:?}: {limits:?}"
        );
        let word = match verdict {
            Verdict::Better => "higher",
            Verdict::Worse => "lower",
            Verdict::Equivalent => "equal",
            _ => "inconclusive",
        };
        assert!(page_diff(&diff).contains(word));
    }
}

#[test]
fn nothing_from_outside_is_read_as_html() {
    const EVIL: &str = "<script>alert(1)</script>";
    let evil = |directory: &str, change: fn(&mut Run)| {
        let (mut run, mut trials) = fixture::record();
        change(&mut run);
        for text in [
            &mut run.study.name,
            &mut run.study.question,
            &mut run.servers[3].name,
        ] {
            EVIL.clone_into(text);
        }
        run.arguments.push(EVIL.to_owned());
        run.findings[0].text = EVIL.to_owned();
        for trial in trials.iter_mut().filter(|trial| trial.server == "thread") {
            trial.server = EVIL.to_owned();
        }
        recorded(directory, (run, trials))
    };
    let diff = Diff::of(&evil(EVIL, |_| ()), &evil("now", later)).unwrap();
    let page = page_diff(&diff);
    assert!(!page.contains(EVIL) && page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert_eq!(page.matches("<script").count(), 1, "its own");
    assert!(!page.contains("http:") && !page.contains("https:") && !page.contains("@import"));
    let markdown = markdown::text(&of_diff(&diff));
    let fenced: String = markdown.split("```").skip(1).step_by(2).collect();
    assert_eq!(markdown.matches(EVIL).count(), fenced.matches(EVIL).count());
}

#[test]
fn both_runs_are_drawn_and_their_hues_are_those_of_one_server() {
    let diff = diff(|run, trials| {
        later(run);
        faster(trials, "epoll", 1.5);
    })
    .unwrap();
    let figures = &diff.parts[0].figures;
    let ids: Vec<&str> = figures.iter().map(|figure| figure.id).collect();
    let wanted = ["ratio-rate", "ratio-cpu", "ratios-rate", "ratios-cpu"];
    assert_eq!(ids[..4], wanted);
    assert_eq!(ids[4..], ["both-rates", "both-cpu"]);
    assert!(figures.iter().all(|figure| !figure.alternative.is_empty()));
    let [b, a] = super::figures::places("epoll", &["epoll".to_owned()]).map(look);
    assert_eq!((a.light, a.marker), (b.light, b.marker));
}
