//! The exit codes: a single table for help, man pages, documentation and tests.

#[cfg(target_os = "linux")]
use super::report::Print;
#[cfg(target_os = "linux")]
use crate::sys::signal::Stop;

/// The program's exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    #[cfg(target_os = "linux")]
    Missed = 3,
    #[cfg(target_os = "linux")]
    Rough = 4,
    #[cfg(target_os = "linux")]
    Interrupted = 130,
}

/// What to print about a run, and which results to accept.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy)]
pub(super) struct OutputOptions {
    pub(super) json: bool,
    /// Whether to also accept failed or invalid trials.
    pub(super) rough: bool,
    /// How to print the report.
    pub(super) print: Print,
}

#[cfg(target_os = "linux")]
impl OutputOptions {
    /// Accepts rough results too, if `too`.
    pub(super) fn accept_rough(self, too: bool) -> Self {
        Self {
            rough: self.rough || too,
            ..self
        }
    }
}

/// Every exit code, with its meaning.
pub const EXIT_CODES: &[(u8, &str)] = &[
    (0, "success"),
    (
        1,
        "failed: a server did not start or reply correctly, or a port is in use",
    ),
    (
        2,
        "wrong usage: an option, file or directory cannot be used",
    ),
    (
        3,
        "missed: threshold (--fail-if, --fail-if-slower) or verdict (reproduce)",
    ),
    (
        4,
        "done, but unusable data, failed trials (--allow-rough) or a lost host",
    ),
    (130, "interrupted; finished trials are kept"),
];

/// The exit codes of a subcommand, for the end of its help.
pub(super) fn codes(of: &[u8]) -> String {
    let codes: Vec<String> = EXIT_CODES
        .iter()
        .filter(|(code, _)| of.contains(code))
        .map(|(code, what)| format!("  {code:<3}  {what}"))
        .collect();
    format!("Exit codes:\n{}", codes.join("\n"))
}

/// All exit codes.
pub(super) fn all_codes() -> String {
    let all: Vec<u8> = EXIT_CODES.iter().map(|(code, _)| *code).collect();
    codes(&all)
}

#[cfg(target_os = "linux")]
impl Exit {
    /// `Interrupted` if a signal arrived, otherwise `Done`.
    pub(super) fn unless_stopped(stop: Stop) -> Self {
        if stop.requested() {
            Self::Interrupted
        } else {
            Self::Done
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_is_in_the_table_once() {
        let codes: Vec<u8> = EXIT_CODES.iter().map(|(code, _)| *code).collect();
        let ends = [
            Exit::Done,
            Exit::Failed,
            Exit::Usage,
            Exit::Missed,
            Exit::Rough,
            Exit::Interrupted,
        ];
        assert_eq!(codes, ends.map(|end| end as u8));
    }
}
