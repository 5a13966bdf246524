//! Memory of the server's process tree, against the number of clients.

use super::{AgainstClients, Axis, Figure, FigureKind, Source, bare};
use crate::registry::{Entry, Info};

/// See the module.
pub(super) struct Memory;

impl Entry for Memory {
    fn info(&self) -> Info {
        Info {
            name: "memory",
            summary: "Memory of the server",
        }
    }
}

impl FigureKind for Memory {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        AgainstClients {
            id: self.info().name,
            title: "Memory of the server",
            caption: "Lower is better. Proportional set size of the whole process tree; the kernel's socket buffers are not in it.",
            y: Axis::logarithmic("memory", Some("MiB")),
            value: |row| Some(bare(row.server_side.pss_bytes? / f64::from(1 << 20))),
        }
        .build(source.summary)
    }
}
