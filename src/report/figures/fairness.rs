//! Jain's index over the served clients, against the number of clients.

use super::{AgainstClients, Axis, Figure, FigureKind, Source};
use crate::registry::{Entry, Info};

/// See the module.
pub(super) struct FairnessIndex;

impl Entry for FairnessIndex {
    fn info(&self) -> Info {
        Info {
            name: "fairness",
            summary: "Evenness of service",
        }
    }
}

impl FigureKind for FairnessIndex {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        AgainstClients {
            id: self.info().name,
            title: "Evenness of service",
            caption: "Higher is fairer. Jain's index: 1 when all served clients got the same number of replies, 0.5 when half of them shared all.",
            y: Axis { from_zero: false, ..Axis::linear("Jain's index", None) },
            value: |row| Some(row.fairness?.jain),
        }
        .build(source.summary)
    }
}
