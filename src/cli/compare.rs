//! `throng compare A B`: the same load on several servers, and which of them is better.

mod baseline;
mod help;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::asking::{Asking, Worded};
use super::conduct::{self, Said};
use super::load::calibrate::cheapest;
use super::servers::{self, Kind, Wanted};
use super::values::{self, CpuList, Percents};
use super::{Exit, Usage};
use crate::load::Engine;
use crate::measure::{RunPlan, host, plan, probes};
use crate::protocol::{PROTOCOLS, Pattern};
use crate::record::{Comparison, ServerInfo, Settings, StudyInfo};
use crate::registry;
use crate::report::comparison::Condition;
use crate::report::format::list;
use baseline::Baseline;

#[derive(Debug, clap::Args)]
#[command(after_help = help::text())]
pub(super) struct Arguments {
    /// Models, models with options, or command lines; each in quotes if it has spaces.
    #[arg(value_name = "SERVER", required_unless_present = "resume")]
    servers: Vec<String>,
    /// What to call a server; the first name is for the first server, and so on.
    #[arg(short, long = "name", value_name = "NAME", value_parser = name)]
    names: Vec<String>,
    /// The server that others are compared with [default: the first].
    #[arg(long, value_name = "NAME")]
    reference: Option<String>,
    /// How often each server meets each crowd.
    #[arg(short, long, visible_alias = "repeats", value_name = "N", default_value = "10",
          value_parser = values::at_least_one)]
    runs: u32,
    /// Numbers of clients, separated by commas.
    #[arg(short, long, value_name = "LIST", value_delimiter = ',', default_value = "50",
          value_parser = values::at_least_one)]
    clients: Vec<u32>,
    /// How long replies count in each trial [default: 1s].
    #[arg(short, long, value_name = "TIME", value_parser = values::positive_duration)]
    duration: Option<Duration>,
    /// How long to load before, once every client had its first answer [default: 300ms].
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    warm_up: Option<Duration>,
    /// The server that takes part a second time, as its own control, or `none` [default: the
    /// reference]. By how much the two differ is noise, and no smaller difference is called one.
    #[arg(long, value_name = "NAME")]
    control: Option<String>,
    /// After the timed rounds, take each server's response time at these parts of the rate that it
    /// reached, in percent: an open loop with random arrivals, once each. Not by default: verdicts rest
    /// on several trials.
    #[arg(long, value_name = "LIST", default_value = "none")]
    below: Percents,
    /// Have a server that does least take part too, to see what the clients can reach.
    #[arg(long)]
    ceiling: bool,
    /// CPUs for the servers [default: the first half].
    #[arg(long, value_name = "LIST", requires = "client_cpus")]
    server_cpus: Option<CpuList>,
    /// CPUs for the clients [default: the second half].
    #[arg(long, value_name = "LIST", requires = "server_cpus")]
    client_cpus: Option<CpuList>,
    /// What measures, separated by commas: names (`throng list probes`), `default`, `all` or `none`.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "default"
    )]
    probes: Vec<String>,
    /// Where the record and the report go [default: throng-results/TIME-compare].
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Go on with an unfinished run: its servers, settings and order, without the trials it has.
    #[arg(long, value_name = "DIR", exclusive = true)]
    resume: Option<PathBuf>,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    care: Care,
    #[command(flatten)]
    demands: Demands,
    #[command(flatten)]
    asking: Worded<Asking>,
}

/// How servers are started and ended.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "How servers are started and ended")]
struct Care {
    /// Give command lines to `sh -c`, also those of --prepare and --conclude. Without it they are split
    /// into words as a shell does, and no shell is measured along with the server; `exec` before the
    /// last command of a line does the same.
    #[arg(long)]
    shell: bool,
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
    prepare: Vec<String>,
    /// A command to run after each trial.
    #[arg(long, value_name = "COMMAND")]
    conclude: Vec<String>,
    /// How long each of these may take.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::positive_duration)]
    hook_timeout: Duration,
}

