//! Throughput and cost of each server against the number of clients.

use crate::Report;
use crate::document::{self, Block, Cell, Medium, Role, Row, Section, Table, Text};
use crate::summary::Summary;
use crate::summary::scalability::{LeftOutReason, Scaling, percent, power, range};
use throng_record::format::{ABSENT, counted, list, number, whole};
use throng_stats::scalability::{Estimate, FARTHEST, Residual};

struct Column {
    /// Heading.
    title: &'static str,
    /// The meaning.
    note: &'static str,
    /// The value and its small print; `None` without a fit.
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
        title: "λ, one client",
        note: "requests per second of one client alone, by the Universal Scalability Law",
        cell: |one| {
            let rate = &one.law.as_ref()?.rate_of_one;
            Some((format!("{}/s", number(rate.value)), range(rate, number)))
        },
    },
    Column {
        title: "σ, contention",
        note: "loss from waiting for shared resources: 0 is none, 1 is a rate that does not grow with clients",
        cell: |one| Some(estimate(&one.law.as_ref()?.contention, coefficient)),
    },
    Column {
        title: "κ, coherency",
        note: "loss from work that each client causes for every other: 0 is none; above 0 the rate falls again with more clients",
        cell: |one| Some(estimate(&one.law.as_ref()?.coherency, coefficient)),
    },
    Column {
        title: "Peak",
        note: "number of clients at which the fitted rate is highest, √((1 − σ) / κ); reported only up to twice the most clients measured",
        cell: peak,
    },
    Column {
        title: "R²",
        note: "share of the variance of log rates that the fit explains; also small if there is little variance",
        cell: |one| {
            let share = one.law.as_ref()?.r_squared?;
            Some((format!("{share:.3}"), String::new()))
        },
    },
    Column {
        title: "Fit error of the rate",
        note: "root mean square distance of rates from the fit; small print: the largest",
        cell: |one| {
            let law = one.law.as_ref()?;
            Some((percent(law.typical_residual), at(law.worst())))
        },
    },
    Column {
        title: "Excluded",
        note: "numbers of clients excluded from the fits, and why; if the load generator was the limit, CPU time still counts",
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
    let hint = "Fits of throughput and CPU per request against the number of clients n. Small print: 95 % interval over trials.";
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

/// Why servers lack a fit, as (server, sentence).
fn missing(summary: &Summary) -> Vec<(&str, String)> {
    summary
        .scaling
        .iter()
        .filter_map(|one| {
            let law = one
                .no_law
                .as_ref()
                .map(|why| format!("no fit of the rate ({why})"));
            let growth = one
                .no_cpu_growth
                .as_ref()
                .map(|why| format!("no fit of CPU per request ({why})"));
            let both: Vec<String> = law.into_iter().chain(growth).collect();
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
    let law = one.law.as_ref()?;
    let (fewest, most) = law.range();
    let text = |clients: f64| {
        if clients.is_infinite() {
            format!(">{}", whole(f64::from(most) * f64::from(FARTHEST)))
        } else if clients <= f64::from(fewest) {
            if fewest == 1 {
                "1".to_owned()
            } else {
                format!("<{}", whole(f64::from(fewest)))
            }
        } else {
            whole(clients)
        }
    };
    let peak = &law.peak_clients;
    let (low, high) = (peak.low.map(text), peak.high.map(text));
    let range = match (low, high) {
        (Some(low), Some(high)) if low != high => format!("{low}–{high}"),
        _ => String::new(),
    };
    Some((text(peak.value), range))
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

/// Three digits, small numbers as a power of ten: "0.134", "2.1·10⁻⁶".
fn coefficient(value: f64) -> String {
    // Below this, the law gives the same result as 0 for any number of clients that a machine can have.
    if value < 1e-12 {
        return "0".to_owned();
    }
    if value >= 0.001 {
        return number(value);
    }
    let text = format!("{value:.1e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let raised: String = exponent
        .chars()
        .map(|c| match c.to_digit(10) {
            Some(digit) => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit as usize],
            None => '⁻',
        })
        .collect();
    format!("{digits}·10{raised}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_coefficients_are_powers_of_ten_and_nothing_is_zero() {
        let texts = [0.134_2, 2.14e-6, 9.96e-5, 0.0, 1e-17, 1.5].map(coefficient);
        assert_eq!(texts, ["0.134", "2.1·10⁻⁶", "1.0·10⁻⁴", "0", "0", "1.50"]);
    }

    #[test]
    fn a_residual_names_its_number_of_clients() {
        let worst = Residual {
            clients: 1,
            relative: -0.113,
        };
        assert_eq!(at(Some(worst)), "−11 % at 1 client");
    }
}
