//! What a load is told about what to say and when, and the same as words to be told again.

use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Args, FromArgMatches, Parser};

use super::dialogue::Speech;
use super::load;
use super::shape::Shape;
use super::values::Destination;
use crate::protocol::{self, Dialogue};

/// What clients say, and when.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "What is said")]
pub(super) struct Asking {
    #[command(flatten)]
    pub(super) speech: Speech,
    #[command(flatten)]
    pub(super) shape: Shape,
}

impl Asking {
    /// Reads it from words that [`Worded`] gave, or from any others that `throng load` knows.
    pub(super) fn read(words: &[String]) -> Result<Self, clap::Error> {
        #[derive(Parser)]
        #[command(no_binary_name = true)]
        struct Line {
            #[command(flatten)]
            load: load::Arguments,
        }
        // Whom it goes to is told later.
        let words = words.iter().map(String::as_str).chain(["127.0.0.1:1"]);
        Line::try_parse_from(words).map(|line| line.load.into_asking())
    }

    /// Whether it has an option of this name.
    pub(super) fn has(name: &str) -> bool {
        let command = Self::augment_args(clap::Command::new(""));
        command
            .get_arguments()
            .any(|argument| argument.get_long() == Some(name))
    }

    /// What is said to a server on this machine; who is asked over HTTP is named later.
    pub(super) fn dialogue(&self) -> anyhow::Result<(&'static dyn Dialogue, protocol::Settings)> {
        self.speech.resolve(&Destination {
            address: String::new(),
            is_url: false,
            host: "localhost",
            path: "/",
        })
    }
}

/// Options together with the words that were typed for them, so that another process can be told the
/// same whatever options there are.
#[derive(Debug)]
pub(super) struct Worded<T> {
    pub(super) value: T,
    /// The options that were given, each followed by its value.
    pub(super) words: Vec<String>,
}

impl<T: Args> FromArgMatches for Worded<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self {
            value: T::from_arg_matches(matches)?,
            words: words::<T>(matches),
        })
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, clap::Error> {
        let words = words::<T>(matches); // before its values are taken out
        Ok(Self {
            value: T::from_arg_matches_mut(matches)?,
            words,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.words = words::<T>(matches);
        self.value.update_from_arg_matches(matches)
    }
}

impl<T: Args> Args for Worded<T> {
    fn augment_args(command: clap::Command) -> clap::Command {
        T::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        T::augment_args_for_update(command)
    }
}

fn words<T: Args>(matches: &ArgMatches) -> Vec<String> {
    let mut words = Vec::new();
    for argument in T::augment_args(clap::Command::new("")).get_arguments() {
        let id = argument.get_id().as_str();
        let (Some(name), Some(ValueSource::CommandLine)) =
            (argument.get_long(), matches.value_source(id))
        else {
            continue;
        };
        if matches!(argument.get_action(), ArgAction::SetTrue) {
            words.push(format!("--{name}"));
            continue;
        }
        for value in matches.get_raw(id).into_iter().flatten() {
            // In one word, or a value that begins with a dash would be taken for an option.
            words.push(format!("--{name}={}", value.to_string_lossy()));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[derive(Debug, Parser)]
    #[command(no_binary_name = true)]
    struct Line {
        #[arg(long)]
        other: bool,
        #[command(flatten)]
        asking: Worded<Asking>,
    }

    #[test]
    fn what_was_typed_comes_back_and_defaults_do_not() {
        Line::command().debug_assert();
        let typed = [
            "--rate",
            "0..100",
            "--other",
            "--path",
            "/a:2",
            "--path=/b",
            "--protocol",
            "http",
            "--reconnect",
        ];
        let line = Line::try_parse_from(typed).unwrap();
        assert!(line.other);
        let mut words = line.asking.words;
        words.sort_unstable();
        let expected = [
            "--path=/a:2",
            "--path=/b",
            "--protocol=http",
            "--rate=0..100",
            "--reconnect",
        ];
        assert_eq!(words, expected);
        let again = Asking::read(&words).unwrap();
        assert_eq!(format!("{again:?}"), format!("{:?}", line.asking.value));
    }
}
