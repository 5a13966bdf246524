//! Tests: a value with an interval is the estimate of that interval, in every output, and captions name it.

use proptest::prelude::*;
use serde_json::Value as Json;
use throng_record::load_stats::Times;
use throng_record::metrics::{METRICS, Values};
use throng_record::{Comparison, Load, Run, Slice, Trial};
use throng_stats::median;

use crate::figures::{Point, Ranked};
use crate::fixture::{self, latency};
use crate::glance::Occasion;
use crate::{Logs, Report, exporters, sections};

/// A record of three servers with these trials, or with one trial each in as many slices. Values vary by up to these
/// factors; the extreme ones are far away.
fn record(factors: &[f64], in_slices: bool, compares: bool) -> (Run, Vec<Trial>) {
    let (mut run, all) = fixture::record();
    run.servers
        .retain(|server| ["epoll", "poll", "thread"].contains(&server.name.as_str()));
    let mut trials = Vec::new();
    for server in &run.servers {
        let mut of_server = all
            .iter()
            .filter(|trial| trial.server == server.name && trial.purpose.is_timed());
        let Some(first) = of_server.find(|trial| trial.clients == 100) else {
            continue;
        };
        let rounds = if in_slices { &factors[..1] } else { factors };
        trials.extend((0..).zip(rounds).map(|(round, factor)| {
            let mut trial = Trial {
                round,
                ..first.clone()
            };
            varied(&mut trial, *factor);
            trial
        }));
        if let Some(trial) = trials.last_mut().filter(|_| in_slices) {
            trial.slices = (0..).zip(factors).map(slice).collect();
        }
    }
    run.settings.clients = vec![100];
    run.comparison = compares.then(|| Comparison {
        reference: "poll".to_owned(),
        ..Comparison::default()
    });
    (run, trials)
}

fn varied(trial: &mut Trial, factor: f64) {
    if let Some(load) = &mut trial.load {
        if let Some(rate) = &mut load.window.replies_per_s {
            *rate /= factor;
        }
        let times: Vec<u64> = (1..=150_u32)
            .map(|step| (f64::from(step * step) * 1e3 * factor) as u64)
            .collect();
        load.service_time = Some(latency(&times));
    }
    for side in [&mut trial.server_side, &mut trial.client_side] {
        for value in side.iter_mut().flat_map(|side| side.metrics.values_mut()) {
            *value *= factor;
        }
    }
}

fn slice((round, factor): (u32, &f64)) -> Slice {
    Slice {
        round,
        took_ns: (2e7 * factor) as u64,
        replies: 500,
        server_cpu_ns: Some((1e7 * factor) as u64),
        client_cpu_ns: (5e6 * factor) as u64,
        mean_us: 20.0 * factor,
        p50_us: 10.0 * factor,
        p90_us: 30.0 * factor,
        p99_us: 90.0 * factor.powi(2),
        ..Slice::default()
    }
}

fn holds(value: f64, low: Option<f64>, high: Option<f64>) -> bool {
    low.is_none_or(|low| low <= value) && high.is_none_or(|high| value <= high)
}

/// Every object of a JSON file that has a value with ends, as its place and whether the ends hold it.
fn in_json(json: &Json, place: &str, found: &mut Vec<(String, bool)>) {
    match json {
        Json::Array(all) => all.iter().for_each(|one| in_json(one, place, found)),
        Json::Object(all) => {
            let of = |name| all.get(name).and_then(Json::as_f64);
            if let Some(value) = of("value").filter(|_| all.contains_key("low")) {
                found.push((place.to_owned(), holds(value, of("low"), of("high"))));
            }
            for (name, one) in all {
                in_json(one, &format!("{place}/{name}"), found);
            }
        }
        _ => {}
    }
}

