//! The load of a trial while it runs: a process on this host, or parts of it on the hosts of a crew.

use std::time::{Duration, Instant};

use super::crew::{Gathering, News};
use super::follow::Told;
use super::process::{Process, Whom};
use super::queue::NoLine;
use crate::record::Load;

/// A load that runs.
pub(super) enum Loading<'a> {
    Here(Process),
    Crew(Box<Gathering<'a>>),
}

impl Loading<'_> {
    /// What is heard of it, awaited until `deadline`.
    pub(super) fn heard(&mut self, deadline: Instant) -> News {
        match self {
            Self::Crew(parts) => parts.heard(deadline),
            Self::Here(process) => match process.line(deadline) {
                // A line that is no event is kept in the output for messages.
                Ok(line) => Told::<Load>::read(&line).map_or(News::Nothing, News::Told),
                Err(NoLine::Late) => News::Late,
                Err(NoLine::Ended) => News::Failed {
                    reason: process.ending(),
                    output: process.output(),
                },
            },
        }
    }

    /// Gives it the word that it waits for.
    pub(super) fn go_on(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Here(process) => process.go_on(),
            Self::Crew(parts) => parts.go_on()?,
        }
        Ok(())
    }

    /// That it has not ended in time, in words, and what it wrote last.
    pub(super) fn overdue(&self) -> (String, String) {
        let late = "the load did not end in time";
        match self {
            Self::Here(process) => (late.to_owned(), process.output()),
            Self::Crew(parts) => (format!("{late}: {}", parts.missing()), String::new()),
        }
    }

    /// Ends it.
    pub(super) fn stop(&mut self, limit: Duration) {
        match self {
            Self::Here(process) => {
                process.stop(limit, Whom::Leader);
            }
            Self::Crew(parts) => parts.stop(limit),
        }
    }
}
