//! The servers to measure: their names, and how they start and stop. Used by every subcommand that accepts foreign
//! servers.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::load_flags::{LoadFlags, default_protocol};
use super::running::RunningFlags;
use super::servers::{self, ChosenServer, Kind, each};
use super::{Usage, request, running, values};
use crate::measure::probes::ProbeKind;
use crate::measure::{MOST_PORTS, Ready, server_limit, stop_signal};
use crate::record::format::counted;
use crate::record::{ServerInfo, Settings};
use crate::spec::LoadSpec;

/// The servers, and what they are called.
#[derive(Debug, clap::Args)]
pub(super) struct Servers {
    /// Models, commands, or addresses of running servers.
    ///
    /// An address is HOST:PORT or a URL like http://HOST:PORT/PATH. Quote commands with spaces.
    #[arg(value_name = "SERVER", required_unless_present = "resume")]
    pub(super) servers: Vec<String>,
    /// Name for a server [default: its command].
    ///
    /// Repeat in the servers' order.
    #[arg(short, long = "name", alias = "command-name", value_name = "NAME", value_parser = name)]
    names: Vec<String>,
}

/// How servers start and stop.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Starting and stopping servers")]
pub(super) struct LifecycleFlags {
    /// Start servers with these resource limits: nofile (descriptors), nproc (processes and threads of the user, except
    /// root) or as (address space, with a unit). Separate several by commas.
    #[arg(long = "server-limit", value_name = "NAME=N", value_delimiter = ',', value_parser = limit)]
    limits: Vec<(String, u64)>,
    /// Run commands with `sh -c`, also those of --setup, --prepare and so on. The shell is then measured too, unless
    /// the last command begins with `exec`.
    #[arg(long)]
    pub(super) shell: bool,
    /// Set an environment variable for servers and commands. Repeat for more.
    #[arg(long, value_name = "KEY=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// Working directory of servers and commands [default: the current one]. Give it once, or once per server.
    #[arg(long, value_name = "DIR")]
    cwd: Vec<String>,
    /// When a server is ready: `tcp` (it accepts a connection), a URL that returns 2xx or 3xx, like
    /// http://{address}/health, or a regular expression for a line of its output [default: tcp]. The TLS flags apply
    /// to https://. Give it once, or once per server.
    #[arg(long, value_name = "tcp|URL|REGEX", value_parser = ready)]
    ready: Vec<String>,
    /// Time limit until a server is ready.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::positive_duration)]
    ready_timeout: Duration,
    /// Signal that stops a server [default: TERM]. Give it once, or once per server.
    #[arg(long, value_name = "NAME", value_parser = stop_signal)]
    stop_signal: Vec<String>,
    /// Time limit until a server stops. It is then killed, and its results are kept.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::positive_duration)]
    stop_timeout: Duration,
    /// Run this command once before all trials of a server. Give this flag, and the next three, once, or once per server.
    #[arg(long, value_name = "COMMAND")]
    setup: Vec<String>,
    /// Run this command once after all trials of a server, also after failures and Ctrl-C.
    #[arg(long, value_name = "COMMAND")]
    cleanup: Vec<String>,
    /// Run this command before each trial, with PORT set.
    #[arg(long, value_name = "COMMAND")]
    pub(super) prepare: Vec<String>,
    /// Run this command after each trial.
    #[arg(long, value_name = "COMMAND")]
    pub(super) conclude: Vec<String>,
    /// Time limit for each of --setup, --cleanup, --prepare and --conclude.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::positive_duration)]
    hook_timeout: Duration,
    /// Measure the other servers if one does not start, or gives wrong replies, in its first trial.
    #[arg(long)]
    keep_going: bool,
    /// Search this log file of a server for the reasons why it rejects clients. Repeat for more files of one server,
    /// or give one file per server.
    #[arg(long = "server-log", value_name = "FILE")]
    logs: Vec<String>,
    #[command(flatten)]
    pub(super) running: RunningFlags,
}

impl LifecycleFlags {
    /// The kind of each server.
    pub(super) fn kinds(&self, texts: &[String]) -> Result<Vec<Kind>, Usage> {
        servers::kinds(texts, self.shell, &self.cwds(texts.len())?)
    }

    /// Whether --ready is given.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The directory in which each server starts.
    fn cwds(&self, servers: usize) -> Result<Vec<Option<String>>, Usage> {
        let each = each("cwd", &self.cwd, servers)?.into_iter();
        each.map(|cwd| cwd.map(directory).transpose()).collect()
    }

