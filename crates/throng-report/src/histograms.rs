//! Percentiles over several trials, from merged histograms.

use crate::fixture::latency;
use throng_record::load_stats::Times;
use throng_record::metrics::Values;
use throng_record::{Load, Trial};

fn trials(times: &[&[u64]]) -> Vec<Trial> {
    let of = |(round, times): (u32, &&[u64])| Trial {
        round,
        load: Some(Load {
            service_time: Some(latency(times)),
            ..Load::default()
        }),
        ..Trial::default()
    };
    (0..).zip(times).map(of).collect()
}

#[test]
fn merged_percentiles_come_from_all_values_and_not_from_an_average() {
    let trials = trials(&[&[10_000; 990], &[5_000_000; 10]]);
    let values = Values::of(&trials).unwrap();
    let near = |name: &str, us: f64| {
        let value = values.value(name).unwrap();
        assert!((value / us - 1.0).abs() < 0.001, "{name}: {value}");
    };
    near("latency_p50_us", 10.0);
    // An average of the two p99 values would be 2505 µs.
    near("latency_p99_us", 10.0);
    near("latency_max_us", 5000.0);
    near("latency_mean_us", 59.9);
    assert_eq!(
        values.value("latency_p999_us"),
        None,
        "it takes 10,000 values"
    );
    let p99 = values.quantity("latency_p99_us").unwrap();
    assert!(p99.low < Some(10.1) && p99.high > Some(4990.0));
}

#[test]
fn they_are_those_of_the_merged_histogram() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut times = |count: usize| -> Vec<u64> {
        (0..count)
            .map(|_| (random.u32(11..30), random.f64()))
            .map(|(power, share)| (share * f64::from(1_u32 << power)) as u64 + 1)
            .collect()
    };
    let (one, other, third) = (times(400), times(3000), times(7000));
    let trials = trials(&[&one, &other, &third]);
    let latencies = trials
        .iter()
        .filter_map(|trial| trial.load.as_ref()?.service_time.as_ref());
    let merged = Times::merged(latencies).unwrap().unwrap();
    let values = Values::of(&trials).unwrap();
    for (name, quantile) in [
        ("latency_p50_us", 0.5),
        ("latency_p90_us", 0.9),
        ("latency_p99_us", 0.99),
        ("latency_p999_us", 0.999),
    ] {
        let expected = merged.value_at_quantile(quantile) as f64 / 1000.0;
        let value = values.value(name).unwrap();
        assert!(
            (value - expected).abs() < 1e-9,
            "{name}: {value}, {expected}"
        );
    }
}

#[test]
fn a_damaged_histogram_is_an_error() {
    let mut trials = trials(&[&[1000; 5]]);
    let load = trials[0].load.as_mut().unwrap();
    load.service_time.as_mut().unwrap().histogram = "AAAA".to_owned();
    assert!(Values::of(&trials).is_err());
}
