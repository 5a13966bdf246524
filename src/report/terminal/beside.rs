//! Two runs side by side, for a terminal.

use std::fmt::Write as _;

use super::{BAD, Paint, QUIET, STRONG, comparison, grid, printable, wrap};
use crate::report::beside::{Beside, LimitBeside, Part, Told};
use crate::report::format::list;

/// What they say, why they may not say it, then a table for each server and number of clients. Of at most
/// `width` columns but for the tables, ending with a line break.
pub fn beside(beside: &Beside, width: usize, colour: bool) -> String {
    let paint = Paint(colour);
    let mut text = String::new();
    for (name, told) in [("A", &beside.a), ("B", &beside.b)] {
        run(&mut text, name, told, &paint);
    }
    text.push('\n');
    wrap(&mut text, &beside.headline, width, "", |line| {
        paint.with(STRONG, line)
    });
    for caveat in &beside.caveats {
        wrap(&mut text, caveat, width, "", |line| paint.with(BAD, line));
    }
    for sentence in beside.sentences() {
        wrap(&mut text, sentence, width, "  ", str::to_owned);
    }
    for part in &beside.parts {
        of_part(&mut text, part, width, &paint);
    }
    for (name, only) in ["A", "B"].iter().zip(&beside.only_in) {
        missing(&mut text, name, only, width, &paint);
    }
    text.push('\n');
    for note in &beside.notes {
        wrap(&mut text, note, width, "", |line| paint.with(QUIET, line));
    }
    text
}

fn run(text: &mut String, name: &str, told: &Told, paint: &Paint) {
    let line = format!("{name}: {}, {}", told.directory, told.started_at);
    let _ = writeln!(text, "{}", paint.with(QUIET, &printable(&line)));
}

fn of_part(text: &mut String, part: &Part, width: usize, paint: &Paint) {
    if let Some(name) = &part.name {
        let title = part.title.as_deref().unwrap_or(name);
        let _ = writeln!(text, "\n{}", paint.with(STRONG, &printable(title)));
    }
    for compared in &part.pairs {
        comparison::table(text, &compared.pair, paint);
    }
    limits(text, &part.limits, paint);
    for (name, only) in ["A", "B"].iter().zip(&part.only_in) {
        missing(text, name, only, width, paint);
    }
}

fn limits(text: &mut String, limits: &[LimitBeside], paint: &Paint) {
    let Some(first) = limits.first() else {
        return;
    };
    let mut rows = vec![
        ["Limit", "A", "B", "Ratio", "B is"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows[0][0] = format!("Limit, {}", first.unit);
    rows.extend(limits.iter().map(|limit| {
        let mut row = vec![printable(&limit.server)];
        row.extend(limit.cells());
        row
    }));
    text.push('\n');
    for (place, line) in grid::lines(&rows).iter().enumerate() {
        let line = if place == 0 {
            paint.with(STRONG, line)
        } else {
            line.clone()
        };
        let _ = writeln!(text, "{line}");
    }
}

fn missing(text: &mut String, name: &str, only: &[String], width: usize, paint: &Paint) {
    if !only.is_empty() {
        let sentence = format!("Only in {name}: {}.", list(only));
        text.push('\n');
        wrap(text, &sentence, width, "", |line| paint.with(QUIET, line));
    }
}
