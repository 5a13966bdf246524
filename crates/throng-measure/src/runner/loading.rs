//! The running load of a trial: a process on this host, or parts of it on the hosts of a cluster.

use std::time::{Duration, Instant};

use crate::cluster::{Gathering, LoadNews};
use crate::processes::ending::SignalTarget;
use crate::processes::process::Process;
use crate::processes::queue::LineError;
use throng_record::LoadEvent;
use throng_record::load_event::NextSlice;

/// A running load.
pub(crate) enum Loading<'a> {
    Here(Process),
    Cluster(Box<Gathering<'a>>),
}

impl Loading<'_> {
    /// Its next report; waits for it until `deadline`.
    pub(crate) fn receive(&mut self, deadline: Instant) -> LoadNews {
        match self {
            Self::Cluster(parts) => parts.receive(deadline),
            Self::Here(process) => match process.line(deadline) {
                // Lines without an event stay in the output, for messages.
                Ok(line) => match LoadEvent::read(&line) {
                    Some(LoadEvent::Phase {
                        phase,
                        waits,
                        snapshot,
                    }) => LoadNews::Phase {
                        phase,
                        waits,
                        snapshot,
                    },
                    Some(LoadEvent::Snapshot(snapshot)) => LoadNews::Snapshot(snapshot),
                    Some(LoadEvent::Slice(seen)) => LoadNews::Slice(seen),
                    Some(LoadEvent::Result(seen)) => LoadNews::Result(Box::new(seen.summary())),
                    None => LoadNews::Nothing,
                },
                Err(LineError::Late) => LoadNews::Late,
                Err(LineError::Ended) => LoadNews::Failed {
                    reason: process.ending(),
                    output: process.output(),
                },
            },
        }
    }

    /// Starts the phase that it is waiting for.
    pub(crate) fn proceed(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Here(process) => process.proceed(),
            Self::Cluster(parts) => parts.proceed()?,
        }
        Ok(())
    }

    /// Its process ID; `None` on the hosts of a cluster.
    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            Self::Here(process) => Some(process.pid()),
            Self::Cluster(_) => None,
        }
    }

    /// Starts a slice; not supported on several hosts.
    pub(crate) fn begin_slice(&mut self, slice: NextSlice) {
        if let Self::Here(process) = self {
            process.send(&slice.line());
        }
    }

    /// The error for a load that did not end in time, with its last output.
    pub(crate) fn overdue(&self) -> (String, String) {
        let late = "the load did not end in time";
        match self {
            Self::Here(process) => (late.to_owned(), process.output()),
            Self::Cluster(parts) => (format!("{late}: {}", parts.missing()), String::new()),
        }
    }

    /// Ends the load.
    pub(crate) fn stop(&mut self, limit: Duration) {
        match self {
            Self::Here(process) => {
                process.stop(limit, SignalTarget::Leader);
            }
            Self::Cluster(parts) => parts.stop(limit),
        }
    }
}
