//! All figures that the record has data for, except those of the answer.

use crate::Report;
use crate::document::{Block, Figures, Medium, Section};
use crate::figures::Part;
use throng_record::format::counted;

pub(super) fn section(report: &Report<'_>) -> Option<Section> {
    let servers = report.run.servers.iter();
    let of = match report.summary.clients.last() {
        Some(clients) if report.limits.is_none() => format!("with {}", counted(*clients, "client")),
        _ => "at its limit".to_owned(),
    };
    let figures = report.figures.iter();
    let figures = Figures {
        key: servers
            .map(|server| (vec![report.place(&server.name)], server.name.clone()))
            .collect(),
        figures: figures
            .filter(|figure| figure.part != Part::Answer)
            .cloned()
            .collect(),
        details: format!("More figures: costs in detail, and one trial per server over time, {of}"),
    };
    let blocks = vec![Block::Figures(figures)];
    Some(Section::of("figures", "Figures", blocks)?.except(&[Medium::Terminal]))
}
