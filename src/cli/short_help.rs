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

/// Makes `-h` show only what fits on one screen, and `--help` everything.
pub(super) fn with_short_help(subcommand: clap::Command) -> clap::Command {
    let mut all = COMMON.iter();
    let Some((name, common)) = all.find(|(name, _)| *name == subcommand.get_name()) else {
        return subcommand;
    };
    let notes = subcommand.get_after_help().cloned().unwrap_or_default();
    subcommand
        .mut_args(|argument| {
            let is_common = common.contains(&argument.get_id().as_str());
            let is_common = is_common || argument.is_positional();
            argument.hide_short_help(!is_common)
        })
        .after_long_help(notes)
        .after_help(more_help(name))
}

fn more_help(name: &str) -> String {
    format!("See `throng {name} --help` for all options and examples.")
}

/// Shows `compare` as `measure` if the arguments use that alias.
#[cfg(target_os = "linux")]
pub(super) fn with_typed_alias(
    command: clap::Command,
    arguments: impl IntoIterator<Item = std::ffi::OsString>,
) -> clap::Command {
    let names = ["compare", "measure"];
    let mut arguments = arguments.into_iter();
    let typed = arguments.find(|word| names.iter().any(|name| word == name));
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
