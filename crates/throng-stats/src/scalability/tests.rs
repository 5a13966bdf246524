//! Published fits, synthetic data from the law, noise, and data that no curve fits.

use proptest::prelude::*;

use super::*;

const CLIENTS: [u32; 7] = [1, 5, 20, 100, 300, 600, 900];

fn single(points: &[(u32, f64)]) -> Vec<Group> {
    points
        .iter()
        .map(|(clients, value)| Group {
            clients: *clients,
            trials: vec![(0, *value)],
        })
        .collect()
}

fn law(one: f64, contention: f64, coherency: f64, n: f64) -> f64 {
    one * n / (1.0 + contention * (n - 1.0) + coherency * n * (n - 1.0))
}

/// Trials with uniform noise of ±`share`.
fn noisy(value: impl Fn(f64) -> f64, rounds: u32, share: f64, seed: u64) -> Vec<Group> {
    let mut random = fastrand::Rng::with_seed(seed);
    CLIENTS
        .iter()
        .map(|clients| Group {
            clients: *clients,
            trials: (0..rounds)
                .map(|round| {
                    let noise = 1.0 + share * (2.0 * random.f64() - 1.0);
                    (round, value(f64::from(*clients)) * noise)
                })
                .collect(),
        })
        .collect()
}

fn near(found: f64, wanted: f64, share: f64) -> bool {
    (found - wanted).abs() <= share * wanted.abs().max(1e-12)
}

fn holds(estimate: Estimate, value: f64) -> bool {
    estimate.low.is_some_and(|low| low <= value) && estimate.high.is_some_and(|high| value <= high)
}

#[test]
fn the_sparccenter_2000_comes_out_as_published() {
    // SPEC SDM 91 on a Sun SPARCcenter 2000, from Gunther's book; coefficients, peak and residuals
    // are those in the README and the test results of the R package usl, version 3.
    let points = [
        (1, 64.9),
        (18, 995.9),
        (36, 1652.4),
        (72, 1853.2),
        (108, 1828.9),
        (144, 1775.0),
        (216, 1702.2),
    ];
    let law = fit(&single(&points), Weights::Equal, 1).unwrap();
    assert!(near(law.contention.value, 0.027_728_5, 1e-5), "{law:?}");
    assert!(near(law.coherency.value, 0.000_104_4, 1e-3), "{law:?}");
    assert!(near(law.rate_of_one.value, 89.995_233, 1e-6), "{law:?}");
    assert!(near(law.peak_clients.value, 96.519_56, 1e-5), "{law:?}");
    let published = [-25.10, -81.66, 111.09, 3.05, -49.99, -46.60, 56.00];
    for ((clients, rate), residual) in points.iter().zip(published) {
        let found = rate - law.rate(f64::from(*clients)).unwrap();
        assert!((found - residual).abs() < 0.006, "{clients}: {found}");
    }
}

#[test]
fn a_small_published_example_is_reproduced() {
    // From the tests of the R package usl: α = β = 0.02, γ = 1.
    let points = [
        (1, 1.0),
        (2, 1.8868),
        (4, 3.0769),
        (6, 3.5294),
        (8, 3.5398),
        (10, 3.3557),
    ];
    for weights in [Weights::Equal, Weights::Relative] {
        let law = fit(&single(&points), weights, 1).unwrap();
        assert!(near(law.contention.value, 0.02, 1e-3), "{law:?}");
        assert!(near(law.coherency.value, 0.02, 1e-3), "{law:?}");
        assert!(near(law.rate_of_one.value, 1.0, 1e-3), "{law:?}");
        assert!(near(law.peak_clients.value, 7.0, 1e-3), "{law:?}");
        assert!(law.r_squared.unwrap() > 0.999_999);
    }
}

