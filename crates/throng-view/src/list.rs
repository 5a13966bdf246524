//! The list of all runs, each with its grade and its answer.

use maud::{Markup, html};

use super::address::{encoded, has_words, number, page_of, value};
use super::page::{badge, count, document, grade, of_page, pages, some, time};
use super::response::{Answer, whole};
use super::runs::{Listing, RunEntry, Runs, State};
use throng_record::format::{ABSENT, counted, whole as grouped};

/// The runs that contain all words of a query.
fn chosen(mut runs: Vec<RunEntry>, words: &str) -> Vec<RunEntry> {
    runs.retain(|run| {
        let servers = run.servers.join(" ");
        let of_run = [
            &run.name,
            run.state.text(),
            &run.study,
            &run.question,
            &run.started_at,
            &run.machine,
            &run.throng,
            &servers,
        ];
        has_words(&of_run.join(" "), words)
    });
    runs
}

/// The page.
pub(super) fn page(runs: &Runs, query: &str) -> Answer {
    let Listing {
        runs: all,
        left_out,
        not_all,
    } = runs.list()?;
    let words = value(query, "q").unwrap_or_default();
    let page = number(query, "page").unwrap_or(1) as usize;
    let in_all = all.len();
    let running = all.iter().filter(|run| run.state == State::Running).count();
    let chosen = chosen(all, &words);
    let mut shown = of_page(&chosen, page).to_vec();
    runs.add_glances(&mut shown);
    let waits = shown
        .iter()
        .any(|run| run.is_read() && run.glance.is_none());
    // What all have in common is above the list.
    let machine = shared(shown.iter().map(|run| &*run.machine));
    let throng = shared(shown.iter().map(|run| &*run.throng));
    let facts = html! {
        @let whole = std::path::absolute(&runs.directory);
        span { (whole.as_ref().unwrap_or(&runs.directory).display()) }
        span #count { (count(in_all, "run")) }
        span #running { (running) " running" }
        @if let Some(machine) = machine { span { (machine) } }
        @if let Some(throng) = throng { span { "throng " (throng) } }
        span { a href="/history" { "Server history" } }
    };
    let content = html! {
        main #list data-running=(running > 0 || waits) {
            @if in_all == 0 {
                p.hint { "No runs yet. " code { "throng run" } " creates one." }
            }
            form.tools role="search" action="/" method="get" {
                label { "Filter " input type="search" name="q" id="filter" value=(words) autocomplete="off"; }
                button type="submit" { "Show" }
                span #found role="status" { @if chosen.len() != in_all { (count(chosen.len(), "run")) " found" } }
            }
            form.runs action="/compare" method="get" {
                div.tools {
                    button #compare type="submit" { "Compare two runs" }
                    span #chosen role="status" {}
                }
                ul.list aria-label="Runs" { @for run in &shown {
                    (line(run, machine.is_none(), throng.is_none()))
                } }
            }
            (pages(&format!("/?q={}", encoded(&words)), page, chosen.len()))
            @if left_out > 0 { p.hint { (left_out) " older runs are not listed." } }
            @if not_all {
                p.hint { "Some directories were too deep or too many to search; start throng view in one of them." }
            }
        }
    };
    Ok(whole(&document(&[], "Runs", &facts, &content)))
}

/// The value that all have, if it is not empty.
fn shared<'a>(mut values: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let first = values.next().filter(|first| !first.is_empty())?;
    values.all(|value| value == first).then_some(first)
}

/// A run, with its machine and throng unless they are those of all.
fn line(run: &RunEntry, has_machine: bool, has_throng: bool) -> Markup {
    html! {
        li.run data-run=(run.name) data-state=(run.state.text()) {
            div.pick {
                @if run.is_read() {
                    input type="checkbox" name="run" value=(run.name) aria-label=(format!("Compare {}", run.name));
                }
            }
            (says(run, &run.name))
            div.made {
                @if run.started_at.is_empty() { (ABSENT) } @else { (time(&run.started_at)) }
                @if has_machine && !run.machine.is_empty() { small { (run.machine) } }
                @if has_throng && !run.throng.is_empty() { small { "throng " (run.throng) } }
            }
        }
    }
}

/// The answer of a run, and its name with what it is about.
pub(super) fn says(run: &RunEntry, name: &str) -> Markup {
    html! {
        div.says {
            p.sentence {
                @if let Some(problem) = &run.problem { span.problem { (problem) } }
                @else if run.state == State::Running { (progress(run)) }
                @else {
                    @match &run.glance {
                        Some(Ok(glance)) => (glance.sentence),
                        Some(Err(why)) => span.problem { (why) },
                        None => span.quiet { "Reading trials …" },
                    }
                }
            }
            p.of {
                a href=(page_of(&run.name, "")) { (name) }
                (standing(run))
                @if !run.study.is_empty() && !run.name.contains(&run.study) { span { (run.study) } }
                @if !run.parts.is_empty() { span { (count(run.parts.len(), "part")) } }
                @if !run.servers.is_empty() { span { (some(&run.servers)) } }
                @if !run.clients.is_empty() {
                    span { (some(run.clients.iter().map(|clients| grouped((*clients).into())))) " clients" }
                }
                @if run.warnings > 0 { span { (counted(run.warnings, "warning")) } }
            }
        }
    }
}

/// The state of a run unless it is finished, and its grade.
pub(super) fn standing(run: &RunEntry) -> Markup {
    let glance = run.glance.as_ref().and_then(|glance| glance.as_ref().ok());
    let is_graded = glance.is_some_and(|glance| glance.grade.is_some());
    html! {
        @if run.state != State::Finished || !is_graded { (badge(run.state)) }
        @if let Some(glance) = glance { (grade(glance)) }
    }
}

/// "7 of 23 trials", with a bar.
fn progress(run: &RunEntry) -> Markup {
    html! {
        @match run.planned {
            Some(planned) => {
                "Running: " (run.trials) " of " (planned) " trials"
                progress max=(planned.max(1)) value=(run.trials.min(planned)) aria-label=(format!("Trials of {}", run.name)) {}
            },
            None => { "Running: " (count(run.trials as usize, "trial")) " so far" },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::ROWS;

    #[test]
    fn runs_are_found_by_their_words_and_cut_into_pages() {
        let run = |number: usize| RunEntry {
            name: format!("2026/run-{number:03}"),
            study: ["overview", "fairness"][number % 2].to_owned(),
            servers: vec![format!("server-{}", number % 10)],
            ..RunEntry::default()
        };
        let runs: Vec<RunEntry> = (0..2 * ROWS + 10).map(run).collect();
        let names = |words: &str, page| -> Vec<String> {
            let chosen = chosen(runs.clone(), words);
            let shown = of_page(&chosen, page).iter();
            shown.map(|run| run.name.clone()).collect()
        };
        assert_eq!(names("", 1).len(), ROWS);
        assert_eq!(names("", 3).len(), 10);
        assert_eq!(names("", 3)[0], format!("2026/run-{}", 2 * ROWS));
        assert!(names("", 0).len() == ROWS && names("", 4).is_empty());
        assert_eq!(names("SERVER-3 fair run-013", 1), ["2026/run-013"]);
        assert!(names("nothing", 1).is_empty());
    }
}
