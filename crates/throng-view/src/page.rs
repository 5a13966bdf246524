//! What the pages have in common. They are complete without their script, which only keeps them up to date.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::address::{encoded, page_of};
use super::runs::{RunEntry, State};
use throng_record::Study;
use throng_record::format::{counted, first_of, harmless, number};
use throng_report::figures::{Axis, Figure, Kind, Point, Series, Trace};
use throng_report::glance::Glance;
use throng_report::grade::Level;
use throng_report::render::{Panels, markers};

/// The Content-Security-Policy: browsers refuse everything from elsewhere, and inline scripts and styles.
pub(super) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                                 img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Maximum number of servers, or of numbers of clients, to name; the rest are counted.
const NAMED: usize = 6;

/// Rows of a table per page.
pub(super) const ROWS: usize = 100;

/// A link to a level above: URL and name.
pub(super) type Up = (String, String);

/// A page: its links to the levels above, its title, the facts below that, and its content.
pub(super) fn document(up: &[Up], title: &str, facts: &Markup, content: &Markup) -> Markup {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – throng" }
                link rel="icon" href="data:,";
                link rel="stylesheet" href="/page.css";
                script src="/report.js" defer {}
                script src="/page.js" defer {}
            }
            body {
                (PreEscaped(markers()))
                header.top {
                    p.brand { "throng" span { "network servers under many concurrent clients" } }
                    @if !up.is_empty() {
                        nav.up aria-label="Up" { @for (place, (to, name)) in up.iter().enumerate() {
                            @if place > 0 { span aria-hidden="true" { "›" } }
                            a href=(to) { (name) }
                        } }
                    }
                    h1 { (title) }
                    p.facts { (facts) }
                }
                (content)
                footer { "throng " (env!("CARGO_PKG_VERSION")) ", local and read-only." }
                div #tip role="status" hidden {}
            }
        }
    };
    PreEscaped(harmless(&page.into_string()))
}

/// The link to the list of runs.
pub(super) fn to_list() -> Up {
    ("/".to_owned(), "All runs".to_owned())
}

/// The levels above a page of a run.
pub(super) fn way_to(run: &RunEntry) -> Vec<Up> {
    let mut up = above(run);
    up.push((page_of(&run.name, ""), run.name.clone()));
    up
}

/// The levels above a run: the list, and its study if it is a part of one.
pub(super) fn above(run: &RunEntry) -> Vec<Up> {
    let mut up = vec![to_list()];
    let study = run.directory.parent().filter(|place| Study::is_in(place));
    if let Some((name, _)) = run.name.rsplit_once('/').filter(|_| study.is_some()) {
        up.push((page_of(name, ""), name.to_owned()));
    }
    up
}

pub(super) fn badge(state: State) -> Markup {
    let class = match state {
        State::Running => "running",
        State::Finished => "finished",
        State::Interrupted | State::HostLost | State::ServerFailed | State::Unfinished => "cut",
        State::Broken => "broken",
    };
    html! { span.state.(class) { (state.text()) } }
}

/// The grade of a run, in one word.
pub(super) fn grade(glance: &Glance) -> Markup {
    html! {
        @if let Some(level) = glance.grade {
            span.grade.(match level { Level::Good => "good", Level::Rough => "rough", Level::Unusable => "bad" })
                title=[glance.cause.as_deref()] { (level.text()) }
        }
    }
}

/// "2026-01-01 12:00".
pub(super) fn time(started_at: &str) -> Markup {
    let short: String = started_at.chars().take(16).collect();
    html! { time datetime=(started_at) { (short.replace('T', " ")) } }
}

/// "3 runs".
pub(super) fn count(number: usize, noun: &str) -> String {
    counted(u32::try_from(number).unwrap_or(u32::MAX), noun)
}

/// The first few items, and how many more there are.
pub(super) fn some<T: ToString>(all: impl IntoIterator<Item = T>) -> String {
    let words: Vec<String> = all.into_iter().map(|one| one.to_string()).collect();
    first_of(&words, NAMED)
}

/// A table that scrolls by itself; `name` is for screen readers.
pub(super) fn scrolled(name: &str, table: &Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(format!("{name}, scrollable")) { table { (table) } } }
}

/// The links between pages of rows; `to` is the URL without the page.
pub(super) fn pages(to: &str, page: usize, all: usize) -> Markup {
    let last = all.div_ceil(ROWS).max(1);
    html! {
        @if last > 1 {
            nav.pages aria-label="Pages" {
                @if page > 1 { a rel="prev" href=(format!("{to}&page={}", page - 1)) { "Previous" } }
                span { "Page " (page) " of " (last) }
                @if page < last { a rel="next" href=(format!("{to}&page={}", page + 1)) { "Next" } }
            }
        }
    }
}

/// The rows of a page; pages count from 1.
pub(super) fn of_page<T>(rows: &[T], page: usize) -> &[T] {
    let from = page.saturating_sub(1).saturating_mul(ROWS).min(rows.len());
    &rows[from..rows.len().min(from + ROWS)]
}

/// The URL of a server's history.
pub(super) fn to_history(server: &str, clients: u32) -> String {
    format!("/history?server={}&clients={clients}", encoded(server))
}

/// The page of an error.
pub(super) fn refusal(title: &str, why: &str) -> Markup {
    let content =
        html! { main { section.answer aria-label="What went wrong" { p.lead { (why) } } } };
    document(&[to_list()], title, &html! {}, &content)
}

/// A chart of one or a few lines, drawn like the charts of reports; empty if there are too few points for a line. An
/// axis has a label and a unit.
pub(super) fn chart(
    kind: Kind,
    id: &'static str,
    title: &str,
    x: Axis,
    y: Axis,
    lines: Vec<(&str, Vec<Point>)>,
) -> Markup {
    if !lines.iter().any(|(_, points)| points.len() > 1) {
        return html! {};
    }
    let last: Vec<String> = lines
        .iter()
        .filter_map(|(name, points)| {
            let value = number(points.last()?.y);
            let unit = y.unit.unwrap_or_default();
            Some(format!("{name}: last {value} {unit}").trim_end().to_owned())
        })
        .collect();
    let known = lines.into_iter().filter(|(_, points)| !points.is_empty());
    let series = known.enumerate().map(|(place, (name, points))| Series {
        name: name.to_owned(),
        place,
        points,
        trace: Trace::Joined,
    });
    let figure = Figure {
        x,
        y,
        kind,
        series: series.collect(),
        ..Figure::empty(id, title.to_owned())
    };
    html! {
        figure id=(id) {
            h3 { (title) }
            div.pictures.few role="group" aria-label=(format!("{title}. {}", last.join("; "))) {
                (PreEscaped(Panels::of(&figure).svg(id)))
            }
        }
    }
}
