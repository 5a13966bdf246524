//! A document as Markdown, for READMEs and merge requests.

use std::fmt::Write as _;

use super::{
    Block, Cell, Cells, Document, Figures, Kind, Medium, Role, Section, Style, Table, Text, Tone,
    address,
};
use crate::figures::{Figure, Part};
use throng_record::format::shown;

/// The document as Markdown.
pub fn text(document: &Document) -> String {
    let mut text = format!("# {}\n", escape(&document.title));
    if !document.question.is_empty() {
        let _ = write!(text, "\n{}\n", escape(&document.question));
    }
    if !document.badges.is_empty() {
        let badges: Vec<String> = document.badges.iter().map(inline).collect();
        let _ = write!(text, "\n{}\n", badges.join(" · "));
    }
    sections(&mut text, &document.sections, "##", "");
    text
}

/// Sections whose headings begin with `marks`; their figures lie in `directory`.
fn sections(text: &mut String, all: &[Section], marks: &str, directory: &str) {
    for section in Section::shown(all, Medium::Markdown) {
        let inner = match section.kind {
            Kind::Part => format!("{}/", address(&section.id)),
            Kind::Plain | Kind::Answer => directory.to_owned(),
        };
        let _ = write!(text, "\n{marks} {}\n", escape(&section.title));
        let deeper = format!("{marks}#");
        blocks(text, &section.blocks, &deeper, &inner);
        sections(text, &section.sections, &deeper, &inner);
    }
}

fn blocks(text: &mut String, all: &[Block], marks: &str, directory: &str) {
    for block in Block::shown(all, Medium::Markdown) {
        text.push('\n');
        match block {
            Block::Heading(title) => {
                let _ = writeln!(text, "{marks} {}", inline(title));
            }
            Block::Paragraph(Role::Lead, words) => {
                let _ = writeln!(text, "**{}**", escape(&words.words()));
            }
            Block::Paragraph(_, words) => {
                let _ = writeln!(text, "{}", inline(words));
            }
            Block::List(list) => {
                for (point, more) in &list.items {
                    let _ = writeln!(text, "- {}", inline(point));
                    indented(text, more, marks, directory);
                }
            }
            Block::Table(one) => table(text, one),
            Block::Warning(message, remedy) => {
                let _ = write!(text, "> **Warning:** {}", sentence(message));
                if !remedy.is_empty() {
                    let _ = write!(text, " *What to do:* {}", sentence(remedy));
                }
                text.push('\n');
            }
            Block::Figures(all) => figures(text, all, marks, directory),
            Block::Picture(one) => {
                let _ = writeln!(text, "{}", picture(one, directory));
            }
            Block::Code(lines) => {
                let _ = writeln!(text, "{}", fenced(lines.trim_end()));
            }
            Block::Fold(summary, inner) => {
                let summary = escape(&summary.words());
                let _ = writeln!(text, "<details><summary>{summary}</summary>");
                blocks(text, inner, marks, directory);
                text.push_str("\n</details>\n");
            }
            Block::Facts(facts) => {
                text.push_str("| | |\n|---|---|\n");
                for (name, value) in facts {
                    let _ = writeln!(text, "| {} | {} |", inline(name), inline(value));
                }
            }
            Block::Except(_, inner) => blocks(text, inner, marks, directory),
        }
    }
}

/// Blocks that belong to a point of a list.
fn indented(text: &mut String, all: &[Block], marks: &str, directory: &str) {
    let mut inner = String::new();
    blocks(&mut inner, all, marks, directory);
    for line in inner.lines() {
        let _ = writeln!(text, "{}", format!("  {line}").trim_end());
    }
}

