//! The evidence of a failed trial, by name.

use super::Circumstances;
use crate::{FailedStage, Failure, ServerMessage, Side, Trial};

/// A failed trial, and one that passed.
pub(crate) struct FailedTrial<'a> {
    pub(super) trial: &'a Trial,
    pub(super) passed: Option<&'a Trial>,
    pub(super) circumstances: &'a Circumstances<'a>,
}

impl FailedTrial<'_> {
    /// A value of the server's processes.
    pub(super) fn server(&self, name: &str) -> Option<f64> {
        metric(self.trial.server_side.as_ref(), name)
    }

    /// A value of the connections between both sides.
    pub(super) fn network(&self, name: &str) -> Option<f64> {
        metric(self.trial.network.as_ref(), name)
    }

    /// The same value of the server's processes, in a trial that passed.
    pub(super) fn server_before(&self, name: &str) -> Option<f64> {
        metric(self.passed?.server_side.as_ref(), name)
    }

    /// Number of clients that the server rejected for this reason; `None` if it reports none.
    pub(super) fn refused(&self, why: &str) -> Option<u64> {
        let refused = &self.trial.server_counts.as_ref()?.refused;
        refused.get(why).copied().filter(|count| *count > 0)
    }

    /// The server's message of this kind.
    pub(super) fn message(&self, kind: &str) -> Option<&ServerMessage> {
        self.trial
            .server_messages
            .iter()
            .find(|message| message.kind == kind)
    }

    /// Number of connections that failed for this reason.
    pub(super) fn failed(&self, kind: &str) -> Option<u64> {
        let errors = &self.trial.load.as_ref()?.errors;
        errors.get(kind).copied().filter(|count| *count > 0)
    }

    /// The failure, if the server ended unexpectedly.
    pub(super) fn ended(&self) -> Option<&Failure> {
        let failure = self.trial.failure.as_ref();
        failure.filter(|failure| failure.stage == FailedStage::Serve)
    }
}

fn metric(side: Option<&Side>, name: &str) -> Option<f64> {
    side?.metrics.get(name).copied()
}
