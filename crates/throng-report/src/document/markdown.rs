//! A document as Markdown, for READMEs and reviews: question, answer, grade, one picture, and tables with few columns.
//! Details are folded below.

use std::fmt::Write as _;

use super::{
    Block, Cell, Column, Document, Figures, Kind, Medium, NOT_IN_TERMINAL, Role, Row, Section,
    Style, Table, Text, Tone, address,
};
use crate::figures::Figure;
use throng_record::format::{harmless, list, shown};

/// Maximum columns of a table that is not folded.
const MOST_COLUMNS: usize = 6;
/// With more rows than this, such a table shows only its first group.
const MANY_ROWS: usize = 20;

/// The document as Markdown, next to the directories of its figures.
pub fn text(document: &Document) -> String {
    Writer::new(Pictures::InDirectories).document(document).text
}

/// The document as Markdown for a file elsewhere, with only the pictures of answers. Their names begin with `stem`,
/// and they belong next to the file. Without a stem there are no pictures.
pub fn elsewhere(document: &Document, stem: Option<&str>) -> (String, Vec<(String, Figure)>) {
    let pictures = stem.map_or(Pictures::Nowhere, Pictures::Beside);
    let written = Writer::new(pictures).document(document);
    (written.text, written.pictures)
}

/// Blocks without a document, as Markdown.
pub fn blocks(blocks: &[Block]) -> String {
    let mut writer = Writer::new(Pictures::Nowhere);
    writer.blocks(blocks, "#");
    writer.text.trim_start().to_owned()
}

/// Where pictures are.
#[derive(Debug, Clone, Copy)]
enum Pictures<'a> {
    /// All pictures, in directories of the record.
    InDirectories,
    /// Only the pictures of answers, next to the text.
    Beside(&'a str),
    Nowhere,
}

struct Writer<'a> {
    text: String,
    place: Pictures<'a>,
    /// The pictures of answers, with their file names.
    pictures: Vec<(String, Figure)>,
    /// The part being written; empty outside of parts.
    part: String,
    /// Whether the current text is folded behind a summary.
    folded: bool,
}

impl<'a> Writer<'a> {
    fn new(place: Pictures<'a>) -> Self {
        Self {
            text: String::new(),
            place,
            pictures: Vec::new(),
            part: String::new(),
            folded: false,
        }
    }

    fn document(mut self, document: &Document) -> Self {
        self.line(&format!("# {}", escape(&document.title)));
        if !document.question.is_empty() {
            self.line(&format!("\n{}", escape(&document.question)));
        }
        self.sections(&document.sections, "##");
        if !document.badges.is_empty() {
            let badges: Vec<String> = document.badges.iter().map(inline).collect();
            self.line(&format!("\n{}", badges.join(" · ")));
        }
        self
    }

    fn line(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }

    /// Writes sections. Those that a terminal omits come last, each folded.
    fn sections(&mut self, all: &[Section], marks: &str) {
        let (front, details): (Vec<&Section>, Vec<&Section>) =
            Section::shown(all, Medium::Markdown).partition(|section| {
                section.kind != Kind::Plain || !section.omit.contains(&Medium::Terminal)
            });
        let deeper = format!("{marks}#");
        for section in front {
            let outer = self.part.clone();
            if section.kind == Kind::Part {
                self.part = address(&section.id);
            }
            self.line(&format!("\n{marks} {}", escape(&section.title)));
            self.blocks(&section.blocks, &deeper);
            self.sections(&section.sections, &deeper);
            self.part = outer;
        }
        for section in details {
            let title = escape(&section.title);
            self.fold(&title, |inner| {
                inner.blocks(&section.blocks, &deeper);
                inner.sections(&section.sections, &deeper);
            });
        }
    }

    /// Folds content behind a summary; writes nothing if there is no content.
    fn fold(&mut self, summary: &str, write: impl FnOnce(&mut Self)) {
        let (before, was_folded) = (self.text.len(), self.folded);
        self.line(&format!("\n<details><summary>{summary}</summary>"));
        let opened = self.text.len();
        self.folded = true;
        write(self);
        self.folded = was_folded;
        if self.text[opened..].trim().is_empty() {
            self.text.truncate(before);
        } else {
            self.line("\n</details>");
        }
    }

