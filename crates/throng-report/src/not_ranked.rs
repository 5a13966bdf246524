//! Tests over all media: values that must not be ranked are not ranked, and have a reason.

use crate::comparison::{PairMetric, Pairing, Source, others, pair};
use crate::document::terminal;
use crate::exporters::with_reasons;
use crate::summary::Summary;
use crate::{Logs, Report, fixture, sections};
use throng_record::metrics::{Better, METRICS};
use throng_record::{Comparison, OpenLoop, Run, Trial};
use throng_stats::Verdict;

/// The fixture with 100 clients, each load changed by `change`.
fn record(change: impl Fn(&mut throng_record::Load)) -> (Run, Vec<Trial>) {
    let (run, mut trials) = fixture::record();
    trials.retain(|trial| trial.clients == 100);
    trials
        .iter_mut()
        .filter_map(|trial| trial.load.as_mut())
        .for_each(change);
    (run, trials)
}

/// The report in each export format, and in a terminal.
fn in_all_forms(report: &Report<'_>) -> Vec<(&'static str, String)> {
    let text = terminal::text(&sections::of_run(report), 300, false);
    let forms = with_reasons().filter(|form| form.info.name != "openmetrics");
    let rendered = forms.map(|form| {
        let mut text = Vec::new();
        (form.render)(report, &mut text).unwrap();
        (form.info.name, String::from_utf8(text).unwrap())
    });
    rendered.chain([("terminal", text)]).collect()
}

/// Turns the load into an open loop at a rate that every server keeps.
fn kept(load: &mut throng_record::Load) {
    load.window.replies_per_s = Some(5000.0);
    load.open_loop = Some(OpenLoop {
        due: load.window.replies,
        ..OpenLoop::default()
    });
}

#[test]
fn nothing_that_follows_from_a_rate_is_judged_where_the_load_sets_it() {
    let measured = |change: fn(&mut throng_record::Load)| -> Vec<PairMetric> {
        let (run, trials) = record(change);
        let summary = Summary::of(&run, &trials).unwrap();
        let source = Source {
            run: &run,
            summary: &summary,
        };
        let side = |name| source.side(name, 100, name).unwrap();
        let (one, other) = (side("epoll"), side("thread"));
        let mut all = pair(&one, &other, Pairing::Interleaved).measures;
        all.extend(others(&one, &other, Pairing::Interleaved));
        all
    };
    let of = |all: &[PairMetric], name: &str| {
        let mut named = all.iter().filter(|one| one.name == name);
        named.next().map(|one| one.verdict)
    };
    let (closed, paced) = (measured(|_| ()), measured(kept));
    let mut judged = 0;
    for metric in METRICS
        .iter()
        .filter(|metric| metric.better != Better::Neutral)
    {
        let (before, now) = (of(&closed, metric.name), of(&paced, metric.name));
        let withheld = Some(Verdict::NotComparable);
        if metric.follows_rate {
            assert!(now.is_none() || now == withheld, "{}", metric.name);
            judged += u32::from(before.is_some_and(|before| Some(before) != withheld));
        } else {
            assert_eq!(before, now, "{}", metric.name);
        }
    }
    assert!(
        judged >= 3,
        "some are judged where the server sets the pace"
    );
}

#[test]
fn fairness_is_not_ranked_where_the_load_sets_the_pace() {
    let said = |change: fn(&mut throng_record::Load)| {
        let (run, trials) = record(|load| {
            change(load);
            if let Some(fairness) = &mut load.fairness {
                fairness.starved = 3;
            }
        });
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        report.answer.sentences().collect::<Vec<_>>().join("\n")
    };
    let words = ["fair", "less than a tenth of the mean"];
    assert!(words.iter().all(|word| said(|_| ()).contains(word)));
    let paced = said(kept);
    assert!(!words.iter().any(|word| paced.contains(word)), "{paced}");
}

#[test]
fn too_few_replies_are_the_reason_in_every_form() {
    let few = |load: &mut throng_record::Load| {
        if let Some(fairness) = &mut load.fairness {
            fairness.mean = 7.0;
        }
    };
    let (mut run, trials) = record(few);
    for compared in [false, true] {
        run.comparison = compared.then(|| Comparison {
            reference: "thread".to_owned(),
            ..Comparison::default()
        });
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        for (form, text) in in_all_forms(&report) {
            let words = text.contains("too few replies") || text.contains("too-few-replies");
            assert!(words, "{form}, compared {compared}: {text}");
        }
        let sentences: Vec<&str> = report.answer.sentences().collect();
        assert!(!sentences.join("\n").contains("fairest"), "{sentences:?}");
    }
    let row = &Summary::of(&run, &trials).unwrap().rows[0];
    let json = serde_json::to_value(row).unwrap();
    assert_eq!(json["absent"]["fairness_jain"], "too-few-replies");
}
