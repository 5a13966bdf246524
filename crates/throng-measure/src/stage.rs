//! The stages of a trial, any of which may end it.

use throng_record::{FailedStage, Failure};

/// Why a stage ended the trial.
#[derive(Debug)]
pub(super) enum Halt {
    Failed(Failure),
    Interrupted,
}

impl Halt {
    /// Whether the server did not start, or did not reply correctly.
    pub(super) fn is_of_the_beginning(&self) -> bool {
        matches!(self, Self::Failed(failure) if failure.stage.is_of_the_beginning())
    }
}

pub(super) type Stage<T> = Result<T, Halt>;

pub(super) fn failed<T>(stage: FailedStage, reason: impl Into<String>, output: String) -> Stage<T> {
    Err(Halt::Failed(Failure {
        stage,
        reason: reason.into(),
        output,
        signal: None,
    }))
}
