//! What one reply costs the server in CPU time, against the number of clients.

use super::{AgainstClients, Axis, Figure, FigureKind, Source};
use crate::registry::{Entry, Info};

/// See the module.
pub(super) struct CpuCost;

impl Entry for CpuCost {
    fn info(&self) -> Info {
        Info {
            name: "cpu-per-reply",
            summary: "Server CPU for one reply",
        }
    }
}

impl FigureKind for CpuCost {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        AgainstClients {
            id: self.info().name,
            title: "Server CPU for one reply",
            caption: "Lower is better. User and system time of the whole process tree.",
            y: Axis::linear("CPU time a reply", Some("µs")),
            value: |row| row.server_side.cpu_us_per_reply,
        }
        .build(source.summary)
    }
}
