//! The history of a server: its results in each run, with changes marked.

use std::collections::BTreeMap;

use hyper::StatusCode;
use maud::{Markup, html};

use super::address::{has_words, number, page_of, value};
use super::page::{chart, count, document, scrolled, time, to_history, to_list};
use super::response::{Answer, Refused, whole};
use super::runs::{RunEntry, Runs};
use throng_record::format::{ABSENT, counted, list, whole as grouped};
use throng_record::metrics::{Metric, named};
use throng_report::comparison::size::{briefly, in_words};
use throng_report::figures::{Axis, Kind, Point};
use throng_report::glance::{HistoryPoint, OF_HISTORY, Occasion, Verdict, server_history};

/// Maximum number of runs shown; of more, the newest.
const MOST_RUNS: usize = 500;

/// The mark of a run that changed significantly from the one before.
const CHANGED: &str = " *";

/// Every server with its numbers of clients, and the number of runs of each.
type Servers<'a> = BTreeMap<&'a str, BTreeMap<u32, usize>>;

/// The history of the server in a query, or the list of all servers.
pub(super) fn page(runs: &Runs, query: &str) -> Answer {
    let mut entries = runs.list()?.runs;
    entries.retain(RunEntry::is_read);
    entries.truncate(MOST_RUNS);
    runs.add_glances(&mut entries);
    let waiting = entries.iter().filter(|run| run.glance.is_none()).count();
    let mut occasions = all_occasions(&entries);
    let mut servers = Servers::new();
    for course in occasions.iter().flat_map(|(_, occasion)| &occasion.courses) {
        let of_server = servers.entry(&course.server).or_default();
        *of_server.entry(course.clients).or_default() += 1;
    }
    let still = html! {
        @if waiting > 0 { span role="status" { (count(waiting, "run")) " still being read" } }
    };
    let Some(server) = value(query, "server") else {
        let facts = html! { span { (count(servers.len(), "server")) } (still) };
        let content = html! { main #list data-running=(waiting > 0) { (all_servers(&servers)) } };
        let page = document(&[to_list()], "Server history", &facts, &content);
        return Ok(whole(&page));
    };
    // By default the number of clients with the most runs, or the largest of these on a tie.
    let known = servers.get(server.as_str());
    let usual = known.and_then(|known| {
        known
            .iter()
            .max_by_key(|(clients, count)| (**count, **clients))
    });
    let asked = number(query, "clients").or(usual.map(|(clients, _)| *clients));
    if asked.is_none() && waiting == 0 {
        let why = format!("No run has a server {server} that served all its clients.");
        return Err(Refused(StatusCode::NOT_FOUND, why));
    }
    let clients = asked.unwrap_or_default();
    let words = value(query, "q").unwrap_or_default();
    occasions.retain(|(_, occasion)| {
        let program = occasion.programs.get(&server).map_or("", String::as_str);
        let text = [&occasion.machine, program, &occasion.throng];
        has_words(&text.join(" "), &words)
    });
    let plain: Vec<&Occasion> = occasions.iter().map(|(_, occasion)| *occasion).collect();
    let points = server_history(&plain, &server, clients);
    let facts = html! {
        span { "with " (counted(clients, "client")) }
        span { (count(points.len(), "run")) }
        (still)
    };
    let runs_alike = alike(&points);
    let earlier = count(runs_alike.len().saturating_sub(1), "earlier one");
    let is_changed = runs_alike.iter().any(|run| !changes(run).is_empty());
    let content = html! {
        main #list data-running=(waiting > 0) {
            (answer(&points, &occasions))
            form.tools role="search" action="/history" method="get" {
                input type="hidden" name="server" value=(server);
                label { "Clients " select name="clients" { @for other in known.into_iter().flat_map(BTreeMap::keys) {
                    option value=(other) selected[*other == clients] { (grouped((*other).into())) }
                } } }
                label { "Filter by host, command or commit " input type="search" name="q" value=(words) autocomplete="off"; }
                button type="submit" { "Show" }
            }
            section aria-label="Runs with the load and machine of the latest" {
                p.hint { "The latest run, and the " (earlier) " with its load and machine." @if is_changed { " *: changed significantly." } }
                div.figures { @for name in OF_HISTORY { (drawn(name, &runs_alike)) } }
            }
            (table(&points, &occasions))
        }
    };
    let up = [
        to_list(),
        ("/history".to_owned(), "Server history".to_owned()),
    ];
    let title = format!("History of {server}");
    Ok(whole(&document(&up, &title, &facts, &content)))
}

