//! Tables as text: the columns and rows that fit, with bars.

use anstream::adapter::strip_str;
use anstyle::{AnsiColor, Style};

use super::super::{Cell, Column, NOT_IN_TERMINAL, Row, Table, Tone};
use super::{BAD, FEWEST_OF_TABLE, QUIET, STRONG, Screen, Writer, lines, style};
use throng_record::format::{cut, list, padded, padded_left, printable};

const BAR: Style = AnsiColor::Cyan.on_default();

/// From this width on, bars are long.
const ROOMY: usize = 120;

/// A column of text is made no narrower than this.
const NARROWEST: usize = 16;

/// Cells of the longest bar.
const LONGEST_BAR: usize = 40;

/// Names longer than this are cut.
const WIDEST_NAME: usize = 32;
/// So are other texts.
const WIDEST: usize = 200;

impl Writer {
    /// Writes a table, or as much of it as fits.
    pub(super) fn table(&mut self, table: &Table) {
        let laid = fitting(table, self.width.saturating_sub(self.indent));
        let name_width = laid.first().map_or(0, |first| first.width);
        let mut left_out = Vec::new();
        let mut has_best = false;
        for (place, group) in table.groups.iter().enumerate() {
            let title = printable(&group.title);
            let fits = !title.is_empty() && title.chars().count() <= name_width;
            let headings = 1 + usize::from(!title.is_empty() && !fits);
            // A line says what the mark means; more say what is missing.
            let of_mark = usize::from(table.best().is_some());
            let above = self.gaps() + headings;
            let all_fit = above + group.rows.len() + of_mark <= self.room();
            let below = if all_fit {
                of_mark
            } else {
                self.lines_below(table)
            };
            let room = self.room().saturating_sub(above + below);
            if group.rows.len() > room && (place > 0 || room + 2 < FEWEST_OF_TABLE) {
                let what = if title.is_empty() {
                    &table.caption
                } else {
                    &group.title
                };
                left_out.push(printable(what));
                continue;
            }
            self.gap();
            if !title.is_empty() && !fits {
                self.wrap(&title.as_str().into(), STRONG);
            }
            let mut heading = String::new();
            for (column_place, one) in laid.iter().enumerate() {
                let column = match column_place {
                    0 if fits => self.paint(STRONG, &one.aligned(&title)),
                    _ => self.paint(QUIET, &one.aligned(&title_of(one.column))),
                };
                let after = " ".repeat(if column_place == 0 { 0 } else { 1 + one.bar });
                let before = if column_place == 0 { "" } else { " " };
                heading += &format!("{before}{column}{after}");
            }
            self.line(&heading);
            let shown = most_important(&group.rows, room);
            if shown.len() < group.rows.len() {
                left_out.push(format!("{} more", group.rows.len() - shown.len()));
            }
            for row in shown {
                self.row(&laid, row, !table.best_of.is_empty());
                has_best |= laid
                    .iter()
                    .skip(1)
                    .any(|one| one.cell(row).tone == Tone::Best);
            }
        }
        let mut notes = Vec::new();
        if has_best && !table.best_of.is_empty() {
            notes.push(format!("* best of {}", table.best_of));
        }
        if !left_out.is_empty() {
            notes.push(missing(table, &list(&left_out)));
        }
        if !notes.is_empty() {
            self.wrap(&notes.join(". ").into(), QUIET);
        }
    }

    /// The number of lines below a table of which some rows are missing.
    fn lines_below(&self, table: &Table) -> usize {
        let screen = Screen {
            columns: self.width,
            rows: None,
            colour: false,
        };
        let mut writer = Writer::new(screen, None);
        writer.wrap(&missing(table, "99 more").as_str().into(), QUIET);
        lines(&writer.text)
    }

    fn row(&mut self, laid: &[ColumnLayout<'_>], row: &Row, marks_best: bool) {
        let Some((first, others)) = laid.split_first() else {
            return;
        };
        let mut line = first.aligned(&name(row));
        if !row.why.is_empty() {
            let room = self.width.saturating_sub(self.indent + first.width + 2);
            let short = cut(&printable(&row.why), room);
            line += &format!(" {}", self.paint(BAD, &short));
            self.line(&line);
            return;
        }
        // Only the last column may be narrower than its text.
        let mut more = Vec::new();
        for one in others {
            let cell = one.cell(row);
            let is_marked = cell.tone == Tone::Best && marks_best;
            let mark = if is_marked { '*' } else { ' ' };
            let mut lines = in_lines(&text_of(cell), one.width).into_iter();
            let first_line = lines.next().unwrap_or_default();
            more = lines.collect();
            let text = format!("{}{mark}", one.aligned(&first_line));
            let style = match cell.tone {
                Tone::Plain if row.is_quiet => QUIET,
                tone => style(tone),
            };
            line += &format!(" {}", self.paint(style, &text));
            if one.bar > 0 {
                line.push(' ');
                line += &self.paint(BAR, &bar(cell.bar.unwrap_or(0.0), one.bar - 1));
            }
        }
        self.line(&line);
        // There is no gap before the first column.
        let columns_before = &laid[..laid.len() - 1];
        let widths = columns_before.iter().map(ColumnLayout::whole_width);
        let before = widths
            .sum::<usize>()
            .saturating_sub(usize::from(first.column.is_text));
        for text in more {
            self.line(&format!("{}{text}", " ".repeat(before)));
        }
    }
}

/// What is missing from a table, and the meaning of its marks.
fn missing(table: &Table, what: &str) -> String {
    let end = if table.key.is_empty() { "" } else { ". " };
    format!("In the report: {what}{end}{}", table.key)
}

/// At most this many of the rows, in order: those that are named above the table, then the first.
fn most_important(rows: &[Row], most: usize) -> Vec<&Row> {
    let mut places: Vec<usize> = (0..rows.len()).collect();
    places.sort_by_key(|place| !rows[*place].is_named);
    places.truncate(most);
    places.sort_unstable();
    places.into_iter().map(|place| &rows[place]).collect()
}

/// A text in lines of at most this width, unless a word is longer. Colours have no width.
pub fn in_lines(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if visible(line) + 1 + visible(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The number of characters that are visible.
fn visible(text: &str) -> usize {
    strip_str(text).to_string().chars().count()
}

fn name(row: &Row) -> String {
    printable(&row.name.words())
        .chars()
        .take(WIDEST_NAME)
        .collect()
}

fn text_of(cell: &Cell) -> String {
    cut(&printable(&cell.text), WIDEST)
}

fn title_of(column: &Column) -> String {
    cut(&printable(&column.title), WIDEST)
}

/// The layout of a column, which is as wide as its widest cell.
struct ColumnLayout<'a> {
    column: &'a Column,
    /// Index of the column; 0 holds the names.
    place: usize,
    width: usize,
    /// Width of its bar and the gap before it; 0 for no bar.
    bar: usize,
}

impl ColumnLayout<'_> {
    fn cell<'a>(&self, row: &'a Row) -> &'a Cell {
        const NOTHING: &Cell = &Cell {
            text: String::new(),
            detail: String::new(),
            tone: Tone::Plain,
            bar: None,
        };
        row.cells.get(self.place - 1).unwrap_or(NOTHING)
    }

    fn aligned(&self, text: &str) -> String {
        let width = self.width;
        match (self.column.is_text, self.place) {
            (true, _) => padded(text, width),
            // There is no mark between it and the next column.
            (false, 0) => padded_left(text, width) + " ",
            (false, _) => padded_left(text, width),
        }
    }

    /// The width with the gap to its left, the mark and the bar.
    fn whole_width(&self) -> usize {
        1 + self.width + 1 + self.bar
    }
}

