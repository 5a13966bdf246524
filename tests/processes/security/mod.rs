//! Nothing gets in: foreign text is only data, nothing leaves this machine unasked, and no more rights are needed than
//! a user has. `THREATS.md` lists the promises.

mod commands;
mod files;
mod forms;
mod hostile_text;
mod places;
mod reach;

use std::process::Command;

use super::cli::{Finished, finish, throng};
use crate::support::program::word;

impl Finished {
    /// Refused before anything was begun, with these texts.
    #[track_caller]
    fn is_refused(&self, words: &[&str]) {
        assert_eq!(self.code, 2, "{}", self.err);
        self.assert_contains(words);
    }

    /// Refused, or failed before anything was begun, with these texts.
    #[track_caller]
    fn begins_nothing(&self, words: &[&str]) {
        assert!(matches!(self.code, 1 | 2), "{}", self.err);
        self.assert_contains(words);
    }

    #[track_caller]
    fn assert_contains(&self, words: &[&str]) {
        for word in words {
            assert!(self.err.contains(word), "no `{word}` in: {}", self.err);
        }
    }
}

fn finished(command: Command) -> Finished {
    finish(assert_cmd::Command::from_std(command))
}