#[test]
fn parameters_stay_within_bounds_if_the_best_curve_is_beyond() {
    // A ray tracer on an SGI Origin 2000, also from the book, which shows no sign of coherency. So the best curve has
    // κ = 0, and no other is better.
    let points = [
        (1, 20.0),
        (4, 78.0),
        (8, 130.0),
        (12, 170.0),
        (16, 190.0),
        (20, 200.0),
        (24, 210.0),
        (28, 230.0),
        (32, 260.0),
        (48, 280.0),
        (64, 310.0),
    ];
    let found = fit(&single(&points), Weights::Equal, 1).unwrap();
    assert!(found.coherency.value.abs() < 1e-12 && found.peak_clients.value.is_infinite());
    let squares = |one: f64, contention: f64, coherency: f64| -> f64 {
        let residual = |n: u32, x: f64| x - law(one, contention, coherency, f64::from(n));
        points.iter().map(|(n, x)| residual(*n, *x).powi(2)).sum()
    };
    let (one, contention) = (found.rate_of_one.value, found.contention.value);
    let least = squares(one, contention, 0.0);
    for (by_one, by_contention, coherency) in [
        (1.001, 1.0, 0.0),
        (0.999, 1.0, 0.0),
        (1.0, 1.001, 0.0),
        (1.0, 0.999, 0.0),
        (1.001, 1.003, 0.0),
        (1.0, 1.0, 1e-7),
        (0.999, 0.997, 1e-7),
    ] {
        assert!(squares(one * by_one, contention * by_contention, coherency) > least);
    }
}

#[test]
fn curves_end_at_twice_the_largest_number_of_clients() {
    let points = CLIENTS.map(|n| (n, law(1000.0, 0.1, 1e-5, f64::from(n))));
    let found = fit(&single(&points), Weights::Relative, 1).unwrap();
    assert!(near(
        found.rate(1800.0).unwrap(),
        law(1000.0, 0.1, 1e-5, 1800.0),
        1e-6
    ));
    let refused = found.rate(1801.0).unwrap_err();
    assert_eq!((refused.asked, refused.most), (1801.0, 900));
    assert_eq!(
        refused.to_string(),
        "1801 clients are more than 2 times the 900 that were measured"
    );
    // Its peak would be at 3000 clients.
    let points = CLIENTS.map(|n| (n, law(1000.0, 0.1, 1e-7, f64::from(n))));
    let found = fit(&single(&points), Weights::Relative, 1).unwrap();
    assert!(found.peak_clients.value.is_infinite());
}

#[test]
fn too_few_numbers_of_clients_are_refused() {
    let points = CLIENTS.map(|n| (n, f64::from(n)));
    let refused = fit(&single(&points[..5]), Weights::Relative, 1).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "5 usable of the 6 different numbers of clients that it needs"
    );
    // The same number twice counts once.
    let mut twice = single(&points[..5]);
    twice.push(twice[0].clone());
    assert_eq!(fit(&twice, Weights::Relative, 1).unwrap_err(), refused);
    for nothing in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut groups = single(&points);
        groups[3].trials[0].1 = nothing;
        let refused = fit(&groups, Weights::Relative, 1).unwrap_err();
        assert_eq!(refused, FitError::NotPositive { clients: 100 });
    }
}

#[test]
fn equal_rates_are_full_contention_without_a_peak() {
    let law = fit(&single(&CLIENTS.map(|n| (n, 5000.0))), Weights::Relative, 1).unwrap();
    assert!(near(law.contention.value, 1.0, 1e-6), "{law:?}");
    assert!(
        law.coherency.value < 1e-9 && law.typical_residual < 1e-6,
        "{law:?}"
    );
    assert!(
        law.peak_clients.value.is_infinite() && law.r_squared.is_none(),
        "{law:?}"
    );
}

#[test]
fn falling_rates_have_their_peak_at_one_client() {
    let falling = CLIENTS.map(|n| (n, 9000.0 / (1.0 + 0.01 * f64::from(n))));
    let law = fit(&single(&falling), Weights::Relative, 1).unwrap();
    assert!(
        near(law.peak_clients.value, 1.0, 1e-9) && law.typical_residual < 0.02,
        "{law:?}"
    );
    // In proportion to 1 / n² from ten clients on: the rate of one client is unbounded.
    let steep = [10, 20, 40, 80, 160, 320].map(|n| (n, 1e6 / f64::from(n * n)));
    let refused = fit(&single(&steep), Weights::Relative, 1).unwrap_err();
    assert_eq!(refused, FitError::NoBeginning { fewest: 10 });
}

