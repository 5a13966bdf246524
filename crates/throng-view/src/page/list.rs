//! The list of all runs, each with its picture, its grade and its answer.

use maud::{Markup, html};

use super::{badge, document, grade, numbers, of_page, opening, pages, picture, some, time};
use crate::address::{encoded, page_of, value};
use crate::glances::GlanceState;
use crate::run_entry::{RunEntry, State};
use throng_record::format::{ABSENT, counted};

/// The sort orders of the list: name in URLs, and heading.
const SORTED: [(&str, &str); 5] = [
    ("started", "Started"),
    ("name", "Run"),
    ("study", "Study"),
    ("host", "Host"),
    ("state", "State"),
];

/// A query for runs, and their sort order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Choice {
    /// Words that the entry of a run must contain.
    words: String,
    sort: String,
    page: usize,
}

impl Choice {
    pub(crate) fn of(query: &str) -> Self {
        let text = |name| value(query, name).unwrap_or_default();
        Self {
            words: text("q"),
            sort: text("sort"),
            page: text("page").parse().unwrap_or(1).max(1),
        }
    }

    /// The matching runs, in order.
    pub(crate) fn chosen(&self, mut runs: Vec<RunEntry>) -> Vec<RunEntry> {
        let words: Vec<String> = self
            .words
            .split_whitespace()
            .map(str::to_lowercase)
            .collect();
        runs.retain(|run| {
            let text = words_of(run);
            words.iter().all(|word| text.contains(word))
        });
        match self.sort.as_str() {
            "name" => runs.sort_by(|one, other| one.name.cmp(&other.name)),
            "study" => runs.sort_by(|one, other| one.study.cmp(&other.study)),
            "host" => runs.sort_by(|one, other| one.machine.cmp(&other.machine)),
            "state" => runs.sort_by_key(|run| run.state.text()),
            _ => {}
        }
        runs
    }

    /// The matching runs on this page.
    pub(crate) fn shown<'a>(&self, chosen: &'a [RunEntry]) -> &'a [RunEntry] {
        of_page(chosen, self.page)
    }

    /// The URL of the list in another sort order.
    fn sorted_by(&self, sort: &str) -> String {
        format!("/?q={}&sort={sort}", encoded(&self.words))
    }

    fn is_sorted_by(&self, sort: &str) -> bool {
        self.sort == sort || sort == "started" && !SORTED.iter().any(|(name, _)| *name == self.sort)
    }
}

/// The text of a run that queries search.
fn words_of(run: &RunEntry) -> String {
    let mut words = vec![
        run.name.as_str(),
        run.state.text(),
        &run.study,
        &run.question,
        &run.started_at,
        &run.machine,
        &run.throng,
    ];
    words.extend(run.servers.iter().map(String::as_str));
    words.join(" ").to_lowercase()
}

/// The number of runs, regardless of the query.
pub(crate) struct Counts {
    pub(crate) runs: usize,
    pub(crate) running: usize,
    pub(crate) left_out: usize,
    pub(crate) not_all: bool,
}

/// The page.
pub(crate) fn page(
    directory: &str,
    counts: &Counts,
    choice: &Choice,
    chosen: usize,
    shown: &[(&RunEntry, GlanceState)],
) -> Markup {
    let all = u32::try_from(counts.runs).unwrap_or(u32::MAX);
    let below = html! {
        p.facts {
            span { (directory) }
            span #count { (counted(all, "run")) }
            span #running { (counts.running) " running" }
            span { a href="/history" { "Server history" } }
        }
    };
    let waits = shown
        .iter()
        .any(|(run, glanced)| matches!(glanced, GlanceState::Waiting) && is_read(run));
    let body = html! {
        (opening(&[], "Runs", &below))
        main #list data-running=(counts.running > 0 || waits) {
            @if counts.runs == 0 {
                p.hint { "No runs yet. " code { "throng run" } " creates one." }
            }
            form.tools role="search" action="/" method="get" {
                label { "Filter " input type="search" name="q" id="filter" value=(choice.words) autocomplete="off"; }
                input type="hidden" name="sort" value=(choice.sort);
                button type="submit" { "Show" }
                span #found role="status" { @if chosen != counts.runs { (counted(u32::try_from(chosen).unwrap_or(u32::MAX), "run")) " found" } }
            }
            nav.sorts aria-label="Order" {
                "Sort by "
                @for (sort, title) in SORTED {
                    a href=(choice.sorted_by(sort)) aria-current=[choice.is_sorted_by(sort).then_some("true")] { (title) } " "
                }
            }
            form.runs action="/compare" method="get" {
                div.tools {
                    button #compare type="submit" { "Compare two runs" }
                    span #chosen role="status" {}
                }
                ul.list aria-label="Runs" { @for (run, glanced) in shown { (line(run, glanced)) } }
            }
            (pages(&format!("/?q={}&sort={}", encoded(&choice.words), encoded(&choice.sort)), choice.page, chosen))
            @if counts.left_out > 0 { p.hint { (counts.left_out) " older runs are not listed." } }
            @if counts.not_all {
                p.hint { "Some directories were too deep or too many to search; start throng view in one of them." }
            }
        }
    };
    document("Runs", &body)
}

