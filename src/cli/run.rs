//! `throng run`: a study from first trial to report.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::asking::Worded;
use super::conduct::{self, Said};
use super::load::calibrate::cheapest;
use super::shape::Shape;
use super::values::{self, CpuList, Percents};
use super::{Exit, Usage, servers};
use crate::load::Engine;
use crate::measure::{RunPlan, host, plan, probes};
use crate::protocol::PROTOCOLS;
use crate::record::{ServerInfo, Settings, Store, StudyInfo};
use crate::registry;
use crate::serve::models::MODELS;
use crate::study::{ServerSpec, Study};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  throng run
  throng run overview --clients 10,500,2000 --repeats 7 -o results
  throng run --models epoll,epoll-et,thread --duration 2s
  throng run --models epoll,thread --clients 100 --below 50,80
  throng run mine.toml --json
  throng run --models iterative,select,epoll --clients 8,64,1024 --each 1 --think 1s
  throng run --resume throng-results/20260101T120000Z-overview

The record and the report are in throng-results/TIME-STUDY, or where -o says. Ctrl-C keeps the
trials that are finished; --resume goes on from there.")]
pub(super) struct Arguments {
    /// A built-in study (`throng list studies`) or a TOML file.
    #[arg(default_value = "overview")]
    study: String,
    /// Where the record and the report go.
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Only these models, separated by commas.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    models: Option<Vec<String>>,
    /// What to say; `throng list protocols` says what there is.
    #[arg(long)]
    protocol: Option<String>,
    /// Numbers of clients, separated by commas.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = values::at_least_one)]
    clients: Option<Vec<u32>>,
    /// How often each server meets each crowd.
    #[arg(long, value_name = "N", value_parser = values::at_least_one)]
    repeats: Option<u32>,
    /// How long replies count in each trial.
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    duration: Option<Duration>,
    /// How long to load before, once every client had its first answer.
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    warm_up: Option<Duration>,
    /// Bytes in a request.
    #[arg(long, value_name = "BYTES", value_parser = values::request_size)]
    size: Option<usize>,
    /// Clients that may wait to be accepted.
    #[arg(long, value_name = "N", value_parser = values::at_least_one)]
    backlog: Option<u32>,
    /// CPUs for the servers [default: the first half].
    #[arg(long, value_name = "LIST", requires = "client_cpus")]
    server_cpus: Option<CpuList>,
    /// CPUs for the clients [default: the second half].
    #[arg(long, value_name = "LIST", requires = "server_cpus")]
    client_cpus: Option<CpuList>,
    /// The server that takes part a second time, as its own control, or `none` [default: `epoll`, or
    /// the first that no design limits].
    #[arg(long, value_name = "NAME")]
    control: Option<String>,
    /// After the timed rounds, take each server's response time at these parts of the rate that it
    /// reached, in percent, or `none` [default: as the study says]. An open loop with random arrivals
    /// and as many clients, once each.
    #[arg(long, value_name = "LIST")]
    below: Option<Percents>,
    /// Leave out the server that does least, which shows what the clients can reach.
    #[arg(long)]
    no_ceiling: bool,
    /// What measures, separated by commas: names (`throng list probes`), `default`, `all` or `none`.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    probes: Option<Vec<String>>,
    /// Go on with an unfinished run: its settings, its order, without the trials it has.
    #[arg(long, value_name = "DIR", conflicts_with_all = [
        "output", "models", "protocol", "clients", "repeats", "duration", "warm_up", "size", "backlog",
        "server_cpus", "client_cpus", "control", "below", "no_ceiling", "probes", "Shape",
    ])]
    resume: Option<PathBuf>,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    shape: Worded<Shape>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let (store, plan) = match &arguments.resume {
        Some(directory) => conduct::resume(directory)?,
        None => begin(arguments)?,
    };
    conduct::conduct(&plan, store, arguments.json)
}

/// A new run, resolved, with its directory made.
fn begin(arguments: &Arguments) -> anyhow::Result<(Store, RunPlan)> {
    let mut study = Study::find(&arguments.study)?;
    override_study(&mut study, arguments);
    study.check()?;
    let plan = resolve(&study, arguments)?;
    let directory = arguments.output.clone();
    let directory = directory.unwrap_or_else(|| conduct::default_directory(&study.name));
    Ok((conduct::create(&directory)?, plan))
}

fn override_study(study: &mut Study, arguments: &Arguments) {
    if let Some(models) = &arguments.models {
        study.servers = models.iter().map(|model| of_model(model)).collect();
    }
    if let Some(protocol) = &arguments.protocol {
        study.protocol.clone_from(protocol);
    }
    if let Some(clients) = &arguments.clients {
        study.clients.clone_from(clients);
    }
    study.clients.sort_unstable();
    study.clients.dedup();
    study.repeats = arguments.repeats.unwrap_or(study.repeats);
    study.duration = arguments.duration.unwrap_or(study.duration);
    study.warm_up = arguments.warm_up.unwrap_or(study.warm_up);
    study.size = arguments.size.unwrap_or(study.size);
    study.backlog = arguments.backlog.unwrap_or(study.backlog);
    if let Some(Percents(below)) = &arguments.below {
        study.below.clone_from(below);
    }
    study.below.sort_unstable();
    study.below.dedup();
    if let Some(probes) = &arguments.probes {
        study.probes.clone_from(probes);
    }
}

