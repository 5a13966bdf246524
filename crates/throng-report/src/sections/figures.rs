//! All figures that the record has data for, except those of the answer.

use crate::Report;
use crate::document::{Block, Figures, Medium, Section};

pub(super) fn section(report: &Report<'_>) -> Option<Section> {
    let servers = report.run.servers.iter();
    let figures = report.figures.iter();
    let figures = Figures {
        key: servers
            .map(|server| (vec![report.place(&server.name)], server.name.clone()))
            .collect(),
        figures: figures.filter(|figure| !figure.answers).cloned().collect(),
    };
    let blocks = vec![Block::Figures(figures)];
    Some(Section::of("figures", "Figures", blocks)?.except(&[Medium::Terminal]))
}
