//! Memory of the server's process tree, against the number of clients.

use super::{AgainstClients, Axis, Figure, FigureKind, Source, bare};
use crate::registry::{Entry, Info};
use crate::report::summary::{Quantity, Row};

/// See the module.
pub(super) struct Memory {
    info: Info,
    caption: &'static str,
    unit: &'static str,
    value: fn(&Row) -> Option<Quantity>,
}

impl Memory {
    /// All of it.
    pub(super) const WHOLE: Self = Self {
        info: Info {
            name: "memory",
            summary: "Memory of the server",
        },
        caption: "Lower is better. Proportional set size of the whole process tree; the kernel's socket buffers are not in it.",
        unit: "MiB",
        value: |row| Some(bare(row.server_side.pss_bytes? / f64::from(1 << 20))),
    };

    /// A client's part of it.
    pub(super) const PER_CLIENT: Self = Self {
        info: Info {
            name: "memory-per-client",
            summary: "Memory of the server per client",
        },
        caption: "Lower is better. The same over the number of clients: on the left it is mostly the program itself, on the right mostly what another client costs.",
        unit: "KiB",
        value: |row| {
            Some(bare(
                row.server_side.pss_bytes? / f64::from(row.clients) / 1024.0,
            ))
        },
    };
}

impl Entry for Memory {
    fn info(&self) -> Info {
        self.info
    }
}

impl FigureKind for Memory {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        AgainstClients {
            id: self.info.name,
            title: self.info.summary,
            caption: self.caption,
            y: Axis::logarithmic("memory", Some(self.unit)),
            value: self.value,
        }
        .build(source.summary)
    }
}