/// Every measured value of the report that its interval does not hold, or that no caption names.
fn faults(report: &Report<'_>, in_slices: bool) -> Vec<String> {
    let mut faults = Vec::new();
    for (row, metric) in report
        .summary
        .rows
        .iter()
        .flat_map(|row| METRICS.iter().map(move |metric| (row, metric)))
    {
        let Some(value) = row.metrics.get(metric.name) else {
            continue;
        };
        let (quantity, sample) = (value.quantity, &value.sample);
        let own: Vec<f64> = sample.by_round().iter().map(|(_, value)| *value).collect();
        let is_median = Some(quantity.value) == median(&own);
        let is_right = if metric.is_exact() {
            quantity.low.is_none() && quantity.high.is_none()
        } else {
            let of_slices = in_slices && metric.is_of_slices();
            is_median
                && holds(quantity.value, quantity.low, quantity.high)
                && quantity.is_of_slices == of_slices
        };
        if !is_right {
            faults.push(format!("{} of {}: {quantity:?}", metric.name, row.server));
        }
    }
    let (named, other) = if in_slices {
        ("Median over slices", "over trials")
    } else {
        ("Median over trials", "over slices")
    };
    for figure in &report.figures {
        let of_series = figure.series.iter().flat_map(|series| &series.points);
        let ranked = figure.ranked.iter().flat_map(Ranked::rows);
        let points: Vec<&Point> = of_series
            .chain(ranked.filter_map(|row| row.point.as_ref()))
            .collect();
        let held = points
            .iter()
            .all(|point| holds(point.y, point.low, point.high));
        let is_named = !figure.estimator().contains(other)
            && figure.caption.contains(&figure.estimator())
            && (figure.estimator().is_empty() || figure.caption.contains(named));
        if !held || !is_named {
            faults.push(format!("{}: {} {points:?}", figure.id, figure.caption));
        }
    }
    let page = crate::document::markdown::text(&sections::of_run(report));
    if !page.contains(named) {
        faults.push(format!("the table of results is not called {named}"));
    }
    for (name, past) in Occasion::of(report, None)
        .courses
        .iter()
        .flat_map(|course| &course.measures)
    {
        if !holds(past.value, past.low, past.high) {
            faults.push(format!("history of {name}: {past:?}"));
        }
    }
    let mut text = Vec::new();
    let json = exporters::EXPORTERS
        .iter()
        .find(|one| one.info.name == "json");
    (json.unwrap().render)(report, &mut text).unwrap();
    let mut found = Vec::new();
    in_json(&serde_json::from_slice(&text).unwrap(), "", &mut found);
    faults.extend(found.into_iter().filter(|(_, held)| !held).map(|one| one.0));
    faults
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn an_estimate_lies_in_its_interval_and_captions_name_it(
        factors in prop::collection::vec(prop_oneof![8 => 0.9..1.1_f64, 1 => 5.0..50.0_f64], 2..14),
        in_slices: bool,
        compares: bool,
    ) {
        let (run, trials) = record(&factors, in_slices, compares);
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        let faults = faults(&report, in_slices);
        prop_assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}

#[test]
fn one_bad_slice_does_not_decide_the_order_by_p99() {
    let mut factors = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01, 0.99, 1.0];
    let (run, trials) = record(&factors, true, false);
    factors[4] = 50.0;
    let (_, mut disturbed) = record(&factors, true, false);
    // Only the first server is disturbed, and it is a little faster than the others.
    disturbed[1..].clone_from_slice(&trials[1..]);
    for slice in &mut disturbed[0].slices {
        slice.p99_us *= 0.9;
    }
    let report = Report::of(&run, &disturbed, &Logs::default()).unwrap();
    let p99 = |server: &str| {
        let mut rows = report.summary.rows.iter();
        let row = rows.find(|row| row.server == server)?;
        row.value("latency_p99_us")
    };
    let names = ["epoll", "poll", "thread"];
    let first = disturbed[0].server.as_str();
    let mut others = names.iter().filter(|name| **name != first);
    assert!(others.all(|other| p99(first) < p99(other)));
}

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
fn a_percentile_of_all_requests_has_its_own_name_and_no_interval() {
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
    for (name, quantile) in [("latency_p99_all_us", 0.99), ("latency_p999_all_us", 0.999)] {
        let quantity = values.quantity(name).unwrap();
        let expected = merged.value_at_quantile(quantile) as f64 / 1000.0;
        assert!((quantity.value - expected).abs() < 1e-9, "{name}");
        assert_eq!((quantity.low, quantity.high), (None, None), "{name}");
    }
    assert_eq!(
        values.value("latency_p999_us"),
        None,
        "it takes 10,000 values in a trial"
    );
    let few = Values::of(&trials[..1]).unwrap();
    assert!(few.value("latency_p99_all_us").is_some());
    assert_eq!(few.value("latency_p999_all_us"), None);
}

#[test]
fn a_slow_trial_moves_the_percentile_of_all_requests_only() {
    let quick = [10_000; 200];
    let trials = trials(&[&quick, &[5_000_000; 200], &quick]);
    let values = Values::of(&trials).unwrap();
    let near = |name: &str, us: f64| {
        let value = values.value(name).unwrap();
        assert!((value / us - 1.0).abs() < 0.001, "{name}: {value}");
    };
    near("latency_p99_us", 10.0);
    near("latency_p99_all_us", 5000.0);
    near("latency_max_us", 5000.0);
}

#[test]
fn a_damaged_histogram_is_an_error() {
    let mut trials = trials(&[&[1000; 5]]);
    let load = trials[0].load.as_mut().unwrap();
    load.service_time.as_mut().unwrap().histogram = "AAAA".to_owned();
    assert!(Values::of(&trials).is_err());
}
