//! A view that is redrawn in place: the last lines of a terminal. To redraw them, the cursor moves up from the line
//! below, where it stays between two draws.
//!
//! A ratatui viewport within the lines of a terminal (`Viewport::Inline`) is unsuitable: it queries the cursor
//! position, which needs raw mode and an answer on the terminal's input, and leaves copies of itself behind when the
//! width changes. So this module only uses ratatui's buffers and their differences.

use std::fmt::Write as _;
use std::io::Write;

use anstream::{AutoStream, ColorChoice};
use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::style::{Color, Style};
use terminal_size::{Height, Width};

/// The assumed size if the terminal does not report one.
const USUAL: Terminal = Terminal {
    columns: 80,
    rows: 24,
};

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Terminal {
    pub(super) columns: u16,
    pub(super) rows: u16,
}

impl Terminal {
    /// The size of the terminal on standard error.
    pub(super) fn now() -> Self {
        let size = terminal_size::terminal_size_of(std::io::stderr());
        let known = size.filter(|(Width(columns), Height(rows))| *columns > 0 && *rows > 0);
        known.map_or(USUAL, |(Width(columns), Height(rows))| Self {
            columns,
            rows,
        })
    }

    /// Columns for a view: a line that fills the terminal might wrap.
    pub(super) fn view_columns(self) -> u16 {
        self.columns.saturating_sub(1).max(1)
    }

    /// Rows for a view: the cursor needs one.
    pub(super) fn view_rows(self) -> u16 {
        self.rows.saturating_sub(1).max(1)
    }
}

/// Whether standard error supports colours.
pub(super) fn has_colour() -> bool {
    AutoStream::choice(&std::io::stderr()) != ColorChoice::Never
}

/// A terminal with a view at its end.
pub(super) struct Screen<W> {
    out: W,
    colour: bool,
    shown: Option<Buffer>,
    /// The terminal's columns at the last draw.
    columns: u16,
}

impl<W: Write> Screen<W> {
    /// A terminal without a view.
    pub(super) fn new(out: W, colour: bool) -> Self {
        Self {
            out,
            colour,
            shown: None,
            columns: 0,
        }
    }

    /// Shows a view in place of the previous one.
    pub(super) fn draw(&mut self, view: Buffer, terminal: Terminal) {
        let same = |shown: &Buffer| self.columns == terminal.columns && shown.area() == view.area();
        let text = match &self.shown {
            Some(shown) if same(shown) => changes(shown, &view, self.colour),
            _ => self.erased(terminal) + &whole(&view, self.colour),
        };
        self.shown = Some(view);
        self.columns = terminal.columns;
        self.put(&text);
    }

    /// Prints a permanent line above the view.
    pub(super) fn above(&mut self, line: &str, terminal: Terminal) {
        let mut text = self.erased(terminal);
        let _ = write!(text, "{line}\r\n");
        if let Some(view) = &self.shown {
            text += &whole(view, self.colour);
            self.columns = terminal.columns;
        }
        self.put(&text);
    }

    /// Removes the view.
    pub(super) fn clear(&mut self, terminal: Terminal) {
        let text = self.erased(terminal);
        self.shown = None;
        self.put(&text);
    }

    /// The output that removes the view. A terminal that became narrower has wrapped its lines.
    fn erased(&self, terminal: Terminal) -> String {
        let Some(shown) = &self.shown else {
            return String::new();
        };
        let columns = usize::from(terminal.columns.max(1));
        let rows = rows(shown).map(|row| used(row).len().div_ceil(columns).max(1));
        match rows.sum() {
            0_usize => String::new(),
            rows => format!("\x1b[{rows}A\r\x1b[J"),
        }
    }

    /// Writes everything at once, so that no partial view shows. A lost terminal is noticed elsewhere.
    fn put(&mut self, text: &str) {
        let written = self.out.write_all(text.as_bytes());
        let _ = written.and_then(|()| self.out.flush());
    }
}

fn rows(view: &Buffer) -> impl Iterator<Item = &[Cell]> {
    view.content().chunks(usize::from(view.area().width).max(1))
}

/// A row without trailing blanks.
fn used(row: &[Cell]) -> &[Cell] {
    let end = row.iter().rposition(|cell| *cell != Cell::EMPTY);
    &row[..end.map_or(0, |end| end + 1)]
}

/// The lines of a view, with or without colours.
pub(super) fn lines(view: &Buffer, colour: bool) -> Vec<String> {
    rows(view)
        .map(|row| {
            let mut line = String::new();
            let mut pen = Pen::new(colour);
            for cell in used(row) {
                pen.write(&mut line, cell);
            }
            pen.lift(&mut line);
            line
        })
        .collect()
}

/// The output that draws a complete view from the beginning of a line.
fn whole(view: &Buffer, colour: bool) -> String {
    let lines = lines(view, colour);
    lines.iter().map(|line| format!("{line}\r\n")).collect()
}

