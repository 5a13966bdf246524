//! The command line as users meet it: wrong usage, listings, and a load that counts right and ends by itself whatever
//! the server does.

mod addresses;
mod arrivals;
mod dialogues;
mod documents;
mod encrypted;
mod exits;
mod explain;
mod exports;
mod foreign;
mod habits;
mod jobs;
mod lists;
mod loads;
mod many_clients;
mod messages;
mod requests;
mod scale;
mod sessions;
mod terminal;
mod uploads;
mod usage;
mod views;
mod websockets;

use std::process::Output;
use std::time::Duration;

use serde_json::Value;

use crate::support::program::THRONG;

/// Whether cases are tried in full; only a part is by default, to save time.
fn full() -> bool {
    std::env::var_os("THRONG_FULL").is_some_and(|value| value == "1")
}

/// The exit code and the output of the program.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) code: i32,
    pub(super) out: String,
    pub(super) err: String,
}

/// Runs the program to its end.
pub(super) fn throng(arguments: &[&str]) -> Finished {
    let mut command = assert_cmd::Command::new(THRONG);
    command.args(arguments);
    finish(command)
}

/// Runs the program from a shell command in which "$@" is the program with its arguments.
fn throng_in_shell(script: &str, arguments: &[&str]) -> Finished {
    let mut command = assert_cmd::Command::new("sh");
    command.args(["-c", script, "sh", THRONG]).args(arguments);
    finish(command)
}

pub(super) fn finish(mut command: assert_cmd::Command) -> Finished {
    command.timeout(Duration::from_mins(4));
    let output: Output = command.output().expect("the program can be started");
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    Finished {
        code: output
            .status
            .code()
            .expect("no signal and no time-out ended it"),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

impl Finished {
    /// Wrong usage: exit code 2 and one line with these texts.
    fn is_usage_error(&self, says: &[&str]) {
        assert_eq!(self.code, 2, "{self:?}");
        assert!(self.err.starts_with("error: "), "{self:?}");
        assert!(self.out.is_empty(), "{self:?}");
        for what in says {
            assert!(self.err.contains(what), "`{what}` is not in {self:?}");
        }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}
