//! The report as one page that works without a network.

mod below;
pub(in crate::report) mod beside;
mod comparison;
mod events;
mod hosts;
mod limit;
mod scalability;
mod shown;
mod study;
mod table;

use std::io::Write;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{Exporter, command_line, facts, said};
use crate::record::Ending;
use crate::registry::{Entry, Info};
use crate::report::Report;
use crate::report::costs::{COSTS, NOTE as COSTS_NOTE};
use crate::report::figures::{Figure, Kind};
use crate::report::format::counted;
use crate::report::palette::{hex, look};
use crate::report::render::interactive;
use crate::report::study::StudyReport;
use shown::Shown;

/// What a browser is told to refuse: to load anything, or send anything anywhere.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data: blob:; base-uri 'none'; form-action 'none'";
pub(crate) const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// See the module.
pub(super) struct Html;

impl Entry for Html {
    fn info(&self) -> Info {
        Info {
            name: "html",
            summary: "the report as one page that works offline",
        }
    }
}

impl Exporter for Html {
    fn file_name(&self) -> &'static str {
        "report.html"
    }

    fn render(&self, report: &Report<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
        to.write_all(page(report).into_string().as_bytes())?;
        Ok(())
    }

    fn render_study(&self, report: &StudyReport<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
        to.write_all(study::page(report).into_string().as_bytes())?;
        Ok(())
    }
}

fn page(report: &Report<'_>) -> Markup {
    let shown = Shown::alone(report);
    let body = html! {
        (opening(&shown))
        main { (sections(&shown)) }
        footer { "Made by throng " (report.run.throng_version) "." }
    };
    let colours = colours(report.run.servers.len());
    document(
        &report.run.study.name,
        &colours,
        &body,
        !report.figures.is_empty(),
    )
}

/// A page with this body.
fn document(title: &str, colours: &str, body: &Markup, has_figures: bool) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – throng" }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) (PreEscaped(colours)) }
            }
            body {
                (body)
                @if has_figures {
                    script { (PreEscaped(interactive::script())) }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        }
    }
}

/// Everything that is said of a run, below its heading.
fn sections(report: &Shown<'_>) -> Markup {
    html! {
        (answer(report))
        @if let Some(compared) = &report.comparison { (comparison::sections(compared)) }
        @if let Some(limits) = &report.limits { (limit::section(report, limits)) }
        (table::section(report))
        (below::section(report))
        (scalability::section(report))
        (figures(report))
        (costs(report))
        (warnings(report))
        (failures(report))
        (conditions(report))
    }
}

/// One CSS variable a server, light and dark.
fn colours(servers: usize) -> String {
    let all = |hue: fn(usize) -> String| {
        let variables = (0..servers).map(|place| format!("--s{place}:{};", hue(place)));
        variables.collect::<Vec<_>>().concat()
    };
    format!(
        ":root{{{}}}@media (prefers-color-scheme:dark){{:root{{{}}}}}@media print{{:root{{{}}}}}",
        all(|place| hex(look(place).light)),
        all(|place| hex(look(place).dark)),
        all(|place| hex(look(place).light))
    )
}

/// The square or stripe in a server's colour.
fn swatch(report: &Shown<'_>, server: &str) -> Markup {
    let place = report
        .run
        .servers
        .iter()
        .position(|info| info.name == server)
        .unwrap_or(0);
    swatch_at(place)
}

/// The same for the look at a place.
fn swatch_at(place: usize) -> Markup {
    let class = if look(place).dashed {
        "swatch dashed"
    } else {
        "swatch"
    };
    html! { span class=(class) style=(format!("--hue:var(--s{place})")) aria-hidden="true" {} }
}

fn opening(report: &Shown<'_>) -> Markup {
    let run = report.run;
    let (servers, loads) = (
        run.servers.len() as u32,
        report.summary.clients.len() as u32,
    );
    html! {
        header.top {
            p.brand { "throng" span { "how a server holds up under a crowd" } }
            h1 { (run.study.name) }
            p.question { (run.study.question) }
            p.facts {
                span { (counted(servers, "server")) }
                @if loads > 0 { span { (counted(loads, "load")) } }
                span { (counted(report.summary.trials_run, "trial")) }
                span { (said(run)) }
                span { (run.host.kernel) ", " (counted(run.host.cpus, "CPU")) }
                span { time datetime=(run.started_at) { (run.started_at) } }
                (ending(run.ending))
            }
        }
    }
}

/// That a run is not whole.
fn ending(ending: Ending) -> Markup {
    html! {
        @match ending {
            Ending::Complete => {}
            Ending::Interrupted => span.alert { "interrupted" },
            Ending::HostLost => span.alert { "client host lost" },
            Ending::Unfinished => span.alert { "unfinished" },
        }
    }
}

