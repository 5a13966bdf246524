//! The servers that are measured, as they are named, started and ended; for every subcommand that takes
//! anybody's.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::Usage;
use super::load_flags::{LoadFlags, default_protocol};
use super::servers::{self, Kind, Wanted};
use super::values;
use crate::measure::LIMITS;
use crate::measure::probes::ProbeKind;
use crate::protocol::Pattern;
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
    /// Give command lines to `sh -c`, also those of --prepare and --conclude. Without it they are split
    /// into words as a shell does, and no shell is measured along with the server; `exec` before the
    /// last command of a line does the same.
    #[arg(long)]
    pub(super) shell: bool,
    /// A variable in the environment of servers and commands; several times for more.
    #[arg(long, value_name = "KEY=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// What a line of the server's output matches once it is ready [default: it is ready when it accepts
    /// a connection]. Once for all such servers, or once for each.
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    ready: Vec<String>,
    /// How long a server may take until it is ready.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::positive_duration)]
    start_timeout: Duration,
    /// A command to run before each trial, with PORT set. Once for all servers, or once for each.
    #[arg(long, value_name = "COMMAND")]
    pub(super) prepare: Vec<String>,
    /// A command to run after each trial.
    #[arg(long, value_name = "COMMAND")]
    pub(super) conclude: Vec<String>,
    /// How long each of these may take.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::positive_duration)]
    hook_timeout: Duration,
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
    flags.apply(&mut load)?;
    let ours = kinds.iter().find(|kind| matches!(kind, Kind::Own(..)));
    if let (Some(Kind::Own(model, _)), true) = (ours, load.send.is_some()) {
        return Err(Usage(format!(
            "{model} is one of throng's own servers, which cannot answer --send; name other servers, \
             or a --protocol"
        )));
    }
    let all_ours = kinds.iter().all(|kind| matches!(kind, Kind::Own(..)));
    default_protocol(&mut load, all_ours);
    let names = probes.iter().map(|kind| kind.info.name.to_owned());
    Ok(Settings {
        load: load.checked()?,
        profiled_runs: 1,
        start_timeout_s: care.start_timeout.as_secs_f64(),
        hook_timeout_s: care.hook_timeout.as_secs_f64(),
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
    program: &Path,
) -> anyhow::Result<Vec<ServerInfo>> {
    let names = names(texts, given_names, kinds)?;
    let foreign = kinds.iter().filter(|kind| matches!(kind, Kind::Foreign(_)));
    let mut readies = each("ready", &care.ready, foreign.count())?.into_iter();
    let prepare = each("prepare", &care.prepare, kinds.len())?;
    let conclude = each("conclude", &care.conclude, kinds.len())?;
    let environment: BTreeMap<String, String> = care.env.iter().cloned().collect();
    let hook = |text: Option<&str>| -> anyhow::Result<Vec<String>> {
        let words = text
            .map(|text| servers::command_line(text, care.shell))
            .transpose()?;
        Ok(words.unwrap_or_default())
    };
    let mut servers = Vec::new();
    for (place, kind) in kinds.iter().enumerate() {
        let ready = match kind {
            Kind::Own(..) => None,
            Kind::Foreign(_) => readies.next().flatten().map(str::to_owned),
        };
        let wanted = Wanted {
            name: names[place].clone(),
            kind: kind.clone(),
            ready,
            limits: care.limits.iter().cloned().collect(),
            environment: environment.clone(),
            prepare: hook(prepare[place])?,
            conclude: hook(conclude[place])?,
        };
        servers.push(wanted.info(settings, program)?);
    }
    Ok(servers)
}

/// An option that is given once for all servers, or once for each.
fn each<'a>(
    name: &str,
    given: &'a [String],
    servers: usize,
) -> Result<Vec<Option<&'a str>>, Usage> {
    match given {
        [] => Ok(vec![None; servers]),
        [one] => Ok(vec![Some(one.as_str()); servers]),
        several if several.len() == servers => {
            Ok(several.iter().map(|one| Some(one.as_str())).collect())
        }
        several => Err(Usage(format!(
            "--{name} is given {} times for {servers} servers; give it once for all, or once for each",
            several.len()
        ))),
    }
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

/// A regular expression, kept as it was written.
fn pattern(text: &str) -> Result<String, String> {
    Pattern::new(text).map(|_| text.to_owned())
}

/// A limit to start servers under: `nofile=300`, `as=64MiB`.
fn limit(text: &str) -> Result<(String, u64), String> {
    let known = || LIMITS.map(|(name, _)| name).join(", ");
    let wrong = || format!("`{text}` is no limit; write NAME=N, of: {}", known());
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    let (name, _) = LIMITS
        .into_iter()
        .find(|(known, _)| *known == name)
        .ok_or_else(wrong)?;
    Ok((name.to_owned(), values::bytes(value)?))
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
