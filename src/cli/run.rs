//! `throng run`: runs a study, from the first trial to the report.

use std::time::Duration;

use super::measuring::{MeasureFlags, PriceFlag};
use super::request::check_size;
use super::study::resolve::{Common, resolve};
use super::thresholds::Thresholds;
use super::traffic::TrafficFlags;
use super::values::{self, Percents};
use super::{Exit, Usage, runner, study};
use crate::measure::cluster::Origin;
use crate::measure::probes;
use crate::record::Scaled;
use crate::registry;
use crate::serve::models::MODELS;
use crate::spec::{LoadSpec, Sizes};
use crate::study::{Part, Scale, Study};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  throng run
  throng run overview --clients 10,500,2000 --runs 7 -o results
  throng run --models epoll,epoll-et,thread --duration 2s
  throng run --models epoll,thread --clients 100 --latency-at 50,80
  throng run fairness --scale quick
  throng run --models iterative,select,epoll --clients 8,64,1024 --each 1 --think 1s
  throng run mine.toml --part small,large --json
  throng run --resume throng-results/20260101T120000Z-overview

The record and the report are written to throng-results/TIME-STUDY, or to --output. Each part of a study \
has its own directory there. Options that change servers, clients or times apply to all parts; what a study sets \
comes before their defaults. Ctrl-C keeps the finished trials; --resume continues.")]
pub(super) struct Arguments {
    /// A built-in study (`throng list studies`) or a TOML file.
    #[arg(default_value = "overview")]
    study: String,
    /// Run only these parts of the study.
    #[arg(long = "part", value_name = "LIST", value_delimiter = ',')]
    parts: Option<Vec<String>>,
    /// Scale the study: quick, full or a factor like 0.1.
    ///
    /// `quick` takes less than a minute; `full` is for publication. Published figures are compared unless the study is
    /// scaled down.
    #[arg(long, value_name = "SCALE")]
    scale: Option<Scale>,
    /// Run only these models [default: the study's].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    models: Option<Vec<String>>,
    /// Protocol (`throng list protocols`) [default: the study's].
    #[arg(long)]
    protocol: Option<String>,
    /// Concurrent clients, or a list like 10,100 [default: the study's].
    #[arg(short, long, visible_aliases = ["connections", "concurrency"], alias = "vus", value_name = "LIST", value_delimiter = ',',
          value_parser = values::at_least_one)]
    clients: Option<Vec<u32>>,
    /// Timed trials of each server under each load [default: the study's].
    #[arg(short, long, value_name = "N", value_parser = values::at_least_one)]
    runs: Option<u32>,
    /// Trials per server and load that count events and capture packets, after the timed trials
    /// [default: the study's].
    #[arg(long, value_name = "N", value_parser = values::at_least_one)]
    profiled_runs: Option<u32>,
    /// Bytes per request, like 1000, 64KiB or 10MB [default: the study's].
    #[arg(long, value_name = "BYTES", value_parser = values::request_size)]
    size: Option<usize>,
    /// listen() backlog [default: the study's].
    #[arg(long, value_name = "N", value_parser = values::at_least_one)]
    backlog: Option<u32>,
    /// Server to run twice as a control, or `none` [default: epoll, or the first that serves all clients].
    #[arg(long, value_name = "NAME")]
    control: Option<String>,
    /// Also measure response time at these percentages of each server's highest rate, in an open loop, or `none`
    /// [default: the study's].
    #[arg(long, value_name = "PERCENT,...")]
    latency_at: Option<Percents>,
    /// Longest warm-up, until the rate is steady. A server that is not steady by then is not ranked
    /// [default: 5s, or the study's].
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    warm_up_limit: Option<Duration>,
    /// Leave out the minimal server, which shows the most that the clients can reach.
    #[arg(long)]
    no_ceiling: bool,
    #[command(flatten)]
    thresholds: Thresholds,
    #[command(flatten)]
    price: PriceFlag,
    #[command(flatten)]
    measuring: MeasureFlags,
    #[command(flatten)]
    traffic: TrafficFlags,
}

pub(super) fn run(arguments: &Arguments, origin: &mut Origin) -> anyhow::Result<Exit> {
    let resumed = arguments.measuring.resumed(origin);
    resumed.unwrap_or_else(|| begin(arguments, origin))
}

