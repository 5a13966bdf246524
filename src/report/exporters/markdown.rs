//! The report as Markdown, for READMEs and merge requests.

pub(in crate::report) mod beside;
mod study;

use std::io::Write;

use super::{Exporter, command_line, facts};
use crate::registry::{Entry, Info};
use crate::report::Report;
use crate::report::below::{NOTE as BELOW_NOTE, Table};
use crate::report::columns::{COLUMNS, Column};
use crate::report::comparison::{Comparison, Measured, Pair};
use crate::report::costs::{COSTS, NOTE};
use crate::report::events::{self, Cell, Mark};
use crate::report::format::{counted, shown, whole};
use crate::report::hosts;
use crate::report::limit::{self, Limits};
use crate::report::scalability::columns as scalability;
use crate::report::study::StudyReport;

/// See the module.
pub(super) struct Markdown;

impl Entry for Markdown {
    fn info(&self) -> Info {
        Info {
            name: "markdown",
            summary: "the report as Markdown, with still figures",
        }
    }
}

impl Exporter for Markdown {
    fn file_name(&self) -> &'static str {
        "report.md"
    }

    fn render(&self, report: &Report<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
        let run = report.run;
        writeln!(
            to,
            "# {}\n\n{}\n",
            escape(&run.study.name),
            escape(&run.study.question)
        )?;
        sections(report, "", to)
    }

    fn render_study(&self, report: &StudyReport<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
        study::write(report, to)
    }
}

/// Everything that is said of a run, below its heading; figures lie in `directory`.
fn sections(report: &Report<'_>, directory: &str, to: &mut dyn Write) -> anyhow::Result<()> {
    let run = report.run;
    writeln!(to, "## Answer\n")?;
    for sentence in report.answer.sentences() {
        writeln!(to, "- {}", escape(sentence))?;
    }
    if let Some(comparison) = &report.comparison {
        compared(comparison, to)?;
    }
    if let Some(limits) = &report.limits {
        tried(limits, to)?;
    }
    results(report, to)?;
    below(report, to)?;
    scalability(report, to)?;
    if !report.figures.is_empty() {
        writeln!(to, "\n## Figures")?;
        for figure in &report.figures {
            writeln!(
                to,
                "\n### {}\n\n![{}]({directory}figures/{}.svg)\n\n{}",
                figure.title,
                escape(&figure.alternative),
                figure.id,
                figure.caption
            )?;
        }
    }
    costs(report, to)?;
    if !run.warnings.is_empty() {
        writeln!(to, "\n## Warnings\n")?;
        for warning in &run.warnings {
            writeln!(
                to,
                "- {}. *What to do:* {}.",
                escape(&warning.message),
                escape(&warning.remedy)
            )?;
        }
    }
    writeln!(to, "\n## Settings and machine\n\n| | |\n|---|---|")?;
    for (name, value) in facts(run) {
        writeln!(to, "| {name} | {} |", escape(&value))?;
    }
    failures(report, to)?;
    writeln!(
        to,
        "\n## How to repeat\n\n{}",
        fenced(&command_line(&run.arguments))
    )?;
    Ok(())
}

/// The servers beside the one that they are compared with, and what was demanded.
fn compared(comparison: &Comparison, to: &mut dyn Write) -> anyhow::Result<()> {
    if comparison.all_pairs().next().is_some() {
        writeln!(to, "\n## Comparison")?;
    }
    for pair in comparison.all_pairs() {
        of_pair(pair, to)?;
    }
    demanded(comparison, to)
}

/// A pair in a table.
fn of_pair(pair: &Pair, to: &mut dyn Write) -> anyhow::Result<()> {
    let (server, reference) = (&pair.server, &pair.reference);
    let clients = counted(pair.clients, "client");
    writeln!(
        to,
        "\n### {} and {}, {clients}",
        escape(server),
        escape(reference)
    )?;
    measures(reference, server, &pair.measures, to)
}

/// The lines of such a table.
fn measures(
    reference: &str,
    server: &str,
    measures: &[Measured],
    to: &mut dyn Write,
) -> anyhow::Result<()> {
    let (server, reference) = (escape(server), escape(reference));
    writeln!(
        to,
        "\n| | {reference} | {server} | Ratio (95 %) | {server} is |\n|---|---:|---:|---:|---|"
    )?;
    for measured in measures {
        writeln!(
            to,
            "| {} | {} |",
            measured.title,
            measured.cells().join(" | ")
        )?;
    }
    Ok(())
}

/// What was demanded.
fn demanded(comparison: &Comparison, to: &mut dyn Write) -> anyhow::Result<()> {
    if !comparison.demands.is_empty() {
        writeln!(
            to,
            "\n## Thresholds\n\n| Server | Clients | Fail if | Seen | |\n|---|---:|---|---|---|"
        )?;
    }
    for judged in &comparison.demands {
        writeln!(
            to,
            "| {} | {} | {} | {} | {} |",
            escape(&judged.server),
            judged.clients,
            escape(&judged.demand),
            escape(&judged.seen),
            judged.word()
        )?;
    }
    Ok(())
}

