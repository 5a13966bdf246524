//! The short help (`-h`) of commands with many options.

/// The options that `-h` shows, by command. Other commands show all of theirs.
pub(super) const COMMON: [(&str, &[&str]); 5] = [
    (
        "run",
        &[
            "scale", "models", "clients", "runs", "duration", "output", "fail_if", "json",
        ],
    ),
    (
        "compare",
        &[
            "names",
            "runs",
            "clients",
            "duration",
            "output",
            "fail_if",
            "fail_if_slower",
            "protocol",
            "headers",
            "rate",
        ],
    ),
    (
        "limit",
        &[
            "names", "find", "clients", "until", "max", "duration", "output", "protocol", "headers",
        ],
    ),
    (
        "serve",
        &["listen", "protocol", "size", "backlog", "workers", "json"],
    ),
    (
        "load",
        &[
            "clients",
            "duration",
            "requests",
            "rate",
            "headers",
            "data",
            "insecure",
            "fail_if",
            "json",
            "export_json",
        ],
    ),
];

/// Makes `-h` show only what fits on one screen, `--help` the same with the names of all other options and the notes,
/// and `throng help` everything.
pub(super) fn with_short_help(subcommand: clap::Command) -> clap::Command {
    let mut all = COMMON.iter();
    let Some((name, common)) = all.find(|(name, _)| *name == subcommand.get_name()) else {
        return subcommand;
    };
    let notes = subcommand.get_after_help().cloned().unwrap_or_default();
    let others = other_options(&subcommand, common);
    let whole = format!("Other options, which `throng help {name}` explains:\n{others}\n\n{notes}");
    subcommand
        .mut_args(|argument| {
            let is_common = is_common(&argument, common);
            argument
                .hide_short_help(!is_common)
                .hide_long_help(!is_common)
        })
        .after_long_help(whole)
        .after_help(more_help(name))
}

fn is_common(argument: &clap::Arg, common: &[&str]) -> bool {
    common.contains(&argument.get_id().as_str()) || argument.is_positional()
}

/// The names of the options that are not common, under their headings.
fn other_options(subcommand: &clap::Command, common: &[&str]) -> String {
    let mut by_heading: Vec<(&str, Vec<String>)> = Vec::new();
    for argument in subcommand.get_arguments() {
        let Some(name) = argument.get_long().filter(|_| !argument.is_hide_set()) else {
            continue;
        };
        if is_common(argument, common) {
            continue;
        }
        let heading = argument.get_help_heading().unwrap_or("General");
        let place = by_heading
            .iter()
            .position(|(other, _)| *other == heading)
            .unwrap_or_else(|| {
                by_heading.push((heading, Vec::new()));
                by_heading.len() - 1
            });
        by_heading[place].1.push(format!("--{name}"));
    }
    let lines = by_heading
        .into_iter()
        .map(|(heading, names)| format!("  {heading}: {}", names.join(" ")));
    lines.collect::<Vec<_>>().join("\n")
}

/// Makes the help of all commands whole, for `throng help` and manual pages.
pub(super) fn with_whole_help(command: clap::Command) -> clap::Command {
    command.mut_subcommands(|subcommand| {
        subcommand.defer(|subcommand| {
            let notes = subcommand.get_after_help().cloned().unwrap_or_default();
            super::checked(subcommand).after_long_help(notes)
        })
    })
}

fn more_help(name: &str) -> String {
    format!("See `throng {name} --help` for examples, and `throng help {name}` for all options.")
}

/// Shows `compare` as `measure` if the arguments use that alias.
#[cfg(target_os = "linux")]
pub(super) fn with_typed_alias(
    command: clap::Command,
    arguments: impl IntoIterator<Item = std::ffi::OsString>,
) -> clap::Command {
    let names = ["compare", "measure"];
    let mut all = arguments.into_iter();
    let typed = all.find(|word| names.iter().any(|name| word == name));
    if typed.is_none_or(|typed| typed != "measure") {
        return command;
    }
    command.mut_subcommand("compare", |compare| {
        compare.defer(|compare| {
            super::adjusted(compare)
                .override_usage("throng measure [OPTIONS] [SERVER]...")
                .after_help(more_help("measure"))
        })
    })
}
