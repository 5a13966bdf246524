//! `throng completions SHELL`: lets a shell complete the command line.
//!
//! The script only asks this program for candidates, so names of models, studies and so on are always current.

use std::ffi::OsStr;

use clap::ValueEnum as _;
use clap::builder::PossibleValuesParser;
use clap_complete::CompleteEnv;
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::Shells;

use super::list::Kind;
use super::{Exit, command, output};
#[cfg(target_os = "linux")]
use crate::measure::probes::PROBES;
use crate::protocol::PROTOCOLS;
use crate::record::FINDINGS;
use crate::record::metrics::METRICS;
use crate::registry::{Entry, Info};
use crate::report::exporters::EXPORTERS;
use crate::report::figures::FIGURES;
use crate::serve::models::MODELS;
use crate::study::STUDIES;

/// The name of the program in the shell.
const PROGRAM: &str = "throng";
/// The environment variable that a shell sets to get candidates.
const ASKED: &str = "THRONG_COMPLETE";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  throng completions bash > ~/.local/share/bash-completion/completions/throng
  throng completions zsh > ~/.zfunc/_throng          # in a directory of $fpath
  throng completions fish > ~/.config/fish/completions/throng.fish
  eval \"$(throng completions bash)\"                  # for this shell only

The shell completes commands, options, and names of models, protocols, probes, metrics and studies. It asks the \
throng on its path for them, so they stay current after an update.")]
pub(super) struct Arguments {
    /// Shell.
    #[arg(value_parser = PossibleValuesParser::new(Shells::builtins().names()))]
    shell: String,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let shells = Shells::builtins();
    let Some(shell) = shells.completer(&arguments.shell) else {
        anyhow::bail!("no completions for {}", arguments.shell);
    };
    let mut script = Vec::new();
    shell.write_registration(ASKED, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    output::text(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

/// Answers a shell that wants candidates, then exits. Must be called before anything else.
pub(super) fn answer() {
    CompleteEnv::with_factory(|| with_names(command()))
        .var(ASKED)
        .complete();
}

/// The command line, with candidates for its values.
fn with_names(command: clap::Command) -> clap::Command {
    command.mut_subcommands(|subcommand| {
        subcommand.mut_args(|argument| match Names::of(argument.get_id().as_str()) {
            Some(names) => argument.add(ArgValueCompleter::new(names)),
            None => argument,
        })
    })
}

/// Candidates for an argument.
struct Names {
    /// Entries of tables.
    entries: fn() -> Vec<Info>,
    /// Additional words.
    words: &'static [&'static str],
    /// Whether files are candidates too.
    files: bool,
}

impl Names {
    /// The candidates for this argument, if its values have names.
    fn of(argument: &str) -> Option<Self> {
        let names = |entries, words| Self {
            entries,
            words,
            files: false,
        };
        Some(match argument {
            "model" | "models" | "reference" | "servers" => names(models, &[]),
            "control" => names(models, &["none"]),
            "protocol" => names(protocols, &[]),
            "probes" => names(probes, &["default", "all", "none"]),
            "study" => Self {
                files: true,
                ..names(studies, &[])
            },
            "fail_if" | "until" => names(metrics, &[]),
            // The kinds of `throng list`.
            "name" => names(of_kind, &[]),
            _ => return None,
        })
    }
}

impl ValueCompleter for Names {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        let begun = current.to_string_lossy();
        let entries = (self.entries)().into_iter().map(|info| {
            let help = Some(info.summary.into());
            (info.name, CompletionCandidate::new(info.name).help(help))
        });
        let words = self
            .words
            .iter()
            .map(|word| (*word, CompletionCandidate::new(*word)));
        let mut candidates: Vec<CompletionCandidate> = entries
            .chain(words)
            .filter(|(name, _)| name.starts_with(begun.as_ref()))
            .map(|(_, candidate)| candidate)
            .collect();
        if self.files {
            candidates.extend(PathCompleter::any().complete(current));
        }
        candidates
    }
}

fn models() -> Vec<Info> {
    MODELS.iter().map(|model| model.info()).collect()
}

fn protocols() -> Vec<Info> {
    PROTOCOLS.iter().map(|protocol| protocol.info()).collect()
}

#[cfg(target_os = "linux")]
fn probes() -> Vec<Info> {
    PROBES.iter().map(|probe| probe.info()).collect()
}

#[cfg(not(target_os = "linux"))]
fn probes() -> Vec<Info> {
    Vec::new()
}

fn studies() -> Vec<Info> {
    STUDIES.iter().map(|study| study.info()).collect()
}

fn metrics() -> Vec<Info> {
    METRICS.iter().map(Entry::info).collect()
}

fn exporters() -> Vec<Info> {
    EXPORTERS.iter().map(|exporter| exporter.info()).collect()
}

fn figures() -> Vec<Info> {
    FIGURES.iter().map(|figure| figure.info()).collect()
}

/// The names of the kind in a `throng list` command line, which the shell passes as well.
fn of_kind() -> Vec<Info> {
    let mut words = std::env::args_os();
    let kind = words.find_map(|word| Kind::from_str(word.to_str()?, false).ok());
    match kind {
        Some(Kind::Models) => models(),
        Some(Kind::Protocols) => protocols(),
        Some(Kind::Probes) => probes(),
        Some(Kind::Studies) => studies(),
        Some(Kind::Exporters) => exporters(),
        Some(Kind::Figures) => figures(),
        Some(Kind::Metrics) => metrics(),
        Some(Kind::Findings) => FINDINGS.iter().map(|finding| finding.info()).collect(),
        None => Vec::new(),
    }
}
