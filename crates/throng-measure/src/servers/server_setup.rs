//! Commands that run once per server: before all of its trials, and after them.

use std::fmt;
use std::time::Duration;

use super::hooks::{self, Place};
use crate::processes::{ending, orphans};
use crate::stage::{Halt, Stage};
use throng_record::findings::servers::CLEANUP_FAILED;
use throng_record::format::list;
use throng_record::{FailedStage, Finding, ServerInfo, Settings};
use throng_sys::signal::Stop;

/// Time limit for background processes to end.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// The servers of a run, from before the first trial until after the last one. Cleanup runs however this ends.
pub(crate) struct ServerSetups<'a> {
    limit: Duration,
    /// Servers whose setup began, in order.
    begun: Vec<&'a ServerInfo>,
    /// Processes that their commands deliberately left running.
    helpers: Vec<u32>,
}

/// Why a run does not start.
pub(crate) enum SetupError {
    /// A signal asked to stop.
    Interrupted,
    /// A command failed.
    Failed(SetupFailed),
}

/// The error of a failed setup, with the last output of its command.
#[derive(Debug)]
pub struct SetupFailed(String);

impl fmt::Display for SetupFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SetupFailed {}

impl<'a> ServerSetups<'a> {
    /// Sets all servers up, one after the other.
    pub(crate) fn begin(
        servers: &'a [ServerInfo],
        settings: &Settings,
        stop: Stop,
    ) -> Result<Self, SetupError> {
        let mut setups = Self {
            limit: Duration::from_secs_f64(settings.hook_timeout_s),
            begun: Vec::new(),
            helpers: Vec::new(),
        };
        for server in servers {
            setups.begun.push(server);
            match setups.run(FailedStage::Setup, server, &server.setup, Some(stop)) {
                Ok(()) => {}
                Err(Halt::Interrupted) => return Err(SetupError::Interrupted),
                Err(Halt::Failed(failure)) => {
                    let output = indented(&failure.output);
                    let (name, reason) = (&server.name, &failure.reason);
                    return Err(SetupError::Failed(SetupFailed(format!(
                        "{name}: {reason}{output}"
                    ))));
                }
            }
        }
        Ok(setups)
    }

    /// Cleans up, and reports failures.
    pub(crate) fn end(mut self) -> Option<Finding> {
        let mut faults = self.clean_up();
        faults.extend(ending::take_survivors());
        let failed = || CLEANUP_FAILED.found(format!("cleanup failed: {}", faults.join("; ")));
        (!faults.is_empty()).then(failed)
    }

    fn clean_up(&mut self) -> Vec<String> {
        let mut faults = Vec::new();
        for server in std::mem::take(&mut self.begun).into_iter().rev() {
            // A signal does not prevent the cleanup.
            if let Err(Halt::Failed(failure)) =
                self.run(FailedStage::Cleanup, server, &server.cleanup, None)
            {
                let lines: Vec<&str> = failure.output.lines().collect();
                let output = if lines.is_empty() {
                    String::new()
                } else {
                    format!(" ({})", list(&lines))
                };
                faults.push(format!("{}: {}{output}", server.name, failure.reason));
            }
        }
        for helper in self.helpers.drain(..) {
            orphans::unmark_awaited(helper);
        }
        orphans::end_all(STOP_LIMIT);
        faults
    }

    fn run(
        &mut self,
        stage: FailedStage,
        server: &ServerInfo,
        words: &[String],
        heed: Option<Stop>,
    ) -> Stage<()> {
        if words.is_empty() {
            return Ok(());
        }
        let place = server.running().map(|running| Place::of(&running.address));
        let command = hooks::command(server, words, place.as_ref());
        let ran = hooks::run(stage, command, self.limit, heed);
        for helper in orphans::living(&[]) {
            orphans::mark_awaited(helper.pid.cast_unsigned());
            self.helpers.push(helper.pid.cast_unsigned());
        }
        ran
    }
}

impl Drop for ServerSetups<'_> {
    fn drop(&mut self) {
        self.clean_up();
    }
}

/// Indented lines, to append to an error.
fn indented(output: &str) -> String {
    output.lines().map(|line| format!("\n  {line}")).collect()
}
