//! The pages: all runs, one run, its trials and their clients, a server over runs, and errors. They are complete
//! without their script, which only keeps them up to date.

mod chart;
pub(super) mod history;
pub(super) mod list;
pub(super) mod run;
pub(super) mod trial;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::address::{encoded, page_of};
use super::run_entry::State;
use throng_record::format::{harmless, whole};
use throng_report::glance::{Glance, Strip};
use throng_report::grade::Level;
use throng_report::render::page::markers;
use throng_report::render::strip::{named, strip};

/// The Content-Security-Policy: browsers refuse everything from elsewhere, and inline scripts and styles.
pub(super) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                                 img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Maximum number of servers, or of numbers of clients, to name; the rest are counted.
const NAMED: usize = 6;

/// Rows of a table per page.
pub(super) const ROWS: usize = 100;

fn document(title: &str, body: &Markup) -> Markup {
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
                (body)
                footer { "throng " (env!("CARGO_PKG_VERSION")) ", local and read-only." }
                div #tip role="status" hidden {}
            }
        }
    };
    PreEscaped(harmless(&page.into_string()))
}

/// The head of a page, with links to the levels above.
fn opening(up: &[(String, String)], title: &str, below: &Markup) -> Markup {
    html! {
        header.top {
            p.brand { "throng" span { "network servers under many concurrent clients" } }
            @if !up.is_empty() {
                nav.up aria-label="Up" { @for (to, name) in up { a href=(to) { (name) } span aria-hidden="true" { "›" } } }
            }
            h1 { (title) }
            (below)
        }
    }
}

/// The path from the list to a run, with a link for each directory on it that is also a run.
fn to_run(names: &[String]) -> Vec<(String, String)> {
    let last = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    let mut way = vec![("/".to_owned(), "All runs".to_owned())];
    way.extend(names.iter().map(|name| {
        let shown = if way_is_short(names, name) {
            name.clone()
        } else {
            last(name)
        };
        (page_of(name, ""), shown)
    }));
    way
}

/// Whether a name is the first of its path, and thus shown in full.
fn way_is_short(names: &[String], name: &String) -> bool {
    names.first() == Some(name)
}

fn badge(state: State) -> Markup {
    html! { span.state.(class(state)) { (state.text()) } }
}

fn class(state: State) -> &'static str {
    match state {
        State::Running => "running",
        State::Finished => "finished",
        State::Interrupted | State::HostLost | State::ServerFailed | State::Unfinished => "cut",
        State::Broken => "broken",
    }
}

/// The grade of a run, in one word.
fn grade(glance: &Glance) -> Markup {
    html! {
        @if let Some(level) = glance.grade {
            span.grade.(match level { Level::Good => "good", Level::Rough => "rough", Level::Unusable => "bad" })
                title=[glance.cause.as_deref()] { (level.text()) }
        }
    }
}

fn picture(small: &Strip) -> Markup {
    PreEscaped(strip(small))
}

/// The picture with names and values.
fn large(picture: &Strip) -> Markup {
    PreEscaped(named(picture))
}

/// "2026-01-01 12:00".
fn time(started_at: &str) -> String {
    let short: String = started_at.chars().take(16).collect();
    short.replace('T', " ")
}

/// The first few items, and how many more there are.
fn some<T: ToString>(all: &[T]) -> String {
    let mut words: Vec<String> = all.iter().take(NAMED).map(T::to_string).collect();
    if all.len() > NAMED {
        words.push(format!("{} more", all.len() - NAMED));
    }
    words.join(", ")
}

/// The first few numbers, and how many more there are.
fn numbers(all: &[u32]) -> String {
    let words: Vec<String> = all.iter().map(|number| whole((*number).into())).collect();
    some(&words)
}

/// The links between pages of rows; `to` is the URL without the page.
fn pages(to: &str, page: usize, all: usize) -> Markup {
    let last = all.div_ceil(ROWS).max(1);
    let sign = if to.contains('?') { '&' } else { '?' };
    html! {
        @if last > 1 {
            nav.pages aria-label="Pages" {
                @if page > 1 { a rel="prev" href=(format!("{to}{sign}page={}", page - 1)) { "Previous" } }
                span { "Page " (page) " of " (last) }
                @if page < last { a rel="next" href=(format!("{to}{sign}page={}", page + 1)) { "Next" } }
            }
        }
    }
}

/// The rows of a page; pages count from 1.
pub(super) fn of_page<T>(rows: &[T], page: usize) -> &[T] {
    let from = (page.saturating_sub(1))
        .saturating_mul(ROWS)
        .min(rows.len());
    &rows[from..rows.len().min(from + ROWS)]
}

/// The URL of a server's history.
fn to_history(server: &str, clients: Option<u32>) -> String {
    let clients = clients.map_or_else(String::new, |clients| format!("&clients={clients}"));
    format!("/history?server={}{clients}", encoded(server))
}

/// The page of an error.
pub(super) fn refusal(title: &str, why: &str) -> Markup {
    let body = html! {
        (opening(&to_run(&[]), title, &html! {}))
        main { section.answer aria-label="What went wrong" { p.lead { (why) } } }
    };
    document(title, &body)
}
