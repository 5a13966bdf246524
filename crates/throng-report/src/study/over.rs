//! Tests: metrics over all numbers of clients, computed from whole records.

use throng_record::metrics::{BoundedValue, Metric, named};
use throng_record::{LimitResult, SearchEnding, Trial};

use crate::fixture;

fn reach_of_crowds(by_clients: &[(u32, Vec<&Trial>)]) -> BoundedValue {
    let over = named("first_failure").and_then(Metric::over_clients);
    let of_trials = over.and_then(|over| over.of_trials);
    of_trials.expect("it is one value over all numbers of clients")(by_clients)
}

fn reach_of_search(
    name: &str,
    found: &LimitResult,
    trials: &[&Trial],
) -> Result<BoundedValue, String> {
    let over = named(name).and_then(Metric::over_clients);
    let of_search = over.and_then(|over| over.of_search);
    of_search.expect("it is of a search")(found, trials)
}

#[test]
fn the_first_failure_is_the_smallest_crowd_with_one() {
    let (_, mut trials) = fixture::record();
    trials.retain(|trial| trial.server == "epoll" && trial.purpose.is_timed());
    for trial in trials
        .iter_mut()
        .filter(|trial| trial.clients >= 100 && trial.round == 1)
    {
        let load = trial.load.as_mut().unwrap();
        load.errors.insert("connect-timeout".to_owned(), 1);
    }
    let by = |clients| -> Vec<&Trial> {
        trials
            .iter()
            .filter(|trial| trial.clients == clients)
            .collect()
    };
    let first = reach_of_crowds(&[(10, by(10)), (100, by(100)), (1000, by(1000))]);
    assert_eq!(first.value, Some(100.0));
    let none = reach_of_crowds(&[(10, by(10))]);
    assert_eq!(
        (none.value, none.text.as_str()),
        (None, "none up to 10 clients")
    );
}

#[test]
fn a_limit_lies_between_what_held_and_what_broke() {
    let (run, trials) = fixture::searched();
    let found = run.limit.unwrap().found;
    let reach = |server: &str| {
        let of_server = found.iter().find(|found| found.server == server).unwrap();
        reach_of_search("limit", of_server, &trials.iter().collect::<Vec<_>>()).unwrap()
    };
    let known = reach("epoll");
    let of_epoll = found.iter().find(|found| found.server == "epoll").unwrap();
    let (passed, failed) = (of_epoll.passed.unwrap(), of_epoll.failed.unwrap());
    assert_eq!(known.value, Some(passed.value as f64));
    assert!((known.high - (failed.value as f64 - 1.0)).abs() < 1e-9);
    assert!(known.evidence.contains(" failed "), "{}", known.evidence);
    let all: Vec<&Trial> = trials.iter().collect();
    let first = reach_of_search("first_failure", of_epoll, &all).unwrap();
    assert_eq!(first.value, Some(failed.value as f64));
    assert!((first.low - (passed.value as f64 + 1.0)).abs() < 1e-9);
    let more = reach("thread");
    assert_eq!((more.value, more.high), (None, f64::INFINITY));
    assert!(more.text.starts_with("at least "), "{}", more.text);
}

#[test]
fn a_search_that_came_to_no_end_says_nothing() {
    let (run, _) = fixture::searched();
    let mut found = run.limit.unwrap().found.remove(0);
    found.ending = SearchEnding::Interrupted;
    assert!(reach_of_search("limit", &found, &[]).is_err());
    // Out of time, it still has the bounds that it knows.
    found.ending = SearchEnding::OutOfTime;
    let bounded = reach_of_search("limit", &found, &[]).unwrap();
    let ends = [found.passed, found.failed].map(|end| end.unwrap().value as f64);
    assert_eq!(
        [bounded.low, bounded.high + 1.0].map(f64::to_bits),
        ends.map(f64::to_bits)
    );
    let failed = found.failed.take();
    assert!(reach_of_search("limit", &found, &[]).is_err());
    found.failed = failed;
    found.ending = SearchEnding::Found;
    let why = reach_of_search("established_at_limit", &found, &[]).unwrap_err();
    assert!(why.contains("established"), "{why}");
}