#[test]
fn intervals_include_the_true_value_and_narrow_with_the_noise() {
    let truth = |n: f64| law(20_000.0, 0.2, 2e-4, n);
    let width = |noise: f64| {
        let law = fit(&noisy(truth, 9, noise, 3), Weights::Relative, 5).unwrap();
        assert!(holds(law.contention, 0.2), "{noise} {law:?}");
        assert!(holds(law.coherency, 2e-4), "{noise} {law:?}");
        assert!(holds(law.rate_of_one, 20_000.0), "{noise} {law:?}");
        assert!(
            holds(law.peak_clients, 0.8_f64.sqrt() / 2e-4_f64.sqrt()),
            "{noise} {law:?}"
        );
        assert!(law.r_squared.unwrap() > 0.9);
        law.contention.high.unwrap() - law.contention.low.unwrap()
    };
    assert!(width(0.1) > 3.0 * width(0.01));
}

#[test]
fn few_trials_span_the_fits_of_their_rounds_and_one_has_no_interval() {
    let truth = |n: f64| law(20_000.0, 0.2, 2e-4, n);
    let groups = noisy(truth, 3, 0.05, 1);
    let all = fit(&groups, Weights::Relative, 1).unwrap();
    for round in 0..3 {
        let one: Vec<Group> = groups
            .iter()
            .map(|group| Group {
                clients: group.clients,
                trials: vec![group.trials[round]],
            })
            .collect();
        let law = fit(&one, Weights::Relative, 1).unwrap();
        assert_eq!((law.contention.low, law.contention.high), (None, None));
        let (low, high) = (all.contention.low.unwrap(), all.contention.high.unwrap());
        let slack = 1e-6 * high;
        assert!((low - slack..=high + slack).contains(&law.contention.value));
    }
    // If a round is missing, trials are drawn individually by the seed.
    let mut ragged = groups;
    ragged[2].trials.remove(1);
    let (one, same) = (
        fit(&ragged, Weights::Relative, 7),
        fit(&ragged, Weights::Relative, 7),
    );
    assert!(one.as_ref().unwrap().contention.low.is_some());
    assert_eq!(one, same);
}

#[test]
fn a_slow_round_at_all_numbers_of_clients_does_not_bend_the_curve() {
    let slow = [1.0, 0.7, 1.1, 0.9, 1.05, 0.8];
    let groups: Vec<Group> = CLIENTS
        .iter()
        .map(|n| Group {
            clients: *n,
            trials: (0..)
                .zip(slow)
                .map(|(round, pace)| (round, pace * law(900.0, 0.1, 1e-4, f64::from(*n))))
                .collect(),
        })
        .collect();
    let law = fit(&groups, Weights::Relative, 1).unwrap();
    assert!(
        near(
            law.contention.high.unwrap(),
            law.contention.low.unwrap(),
            1e-6
        ),
        "{law:?}"
    );
    assert!(law.rate_of_one.high.unwrap() > 1.1 * law.rate_of_one.low.unwrap());
}

#[test]
fn growth_of_flat_linear_and_square_root_costs() {
    for (power, unit) in [(0.0, 6.0), (1.0, 0.2), (0.5, 3.0), (-0.25, 40.0)] {
        let groups = single(&CLIENTS.map(|n| (n, unit * f64::from(n).powf(power))));
        let growth = growth(&groups, 1).unwrap();
        assert!((growth.exponent.value - power).abs() < 1e-12, "{growth:?}");
        assert!(growth.typical_residual < 1e-12 && growth.exponent.low.is_none());
    }
}

