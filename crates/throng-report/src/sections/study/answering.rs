//! The part that answers the question of its study: its first sentence, growth, figure and values.

use crate::Report;
use crate::comparison::ranking::from_best;
use crate::comparison::size::times;
use crate::document::{Block, Cell, Column, Role, Row, Table};
use crate::figures::Figure;
use crate::sections::{limits, server};
use crate::study::{PartReport, StudyReport};
use crate::summary::{self, Summary};
use throng_record::format::{ABSENT, capitalized, counted};
use throng_record::metrics::Metric;

/// The most numbers of clients in the table of the answer.
const MOST_SHOWN: usize = 5;

/// The first sentence of the part that answers the study's question, with the figure that shows it and its values.
pub(super) fn blocks(report: &StudyReport<'_>) -> Vec<Block> {
    let answers = |part: &&PartReport<'_>| part.record.answer.is_some();
    let part = report.parts.iter().find(answers);
    let Some((name, of_part)) =
        part.and_then(|part| part.record.answer.as_ref().zip(part.report.as_ref()))
    else {
        return Vec::new();
    };
    let mut blocks = vec![Block::paragraph(Role::Lead, &of_part.answer.first)];
    let figure = of_part.figures.iter().find(|figure| figure.id == name);
    let metric = figure.and_then(|drawn| drawn.metric);
    let words = metric.and_then(|metric| growth(&of_part.summary, metric));
    blocks.extend(words.map(|words| Block::paragraph(Role::Body, words)));
    // The part has the same one on its own page.
    blocks.extend(figure.map(|drawn| {
        Block::Picture(Box::new(Figure {
            id: "answer-figure",
            ..drawn.clone()
        }))
    }));
    let values = match &of_part.limits {
        Some(limits) => Some(limits::overview(of_part, limits)),
        None => metric.map(|metric| values(of_part, metric)),
    };
    blocks.extend(values.map(Block::Table));
    blocks
}

/// The value of a server with this many clients, if it served all of them.
fn value<'a>(summary: &'a Summary, server: &str, clients: u32) -> Option<&'a summary::Row> {
    let mut rows = summary.rows_at(clients);
    rows.find(|row| row.server == server && row.is_ranked())
}

/// The servers, those first that are best with the most clients.
fn best_first<'a>(summary: &'a Summary, metric: &Metric) -> Vec<&'a str> {
    let each = summary.clients.iter().rev().flat_map(|clients| {
        let rows: Vec<_> = summary
            .rows_at(*clients)
            .filter(|row| row.is_ranked())
            .collect();
        from_best(&rows, metric)
    });
    let mut servers: Vec<&str> = Vec::new();
    for row in each {
        if !servers.contains(&&*row.server) {
            servers.push(&row.server);
        }
    }
    servers
}

/// "completion time of fork: 1.74 ms with 8 clients, 4.52 s with 25,000 clients: 2,600x for 3,125x the clients", of the
/// best server whose values are its own.
fn growth(summary: &Summary, metric: &Metric) -> Option<String> {
    let (first, last) = (*summary.clients.first()?, *summary.clients.last()?);
    let own = |server: &str| {
        let ends = [first, last].map(|clients| value(summary, server, clients));
        let [from, to] = ends.map(|row| {
            let unbound = row.filter(|row| !row.is_bound(metric))?;
            unbound.value(metric.name).filter(|end| *end > 0.0)
        });
        from.zip(to)
    };
    let mut servers = best_first(summary, metric).into_iter();
    let (server, (from, to)) = servers.find_map(|name| Some((name, own(name)?)))?;
    let [before, after] = [from, to].map(|end| metric.text(end));
    let [grown, more] = [to / from, f64::from(last) / f64::from(first)].map(times);
    let (few, many) = (counted(first, "client"), counted(last, "client"));
    let noun = capitalized(&metric.noun());
    (last > first).then(|| {
        format!("{noun} of {server}: {before} with {few}, {after} with {many}: {grown} for {more} the clients.")
    })
}

/// A metric of each server, best first, with some of the numbers of clients.
fn values(report: &Report<'_>, metric: &Metric) -> Table {
    let summary = &report.summary;
    let last = summary.clients.len().saturating_sub(1);
    let mut shown: Vec<u32> = (0..MOST_SHOWN)
        .filter_map(|step| summary.clients.get(step * last / (MOST_SHOWN - 1)).copied())
        .collect();
    shown.dedup();
    let row = |name: &str| {
        let cell = |clients: &u32| {
            let found = value(summary, name, *clients);
            let known = found.and_then(|row| Some((row.value(metric.name)?, row.is_bound(metric))));
            let text = known.map(|(number, is_bound)| metric.bounded(number, is_bound));
            Cell::plain(text.unwrap_or_else(|| ABSENT.to_owned()))
        };
        Row::of(server(report, name), shown.iter().map(cell).collect())
    };
    let clients = shown.iter().map(|number| counted(*number, "client"));
    let columns = std::iter::once(Column::text("Server")).chain(clients.map(Column::number));
    let rows = best_first(summary, metric).into_iter().map(row).collect();
    Table::of(metric.label, columns.collect(), rows)
}
