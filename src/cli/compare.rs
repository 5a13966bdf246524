//! `throng compare A B`: the same load on several servers, and their differences.

mod baseline;
mod help;

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::load::calibrate::cheapest;
use super::load_flags::LoadFlags;
use super::measuring::{MeasureFlags, PriceFlag};
use super::output;
use super::runner;
use super::running;
use super::servers::{self, Kind};
use super::servers_under_test::{self, LifecycleFlags, Servers};
use super::thresholds::Thresholds;
use super::values::{self, Percents};
use super::{Exit, Usage};
use crate::load::Engine;
use crate::measure::cluster::Origin;
use crate::measure::{RunSpec, probes};
use crate::record::format::list;
use crate::record::{Comparison, HALF_WIDTH, Method, ServerInfo, Settings, StudyInfo, Why};
use crate::spec::Until;
use baseline::Baseline;

pub(super) use help::about;

#[derive(Debug, clap::Args)]
#[command(after_help = help::text())]
pub(super) struct Arguments {
    #[command(flatten)]
    servers: Servers,
    /// Compare the others with this server [default: the first].
    #[arg(long, value_name = "NAME")]
    reference: Option<String>,
    /// `slices`: run several servers side by side and load them in turns. `trials`: start a server for each trial
    /// [default: trials for a single server, with --duration, or if the load needs them; otherwise slices].
    #[arg(long, value_name = "slices|trials", hide_possible_values = true,
          value_parser = values::one_of(&[("slices", true), ("trials", false)]))]
    method: Option<bool>,
    /// Trials per server, or rounds of slices [default: 10 trials].
    ///
    /// Without it, slices run until ratios are within 1 % or --budget is spent.
    #[arg(short, long, value_name = "N", value_parser = values::at_least_one)]
    runs: Option<u32>,
    /// Time for all slices with the same number of clients [default: 30s].
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    budget: Option<Duration>,
    /// Longest warm-up, until rate and CPU per request are steady. A server that is not steady by then is not compared.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::positive_duration)]
    warm_up_limit: Duration,
    /// Duration of a slice [default: 10 to 100 ms, for about two replies per client].
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    slice: Option<Duration>,
    /// Whether to see why servers differ, in some seconds that are not timed: their CPU time by part, system calls and
    /// waits.
    #[arg(long, value_name = "on|off", default_value = "on", hide_possible_values = true, action = clap::ArgAction::Set,
          value_parser = values::one_of(&[("on", true), ("off", false)]))]
    why: bool,
    /// Also draw a flame graph of each server, and keep the stacks in `profiles/`.
    #[arg(long)]
    profile: bool,
    /// Trials per server and load that count events and capture packets, after the timed trials.
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::at_least_one)]
    profiled_runs: u32,
    /// Concurrent clients, or a list like 10,100.
    #[arg(short, long, visible_aliases = ["connections", "concurrency"], alias = "vus", value_name = "LIST", value_delimiter = ',',
          default_value = "50", value_parser = values::at_least_one)]
    clients: Vec<u32>,
    /// Server to run twice as a control, or `none`. If the two differ, the grade is lower [default: the reference].
    #[arg(long, value_name = "NAME")]
    control: Option<String>,
    /// Also measure response time at these percentages of each server's highest rate, in an open loop.
    #[arg(long, value_name = "PERCENT,...", default_value = "none")]
    latency_at: Percents,
    /// Also load a minimal server, to see the most that the clients can reach.
    #[arg(long)]
    ceiling: bool,
    #[command(flatten)]
    price: PriceFlag,
    #[command(flatten)]
    measuring: MeasureFlags,
    #[command(flatten)]
    care: LifecycleFlags,
    #[command(flatten)]
    demands: Demands,
    #[command(flatten)]
    load: LoadFlags,
}