fn answer(report: &Shown<'_>) -> Markup {
    let answer = &report.answer;
    html! {
        section.answer aria-labelledby=(report.named_by("answer")) {
            h2 id=(report.id("answer")) { "The answer" }
            @for (place, sentence) in answer.headline.iter().enumerate() {
                p.(if place == 0 { "lead" } else { "point" }) { (sentence) }
            }
            @if !answer.others.is_empty() {
                h3 { "With fewer clients" }
                ul { @for sentence in &answer.others { li { (sentence) } } }
            }
            @if !answer.notes.is_empty() {
                div.notes { @for note in &answer.notes { p { (note) } } }
            }
        }
    }
}

fn costs(report: &Shown<'_>) -> Markup {
    if !report.has_costs() {
        return hosts::section(report);
    }
    html! {
        section.costs aria-labelledby=(report.named_by("costs")) {
            h2 id=(report.id("costs")) { "What a request costs" }
            p.hint { (COSTS_NOTE) }
            (table::grouped(report, COSTS, "What a request costs, for each server and number of clients"))
            @for (what, why) in &report.not_here {
                div.warning { p { "Not here: " (what) ": " (why.reason) "." } p.remedy { (why.remedy) } }
            }
        }
        (events::section(report))
        (hosts::section(report))
    }
}

fn figures(report: &Shown<'_>) -> Markup {
    if report.figures.is_empty() {
        return html! {};
    }
    let otherwise = |figure: &Figure| report.picture(figure) + " beside this page does not";
    html! {
        section aria-labelledby=(report.named_by("figures")) data-figures=(report.prefix()) {
            script type="application/json" { (PreEscaped(interactive::data(&report.figures))) }
            h2 id=(report.id("figures")) { "Figures" }
            (key(report.run.servers.iter().enumerate().map(|(place, server)| (vec![place], server.name.as_str()))))
            (plots(&report.prefix(), &otherwise, report.figures.iter().filter(|figure| !figure.is_over_time())))
            @if report.figures.iter().any(Figure::is_over_time) {
                h2.later { "Over time" }
                p.hint {
                    "One trial of each server "
                    @match report.summary.clients.last() {
                        Some(clients) => { "with " (counted(*clients, "client")) }
                        None => { "at its limit" }
                    }
                    ". Replies count from 0 s on; what is left of it is connecting and warm-up."
                }
                (plots(&report.prefix(), &otherwise, report.figures.iter().filter(|figure| figure.is_over_time())))
            }
        }
    }
}

/// What hides and shows servers in figures: each with the places that it has in them.
fn key<'a>(servers: impl Iterator<Item = (Vec<usize>, &'a str)>) -> Markup {
    let text = |places: &[usize]| {
        let places: Vec<String> = places.iter().map(usize::to_string).collect();
        places.join(" ")
    };
    html! {
        p.hint { "Click a server to hide or show it everywhere, double-click to see it alone. Drag in a figure to zoom, double-click in it to go back." }
        div.key role="group" aria-label="Servers shown in the figures" {
            @for (places, name) in servers {
                button type="button" aria-pressed="true" data-server=(text(&places)) {
                    @for place in &places { (swatch_at(*place)) }
                    (name)
                }
            }
        }
    }
}

/// Figures whose ids begin with `prefix`; `otherwise` says what there is where they cannot be drawn.
fn plots<'a>(
    prefix: &str,
    otherwise: &dyn Fn(&Figure) -> String,
    figures: impl Iterator<Item = &'a Figure>,
) -> Markup {
    html! {
        div.figures {
            @for figure in figures {
                figure.(if is_wide(figure) { "wide" } else { "half" }) {
                    h3 { (figure.title) }
                    div.plot.(if figure.kind == Kind::Course { "low" } else { "high" }) id=(format!("{prefix}plot-{}", figure.id)) style=[height(figure)] role="img" aria-label=(figure.alternative) {
                        noscript { "This figure needs JavaScript; " (otherwise(figure)) "." }
                    }
                    figcaption { (figure.caption) }
                }
            }
        }
    }
}

/// Whether it takes all the width: many points, and names beside or below each other.
fn is_wide(figure: &Figure) -> bool {
    match figure.kind {
        Kind::Points | Kind::Stacked | Kind::Heat => true,
        Kind::Bars => figure.y.log,
        Kind::Lines | Kind::Course => false,
    }
}

/// Lying bars and maps below each other need room by their number.
fn height(figure: &Figure) -> Option<String> {
    let height = match figure.kind {
        Kind::Stacked => 140 + 27 * figure.series.len(),
        Kind::Heat => 70 + 104 * figure.maps.len(),
        Kind::Lines | Kind::Course | Kind::Points | Kind::Bars => return None,
    };
    Some(format!("height:{height}px"))
}

