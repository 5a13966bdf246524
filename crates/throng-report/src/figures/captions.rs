//! Tests: no caption contradicts its figure.

use super::{FIGURES, Figure, Source, Trace};
use crate::completion::fixture as completion_fixture;
use crate::{Report, fixture};
use throng_record::metrics::Better;
use throng_record::{Comparison, Run, Trial};

/// Maximum length of a caption: two lines at the width of a figure.
const LONGEST: usize = 190;

/// A phrase in captions, and a check that the drawing bears it out.
type Claim = (&'static str, fn(&Figure) -> bool);

fn has(figure: &Figure, trace: Trace) -> bool {
    figure.series.iter().any(|series| series.trace == trace)
}

const CLAIMS: &[Claim] = &[
    ("Higher is better", |figure| figure.better == Better::Higher),
    ("Lower is better", |figure| figure.better == Better::Lower),
    ("dotted", |figure| has(figure, Trace::Dotted)),
    ("vertical line", |figure| has(figure, Trace::Mark)),
    ("A falling line", |figure| {
        let long = |series: &super::Series| series.points.len() > 1;
        figure.kind != super::Kind::Bars && figure.series.iter().any(long)
    }),
    ("A rising line", |figure| {
        let long = |series: &super::Series| series.points.len() > 1;
        figure.kind != super::Kind::Bars && figure.series.iter().any(long)
    }),
    ("are cut", |figure| figure.cut().is_some()),
    ("ties with the best", |figure| {
        let groups = figure.ranked.iter().flat_map(|ranked| &ranked.groups);
        groups.into_iter().any(|group| group.is_tied)
    }),
    ("a line is at 0", |figure| {
        let mut points = figure.series.iter().flat_map(|series| &series.points);
        points.any(|point| point.y <= 0.0)
    }),
    ("over 4 times the mean", |figure| {
        let points = figure.series.iter().flat_map(|series| &series.points);
        points.into_iter().all(|point| point.y <= 4.0)
    }),
    ("95 % interval", |figure| {
        let points = figure.series.iter().flat_map(|series| &series.points);
        let rows = figure.ranked.iter().flat_map(super::Ranked::rows);
        let ranked = rows.filter_map(|row| row.point.as_ref());
        points.chain(ranked).any(|point| point.low.is_some())
    }),
];

/// Claims that captions must make whenever they are true.
const NEVER_UNSAID: [&str; 1] = ["a line is at 0"];

fn check(figure: &Figure) {
    assert!(!figure.alternative.is_empty(), "{}", figure.id);
    let caption = &figure.full_caption();
    let title = &figure.id;
    assert!(
        caption.chars().count() <= LONGEST || figure.id == "search",
        "{title}: {caption}"
    );
    for (words, is_so) in CLAIMS {
        if caption.contains(words) {
            assert!(is_so(figure), "{title} says {words:?} and it is not so");
        } else if NEVER_UNSAID.contains(words) {
            let is_hushed = is_so(figure) && ["fairness", "throughput"].contains(&figure.id);
            assert!(!is_hushed, "{title} does not say {words:?}");
        }
    }
}

fn records() -> Vec<(Run, Vec<Trial>)> {
    let (mut compared, trials) = fixture::record();
    compared.comparison = Some(Comparison {
        reference: "epoll".to_owned(),
        ..Comparison::default()
    });
    let (single, mut alone) = fixture::record();
    alone.retain(|trial| trial.clients == 1000);
    let asleep = [("futex", 1.0)];
    let same = || fixture::profile(10, &[(fixture::own("main"), 300)], &[], &asleep);
    let (run, mut watched) = fixture::watched(same(), same());
    for trial in watched.iter_mut().filter(|trial| trial.profile.is_some()) {
        fixture::hold(trial, 8192.0, 16384.0);
    }
    vec![
        (run, watched),
        fixture::at_load(),
        fixture::growing(),
        fixture::searched(),
        completion_fixture::record(),
        (compared, trials),
        (single, alone),
    ]
}

#[test]
fn a_caption_says_nothing_that_the_drawing_denies() {
    let mut seen = Vec::new();
    for (run, mut trials) in records() {
        trials.extend(fixture::captured(&trials));
        let mut logs = fixture::logs(&run);
        for unserved in [false, true] {
            if unserved {
                for log in &mut logs.clients {
                    log.replies[7] = 0;
                }
            }
            let report = Report::of(&run, &trials, &logs).unwrap();
            report.figures.iter().for_each(check);
            seen.extend(report.figures.iter().map(|figure| figure.id));
        }
    }
    let all = FIGURES.iter().map(|kind| kind.info.name);
    let unseen: Vec<&str> = all.filter(|name| !seen.contains(name)).collect();
    assert!(unseen.is_empty(), "{unseen:?}");
}

#[test]
fn a_bare_source_claims_nothing() {
    let (run, trials) = fixture::record();
    let summary = crate::summary::Summary::of(&run, &trials).unwrap();
    let source = Source::of(&summary);
    let built = FIGURES.iter().filter_map(|kind| kind.build(&source));
    built.for_each(|figure| check(&figure));
}
