//! A document for a terminal: what there is to know at once. The page beside it has the rest.
//!
//! In a narrow terminal columns of tables are left out in the order of [`Column::drop`], highest first. The
//! best of a group is marked `*`, so that nothing depends on colour.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use super::{
    Block, Cell, Cells, Column, Document, Group, Kind, Medium, NOT_IN_TERMINAL, Role, Row, Section,
    Span, Table, Text, Tone,
};
use throng_record::format::printable;

const STRONG: Style = Style::new().bold();
const QUIET: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default();
const BAR: Style = AnsiColor::Cyan.on_default();

/// Lines are not made longer than this to read; only tables are wider.
const WIDEST_TEXT: usize = 100;

/// From this width on bars are long.
const ROOMY: usize = 120;

/// Names longer than this are cut.
const WIDEST_NAME: usize = 32;

/// The document as text of at most `width` columns, ending with a line break.
pub fn text(document: &Document, width: usize, colour: bool) -> String {
    let mut writer = Writer {
        text: String::new(),
        width,
        colour,
        indent: 0,
        headed: 0,
    };
    if !document.question.is_empty() {
        writer.wrap(&document.question.as_str().into(), STRONG);
    }
    writer.sections(&document.sections);
    writer.text
}

struct Writer {
    text: String,
    width: usize,
    colour: bool,
    /// Columns that are left free.
    indent: usize,
    /// Where the last heading ends.
    headed: usize,
}

impl Writer {
    fn sections(&mut self, sections: &[Section]) {
        for section in Section::shown(sections, Medium::Terminal) {
            let before = self.text.len();
            if section.kind == Kind::Answer {
                self.gap();
            } else {
                self.heading(&section.title.as_str().into());
            }
            let headed = self.text.len();
            self.blocks(&section.blocks);
            self.sections(&section.sections);
            if self.text.len() == headed {
                self.text.truncate(before);
            }
        }
    }

    fn blocks(&mut self, blocks: &[Block]) {
        let mut was_text = true;
        for block in Block::shown(blocks, Medium::Terminal) {
            let is_text = !matches!(block, Block::List(_) | Block::Table(_));
            if is_text && !was_text {
                self.gap();
            }
            was_text = is_text;
            match block {
                Block::Heading(title) => self.heading(title),
                Block::Paragraph(Role::Lead, text) => self.wrap(text, STRONG),
                Block::Paragraph(Role::Body, text) => self.wrap(text, Style::new()),
                Block::Paragraph(Role::Fine, text) => self.wrap(text, QUIET),
                Block::List(list) => {
                    for (point, blocks) in &list.items {
                        self.indent += 2;
                        self.wrap(point, Style::new());
                        self.blocks(blocks);
                        self.indent -= 2;
                    }
                }
                Block::Table(table) => self.table(table),
                Block::Warning(message, remedy) => {
                    self.wrap(&message.as_str().into(), BAD);
                    if !remedy.is_empty() {
                        self.wrap(&remedy.as_str().into(), QUIET);
                    }
                }
                Block::Code(lines) => lines.lines().for_each(|line| self.line(&printable(line))),
                Block::Facts(facts) => {
                    for (name, value) in facts {
                        let fact = format!("{}: {}", name.words(), value.words());
                        self.wrap(&fact.into(), Style::new());
                    }
                }
                Block::Except(_, blocks) => self.blocks(blocks),
                Block::Paragraph(Role::Hint, _)
                | Block::Figures(_)
                | Block::Picture(_)
                | Block::Fold(..) => {}
            }
        }
    }

    fn heading(&mut self, title: &Text) {
        self.gap();
        self.wrap(title, STRONG);
        self.headed = self.text.len();
    }

