use super::*;
use crate::document::{markdown, terminal};
use crate::figures::Ranked;
use crate::fixture::{self, faster};
use crate::palette::look;
use crate::sections::of_between;
use crate::{LoadedRun, Logs, page_between};
use throng_record::{
    Comparison as Asked, Find, Foreign, ForeignProgram, Run, Trial, TriedValue, UsedFile,
};

fn recorded(directory: &str, (run, trials): (Run, Vec<Trial>)) -> Recorded {
    Recorded {
        directory: directory.to_owned(),
        study: LoadedStudy::of_run(LoadedRun {
            run,
            trials,
            logs: Logs::default(),
            baseline: None,
        }),
    }
}

/// Compares the fixture's run with a copy changed by `change`.
fn diff(change: impl Fn(&mut Run, &mut Vec<Trial>)) -> anyhow::Result<Between> {
    let mut other = fixture::record();
    change(&mut other.0, &mut other.1);
    Between::diff(
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
        let mut own = pairs.filter(move |pair| pair.server == server);
        own.next().expect("it is in both").clone()
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
        diff.headline[1].matches(": 3 better in B").count(),
        1,
        "{:?}",
        diff.headline
    );
    assert!(
        diff.sentences
            .iter()
            .all(|sentence| sentence.contains("epoll in A"))
    );
    assert!(diff.caveats.is_empty(), "{:?}", diff.caveats);
    let notes = words::notes(&diff);
    assert!(notes[0].contains("not interleaved"), "{notes:?}");
    let text = terminal::text(&of_between(&diff), 100, false);
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
        .join(" ")
    };
    let slower = with(0.8);
    assert!(
        slower.starts_with("Same program and settings: the machine was slower in B (25 %). Of "),
        "{slower}"
    );
    let equal = with(1.0);
    assert!(
        equal.starts_with("Same program and settings: no difference found in "),
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
    let forwards = Between::diff(&first, &second).unwrap();
    assert_eq!(forwards, Between::diff(&second, &first).unwrap());
    assert!(forwards.runs[0].started_at < forwards.runs[1].started_at);
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
        "The loads differ: Measurement",
        "and 7.5 s, after",
        "Kernel Linux 6.18.1 in A and Linux 5.0 in B",
        "compare machines as well as servers",
        "throng itself differs, and so may its servers and measurements: throng.",
        "Started differently, so these may be different programs: iterative.",
    ] {
        assert!(all.contains(said), "{said}: {all}");
    }
    let differs: Vec<String> = diff.parts[0]
        .facts
        .iter()
        .filter(|fact| fact.differs())
        .map(Fact::title)
        .collect();
    for name in ["Measurement", "Kernel", "throng", "Start of iterative"] {
        assert!(differs.contains(&name.to_owned()), "{name}: {differs:?}");
    }
    assert!(!differs.contains(&"Started".to_owned()), "{differs:?}");
    let page = page_between(&diff);
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
        found.passed = found.passed.map(|tried| TriedValue {
            value: passed,
            ..tried
        });
        found.failed = found.failed.map(|tried| TriedValue {
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
        let diff = Between::diff(&with(a.0, a.1), &with(b.0, b.1)).unwrap();
        let limits = &diff.parts[0].limits;
        let apart: Vec<Verdict> = limits
            .iter()
            .filter_map(|limit| limit.verdict)
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
        assert!(page_between(&diff).contains(word));
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
    let diff = Between::diff(&evil(EVIL, |_| ()), &evil("now", later)).unwrap();
    let page = page_between(&diff);
    assert!(!page.contains(EVIL) && page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert_eq!(page.matches("<script").count(), 1, "its own");
    assert!(!page.contains("http:") && !page.contains("https:") && !page.contains("@import"));
    let markdown = markdown::text(&of_between(&diff));
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
    let wanted = [
        "ratios-of-runs",
        "ratios-rate",
        "ratios-cpu",
        "both-rates",
        "both-cpu",
    ];
    assert_eq!(ids, wanted);
    assert!(figures.iter().all(|figure| !figure.alternative.is_empty()));
    // The figure has the verdicts of the tables.
    let rows = figures[0].ranked.iter().flat_map(Ranked::rows);
    let verdicts: Vec<&str> = rows.map(|row| row.text.as_str()).collect();
    assert!(
        verdicts.iter().any(|text| text.ends_with("faster")),
        "{verdicts:?}"
    );
    let [b, a] = figures::places("epoll", &["epoll".to_owned()]).map(look);
    assert_eq!((a.light, a.marker), (b.light, b.marker));
}

fn made(change: impl Fn(&mut Run)) -> String {
    let (run, trials) = fixture::record();
    let mut other = run.clone();
    other.started_at = "2027-01-01T00:00:00Z".to_owned();
    other.seed += 1;
    change(&mut other);
    let [a, b] = [(run, trials.clone()), (other, trials)].map(|record| recorded("a", record));
    words::made(&Between::diff(&a, &b).unwrap()).words()
}

#[test]
fn equal_settings_and_programs_make_an_a_a_comparison() {
    let alike = made(|_| {});
    assert!(
        alike.starts_with("A/A: settings, programs and machine"),
        "{alike}"
    );
    let unknown = made(|run| {
        run.throng_program.sha256 = None;
        run.throng_program.commit = None;
    });
    assert!(unknown.starts_with("A/A, as far as recorded"), "{unknown}");
    assert!(
        unknown.contains("No hash is recorded for throng."),
        "{unknown}"
    );
}

#[test]
fn differences_are_named() {
    let kernel = made(|run| run.host.kernel = "Linux 9.9".to_owned());
    assert_eq!(kernel, "Different conditions: Kernel.");
    let server = made(|run| run.servers[0].command.push("--more".to_owned()));
    assert!(server.contains("Start of "), "{server}");
    let program = made(|run| run.throng_program.sha256 = Some("0".repeat(64)));
    assert!(program.contains("throng's program"), "{program}");
}

/// The fixture's run with a few servers, compared with `thread`.
fn with_thread() -> (Run, Vec<Trial>) {
    let (mut run, mut trials) = fixture::record();
    run.servers
        .retain(|server| ["epoll", "thread", "fork"].contains(&server.name.as_str()));
    trials
        .retain(|trial| trial.clients == 100 && run.servers.iter().any(|s| s.name == trial.server));
    run.comparison = Some(Asked {
        reference: "thread".to_owned(),
        ..Asked::default()
    });
    (run, trials)
}

/// The reproduction of a record by a copy of it changed by `change`, both on disk.
fn reproduced(
    (run, trials): (Run, Vec<Trial>),
    change: impl Fn(&mut Run, &mut Vec<Trial>),
) -> Between {
    let place = tempfile::tempdir().unwrap();
    let write = |name: &str, run: &Run, trials: &[Trial]| {
        let directory = place.path().join(name);
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("run.json"), serde_json::to_vec(run).unwrap()).unwrap();
        let lines: Vec<String> = trials
            .iter()
            .map(|trial| serde_json::to_string(trial).unwrap() + "\n")
            .collect();
        std::fs::write(directory.join("trials.jsonl"), lines.concat()).unwrap();
        directory
    };
    let then = write("then", &run, &trials);
    let (mut run, mut trials) = (run, trials);
    change(&mut run, &mut trials);
    let now = write("now", &run, &trials);
    let mut reproduction = Between::reproduction(&then, &now).unwrap();
    reproduction.runs[0].directory = "then".to_owned();
    reproduction.runs[1].directory = "now".to_owned();
    reproduction
}

fn outcome(reproduction: &Between, server: &str, metric: &str) -> Outcome {
    let mut verdicts = reproduction.parts[0].verdicts.iter();
    let found = verdicts.find(|one| {
        let Subject::Pair {
            server: compared,
            metric: by,
            ..
        } = &one.subject
        else {
            return false;
        };
        compared == server && by.name == metric
    });
    found.expect("it was compared").outcome
}

#[test]
fn the_same_again_holds() {
    let reproduction = reproduced(with_thread(), |_, _| ());
    let verdicts = &reproduction.parts[0].verdicts;
    assert!(verdicts.len() > 4, "{verdicts:?}");
    assert!(!reproduction.has_failed(), "{reproduction:?}");
    assert_eq!(reproduction.differences, []);
    assert!(
        verdicts
            .iter()
            .all(|one| one.later.as_ref() == Some(&one.earlier))
    );
    assert_eq!(
        reproduction.headline,
        ["Yes: 12 of 12 verdicts are reproduced."]
    );
}

#[test]
fn each_verdict_has_an_outcome_with_the_differences() {
    let file = |digit: &str| {
        Some(ForeignProgram {
            file: UsedFile {
                word: "thread".to_owned(),
                path: "/bin/thread".to_owned(),
                sha256: Some(digit.repeat(64)),
            },
            ..ForeignProgram::default()
        })
    };
    let foreign = |run: &mut Run, program| {
        run.servers[1].foreign = Some(Foreign {
            program,
            ..Foreign::default()
        });
    };
    let mut record = with_thread();
    foreign(&mut record.0, file("a"));
    let reproduction = reproduced(record, |run, trials| {
        foreign(run, file("b"));
        run.host.kernel = "Linux 6.19.0".to_owned();
        run.throng_program.commit = Some("fedcba0987654321".to_owned());
        run.host.cpu_mhz = Some(1.0);
        faster(trials, "epoll", 0.2);
        faster(trials, "fork", 0.5);
    });
    assert_eq!(
        outcome(&reproduction, "epoll", "requests_per_s"),
        Outcome::NotHeld
    );
    assert_eq!(
        outcome(&reproduction, "fork", "requests_per_s"),
        Outcome::Held
    );
    assert!(reproduction.has_failed());
    let document = of_between(&reproduction);
    insta::assert_snapshot!(markdown::text(&document));
    insta::assert_snapshot!("terminal", terminal::text(&document, 100, false));
}

#[test]
fn a_run_that_compares_nothing_is_compared_with_its_best() {
    let mut record = with_thread();
    record.0.comparison = None;
    let reproduction = reproduced(record, |_, trials| faster(trials, "thread", 10.0));
    let verdicts = &reproduction.parts[0].verdicts;
    assert!(
        verdicts.iter().all(
            |one| matches!(&one.subject, Subject::Pair { reference, .. } if reference == "epoll")
        ),
        "{verdicts:?}"
    );
    assert_eq!(
        outcome(&reproduction, "thread", "requests_per_s"),
        Outcome::NotHeld
    );
    assert!(
        reproduction.sentences[0]
            .starts_with("throughput of thread compared with epoll, 100 clients: was "),
        "{:?}",
        reproduction.sentences
    );
}

#[test]
fn unusable_runs_are_not_comparable() {
    let reproduction = reproduced(with_thread(), |_, trials| {
        trials.retain(|trial| trial.server != "fork");
    });
    assert_eq!(
        outcome(&reproduction, "fork", "requests_per_s"),
        Outcome::NotComparable
    );
    assert!(!reproduction.has_failed());
}

#[test]
fn a_limit_holds_unless_what_held_broke() {
    let record = fixture::searched();
    assert_eq!(record.0.limit.as_ref().unwrap().find, Find::Clients);
    let same = reproduced(record.clone(), |_, _| ());
    assert!(
        same.parts[0]
            .limits
            .iter()
            .any(|limit| limit.outcome == Outcome::Held)
    );
    assert!(!same.has_failed());
    let lower = reproduced(record, |run, _| {
        for found in &mut run.limit.as_mut().unwrap().found {
            for tried in [&mut found.passed, &mut found.failed].into_iter().flatten() {
                tried.value = tried.value / 4 + 1;
            }
        }
    });
    assert!(lower.has_failed());
    assert!(
        lower.sentences[0].starts_with("limit of "),
        "{:?}",
        lower.sentences
    );
}