/// Whether a run gets a summary: no report is made while it is in progress.
pub(crate) fn is_read(run: &RunEntry) -> bool {
    run.problem.is_none() && run.state != State::Running && !run.study.is_empty()
}

fn line(run: &RunEntry, glanced: &GlanceState) -> Markup {
    let glance = glanced.known();
    html! {
        li.run data-run=(run.name) data-state=(run.state.text()) {
            div.pick {
                @if is_read(run) {
                    input type="checkbox" name="run" value=(run.name) aria-label=(format!("Compare {}", run.name));
                }
            }
            div.says {
                p.sentence {
                    @if let Some(problem) = &run.problem { span.problem { (problem) } }
                    @else if run.state == State::Running { (far(run)) }
                    @else {
                        @match glanced {
                            GlanceState::Known(glance) => (glance.sentence),
                            GlanceState::Waiting => span.quiet { "Reading trials …" },
                            GlanceState::Failed(why) => span.problem { (why) },
                        }
                    }
                }
                p.of {
                    a href=(page_of(&run.name, "")) { (run.name) }
                    @if run.state == State::Running || run.state == State::Finished && glance.is_some_and(|glance| glance.grade.is_some()) {} @else { (badge(run.state)) }
                    @if run.state == State::Running { (badge(run.state)) } @else if let Some(glance) = glance { (grade(glance)) }
                    @if !run.study.is_empty() {
                        @if !run.name.contains(&run.study) { span { (run.study) } }
                        @if run.parts > 0 { span { (counted(run.parts, "part")) } }
                    }
                    @if !run.servers.is_empty() { span { (some(&run.servers)) } }
                    @if !run.clients.is_empty() { span { (numbers(&run.clients)) " clients" } }
                    @if run.warnings > 0 { span { (counted(run.warnings, "warning")) } }
                }
            }
            div.drawn {
                @if let Some(small) = glance.and_then(|glance| glance.strip.as_ref()) { (picture(small)) small { (small.title) } }
            }
            div.made {
                @if run.started_at.is_empty() { (ABSENT) } @else { time datetime=(run.started_at) { (time(&run.started_at)) } }
                @if !run.machine.is_empty() { small { (run.machine) } }
                @if !run.throng.is_empty() { small { "throng " (run.throng) } }
            }
        }
    }
}

/// "7 of 23 trials", with a bar.
fn far(run: &RunEntry) -> Markup {
    html! {
        @match run.planned {
            Some(planned) => {
                "Running: " (run.trials) " of " (planned) " trials"
                progress max=(planned.max(1)) value=(run.trials.min(planned)) aria-label=(format!("Trials of {}", run.name)) {}
            },
            None => { "Running: " (counted(u32::try_from(run.trials).unwrap_or(u32::MAX), "trial")) " so far" },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::ROWS;

    #[test]
    fn runs_are_found_by_their_words_sorted_and_cut_into_pages() {
        let run = |number: usize| RunEntry {
            name: format!("2026/run-{number:03}"),
            study: ["overview", "fairness"][number % 2].to_owned(),
            servers: vec![format!("server-{}", number % 10)],
            ..RunEntry::starting("")
        };
        let runs: Vec<RunEntry> = (0..2 * ROWS + 10).map(run).collect();
        let names = |query: &str| -> Vec<String> {
            let choice = Choice::of(query);
            let chosen = choice.chosen(runs.clone());
            let shown = choice.shown(&chosen).iter();
            shown.map(|run| run.name.clone()).collect()
        };
        assert_eq!(names("").len(), ROWS);
        assert_eq!(names("page=3").len(), 10);
        assert_eq!(names("page=3")[0], format!("2026/run-{}", 2 * ROWS));
        assert!(names("page=99999999999999999999").len() == ROWS && names("page=4").is_empty());
        assert_eq!(names("q=SERVER-3+fair+run-013"), ["2026/run-013"]);
        assert_eq!(names("sort=study")[0], "2026/run-001");
        assert!(names("q=nothing").is_empty());
    }
}