/// The columns that fit into `width`.
fn fitting(table: &Table, width: usize) -> Vec<ColumnLayout<'_>> {
    let columns = table.columns.iter().enumerate();
    let shown = columns.filter(|(_, column)| column.drop != NOT_IN_TERMINAL);
    let mut laid: Vec<ColumnLayout<'_>> = shown
        .map(|(place, column)| {
            let mut laid = ColumnLayout {
                column,
                place,
                width: 0,
                bar: 0,
            };
            let of_row = |row: &Row| match place {
                0 => name(row).chars().count(),
                _ => text_of(laid.cell(row)).chars().count(),
            };
            let widest = table.rows().map(of_row).max().unwrap_or(0);
            // A bar alone compares with nothing.
            let bars = table
                .rows()
                .filter(|row| place > 0 && laid.cell(row).bar.is_some());
            let has_bar = bars.count() > 1;
            laid.width = widest.max(title_of(column).chars().count());
            laid.bar = match (has_bar, width >= ROOMY) {
                (false, _) => 0,
                (true, false) => 6,
                (true, true) => 9,
            };
            laid
        })
        .collect();
    // There is no gap before the first column, and the mark of the last one may be cut.
    let total = |all: &[ColumnLayout<'_>]| all.iter().map(ColumnLayout::whole_width).sum::<usize>();
    while total(&laid) > width + 2 {
        let last = laid.iter().map(|laid| laid.column.drop).max().unwrap_or(0);
        if last == 0 {
            break;
        }
        laid.retain(|laid| laid.column.drop != last);
    }
    let beyond = total(&laid).saturating_sub(width + 1);
    if let Some(last) = laid.last_mut().filter(|last| last.column.is_text) {
        last.width = last
            .width
            .saturating_sub(beyond)
            .max(NARROWEST.min(last.width));
    }
    // A bar alone may be longer.
    let room = (width + 1).saturating_sub(total(&laid));
    let mut bars = laid.iter_mut().filter(|laid| laid.bar > 0);
    if let (Some(only), None) = (bars.next(), bars.next()) {
        only.bar = (LONGEST_BAR + 1).min(only.bar + room);
    }
    laid
}

/// A bar drawn in eighths of a cell, padded with spaces.
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

    #[test]
    fn columns_are_dropped_until_a_table_fits() {
        let column = |title: &str, drop| Column::number(title).dropped(drop);
        let columns = vec![
            Column::text("Server"),
            column("least", 3),
            column("most", 0),
            column("more", 1),
            column("never", NOT_IN_TERMINAL),
        ];
        let rows = vec![Row::of("epoll", vec![Cell::plain("1"); 4])];
        let table = Table::of("", columns, rows);
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

    #[test]
    fn a_table_of_names_only_is_written() {
        let rows = vec![Row::of("epoll", Vec::new())];
        let table = Table::of("", vec![Column::text("Server")], rows);
        let text = super::super::blocks(&[super::super::Block::Table(table)], 60);
        assert!(text.contains("epoll"), "{text}");
    }

    #[test]
    fn the_last_column_of_text_is_wrapped() {
        let claim = "With few client threads, the spread narrows from thread to poll to epoll.";
        let rows = vec![Row::of("not measurable here", vec![Cell::plain(claim)])];
        let columns = vec![Column::text("Here"), Column::text("Claim")];
        let document = [super::super::Block::Table(Table::of("", columns, rows))];
        let text = super::super::blocks(&document, 60);
        let mut widths = text.lines().map(|line| strip_str(line).to_string());
        assert!(
            widths.clone().all(|line| line.chars().count() <= 60),
            "{text}"
        );
        let last = widths.next_back().unwrap();
        assert!(
            last.starts_with("                    narrows") && last.contains("epoll"),
            "{text}"
        );
    }
}
