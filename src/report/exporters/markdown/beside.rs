//! Two runs side by side as Markdown.

use std::io::Write;

use super::{escape, fenced, measures, of_pair};
use crate::report::beside::{Beside, Compared, Fact, LimitBeside, Part};
use crate::report::exporters::command_line;
use crate::report::format::list;

/// Writes it.
///
/// # Errors
/// When `to` cannot be written.
pub(in crate::report) fn write(beside: &Beside, to: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(to, "# {}\n", escape(&beside.title()))?;
    writeln!(to, "- **{}**", escape(&beside.headline))?;
    for caveat in &beside.caveats {
        writeln!(to, "- **Caution:** {}", escape(caveat))?;
    }
    for sentence in beside.sentences() {
        writeln!(to, "- {}", escape(sentence))?;
    }
    for note in &beside.notes {
        writeln!(to, "- {}", escape(note))?;
    }
    writeln!(to, "\n## The two runs")?;
    facts(&beside.told(), to)?;
    for part in &beside.parts {
        of_part(part, to)?;
    }
    only("Parts", &beside.only_in, to)?;
    for (name, told) in [("A", &beside.a), ("B", &beside.b)] {
        if !told.warnings.is_empty() {
            writeln!(to, "\n## Warnings of {name}\n")?;
        }
        for warning in &told.warnings {
            writeln!(
                to,
                "- {}. *What to do:* {}.",
                escape(&warning.message),
                escape(&warning.remedy)
            )?;
        }
    }
    writeln!(to, "\n## How to repeat")?;
    for (name, told) in [("A", &beside.a), ("B", &beside.b)] {
        writeln!(
            to,
            "\n{name}:\n\n{}",
            fenced(&command_line(&told.arguments))
        )?;
    }
    Ok(())
}

fn of_part(part: &Part, to: &mut dyn Write) -> anyhow::Result<()> {
    if let Some(name) = &part.name {
        writeln!(to, "\n## {}", escape(part.title.as_deref().unwrap_or(name)))?;
    }
    limits(&part.limits, to)?;
    for Compared { pair, more, .. } in &part.pairs {
        of_pair(pair, to)?;
        if !more.is_empty() {
            writeln!(to, "\n<details><summary>More metrics</summary>")?;
            measures(&pair.reference, &pair.server, more, to)?;
            writeln!(to, "\n</details>")?;
        }
    }
    only("Servers and numbers of clients", &part.only_in, to)?;
    writeln!(to, "\n### Settings and machine")?;
    facts(&part.facts, to)
}

fn facts(facts: &[Fact], to: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(to, "\n| | A | B | |\n|---|---|---|---|")?;
    for fact in facts {
        let [name, a, b] = [&fact.name, &fact.a, &fact.b].map(|text| escape(text));
        writeln!(to, "| {name} | {a} | {b} | {} |", fact.word())?;
    }
    Ok(())
}

fn limits(limits: &[LimitBeside], to: &mut dyn Write) -> anyhow::Result<()> {
    let Some(first) = limits.first() else {
        return Ok(());
    };
    writeln!(
        to,
        "\n### Limits, {}\n\n| | A | B | Ratio | B is |\n|---|---:|---:|---:|---|",
        first.unit
    )?;
    for limit in limits {
        let cells = limit.cells().join(" | ");
        writeln!(to, "| {} | {cells} |", escape(&limit.server))?;
    }
    Ok(())
}

fn only(what: &str, only: &[Vec<String>; 2], to: &mut dyn Write) -> anyhow::Result<()> {
    for (name, only) in ["A", "B"].iter().zip(only) {
        if !only.is_empty() {
            writeln!(to, "\n{what} only in {name}: {}.", escape(&list(only)))?;
        }
    }
    Ok(())
}