/// What is demanded of the servers.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Thresholds")]
struct Demands {
    /// Exit with 3 if this is so of a server, like `p99 > 10ms`; several times for more.
    #[arg(long, value_name = "[NAME:]CONDITION", value_parser = condition)]
    fail_if: Vec<String>,
    /// Exit with 3 if a server is slower by more than this than the reference, or than its like in the
    /// baseline: if the whole interval of the ratio of replies a second lies below 1 less this. Where the
    /// clients were the limit, replies for a second of server CPU are taken instead.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    fail_if_slower: Option<f64>,
    /// A record of an earlier run, with whose servers those of the same name are compared too. It must
    /// have had the same settings.
    #[arg(long, value_name = "DIR")]
    baseline: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    if let Some(directory) = &arguments.resume {
        let (store, plan) = conduct::resume(directory)?;
        return conduct::conduct(&plan, store, arguments.json);
    }
    let plan = resolve(arguments)?;
    let baseline = arguments.demands.baseline.as_deref();
    let baseline = baseline
        .map(|from| Baseline::read(from, &plan))
        .transpose()?;
    let directory = arguments.output.clone();
    let directory = directory.unwrap_or_else(|| conduct::default_directory("compare"));
    let store = conduct::create(&directory)?;
    if let Some(baseline) = baseline {
        baseline.copy_into(&store)?;
    }
    conduct::conduct(&plan, store, arguments.json)
}

/// How long replies count where nobody says, and how long to load before.
const DURATION: Duration = Duration::from_secs(1);
const WARM_UP: Duration = Duration::from_millis(300);

/// Turns the command line into what is run; refuses what cannot be.
fn resolve(arguments: &Arguments) -> anyhow::Result<RunPlan> {
    let kinds = arguments
        .servers
        .iter()
        .map(|text| servers::kind(text, arguments.care.shell))
        .collect::<Result<Vec<_>, _>>()?;
    let mut settings = settings(arguments, &kinds)?;
    let said = Said::of(&settings)?;
    said.fit(
        &mut settings,
        arguments.duration.is_some() || arguments.warm_up.is_some(),
    )?;
    let program = conduct::program()?;
    let servers = take_part(arguments, &kinds, &settings, &program)?;
    let comparison = comparison(arguments, &servers)?;
    let compared = servers.len() > 1 || comparison.baseline.is_some();
    let of_reference = |server: &ServerInfo| compared && server.name == comparison.reference;
    let usual = servers.iter().position(of_reference);
    let control = servers::control(&servers, arguments.control.as_deref(), usual)?;
    let settings = Settings {
        control: control.map(|place| servers[place].name.clone()),
        ..settings
    };
    let null_server = null_server(arguments, &settings, &program)?;
    let seed = arguments.asking.value.shape.seed();
    Ok(RunPlan {
        study: StudyInfo {
            name: "compare".to_owned(),
            question: question(&servers, &comparison),
        },
        dialogue: said.dialogue,
        asking: said.asking,
        coming: said.coming,
        jobs: said.jobs,
        comparison: Some(comparison),
        servers,
        control,
        null_server,
        probes: probes::choose(&arguments.probes)?,
        program,
        seed: seed.unwrap_or_else(|| fastrand::u64(..1 << 32)),
        arguments: std::env::args().collect(),
        host: host::look(),
        settings,
        done: Vec::new(),
    })
}

/// The settings, without what is said in words.
fn settings(arguments: &Arguments, kinds: &[Kind]) -> anyhow::Result<Settings> {
    let (speech, mut load_options) = (
        &arguments.asking.value.speech,
        arguments.asking.words.clone(),
    );
    let all_ours = kinds.iter().all(|kind| matches!(kind, Kind::Own(..)));
    let (protocol, size) = if speech.is_custom() {
        if let Some(Kind::Own(model, _)) = kinds.iter().find(|kind| matches!(kind, Kind::Own(..))) {
            return Err(Usage(format!(
                "{model} is one of throng's own servers, which cannot answer --send; name other servers, \
                 or a --protocol"
            ))
            .into());
        }
        ("custom".to_owned(), 1)
    } else {
        // Who brings a server of their own most likely has a web server.
        let name = speech
            .named_protocol()
            .unwrap_or(if all_ours { "echo" } else { "http" });
        let protocol = registry::find("protocol", PROTOCOLS, name)?;
        if speech.named_protocol().is_none() {
            load_options.insert(0, format!("--protocol={name}"));
        }
        (name.to_owned(), protocol.size(speech.largest()))
    };
    let (server_cpus, client_cpus) = match (&arguments.server_cpus, &arguments.client_cpus) {
        (Some(CpuList(server)), Some(CpuList(client))) => (server.clone(), client.clone()),
        _ => plan::divide_cpus(&host::usable_cpus()),
    };
    let mut clients = arguments.clients.clone();
    clients.sort_unstable();
    clients.dedup();
    let probes = probes::choose(&arguments.probes)?;
    let seconds = |time: Duration| time.as_secs_f64();
    Ok(Settings {
        protocol,
        dialogue: String::new(),
        load_options,
        size_bytes: size as u64,
        clients,
        repeats: arguments.runs,
        duration_s: seconds(arguments.duration.unwrap_or(DURATION)),
        warm_up_s: seconds(arguments.warm_up.unwrap_or(WARM_UP)),
        start_timeout_s: seconds(arguments.care.start_timeout),
        hook_timeout_s: seconds(arguments.care.hook_timeout),
        connect_timeout_s: 10.0,
        patience_s: 3.0,
        backlog: 4096,
        load_threads: client_cpus.len().max(1) as u32,
        server_cpus,
        client_cpus,
        below_percent: arguments.below.0.clone(),
        probes: probes
            .iter()
            .map(|kind| kind.info().name.to_owned())
            .collect(),
        control: None,
    })
}