/// All results in order of time, each with the name of its record.
fn all_occasions(runs: &[RunEntry]) -> Vec<(String, &Occasion)> {
    let known = runs
        .iter()
        .filter_map(|run| Some((run, run.glance.as_ref()?.as_ref().ok()?)));
    let occasions = known.flat_map(|(run, glance)| {
        glance.occasions.iter().map(move |occasion| {
            let part = occasion.part.as_ref();
            let name = part.map_or(run.name.clone(), |part| format!("{}/{part}", run.name));
            (name, occasion)
        })
    });
    let mut all: Vec<(String, &Occasion)> = occasions.collect();
    all.sort_by(|(one, then), (other, now)| (&then.started_at, one).cmp(&(&now.started_at, other)));
    all
}

/// The list of all servers.
fn all_servers(servers: &Servers<'_>) -> Markup {
    let table = html! {
        thead { tr { th scope="col" { "Server" } th.text scope="col" { "Clients (number of runs)" } } }
        tbody {
            @for (server, clients) in servers {
                tr {
                    th scope="row" { (server) }
                    td.text { ul.counts { @for (number, runs) in clients { li {
                        a href=(to_history(server, *number)) aria-label=(format!("{server} with {}", counted(*number, "client"))) { (grouped((*number).into())) }
                        small { " (" (runs) ")" }
                    } } } }
                }
            }
        }
    };
    html! {
        section.results aria-label="Servers" {
            @if servers.is_empty() { p.hint { "No run has a server that served all its clients yet." } }
            @else { (scrolled("Servers", &table)) }
        }
    }
}

/// The latest change, or a note that there is none.
fn answer(points: &[HistoryPoint<'_>], occasions: &[(String, &Occasion)]) -> Markup {
    let is_change = |point: &&HistoryPoint<'_>| {
        let mut changes = point.changes.values();
        changes.any(|(_, verdict)| verdict.is_difference())
    };
    let changed = points.iter().filter(is_change);
    let compared = points
        .iter()
        .filter(|point| !point.changes.is_empty())
        .count();
    html! {
        section.answer aria-labelledby="answer" {
            h2 #answer { "The answer" }
            p.lead {
                @match changed.clone().next_back() {
                    Some(point) => {
                        "Changed at " a href=(page_of(&occasions[point.place].0, "")) { (time(&point.occasion.started_at)) } ": "
                        (changes(point)) ", "
                        @if point.new.is_empty() { "with nothing else changed" } @else { "after a change of " (list(&point.new)) }
                        "."
                    }
                    None if compared > 0 => { "No significant change in " (count(compared, "comparison")) " of a run with the previous one." }
                    None => "Nothing to compare yet: this needs two runs of six trials each with the same load and machine.",
                }
            }
            @let earlier = changed.clone().count().saturating_sub(1);
            @if earlier > 0 { p { (count(earlier, "earlier run")) " changed, too." } }
            @if let Some(latest) = points.last() { p.of { (latest_values(latest)) } }
            p.fine {
                "Each run is compared with the previous one that has the same load and machine. Changes are marked if they are \
                 significant (95 %, Holm-corrected). Runs are not interleaved, so changes on the machine show too."
            }
        }
    }
}

