//! Errors about unknown options and commands, with useful tips.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::command;
use crate::registry;

/// Commands that send requests.
const SENDING: &[&str] = &["load", "compare", "measure", "limit", "run"];
const LOAD: &[&str] = &["load"];
const MEASURE: &[&str] = &["compare", "measure"];
const SERVE: &[&str] = &["serve"];

/// Options of ab, curl, hey, hyperfine, k6, oha, vegeta and wrk, the throng commands in which people type them, and
/// what to write instead.
const OF_OTHERS: &[(&[&str], &[&str], &str)] = &[
    (
        &["-t"],
        SENDING,
        "write --threads N for threads, --timeout TIME for a time limit",
    ),
    (
        &["-R", "-r"],
        LOAD,
        "write --rate N for requests per second",
    ),
    (
        &["-M", "--min-runs", "--max-runs"],
        MEASURE,
        "write --runs N",
    ),
    (&["--max-time"], MEASURE, "write --budget TIME"),
    (&["-w"], SENDING, "write --warm-up TIME"),
    (
        &["-i", "--ignore-failure"],
        MEASURE,
        "write --keep-going to measure the other servers",
    ),
    (
        &["--latency", "--print-latency"],
        LOAD,
        "the result always has percentiles: leave it out",
    ),
    (
        &["--latency-correction"],
        LOAD,
        "with --rate, response time counts from when a request was due: leave it out",
    ),
    (
        &["-s", "--script"],
        LOAD,
        "throng runs no scripts; see --request-file and --variables",
    ),
    (
        &["-p", "--post-file", "--body-file"],
        LOAD,
        "write --data @FILE for a request body",
    ),
    (
        &["-D", "--data-raw", "--data-binary"],
        LOAD,
        "write --data TEXT or --data @FILE for a request body",
    ),
    (
        &["--targets"],
        LOAD,
        "write --request-file FILE, with one request per line as JSON",
    ),
    (
        &["-A", "--accept"],
        SENDING,
        "write -H 'Accept: TYPE' for a header",
    ),
    (&["--host"], SENDING, "write -H 'Host: NAME'"),
    (&["--user-agent"], SENDING, "write -H 'User-Agent: NAME'"),
    (
        &["--cookie", "-C", "-b"],
        SENDING,
        "write -H 'Cookie: NAME=VALUE'",
    ),
    (
        &["-2", "--http-version", "--h2"],
        SENDING,
        "write --protocol http2 for HTTP/2",
    ),
    (
        &["--http3", "--h3"],
        SENDING,
        "throng speaks HTTP/1.1 and HTTP/2 only",
    ),
    (&["--call"], LOAD, "write --grpc PACKAGE.SERVICE/METHOD"),
    (
        &["-x", "--proxy"],
        SENDING,
        "throng uses no proxy; load the address of the server",
    ),
    (
        &["-L", "--location", "--redirect", "--redirects"],
        SENDING,
        "throng follows no redirects; load the URL that they lead to",
    ),
    (
        &["--no-tui"],
        LOAD,
        "write --quiet to print the result only",
    ),
    (
        &["-o", "--output", "--output-format", "--format"],
        LOAD,
        "write --json for JSON, or --export-json, --export-csv or --export-markdown FILE",
    ),
    (&["--summary-export"], LOAD, "write --export-json FILE"),
    (
        &["--workers", "--max-workers", "--max-connections", "--users"],
        LOAD,
        "write --clients N",
    ),
    (
        &["--keepalive", "--keep-alive"],
        SENDING,
        "connections are kept by default: leave it out",
    ),
    (&["-p", "--port"], SERVE, "write --listen 127.0.0.1:PORT"),
];

/// Words that people try as commands, and what to write instead.
const COMMANDS_OF_OTHERS: &[(&[&str], &str)] = &[
    (
        &["bench", "benchmark", "attack", "http", "test"],
        "write 'throng load ADDRESS' to load a server, or 'throng compare SERVER...'",
    ),
    (&["start", "server"], "write 'throng serve MODEL'"),
    (&["version"], "write 'throng --version'"),
    (&["ls", "models"], "write 'throng list'"),
];

/// Adds a tip to an error of clap for these words (without the program's name), for the most common mistakes.
pub(super) fn explained(mut error: clap::Error, words: &[String]) -> clap::Error {
    let given = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let value = given(ContextKind::InvalidValue);
    let argument = given(ContextKind::InvalidArg);
    let text = match (error.kind(), argument) {
        (ErrorKind::UnknownArgument, Some(typed)) => {
            // The argument is hardly ever meant as a value, and clap's usage only guesses which options were meant.
            error.remove(ContextKind::Suggested);
            error.remove(ContextKind::Usage);
            one_dash(words)
                .or_else(|| of_others(&typed, words))
                .or_else(|| of_another_command(&mut error, &typed))
        }
        (ErrorKind::ValueValidation, Some(option)) => {
            one_dash(words).or_else(|| meant_otherwise(&option, &value.unwrap_or_default(), words))
        }
        (ErrorKind::InvalidSubcommand, _) => {
            command_meant(&given(ContextKind::InvalidSubcommand).unwrap_or_default())
        }
        _ => None,
    };
    if let Some(text) = text {
        error.remove(ContextKind::SuggestedArg);
        let tip = ContextValue::StyledStrs(vec![text.into()]);
        error.insert(ContextKind::Suggested, tip);
    }
    error
}