/// The server that does least, if it is to take part.
fn null_server(
    arguments: &Arguments,
    settings: &Settings,
    program: &Path,
) -> anyhow::Result<Option<ServerInfo>> {
    if !arguments.ceiling {
        return Ok(None);
    }
    if arguments.asking.value.speech.is_custom() {
        let what = "--ceiling needs a protocol that throng serves too, not --send";
        return Err(Usage(what.to_owned()).into());
    }
    servers::own(cheapest(Engine::Epoll), &[], settings, program).map(Some)
}

/// The servers with their names, and what is done before and after their trials.
fn take_part(
    arguments: &Arguments,
    kinds: &[Kind],
    settings: &Settings,
    program: &Path,
) -> anyhow::Result<Vec<ServerInfo>> {
    let care = &arguments.care;
    let names = names(arguments, kinds)?;
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

fn names(arguments: &Arguments, kinds: &[Kind]) -> Result<Vec<String>, Usage> {
    let given = &arguments.names;
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
    let texts = arguments.servers.iter().zip(kinds);
    let mut names: Vec<String> = texts
        .map(|(text, kind)| servers::short_name(text, kind))
        .collect();
    names[..given.len()].clone_from_slice(given);
    servers::make_unique(&mut names);
    Ok(names)
}

/// What is compared with what; refuses what there is not.
fn comparison(arguments: &Arguments, servers: &[ServerInfo]) -> Result<Comparison, Usage> {
    let demands = &arguments.demands;
    if servers.len() < 2 && demands.baseline.is_none() && demands.fail_if.is_empty() {
        let name = &servers[0].name;
        return Err(Usage(format!(
            "{name} is alone; name another server, or a --baseline, or what to --fail-if"
        )));
    }
    if servers.len() < 2 && demands.fail_if_slower.is_some() && demands.baseline.is_none() {
        let what = "--fail-if-slower needs another server, or a --baseline";
        return Err(Usage(what.to_owned()));
    }
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    let must_be_there = |name: &str, place: &str| {
        if names.contains(&name) {
            return Ok(());
        }
        let there = names.join(", ");
        Err(Usage(format!(
            "{place}: there is no server `{name}`; there are: {there}"
        )))
    };
    let reference = arguments
        .reference
        .clone()
        .unwrap_or_else(|| names[0].to_owned());
    must_be_there(&reference, "--reference")?;
    for text in &demands.fail_if {
        let condition = Condition::parse(text).map_err(Usage)?;
        if let Some(server) = &condition.server {
            must_be_there(server, "--fail-if")?;
        }
    }
    Ok(Comparison {
        reference,
        fail_if: demands.fail_if.clone(),
        slower_percent: demands.fail_if_slower,
        baseline: demands
            .baseline
            .as_ref()
            .map(|path| path.display().to_string()),
    })
}

fn question(servers: &[ServerInfo], comparison: &Comparison) -> String {
    let others: Vec<&str> = servers
        .iter()
        .map(|server| server.name.as_str())
        .filter(|name| *name != comparison.reference)
        .collect();
    let reference = &comparison.reference;
    if others.is_empty() {
        return match &comparison.baseline {
            Some(_) => format!("How does {reference} differ from what it was?"),
            None => format!("Does {reference} meet what is demanded of it?"),
        };
    }
    let (verb, others) = (if others.len() == 1 { "does" } else { "do" }, list(&others));
    format!("How {verb} {others} differ from {reference} under the same load?")
}

fn name(text: &str) -> Result<String, String> {
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

/// A condition, kept as it was written.
fn condition(text: &str) -> Result<String, String> {
    Condition::parse(text).map(|_| text.to_owned())
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    match number.parse::<f64>() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent),
        _ => Err(format!(
            "`{text}` is no share below 100 %; write it like 5%"
        )),
    }
}
