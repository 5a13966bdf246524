//! The summary for a terminal: the answer, then a table for each number of clients.
//!
//! In a narrow terminal columns are left out in the order of `Cells::drop`, highest first; the
//! server's name, the rate and the CPU cost always stay. The best of a group is marked `*`, so
//! that nothing depends on colour.

mod below;
mod beside;
mod comparison;
mod grid;
mod limit;
mod study;

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use super::answer::Answer;
use super::columns::{COLUMNS, Column};
use super::format::{ABSENT, counted, printable};
use super::summary::{Row, Summary};
pub use beside::beside;
pub use comparison::comparison;
pub use limit::limits;
pub use study::study;

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
const WIDEST_NAME: usize = 24;

/// A column of the table, taken from [`COLUMNS`] by its title.
struct Cells {
    title: &'static str,
    /// A bar beside the value.
    bar: bool,
    /// The small print too.
    detail: bool,
    /// What goes first when there is no room: the highest; 0 stays.
    drop: u8,
}

const fn cells(title: &'static str, bar: bool, detail: bool, drop: u8) -> Cells {
    Cells {
        title,
        bar,
        detail,
        drop,
    }
}

const TABLE: &[Cells] = &[
    cells("Served", false, false, 2),
    cells("Done", false, false, 2),
    cells("Completion", true, false, 0),
    cells("Clients/s", false, false, 7),
    cells("Replies/s", true, false, 0),
    cells("CPU/reply", true, false, 0),
    cells("p50", false, false, 5),
    cells("p99", false, false, 1),
    cells("First answer", false, false, 8),
    cells("Memory", false, false, 3),
    cells("Fairness", false, false, 4),
    cells("Errors", false, false, 6),
    cells("CPU used", false, true, 9),
    cells("In kernel", false, false, 10),
    cells("Switches/reply", false, false, 12),
    cells("System calls/reply", false, false, 11),
];

/// The summary as text of at most `width` columns, ending with a line break.
pub fn table(summary: &Summary, width: usize, colour: bool) -> String {
    let paint = Paint(colour);
    let answer = Answer::of(summary);
    let mut text = sentences(&answer, width, &paint);
    let columns = fitting(summary, width);
    for clients in summary.clients.iter().rev() {
        group(&mut text, summary, *clients, &columns, &paint);
    }
    below::table(&mut text, summary, width, &paint);
    if summary.rows.iter().any(|row| row.served_all) {
        text.push('\n');
        wrap(
            &mut text,
            "* best of its group, among servers that served all clients",
            width,
            "",
            |line| paint.with(QUIET, line),
        );
    }
    for note in &answer.notes {
        wrap(&mut text, note, width, "", |line| paint.with(QUIET, line));
    }
    text
}

/// What is said before any table.
fn sentences(answer: &Answer, width: usize, paint: &Paint) -> String {
    let mut text = String::new();
    for sentence in &answer.headline {
        wrap(&mut text, sentence, width, "", str::to_owned);
    }
    for sentence in &answer.others {
        wrap(&mut text, sentence, width, "  ", |line| {
            paint.with(QUIET, line)
        });
    }
    text
}

/// A column laid out: as wide as its widest cell.
struct Laid {
    column: &'static Column,
    cells: &'static Cells,
    width: usize,
    /// Width of its bar; 0: none.
    bar: usize,
}

impl Laid {
    fn content(&self, row: &Row) -> String {
        let mut text = (self.column.text)(row);
        let detail = (self.column.detail)(row);
        if self.cells.detail && !detail.is_empty() {
            let _ = write!(text, " ({detail})");
        }
        text
    }

    /// With the gap to its left, the mark and the bar.
    fn whole_width(&self) -> usize {
        1 + self.width + 1 + self.bar
    }
}

/// The columns that have data and fit.
fn fitting(summary: &Summary, width: usize) -> Vec<Laid> {
    let mut laid: Vec<Laid> = TABLE
        .iter()
        .filter_map(|cells| {
            let column = COLUMNS.iter().find(|column| column.title == cells.title)?;
            let bar = if width >= ROOMY { 8 } else { 5 };
            let mut laid = Laid {
                column,
                cells,
                width: column.title.chars().count(),
                bar: if cells.bar { bar } else { 0 },
            };
            let widest = summary
                .rows
                .iter()
                .map(|row| laid.content(row).chars().count())
                .max();
            laid.width = laid.width.max(widest.unwrap_or(0));
            column.has_data(summary).then_some(laid)
        })
        .collect();
    let total =
        |laid: &[Laid]| name_width(summary) + laid.iter().map(Laid::whole_width).sum::<usize>();
    while total(&laid) > width {
        let last = laid.iter().map(|laid| laid.cells.drop).max().unwrap_or(0);
        if last == 0 {
            break;
        }
        laid.retain(|laid| laid.cells.drop != last);
    }
    laid
}

