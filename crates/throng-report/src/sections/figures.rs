//! The figures that the record has data for.

use crate::Report;
use crate::document::{Block, Figures, Medium, Section};
use throng_record::format::counted;

pub(super) fn section(report: &Report<'_>) -> Option<Section> {
    let servers = report.run.servers.iter().enumerate();
    let of = match report.summary.clients.last() {
        Some(clients) => format!("with {}", counted(*clients, "client")),
        None => "at its limit".to_owned(),
    };
    let figures = Figures {
        key: servers
            .map(|(place, server)| (vec![place], server.name.clone()))
            .collect(),
        figures: report.figures.clone(),
        over_time: format!(
            "One trial of each server {of}. Replies count from 0 s on; what is left of it is connecting and warm-up."
        ),
        have_stills: true,
    };
    let blocks = vec![Block::Figures(figures)];
    Some(Section::of("figures", "Figures", blocks)?.except(&[Medium::Terminal]))
}