/// The output that turns one view into another of the same size. A row that gets shorter is cleared and rewritten,
/// since terminals that rewrap lines treat written blanks as text. Wrapping is off during the write, in case the
/// terminal has become narrower than the rows and its new size is not known yet.
fn changes(before: &Buffer, view: &Buffer, colour: bool) -> String {
    let height = view.area().height;
    let shrinks: Vec<bool> = rows(before)
        .zip(rows(view))
        .map(|(before, row)| used(row).len() < used(before).len())
        .collect();
    let mut text = String::new();
    let mut pen = Pen::new(colour);
    // The cursor's row, and its column if known.
    let mut at = (height, None);
    let mut cleared = None;
    for (column, row, cell) in before.diff_iter(view) {
        if cleared == Some(row) {
            continue;
        }
        if at.0 != row {
            pen.lift(&mut text);
            let (from, to) = (at.0, row);
            let _ = match from.checked_sub(to) {
                Some(up) => write!(text, "\x1b[{up}A"),
                None => write!(text, "\x1b[{}B", to - from),
            };
        }
        if shrinks[usize::from(row)] {
            let width = usize::from(view.area().width);
            let start = usize::from(row) * width;
            pen.lift(&mut text);
            text += "\r\x1b[2K";
            for changed in used(&view.content()[start..start + width]) {
                pen.write(&mut text, changed);
            }
            (at, cleared) = ((row, None), Some(row));
            continue;
        }
        if at != (row, Some(column)) {
            let _ = write!(text, "\x1b[{}G", column + 1);
        }
        pen.write(&mut text, cell);
        // A wide character moves the cursor further, so the cursor is set again for the next one.
        let narrow = |c: char| c.is_ascii() || ('─'..='▟').contains(&c);
        let one_wide = cell.symbol().chars().all(narrow);
        at = (row, one_wide.then_some(column + 1));
    }
    pen.lift(&mut text);
    if at.0 < height {
        let _ = write!(text, "\x1b[{}B\r", height - at.0);
        text = format!("\x1b[?7l{text}\x1b[?7h");
    }
    text
}

/// Writes cells, with or without colours.
struct Pen {
    colour: bool,
    style: anstyle::Style,
}

impl Pen {
    fn new(colour: bool) -> Self {
        Self {
            colour,
            style: anstyle::Style::new(),
        }
    }

    fn write(&mut self, text: &mut String, cell: &Cell) {
        let style = style_of(cell);
        if self.colour && style != self.style {
            self.lift(text);
            let _ = write!(text, "{style}");
            self.style = style;
        }
        text.push_str(cell.symbol());
    }

    /// Ends the current style.
    fn lift(&mut self, text: &mut String) {
        let _ = write!(text, "{:#}", self.style);
        self.style = anstyle::Style::new();
    }
}

/// The style of a cell, without colours that are the terminal's own.
fn style_of(cell: &Cell) -> anstyle::Style {
    let style = cell.style();
    let chosen = |colour: Option<Color>| colour.filter(|colour| *colour != Color::Reset);
    Style {
        fg: chosen(style.fg),
        bg: chosen(style.bg),
        ..style
    }
    .into()
}

#[cfg(test)]
mod tests {
    use ratatui_core::layout::Rect;

    use super::super::reflow::Reflow;
    use super::*;

    const NARROW: Terminal = Terminal {
        columns: 20,
        rows: 10,
    };

    fn view(lines: &[&str]) -> Buffer {
        let mut view = Buffer::empty(Rect::new(0, 0, 19, lines.len() as u16));
        for (row, line) in lines.iter().enumerate() {
            view.set_string(0, row as u16, line, Style::new());
        }
        view
    }

    fn shown(act: impl FnOnce(&mut Screen<&mut Vec<u8>>)) -> String {
        let mut out = Vec::new();
        act(&mut Screen::new(&mut out, false));
        String::from_utf8(out).unwrap()
    }

    /// What a terminal of this size shows after this output.
    fn seen(terminal: Terminal, printed: &str) -> Vec<String> {
        let size = |cells: u16| cells.try_into().expect("it has a size");
        let mut parser = vt100::Parser::new(size(terminal.rows), size(terminal.columns), 100);
        parser.process(printed.as_bytes());
        let screen = parser.screen();
        let mut rows: Vec<String> = screen
            .rows(0, terminal.columns)
            .map(|row| row.trim_end().to_owned())
            .collect();
        let end = rows.iter().rposition(|row| !row.is_empty());
        rows.truncate(end.map_or(0, |end| end + 1));
        rows
    }

