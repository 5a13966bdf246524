//! The page of a server's history: its results in each run, with changes marked.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::chart::Chart;
use super::{document, opening, time, to_history, to_run};
use crate::address::page_of;
use crate::history::{HistoryQuery, ServerIndex};
use throng_record::format::{counted, whole};
use throng_record::metrics::{Metric, named};
use throng_report::figures::{Kind, Point, Trace};
use throng_report::glance::{HistoryPoint, OF_HISTORY, Occasion, Verdict};

/// Maximum number of lines in a chart, not counting the changes.
const MOST_SERIES: usize = 4;

/// The list of all servers.
pub(crate) fn servers(known: &ServerIndex) -> Markup {
    let below = html! { p.facts { span { (counted(known.servers.len() as u32, "server")) } (waiting(known)) } };
    let body = html! {
        (opening(&to_run(&[]), "Server history", &below))
        main #list data-running=(known.waiting > 0) {
            section.results aria-label="Servers" {
                @if known.servers.is_empty() {
                    p.hint { "No run has a server that served all its clients yet." }
                } @else {
                    div.scroll tabindex="0" role="region" aria-label="Servers, scrollable" {
                        table {
                            thead { tr { th scope="col" { "Server" } th.text scope="col" { "Clients (number of runs)" } } }
                            tbody {
                                @for (server, clients) in &known.servers {
                                    tr {
                                        th scope="row" { a href=(to_history(server, None)) { (server) } }
                                        td.text { ul.counts { @for (clients, runs) in clients { li {
                                            a href=(to_history(server, Some(*clients))) aria-label=(format!("{server} with {}", counted(*clients, "client"))) { (whole((*clients).into())) }
                                            small { " (" (runs) ")" }
                                        } } } }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    };
    document("Server history", &body)
}

fn waiting(known: &ServerIndex) -> Markup {
    html! {
        @if known.waiting > 0 { span role="status" { (counted(known.waiting as u32, "run")) " still being read" } }
    }
}

/// The history of one server with one number of clients.
pub(crate) fn server(
    known: &ServerIndex,
    asked: &HistoryQuery,
    (server, clients): (&str, u32),
    occasions: &[(String, &Occasion)],
    turns: &[HistoryPoint<'_>],
) -> Markup {
    let below = html! {
        p.facts {
            span { "with " (counted(clients, "client")) }
            span { (counted(turns.len() as u32, "run")) }
            (waiting(known))
        }
    };
    let mut up = to_run(&[]);
    up.push(("/history".to_owned(), "Server history".to_owned()));
    let title = format!("History of {server}");
    let charts = OF_HISTORY.map(|name| chart(name, turns));
    let body = html! {
        (opening(&up, &title, &below))
        main #list data-running=(known.waiting > 0) {
            (answer(turns, occasions))
            (choose(known, asked, (server, clients)))
            // There are no charts if no runs can be joined by a line.
            @if charts.iter().any(|chart| !chart.0.is_empty()) {
                section aria-labelledby="charts" {
                    h2 #charts { "Measurements" }
                    div.figures { @for chart in &charts { (chart) } }
                }
            }
            (table(turns, occasions))
        }
    };
    document(&title, &body)
}

/// The latest change, or a note that there is none.
fn answer(turns: &[HistoryPoint<'_>], occasions: &[(String, &Occasion)]) -> Markup {
    let is_change = |turn: &&HistoryPoint<'_>| {
        turn.changes
            .values()
            .any(|(_, verdict)| verdict.is_difference())
    };
    let changed = turns.iter().filter(is_change);
    let compared = turns.iter().filter(|turn| !turn.changes.is_empty()).count();
    html! {
        section.answer aria-labelledby="answer" {
            h2 #answer { "The answer" }
            p.lead {
                @match changed.clone().next_back() {
                    Some(turn) => {
                        (counted(changed.count() as u32, "run")) " with a significant change; the latest is "
                        a href=(page_of(&occasions[turn.place].0, "")) { (time(&turn.occasion.started_at)) } ": "
                        (changes(turn)) "."
                    }
                    None if compared > 0 => { "No significant change in " (counted(compared as u32, "comparison")) "." }
                    None => "Nothing to compare yet: this needs two runs of six rounds each with the same load and machine.",
                }
            }
            p.fine {
                "Each run is compared with the previous one that has the same load and machine. Changes are marked if they are \
                 significant (95 %, Holm-corrected). Runs are not interleaved, so changes on the machine show too."
            }
        }
    }
}

/// The changed metrics: "throughput 1.20x (1.15–1.25)".
fn changes(turn: &HistoryPoint<'_>) -> String {
    let changed = turn
        .changes
        .iter()
        .filter(|(_, (_, verdict))| verdict.is_difference());
    let words = changed.map(|(name, (ratio, _))| {
        let label = named(name).map_or(*name, |metric| metric.label);
        let end = |end: Option<f64>| end.unwrap_or(ratio.value);
        format!(
            "{label} {:.2}x ({:.2}–{:.2})",
            ratio.value,
            end(ratio.low),
            end(ratio.high)
        )
    });
    words.collect::<Vec<_>>().join(", ")
}

/// A form to choose other runs.
fn choose(known: &ServerIndex, asked: &HistoryQuery, (server, clients): (&str, u32)) -> Markup {
    let others = known.servers.get(server);
    html! {
        form.tools role="search" action="/history" method="get" {
            input type="hidden" name="server" value=(server);
            @if let Some(others) = others.filter(|others| others.len() > 1) {
                label { "Clients " select name="clients" { @for other in others.keys() {
                    option value=(other) selected[*other == clients] { (whole((*other).into())) }
                } } }
            } @else { input type="hidden" name="clients" value=(clients); }
            label { "Host " input type="search" name="host" value=(asked.host) autocomplete="off"; }
            label { "Command " input type="search" name="command" value=(asked.command) autocomplete="off"; }
            label { "Commit " input type="search" name="commit" value=(asked.commit) autocomplete="off"; }
            button type="submit" { "Show" }
        }
    }
}

fn chart(name: &'static str, turns: &[HistoryPoint<'_>]) -> Markup {
    let Some(metric) = named(name) else {
        return html! {};
    };
    let (unit, size) = metric.axis_unit(f64::INFINITY);
    let factor = 1.0 / size;
    let series = series(turns);
    let point = |(place, turn): (usize, &HistoryPoint<'_>)| {
        let then = turn.course.measures.get(name)?;
        let point = Point {
            low: then.low.map(|low| low * factor),
            high: then.high.map(|high| high * factor),
            ..Point::new(place as f64 + 1.0, then.value * factor)
        };
        let is_change = turn
            .changes
            .get(name)
            .is_some_and(|(_, verdict)| verdict.is_difference());
        point
            .y
            .is_finite()
            .then_some((series[place], point, is_change))
    };
    let points: Vec<(usize, Point, bool)> = turns.iter().enumerate().filter_map(point).collect();
    // Only the latest series: more would overlap.
    let mut shown: Vec<usize> = points.iter().rev().map(|(own, ..)| *own).collect();
    let mut seen = BTreeSet::new();
    shown.retain(|own| seen.insert(*own));
    shown.truncate(MOST_SERIES);
    let of = |own: usize| -> Vec<Point> {
        let own = points.iter().filter(|(series, ..)| *series == own);
        own.map(|(_, point, _)| *point).collect()
    };
    let mut lines: Vec<(String, Trace, Vec<Point>)> = shown
        .iter()
        .map(|own| (letter(*own), Trace::Joined, of(*own)))
        .collect();
    let changed = points
        .iter()
        .filter(|(own, _, is_change)| *is_change && shown.contains(own));
    let changed: Vec<Point> = changed.map(|(_, point, _)| *point).collect();
    if !changed.is_empty() {
        lines.push(("changed".to_owned(), Trace::Markers, changed));
    }
    let caption = if shown.len() > 1 {
        "Runs in order of time. A line joins runs with the same load and machine (series A, B, ... below)."
    } else {
        "Runs in order of time, with 95 % intervals."
    };
    Chart {
        id: name,
        title: metric.label.to_owned(),
        caption: caption.to_owned(),
        kind: Kind::Lines,
        x: ("run", None),
        y: (metric.label, unit),
        from_zero: true,
        lines,
    }
    .draw()
}

/// The number of the series of each run, from 0. Comparable runs share a series.
fn series(turns: &[HistoryPoint<'_>]) -> Vec<usize> {
    let (mut all, mut next) = (Vec::new(), 0);
    for turn in turns {
        let own = turn.before.map_or(next, |before| all[before]);
        next = next.max(own + 1);
        all.push(own);
    }
    all
}

/// "A" to "Z", then "A1" and so on.
fn letter(series: usize) -> String {
    let letter = char::from(b'A' + (series % 26) as u8);
    match series / 26 {
        0 => letter.to_string(),
        lap => format!("{letter}{lap}"),
    }
}

fn table(turns: &[HistoryPoint<'_>], occasions: &[(String, &Occasion)]) -> Markup {
    let series = series(turns);
    let metrics: Vec<&Metric> = OF_HISTORY.iter().filter_map(|name| named(name)).collect();
    html! {
        section.results aria-labelledby="runs" {
            h2 #runs { "Runs" }
            div.scroll tabindex="0" role="region" aria-label="Runs, scrollable" {
                table {
                    thead { tr {
                        th scope="col" { "Run" }
                        th.text scope="col" title="Runs with the same load and machine" { "Series" }
                        th scope="col" { "Started" }
                        @for metric in &metrics { th scope="col" title=(metric.help) { (metric.label) } }
                        th.text scope="col" { "Changed since the previous run" }
                        th.text scope="col" { "Host" }
                        th.text scope="col" { "throng" }
                    } }
                    tbody {
                        @for (place, turn) in turns.iter().enumerate().rev() {
                            @let name = &occasions[turn.place].0;
                            tr {
                                th.run scope="row" { (place + 1) ". " a href=(page_of(name, "")) { (name) } }
                                td.text title=(turn.occasion.load) { (letter(series[place])) }
                                td { (time(&turn.occasion.started_at)) }
                                @for metric in &metrics { (cell(metric, turn)) }
                                td.text {
                                    @if turn.new.is_empty() { span.quiet { "nothing" } } @else { (turn.new.join(", ")) }
                                    @if let Some(before) = turn.before { small { "compared with run " (before + 1) } }
                                    @else if place > 0 { small { "no previous run with the same load and machine" } }
                                }
                                td.text.wide { (turn.occasion.machine) }
                                td.text.wide { (turn.occasion.throng) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn cell(metric: &Metric, turn: &HistoryPoint<'_>) -> Markup {
    let Some(then) = turn.course.measures.get(metric.name) else {
        return html! { td { "–" } };
    };
    let change = turn.changes.get(metric.name);
    let class = match change {
        Some((_, Verdict::Better)) => Some("good"),
        Some((_, Verdict::Worse)) => Some("bad"),
        _ => None,
    };
    html! {
        td class=[class] {
            (metric.text(then.value))
            @if let Some((ratio, verdict)) = change {
                small {
                    (format!("{:.2}x, ", ratio.value))
                    (match verdict {
                        Verdict::Better => "better",
                        Verdict::Worse => "worse",
                        Verdict::Equivalent => "equivalent",
                        Verdict::Inconclusive | Verdict::NotComparable => "not significant",
                    })
                }
            } @else if turn.before.is_some() { small { "too few rounds" } }
        }
    }
}
