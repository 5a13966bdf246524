//! The stages of a trial, any of which may end it.

use throng_record::Failure;

/// Why a stage ended the trial.
#[derive(Debug)]
pub(super) enum Halt {
    Failed(Failure),
    Interrupted,
}

impl Halt {
    /// Whether the server did not start, or did not reply correctly.
    pub(super) fn is_of_the_beginning(&self) -> bool {
        matches!(self, Self::Failed(failure) if is_of_the_beginning(failure))
    }
}

/// Whether a trial failed before its load.
pub(super) fn is_of_the_beginning(failure: &Failure) -> bool {
    ["prepare", "start", "verify"].contains(&failure.stage.as_str())
}

pub(super) type Stage<T> = Result<T, Halt>;

pub(super) fn failed<T>(stage: &str, reason: impl Into<String>, output: String) -> Stage<T> {
    Err(Halt::Failed(Failure {
        stage: stage.to_owned(),
        reason: reason.into(),
        output,
    }))
}
