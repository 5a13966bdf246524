//! The values that servers are compared by, in the formats of services that keep the results of benchmarks.
//!
//! - Bencher Metric Format (<https://bencher.dev/docs/reference/bencher-metric-format/>): values with the ends of their intervals.
//! - github-action-benchmark (<https://github.com/benchmark-action/github-action-benchmark>): a file for values of which more is
//!   better, and one for the others, since a file has one direction.

use std::collections::BTreeMap;
use std::io::Write;

use serde::Serialize;

use super::Exporter;
use crate::Report;
use crate::study::StudyReport;
use throng_record::format::counted;
use throng_record::metrics::{Better, Metric, Quantity, compared};
use throng_spec::registry::Info;

pub(super) const BENCHER: Exporter = Exporter {
    info: Info {
        name: "bencher",
        summary: "values with intervals for Bencher (BMF), on request",
    },
    file_name: None,
    render: |report, to| bencher(&values(None, report), to),
    render_study: |report, to| bencher(&of_study(report), to),
};

pub(super) const BIGGER: Exporter = Exporter {
    info: Info {
        name: "benchmark-bigger",
        summary: "values of which more is better for github-action-benchmark (customBiggerIsBetter), on request",
    },
    file_name: None,
    render: |report, to| action(&values(None, report), Better::Higher, to),
    render_study: |report, to| action(&of_study(report), Better::Higher, to),
};

pub(super) const SMALLER: Exporter = Exporter {
    info: Info {
        name: "benchmark-smaller",
        summary: "values of which less is better for github-action-benchmark (customSmallerIsBetter), on request",
    },
    file_name: None,
    render: |report, to| action(&values(None, report), Better::Lower, to),
    render_study: |report, to| action(&of_study(report), Better::Lower, to),
};

/// A value of a server under a load.
struct Value {
    /// "epoll, 50 clients"; in a study, after the name of the part.
    benchmark: String,
    metric: &'static Metric,
    quantity: Quantity,
}

fn values(part: Option<&str>, report: &Report<'_>) -> Vec<Value> {
    let mut values = Vec::new();
    for row in &report.summary.rows {
        let prefix = part.map_or_else(String::new, |part| format!("{part}: "));
        let benchmark = format!("{prefix}{}, {}", row.server, counted(row.clients, "client"));
        values.extend(compared().into_iter().filter_map(|metric| {
            Some(Value {
                benchmark: benchmark.clone(),
                metric,
                quantity: row.quantity(metric.name)?,
            })
        }));
    }
    values
}

fn of_study(report: &StudyReport<'_>) -> Vec<Value> {
    let parts = report.parts.iter().filter_map(|part| {
        let of_part = part.report.as_ref()?;
        Some(values(Some(&part.record.name), of_part))
    });
    parts.flatten().collect()
}

#[derive(Serialize)]
struct BencherValue {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

fn bencher(values: &[Value], to: &mut dyn Write) -> anyhow::Result<()> {
    let mut all: BTreeMap<&str, BTreeMap<&str, BencherValue>> = BTreeMap::new();
    for one in values {
        let value = BencherValue {
            value: one.quantity.value,
            lower_value: one.quantity.low,
            upper_value: one.quantity.high,
        };
        let of_benchmark = all.entry(&one.benchmark).or_default();
        of_benchmark.insert(one.metric.name, value);
    }
    serde_json::to_writer_pretty(&mut *to, &all)?;
    Ok(writeln!(to)?)
}

#[derive(Serialize)]
struct ActionValue {
    name: String,
    unit: &'static str,
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
}

fn action(values: &[Value], better: Better, to: &mut dyn Write) -> anyhow::Result<()> {
    let of_direction = values.iter().filter(|one| one.metric.better == better);
    let all: Vec<ActionValue> = of_direction
        .map(|one| ActionValue {
            name: format!("{}: {}", one.benchmark, one.metric.label),
            unit: one.metric.unit.name(),
            value: one.quantity.value,
            range: one.metric.range(one.quantity),
        })
        .collect();
    serde_json::to_writer_pretty(&mut *to, &all)?;
    Ok(writeln!(to)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Logs, fixture};
    use serde_json::Value as Json;

    fn written(exporter: &Exporter) -> Json {
        let (run, trials) = fixture::record();
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        let mut text = Vec::new();
        (exporter.render)(&report, &mut text).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    #[test]
    fn bencher_has_each_value_with_its_interval() {
        let all = written(&BENCHER);
        let value = &all["epoll, 1,000 clients"]["requests_per_s"];
        let [low, at, high] =
            ["lower_value", "value", "upper_value"].map(|key| value[key].as_f64().unwrap());
        assert!(low <= at && at <= high && low > 0.0, "{value}");
    }

    #[test]
    fn each_direction_has_a_file_of_its_own() {
        let names = |exporter| {
            let all = written(exporter);
            let names = all.as_array().unwrap().iter();
            names
                .map(|one| one["name"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        let (bigger, smaller) = (names(&BIGGER), names(&SMALLER));
        assert!(
            bigger.contains(&"epoll, 1,000 clients: Requests/s".to_owned()),
            "{bigger:?}"
        );
        assert!(
            smaller.contains(&"epoll, 1,000 clients: p99".to_owned()),
            "{smaller:?}"
        );
        assert!(bigger.iter().all(|name| !smaller.contains(name)));
    }
}
