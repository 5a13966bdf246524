//! How many replies a second of the server's CPU time yields, against the number of clients.

use super::{AgainstClients, Axis, Figure, FigureKind, Source};
use crate::registry::{Entry, Info};

/// See the module.
pub(super) struct CpuEfficiency;

impl Entry for CpuEfficiency {
    fn info(&self) -> Info {
        Info {
            name: "replies-per-cpu-second",
            summary: "Replies for a second of server CPU",
        }
    }
}

impl FigureKind for CpuEfficiency {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        AgainstClients {
            id: self.info().name,
            title: "Replies for a second of server CPU",
            caption: "Higher is better. The same measurement turned round: what a CPU of the server yields.",
            y: Axis::linear("replies", Some("per CPU second")),
            value: |row| row.replies_per_server_cpu_s,
        }
        .build(source.summary)
    }
}
