//! The command line: from arguments to run specifications, and everything that is printed.
//!
//! One file per subcommand. Exit codes are in `exit`.

#[cfg(target_os = "linux")]
mod browser;
#[cfg(target_os = "linux")]
mod built;
#[cfg(target_os = "linux")]
mod compare;
mod completions;
#[cfg(target_os = "linux")]
mod doctor;
mod exit;
mod explain;
#[cfg(target_os = "linux")]
mod export;
mod flows;
#[cfg(target_os = "linux")]
mod lab;
#[cfg(target_os = "linux")]
mod limit;
mod list;
#[cfg(target_os = "linux")]
mod live;
#[cfg(target_os = "linux")]
mod live_file;
#[cfg(target_os = "linux")]
mod load;
#[cfg(target_os = "linux")]
mod load_flags;
mod man;
#[cfg(target_os = "linux")]
mod measuring;
mod output;
#[cfg(target_os = "linux")]
mod progress;
mod report;
#[cfg(target_os = "linux")]
mod reproduce;
#[cfg(target_os = "linux")]
mod request;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod runner;
#[cfg(target_os = "linux")]
mod running;
#[cfg(target_os = "linux")]
mod search_flags;
mod serve;
#[cfg(target_os = "linux")]
mod servers;
#[cfg(target_os = "linux")]
mod servers_under_test;
mod short_help;
#[cfg(target_os = "linux")]
mod study;
#[cfg(target_os = "linux")]
mod thresholds;
#[cfg(target_os = "linux")]
mod tls_flags;
#[cfg(target_os = "linux")]
mod traffic;
mod tuning;
mod unknown;
mod values;
#[cfg(target_os = "linux")]
mod view;

#[cfg(target_os = "linux")]
use std::io::IsTerminal as _;
use std::process::ExitCode;

#[cfg(target_os = "linux")]
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

#[cfg(target_os = "linux")]
use crate::measure::cluster::{Cluster, Origin};
#[cfg(target_os = "linux")]
use crate::measure::private_directory;
#[cfg(target_os = "linux")]
use crate::measure::processes::{ending, watchdog};
use crate::registry::{UnknownName, Unsupported};
use crate::sys::signal;
#[cfg(target_os = "linux")]
use crate::sys::signal::Stop;
pub use exit::EXIT_CODES;
use exit::Exit;

/// Benchmark network servers under many concurrent clients, and see what each request costs.
#[derive(Debug, Parser)]
#[command(
    name = "throng",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = [EXAMPLES, &exit::all_codes()].join("\n\n")
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    detail: output::Detail,
}

const EXAMPLES: &str = "\
Examples:
  throng load http://127.0.0.1:8080 -c 500 -d 10s
  throng compare epoll 'node server.js {port}'
  throng compare ./old ./new --fail-if-slower 5%
  throng limit epoll
  throng run";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a study: servers under several loads, measured on both sides.
    #[cfg(target_os = "linux")]
    Run(Box<run::Arguments>),
    /// Compare servers under one load, or measure one.
    #[cfg(target_os = "linux")]
    #[command(visible_alias = "measure", long_about = compare::about())]
    Compare(Box<compare::Arguments>),
    /// Find the most clients or requests/s that a server holds, and why.
    #[cfg(target_os = "linux")]
    Limit(Box<limit::Arguments>),
    /// Run a built-in server.
    Serve(Box<serve::Arguments>),
    /// Load a server and report throughput, latency and errors.
    #[cfg(target_os = "linux")]
    Load(Box<load::Arguments>),
    /// Make the report again from a record, or compare two records.
    Report(report::Arguments),
    /// Repeat a run from its record, and check whether its verdicts hold.
    #[cfg(target_os = "linux")]
    Reproduce(reproduce::Arguments),
    /// Browse all runs in a directory as local web pages.
    #[cfg(target_os = "linux")]
    View(view::Arguments),
    /// Describe the TCP connections in a packet capture.
    Flows(flows::Arguments),
    /// List models, protocols, probes, metrics, studies and more.
    List(list::Arguments),
    /// Explain a model: idea, system calls, source, results, exercises.
    Explain(explain::Arguments),
    /// Check this machine for anything that would skew results.
    #[cfg(target_os = "linux")]
    Doctor(doctor::Arguments),
    /// Print shell completions.
    Completions(completions::Arguments),
    /// Write man pages.
    Man(man::Arguments),
    /// Stop everything that a killed run started.
    #[cfg(target_os = "linux")]
    #[command(name = watchdog::SUBCOMMAND, hide = true)]
    Watchdog {
        /// The mark in the environment of all processes of the run.
        mark: String,
        /// The control groups of the run.
        groups: Vec<std::path::PathBuf>,
    },
}

