//! A study of several parts as Markdown.

use std::io::Write;

use super::{escape, sections};
use crate::report::study::published::{Cell, Table};
use crate::report::study::{PartReport, StudyReport};

/// Writes it.
pub(super) fn write(report: &StudyReport<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
    let study = report.study;
    writeln!(
        to,
        "# {}\n\n{}\n",
        escape(&study.name),
        escape(&study.question)
    )?;
    if let Some(note) = report.scale_note() {
        writeln!(to, "**{}**\n", escape(&note))?;
    }
    if !report.claims.is_empty() {
        writeln!(to, "## Claims\n")?;
    }
    for claim in &report.claims {
        let (text, sentence) = (escape(&claim.text), escape(&claim.sentence));
        writeln!(to, "- **{}**: {text} {sentence}", claim.verdict.text())?;
        if let Some(why) = &claim.why {
            writeln!(to, "  {}", escape(why))?;
        }
        for check in &claim.checks {
            writeln!(
                to,
                "  - `{}`: {}",
                check.text.replace('`', "'"),
                check.verdict.text()
            )?;
        }
    }
    if report
        .parts
        .iter()
        .any(|part| !part.published.rows.is_empty())
    {
        writeln!(to, "\n## Published and measured")?;
    }
    if let Some(source) = &study.source {
        writeln!(to, "\nPublished: {}.", escape(source))?;
    }
    for part in &report.parts {
        table(&part.published, &part.record.title, to)?;
    }
    report.parts.iter().try_for_each(|part| whole(part, to))
}

fn table(table: &Table, title: &str, to: &mut dyn Write) -> anyhow::Result<()> {
    if table.rows.is_empty() {
        return Ok(());
    }
    writeln!(to, "\n### {}\n", escape(title))?;
    write!(to, "| Figure |")?;
    for server in &table.servers {
        let server = escape(server);
        write!(to, " {server}, published | {server}, measured |")?;
    }
    writeln!(to, "\n|---|{}", "---:|---:|".repeat(table.servers.len()))?;
    let footnotes = table.footnotes();
    for group in table.groups() {
        let heading = escape(&group.heading());
        let alone = group.rows.len() == 1;
        if !alone {
            let empty = "|".repeat(2 * table.servers.len());
            writeln!(to, "| **{heading}** |{empty}")?;
        }
        for row in group.rows {
            let label = row.label();
            match (alone, label.as_str()) {
                (true, "") => write!(to, "| {heading} |")?,
                (true, _) => write!(to, "| {heading}, {label} |")?,
                (false, _) => write!(to, "| {label} |")?,
            }
            for cell in &row.cells {
                write!(
                    to,
                    " {} | {} |",
                    escape(&cell.published_in_table(&footnotes)),
                    escape(&measured(cell, &footnotes))
                )?;
            }
            writeln!(to)?;
        }
    }
    for (place, note) in (1..).zip(&footnotes) {
        writeln!(to, "\n{}", escape(&format!("[{place}] {note}.")))?;
    }
    Ok(())
}

fn measured(cell: &Cell, footnotes: &[&str]) -> String {
    let mut text = cell.measured_in_table(footnotes);
    if !cell.interval_text.is_empty() {
        text += &format!(" ({})", cell.interval_text);
    }
    if let Some(ratio) = cell.ratio_text() {
        text += &format!(", × {ratio}");
    }
    text
}

fn whole(part: &PartReport<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
    let record = part.record;
    writeln!(
        to,
        "\n# {}\n\n{}\n",
        escape(&record.title),
        escape(&record.question)
    )?;
    if let Some(why) = &record.skipped {
        writeln!(to, "Not run here: {}.\n", escape(why))?;
    }
    for left_out in &record.left_out {
        writeln!(to, "{}.\n", escape(&left_out.words()))?;
    }
    if !record.scaled.is_empty() {
        writeln!(
            to,
            "Not as written: {}.\n",
            escape(&record.scaled.join(", "))
        )?;
    }
    match &part.report {
        Some(report) => sections(report, &format!("{}/", record.name), to),
        None => Ok(()),
    }
}
