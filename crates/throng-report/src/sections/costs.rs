//! Costs per request, from trials that count events.

use super::results;
use crate::Report;
use crate::columns::{self, COSTS_NOTE};
use crate::document::{Block, Medium, Role, Section};

pub(super) fn section(report: &Report<'_>) -> Option<Section> {
    let caption = "Cost per request by server and number of clients";
    let mut blocks = vec![Block::paragraph(Role::Hint, COSTS_NOTE)];
    let mut rows = report.summary.rows.iter();
    if rows.any(|row| row.value("counted_requests").is_some()) {
        blocks.extend(results::table(report, &columns::costs(), caption).map(Block::Table));
    }
    blocks.extend(report.not_here.iter().map(|(what, why)| {
        Block::Warning(
            format!("Not measured on this machine: {what}: {}", why.reason),
            why.remedy.clone(),
        )
    }));
    Some(Section::of("costs", "Cost per request", blocks)?.except(&[Medium::Terminal]))
}
