//! The stages of a trial, each of which may be the last.

use throng_record::Failure;

/// Why a stage did not go on.
#[derive(Debug)]
pub(super) enum Halt {
    Failed(Failure),
    Interrupted,
}

pub(super) type Stage<T> = Result<T, Halt>;

pub(super) fn failed<T>(stage: &str, reason: impl Into<String>, output: String) -> Stage<T> {
    Err(Halt::Failed(Failure {
        stage: stage.to_owned(),
        reason: reason.into(),
        output,
    }))
}