/// Thresholds for the servers.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Thresholds")]
struct Demands {
    #[command(flatten)]
    thresholds: Thresholds,
    /// Exit with 3 if a server is more than this slower, like 5%.
    ///
    /// Servers are compared with the reference, or with --baseline. The whole confidence interval of the ratio has to
    /// be below. If the clients were the bottleneck, replies per server CPU-second are compared instead.
    #[arg(long, value_name = "PERCENT", value_parser = servers_under_test::percent)]
    fail_if_slower: Option<f64>,
    /// Compare with servers of the same name in the record of an earlier run with the same settings.
    #[arg(long, value_name = "DIR")]
    baseline: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, origin: &mut Origin) -> anyhow::Result<Exit> {
    if let Some(resumed) = arguments.measuring.resumed(origin) {
        return resumed;
    }
    let plan = resolve(arguments, origin)?;
    let baseline = arguments
        .demands
        .baseline
        .as_deref()
        .map(|from| Baseline::read(from, &plan))
        .transpose()?;
    let measuring = &arguments.measuring;
    let directory = measuring.directory(&plan.study.name)?;
    let says_trials = arguments.method.is_some() || arguments.runs.is_some();
    if measuring.duration.is_some() && plan.servers.len() > 1 && !says_trials {
        output::note(BY_DURATION);
    }
    measuring.exporting(&directory, |accepted| {
        let store = runner::create(&directory)?;
        if let Some(baseline) = baseline {
            baseline.copy_into(&store)?;
        }
        runner::runner(&plan, origin, store, accepted)
    })
}

/// Turns the command line into a run specification.
fn resolve(arguments: &Arguments, origin: &Origin) -> anyhow::Result<RunSpec> {
    let kinds = arguments.care.kinds(&arguments.servers.servers)?;
    let measuring = &arguments.measuring;
    let probes = probes::choose(&measuring.probes_or_default())?;
    let mut clients = arguments.clients.clone();
    clients.sort_unstable();
    clients.dedup();
    let mut draft = Settings {
        clients,
        runs: arguments.runs.unwrap_or(TRIALS),
        profiled_runs: arguments.profiled_runs,
        retries: measuring.retries,
        price_per_cpu_hour: arguments.price.price,
        fail_if: arguments.demands.thresholds.fail_if.clone(),
        latency_at_percent: arguments.latency_at.0.clone(),
        server_address: measuring
            .lab
            .server_address(origin, running::some(&kinds) || arguments.care.has_ready())?,
        ..servers_under_test::settings(
            measuring.load(),
            &arguments.load,
            &kinds,
            &arguments.care,
            measuring.cpus(kinds.iter().any(Kind::is_started)),
            &probes,
        )?
    };
    draft.load.check_arrival().map_err(Usage::from)?;
    runner::check_times(&draft.load, measuring.says_times())?;
    draft.dialogue = runner::dialogue(&draft)?;
    draft.method = method(arguments, &draft, origin)?;
    draft.why = why(arguments, &draft, running::some(&kinds), origin)?;
    if draft.method.is_trials() && draft.load.longest_warm_up() > draft.load.warm_up {
        draft.load.warm_up_limit = Some(arguments.warm_up_limit);
    }
    runner::fit(&mut draft)?;
    let program = runner::program()?;
    let servers = servers_under_test::take_part(
        &arguments.servers,
        &kinds,
        &arguments.care,
        &draft,
        (&program, measuring.lab.allow_remote),
    )?;
    let steps = draft.load.step_names().map_err(Usage::from)?;
    let comparison = comparison(arguments, &servers, &steps)?;
    let compared = servers.len() > 1 || comparison.baseline.is_some();
    let of_reference = |server: &ServerInfo| compared && server.name == comparison.reference;
    let usual = servers.iter().position(of_reference);
    let control = servers::control(&servers, arguments.control.as_deref(), usual)?;
    let settings = Settings {
        control: control.map(|place| servers[place].name.clone()),
        ..draft
    };
    let null_server = null_server(arguments, &settings, &program)?;
    let seed = arguments.load.traffic.seed();
    Ok(RunSpec {
        study: StudyInfo {
            name: if servers.len() > 1 {
                "compare"
            } else {
                "measure"
            }
            .to_owned(),
            question: question(&servers, &comparison),
        },
        comparison: Some(comparison),
        servers,
        control,
        null_server,
        probes,
        seed: seed.unwrap_or_else(|| fastrand::u64(..1 << 32)),
        settings,
        ..runner::from_here(origin)?
    })
}

/// What `--duration` changes besides the duration, for users who meant the time of the whole comparison.
const BY_DURATION: &str = "With --duration, servers are measured one after the other, in trials of that length. \
     To measure them side by side for a time in total, use --budget.";
/// Default time for all slices.
const BUDGET: Duration = Duration::from_secs(30);
/// Default number of trials per server.
const TRIALS: u32 = 10;

