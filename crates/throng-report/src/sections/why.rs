//! Why servers differ: sentences, and tables of what a request costs each of them.

use std::collections::BTreeMap;

use crate::Report;
use crate::document::{Block, Cell, Column, Role, Row, Table, Tone};
use crate::figures::OfSection;
use crate::why::{Difference, Why};
use throng_record::format::{bytes, counted, hundredths, list, time};
use throng_record::profile::Watched;
use throng_spec::registry::Unsupported;

/// Most rows of a table.
const MOST_ROWS: usize = 12;
/// How to read the tables.
const HINT: &str = "Seen in turns that are not timed. Differences are means over turns; with 99 % confidence, all intervals of a \
    table hold at once. Parts without a mark are not shown to differ.";

/// How functions get names.
const NAMES: &str = "compiled programs: do not strip them; Node.js: node --perf-basic-prof; Python from 3.12: python3 -X perf; Java: \
    perf-map-agent and -XX:+PreserveFramePointer";

/// How to read the table of memory.
const HINT_OF_MEMORY: &str = "Memory is read once before the first client of a server and once with all of them, so ranges are the error of \
    a reading, not of a sample. That of the kernel is of both ends.";

pub(super) fn blocks(report: &Report<'_>) -> Vec<Block> {
    let several = report.summary.clients.len() > 1;
    let sentences = report.why.iter().map(|why| {
        let sentences = why.sentences.join(" ");
        let text = if several {
            format!("With {}: {sentences}", counted(why.clients, "client"))
        } else {
            sentences
        };
        Block::paragraph(Role::Body, text)
    });
    let mut blocks: Vec<Block> = sentences.collect();
    let figures = report.figures.iter();
    let pictures = figures.filter(|figure| figure.section == OfSection::Why);
    blocks.extend(pictures.map(|figure| Block::Picture(Box::new(figure.clone()))));
    for why in &report.why {
        let plain = format!("{} and {}, part by part", why.reference, why.server);
        let title = if several {
            format!("{plain}, {}", counted(why.clients, "client"))
        } else {
            plain
        };
        let mut parts = vec![Block::paragraph(Role::Hint, HINT)];
        if let Some([of_reference, of_server]) = why.watching {
            let text = format!(
                "While they were watched, a request of {} needed {:.2} times the CPU time, and one of {} {:.2} times. Parts are scaled to \
                 the timed slices.",
                why.reference, of_reference, why.server, of_server
            );
            parts.push(Block::paragraph(Role::Hint, text));
        }
        parts.extend(tables(why));
        if let Some(memory) = &why.memory {
            parts.push(Block::paragraph(Role::Hint, HINT_OF_MEMORY));
            parts.push(table(why, "Memory per client", &memory.parts, bytes));
        }
        blocks.push(Block::Fold(title.into(), parts));
    }
    let missing: BTreeMap<&Watched, &Unsupported> =
        report.why.iter().flat_map(|why| &why.missing).collect();
    for (what, unsupported) in missing {
        let text = format!("{}: {}", unseen(*what), unsupported.reason);
        blocks.push(Block::Warning(text, unsupported.remedy.clone()));
    }
    // A server may be part of several pairs.
    let of_pairs = report.why.iter().flat_map(|why| &why.unnamed);
    let unnamed: BTreeMap<&String, &f64> = of_pairs.collect();
    for (server, share) in unnamed {
        let text = format!(
            "{:.0} % of the CPU samples of {server} are in functions without a name",
            share * 100.0
        );
        blocks.push(Block::Warning(text, NAMES.to_owned()));
    }
    blocks
}

/// A flame graph of each server, and of each difference.
pub(super) fn flame_graphs(report: &Report<'_>) -> Vec<Block> {
    let graphs = report.flame_graphs.iter().cloned();
    graphs.map(|graph| Block::Flame(Box::new(graph))).collect()
}

/// What is missing, in words.
fn unseen(what: Watched) -> &'static str {
    match what {
        Watched::Stacks => "CPU time by part was not seen",
        Watched::Calls => "System calls were not counted",
        Watched::Waits => "Waits were not seen",
    }
}

type Shown = fn(f64) -> String;

fn tables(why: &Why) -> Vec<Block> {
    let kinds: [(&str, &[Difference], Shown); 6] = [
        ("CPU time per request", &why.parts, time),
        ("Own code, by function", &why.functions, time),
        (
            "Own functions, with what they call in libraries",
            &why.own_functions,
            time,
        ),
        ("System calls per request", &why.calls, hundredths),
        ("Events per request", &why.events, hundredths),
        (
            "Time of all threads per request, asleep in a call or waiting for a CPU",
            &why.waits,
            time,
        ),
    ];
    let made = kinds
        .into_iter()
        .filter(|(_, differences, _)| !differences.is_empty());
    made.map(|(title, differences, shown)| table(why, title, differences, shown))
        .collect()
}

fn table(why: &Why, title: &str, differences: &[Difference], shown: Shown) -> Block {
    let row = |one: &Difference| {
        let span = one.difference;
        let tone = match (one.is_shown, span.value > 0.0) {
            (false, _) => Tone::Quiet,
            (true, true) => Tone::Bad,
            (true, false) => Tone::Good,
        };
        let signed = |value: f64| {
            let sign = if value > 0.0 { "+" } else { "" };
            format!("{sign}{}", shown(value)).replace('-', "−")
        };
        let range = format!("{} to {}", signed(span.low), signed(span.high));
        let cells = vec![
            Cell::plain(shown(one.reference)),
            Cell::plain(shown(one.server)),
            Cell::plain(signed(span.value)).with(range).toned(tone),
        ];
        Row::of(one.name.clone(), cells)
    };
    let columns = vec![
        Column::text(title),
        Column::number(why.reference.clone()),
        Column::number(why.server.clone()),
        Column::number("Difference"),
    ];
    let caption = format!("{title}, {}", list(&[&why.reference, &why.server]));
    let rows = differences.iter().take(MOST_ROWS).map(row).collect();
    Block::Table(Table::of(caption, columns, rows))
}
