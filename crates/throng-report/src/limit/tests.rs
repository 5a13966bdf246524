use super::*;
use crate::document::terminal;
use crate::exporters::with_reasons;
use crate::{Logs, Report, fixture, sections};
use throng_record::findings::cause::UNKNOWN;

fn limits() -> Limits {
    let (run, trials) = fixture::searched();
    Limits::of(&run, &trials).expect("it is a search")
}

/// The first sentence about a server whose search result was changed by `change`.
fn first_sentence(change: impl FnOnce(&mut LimitResult)) -> String {
    let (mut run, trials) = fixture::searched();
    let limit = run.limit.as_mut().expect("it is a search");
    change(&mut limit.found[0]);
    let limits = Limits::of(&run, &trials).expect("it is a search");
    let mut servers = limits.servers.iter();
    let epoll = servers.find(|one| one.server == "epoll");
    epoll.expect("it was searched").sentences[0].clone()
}

#[test]
fn limits_in_words() {
    insta::assert_snapshot!(limits().sentences().join("\n"));
}

#[test]
fn every_end_of_a_search_is_reported() {
    for (ending, says) in [
        (
            SearchEnding::Found,
            "epoll handles 100 clients: its --max-clients is 100.",
        ),
        (SearchEnding::Between, "Results in between vary."),
        (
            SearchEnding::AtLeast,
            "at least 100 clients, where the search ended: --max is",
        ),
        (SearchEnding::Nothing, "fails even with 101 clients"),
        (SearchEnding::OutOfTries, "ran out of tries (--tries)"),
        (SearchEnding::OutOfTime, "ran out of time (--search-time)"),
        (
            SearchEnding::Interrupted,
            "handles at least 100 clients and fails with 101 clients: the search was interrupted",
        ),
        (SearchEnding::Failed, "The search for epoll failed"),
    ] {
        let sentence = first_sentence(|found| found.ending = ending);
        assert!(sentence.contains(says), "{ending:?}: {sentence}");
    }
    let unknown = first_sentence(|found| {
        let cause = found.cause.as_mut().expect("it has one");
        cause.kind = UNKNOWN.kind();
    });
    let says = "epoll handles 100 clients; with 101 clients: 1 of 101";
    assert!(unknown.starts_with(says), "{unknown}");
    let nothing = first_sentence(|found| {
        found.ending = SearchEnding::Interrupted;
        (found.passed, found.failed) = (None, None);
    });
    assert!(nothing.contains("Nothing is known"), "{nothing}");
    let (mut run, trials) = fixture::searched();
    if let Some(limit) = &mut run.limit {
        limit.found.clear();
    }
    let open = Limits::of(&run, &trials).unwrap().sentences().join(" ");
    assert!(
        open.contains("The search for the limit of epoll has not ended"),
        "{open}"
    );
}

#[test]
fn limits_in_a_terminal() {
    let (run, trials) = fixture::searched();
    let report = Report::of(&run, &trials, &Logs::default()).unwrap();
    let document = sections::of_run(&report);
    let text = terminal::text(&document, 100, false);
    assert!(text.lines().all(|line| line.chars().count() <= 100));
    insta::assert_snapshot!(text);
    let narrow = terminal::text(&document, 50, false);
    assert!(
        narrow.lines().all(|line| line.chars().count() <= 50),
        "{narrow}"
    );
}

#[test]
fn limits_in_every_form() {
    let (run, trials) = fixture::searched();
    let report = Report::of(&run, &trials, &Logs::default()).unwrap();
    assert!(report.summary.rows.is_empty(), "a search ranks nobody");
    for exporter in with_reasons() {
        let mut text = Vec::new();
        (exporter.render)(&report, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.contains("-max-clients is 100"),
            "{}",
            exporter.info.name
        );
    }
}