/// Wrong usage: arguments, files or directories that cannot be used, found before anything was started.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Usage(String);

/// The whole command line, from which help, man pages and completions are made. Only the subcommand that runs is
/// adjusted: adjusting all of them took half of the instructions that an unoptimized program needs to start.
pub fn command() -> clap::Command {
    Cli::command().mut_subcommands(|subcommand| subcommand.defer(adjusted))
}

/// The command line, with the whole help of every command.
fn whole_command() -> clap::Command {
    short_help::with_whole_help(Cli::command())
}

/// Adjusts a subcommand in ways that its attributes cannot express.
fn adjusted(subcommand: clap::Command) -> clap::Command {
    short_help::with_short_help(checked(subcommand))
}

/// Adjusts what a subcommand accepts.
fn checked(subcommand: clap::Command) -> clap::Command {
    takes_negative_numbers(resumes_alone(subcommand))
}

/// Lets a value parser reject `-5`, which would otherwise be taken for an unknown option.
fn takes_negative_numbers(subcommand: clap::Command) -> clap::Command {
    subcommand.mut_args(|argument| {
        let takes_value = argument.get_action().takes_values() && !argument.is_positional();
        argument.allow_negative_numbers(takes_value)
    })
}

/// Options that may accompany `--resume`.
const RESUMING: [&str; 8] = [
    "open",
    "resume",
    "json",
    "allow_rough",
    "retry_invalid",
    "export_json",
    "export_csv",
    "export_markdown",
];

/// If a subcommand has `--resume`, allows only these options with it: the record has everything else.
fn resumes_alone(subcommand: clap::Command) -> clap::Command {
    let ids = subcommand.get_arguments().map(clap::Arg::get_id);
    let (own, others): (Vec<_>, Vec<_>) =
        ids.cloned().partition(|id| RESUMING.contains(&id.as_str()));
    if !own.iter().any(|id| id == "resume") {
        return subcommand;
    }
    subcommand.mut_arg("resume", |resume| resume.conflicts_with_all(others))
}

/// Runs the program.
pub fn main() -> ExitCode {
    completions::answer();
    let asks_for_help = std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == "help");
    let grammar = if asks_for_help {
        whole_command()
    } else {
        #[cfg(target_os = "linux")]
        let typed = short_help::with_typed_alias(command(), std::env::args_os().skip(1));
        #[cfg(not(target_os = "linux"))]
        let typed = command();
        typed
    };
    let mut matches = grammar
        .try_get_matches()
        .unwrap_or_else(|error| end(&unknown::explained(error, &words(std::env::args_os()))));
    let cli = Cli::from_arg_matches_mut(&mut matches)
        .unwrap_or_else(|error| end(&error.format(&mut command())));
    #[cfg(target_os = "linux")]
    let ended = perform(cli, &mut Origin::Here);
    #[cfg(not(target_os = "linux"))]
    let ended = perform(cli);
    ended
}

/// Ends the program with wrong usage, or with help.
fn end(error: &clap::Error) -> ! {
    output::usage(error);
    std::process::exit(error.exit_code())
}

/// The words of a command line, without the program's name.
fn words(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> Vec<String> {
    let words = arguments.into_iter().skip(1);
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// The subcommands that load servers, and so can run their clients on several hosts.
#[cfg(target_os = "linux")]
const MEASURING: [&str; 3] = ["run", "compare", "limit"];

/// Whether a command line (without the program's name) has a subcommand that runs its clients on a cluster. All other
/// subcommands, including the `serve` and `load` of trials, need no other host.
#[cfg(target_os = "linux")]
pub fn uses_cluster(arguments: &[std::ffi::OsString]) -> bool {
    let first = arguments.first().and_then(|first| first.to_str());
    let asks_for_help = |word: &std::ffi::OsString| word == "--help" || word == "-h";
    first.is_some_and(|first| MEASURING.contains(&first)) && !arguments.iter().any(asks_for_help)
}

/// Runs the program on the host that leads a run, with its clients on the hosts of a cluster. Commands that do not
/// [use a cluster](uses_cluster) run without one. The first argument is the program's name. This always returns, so
/// that the launcher of the hosts can end them; the cluster is dropped before.
#[cfg(target_os = "linux")]
pub fn main_with(
    arguments: impl IntoIterator<Item = std::ffi::OsString>,
    cluster: Option<Box<dyn Cluster>>,
) -> ExitCode {
    let all: Vec<_> = arguments.into_iter().collect();
    let grammar = short_help::with_typed_alias(command(), all.iter().skip(1).cloned());
    let mut command = MEASURING.into_iter().fold(grammar, |command, name| {
        command.mut_subcommand(name, lab::shown)
    });
    let parsed = command
        .try_get_matches_from_mut(&all)
        .and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches))
        .map_err(|error| error.format(&mut command));
    match parsed {
        Ok(cli) => perform(cli, &mut cluster.map_or(Origin::Here, Origin::Cluster)),
        Err(error) => {
            let error = unknown::explained(error, &words(all));
            output::usage(&error);
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Usage as u8))
        }
    }
}