fn table(text: &mut String, table: &Table) {
    if !table.best_of.is_empty() {
        let _ = writeln!(text, "Bold is the best of {}.\n", table.best_of);
    }
    text.push('|');
    for column in &table.columns {
        let _ = write!(text, " {} |", escape(&column.title));
    }
    text.push_str("\n|");
    for column in &table.columns {
        text.push_str(if column.is_text { "---|" } else { "---:|" });
    }
    text.push('\n');
    let empty = "|".repeat(table.columns.len() - 1);
    for group in &table.groups {
        if !group.title.is_empty() {
            let _ = writeln!(text, "| **{}** |{empty}", escape(&group.title));
        }
        for row in &group.rows {
            let flags = row.flags.iter().map(|flag| format!(" ({})", escape(flag)));
            let name = inline(&row.name) + &flags.collect::<String>();
            let _ = match &row.cells {
                Cells::Each(cells) => {
                    let cells: Vec<String> = cells.iter().map(cell).collect();
                    writeln!(text, "| {name} | {} |", cells.join(" | "))
                }
                Cells::None(why) => writeln!(text, "| {name} | {} {empty}", escape(why)),
            };
        }
    }
    if table.notes().next().is_some() {
        text.push('\n');
    }
    for column in table.notes() {
        let (title, note) = (escape(&column.title), sentence(&column.note));
        let _ = writeln!(text, "- **{title}**: {note}");
    }
}

fn cell(cell: &Cell) -> String {
    let text = escape(&cell.text);
    let text = match cell.tone {
        Tone::Best => format!("**{text}**"),
        Tone::Worst => format!("*{text}*"),
        Tone::Plain | Tone::Good | Tone::Bad | Tone::Quiet => text,
    };
    match cell.detail.as_str() {
        "" => text,
        detail => format!("{text} ({})", escape(detail)),
    }
}

/// Still pictures; the details behind a summary.
fn figures(text: &mut String, figures: &Figures, marks: &str, directory: &str) {
    let (details, first): (Vec<&Figure>, Vec<&Figure>) = figures
        .figures
        .iter()
        .partition(|figure| figure.part == Part::Detail);
    let each = |text: &mut String, all: Vec<&Figure>| {
        for (place, figure) in all.into_iter().enumerate() {
            let space = if place == 0 { "" } else { "\n" };
            let (title, picture) = (escape(&figure.title), picture(figure, directory));
            let _ = writeln!(text, "{space}{marks} {title}\n\n{picture}");
        }
    };
    each(text, first);
    if !details.is_empty() {
        let summary = escape(&figures.details);
        let _ = writeln!(text, "\n<details><summary>{summary}</summary>\n");
        each(text, details);
        text.push_str("\n</details>\n");
    }
}

/// A still picture with its caption.
fn picture(figure: &Figure, directory: &str) -> String {
    let (alternative, caption) = (escape(&figure.alternative), escape(&figure.caption));
    let id = figure.id;
    format!("![{alternative}]({directory}figures/{id}.svg)\n\n{caption}")
}

fn inline(text: &Text) -> String {
    let spans = text.0.iter().map(|span| {
        let text = escape(&span.text);
        match &span.style {
            Style::Plain | Style::Server(_) => text,
            Style::Strong | Style::Tone(_) => format!("**{text}**"),
            // Nothing is escaped within backticks.
            Style::Code if span.text.chars().all(is_plain) => format!("`{}`", span.text),
            Style::Code => format!("<code>{text}</code>"),
            Style::Link(to) => format!("[{text}]({})", address(to)),
        }
    });
    spans.collect()
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

/// The same with a full stop at its end.
fn sentence(text: &str) -> String {
    let stop = if text.ends_with(['.', '!', '?']) {
        ""
    } else {
        "."
    };
    escape(text) + stop
}

/// Whether it means nothing in Markdown, nor in a table of it.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || " -_./:=>(),+%{}'".contains(c)
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
    use crate::document::fixture::sample;

    #[test]
    fn every_block_in_markdown() {
        insta::assert_snapshot!(text(&sample("x & y")));
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
        let evil = text(&sample("<script>](http://x)`|\u{1b}[2J"));
        assert!(!evil.contains('\u{1b}'));
        let unescaped = evil.replace("\\]", "");
        for read in ["](http", "<script"] {
            let found = unescaped.matches(read).count();
            assert_eq!(found, 2, "in code blocks alone: {evil}");
        }
    }
}
