//! The servers that are measured, as they are named, started and ended; for every subcommand that takes
//! anybody's.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::load_flags::{LoadFlags, default_protocol};
use super::running::RunningFlags;
use super::servers::{self, Kind, Wanted, each};
use super::{Usage, request, running, values};
use crate::measure::probes::ProbeKind;
use crate::measure::{MOST_PORTS, Ready, server_limit, stop_signal};
use crate::record::spec::LoadSpec;
use crate::record::{ServerInfo, Settings};

/// How servers are started and ended.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "How servers are started and ended")]
pub(super) struct Care {
    /// Limits to start servers under, by name: nofile (descriptors), nproc (threads and processes of the
    /// user; root is not held to it), as (address space, with a unit); several, separated by commas.
    #[arg(long = "server-limit", value_name = "NAME=N", value_delimiter = ',', value_parser = limit)]
    limits: Vec<(String, u64)>,
    /// Give command lines to `sh -c`, also those of --setup, --prepare and the like. Without it they are split
    /// into words as a shell does, and no shell is measured along with the server; `exec` before the
    /// last command of a line does the same.
    #[arg(long)]
    pub(super) shell: bool,
    /// A variable in the environment of servers and commands; several times for more.
    #[arg(long, value_name = "KEY=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// The directory in which servers and commands are started [default: this one]. Once for all servers, or
    /// once for each.
    #[arg(long, value_name = "DIR")]
    cwd: Vec<String>,
    /// What says that a server is ready: `tcp` (it accepts a connection), a URL that answers with 2xx or 3xx, like
    /// http://{address}/health, or a regular expression that a line of its output matches [default: tcp]. For https://
    /// the options for TLS go for it too. Once for all such servers, or once for each.
    #[arg(long, value_name = "URL|REGEX|tcp", value_parser = ready)]
    ready: Vec<String>,
    /// How long a server may take until it is ready.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::positive_duration)]
    ready_timeout: Duration,
    /// The signal that a server is asked to stop with [default: TERM]. Once for all such servers, or once for each.
    #[arg(long, value_name = "NAME", value_parser = stop_signal)]
    stop_signal: Vec<String>,
    /// How long a server may take to stop. Then it is killed; its figures are kept.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::positive_duration)]
    stop_timeout: Duration,
    /// A command to run once before all trials of a server. Once for all servers, or once for each, as the next three.
    #[arg(long, value_name = "COMMAND")]
    setup: Vec<String>,
    /// A command to run once after all trials of a server, also after failures and Ctrl-C.
    #[arg(long, value_name = "COMMAND")]
    cleanup: Vec<String>,
    /// A command to run before each trial, with PORT set.
    #[arg(long, value_name = "COMMAND")]
    pub(super) prepare: Vec<String>,
    /// A command to run after each trial.
    #[arg(long, value_name = "COMMAND")]
    pub(super) conclude: Vec<String>,
    /// How long each of these may take.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::positive_duration)]
    hook_timeout: Duration,
    /// Measure the other servers though one does not start, or does not answer properly, in its first trial.
    #[arg(long)]
    keep_going: bool,
    /// A log file in which a server says why it turns clients away. Of one server several times for more; of
    /// several servers once for each.
    #[arg(long = "server-log", value_name = "FILE")]
    logs: Vec<String>,
    #[command(flatten)]
    pub(super) running: RunningFlags,
}

impl Care {
    /// What each server is.
    pub(super) fn kinds(&self, texts: &[String]) -> Result<Vec<Kind>, Usage> {
        servers::kinds(texts, self.shell, &self.cwds(texts.len())?)
    }

    /// The directory in which each server is started.
    fn cwds(&self, servers: usize) -> Result<Vec<Option<String>>, Usage> {
        let each = each("cwd", &self.cwd, servers)?.into_iter();
        each.map(|cwd| cwd.map(directory).transpose()).collect()
    }

    /// Refuses what is for servers that throng starts, where it starts none.
    fn check(&self, kinds: &[Kind]) -> Result<(), Usage> {
        let given = [
            ("server-limit", !self.limits.is_empty()),
            ("ready", !self.ready.is_empty()),
            ("stop-signal", !self.stop_signal.is_empty()),
        ];
        let given = given.into_iter().find(|(_, is_given)| *is_given);
        match given {
            Some((name, _)) if !kinds.iter().any(Kind::is_started) => Err(Usage(format!(
                "--{name} is for servers that throng starts, and these run already; name a command line, or leave \
                 it out"
            ))),
            _ => Ok(()),
        }
    }
}