fn warnings(report: &Shown<'_>) -> Markup {
    let of_trials: Vec<_> = report
        .trials
        .iter()
        .flat_map(|trial| trial.warnings.iter().map(move |warning| (trial, warning)))
        .collect();
    if report.run.warnings.is_empty() && of_trials.is_empty() {
        return html! {};
    }
    html! {
        section aria-labelledby=(report.named_by("warnings")) {
            h2 id=(report.id("warnings")) { "Warnings" }
            @for warning in &report.run.warnings {
                div.warning { p { (warning.message) } p.remedy { (warning.remedy) } }
            }
            @if !of_trials.is_empty() {
                details {
                    summary { "Of single trials (" (of_trials.len()) ")" }
                    ul {
                        @for (trial, warning) in &of_trials {
                            li { b { (trial.server) } ", " (counted(trial.clients, "client")) ", " (trial.occasion()) ": " (warning.message) " – " (warning.remedy) }
                        }
                    }
                }
            }
        }
    }
}

fn failures(report: &Shown<'_>) -> Markup {
    let failed: Vec<_> = report
        .trials
        .iter()
        .filter_map(|trial| Some((trial, trial.failure.as_ref()?)))
        .collect();
    if failed.is_empty() {
        return html! {};
    }
    html! {
        section aria-labelledby=(report.named_by("failed")) {
            h2 id=(report.id("failed")) { "Failed trials" }
            @for (trial, failure) in failed {
                details.failure {
                    summary {
                        (swatch(report, &trial.server)) b { (trial.server) } ", " (counted(trial.clients, "client"))
                        ", " (trial.occasion()) ": " (failure.reason)
                    }
                    p { "Stage: " (failure.stage) "." }
                    @if failure.output.is_empty() { p { "There was no output." } }
                    @else { pre { (failure.output) } }
                }
            }
        }
    }
}

/// What nobody needs until figures are odd, or two machines differ.
fn machine(report: &Shown<'_>) -> Markup {
    let host = &report.run.host;
    let groups = [
        ("Kernel settings", &host.sysctls),
        ("Limits", &host.limits),
        ("Mitigations", &host.mitigations),
    ];
    if groups.iter().all(|(_, values)| values.is_empty()) {
        return html! {};
    }
    html! {
        details {
            summary { "More about the machine: kernel settings, limits, mitigations" }
            @for (title, values) in groups {
                @if !values.is_empty() {
                    h3 { (title) }
                    dl.machine {
                        @for (name, value) in values { div { dt { (name) } dd { (value) } } }
                    }
                }
            }
        }
    }
}

fn conditions(report: &Shown<'_>) -> Markup {
    html! {
        section aria-labelledby=(report.named_by("conditions")) {
            h2 id=(report.id("conditions")) { "Settings and machine" }
            dl.settings {
                @for (name, value) in facts(report.run) { div { dt { (name) } dd { (value) } } }
            }
            (machine(report))
            h3 { "Servers" }
            dl.servers {
                @for server in &report.run.servers {
                    div {
                        dt { (swatch(report, &server.name)) (server.name) }
                        dd {
                            (server.summary)
                            @if let Some(limit) = &server.structural_limit { "; limited to " (limit) }
                            code { (command_line(&server.command)) }
                        }
                    }
                }
            }
        }
        section aria-labelledby=(report.named_by("repeat")) {
            h2 id=(report.id("repeat")) { "How to repeat" }
            pre { (command_line(&report.run.arguments)) }
            p.hint { "The same seed gives the same order of trials. This page comes from run.json and trials.jsonl beside it; summary.json has its numbers." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Logs, fixture};

    #[test]
    fn nothing_from_outside_is_read_as_html() {
        const EVIL: &str = "<script>alert(1)</script>";
        let (mut run, mut trials) = fixture::record();
        let mut logs = fixture::logs(&run);
        run.servers[8].name = EVIL.to_owned();
        run.study.question = EVIL.to_owned();
        run.arguments.push(EVIL.to_owned());
        run.warnings[0].message = EVIL.to_owned();
        logs.series[8].server = EVIL.to_owned();
        logs.clients[8].server = EVIL.to_owned();
        for trial in trials.iter_mut().filter(|trial| trial.server == "io-uring") {
            trial.server = EVIL.to_owned();
        }
        trials[1].failure = Some(crate::record::Failure {
            output: EVIL.to_owned(),
            ..fixture::failure()
        });
        let report = Report::of(&run, &trials, &logs).unwrap();
        let page = page(&report).into_string();
        assert!(!page.contains(EVIL));
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
        let scripts =
            page.matches("<script").count() - interactive::script().matches("<script").count();
        assert_eq!(scripts, 3, "data, plotly.js once and the page's own");
    }

    #[test]
    fn the_page_asks_nothing_of_the_network() {
        let (run, trials) = fixture::record();
        let page = page(&Report::of(&run, &trials, &Logs::default()).unwrap()).into_string();
        let ours = page.replace(&interactive::script(), "");
        assert!(!ours.contains("http:") && !ours.contains("https:") && !ours.contains("@import"));
    }
}