    /// An empty line, unless there is one or a heading.
    fn gap(&mut self) {
        let is_headed = self.headed == self.text.len();
        if !is_headed && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    fn line(&mut self, line: &str) {
        let line = format!("{:1$}{line}", "", self.indent);
        let _ = writeln!(self.text, "{}", line.trim_end());
    }

    fn paint(&self, style: Style, text: &str) -> String {
        if self.colour && !style.is_plain() {
            format!("{}{text}{}", style.render(), style.render_reset())
        } else {
            text.to_owned()
        }
    }

    /// Text broken into lines at spaces.
    fn wrap(&mut self, text: &Text, base: Style) {
        let room = self.width.clamp(20, WIDEST_TEXT) - self.indent;
        let mut line: Vec<(String, Style)> = Vec::new();
        let mut used = 0;
        for (word, style, is_new) in words(text, base) {
            let length = word.chars().count();
            if is_new && used > 0 && used + 1 + length > room {
                self.styled(&line);
                line.clear();
                used = 0;
            } else if is_new && used > 0 {
                line.push((" ".to_owned(), Style::new()));
                used += 1;
            }
            used += length;
            line.push((word, style));
        }
        self.styled(&line);
    }

    /// A line of stretches; neighbours of one style are painted at once.
    fn styled(&mut self, line: &[(String, Style)]) {
        let mut painted = String::new();
        let mut rest = line;
        while let Some((_, style)) = rest.first() {
            let alike = |(text, other): &(String, Style)| other == style || text == " ";
            let mut length = rest.iter().take_while(|one| alike(one)).count();
            // A space at its end is not part of it.
            if length > 1 && rest[length - 1].0 == " " {
                length -= 1;
            }
            let text: String = rest[..length]
                .iter()
                .map(|(text, _)| text.as_str())
                .collect();
            painted += &self.paint(*style, &text);
            rest = &rest[length..];
        }
        self.line(&painted);
    }

    fn table(&mut self, table: &Table) {
        let laid = fitting(table, self.width.saturating_sub(self.indent));
        let name_width = laid.first().map_or(0, |first| first.width);
        for group in &table.groups {
            self.gap();
            let title = printable(&group.title);
            let fits = !title.is_empty() && title.chars().count() <= name_width;
            if !title.is_empty() && !fits {
                self.wrap(&title.as_str().into(), STRONG);
            }
            let mut heading = String::new();
            for (place, one) in laid.iter().enumerate() {
                let column = match place {
                    0 if fits => self.paint(STRONG, &one.aligned(&title)),
                    _ => self.paint(QUIET, &one.aligned(&printable(&one.column.title))),
                };
                let after = " ".repeat(if place == 0 { 0 } else { 1 + one.bar });
                let before = if place == 0 { "" } else { " " };
                heading += &format!("{before}{column}{after}");
            }
            self.line(&heading);
            for row in &group.rows {
                self.row(&laid, row);
            }
        }
        let has_best = |row: &Row| {
            (1..)
                .zip(&laid[1..])
                .any(|(_, one)| one.cell(row).tone == Tone::Best)
        };
        if !table.best_of.is_empty()
            && table
                .groups
                .iter()
                .flat_map(|group| &group.rows)
                .any(has_best)
        {
            self.wrap(&format!("* best of {}", table.best_of).into(), QUIET);
        }
    }

    fn row(&mut self, laid: &[Laid<'_>], row: &Row) {
        let Some((first, others)) = laid.split_first() else {
            return;
        };
        let mut line = first.aligned(&name(row));
        if let Cells::None(why) = &row.cells {
            let room: usize = others.iter().map(Laid::whole_width).sum();
            let short: String = printable(why)
                .chars()
                .take(room.saturating_sub(1))
                .collect();
            line += &format!(" {}", self.paint(BAD, &short));
            self.line(&line);
            return;
        }
        for one in others {
            let cell = one.cell(row);
            let mark = if cell.tone == Tone::Best { '*' } else { ' ' };
            let text = format!("{}{mark}", one.aligned(&printable(&cell.text)));
            let style = match cell.tone {
                Tone::Plain if row.is_quiet => QUIET,
                tone => style(tone),
            };
            line += &format!(" {}", self.paint(style, &text));
            if one.bar > 0 {
                line += &self.paint(BAR, &bar(cell.bar.unwrap_or(0.0), one.bar));
            }
        }
        self.line(&line);
    }
}

/// The words of a text, each with its style and whether there is a space before it.
fn words(text: &Text, base: Style) -> Vec<(String, Style, bool)> {
    let mut words = Vec::new();
    for Span { text, style } in &text.0 {
        let style = match style {
            super::Style::Strong => STRONG,
            super::Style::Tone(tone) => self::style(*tone),
            _ => base,
        };
        for (place, word) in printable(text).split(' ').enumerate() {
            if place > 0 || !word.is_empty() {
                words.push((word.to_owned(), style, place > 0));
            }
        }
    }
    words
}

fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Best | Tone::Good => GOOD,
        Tone::Worst | Tone::Bad => BAD,
        Tone::Quiet => QUIET,
    }
}

fn name(row: &Row) -> String {
    printable(&row.name.words())
        .chars()
        .take(WIDEST_NAME)
        .collect()
}