    /// Rejects options that only apply to servers that throng starts, if it starts none.
    fn check(&self, kinds: &[Kind]) -> Result<(), Usage> {
        let given = [
            ("server-limit", !self.limits.is_empty()),
            ("ready", !self.ready.is_empty()),
            ("stop-signal", !self.stop_signal.is_empty()),
        ]
        .into_iter()
        .find(|(_, is_given)| *is_given);
        match given {
            Some((name, _)) if !kinds.iter().any(Kind::is_started) => Err(Usage(format!(
                "--{name} is for servers that throng starts, but these are already running; write a command, or \
                 leave it out"
            ))),
            _ => Ok(()),
        }
    }
}

/// The settings that all subcommands with servers share, except for repetitions and descriptions.
pub(super) fn settings(
    mut load: LoadSpec,
    flags: &LoadFlags,
    kinds: &[Kind],
    care: &LifecycleFlags,
    (server_cpus, client_cpus): (Vec<u32>, Vec<u32>),
    probes: &[&'static ProbeKind],
) -> Result<Settings, Usage> {
    care.check(kinds)?;
    flags.apply(&mut load)?;
    let all_ours = kinds.iter().all(|kind| matches!(kind, Kind::Own(..)));
    running::ask_for(&mut load, kinds)?;
    default_protocol(&mut load, all_ours);
    let ours = kinds.iter().find(|kind| matches!(kind, Kind::Own(..)));
    if let (Some(Kind::Own(model, _)), Some(key)) = (ours, load.only_for_others()) {
        return Err(Usage(format!(
            "the built-in server {model} does not support --{key}; use other servers, or leave it out"
        )));
    }
    let names = probes.iter().map(|kind| kind.info.name.to_owned());
    Ok(Settings {
        load: request::complete(load.checked()?)?,
        profiled_runs: 1,
        ready_timeout_s: care.ready_timeout.as_secs_f64(),
        stop_timeout_s: care.stop_timeout.as_secs_f64(),
        hook_timeout_s: care.hook_timeout.as_secs_f64(),
        keep_going: care.keep_going,
        link: None,
        backlog: 4096,
        load_threads: client_cpus.len().max(1) as u32,
        server_cpus,
        client_cpus,
        probes: names.collect(),
        ..Settings::default()
    })
}

/// The servers with their names, and the commands to run before and after their trials.
pub(super) fn take_part(
    flags: &Servers,
    kinds: &[Kind],
    care: &LifecycleFlags,
    settings: &Settings,
    (program, allow_remote): (&Path, bool),
) -> anyhow::Result<Vec<ServerInfo>> {
    let names = names(&flags.servers, &flags.names, kinds)?;
    let is_foreign = |kind: &&Kind| matches!(kind, Kind::Foreign(_));
    let foreign = kinds.iter().filter(is_foreign).count();
    let mut readies = each("ready", &care.ready, foreign)?.into_iter();
    let mut stop_signals = each("stop-signal", &care.stop_signal, foreign)?.into_iter();
    let mut named_by = care.running.named_by(kinds)?.into_iter();
    let hooks = |name: &str, given: &[String]| -> Result<Vec<Vec<String>>, Usage> {
        let pairs = each(name, given, kinds.len())?.into_iter().zip(kinds);
        pairs
            .map(|(text, kind)| hook(name, text, care.shell, kind))
            .collect()
    };
    let setup = hooks("setup", &care.setup)?;
    let cleanup = hooks("cleanup", &care.cleanup)?;
    let prepare = hooks("prepare", &care.prepare)?;
    let conclude = hooks("conclude", &care.conclude)?;
    let cwds = care.cwds(kinds.len())?;
    let logs = logs(&care.logs, kinds.len())?;
    let environment: BTreeMap<String, String> = care.env.iter().cloned().collect();
    let mut servers = Vec::new();
    for (place, kind) in kinds.iter().enumerate() {
        let (ready, stop_signal) = match kind {
            Kind::Foreign(_) => (
                readies.next().flatten().map(str::to_owned),
                stop_signals.next().flatten().map(str::to_owned),
            ),
            Kind::Own(..) | Kind::Running(_) => (None, None),
        };
        let wanted = ChosenServer {
            kind: kind.clone(),
            ready,
            stop_signal,
            named_by: match kind {
                Kind::Running(_) => named_by.next().flatten(),
                Kind::Own(..) | Kind::Foreign(_) => None,
            },
            allow_remote,
            info: ServerInfo {
                name: names[place].clone(),
                limits: care.limits.iter().cloned().collect(),
                environment: environment.clone(),
                cwd: cwds[place].clone(),
                setup: setup[place].clone(),
                cleanup: cleanup[place].clone(),
                prepare: prepare[place].clone(),
                conclude: conclude[place].clone(),
                logs: logs[place].clone(),
                ..ServerInfo::default()
            },
        };
        servers.push(wanted.info(settings, program)?);
    }
    running::give_paths(&mut servers, kinds);
    running::examine(&servers)?;
    Ok(servers)
}

/// A command to run before or after trials. No port is known before the first trial.
fn hook(name: &str, text: Option<&str>, shell: bool, kind: &Kind) -> Result<Vec<String>, Usage> {
    let Some(text) = text else {
        return Ok(Vec::new());
    };
    let is_once = ["setup", "cleanup"].contains(&name);
    let mut placeholders = vec!["{port}".to_owned(), "{address}".to_owned()];
    placeholders.extend((2..=MOST_PORTS).map(|number| format!("{{port{number}}}")));
    let found = placeholders.iter().find(|word| text.contains(*word));
    match found {
        Some(word) if is_once && kind.is_started() => Err(Usage(format!(
            "--{name} runs once, but each trial has its own port; leave out {word}, or use --prepare and --conclude"
        ))),
        _ => servers::command_line(text, shell),
    }
}

/// The log files of each server: a single server has all of them; otherwise each server has one.
fn logs(given: &[String], servers: usize) -> Result<Vec<Vec<String>>, Usage> {
    let whole = |path: &String| -> Result<String, Usage> {
        let path =
            std::path::absolute(path).map_err(|error| Usage(format!("--server-log: {error}")))?;
        as_text(path, "server-log")
    };
    let all = given.iter().map(whole).collect::<Result<Vec<_>, _>>()?;
    match servers {
        1 => Ok(vec![all]),
        _ if all.is_empty() => Ok(vec![Vec::new(); servers]),
        _ if all.len() == servers => Ok(all.into_iter().map(|path| vec![path]).collect()),
        _ => Err(Usage(format!(
            "--server-log is given {} times for {servers} servers; give it once per server",
            all.len()
        ))),
    }
}

/// An existing directory, as an absolute path.
fn directory(text: &str) -> Result<String, Usage> {
    servers::directory(text).map_err(|why| Usage(format!("--cwd: {why}")))
}

/// A path as it is stored in a record.
fn as_text(path: std::path::PathBuf, option: &str) -> Result<String, Usage> {
    let text = path.into_os_string().into_string();
    text.map_err(|wrong| {
        Usage(format!(
            "--{option}: the name of {} is not UTF-8",
            wrong.display()
        ))
    })
}

fn names(texts: &[String], given: &[String], kinds: &[Kind]) -> Result<Vec<String>, Usage> {
    if given.len() > kinds.len() {
        return Err(Usage(format!(
            "--name is given {} times for {}; give it at most once per server",
            given.len(),
            counted(kinds.len() as u32, "server")
        )));
    }
    for (place, name) in given.iter().enumerate() {
        if given[..place].contains(name) {
            return Err(Usage(format!(
                "--name {name} is given twice; names must differ"
            )));
        }
    }
    let pairs = texts.iter().zip(kinds);
    let mut names: Vec<String> = pairs
        .map(|(text, kind)| servers::short_name(text, kind))
        .collect();
    names[..given.len()].clone_from_slice(given);
    servers::make_unique(&mut names);
    Ok(names)
}

/// Checks a name for a server.
pub(super) fn name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("a name must not be empty".to_owned()),
        name if name.contains(':') => Err("a name must not contain a colon".to_owned()),
        name if name.chars().any(char::is_control) => {
            Err("a name must not contain control characters".to_owned())
        }
        name => Ok(name.to_owned()),
    }
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