fn perform(cli: Cli, #[cfg(target_os = "linux")] origin: &mut Origin) -> ExitCode {
    let Cli { command, detail } = cli;
    detail.apply();
    // Without this, a file that becomes too large ends the program without a word.
    let _ = signal::report_large_files();
    #[cfg(target_os = "linux")]
    if let Command::Run(_)
    | Command::Compare(_)
    | Command::Limit(_)
    | Command::Load(_)
    | Command::Reproduce(_) = &command
        && let Err(why) = runner::refuse_other_than_text()
    {
        output::error(&why.into());
        return ExitCode::from(Exit::Usage as u8);
    }
    let result = match command {
        #[cfg(target_os = "linux")]
        Command::Run(arguments) => run::run(&arguments, origin),
        #[cfg(target_os = "linux")]
        Command::Compare(arguments) => compare::run(&arguments, origin),
        #[cfg(target_os = "linux")]
        Command::Limit(arguments) => limit::run(&arguments, origin),
        Command::Serve(arguments) => serve::run(&arguments),
        #[cfg(target_os = "linux")]
        Command::Load(arguments) => load::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        #[cfg(target_os = "linux")]
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        #[cfg(target_os = "linux")]
        Command::View(arguments) => view::run(&arguments),
        Command::Flows(arguments) => flows::run(&arguments),
        Command::List(arguments) => list::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        #[cfg(target_os = "linux")]
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
        #[cfg(target_os = "linux")]
        Command::Watchdog { mark, groups } => run_watchdog(&mark, &groups),
    };
    #[cfg(target_os = "linux")]
    if let Some(survivors) = ending::take_survivors() {
        output::warning(&survivors);
    }
    let exit = result.unwrap_or_else(|error| {
        output::error(&error);
        if is_usage(&error) {
            Exit::Usage
        } else {
            Exit::Failed
        }
    });
    ExitCode::from(exit as u8)
}

/// Acts as the watchdog of a run.
#[cfg(target_os = "linux")]
fn run_watchdog(mark: &str, groups: &[std::path::PathBuf]) -> anyhow::Result<Exit> {
    // The watchdog survives a signal to all processes: that is meant for those that can end in order.
    Stop::install()?;
    watchdog::run(mark, groups, std::io::stdin().lock());
    private_directory::remove_abandoned();
    Ok(Exit::Done)
}

fn is_usage(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        #[cfg(target_os = "linux")]
        if cause.is::<crate::load::preflight::Shortage>() {
            return true;
        }
        cause.is::<Usage>()
            || cause.is::<WrongOption>()
            || cause.is::<UnknownName>()
            || cause.is::<Unsupported>()
            || cause.is::<crate::study::StudyError>()
    })
}

/// Wrong use of one option, which may come from a study file.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
struct WrongOption {
    /// Its name, without dashes; empty if it is unknown.
    option: String,
    /// Whether only its value is wrong.
    is_value: bool,
    why: String,
}

impl WrongOption {
    /// An option that cannot be used here.
    fn new(option: &str, why: String) -> Self {
        Self {
            option: option.to_owned(),
            is_value: false,
            why,
        }
    }