/// How the servers are timed.
fn method(arguments: &Arguments, settings: &Settings, origin: &Origin) -> Result<Method, Usage> {
    let own_reason = if arguments.servers.servers.len() < 2 {
        Some("a single server")
    } else if origin.hosts().is_empty() {
        settings.load.why_not_in_slices()
    } else {
        Some("clients on several hosts")
    };
    let hooks = !arguments.care.prepare.is_empty() || !arguments.care.conclude.is_empty();
    let why_not = own_reason.or(hooks.then_some("commands before and after each trial"));
    let asked = match arguments.method {
        None if arguments.measuring.duration.is_some() => Some(false),
        // If the load sets the rate, servers differ in response times, whose tails need whole trials.
        None if settings.load.rate.is_some() => Some(false),
        asked => asked,
    };
    match (asked, why_not) {
        (Some(true), Some(why)) => Err(Usage(format!(
            "--method slices cannot be used with {why}; use --method trials"
        ))),
        (_, None) if asked != Some(false) => Ok(Method::Slices {
            length_s: arguments.slice.map(|slice| slice.as_secs_f64()),
            rounds: arguments.runs,
            budget_s: arguments.budget.unwrap_or(BUDGET).as_secs_f64(),
            warm_up_limit_s: arguments.warm_up_limit.as_secs_f64(),
            half_width: HALF_WIDTH,
        }),
        _ => {
            let of_slices = [
                ("--budget", arguments.budget.is_some()),
                ("--slice", arguments.slice.is_some()),
            ];
            match of_slices.into_iter().find(|(_, is_given)| *is_given) {
                None => Ok(Method::Trials),
                Some((flag, _)) => Err(Usage(format!(
                    "{flag} is for slices, which cannot be used with {}; use --runs and --duration instead",
                    why_not.unwrap_or("--duration or --method trials")
                ))),
            }
        }
    }
}

/// How closely the servers are watched.
fn why(
    arguments: &Arguments,
    settings: &Settings,
    some_run_already: bool,
    origin: &Origin,
) -> Result<Why, Usage> {
    let why_not = if arguments.servers.servers.len() < 2 {
        Some("a single server")
    } else if !origin.hosts().is_empty() {
        Some("clients on several hosts")
    } else if !settings.method.is_trials() {
        None
    } else if !matches!(settings.load.until(), Until::Duration(_)) {
        Some("a number of requests; use --duration")
    } else {
        some_run_already.then_some("trials of servers that already run")
    };
    match (arguments.profile, arguments.why, why_not) {
        (true, _, Some(with)) => Err(Usage(format!("--profile cannot be used with {with}"))),
        (true, _, None) => Ok(Why::Profile),
        (false, true, None) => Ok(Why::On),
        (false, ..) => Ok(Why::Off),
    }
}

/// The minimal server, if `--ceiling` is given.
fn null_server(
    arguments: &Arguments,
    settings: &Settings,
    program: &Path,
) -> anyhow::Result<Option<ServerInfo>> {
    if !arguments.ceiling {
        return Ok(None);
    }
    if let Some(key) = settings.load.only_for_others() {
        let what = format!(
            "--ceiling cannot be used with --{key}, which built-in servers do not support; leave one out"
        );
        return Err(Usage(what).into());
    }
    servers::own(cheapest(Engine::Epoll), &[], settings, program).map(Some)
}

/// The servers and the baseline of a comparison.
fn comparison(
    arguments: &Arguments,
    servers: &[ServerInfo],
    steps: &[String],
) -> Result<Comparison, Usage> {
    let demands = &arguments.demands;
    if servers.len() < 2 && demands.fail_if_slower.is_some() && demands.baseline.is_none() {
        let what = "--fail-if-slower needs a second server or --baseline";
        return Err(Usage(what.to_owned()));
    }
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    let must_be_there = |name: &str, place: &str| {
        if names.contains(&name) {
            return Ok(());
        }
        let there = names.join(", ");
        Err(Usage(format!(
            "{place}: unknown server `{name}`; expected one of: {there}"
        )))
    };
    let reference = arguments
        .reference
        .clone()
        .unwrap_or_else(|| names[0].to_owned());
    must_be_there(&reference, "--reference")?;
    demands.thresholds.check(&names, steps)?;
    Ok(Comparison {
        reference,
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
            Some(_) => format!("How does {reference} differ from its baseline?"),
            None => format!("How does {reference} serve this load, and at what cost?"),
        };
    }
    let (verb, others) = (if others.len() == 1 { "does" } else { "do" }, list(&others));
    format!("How {verb} {others} differ from {reference} under the same load?")
}