    #[test]
    fn only_what_changed_is_drawn_again() {
        let printed = shown(|screen| {
            screen.draw(view(&["one 1", "two", "three"]), NARROW);
            screen.draw(view(&["one 2", "two", "THREE 3"]), NARROW);
            screen.draw(view(&["one 2", "two 2", "THREE"]), NARROW);
        });
        assert_eq!(seen(NARROW, &printed), ["one 2", "two 2", "THREE"]);
        assert_eq!(printed.matches("one").count(), 1, "{printed:?}");
        let same = shown(|screen| {
            screen.draw(view(&["one"]), NARROW);
            screen.draw(view(&["one"]), NARROW);
        });
        assert_eq!(same, "one\r\n");
    }

    #[test]
    fn finished_trials_stay_above_and_the_view_is_removed() {
        let printed = shown(|screen| {
            screen.above("before any view", NARROW);
            screen.draw(view(&["running", "1"]), NARROW);
            screen.above("first ended", NARROW);
            screen.draw(view(&["running", "2"]), NARROW);
            screen.above("second ended", NARROW);
        });
        let lines = [
            "before any view",
            "first ended",
            "second ended",
            "running",
            "2",
        ];
        assert_eq!(seen(NARROW, &printed), lines);
        let printed = shown(|screen| {
            screen.draw(view(&["running", "1"]), NARROW);
            screen.above("ended", NARROW);
            screen.clear(NARROW);
        });
        assert_eq!(seen(NARROW, &printed), ["ended"]);
        assert!(
            printed.matches("\x1b[?7l").count() == printed.matches("\x1b[?").count() / 2,
            "no mode is changed but wrapping, for a moment: {printed:?}"
        );
    }

    #[test]
    fn it_scrolls_at_the_end_of_the_terminal() {
        let low = Terminal {
            columns: 20,
            rows: 4,
        };
        let printed = shown(|screen| {
            for trial in 0..9 {
                screen.draw(view(&["running", &trial.to_string()]), low);
                screen.above(&format!("ended {trial}"), low);
            }
        });
        assert_eq!(seen(low, &printed), ["ended 8", "running", "8"]);
    }

    #[test]
    fn lines_that_a_narrower_terminal_wrapped_go_too() {
        let half = Terminal {
            columns: 10,
            rows: 10,
        };
        // What a terminal that rewraps its lines shows.
        let wrapped = "above\r\n0123456789\r\n01234567\r\nshort\r\n";
        let printed = shown(|screen| {
            screen.draw(view(&["012345678901234567", "short"]), NARROW);
            screen.clear(half);
        });
        let erases = &printed[printed.find('\x1b').unwrap()..];
        assert_eq!(seen(half, &format!("{wrapped}{erases}")), ["above"]);
    }

    #[test]
    fn nothing_is_left_behind_however_a_terminal_is_resized() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..50 {
            let mut columns = 30;
            let mut terminal = Reflow::new(columns);
            let mut screen = Screen::new(Vec::new(), false);
            let (mut ended, mut last) = (Vec::new(), Vec::new());
            for step in 0..60 {
                let known = Terminal {
                    columns: columns as u16,
                    rows: 10,
                };
                let room = usize::from(known.view_columns());
                let choice = random.u8(..10);
                if choice == 0 {
                    ended.push(format!("trial {step} has ended, and how"));
                    screen.above(&ended[ended.len() - 1], known);
                } else {
                    last = (0..3).map(|_| random.usize(0..=room)).collect();
                    screen.draw(of_lengths(&last, room, 'a'), known);
                }
                terminal.write(&String::from_utf8_lossy(&std::mem::take(&mut screen.out)));
                if choice > 7 {
                    columns = random.usize(9..60);
                    terminal.resize(columns);
                    if choice == 9 && !last.is_empty() {
                        // Drawn before the new size is known.
                        screen.draw(of_lengths(&last, room, 'b'), known);
                        let late = std::mem::take(&mut screen.out);
                        terminal.write(&String::from_utf8_lossy(&late));
                    }
                }
            }
            let known = Terminal {
                columns: columns as u16,
                rows: 10,
            };
            screen.clear(known);
            terminal.write(&String::from_utf8_lossy(&screen.out));
            assert_eq!(terminal.lines(), ended);
        }
    }

    /// Lines of these lengths.
    fn of_lengths(lengths: &[usize], width: usize, c: char) -> Buffer {
        let mut view = Buffer::empty(Rect::new(0, 0, width as u16, lengths.len() as u16));
        for (row, length) in lengths.iter().enumerate() {
            let line = c.to_string().repeat(*length);
            view.set_string(0, row as u16, line, Style::new());
        }
        view
    }

    #[test]
    fn styles_are_only_where_there_is_colour() {
        let mut coloured = Buffer::empty(Rect::new(0, 0, 8, 1));
        coloured.set_string(0, 0, "one", Style::new().fg(Color::Red));
        coloured.set_string(3, 0, " two", Style::new());
        assert_eq!(lines(&coloured, false), ["one two"]);
        assert_eq!(lines(&coloured, true), ["\x1b[31mone\x1b[0m two"]);
    }
}
