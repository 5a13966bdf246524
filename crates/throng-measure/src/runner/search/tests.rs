use super::*;

const BOUNDS: Bounds = Bounds {
    from: 16,
    max: 20_000,
    factor: 2.0,
    within: 0.02,
    tries: 100,
    confirm: 3,
    exact_hints: true,
};

/// Searches a server that decides by `holds`. Returns the values tried, in order, and the result.
fn searched(bounds: Bounds, mut holds: impl FnMut(u64) -> Verdict) -> (Vec<u64>, SearchState) {
    let mut search = Search::new(bounds);
    let mut tried = Vec::new();
    while let Some(point) = search.next() {
        assert!((1..=bounds.max).contains(&point.value), "{point:?}");
        tried.push(point.value);
        search.add(point, holds(point.value));
    }
    (tried, search.known())
}

fn up_to(limit: u64) -> impl FnMut(u64) -> Verdict {
    move |value| Verdict {
        passed: value <= limit,
        reached: None,
    }
}

/// A failed trial shows the value that was reached.
fn with_limit(limit: u64) -> impl FnMut(u64) -> Verdict {
    move |value| Verdict {
        passed: value <= limit,
        reached: (value > limit).then_some(limit),
    }
}

fn values(known: SearchState) -> (SearchEnding, Option<u64>, Option<u64>) {
    let value = |tried: Option<TriedValue>| tried.map(|tried| tried.value);
    (known.ending, value(known.passed), value(known.failed))
}

#[test]
fn up_by_the_factor_then_by_halves_then_both_ends_again() {
    let (tried, known) = searched(BOUNDS, up_to(100));
    // 16, 32, 64 pass and 128 fails; then bisection until the ends are within 2 %; then both ends again.
    let expected = [
        16, 32, 64, 128, 96, 112, 104, 100, 102, 100, 102, 100, 102, 100, 102,
    ];
    assert_eq!(tried, expected);
    assert_eq!(values(known), (SearchEnding::Found, Some(100), Some(102)));
    assert_eq!(known.passed.unwrap().times, 4);
    assert_eq!(known.failed.unwrap().times, 4);
}

#[test]
fn the_value_reached_by_a_failed_trial_guides_the_search() {
    let (tried, known) = searched(BOUNDS, with_limit(1234));
    let begins = [16, 32, 64, 128, 256, 512, 1024, 2048, 1234, 1235];
    assert_eq!(tried[..begins.len()], begins);
    assert_eq!(tried.len(), begins.len() + 6);
    assert_eq!(values(known), (SearchEnding::Found, Some(1234), Some(1235)));
    // For a rate, an approximate limit is enough.
    let bounds = Bounds {
        exact_hints: false,
        ..BOUNDS
    };
    let (tried, known) = searched(bounds, with_limit(1234));
    assert_eq!(tried[8..10], [1234, 1258]);
    assert_eq!(values(known), (SearchEnding::Found, Some(1234), Some(1258)));
}

#[test]
fn every_limit_is_found_from_everywhere() {
    for limit in (1..40).chain([63, 64, 65, 299, 1000, 19_999]) {
        for from in [1, 16, 50, 20_000] {
            for within in [0.0, 0.02] {
                let bounds = Bounds {
                    from,
                    within,
                    ..BOUNDS
                };
                let (_, known) = searched(bounds, up_to(limit));
                let (ending, passed, failed) = values(known);
                let (passed, failed) = (passed.unwrap(), failed.unwrap());
                let apart = ((passed as f64 * within) as u64).max(1);
                assert_eq!(ending, SearchEnding::Found);
                assert!(passed <= limit && limit < failed && failed - passed <= apart);
                let (tried, known) = searched(bounds, with_limit(limit));
                let ends = (known.passed.unwrap().value, known.failed.unwrap().value);
                assert_eq!(ends, (limit, limit + 1), "{tried:?}");
            }
        }
    }
}

#[test]
fn a_hint_that_is_wrong_costs_a_trial_or_two() {
    for reached in [0, 1, 99, 101, 120, 5000] {
        let (tried, known) = searched(BOUNDS, |value| Verdict {
            passed: value <= 100,
            reached: (value > 100).then_some(reached),
        });
        let (ending, passed, failed) = values(known);
        assert_eq!(ending, SearchEnding::Found);
        assert!(
            (98..=100).contains(&passed.unwrap()),
            "{reached}: {known:?}"
        );
        assert!(
            (101..=102).contains(&failed.unwrap()),
            "{reached}: {known:?}"
        );
        assert!(tried.len() <= 20, "{reached}: {tried:?}");
    }
}

