//! How long it took until every client was done, against the number of clients.

use super::{AgainstClients, Axis, Figure, FigureKind, Source};
use crate::registry::{Entry, Info};

/// See the module.
pub(super) struct CompletionTime;

impl Entry for CompletionTime {
    fn info(&self) -> Info {
        Info {
            name: "completion",
            summary: "Clients against completion time",
        }
    }
}

impl FigureKind for CompletionTime {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        AgainstClients {
            id: self.info().name,
            title: self.info().summary,
            caption: "Lower is better. From the first connect() until the last client was done; the time that clients think is part of it.",
            y: Axis::logarithmic("time", Some("s")),
            value: |row| row.completion.as_ref()?.completion_s,
        }
        .build(source.summary)
    }
}