    /// What clap found wrong in the options of a subcommand.
    #[cfg(target_os = "linux")]
    fn of(error: &clap::Error, subcommand: &str) -> Self {
        let why = runner::first_line(error);
        let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else {
            return Self::new("", why);
        };
        let name = argument.split([' ', '=']).next().unwrap_or_default();
        Self {
            option: name.trim_start_matches('-').to_owned(),
            is_value: matches!(
                error.kind(),
                ErrorKind::InvalidValue | ErrorKind::ValueValidation
            ),
            why: match error.kind() {
                ErrorKind::UnknownArgument => {
                    format!("`throng {subcommand}` has no option '{name}'")
                }
                _ => why,
            },
        }
    }

    /// The option that an error is about, if any.
    #[cfg(target_os = "linux")]
    fn about(error: anyhow::Error) -> Self {
        let wrong = error.downcast::<Self>();
        wrong.unwrap_or_else(|other| Self::new("", format!("{other:#}")))
    }
}

/// Whether to draw a live view: on a terminal that can move its cursor, unless `--quiet` is given.
#[cfg(target_os = "linux")]
fn has_viewer() -> bool {
    if output::is_quiet() {
        return false;
    }
    let can_move = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    can_move && std::io::stderr().is_terminal()
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    #[test]
    fn short_help_fits_a_screen() {
        let mut whole = command().term_width(80);
        whole.build();
        let subcommands = whole.get_subcommands().cloned();
        for mut subcommand in subcommands.chain([whole.clone()]) {
            let help = subcommand.render_help().to_string();
            assert!(help.lines().count() <= 40, "{help}");
            assert!(
                help.lines().all(|line| line.chars().count() <= 80),
                "{help}"
            );
            let is_shortened = short_help::COMMON
                .iter()
                .any(|(name, _)| *name == subcommand.get_name());
            assert_eq!(help.contains("--help` for examples"), is_shortened);
            let long = subcommand.render_long_help().to_string();
            assert!(!is_shortened || long.lines().count() <= 150, "{long}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn help_shows_the_alias_that_was_typed() {
        for name in ["compare", "measure"] {
            let words = ["throng", "-q", name, "--nonsense"].map(std::ffi::OsString::from);
            let grammar = short_help::with_typed_alias(command(), words.iter().skip(1).cloned());
            let error = grammar.try_get_matches_from(words).unwrap_err();
            assert!(
                error
                    .to_string()
                    .contains(&format!("Usage: throng {name} "))
            );
        }
    }

    /// The README and all pages of the documentation.
    fn pages() -> Vec<PathBuf> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut pages = vec![root.join("README.md")];
        let mut places = vec![root.join("docs")];
        while let Some(place) = places.pop() {
            for entry in std::fs::read_dir(&place)
                .expect("there are pages")
                .flatten()
            {
                let path = entry.path();
                if path.is_dir() {
                    places.push(path);
                } else if path.extension().is_some_and(|end| end == "md") {
                    pages.push(path);
                }
            }
        }
        pages
    }

    /// The commands in a page, without the shell syntax around them.
    fn commands(page: &str) -> Vec<Vec<String>> {
        let joined = page.replace("\\\n", " ");
        let lines = joined
            .lines()
            .map(|line| line.trim().trim_start_matches("$ "));
        let mut commands = Vec::new();
        for line in lines.filter(|line| line.starts_with("throng ")) {
            // Lines that are not commands are prose, in which a quote may be unterminated.
            let words = shlex::split(line).unwrap_or_default();
            for words in words.split(|word| ["&&", "|", ";"].contains(&word.as_str())) {
                let command: Vec<String> = words
                    .iter()
                    .take_while(|word| *word != ">" && *word != "&")
                    .cloned()
                    .collect();
                if command.first().is_some_and(|first| first == "throng") {
                    commands.push(command);
                }
            }
        }
        commands
    }

    /// The text between fences, and the text that is indented like code.
    fn code(page: &str) -> String {
        let mut fenced = false;
        let mut code = String::new();
        for line in page.lines() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            } else if fenced || line.starts_with("    ") {
                code += line;
                code.push('\n');
            }
        }
        code
    }

    #[test]
    fn every_command_in_the_pages_is_understood() {
        let mut count = 0;
        for page in pages() {
            let text = std::fs::read_to_string(&page).unwrap();
            for words in commands(&code(&text)) {
                count += 1;
                if let Err(error) = command().try_get_matches_from(&words) {
                    // A page may describe a larger machine than this one.
                    let is_larger = error.to_string().contains("is not available; this process");
                    assert!(
                        is_larger,
                        "{}: {}: {error}",
                        page.display(),
                        words.join(" ")
                    );
                }
            }
        }
        assert!(count > 30, "{count} commands");
    }
}