/// A tip for a long option with a single dash, as in Go's tools.
fn one_dash(words: &[String]) -> Option<String> {
    let names = words.iter().filter_map(|word| {
        let name = word.strip_prefix('-')?.split('=').next()?;
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
        let may_be = name.len() > 2 && !name.starts_with('-') && name.bytes().all(is_name);
        may_be.then_some(name)
    });
    let mut known = names.filter(|name| has_option(name));
    known
        .next()
        .map(|name| format!("a long option has two dashes: --{name}"))
}

/// The replacement for an option of another tool.
fn of_others(typed: &str, words: &[String]) -> Option<String> {
    let command = words.iter().find(|word| !word.starts_with('-'))?;
    let entries = OF_OTHERS.iter();
    let mut tips = entries.filter(|(options, commands, _)| {
        options.contains(&typed) && commands.contains(&command.as_str())
    });
    tips.next().map(|(_, _, tip)| (*tip).to_owned())
}

/// A tip with the commands that have this option. If there are none, clap's tip of a similar option stays.
fn of_another_command(error: &mut clap::Error, typed: &str) -> Option<String> {
    let name = typed.strip_prefix("--")?;
    let commands = commands_with(name);
    if !commands.is_empty() {
        return Some(format!(
            "'--{name}' is an option of {}",
            commands.join(", ")
        ));
    }
    if let Some(ContextValue::String(tip)) = error.get(ContextKind::SuggestedArg)
        && registry::closest(name, &[tip.trim_start_matches('-')]).is_none()
    {
        error.remove(ContextKind::SuggestedArg);
    }
    None
}

/// A tip for values that show that the option before them was meant as another tool's.
fn meant_otherwise(option: &str, value: &str, words: &[String]) -> Option<String> {
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let quiet = ["-q".to_owned(), value.to_owned()];
    if option == "[ADDRESS]..." && is_number && words.windows(2).any(|pair| pair == quiet) {
        return Some(format!(
            "-q means --quiet; write --rate {value} for requests per second"
        ));
    }
    if option.starts_with("--duration") && value.contains(['{', '=', '@', '"', '&']) {
        return Some("-d is the duration; write --data for a request body".to_owned());
    }
    if option.starts_with("--requests ") && std::path::Path::new(value).is_file() {
        return Some(format!(
            "write --request-file {value} for requests in a file"
        ));
    }
    None
}

/// The replacement for a command that does not exist.
fn command_meant(typed: &str) -> Option<String> {
    if typed.contains("://") {
        return Some(format!("write 'throng load {typed}'"));
    }
    let mut entries = COMMANDS_OF_OTHERS.iter();
    let entry = entries.find(|(words, _)| words.contains(&typed));
    entry.map(|(_, tip)| (*tip).to_owned())
}

/// Whether any command has a long option of this name.
fn has_option(name: &str) -> bool {
    let whole = command();
    let has = |command: &clap::Command| {
        let mut arguments = command.get_arguments();
        arguments.any(|argument| {
            let aliases = argument.get_all_aliases().unwrap_or_default();
            argument.get_long() == Some(name) || aliases.contains(&name)
        })
    };
    whole.get_subcommands().any(has)
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
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let line = std::iter::once("throng".to_owned()).chain(words.iter().cloned());
            let error = command().try_get_matches_from(line).unwrap_err();
            explained(error, &words).to_string()
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
            ("load http://a/ -t 2 -c 10", "--threads N"),
            ("load http://a/ -n 100 -q 50", "--rate 50"),
            ("load http://a/ -rate 50", "two dashes: --rate"),
            ("load http://a/ -disable-keepalive", "--disable-keepalive"),
            ("load http://a/ -d {\"a\":1}", "--data"),
            ("load http://a/ --http3", "HTTP/1.1 and HTTP/2 only"),
            ("load http://a/ --user-agent x", "'User-Agent: NAME'"),
            ("serve epoll --port 8080", "--listen 127.0.0.1:PORT"),
            ("compare a b --min-runs 5", "--runs N"),
            ("http://127.0.0.1:80/", "'throng load http://127.0.0.1:80/'"),
            ("attack http://a/", "'throng load ADDRESS'"),
        ] {
            assert!(message(line).contains(tip), "{}", message(line));
        }
        assert!(!message("load a:1 --xyzzy").contains("tip:"));
    }

    #[test]
    fn options_of_others_do_not_exist_here() {
        for (options, commands, _) in OF_OTHERS {
            for (option, name) in options.iter().flat_map(|option| {
                let commands = commands.iter();
                commands.map(move |name| (*option, *name))
            }) {
                let words = ["throng", name, option];
                let kind = command()
                    .try_get_matches_from(words)
                    .map_err(|error| error.kind());
                assert_eq!(
                    kind.err(),
                    Some(ErrorKind::UnknownArgument),
                    "throng {name} {option}"
                );
            }
        }
    }
}
