//! Response times below the maximum, for a terminal.

use std::fmt::Write as _;

use super::{Paint, QUIET, STRONG, WIDEST_NAME, grid, printable, wrap};
use crate::report::below::{Cell, Table};
use crate::report::format::counted;
use crate::report::summary::Summary;

/// Stands at a time that was taken while a rate was not kept.
const MARK: char = '!';

/// The table of the largest number of clients; the others are in the report. In a narrow terminal the
/// medians are left out.
pub(super) fn table(text: &mut String, summary: &Summary, width: usize, paint: &Paint) {
    let Some(table) = Table::of(summary) else {
        return;
    };
    let Some((clients, lines)) = table.groups.last() else {
        return;
    };
    let all = |wanted: &dyn Fn(usize) -> bool| -> Vec<String> {
        let chosen = |first: String, cells: &mut dyn Iterator<Item = String>| -> Vec<String> {
            let cells = cells.enumerate().filter(|(place, _)| wanted(*place));
            let cells = cells.map(|(_, cell)| cell);
            std::iter::once(first).chain(cells).collect()
        };
        let heading = chosen("Server".to_owned(), &mut table.titles.iter().cloned());
        let rows = lines.iter().map(|(server, cells)| {
            let name: String = printable(server).chars().take(WIDEST_NAME).collect();
            chosen(name, &mut cells.iter().map(content))
        });
        let rows: Vec<Vec<String>> = std::iter::once(heading).chain(rows).collect();
        grid::lines(&rows)
    };
    let fits = |lines: &Vec<String>| lines.iter().all(|line| line.chars().count() <= width);
    let percents = table.titles.len() - 2;
    let without_medians = |place: usize| place % 2 == 1 || place >= percents;
    let lines = Some(all(&|_| true)).filter(fits);
    let lines = lines.unwrap_or_else(|| all(&without_medians));
    let title = format!(
        "Response time below the maximum, {}",
        counted(*clients, "client")
    );
    let _ = writeln!(text, "\n{}", paint.with(STRONG, &title));
    for (place, line) in lines.iter().enumerate() {
        let line: String = line.chars().take(width.max(20)).collect();
        let line = if place == 0 {
            paint.with(QUIET, &line)
        } else {
            line
        };
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if lines.iter().any(|line| line.contains(MARK)) {
        let note = format!("{MARK} not below the maximum: the server did not keep this rate");
        wrap(text, &note, width, "", |line| paint.with(QUIET, line));
    }
}

/// Small print has no room but for what makes a figure another one.
fn content(cell: &Cell) -> String {
    if cell.not_kept {
        format!("{}{MARK}", cell.text)
    } else {
        cell.text.clone()
    }
}
