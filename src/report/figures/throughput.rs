//! How many verified replies a second each server gave, against the number of clients.

use super::{AgainstClients, Axis, Figure, FigureKind, Source};
use crate::registry::{Entry, Info};

/// See the module.
pub(super) struct Throughput;

impl Entry for Throughput {
    fn info(&self) -> Info {
        Info {
            name: "throughput",
            summary: "Replies a second",
        }
    }
}

impl FigureKind for Throughput {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        AgainstClients {
            id: self.info().name,
            title: "Replies a second",
            caption: "Higher is better. Every reply was checked.",
            y: Axis::linear("replies", Some("per second")),
            value: |row| row.replies_per_s,
        }
        .build(source.summary)
    }
}
