//! A study of several parts for a terminal: its claims, what was published beside what was measured, and
//! what each part says first.

use std::fmt::Write as _;

use super::{BAD, GOOD, Paint, QUIET, STRONG, printable, wrap};
use crate::report::study::StudyReport;
use crate::report::study::claims::Finding;
use crate::report::study::published::Table;

/// The study as text of at most `width` columns, ending with a line break.
pub fn study(report: &StudyReport<'_>, width: usize, colour: bool) -> String {
    let paint = Paint(colour);
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}",
        paint.with(STRONG, &printable(&report.study.question))
    );
    if let Some(note) = report.scale_note() {
        wrap(&mut text, &note, width, "", |line| paint.with(BAD, line));
    }
    for claim in &report.claims {
        let style = match claim.verdict {
            Finding::Confirmed => GOOD,
            Finding::Refuted => BAD,
            Finding::NotDistinguishable | Finding::NotChecked => QUIET,
        };
        let verdict = claim.verdict.text();
        let sentence = format!("{verdict}: {}", claim.text);
        text.push('\n');
        wrap(&mut text, &sentence, width, "", |line| {
            paint.with(style, line)
        });
        wrap(&mut text, &claim.sentence, width, "  ", str::to_owned);
        if let Some(why) = &claim.why {
            wrap(&mut text, why, width, "  ", |line| paint.with(QUIET, line));
        }
    }
    for part in &report.parts {
        let _ = writeln!(
            text,
            "\n{}",
            paint.with(STRONG, &printable(&part.record.title))
        );
        if let Some(why) = &part.record.skipped {
            let why = format!("not run here: {why}");
            wrap(&mut text, &why, width, "", |line| paint.with(BAD, line));
        }
        for left_out in &part.record.left_out {
            wrap(&mut text, &left_out.words(), width, "", |line| {
                paint.with(BAD, line)
            });
        }
        let answer = part
            .report
            .iter()
            .flat_map(|report| &report.answer.headline);
        for sentence in answer {
            wrap(&mut text, sentence, width, "", str::to_owned);
        }
        published(&mut text, &part.published, width, &paint);
    }
    text
}

/// A line for each server and figure: as many servers fit as there are.
fn published(text: &mut String, table: &Table, width: usize, paint: &Paint) {
    if table.rows.is_empty() {
        return;
    }
    let footnotes = table.footnotes();
    let mut lines = vec![["", "", "published", "measured", "ratio"].map(str::to_owned)];
    // Each with the number of the line that it stands above.
    let mut headings: Vec<(usize, String)> = Vec::new();
    for group in table.groups() {
        let in_one = group.in_one();
        if in_one.is_none() {
            headings.push((lines.len(), group.heading()));
        }
        for row in group.rows {
            let mut label = match &in_one {
                Some(label) => label.clone(),
                None => format!("  {}", row.label()),
            };
            for cell in row.cells.iter().filter(|cell| cell.published.is_some()) {
                lines.push([
                    std::mem::take(&mut label),
                    printable(&cell.server),
                    printable(&cell.published_in_table(&footnotes)),
                    printable(&cell.measured_in_table(&footnotes)),
                    cell.ratio_text().unwrap_or_default(),
                ]);
            }
        }
    }
    let wide = |column: usize| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let [a, b, c, d] = [wide(0), wide(1), wide(2), wide(3)];
    let quiet = |line: &str| paint.with(QUIET, line);
    for (place, [figure, server, published, measured, ratio]) in lines.iter().enumerate() {
        for (_, heading) in headings.iter().filter(|(above, _)| *above == place) {
            wrap(text, heading, width, "", str::to_owned);
        }
        let line = format!("{figure:a$}  {server:b$}  {published:>c$}  {measured:>d$}  {ratio:>7}");
        let line = line.trim_end();
        let line = if place == 0 {
            quiet(line)
        } else {
            line.to_owned()
        };
        let _ = writeln!(text, "{line}");
    }
    for (place, note) in footnotes.iter().enumerate() {
        wrap(text, &format!("[{}] {note}", place + 1), width, "", quiet);
    }
}
