//! How long the last client waited from `connect()` to its first reply, against the number of clients.

use super::{AgainstClients, Axis, Figure, FigureKind, Source, bare};
use crate::registry::{Entry, Info};

/// See the module.
pub(super) struct FirstAnswer;

impl Entry for FirstAnswer {
    fn info(&self) -> Info {
        Info {
            name: "first-answer",
            summary: "Longest wait for the first answer",
        }
    }
}

impl FigureKind for FirstAnswer {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        AgainstClients {
            id: self.info().name,
            title: "Longest wait for the first answer",
            caption: "Lower is better. From connect() to the first reply, the slowest client of all trials. Steps near 1 s and 3 s are lost connection requests sent again.",
            y: Axis::logarithmic("time", Some("ms")),
            value: |row| Some(bare(row.first_answer_max_us? / 1e3)),
        }
        .build(source.summary)
    }
}