    fn blocks(&mut self, all: &[Block], marks: &str) {
        for block in Block::shown(all, Medium::Markdown) {
            if let Some(text) = words(block, marks) {
                self.line(&format!("\n{text}"));
                continue;
            }
            match block {
                Block::List(list) => {
                    self.text.push('\n');
                    for (point, more) in &list.items {
                        self.line(&format!("- {}", inline(point)));
                        self.indented(more, marks);
                    }
                }
                Block::Table(one) => self.table(one),
                Block::Figures(figures) => self.figures(figures, marks),
                Block::Picture(one) => {
                    if let Some(picture) = self.picture(one, true) {
                        self.line(&format!("\n{picture}"));
                    }
                }
                Block::Fold(summary, inner) => {
                    let summary = escape(&summary.words());
                    self.fold(&summary, |writer| writer.blocks(inner, marks));
                }
                Block::Except(_, inner) => self.blocks(inner, marks),
                _ => {}
            }
        }
    }

    /// Blocks that belong to a point of a list.
    fn indented(&mut self, all: &[Block], marks: &str) {
        let outer = std::mem::take(&mut self.text);
        self.blocks(all, marks);
        let inner = std::mem::replace(&mut self.text, outer);
        for line in inner.lines() {
            self.line(format!("  {line}").trim_end());
        }
    }

    /// Writes a table. Of a wide one, only as much as can be read at a glance; the whole table is folded.
    fn table(&mut self, table: &Table) {
        let many = table.columns.len() > MOST_COLUMNS;
        if self.folded || !many {
            return self.whole_table(table);
        }
        let shown = if table.rows().count() > MANY_ROWS {
            1
        } else {
            table.groups.len()
        };
        let narrow = narrowed(table, shown);
        self.whole_table(&narrow);
        let others: Vec<String> = table.groups[shown..]
            .iter()
            .map(|group| escape(&group.title))
            .collect();
        let and = if others.is_empty() { "" } else { "; " };
        let summary = format!(
            "All {} columns, with intervals{and}{}",
            table.columns.len(),
            list(&others)
        );
        self.fold(&summary, |writer| writer.whole_table(table));
    }

    fn whole_table(&mut self, table: &Table) {
        self.text.push('\n');
        if let Some(best_of) = table.best() {
            self.line(&format!("Bold is the best of {best_of}.\n"));
        }
        let titles = table
            .columns
            .iter()
            .map(|column| format!(" {} |", escape(&column.title)));
        self.line(&format!("|{}", titles.collect::<String>()));
        let aligned = |column: &Column| if column.is_text { "---|" } else { "---:|" };
        let marks: String = table.columns.iter().map(aligned).collect();
        self.line(&format!("|{marks}"));
        let empty = "|".repeat(table.columns.len() - 1);
        for group in &table.groups {
            if !group.title.is_empty() {
                self.line(&format!("| **{}** |{empty}", escape(&group.title)));
            }
            for one in &group.rows {
                self.line(&row(one, &empty));
            }
        }
        if table.notes().next().is_some() {
            self.text.push('\n');
        }
        for column in table.notes() {
            let (title, note) = (escape(&column.title), sentence(&column.note));
            self.line(&format!("- **{title}**: {note}"));
        }
    }

    /// Writes still pictures.
    fn figures(&mut self, figures: &Figures, marks: &str) {
        for figure in &figures.figures {
            if let Some(picture) = self.picture(figure, false) {
                let title = escape(&figure.title);
                self.line(&format!("\n{marks} {title}\n\n{picture}"));
            }
        }
    }

    /// A still picture with its caption; `None` if pictures are not written here.
    fn picture(&mut self, figure: &Figure, of_answer: bool) -> Option<String> {
        let (alternative, caption) = (escape(&figure.alternative), escape(&figure.full_caption()));
        let id = figure.id;
        let part = &self.part;
        let path = match self.place {
            Pictures::InDirectories if part.is_empty() => format!("figures/{id}.svg"),
            Pictures::InDirectories => format!("{part}/figures/{id}.svg"),
            Pictures::Beside(stem) if of_answer => {
                let first = match part.as_str() {
                    "" => stem.to_owned(),
                    part => format!("{stem}-{part}"),
                };
                let is_taken = |(name, _): &(String, Figure)| *name == format!("{first}.svg");
                let name = if self.pictures.iter().any(is_taken) {
                    format!("{first}-{id}.svg")
                } else {
                    format!("{first}.svg")
                };
                self.pictures.push((name.clone(), figure.clone()));
                address(&name)
            }
            Pictures::Beside(_) | Pictures::Nowhere => return None,
        };
        Some(format!("![{alternative}]({path})\n\n{caption}"))
    }
}