/// The values of a run.
fn latest_values(latest: &HistoryPoint<'_>) -> Markup {
    let metrics = OF_HISTORY.iter().filter_map(|name| named(name));
    html! {
        span { "latest run" @if latest.before.is_some() && latest.changes.is_empty() { ", with too few trials to compare" } ":" }
        @for metric in metrics {
            @if let Some(measured) = latest.course.measures.get(metric.name) {
                span { (metric.label) " " b { (metric.text(measured.value)) } }
            }
        }
    }
}

/// The changed metrics: "Requests/s 20 % faster, p99 12 % lower".
fn changes(point: &HistoryPoint<'_>) -> String {
    let words = OF_HISTORY.iter().filter_map(|name| {
        let (ratio, verdict) = point.changes.get(name)?;
        let metric = named(name).filter(|_| verdict.is_difference())?;
        Some(format!(
            "{} {}",
            metric.label,
            briefly(*ratio, *verdict, metric)
        ))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// The latest run and all earlier ones with its load and machine, in order of time.
fn alike<'a>(points: &'a [HistoryPoint<'a>]) -> Vec<&'a HistoryPoint<'a>> {
    let before = |point: &&HistoryPoint<'a>| point.before.map(|index| &points[index]);
    let mut runs: Vec<_> = std::iter::successors(points.last(), before).collect();
    runs.reverse();
    runs
}

/// A metric in these runs, with the changed ones marked.
fn drawn(name: &'static str, runs: &[&HistoryPoint<'_>]) -> Markup {
    let Some(metric) = named(name) else {
        return html! {};
    };
    let (unit, size) = metric.axis_unit(f64::INFINITY);
    let numbered = || (1..).map(f64::from).zip(runs);
    let points = numbered().filter_map(|(number, run)| {
        let measured = run.course.measures.get(name)?;
        Some(Point {
            low: measured.low.map(|low| low / size),
            high: measured.high.map(|high| high / size),
            ..Point::new(number, measured.value / size)
        })
    });
    let times = short_times(runs.iter().map(|run| &*run.occasion.started_at));
    let marked = numbered().zip(times).map(|((number, run), time)| {
        let change = run.changes.get(name);
        let is_changed = change.is_some_and(|(_, verdict)| verdict.is_difference());
        let mark = if is_changed { CHANGED } else { "" };
        (number, time + mark)
    });
    let x = Axis {
        from_zero: false,
        named: marked.collect(),
        ..Axis::linear("started (UTC)", None)
    };
    let y = Axis::linear(metric.label, unit);
    chart(
        Kind::Lines,
        name,
        metric.label,
        x,
        y,
        vec![(metric.label, points.collect())],
    )
}

/// Times without the year, and without the day, if all have the same: "11-28 19:27", "19:27". With seconds, if some
/// would be the same without.
fn short_times<'a>(times: impl Iterator<Item = &'a str>) -> Vec<String> {
    let whole_times: Vec<&str> = times.collect();
    let cut = |end: usize| -> Vec<&str> {
        let each = whole_times.iter();
        each.map(|time| time.get(..end).unwrap_or(time)).collect()
    };
    let minutes = cut(16);
    let all = if minutes.windows(2).any(|pair| pair[0] == pair[1]) {
        cut(19)
    } else {
        minutes
    };
    let is_same = |end: usize| {
        all.windows(2)
            .all(|pair| pair[0].get(..end) == pair[1].get(..end))
    };
    let from = [11, 5].into_iter().find(|end| is_same(*end)).unwrap_or(0);
    let short = all.iter().map(|time| time.get(from..).unwrap_or(time));
    short.map(|time| time.replace('T', " ")).collect()
}

fn table(points: &[HistoryPoint<'_>], occasions: &[(String, &Occasion)]) -> Markup {
    let metrics: Vec<&Metric> = OF_HISTORY.iter().filter_map(|name| named(name)).collect();
    let table = html! {
        thead { tr {
            th scope="col" { "Run" }
            th scope="col" { "Started" }
            @for metric in &metrics { th scope="col" title=(metric.help) { (metric.label) } }
            th.text scope="col" { "Changed since the previous run" }
            th.text scope="col" { "Host" }
            th.text scope="col" { "throng" }
        } }
        tbody {
            @for (index, point) in points.iter().enumerate().rev() {
                @let name = &occasions[point.place].0;
                tr {
                    th.run scope="row" { (index + 1) ". " a href=(page_of(name, "")) { (name) } }
                    td { (time(&point.occasion.started_at)) }
                    @for metric in &metrics { (cell(metric, point)) }
                    td.text title=(point.occasion.load) {
                        @if point.new.is_empty() { span.quiet { "nothing" } } @else { (point.new.join(", ")) }
                        @if let Some(before) = point.before { small { "compared with run " (before + 1) } }
                        @else if index > 0 { small { "no previous run with the same load and machine" } }
                    }
                    td.text.wide { (point.occasion.machine) }
                    td.text.wide { (point.occasion.throng) }
                }
            }
        }
    };
    html! {
        section.results aria-labelledby="runs" {
            h2 #runs { "Runs" }
            (scrolled("Runs", &table))
        }
    }
}

fn cell(metric: &Metric, point: &HistoryPoint<'_>) -> Markup {
    let Some(measured) = point.course.measures.get(metric.name) else {
        return html! { td { (ABSENT) } };
    };
    let change = point.changes.get(metric.name);
    let class = match change {
        Some((_, Verdict::Better)) => Some("good"),
        Some((_, Verdict::Worse)) => Some("bad"),
        _ => None,
    };
    html! {
        td class=[class] {
            (metric.text(measured.value))
            @if let Some((ratio, verdict)) = change {
                small {
                    (in_words(*ratio, *verdict, metric))
                }
            } @else if point.before.is_some() { small { "too few trials" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use throng_report::glance::Glance;

    #[test]
    fn times_lose_what_all_have() {
        let short = |times: [&'static str; 2]| short_times(times.into_iter());
        let day = ["2026-11-28T19:27:03Z", "2026-11-28T20:01:59Z"];
        assert_eq!(short(day), ["19:27", "20:01"]);
        let year = ["2026-11-28T19:27:03Z", "2026-12-01T20:01:59Z"];
        assert_eq!(short(year), ["11-28 19:27", "12-01 20:01"]);
        let years = ["2025-11-28T19:27:03Z", "2026-12-01T20:01:59Z"];
        assert_eq!(short(years), ["2025-11-28 19:27", "2026-12-01 20:01"]);
        assert_eq!(short(["", "unknown"]), ["", "unknown"]);
        let minute = ["2026-11-28T19:27:03Z", "2026-11-28T19:27:59Z"];
        assert_eq!(short(minute), ["19:27:03", "19:27:59"]);
    }

    #[test]
    fn the_runs_of_a_server_come_in_order_of_time() {
        let occasion = |started_at: &str| Occasion {
            started_at: started_at.to_owned(),
            ..Occasion::default()
        };
        let run = |name: &str, occasions| RunEntry {
            name: name.to_owned(),
            glance: Some(Ok(Arc::new(Glance {
                occasions,
                ..Glance::default()
            }))),
            ..RunEntry::default()
        };
        let part = Occasion {
            part: Some("crowd".to_owned()),
            ..occasion("2026-01-01")
        };
        let runs = [
            run("b", vec![occasion("2026-01-03")]),
            run("a", vec![occasion("2026-01-02")]),
            run("study", vec![part]),
            RunEntry::default(),
        ];
        let names = all_occasions(&runs).into_iter().map(|(name, _)| name);
        assert_eq!(names.collect::<Vec<_>>(), ["study/crowd", "a", "b"]);
    }
}