/// Turns a study into what is run here; refuses what this machine cannot do.
fn resolve(study: &Study, arguments: &Arguments) -> anyhow::Result<RunPlan> {
    let protocol = registry::find("protocol", PROTOCOLS, &study.protocol)?;
    let (server_cpus, client_cpus) = match (&arguments.server_cpus, &arguments.client_cpus) {
        (Some(CpuList(server)), Some(CpuList(client))) => (server.clone(), client.clone()),
        _ => plan::divide_cpus(&host::usable_cpus()),
    };
    let program = conduct::program()?;
    let probes = probes::choose(&study.probes)?;
    let mut settings = Settings {
        protocol: study.protocol.clone(),
        dialogue: String::new(),
        load_options: load_options(study, arguments),
        size_bytes: protocol.size(study.size) as u64,
        clients: study.clients.clone(),
        repeats: study.repeats,
        duration_s: study.duration.as_secs_f64(),
        warm_up_s: study.warm_up.as_secs_f64(),
        start_timeout_s: study.start_timeout.as_secs_f64(),
        hook_timeout_s: servers::HOOK_TIMEOUT.as_secs_f64(),
        connect_timeout_s: study.connect_timeout.as_secs_f64(),
        patience_s: study.patience.as_secs_f64(),
        backlog: study.backlog,
        load_threads: client_cpus.len().max(1) as u32,
        server_cpus,
        client_cpus,
        below_percent: study.below.clone(),
        probes: probes
            .iter()
            .map(|kind| kind.info().name.to_owned())
            .collect(),
        control: None,
    };
    let said = Said::of(&settings)?;
    said.fit(
        &mut settings,
        arguments.duration.is_some() || arguments.warm_up.is_some(),
    )?;
    let servers = servers(study, &settings, &program)?;
    let called = |name: &str| servers.iter().position(|server| server.name == name);
    let usual = called("epoll").or_else(|| {
        let unlimited = |server: &ServerInfo| server.structural_limit.is_none();
        servers.iter().position(unlimited)
    });
    let control = servers::control(&servers, arguments.control.as_deref(), usual)?;
    settings.control = control.map(|index| servers[index].name.clone());
    let null_server = (!arguments.no_ceiling)
        .then(|| server(&of_model(cheapest(Engine::Epoll)), &settings, &program))
        .transpose()?;
    let seed = arguments.shape.value.seed();
    Ok(RunPlan {
        study: StudyInfo {
            name: study.name.clone(),
            question: study.question.clone(),
        },
        dialogue: said.dialogue,
        asking: said.asking,
        coming: said.coming,
        jobs: said.jobs,
        comparison: None,
        limit: None,
        servers,
        control,
        null_server,
        probes,
        program,
        seed: seed.unwrap_or_else(|| fastrand::u64(..1 << 32)),
        arguments: std::env::args().collect(),
        host: host::look(),
        settings,
        done: Vec::new(),
    })
}

/// What a load is told; nothing where protocol and size say all.
fn load_options(study: &Study, arguments: &Arguments) -> Vec<String> {
    let shape = &arguments.shape.words;
    if shape.is_empty() {
        return Vec::new();
    }
    let said = [
        format!("--protocol={}", study.protocol),
        format!("--size={}", study.size),
    ];
    said.into_iter().chain(shape.iter().cloned()).collect()
}

/// The servers that take part: those named, or every model that this machine supports.
fn servers(study: &Study, settings: &Settings, program: &Path) -> anyhow::Result<Vec<ServerInfo>> {
    let all: Vec<ServerSpec> = MODELS
        .iter()
        .filter(|model| model.supported().is_ok())
        .map(|model| of_model(model.info().name))
        .collect();
    let named = if study.servers.is_empty() {
        &all
    } else {
        &study.servers
    };
    let mut servers: Vec<ServerInfo> = Vec::new();
    for spec in named {
        let server = server(spec, settings, program)?;
        if servers.iter().any(|other| other.name == server.name) {
            let message = format!(
                "two servers are called `{}`; give one a `name`",
                server.name
            );
            return Err(Usage(message).into());
        }
        servers.push(server);
    }
    Ok(servers)
}

/// A model as it is.
fn of_model(name: &str) -> ServerSpec {
    ServerSpec {
        model: name.to_owned(),
        name: None,
        workers: None,
        fd_setsize: None,
    }
}

fn server(spec: &ServerSpec, settings: &Settings, program: &Path) -> anyhow::Result<ServerInfo> {
    let mut options = Vec::new();
    let mut option = |name: &str, value: Option<u32>| {
        options.extend(value.map(|value| format!("--{name}={value}")));
    };
    option("workers", spec.workers);
    option("fd-setsize", spec.fd_setsize);
    let mut server = servers::own(&spec.model, &options, settings, program)?;
    if let Some(name) = &spec.name {
        server.name.clone_from(name);
    }
    Ok(server)
}
