//! Published values as crosses beside the measured ones.

use super::PartReport;
use super::published::{Group, Row, title, together};
use crate::figures::{
    AgainstClients, Axis, Figure, Grouped, OfSection, Point, Rank, Ranked, Series, Trace,
};
use crate::palette;
use throng_record::format::{counted, list};
use throng_record::metrics::{Metric, Quantity, find};
use throng_spec::registry::Info;

/// Values further apart than this factor need a logarithmic axis.
const FAR_APART: f64 = 20.0;
/// IDs of figures; each is unique on a page.
const IDS: [&str; 12] = [
    "published-1",
    "published-2",
    "published-3",
    "published-4",
    "published-5",
    "published-6",
    "published-7",
    "published-8",
    "published-9",
    "published-10",
    "published-11",
    "published-12",
];
const CROSSES: &str = "Crosses: published.";

/// The figures of the parts, each with the index of its parts among those [`together`]. Values with several numbers of
/// clients are lines; those with one are rows. `servers` are those of the whole study.
pub(crate) fn all(parts: &[PartReport<'_>], servers: &[String]) -> Vec<(usize, Figure)> {
    let mut figures: Vec<(usize, Figure)> = Vec::new();
    for (index, alike) in together(parts).enumerate() {
        let mut rows = Vec::new();
        let here = |group: &Group<'_>| group.rows.iter().all(|row| row.system.is_none());
        let groups = alike[0].published.groups().enumerate();
        for (place, group) in groups.filter(|(_, group)| here(group)) {
            let Some(id) = IDS.get(figures.len()) else {
                return figures;
            };
            if group.rows.len() > 1 {
                let drawn = lines(id, &alike[0], &group, servers);
                figures.extend(drawn.map(|figure| (index, figure)));
            } else {
                rows.extend(ranked(alike, place, servers));
            }
        }
        if let (false, Some(id)) = (rows.is_empty(), IDS.get(figures.len())) {
            figures.push((index, of_rows(id, alike, rows)));
        }
    }
    figures
}

fn lines(
    id: &'static str,
    part: &PartReport<'_>,
    group: &Group<'_>,
    servers: &[String],
) -> Option<Figure> {
    let metric = find(&group.rows.first()?.metric).ok()?;
    let info = Info {
        name: id,
        summary: metric.label,
    };
    let drawn = AgainstClients::of_metric(info, metric.name, CROSSES, "");
    let (_, factor) = metric.axis_unit(f64::INFINITY);
    let clients: Vec<u32> = group.rows.iter().filter_map(|row| row.clients).collect();
    let mut series = Vec::new();
    for (index, server) in part.published.servers.iter().enumerate() {
        let measured = clients
            .iter()
            .filter_map(|clients| part.row(server, *clients));
        let published = group.rows.iter().filter_map(|row| {
            let value = row.cells.get(index)?.published_value? / factor;
            Some(Point::new(f64::from(row.clients?), value))
        });
        let all = [
            (Trace::Joined, drawn.points(measured)),
            (
                Trace::Published,
                published.filter(|point| point.y > 0.0).collect(),
            ),
        ];
        let shown = all.into_iter().filter(|(_, points)| !points.is_empty());
        series.extend(shown.map(|(trace, points)| Series {
            name: server.clone(),
            place: palette::place(server, servers),
            points,
            trace,
        }));
    }
    let figure = drawn.figure(series, &clients)?;
    Some(Figure {
        section: OfSection::Answer,
        ..figure
    })
}

/// The rows of the publication with index `place`, which has one row in each of the parts.
fn ranked(parts: &[PartReport<'_>], place: usize, servers: &[String]) -> Option<Ranked> {
    let of_part =
        |part: &'_ PartReport<'_>| Some(part.published.groups().nth(place)?.rows[0].clone());
    let rows: Vec<Row> = parts.iter().filter_map(of_part).collect();
    let first = rows.first()?;
    let metric: &'static Metric = find(&first.metric).ok()?;
    let cells = rows.iter().flat_map(|row| &row.cells);
    let both = cells.flat_map(|cell| [cell.published_value, cell.measured_value]);
    let values: Vec<f64> = both.flatten().collect();
    let most = values.iter().copied().fold(0.0, f64::max);
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    // In the published unit, which the title names.
    let factor = metric.unit.read(1.0, &first.unit).unwrap_or(1.0);
    let groups: Vec<Grouped> = parts
        .iter()
        .zip(&rows)
        .map(|(part, row)| Grouped {
            title: if parts.len() > 1 {
                part.record.title.clone()
            } else {
                String::new()
            },
            ..Grouped::apart(ranks(row, factor, servers))
        })
        .collect();
    let heading = parts[0].published.groups().nth(place)?.heading();
    let clients = first.clients.filter(|_| parts.len() == 1);
    let with = clients.map(|clients| format!(", {}", counted(clients, "client")));
    let is_shown = |row: &Rank| row.point.is_some() && row.published.is_some();
    let ranked = Ranked {
        title: format!(
            "{heading}{}: published / measured",
            with.unwrap_or_default()
        ),
        axis: if least > 0.0 && most / least > FAR_APART {
            Axis::logarithmic(metric.label, None)
        } else {
            Axis::linear(metric.label, None)
        },
        level: None,
        band: None,
        groups,
    };
    let has_rows = ranked.rows().any(is_shown);
    has_rows.then_some(ranked)
}

/// The published cells of a row, in units of `factor` of the metric's own.
fn ranks(row: &Row, factor: f64, servers: &[String]) -> Vec<Rank> {
    let cells = row.cells.iter().filter(|cell| cell.published.is_some());
    cells
        .map(|cell| {
            let measured = cell.measured_value.map(|value| Quantity {
                low: cell.interval.map(|(low, _)| low),
                high: cell.interval.map(|(_, high)| high),
                ..Quantity::bare(value)
            });
            let point =
                measured.map(|shown| Point::of(0.0, shown.times(1.0 / factor), f64::is_finite));
            Rank {
                point,
                published: cell.published_value.map(|value| value / factor),
                text: cell.side_by_side(&[]),
                ..Rank::of(&cell.server, palette::place(&cell.server, servers))
            }
        })
        .collect()
}

fn of_rows(id: &'static str, parts: &[PartReport<'_>], ranked: Vec<Ranked>) -> Figure {
    let groups = ranked.iter().flat_map(|ranked| &ranked.groups);
    let words: Vec<String> = groups
        .map(|group| {
            let rows: Vec<String> = group
                .rows
                .iter()
                .map(|row| format!("{} {}", row.name, row.text))
                .collect();
            match group.title.as_str() {
                "" => list(&rows),
                title => format!("{title}: {}", list(&rows)),
            }
        })
        .collect();
    let title = format!("{}: published and measured", title(parts));
    Figure {
        alternative: format!("{title}. {}.", words.join("; ")),
        caption: format!("{CROSSES} Dots: measured, with intervals as in the table."),
        ranked,
        section: OfSection::Answer,
        ..Figure::empty(id, title)
    }
}
