//! How the program ends: one table of exit codes, for help, manual pages, documentation and tests.

#[cfg(target_os = "linux")]
use super::report::Print;
#[cfg(target_os = "linux")]
use crate::sys::signal::Stop;

/// How the program ends.
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

#[cfg(target_os = "linux")]
/// How a run is shown, and which results of it are accepted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Accepted {
    pub(super) json: bool,
    /// Also such with failed or invalid trials.
    pub(super) rough: bool,
    /// What is printed of the report, once it is made.
    pub(super) print: Print,
}

/// Every exit code, and what it means.
pub const EXIT_CODES: &[(u8, &str)] = &[
    (0, "done"),
    (
        1,
        "the job could not be done: no reply was right, a server did not start or answer properly",
    ),
    (2, "wrong usage"),
    (
        3,
        "a threshold was missed (--fail-if, --fail-if-slower), or a verdict did not hold (reproduce)",
    ),
    (
        4,
        "unusable: failed or invalid trials (--allow-rough accepts), or a client host was lost",
    ),
    (130, "interrupted; what was measured until then is kept"),
];

/// Those that a subcommand can end with, as they stand below its help.
pub(super) fn codes(of: &[u8]) -> String {
    let codes = EXIT_CODES.iter().filter(|(code, _)| of.contains(code));
    let codes: Vec<String> = codes.map(|(code, what)| format!("{code} {what}")).collect();
    format!("Exit codes: {}.", codes.join("; "))
}

/// All of them.
pub(super) fn all_codes() -> String {
    let all: Vec<u8> = EXIT_CODES.iter().map(|(code, _)| *code).collect();
    codes(&all)
}

#[cfg(target_os = "linux")]
impl Exit {
    /// Interrupted if a signal asked to stop, else done.
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
