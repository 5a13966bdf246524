//! The server of a trial: started and ended by throng, or already running and left unchanged.

use super::ports;
use super::running::RunningServer;
use crate::probes::Tree;
use crate::processes::ending::SignalTarget;
use crate::processes::known_messages::ServerMessages;
use crate::processes::process::{Process, StopOrder, Stopped};
use crate::stage::{Stage, failed};
use throng_record::FailedStage;
use throng_spec::Endpoint;
use throng_spec::registry::Unsupported;

/// A server that accepts clients.
pub(crate) struct LiveServer {
    pub(crate) address: Endpoint,
    pub(crate) processes: Processes,
}

/// Its processes.
pub(crate) enum Processes {
    Started(Box<Process>),
    Running(RunningServer),
}

impl LiveServer {
    /// The process that was started; `None` if the server was already running.
    pub(crate) fn started(&mut self) -> Option<&mut Process> {
        match &mut self.processes {
            Processes::Started(process) => Some(process),
            Processes::Running(_) => None,
        }
    }

    /// Its processes.
    pub(crate) fn tree(&self) -> Tree {
        match &self.processes {
            Processes::Started(process) => {
                let mut tree = Tree::of(process.pid());
                let sockets = ports::accepting(&self.address);
                tree.find_main(|pid| ports::holds(pid, &sockets));
                tree
            }
            Processes::Running(attached) => attached.tree(),
        }
    }

    /// Why its processes are not known, if they are not.
    pub(crate) fn unknown(&self) -> Option<&Unsupported> {
        match &self.processes {
            Processes::Started(_) => None,
            Processes::Running(attached) => attached.processes.as_ref().err(),
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        match &self.processes {
            Processes::Started(process) => process.has_ended(),
            Processes::Running(attached) => attached.has_ended(),
        }
    }

    /// Its last lines, if throng has them.
    pub(crate) fn output(&self) -> String {
        match &self.processes {
            Processes::Started(process) => process.output(),
            Processes::Running(_) => String::new(),
        }
    }

    /// Number of bytes written so far.
    pub(crate) fn written_bytes(&self) -> u64 {
        match &self.processes {
            Processes::Started(process) => process.written_bytes(),
            Processes::Running(_) => 0,
        }
    }

    /// The known messages in its output so far.
    pub(crate) fn messages(&self) -> ServerMessages {
        match &self.processes {
            Processes::Started(process) => process.messages(),
            Processes::Running(_) => ServerMessages::default(),
        }
    }

    /// Whether throng started it, and so may stop, move and end it.
    pub(crate) fn is_started(&self) -> bool {
        matches!(self.processes, Processes::Started(_))
    }

    /// Stops it, or lets it continue. A running server is not touched.
    pub(crate) fn freeze(&self, freeze: bool) -> Stage<()> {
        let Processes::Started(process) = &self.processes else {
            return Ok(());
        };
        process.freeze(freeze).or_else(|error| {
            let why =
                format!("cannot pause the server between its slices: {error}; use --method trials");
            failed(FailedStage::Load, why, String::new())
        })
    }

    /// Ends it. A running server is not touched.
    pub(crate) fn stop(&mut self, order: &StopOrder) -> Stopped {
        match &mut self.processes {
            Processes::Started(process) => process.stop_with(order),
            Processes::Running(_) => Stopped::InTime,
        }
    }

    /// Waits up to `limit` for the end of a server that throng started.
    pub(crate) fn wait_for_end(&self, limit: std::time::Duration) {
        if let Processes::Started(process) = &self.processes {
            process.wait_for_end(limit);
        }
    }
}

/// Which processes get the signal: for built-in servers only the first, which stops its children.
pub(crate) fn signalled(is_ours: bool) -> SignalTarget {
    if is_ours {
        SignalTarget::Leader
    } else {
        SignalTarget::Group
    }
}
