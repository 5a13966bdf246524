//! Thresholds, and whether they were met.

use crate::Report;
use crate::document::{Block, Section, Text, Tone};
use throng_record::format::counted;

pub(super) fn section(report: &Report<'_>) -> Option<Section> {
    if report.thresholds.is_empty() {
        return None;
    }
    let items = report.thresholds.iter().map(|judged| {
        let tone = if judged.missed { Tone::Bad } else { Tone::Good };
        let clients = counted(judged.clients, "client");
        let (server, demand, seen) = (&judged.server, &judged.demand, &judged.seen);
        Text::default().toned(judged.word(), tone).plain(format!(
            " {server} with {clients}: fail if {demand}: {seen}"
        ))
    });
    Section::of("thresholds", "Thresholds", vec![Block::list(items)])
}
