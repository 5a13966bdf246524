//! `throng completions SHELL`: lets a shell complete the command line.
//!
//! What a shell is told is only to ask this program, so that names of models, studies and the like are those
//! of the program that is there.

use std::ffi::OsStr;

use clap::builder::PossibleValuesParser;
use clap_complete::CompleteEnv;
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::Shells;

use super::{Exit, command, output};
#[cfg(target_os = "linux")]
use crate::measure::probes::PROBES;
use crate::protocol::PROTOCOLS;
use crate::record::metrics::METRICS;
use crate::registry::{Entry, Info};
use crate::report::exporters::EXPORTERS;
use crate::report::figures::FIGURES;
use crate::serve::models::MODELS;
use crate::study::STUDIES;

/// The name under which shells know the program.
const PROGRAM: &str = "throng";
/// The variable in the environment by which a shell asks for candidates.
const ASKED: &str = "THRONG_COMPLETE";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  throng completions bash > ~/.local/share/bash-completion/completions/throng
  throng completions zsh > ~/.zfunc/_throng          # in a directory of $fpath
  throng completions fish > ~/.config/fish/completions/throng.fish
  eval \"$(throng completions bash)\"                  # for this shell only

Options, and names of models, protocols, probes and studies. The shell asks the `throng` that it finds on
its path, so after an update nothing has to be done but to make a new file from time to time.")]
pub(super) struct Arguments {
    /// The shell.
    #[arg(value_parser = PossibleValuesParser::new(Shells::builtins().names()))]
    shell: String,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let shells = Shells::builtins();
    let Some(shell) = shells.completer(&arguments.shell) else {
        anyhow::bail!("there are no completions for {}", arguments.shell);
    };
    let mut script = Vec::new();
    shell.write_registration(ASKED, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    output::text(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

/// Answers a shell that asks for candidates, and ends the program then. To be called before anything else.
pub(super) fn answer() {
    CompleteEnv::with_factory(|| with_names(command()))
        .var(ASKED)
        .complete();
}

/// The command line whose arguments know their names.
fn with_names(command: clap::Command) -> clap::Command {
    command.mut_subcommands(|subcommand| {
        subcommand.mut_args(|argument| match Names::of(argument.get_id().as_str()) {
            Some(names) => argument.add(ArgValueCompleter::new(names)),
            None => argument,
        })
    })
}

/// What an argument may be.
struct Names {
    /// Entries of tables.
    entries: fn() -> Vec<Info>,
    /// Words beside these.
    words: &'static [&'static str],
    /// Files too.
    files: bool,
}

impl Names {
    /// What the argument of this name may be, where that has names.
    fn of(argument: &str) -> Option<Self> {
        let names = |entries, words| Self {
            entries,
            words,
            files: false,
        };
        Some(match argument {
            "model" | "models" | "servers" => names(models, &[]),
            "control" => names(models, &["none"]),
            "protocol" => names(protocols, &[]),
            "probes" => names(probes, &["default", "all", "none"]),
            "study" => Self {
                files: true,
                ..names(studies, &[])
            },
            // Of `throng list`, whose kinds share no names.
            "name" => names(everything, &[]),
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
        let words = self.words.iter();
        let words = words.map(|word| (*word, CompletionCandidate::new(*word)));
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

fn everything() -> Vec<Info> {
    let mut all = [models(), protocols(), probes(), studies()].concat();
    all.extend(EXPORTERS.iter().map(|exporter| exporter.info()));
    all.extend(FIGURES.iter().map(|figure| figure.info()));
    all.extend(METRICS.iter().map(Entry::info));
    all
}