/// The settings in which all that starts servers agrees; `probes` are names as they were typed. What
/// is tried how often, and what is said in words, is not among them.
pub(super) fn settings(
    mut load: LoadSpec,
    flags: &LoadFlags,
    kinds: &[Kind],
    care: &Care,
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
            "{model} is one of throng's own servers, which cannot answer --{key}; name other servers, \
             or leave it out"
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
        loss_percent: None,
        backlog: 4096,
        load_threads: client_cpus.len().max(1) as u32,
        server_cpus,
        client_cpus,
        probes: names.collect(),
        ..Settings::default()
    })
}

/// The servers with their names, and what is done before and after their trials.
pub(super) fn take_part(
    texts: &[String],
    given_names: &[String],
    kinds: &[Kind],
    care: &Care,
    settings: &Settings,
    (program, allow_remote): (&Path, bool),
) -> anyhow::Result<Vec<ServerInfo>> {
    let names = names(texts, given_names, kinds)?;
    let is_foreign = |kind: &&Kind| matches!(kind, Kind::Foreign(_));
    let foreign = kinds.iter().filter(is_foreign).count();
    let mut readies = each("ready", &care.ready, foreign)?.into_iter();
    let mut stop_signals = each("stop-signal", &care.stop_signal, foreign)?.into_iter();
    let mut named_by = care.running.named_by(kinds)?.into_iter();
    let hooks = |name: &str, given: &[String]| -> Result<Vec<Vec<String>>, Usage> {
        let given = each(name, given, kinds.len())?.into_iter().zip(kinds);
        given
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
        let wanted = Wanted {
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
    running::look_at(&servers)?;
    Ok(servers)
}

/// A command line that is run beside a server. Once before all trials, no port is known yet.
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
            "--{name} runs once, and each trial has another port: leave {word} out, or use --prepare and --conclude"
        ))),
        _ => servers::command_line(text, shell),
    }
}

/// The log files of each server: all of them are those of one, or each has one.
fn logs(given: &[String], servers: usize) -> Result<Vec<Vec<String>>, Usage> {
    let whole = |path: &String| -> Result<String, Usage> {
        let path = std::path::absolute(path);
        let path = path.map_err(|error| Usage(format!("--server-log: {error}")))?;
        as_text(path, "server-log")
    };
    let all = given.iter().map(whole).collect::<Result<Vec<_>, _>>()?;
    match servers {
        1 => Ok(vec![all]),
        _ if all.is_empty() => Ok(vec![Vec::new(); servers]),
        _ if all.len() == servers => Ok(all.into_iter().map(|path| vec![path]).collect()),
        _ => Err(Usage(format!(
            "--server-log is given {} times for {servers} servers; give it once for each",
            all.len()
        ))),
    }
}

/// A directory that is there, from the root on.
fn directory(text: &str) -> Result<String, Usage> {
    servers::directory(text).map_err(|why| Usage(format!("--cwd: {why}")))
}

/// A path as a record can keep it.
fn as_text(path: std::path::PathBuf, option: &str) -> Result<String, Usage> {
    let text = path.into_os_string().into_string();
    text.map_err(|path| Usage(format!("--{option}: {} is not UTF-8 text", path.display())))
}

fn names(texts: &[String], given: &[String], kinds: &[Kind]) -> Result<Vec<String>, Usage> {
    if given.len() > kinds.len() {
        return Err(Usage(format!(
            "there are {} names for {} servers",
            given.len(),
            kinds.len()
        )));
    }
    for (place, name) in given.iter().enumerate() {
        if given[..place].contains(name) {
            return Err(Usage(format!("two servers cannot both be called `{name}`")));
        }
    }
    let texts = texts.iter().zip(kinds);
    let mut names: Vec<String> = texts
        .map(|(text, kind)| servers::short_name(text, kind))
        .collect();
    names[..given.len()].clone_from_slice(given);
    servers::make_unique(&mut names);
    Ok(names)
}

/// A name for a server.
pub(super) fn name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("a name has at least one character".to_owned()),
        name if name.contains(':') => Err("a name has no colon".to_owned()),
        name if name.chars().any(char::is_control) => Err("a name is one line of text".to_owned()),
        name => Ok(name.to_owned()),
    }
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is no variable; write KEY=VALUE")),
    }
}

/// A sign of being ready, kept as it was written.
fn ready(text: &str) -> Result<String, String> {
    Ready::read(text).map(|_| text.to_owned())
}

/// A limit to start servers under: `nofile=300`, `as=64MiB`.
fn limit(text: &str) -> Result<(String, u64), String> {
    match text.split_once('=') {
        Some((name, value)) => server_limit(name, value),
        None => Err(format!("`{text}` is not a limit; write NAME=N")),
    }
}

/// A share below 100 %, in percent.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    match number.parse::<f64>() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent),
        _ => Err(format!(
            "`{text}` is no share below 100 %; write it like 5%"
        )),
    }
}