/// A column laid out: as wide as its widest cell.
struct Laid<'a> {
    column: &'a Column,
    /// Which column it is; 0 has the names.
    place: usize,
    width: usize,
    /// Width of its bar; 0: none.
    bar: usize,
}

impl Laid<'_> {
    fn cell<'a>(&self, row: &'a Row) -> &'a Cell {
        const NOTHING: &Cell = &Cell {
            text: String::new(),
            detail: String::new(),
            tone: Tone::Plain,
            bar: None,
        };
        match &row.cells {
            Cells::Each(cells) => cells.get(self.place - 1).unwrap_or(NOTHING),
            Cells::None(_) => NOTHING,
        }
    }

    fn aligned(&self, text: &str) -> String {
        let width = self.width;
        match (self.column.is_text, self.place) {
            (true, _) => format!("{text:width$}"),
            // No mark stands between it and the next column.
            (false, 0) => format!("{text:>width$} "),
            (false, _) => format!("{text:>width$}"),
        }
    }

    /// With the gap to its left, the mark and the bar.
    fn whole_width(&self) -> usize {
        1 + self.width + 1 + self.bar
    }
}

/// The columns that fit into a width.
fn fitting(table: &Table, width: usize) -> Vec<Laid<'_>> {
    let rows = || table.groups.iter().flat_map(|group: &Group| &group.rows);
    let columns = table.columns.iter().enumerate();
    let shown = columns.filter(|(_, column)| column.drop != NOT_IN_TERMINAL);
    let mut laid: Vec<Laid<'_>> = shown
        .map(|(place, column)| {
            let mut laid = Laid {
                column,
                place,
                width: 0,
                bar: 0,
            };
            let of_row = |row: &Row| match place {
                0 => name(row).chars().count(),
                _ => printable(&laid.cell(row).text).chars().count(),
            };
            let widest = rows().map(of_row).max().unwrap_or(0);
            let has_bar = place > 0 && rows().any(|row| laid.cell(row).bar.is_some());
            laid.width = widest.max(column.title.chars().count());
            laid.bar = match (has_bar, width >= ROOMY) {
                (false, _) => 0,
                (true, false) => 5,
                (true, true) => 8,
            };
            laid
        })
        .collect();
    // Nothing stands before the first column, and the mark of the last may be cut.
    let total = |laid: &[Laid<'_>]| laid.iter().map(Laid::whole_width).sum::<usize>();
    while total(&laid) > width + 2 {
        let last = laid.iter().map(|laid| laid.column.drop).max().unwrap_or(0);
        if last == 0 {
            break;
        }
        laid.retain(|laid| laid.column.drop != last);
    }
    laid
}

/// A bar of eighths of a cell, filled up with spaces.
fn bar(share: f64, cells: usize) -> String {
    const PARTS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * (cells * 8) as f64).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if bar.chars().count() < cells {
        bar.push(PARTS[eighths % 8]);
    }
    let missing = cells - bar.chars().count();
    bar + &" ".repeat(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::fixture::sample;

    #[test]
    fn every_block_in_a_terminal() {
        insta::assert_snapshot!(text(&sample("x & y"), 80, false));
    }

    #[test]
    fn colour_changes_nothing_but_colour() {
        let plain = anstream::adapter::strip_str(&text(&sample("x & y"), 40, true)).to_string();
        let trimmed = |text: &str| -> Vec<String> {
            text.lines()
                .map(|line| line.trim_end().to_owned())
                .collect()
        };
        assert_eq!(trimmed(&plain), trimmed(&text(&sample("x & y"), 40, false)));
    }

    #[test]
    fn no_text_steers_the_terminal() {
        assert!(!text(&sample("\u{1b}[2Jx"), 80, false).contains('\u{1b}'));
    }

    #[test]
    fn columns_are_dropped_until_a_table_fits() {
        let column = |title: &str, drop| Column::number(title).dropped(drop);
        let table = Table {
            columns: vec![
                Column::text("Server"),
                column("least", 3),
                column("most", 0),
                column("more", 1),
                column("never", NOT_IN_TERMINAL),
            ],
            groups: vec![Group {
                title: String::new(),
                rows: vec![Row::of("epoll", vec![Cell::plain("1"); 4])],
            }],
            ..Table::default()
        };
        let titles = |width| -> Vec<&str> {
            fitting(&table, width)
                .iter()
                .map(|laid| laid.column.title.as_str())
                .collect()
        };
        assert_eq!(titles(80), ["Server", "least", "most", "more"]);
        assert_eq!(titles(20), ["Server", "most", "more"]);
        assert_eq!(titles(3), ["Server", "most"]);
    }
}
