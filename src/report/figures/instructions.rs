//! Instructions of the server for one reply, against the number of clients.

use super::{AgainstClients, Axis, Figure, FigureKind, Source, bare};
use crate::registry::{Entry, Info};

/// See the module.
pub(super) struct Instructions;

impl Entry for Instructions {
    fn info(&self) -> Info {
        Info {
            name: "instructions",
            summary: "Server instructions for one reply",
        }
    }
}

impl FigureKind for Instructions {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        AgainstClients {
            id: self.info().name,
            title: "Server instructions for one reply",
            caption: "Lower is better. In user mode and in the kernel, counted in trials of their own.",
            y: Axis::linear("instructions a reply", None),
            value: |row| Some(bare(row.counted.as_ref()?.server.figure("instructions")?)),
        }
        .build(source.summary)
    }
}
