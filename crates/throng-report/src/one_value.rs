//! Tests: a metric of a server under a load has the same value in every output.

use std::collections::BTreeMap;

use serde_json::Value;
use throng_record::metrics::{METRICS, Unit, named};
use throng_record::{Purpose, Run, Trial};

use crate::columns::{self, Column};
use crate::document::terminal;
use crate::exporters::EXPORTERS;
use crate::summary::Row;
use crate::{Logs, Report, fixture, sections};

/// Twice the rounds of the fixture, so that intervals are drawn; with counted events and captured packets too.
fn record() -> (Run, Vec<Trial>) {
    let (mut run, mut trials) = fixture::record();
    let mut again = trials.clone();
    for trial in &mut again {
        trial.round += run.settings.runs;
        if let Some(load) = trial.load.as_mut() {
            load.window
                .replies_per_s
                .iter_mut()
                .for_each(|rate| *rate *= 1.01);
        }
    }
    trials.extend(again);
    let captured = fixture::captured(&trials);
    trials.extend(captured);
    run.settings.runs *= 2;
    run.trials_planned = trials.len() as u32;
    (run, trials)
}

fn exported(report: &Report<'_>, name: &str) -> String {
    let exporter = EXPORTERS.iter().find(|one| one.info.name == name);
    let mut text = Vec::new();
    (exporter.unwrap().render)(report, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// The cells of the first table for each number of clients in a Markdown page, by server and heading.
fn cells(markdown: &str) -> BTreeMap<(u32, String, String), String> {
    let mut cells = BTreeMap::new();
    let (mut clients, mut titles) = (0, Vec::new());
    for line in markdown.lines() {
        if let Some(heading) = line.strip_prefix("| **") {
            let number = heading.split(' ').next().unwrap_or_default();
            clients = number.replace(',', "").parse().unwrap_or(0);
        }
        let row: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        match row.first() {
            Some(&"Server") => titles = row.iter().map(|title| (*title).to_owned()).collect(),
            Some(server) if line.starts_with("| ") && row.len() == titles.len() => {
                for (title, cell) in titles.iter().zip(&row).skip(1) {
                    let name = server.split(" (").next().unwrap_or_default();
                    let key = (clients, name.to_owned(), title.clone());
                    let cell = cell.trim_start_matches("**").to_owned();
                    cells.entry(key).or_insert(cell);
                }
            }
            _ => {}
        }
    }
    cells
}

/// Each sample of the OpenMetrics file: its name and labels as written, and its value.
fn samples(openmetrics: &str) -> BTreeMap<&str, f64> {
    let lines = openmetrics.lines().filter(|line| !line.starts_with('#'));
    let samples = lines.map(|line| line.rsplit_once(' ').unwrap());
    samples
        .map(|(name, value)| (name, value.parse().unwrap()))
        .collect()
}

fn same(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(other.abs())
}

#[test]
fn every_number_is_the_same_in_every_file() {
    let (run, trials) = record();
    let report = Report::of(&run, &trials, &Logs::default()).unwrap();
    let json: Value = serde_json::from_str(&exported(&report, "json")).unwrap();
    let openmetrics = exported(&report, "openmetrics");
    let samples = samples(&openmetrics);
    let (page, markdown) = (exported(&report, "html"), exported(&report, "markdown"));
    let cells = cells(&markdown);
    let wide = terminal::text(&sections::of_run(&report), 400, false);
    let mut compared = [0; 5];
    for (row, in_json) in report
        .summary
        .rows
        .iter()
        .zip(json["rows"].as_array().unwrap())
    {
        assert_eq!(in_json["server"], row.server);
        for metric in METRICS {
            let given = &in_json["metrics"][metric.name];
            let Some(quantity) = row.quantity(metric.name) else {
                assert!(given.is_null(), "{}", metric.name);
                continue;
            };
            let ends = [
                ("value", Some(quantity.value)),
                ("low", quantity.low),
                ("high", quantity.high),
            ];
            for (end, value) in ends {
                assert_eq!(given[end].as_f64(), value, "{} {end}", metric.name);
                let Some(value) = value else { continue };
                let sample = format!(
                    "throng_{}{{study=\"{}\",server=\"{}\",clients=\"{}\",estimate=\"{end}\"}}",
                    metric.name, run.study.name, row.server, row.clients
                );
                assert!(same(samples[sample.as_str()], value), "{sample}");
                compared[0] += 1;
            }
        }
        for column in columns::results().into_iter().chain(columns::costs()) {
            compared[1] += usize::from(is_in_tables(column, row, &cells, &page, &wide));
        }
        for figure in &report.figures {
            compared[2] += points_are_those_of(row, figure);
            compared[4] += numbers_are_those_of(row, figure);
        }
    }
    // The values in the answer are those of the row.
    let (largest, answer) = (report.summary.clients.last(), &report.answer);
    let sentences = answer.headline.join(" ");
    for metric in ["requests_per_s", "server_cpu_us_per_request"] {
        let metric_of_it = named(metric).unwrap();
        let of_best = report.summary.rows_at(*largest.unwrap()).filter_map(|row| {
            let text = metric_of_it.unit.text(row.value(metric_of_it.name)?);
            sentences.contains(&text).then_some(text)
        });
        compared[3] += of_best.count();
    }
    assert!(
        compared[0] > 2000 && compared[1] > 100 && compared[2] > 50 && compared[3] >= 2,
        "{compared:?}"
    );
}

/// Whether this cell of the row has a value. Asserts that the Markdown, the page and the terminal show it.
fn is_in_tables(
    column: Column,
    row: &Row,
    cells: &BTreeMap<(u32, String, String), String>,
    page: &str,
    wide: &str,
) -> bool {
    let Some((metric, value)) = column
        .metric()
        .and_then(|metric| Some((metric, row.value(metric.name)?)))
    else {
        return false;
    };
    let text = match metric.unit {
        Unit::Clients => column.text(row),
        _ => metric.text(value),
    };
    let key = (row.clients, row.server.clone(), metric.label.to_owned());
    let Some(cell) = cells.get(&key) else {
        return false;
    };
    assert!(cell.starts_with(&text), "{key:?}: {cell} and {text}");
    let in_page = page.contains(&format!(">{text}<"));
    assert!(in_page, "{key:?}: {text} is not in the page");
    if matches!(column, Column::Result(_, shown) if shown.terminal.is_some()) && row.trials_ok > 0 {
        assert!(
            wide.contains(metric.label) && wide.contains(&text),
            "{key:?}: {text}"
        );
    }
    true
}

/// The number of points of a figure that belong to this row's metric. Asserts that each has the row's value.
fn points_are_those_of(row: &Row, figure: &crate::figures::Figure) -> usize {
    let of_metric = METRICS
        .iter()
        .find(|metric| figure.y.label == metric.label && figure.id != "memory-per-client");
    let Some(value) = of_metric.and_then(|metric| row.quantity(metric.name)) else {
        return 0;
    };
    let own = figure
        .series
        .iter()
        .filter(|series| series.name == row.server);
    let points = own.flat_map(|series| &series.points);
    let mut count = 0;
    for point in points.filter(|point| same(point.x, f64::from(row.clients))) {
        // An axis has its own unit, so all three numbers differ by the same factor.
        let factor = point.y / value.value;
        let of = |end: Option<f64>| end.map(|end| end * factor);
        for (drawn, given) in [(point.low, of(value.low)), (point.high, of(value.high))] {
            assert!(
                drawn.zip(given).is_none_or(|(one, other)| same(one, other)),
                "{} of {}: {drawn:?} and {given:?}",
                figure.id,
                row.server
            );
        }
        let powers = [1.0, 1e-3, 1.0 / 1024.0, 1.0 / 1_048_576.0];
        assert!(
            powers.iter().any(|power| same(factor, *power)),
            "{}: {factor}",
            figure.id
        );
        count += 1;
    }
    count
}

/// The number of this row's metrics below a curve. Asserts that each is the value of the tables.
fn numbers_are_those_of(row: &Row, figure: &crate::figures::Figure) -> usize {
    let mut rows = figure.numbers.rows.iter();
    let own = rows.find(|(name, ..)| *name == row.server && row.clients == 1000);
    let Some((.., cells)) = own else { return 0 };
    for (label, cell) in figure.numbers.heads.iter().zip(cells) {
        let mut values = METRICS
            .iter()
            .filter(|metric| metric.label == *label)
            .filter_map(|metric| Some(metric.text(row.value(metric.name)?)));
        assert!(
            values.any(|value| cell.starts_with(&value)),
            "{}: {label} {cell}",
            figure.id
        );
    }
    cells.len()
}

#[test]
fn a_percentile_is_the_median_of_its_trials_in_tables_ratios_and_thresholds() {
    let (mut run, trials) = record();
    run.settings.fail_if = vec!["epoll: p99 > 1ns".to_owned()];
    run.comparison = Some(throng_record::Comparison {
        reference: "thread".to_owned(),
        ..throng_record::Comparison::default()
    });
    let report = Report::of(&run, &trials, &Logs::default()).unwrap();
    let p99 = |server: &str| {
        let own = trials.iter().filter(|trial| {
            trial.server == server && trial.clients == 100 && trial.purpose == Purpose::Timed
        });
        let times = own.filter_map(|trial| trial.load.as_ref()?.service_time.as_ref());
        let of_trials: Vec<f64> = times.filter_map(|times| times.p99_us).collect();
        throng_stats::median(&of_trials).unwrap()
    };
    let comparison = &report.comparison;
    let mut pairs = comparison.pairs.iter();
    let pair = pairs.find(|pair| pair.server == "epoll" && pair.clients == 100);
    let mut measures = pair.unwrap().measures.iter();
    let latency = measures.find(|one| one.name == "latency_p99_us").unwrap();
    let (epoll, thread) = (p99("epoll"), p99("thread"));
    assert!(same(latency.value.unwrap(), epoll) && same(latency.reference.unwrap(), thread));
    assert!((latency.ratio.unwrap().value / (epoll / thread) - 1.0).abs() < 0.1);
    let mut rows = report.summary.rows_at(100);
    let row = rows.find(|row| row.server == "epoll").unwrap();
    assert!(same(row.value("latency_p99_us").unwrap(), epoll));
    let mut demands = report.thresholds.iter();
    let judged = demands.find(|judged| judged.clients == 100).unwrap();
    let text = named("latency_p99_us").unwrap().text(epoll);
    assert!(judged.seen.starts_with(&text), "{}", judged.seen);
}