/// Starts a new run, after resolving it and its directory.
fn begin(arguments: &Arguments, origin: &mut Origin) -> anyhow::Result<Exit> {
    let mut study = Study::find(&arguments.study)?;
    if let Some(names) = &arguments.parts {
        if study.flat {
            return Err(Usage(format!(
                "--part: the study {} has a single part; leave it out",
                study.name
            ))
            .into());
        }
        study.keep_parts(names)?;
    }
    let says_load = || {
        let mut load = LoadSpec::default();
        arguments.traffic.apply(&mut load);
        arguments.clients.is_some() || load != LoadSpec::default()
    };
    if arguments.parts.is_none() && says_load() {
        study.for_custom_load();
    }
    if arguments.scale == Some(Scale::Full) {
        study = study.scaled(Scale::Full);
    }
    let written = study.clone();
    let scale = arguments.scale.filter(|scale| *scale != Scale::Full);
    if let Some(scale) = scale {
        study = study.scaled(scale);
    }
    let flat = study.flat;
    for (part, as_written) in study.parts.iter_mut().zip(&written.parts) {
        override_part(part, arguments, flat)?;
        part.note_changes(as_written);
    }
    let scaled = scale.map(|scale| Scaled {
        by: scale.to_string(),
        whole: ["throng", "run", &arguments.study]
            .map(str::to_owned)
            .to_vec(),
        whole_takes_s: written.about(Duration::ZERO).as_secs(),
    });
    let seed = arguments.traffic.seed();
    let measuring = &arguments.measuring;
    let (cpus, timed) = (measuring.cpus(true), measuring.says_times());
    let mut common = Common::new(cpus, arguments.control.clone(), seed, timed)?;
    common.names_cpus = measuring.names_cpus();
    common.server_address = measuring.lab.server_address(origin, false)?;
    common.client_hosts = origin.hosts().to_vec();
    common.retries = measuring.retries;
    common.price = arguments.price.price;
    common.fail_if.clone_from(&arguments.thresholds.fail_if);
    let mut parts = study
        .parts
        .iter()
        .map(|part| resolve(&study, part, &common))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let plans = parts.iter().filter_map(|part| part.plan.as_ref().ok());
    let servers = plans.flat_map(|plan| &plan.servers);
    let names: Vec<&str> = servers.map(|server| server.name.as_str()).collect();
    arguments.thresholds.check(&names, &[])?;
    if !flat {
        study::check(&study, &parts)?;
    }
    let directory = measuring.directory(&study.name)?;
    measuring.exporting(&directory, |accepted| {
        if !flat {
            return study::run(&study, scaled, parts, origin, &directory, accepted);
        }
        let plan = parts.remove(0).plan?;
        let accepted = accepted.accept_rough(scaled.is_some());
        runner::runner(&plan, origin, runner::create(&directory)?, accepted)
    })
}

/// Applies the command line to a part of the study.
fn override_part(part: &mut Part, arguments: &Arguments, flat: bool) -> anyhow::Result<()> {
    if part.is_search() {
        not_of_a_search(part, arguments)?;
    }
    if let Some(models) = &arguments.models {
        choose(part, models, flat)?;
    }
    let (load, measuring) = (&mut part.load, &arguments.measuring);
    arguments.traffic.apply(load);
    load.protocol = arguments.protocol.clone().or(load.protocol.take());
    if let Some(size) = arguments.size {
        load.size = Sizes::one(size);
        check_size(load)?;
    }
    load.duration = measuring.duration.or(load.duration);
    load.warm_up = measuring.warm_up.unwrap_or(load.warm_up);
    load.warm_up_limit = arguments.warm_up_limit.or(load.warm_up_limit);
    if let Some(clients) = &arguments.clients {
        part.clients.clone_from(clients);
        part.clients.sort_unstable();
        part.clients.dedup();
    }
    // A number of trials or their duration implies that there are trials, not slices.
    let wants_trials = arguments.runs.is_some() || measuring.says_times();
    part.slices = part.slices.filter(|_| !wants_trials);
    part.runs = arguments.runs.unwrap_or(part.runs);
    part.profiled_runs = arguments.profiled_runs.unwrap_or(part.profiled_runs);
    part.backlog = arguments.backlog.unwrap_or(part.backlog);
    if let Some(Percents(latency_at)) = &arguments.latency_at {
        part.latency_at.clone_from(latency_at);
    }
    part.ceiling &= !arguments.no_ceiling;
    if let Some(probes) = &arguments.measuring.probes {
        probes::choose(probes)?;
        part.set_probes(probes);
    }
    Ok(())
}

/// Rejects options whose values a search varies itself.
fn not_of_a_search(part: &Part, arguments: &Arguments) -> Result<(), Usage> {
    let given = [
        ("--clients", arguments.clients.is_some()),
        ("--runs", arguments.runs.is_some()),
        ("--profiled-runs", arguments.profiled_runs.is_some()),
        ("--latency-at", arguments.latency_at.is_some()),
        ("--control", arguments.control.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(Usage(format!(
            "{option} cannot be used with part `{}`, which searches for a limit; choose other parts with --part",
            part.name()
        ))),
        None => Ok(()),
    }
}

/// Keeps only these models. If the study has several parts, each keeps those of the models that it has.
fn choose(part: &mut Part, models: &[String], flat: bool) -> anyhow::Result<()> {
    for model in models {
        let is_server = part.servers.iter().any(|server| server.info.name == *model);
        if !is_server {
            registry::find("model", MODELS, model)?;
        }
    }
    if flat || part.servers.is_empty() {
        part.servers = models.iter().map(|model| part.server_of(model)).collect();
    } else {
        part.servers
            .retain(|server| models.iter().any(|model| server.is(model)));
    }
    let twice = |place: usize| {
        part.servers[..place]
            .iter()
            .any(|s| s.info.name == part.servers[place].info.name)
    };
    if let Some(place) = (0..part.servers.len()).find(|place| twice(*place)) {
        let name = &part.servers[place].info.name;
        return Err(Usage(format!("--models names `{name}` twice")).into());
    }
    if part.servers.is_empty() {
        let (part, models) = (part.name(), models.join(", "));
        return Err(Usage(format!(
            "part `{part}` has no server of --models {models}; choose other parts with --part"
        ))
        .into());
    }
    Ok(())
}