#[test]
fn an_outlier_does_not_move_the_exponent_and_is_reported() {
    let mut points = CLIENTS.map(|n| (n, f64::from(n)));
    points[0].1 = 30.0;
    let growth = growth(&single(&points), 1).unwrap();
    assert!((growth.exponent.value - 1.0).abs() < 0.1, "{growth:?}");
    assert_eq!(growth.worst().unwrap().clients, 1);
}

#[test]
fn growth_needs_three_groups_that_span_a_factor_of_ten() {
    let of = |clients: &[u32]| {
        let points: Vec<(u32, f64)> = clients.iter().map(|n| (*n, 1.0)).collect();
        growth(&single(&points), 1)
    };
    assert_eq!(
        of(&[1, 100]).unwrap_err(),
        FitError::TooFew { have: 2, need: 3 }
    );
    let narrow = of(&[11, 50, 109]).unwrap_err();
    assert_eq!(
        narrow,
        FitError::TooNarrow {
            fewest: 11,
            most: 109
        }
    );
    assert!(of(&[11, 50, 110]).is_ok());
}

#[test]
fn the_interval_of_an_exponent_of_noise_includes_zero() {
    let growth = growth(&noisy(|_| 6.5, 7, 0.04, 11), 3).unwrap();
    assert!(holds(growth.exponent, 0.0), "{growth:?}");
    assert!(
        growth.exponent.high.unwrap() - growth.exponent.low.unwrap() < 0.05,
        "{growth:?}"
    );
}

proptest! {
    #[test]
    fn parameters_come_back(
        one in 1.0..1e6_f64,
        contention in prop_oneof![Just(0.0), 1e-4..1.5_f64],
        coherency in prop_oneof![Just(0.0), 1e-7..1e-2_f64],
    ) {
        let points = CLIENTS.map(|n| (n, law(one, contention, coherency, f64::from(n))));
        for weights in [Weights::Relative, Weights::Equal] {
            let found = fit(&single(&points), weights, 1).unwrap();
            prop_assert!(near(found.rate_of_one.value, one, 1e-5), "{found:?}");
            prop_assert!((found.contention.value - contention).abs() < 1e-5, "{found:?}");
            prop_assert!((found.coherency.value - coherency).abs() < 1e-6, "{found:?}");
            prop_assert!(found.typical_residual < 1e-5, "{found:?}");
        }
    }

    #[test]
    fn another_unit_changes_only_the_rate_of_one_client(
        rates in prop::collection::vec(100.0..200.0_f64, CLIENTS.len()),
        unit in 1e-6..1e6_f64,
    ) {
        let points: Vec<(u32, f64)> = CLIENTS.into_iter().zip(rates).collect();
        let scaled: Vec<(u32, f64)> = points.iter().map(|(n, x)| (*n, x * unit)).collect();
        let fits = |points: &[(u32, f64)]| fit(&single(points), Weights::Relative, 1).unwrap();
        let (plain, scaled) = (fits(&points), fits(&scaled));
        prop_assert!(near(scaled.rate_of_one.value, plain.rate_of_one.value * unit, 1e-6));
        prop_assert!(near(scaled.contention.value, plain.contention.value, 1e-6));
        prop_assert!(near(scaled.typical_residual, plain.typical_residual, 1e-6));
    }

    #[test]
    fn parameters_are_never_negative_and_do_not_depend_on_order(
        rates in prop::collection::vec(1e-3..1e9_f64, CLIENTS.len()),
    ) {
        let mut groups = single(&CLIENTS.into_iter().zip(rates).collect::<Vec<_>>());
        let found = fit(&groups, Weights::Relative, 1).unwrap();
        prop_assert!(found.rate_of_one.value > 0.0 && found.rate_of_one.value.is_finite());
        prop_assert!(found.contention.value >= 0.0 && found.coherency.value >= 0.0);
        prop_assert!(found.peak_clients.value >= 1.0);
        prop_assert!(found.r_squared.is_none_or(|r| (0.0..=1.0).contains(&r)));
        groups.reverse();
        prop_assert_eq!(fit(&groups, Weights::Relative, 1).unwrap(), found);
    }
}
