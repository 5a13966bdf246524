//! Throughput and cost of each server against the number of clients.

use crate::Report;
use crate::document::{self, Block, Cell, Medium, Role, Row, Section, Table, Text};
use crate::summary::Summary;
use crate::summary::scalability::{LeftOutReason, Scaling, percent, power, range};
use throng_record::format::{ABSENT, counted, list, whole};
use throng_stats::scalability::{Estimate, Residual};

struct Column {
    /// Heading.
    title: &'static str,
    /// The meaning.
    note: &'static str,
    /// The value and its small print; `None` without one.
    cell: fn(&Scaling) -> Option<(String, String)>,
}

const COLUMNS: &[Column] = &[
    Column {
        title: "CPU/request ∝ nᵉ",
        note: "exponent e of the growth of CPU per request with the number of clients n: 0 is constant, 1 is proportional (Theil–Sen estimate)",
        cell: |one| Some(estimate(&one.cpu_growth.as_ref()?.exponent, power)),
    },
    Column {
        title: "Fit error of CPU",
        note: "median distance of CPU per request from the fitted power; small print: the largest. If it is large, e only shows a trend",
        cell: |one| {
            let growth = one.cpu_growth.as_ref()?;
            Some((percent(growth.typical_residual), at(growth.worst())))
        },
    },
    Column {
        title: "Peak",
        note: "number of clients with the highest throughput, if throughput is significantly lower with the most clients",
        cell: peak,
    },
    Column {
        title: "Excluded",
        note: "numbers of clients whose throughput is excluded, and why; if the load generator was the limit, CPU time still counts",
        cell: left_out,
    },
];

pub(super) fn section(report: &Report<'_>) -> Option<Section> {
    let scaling = &report.summary.scaling;
    let shown = |column: &&Column| scaling.iter().any(|one| (column.cell)(one).is_some());
    let columns: Vec<&Column> = COLUMNS.iter().filter(shown).collect();
    if columns.is_empty() {
        return None;
    }
    let row = |one: &Scaling| {
        let cell = |column: &&Column| {
            let shown = (column.cell)(one);
            shown.map_or_else(
                || Cell::plain(ABSENT),
                |(text, detail)| Cell::plain(text).with(detail),
            )
        };
        let name = super::server(report, &one.server);
        Row::of(name, columns.iter().map(cell).collect())
    };
    let heading = |column: &&Column| document::Column {
        note: column.note.to_owned(),
        ..document::Column::number(column.title)
    };
    let server = document::Column::text("Server");
    let table = Table::of(
        "Throughput and CPU per request against the number of clients",
        std::iter::once(server)
            .chain(columns.iter().map(heading))
            .collect(),
        scaling.iter().map(row).collect(),
    );
    let hint = "Against the number of clients n. Small print: 95 % interval over trials.";
    let missing = missing(&report.summary).into_iter();
    let missing =
        missing.map(|(server, why)| Text::default().strong(server).plain(format!(": {why}")));
    let blocks = vec![
        Block::paragraph(Role::Hint, hint),
        Block::Table(table),
        Block::list(missing),
    ];
    Some(Section::of("scalability", "Scalability", blocks)?.except(&[Medium::Terminal]))
}

/// Why servers lack an estimate, as (server, sentence).
fn missing(summary: &Summary) -> Vec<(&str, String)> {
    summary
        .scaling
        .iter()
        .filter_map(|one| {
            let peak = one.no_peak.as_ref();
            let peak = peak.map(|why| format!("no peak of throughput ({why})"));
            let growth = one
                .no_cpu_growth
                .as_ref()
                .map(|why| format!("no fit of CPU per request ({why})"));
            let both: Vec<String> = peak.into_iter().chain(growth).collect();
            (!both.is_empty()).then(|| (one.server.as_str(), list(&both)))
        })
        .collect()
}

/// A value with its interval.
fn estimate(value: &Estimate, text: fn(f64) -> String) -> (String, String) {
    (text(value.value), range(value, text))
}

/// "37 (31–44)", split into the value and the interval.
fn peak(one: &Scaling) -> Option<(String, String)> {
    match (&one.peak_clients, one.rate_up_to) {
        (Some(peak), _) => Some(estimate(peak, whole)),
        (None, Some(most)) => Some((
            format!("none up to {}", whole(f64::from(most))),
            String::new(),
        )),
        (None, None) => None,
    }
}

fn left_out(one: &Scaling) -> Option<(String, String)> {
    let kinds = [
        (LeftOutReason::NotServed, "not all served"),
        (LeftOutReason::Unsteady, "drifted"),
        (LeftOutReason::ClientLimited, "limited by the clients"),
        (LeftOutReason::Paced, "the load sets the pace"),
    ];
    let parts: Vec<String> = kinds
        .iter()
        .filter_map(|(why, words)| {
            let of_kind = one.left_out.iter().filter(|out| out.why == *why);
            let clients: Vec<String> = of_kind.map(|out| whole(f64::from(out.clients))).collect();
            (!clients.is_empty()).then(|| format!("{} ({words})", clients.join(", ")))
        })
        .collect();
    (!parts.is_empty()).then(|| (parts.join("; "), String::new()))
}

/// "−11 % at 20 clients".
fn at(worst: Option<Residual>) -> String {
    worst.map_or_else(String::new, |worst| {
        let sign = if worst.relative < 0.0 { '−' } else { '+' };
        format!(
            "{sign}{} at {}",
            percent(worst.relative.abs()),
            counted(worst.clients, "client")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_residual_names_its_number_of_clients() {
        let worst = Residual {
            clients: 1,
            relative: -0.113,
        };
        assert_eq!(at(Some(worst)), "−11 % at 1 client");
    }
}
