//! Errors about unknown options, with useful tips.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::command;
use crate::registry;

/// An error of clap. For an unknown option, the tip names the commands that have it, otherwise a similar option.
pub(super) fn explained(mut error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let Some(name) = typed.strip_prefix("--").map(str::to_owned) else {
        return error;
    };
    // It is hardly ever meant as a value.
    error.remove(ContextKind::Suggested);
    let commands = commands_with(&name);
    if !commands.is_empty() {
        error.remove(ContextKind::SuggestedArg);
        let tip = format!("'--{name}' is an option of {}", commands.join(", "));
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![tip.into()]),
        );
    } else if let Some(ContextValue::String(tip)) = error.get(ContextKind::SuggestedArg)
        && registry::closest(&name, &[tip.trim_start_matches('-')]).is_none()
    {
        error.remove(ContextKind::SuggestedArg);
    }
    error
}

/// The commands with an option of this name.
fn commands_with(name: &str) -> Vec<String> {
    let is_it = |argument: &clap::Arg| {
        let names = argument.get_long_and_visible_aliases().unwrap_or_default();
        !argument.is_hide_set() && names.contains(&name)
    };
    let whole = command();
    let commands = whole.get_subcommands();
    commands
        .filter(|command| command.get_arguments().any(is_it))
        .map(|command| format!("'throng {}'", command.get_name()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tip_names_a_similar_option_or_the_commands_that_have_it() {
        let message = |line: &str| {
            let words = ["throng"].into_iter().chain(line.split(' '));
            let error = command().try_get_matches_from(words).unwrap_err();
            explained(error).to_string()
        };
        for (line, tip) in [
            ("load a:1 --duratoin 5s", "'--duration'"),
            (
                "run --header a",
                "'--header' is an option of 'throng compare', 'throng limit', 'throng load'",
            ),
            (
                "serve epoll --fail-if a",
                "'--fail-if' is an option of 'throng run', 'throng compare'",
            ),
        ] {
            assert!(message(line).contains(tip), "{}", message(line));
        }
        assert!(!message("load a:1 --xyzzy").contains("tip:"));
    }
}