/// Like nginx, which closes idle clients once its connections are used up: bisection takes over after the first wrong
/// hint.
#[test]
fn hints_that_always_fail_are_given_up() {
    let (tried, known) = searched(BOUNDS, |value| Verdict {
        passed: value <= 100,
        reached: (value > 100).then_some(value - 7),
    });
    let expected = [
        16, 32, 64, 128, 121, 92, 106, 99, 102, 100, 100, 102, 100, 102, 100, 102,
    ];
    assert_eq!(tried, expected);
    assert_eq!(values(known), (SearchEnding::Found, Some(100), Some(102)));
}

#[test]
fn a_search_that_never_fails_gives_a_lower_bound() {
    let (tried, known) = searched(BOUNDS, up_to(u64::MAX));
    assert_eq!(values(known), (SearchEnding::AtLeast, Some(20_000), None));
    assert_eq!(tried.last(), Some(&20_000));
    assert_eq!(known.passed.unwrap().times, 4);
}

#[test]
fn a_server_that_fails_with_one_client_is_reported() {
    let (tried, known) = searched(BOUNDS, up_to(0));
    assert_eq!(values(known), (SearchEnding::Nothing, None, Some(1)));
    assert_eq!(tried, [16, 8, 4, 2, 1, 1, 1, 1]);
}

#[test]
fn an_end_that_is_seen_on_the_way_is_kept() {
    let mut search = Search::new(BOUNDS);
    let mut verdict = up_to(u64::MAX);
    while let Some(point) = search.next() {
        search.stop_at(300);
        assert!(point.value <= 300);
        search.add(point, verdict(point.value));
    }
    let known = values(search.known());
    assert_eq!(known, (SearchEnding::AtLeast, Some(300), None));
}

#[test]
fn an_interrupted_search_reports_its_bounds() {
    let bounds = Bounds { tries: 6, ..BOUNDS };
    let (tried, known) = searched(bounds, up_to(100));
    assert_eq!(tried.len(), 6);
    assert_eq!(
        values(known),
        (SearchEnding::OutOfTries, Some(96), Some(112))
    );
    assert_eq!(known.passed.unwrap().times, 1);
    assert_eq!(Search::new(BOUNDS).known().passed, None);
}

#[test]
fn one_odd_trial_is_outvoted() {
    // Any single trial may give the wrong result, and the limit is still found.
    for odd in 0..16 {
        let mut trials = 0;
        let (tried, known) = searched(BOUNDS, |value| {
            trials += 1;
            Verdict {
                passed: (value <= 100) != (trials == odd + 1),
                reached: None,
            }
        });
        let (_, passed, failed) = values(known);
        assert!(
            passed.unwrap() <= 100 && failed.unwrap() > 100,
            "{odd}: {known:?} {tried:?}"
        );
        assert!(
            passed.unwrap() >= 90 && failed.unwrap() <= 112,
            "{odd}: {known:?}"
        );
        assert!(tried.len() < 45, "{odd}: {tried:?}");
    }
}

/// A server whose trials pass at random, with a probability that falls with the value.
fn noisy(limit: f64, breadth: f64, seed: u64) -> impl FnMut(u64) -> Verdict {
    let mut random = fastrand::Rng::with_seed(seed);
    move |value| Verdict {
        passed: random.f64() < 1.0 / (1.0 + ((value as f64 - limit) / breadth).exp()),
        reached: None,
    }
}

#[test]
fn mixed_results_report_both_ends() {
    const SEARCHES: u64 = 200;
    let (mut around, mut apart, mut ended) = (0, 0.0, 0);
    for seed in 0..SEARCHES {
        let (tried, known) = searched(BOUNDS, noisy(500.0, 10.0, seed));
        assert!(tried.len() <= 100);
        let (ending, passed, failed) = values(known);
        ended += u64::from(ending != SearchEnding::OutOfTries);
        let (Some(passed), Some(failed)) = (passed, failed) else {
            continue;
        };
        around += u64::from((400..=515).contains(&passed) && (485..=600).contains(&failed));
        apart += (failed - passed) as f64 / SEARCHES as f64;
    }
    assert!(ended >= SEARCHES * 95 / 100, "{ended} of {SEARCHES} ended");
    assert!(around >= SEARCHES * 90 / 100, "{around} of {SEARCHES}");
    assert!(apart < 80.0, "{apart} on average");
}

#[test]
fn a_search_continues_from_its_trials() {
    let mut server = noisy(500.0, 10.0, 7);
    let mut search = Search::new(BOUNDS);
    let mut trials = Vec::new();
    while let Some(point) = search.next() {
        let verdict = server(point.value);
        search.add(point, verdict);
        trials.push((point, verdict));
    }
    for cut in 0..trials.len() {
        let mut again = Search::new(BOUNDS);
        for (point, verdict) in &trials[..cut] {
            again.add(*point, *verdict);
        }
        assert_eq!(again.next(), Some(trials[cut].0));
    }
}