/// What was tried of each server.
fn tried(limits: &Limits, to: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(to, "\n## Tries")?;
    for server in &limits.servers {
        let columns: Vec<_> = limit::COLUMNS
            .iter()
            .filter(|column| column.has_data(&server.tries))
            .collect();
        let titles: Vec<&str> = columns.iter().map(|column| column.title).collect();
        writeln!(
            to,
            "\n### {}\n\n| {} | {} | | |\n|---:|{}---|---|",
            escape(&server.server),
            limits.unit(),
            titles.join(" | "),
            "---:|".repeat(columns.len())
        )?;
        for one in &server.tries {
            let cells: Vec<String> = columns.iter().map(|column| (column.text)(one)).collect();
            writeln!(
                to,
                "| {} | {} | {} | {} |",
                whole(one.value as f64),
                cells.join(" | "),
                one.verdict(),
                escape(&one.reasons.join("; "))
            )?;
        }
    }
    Ok(())
}

fn results(report: &Report<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
    if report.summary.rows.is_empty() {
        return Ok(());
    }
    writeln!(
        to,
        "\n## Results\n\nThe best of each column is bold, among servers that served all clients."
    )?;
    tables(report, COLUMNS, to)
}

/// Response times at parts of the rate that each server reached.
fn below(report: &Report<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
    let Some(table) = Table::of(&report.summary) else {
        return Ok(());
    };
    writeln!(to, "\n## Below the maximum\n\n{BELOW_NOTE}")?;
    for (clients, lines) in &table.groups {
        writeln!(to, "\n### {}\n", counted(*clients, "client"))?;
        writeln!(to, "| Server | {} |", table.titles.join(" | "))?;
        writeln!(to, "|---|{}", "---:|".repeat(table.titles.len()))?;
        for (server, cells) in lines {
            write!(to, "| {} |", escape(server))?;
            for cell in cells {
                match cell.detail.as_str() {
                    "" => write!(to, " {} |", cell.text)?,
                    detail => write!(to, " {} ({detail}) |", cell.text)?,
                }
            }
            writeln!(to)?;
        }
    }
    Ok(())
}

fn costs(report: &Report<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
    if !report.has_costs() {
        return hosts(report, to);
    }
    writeln!(to, "\n## What a request costs\n\n{NOTE}")?;
    tables(report, COSTS, to)?;
    for (what, why) in &report.not_here {
        writeln!(
            to,
            "\nNot here: {}: {}. *What to do:* {}.",
            escape(what),
            escape(&why.reason),
            escape(&why.remedy)
        )?;
    }
    events(report, to)?;
    hosts(report, to)
}

/// What each client host had of a load.
fn hosts(report: &Report<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
    let tables = hosts::tables(report);
    if !tables.is_empty() {
        writeln!(to, "\n## Client hosts\n\n{}", hosts::NOTE)?;
    }
    for table in &tables {
        writeln!(to, "\n### {}\n", escape(&table.title))?;
        for note in &table.notes {
            writeln!(to, "{}\n", escape(note))?;
        }
        let columns = hosts::COLUMNS;
        let lines = "---:|".repeat(columns.len() - 1);
        writeln!(to, "| {} |\n|---|{lines}", columns.join(" | "))?;
        for row in table.rows.iter().chain(&table.total) {
            let cells: Vec<String> = row.iter().map(|cell| escape(cell)).collect();
            writeln!(to, "| {} |", cells.join(" | "))?;
        }
    }
    Ok(())
}

/// The events that were counted on both sides.
fn events(report: &Report<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
    let tables = events::tables(report);
    if !tables.is_empty() {
        writeln!(
            to,
            "\n## Counters, both sides\n\n{} The best is bold, the worst in italics.",
            events::NOTE
        )?;
    }
    for table in &tables {
        let servers: Vec<String> = table.servers.iter().map(|server| escape(server)).collect();
        writeln!(
            to,
            "\n### {}: {}\n\n| Event | {} |\n|---|{}",
            counted(table.clients, "client"),
            table.side,
            servers.join(" | "),
            "---:|".repeat(servers.len())
        )?;
        for row in &table.rows {
            let cells: Vec<String> = row.cells.iter().map(event).collect();
            writeln!(to, "| {} | {} |", row.title, cells.join(" | "))?;
        }
    }
    Ok(())
}

fn event(cell: &Cell) -> String {
    let text = escape(&cell.text);
    let text = match cell.mark {
        Mark::Best => format!("**{text}**"),
        Mark::Worst => format!("*{text}*"),
        Mark::None => text,
    };
    match &*cell.detail {
        "" => text,
        detail => format!("{text} ({})", escape(detail)),
    }
}