fn name_width(summary: &Summary) -> usize {
    let names = summary
        .servers
        .iter()
        .map(|name| name.chars().count().min(WIDEST_NAME));
    names.max().unwrap_or(0).max("Server".len())
}

fn group(text: &mut String, summary: &Summary, clients: u32, columns: &[Laid], paint: &Paint) {
    let name_width = name_width(summary);
    let mut heading = format!("{:name_width$}", "Server");
    for laid in columns {
        let (width, bar) = (laid.width, laid.bar);
        let _ = write!(heading, " {:>width$} {:bar$}", laid.column.title, "");
    }
    let _ = writeln!(
        text,
        "\n{}",
        paint.with(STRONG, &counted(clients, "client"))
    );
    let _ = writeln!(text, "{}", paint.with(QUIET, heading.trim_end()));
    for row in summary.rows_at(clients) {
        let name: String = printable(&row.server).chars().take(WIDEST_NAME).collect();
        let mut line = format!("{name:name_width$}");
        if row.trials_ok == 0 {
            let reason = row.failures.first().map_or(ABSENT, String::as_str);
            let failed = format!("failed: {}", printable(reason));
            let room = columns
                .iter()
                .map(Laid::whole_width)
                .sum::<usize>()
                .saturating_sub(1);
            let short: String = failed.chars().take(room).collect();
            let _ = writeln!(text, "{line} {}", paint.with(BAD, &short));
            continue;
        }
        for laid in columns {
            cell(&mut line, summary, row, laid, paint);
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

fn cell(line: &mut String, summary: &Summary, row: &Row, laid: &Laid, paint: &Paint) {
    let best = laid
        .column
        .is_best(row, laid.column.best_of(summary, row.clients));
    let content = format!(
        "{:>width$}{}",
        laid.content(row),
        if best { "*" } else { " " },
        width = laid.width
    );
    let style = match laid.cells.title {
        _ if best => GOOD,
        "Served" if !row.served_all => BAD,
        _ if !row.served_all => QUIET,
        _ => Style::new(),
    };
    let _ = write!(line, " {}", paint.with(style, &content));
    if laid.bar > 0 {
        let greatest = laid.column.greatest(summary, row.clients);
        let share =
            (laid.column.value)(row).map_or(0.0, |value| value / greatest.max(f64::MIN_POSITIVE));
        line.push_str(&paint.with(BAR, &bar(share, laid.bar)));
    }
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

/// Breaks a sentence into lines at spaces.
fn wrap(
    text: &mut String,
    sentence: &str,
    width: usize,
    indent: &str,
    paint: impl Fn(&str) -> String,
) {
    let width = width.clamp(20, WIDEST_TEXT) - indent.len();
    let sentence = printable(sentence);
    let mut line = String::new();
    for word in sentence.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            let _ = writeln!(text, "{indent}{}", paint(&line));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    let _ = writeln!(text, "{indent}{}", paint(&line));
}

struct Paint(bool);

impl Paint {
    fn with(&self, style: Style, text: &str) -> String {
        if self.0 && !style.is_plain() {
            format!("{}{text}{}", style.render(), style.render_reset())
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    fn summary() -> Summary {
        let (run, trials) = fixture::record();
        Summary::of(&run, &trials).unwrap()
    }

    #[test]
    fn at_80_columns() {
        let text = table(&summary(), 80, false);
        assert!(text.lines().all(|line| line.chars().count() <= 80));
        insta::assert_snapshot!(text);
    }

    #[test]
    fn at_160_columns() {
        let text = table(&summary(), 160, false);
        assert!(text.lines().all(|line| line.chars().count() <= 160));
        insta::assert_snapshot!(text);
    }

    #[test]
    fn colour_changes_nothing_but_colour() {
        let plain = anstream::adapter::strip_str(&table(&summary(), 100, true)).to_string();
        let spaces = |text: &str| {
            text.lines()
                .map(str::trim_end)
                .collect::<Vec<_>>()
                .join("\n")
        };
        assert_eq!(spaces(&plain), spaces(&table(&summary(), 100, false)));
    }

    #[test]
    fn a_name_cannot_steer_the_terminal() {
        let mut summary = summary();
        summary.rows[0].server = "\u{1b}[2Jx".to_owned();
        assert!(!table(&summary, 80, false).contains('\u{1b}'));
    }
}