/// Checks how to tell that a server is ready, and keeps it as written.
fn ready(text: &str) -> Result<String, String> {
    Ready::read(text).map(|_| text.to_owned())
}

/// Parses a resource limit for servers, like `nofile=300` or `as=64MiB`.
fn limit(text: &str) -> Result<(String, u64), String> {
    match text.split_once('=') {
        Some((name, value)) => server_limit(name, value),
        None => Err("expected NAME=N, like nofile=300".to_owned()),
    }
}

/// Parses a percentage below 100. Without `%`, a number below 1 is ambiguous.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let number = text.trim_end_matches('%').trim_end();
    match number.parse::<f64>() {
        Ok(percent) if number == text && percent > 0.0 && percent < 1.0 => {
            let of_fraction = (percent * 1e6).round() / 1e4;
            Err(format!(
                "{number} is ambiguous; write {number}% or {of_fraction}%"
            ))
        }
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent),
        _ => Err("expected a percentage from 0 to 100, like 5%".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_is_not_taken_for_a_percentage() {
        assert_eq!(percent("5"), Ok(5.0));
        assert_eq!(percent("0"), Ok(0.0));
        assert_eq!(percent("0.5 %"), Ok(0.5));
        let ambiguous = "0.05 is ambiguous; write 0.05% or 5%";
        assert_eq!(percent("0.05").unwrap_err(), ambiguous);
        for wrong in ["", "%", "100%", "-1", "NaN", "5%%x"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }
}