/// The rows with those of `columns` that have anything to show.
fn tables(report: &Report<'_>, columns: &[Column], to: &mut dyn Write) -> anyhow::Result<()> {
    let columns: Vec<_> = columns
        .iter()
        .filter(|column| column.has_data(&report.summary))
        .collect();
    if columns.is_empty() {
        return Ok(());
    }
    for clients in &report.summary.clients {
        writeln!(to, "\n### {}\n", counted(*clients, "client"))?;
        let titles: Vec<&str> = columns.iter().map(|column| column.title).collect();
        writeln!(to, "| Server | {} |", titles.join(" | "))?;
        writeln!(to, "|---|{}", "---:|".repeat(columns.len()))?;
        let best: Vec<Option<f64>> = columns
            .iter()
            .map(|column| column.best_of(&report.summary, *clients))
            .collect();
        for row in report.summary.rows_at(*clients) {
            write!(to, "| {} |", escape(&row.server))?;
            for (column, best) in columns.iter().zip(&best) {
                let (text, detail) = ((column.text)(row), (column.detail)(row));
                let text = if column.is_best(row, *best) {
                    format!("**{text}**")
                } else {
                    text
                };
                let detail = if detail.is_empty() {
                    detail
                } else {
                    format!(" ({})", escape(&detail))
                };
                write!(to, " {text}{detail} |")?;
            }
            writeln!(to)?;
        }
    }
    writeln!(to)?;
    for column in columns {
        writeln!(to, "- **{}**: {}.", column.title, column.note)?;
    }
    Ok(())
}

/// How each server scales, where the run has numbers of clients enough to tell.
fn scalability(report: &Report<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
    let columns = scalability::columns(&report.summary);
    if columns.is_empty() {
        return Ok(());
    }
    writeln!(to, "\n## Scalability\n")?;
    let titles: Vec<&str> = columns.iter().map(|column| column.title).collect();
    writeln!(to, "| Server | {} |", titles.join(" | "))?;
    writeln!(to, "|---|{}", "---:|".repeat(columns.len()))?;
    for one in &report.summary.scaling {
        write!(to, "| {} |", escape(&one.server))?;
        for column in &columns {
            let detail = match (column.detail)(one) {
                none if none.is_empty() => none,
                detail => format!(" ({detail})"),
            };
            write!(to, " {}{detail} |", (column.text)(one))?;
        }
        writeln!(to)?;
    }
    writeln!(to)?;
    for (server, why) in scalability::missing(&report.summary) {
        writeln!(to, "- {}: {why}.", escape(server))?;
    }
    for column in columns {
        writeln!(to, "- **{}**: {}.", column.title, column.note)?;
    }
    Ok(())
}

fn failures(report: &Report<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
    let failed = || {
        report
            .trials
            .iter()
            .filter_map(|trial| Some((trial, trial.failure.as_ref()?)))
    };
    if failed().next().is_none() {
        return Ok(());
    }
    writeln!(to, "\n## Failed trials")?;
    for (trial, failure) in failed() {
        writeln!(
            to,
            "\n- {} with {}, {}, at {}: {}",
            escape(&trial.server),
            counted(trial.clients, "client"),
            trial.occasion(),
            escape(&failure.stage),
            escape(&failure.reason)
        )?;
        if !failure.output.is_empty() {
            writeln!(to, "\n{}", fenced(failure.output.trim_end()))?;
        }
    }
    Ok(())
}

/// Text from outside, so that neither Markdown nor HTML is read in it.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\n' | '\r' => escaped.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' => {
                escaped.push('\\');
                escaped.push(c);
            }
            _ => escaped.push(shown(c)),
        }
    }
    escaped
}

/// A code block that nothing inside can end: its fence is longer than any run of backticks.
fn fenced(text: &str) -> String {
    let text: String = text.chars().map(shown).collect();
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}text\n{text}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Logs, fixture};

    #[test]
    fn a_whole_record_in_markdown() {
        let (run, trials) = fixture::record();
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        let mut text = Vec::new();
        Markdown.render(&report, &mut text).unwrap();
        insta::assert_snapshot!(String::from_utf8(text).unwrap());
    }

    #[test]
    fn nothing_from_outside_is_read_as_markdown() {
        assert_eq!(escape("<b>|*x*|\n# y"), r"&lt;b&gt;\|\*x\*\| # y");
        assert_eq!(fenced("a```b"), "````text\na```b\n````");
        // Nor by a terminal that the file is shown on.
        assert_eq!(
            escape("\u{1b}[2J\u{9b}m\u{202e}"),
            "\u{fffd}\\[2J\u{fffd}m\u{fffd}"
        );
        assert_eq!(
            fenced("\u{1b}c\r\n\tx"),
            "```text\n\u{fffd}c\u{fffd}\n\tx\n```"
        );
    }
}
