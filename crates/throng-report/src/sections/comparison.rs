//! Servers compared with a reference.

use crate::Report;
use crate::comparison::{Comparison, Pair, PairMetric};
use crate::document::{Block, Cell, Column, Medium, Role, Row, Table, Tone};
use throng_record::format::counted;
use throng_stats::Verdict;

/// The basis of the table's ratios and verdicts.
pub(super) const HINT: &str = "Medians over trials or slices. Ratios are trimmed means over pairs of them, with 95 % intervals from 6 pairs on. Verdicts are \
    corrected for the number of comparisons (Holm).";

/// The same in short, for a terminal.
pub(super) fn note() -> Block {
    let text = "Ratios are over pairs close in time, not of the medians. Verdicts allow for the number of comparisons.";
    let note = vec![Block::paragraph(Role::Fine, text)];
    Block::Except(&[Medium::Html, Medium::Markdown], note)
}

pub(super) fn blocks(report: &Report<'_>) -> Vec<Block> {
    let mut blocks = vec![Block::paragraph(Role::Hint, HINT)];
    let all = by_names(report);
    for (name, pairs) in &all {
        // A single table needs no heading of its own.
        let own = tables(pairs, *name).into_iter();
        blocks.extend(own.filter(|block| all.len() > 1 || !matches!(block, Block::Heading(_))));
    }
    blocks.extend((!all.is_empty()).then(note));
    blocks
}

/// The pairs of a report by the names of their servers.
fn by_names<'a>(report: &'a Report<'_>) -> Vec<([&'a str; 2], Vec<&'a Pair>)> {
    let mut all: Vec<([&str; 2], Vec<&Pair>)> = Vec::new();
    let compared = report.comparison.requested().into_iter();
    for pair in compared.flat_map(Comparison::all_pairs) {
        let name = [pair.reference.as_str(), &pair.server];
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, pairs)) => pairs.push(pair),
            None => all.push((name, vec![pair])),
        }
    }
    all
}

/// The verdicts on several servers, a row for each, with the sizes of the differences.
pub(super) fn of_several(report: &Report<'_>) -> Option<Table> {
    let all = by_names(report);
    let [(first, _), _, ..] = all.as_slice() else {
        return None;
    };
    let mut pairs: Vec<&Pair> = all.iter().flat_map(|(_, pairs)| pairs).copied().collect();
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.clients));
    // A pair that is not compared may lack some.
    let fullest = pairs.iter().max_by_key(|pair| pair.measures.len())?;
    let metrics: Vec<&PairMetric> = fullest.measures.iter().collect();
    if metrics.is_empty() {
        return None;
    }
    let row = |pair: &&Pair| {
        let cells = metrics.iter().map(|metric| {
            let measured = pair.by(metric.name);
            measured.map_or_else(Cell::default, |one| {
                Cell::plain(one.size()).toned(tone(one.verdict))
            })
        });
        Row::of(pair.server.as_str(), cells.collect())
    };
    let groups = pairs
        .chunk_by(|one, other| one.clients == other.clients)
        .map(|some| {
            let title = counted(some[0].clients, "client");
            (title, some.iter().map(row).collect())
        });
    let titles = (1..).zip(&metrics);
    let of_metrics = titles.map(|(drop, metric)| Column::text(metric.title).dropped(drop));
    let has_one_reference = all.iter().all(|([reference, _], _)| *reference == first[0]);
    let caption = if has_one_reference {
        format!("Compared with {}", first[0])
    } else {
        "Compared with the reference".to_owned()
    };
    let columns = std::iter::once(Column::text("")).chain(of_metrics);
    Some(Table::in_groups(caption, columns.collect(), groups))
}

/// The tables of the only pair, which the answer and a terminal have room for; of more, a terminal shows the results in
/// one table and the ratios in words.
pub(super) fn of_one_pair(report: &Report<'_>) -> Option<Vec<Block>> {
    match by_names(report).as_slice() {
        [(name, pairs)] => Some(tables(pairs, *name)),
        _ => None,
    }
}

/// The tables of the same two servers with each number of clients; `headings` are the headings of their columns.
pub(super) fn tables(pairs: &[&Pair], headings: [&str; 2]) -> Vec<Block> {
    let Some(first) = pairs.first() else {
        return Vec::new();
    };
    let caption = format!("{} compared with {}", first.server, first.reference);
    let judged: Vec<(u32, Vec<PairMetric>)> = pairs.iter().map(|pair| own_reasons(pair)).collect();
    let measures = judged
        .iter()
        .map(|(clients, measures)| (*clients, measures.as_slice()));
    let mut blocks = vec![
        Block::Heading(caption.as_str().into()),
        Block::Table(table(&caption, headings, measures)),
    ];
    for pair in pairs {
        if let Some(why) = &pair.not_compared {
            let with = counted(pair.clients, "client");
            let text = format!("Not comparable with {with}: {why}.");
            blocks.push(Block::paragraph(Role::Hint, text));
        }
    }
    blocks
}

/// The measures of a pair, without the reason that holds for the whole pair, which is given only once.
fn own_reasons(pair: &Pair) -> (u32, Vec<PairMetric>) {
    let mut measures = pair.measures.clone();
    for measured in &mut measures {
        measured
            .why
            .take_if(|why| Some(&*why) == pair.not_compared.as_ref());
    }
    (pair.clients, measures)
}

/// The measures of both servers with each number of clients.
pub(super) fn table<'a>(
    caption: &str,
    [reference, server]: [&str; 2],
    groups: impl Iterator<Item = (u32, &'a [PairMetric])>,
) -> Table {
    let made = groups.map(|(clients, measures)| {
        let rows = measures.iter().map(row).collect();
        (counted(clients, "client"), rows)
    });
    let columns = vec![
        Column::text(""),
        Column::number(reference),
        Column::number(server),
        Column::number("Ratio (95 %)"),
        Column::text(format!("{server} is")),
    ];
    Table::in_groups(caption, columns, made)
}

fn row(measured: &PairMetric) -> Row {
    let [reference, value, ratio, verdict] = measured.cells();
    let judged = Cell::plain(verdict).toned(tone(measured.verdict));
    let why = measured.why.as_deref().unwrap_or_default();
    let cells = [reference, value, ratio].map(Cell::plain).into_iter();
    Row::of(measured.title, cells.chain([judged.with(why)]).collect())
}

/// The tone of a verdict.
pub(super) fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Better => Tone::Good,
        Verdict::Worse => Tone::Bad,
        Verdict::Equivalent | Verdict::Inconclusive | Verdict::NotComparable => Tone::Quiet,
    }
}
