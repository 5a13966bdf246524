//! Nothing gets in: foreign text is only data, nothing leaves this machine unasked, and no more rights are needed than
//! a user has. `THREATS.md` lists the promises.

mod commands;
mod files;
mod forms;
mod hostile_text;
mod places;
mod reach;

use std::path::Path;
use std::process::{Command, Output};

use crate::support::program::THRONG;

/// The exit code and the output of the program.
struct Finished {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Finished {
    /// Refused before anything was begun, with these texts.
    #[track_caller]
    fn is_refused(&self, words: &[&str]) {
        assert_eq!(self.code, Some(2), "{}", self.err);
        self.assert_contains(words);
    }

    /// Refused, or failed before anything was begun, with these texts.
    #[track_caller]
    fn begins_nothing(&self, words: &[&str]) {
        assert!(matches!(self.code, Some(1 | 2)), "{}", self.err);
        self.assert_contains(words);
    }

    #[track_caller]
    fn assert_contains(&self, words: &[&str]) {
        for word in words {
            assert!(self.err.contains(word), "no `{word}` in: {}", self.err);
        }
    }
}

fn throng(arguments: &[&str]) -> Finished {
    let mut command = Command::new(THRONG);
    command.args(arguments);
    finished(command)
}

fn finished(mut command: Command) -> Finished {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("the program can be started");
    let text = |bytes| String::from_utf8(bytes).expect("it says text");
    Finished {
        code: status.code(),
        out: text(stdout),
        err: text(stderr),
    }
}

/// A path as an argument.
fn word(path: &Path) -> &str {
    path.to_str().expect("paths of tests are text")
}
