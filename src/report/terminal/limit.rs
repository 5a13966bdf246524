//! Limits for a terminal: what was found, then what was tried.

use std::fmt::Write as _;

use super::{BAD, GOOD, Paint, QUIET, STRONG, printable, sentences, wrap};
use crate::report::answer::Answer;
use crate::report::format::whole;
use crate::report::limit::{COLUMNS, Limits, ServerLimit};

/// The limits as text of at most `width` columns, but for tables in a very narrow terminal, ending with a
/// line break.
pub fn limits(answer: &Answer, limits: &Limits, width: usize, colour: bool) -> String {
    let paint = Paint(colour);
    let mut text = sentences(answer, width, &paint);
    for server in &limits.servers {
        tries(&mut text, limits, server, width, &paint);
    }
    for note in &answer.notes {
        wrap(&mut text, note, width, "", |line| paint.with(QUIET, line));
    }
    text
}

fn tries(text: &mut String, limits: &Limits, server: &ServerLimit, width: usize, paint: &Paint) {
    if server.tries.is_empty() {
        return;
    }
    let mut columns: Vec<(&str, Vec<String>)> = vec![(
        limits.unit(),
        server
            .tries
            .iter()
            .map(|one| whole(one.value as f64))
            .collect(),
    )];
    let with_data = COLUMNS
        .iter()
        .filter(|column| column.has_data(&server.tries));
    columns.extend(with_data.map(|column| {
        let cells = server.tries.iter().map(|one| (column.text)(one)).collect();
        (column.title, cells)
    }));
    let widths: Vec<usize> = columns
        .iter()
        .map(|(title, cells)| {
            let longest = cells.iter().map(|cell| cell.chars().count()).max();
            longest.unwrap_or(0).max(title.chars().count())
        })
        .collect();
    let verdicts: Vec<String> = server
        .tries
        .iter()
        .map(super::super::limit::Try::verdict)
        .collect();
    let room = width.saturating_sub(verdicts.iter().map(String::len).max().unwrap_or(0) + 2);
    // Columns that do not fit are left out, from the right.
    let mut used = 0;
    let fitting = widths
        .iter()
        .take_while(|column| {
            used += *column + 2;
            used <= room + 2
        })
        .count()
        .max(1);
    let line = |cell: &dyn Fn(usize) -> String| {
        let cells = (0..fitting).map(|place| format!("{:>1$}", cell(place), widths[place]));
        cells.collect::<Vec<_>>().join("  ")
    };
    let _ = writeln!(
        text,
        "\n{}",
        paint.with(
            STRONG,
            &format!("{}: {}", printable(&server.server), server.text())
        )
    );
    let heading = line(&|place| columns[place].0.to_owned());
    let _ = writeln!(text, "{}", paint.with(QUIET, &heading));
    for (place, one) in server.tries.iter().enumerate() {
        let style = if one.held { GOOD } else { BAD };
        let cells = line(&|column| columns[column].1[place].clone());
        let _ = writeln!(text, "{cells}  {}", paint.with(style, &verdicts[place]));
    }
}