/// A block that consists of words only.
fn words(block: &Block, marks: &str) -> Option<String> {
    Some(match block {
        Block::Heading(title) => format!("{marks} {}", inline(title)),
        Block::Paragraph(Role::Lead, words) => format!("**{}**", escape(&words.words())),
        Block::Paragraph(_, words) => inline(words),
        Block::Warning(message, remedy) => {
            let mut text = format!("> **Warning:** {}", sentence(message));
            if !remedy.is_empty() {
                let _ = write!(text, " *Fix:* {}", sentence(remedy));
            }
            text
        }
        Block::Code(lines) => fenced(lines.trim_end()),
        Block::Facts(facts) => {
            let rows = facts
                .iter()
                .map(|(name, value)| format!("\n| {} | {} |", inline(name), inline(value)));
            format!("| | |\n|---|---|{}", rows.collect::<String>())
        }
        _ => return None,
    })
}

/// The first `groups` groups of a table with the columns that matter most, without small print.
fn narrowed(table: &Table, groups: usize) -> Table {
    let in_terminal = table.columns[1..].iter().map(|column| column.drop);
    let mut drops: Vec<u8> = in_terminal
        .filter(|drop| *drop != NOT_IN_TERMINAL)
        .collect();
    drops.sort_unstable();
    let last = drops
        .get(MOST_COLUMNS - 2)
        .or(drops.last())
        .copied()
        .unwrap_or(0);
    let all = 1..table.columns.len();
    let mut kept: Vec<usize> = all
        .clone()
        .filter(|index| table.columns[*index].drop <= last)
        .collect();
    if kept.is_empty() {
        kept = all.collect();
    }
    kept.truncate(MOST_COLUMNS - 1);
    let columns = std::iter::once(&0).chain(&kept).map(|index| Column {
        note: String::new(),
        ..table.columns[*index].clone()
    });
    let row = |row: &Row| {
        let cells = kept.iter().filter_map(|index| row.cells.get(index - 1));
        Row {
            cells: cells.map(|cell| cell.clone().with("")).collect(),
            ..row.clone()
        }
    };
    let rows = table.groups[..groups]
        .iter()
        .map(|group| (group.title.clone(), group.rows.iter().map(row).collect()));
    Table {
        best_of: table.best_of,
        ..Table::in_groups(&table.caption, columns.collect(), rows)
    }
}

fn row(row: &Row, empty: &str) -> String {
    let flags = row.flags.iter().map(|flag| format!(" ({})", escape(flag)));
    let name = inline(&row.name) + &flags.collect::<String>();
    if !row.why.is_empty() {
        return format!("| {name} | {} {empty}", escape(&row.why));
    }
    let cells: Vec<String> = row.cells.iter().map(cell).collect();
    format!("| {name} | {} |", cells.join(" | "))
}

fn cell(cell: &Cell) -> String {
    let escaped = escape(&cell.text);
    let text = match cell.tone {
        Tone::Best => format!("**{escaped}**"),
        Tone::Worst => format!("*{escaped}*"),
        Tone::Plain | Tone::Good | Tone::Bad | Tone::Quiet => escaped,
    };
    match cell.detail.as_str() {
        "" => text,
        detail => format!("{text} ({})", escape(detail)),
    }
}

fn inline(text: &Text) -> String {
    let spans = text.0.iter().map(|span| {
        let escaped = escape(&span.text);
        match &span.style {
            Style::Plain | Style::Server(_) | Style::Page(_) => escaped,
            Style::Strong | Style::Tone(_) => format!("**{escaped}**"),
            // Escapes have no effect within backticks.
            Style::Code if span.text.chars().all(is_plain) => format!("`{}`", span.text),
            Style::Code => format!("<code>{escaped}</code>"),
            Style::Link(to) => format!("[{escaped}]({})", address(to)),
        }
    });
    spans.collect()
}

/// Escapes untrusted text, so that it is read neither as Markdown nor as HTML.
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

/// Escaped text with a full stop at its end.
fn sentence(text: &str) -> String {
    let stop = if text.ends_with(['.', '!', '?']) {
        ""
    } else {
        "."
    };
    escape(text) + stop
}

/// Whether a character has no special meaning in Markdown, nor in a Markdown table.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || " -_./:=>(),+%{}'".contains(c)
}

/// A code block that nothing inside can end: its fence is longer than any run of backticks in it.
fn fenced(text: &str) -> String {
    let text = harmless(text);
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
        // Nor by a terminal that shows the file.
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
