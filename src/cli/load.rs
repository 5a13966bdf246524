//! `throng load ADDRESS`: the crowd of clients by itself.

pub(super) mod calibrate;
mod describe;
mod watch;

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;

use super::asking::Asking;
use super::dialogue::Speech;
use super::shape::Shape;
use super::values::{self, CpuList, Destination};
use super::{Exit, Usage, output};
use crate::load::foresee::{self, Workers};
use crate::load::route::{Network, Routes};
use crate::load::share::Share;
use crate::load::socket::{self, Options};
use crate::load::{self, Engine, Outcome, Plan, Until};
use crate::measure::host;
use crate::sys::ring;
use crate::sys::signal::Stop;
use describe::{describe, reasons};
use watch::{Controlled, Shown};

#[derive(Debug, clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each one is a flag on the command line"
)]
#[command(after_help = "\
Examples:
  throng load 127.0.0.1:7777 --clients 1000 --duration 10s
  throng load localhost:7777 --clients 50 --requests 100000 --json
  throng load 127.0.0.1:7777 --clients 2000 --clients-csv clients.csv
  throng load 127.0.0.1:7777 --clients 100000 --threads 6
  throng load 127.0.0.1:7777 --clients 100000 --each 1 --at-once 1000
  throng load http://127.0.0.1:8080/index.html --clients 100
  throng load http://127.0.0.1:8080 --path /:3 --path /news:1
  throng load 127.0.0.1:7777 --protocol upload --size 100kB:3,1MB:1
  throng load 127.0.0.1:6379 --send 'PING\\r\\n' --expect 'text:+PONG\\r\\n'

A closed loop: each client sends its next request when the reply to the last one has come and every
byte of it was checked. Each rests after its first answer until all have theirs; then the warm-up
begins, and then the time that counts. With --each, clients come, make so many requests and go, and all
of that counts.")]
pub(super) struct Arguments {
    /// The server, as HOST:PORT, or as http://HOST:PORT/PATH; clients take several in turn.
    #[arg(required = true, value_name = "ADDRESS")]
    addresses: Vec<String>,
    #[command(flatten)]
    dialogue: Speech,
    /// Clients, each with one connection.
    #[arg(short, long, value_name = "N", default_value = "50", value_parser = values::at_least_one)]
    clients: u32,
    /// How long replies count [default: 10s].
    #[arg(short, long, value_name = "TIME", conflicts_with = "requests_per_client", value_parser = values::positive_duration)]
    duration: Option<Duration>,
    /// Instead of a time: requests over all clients, in a closed loop divided evenly.
    #[arg(short = 'n', long, value_name = "N", conflicts_with_all = ["duration", "requests_per_client"],
          value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Instead of a time: bytes sent and received over all clients.
    #[arg(long, value_name = "N", conflicts_with_all = ["duration", "requests", "requests_per_client"],
          value_parser = clap::value_parser!(u64).range(1..))]
    bytes: Option<u64>,
    /// How long to load before replies count, once every client had its first answer.
    #[arg(long, value_name = "TIME", default_value = "500ms", conflicts_with = "requests_per_client",
          value_parser = values::duration)]
    warm_up: Duration,
    /// How long a client may take to connect.
    #[arg(long, value_name = "TIME", default_value = "10s",
          value_parser = values::positive_duration)]
    connect_timeout: Duration,
    /// Addresses of this machine to connect from in turn, like 10.0.0.7 or 127.0.1.0/24 [default:
    /// the system's choice; on loopback many, when ports would run out].
    #[arg(long, value_name = "NET,...", value_delimiter = ',')]
    source: Vec<Network>,
    /// Without any new first answer for this long (with --eager, after the last connection), or after
    /// twenty times as long, clients still waiting count as never served unless an answer comes yet.
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = values::positive_duration)]
    patience: Duration,
    /// Let clients go on asking while others still wait for their first answer.
    #[arg(long, conflicts_with = "requests_per_client")]
    eager: bool,
    #[command(flatten)]
    shape: Shape,
    /// What moves the bytes.
    #[arg(long, value_name = "NAME", default_value = "epoll")]
    engine: Engine,
    /// Load-generating threads [default: one for each CPU, or for each in --cpus].
    #[arg(long, value_name = "N", value_parser = values::at_least_one)]
    threads: Option<u32>,
    /// CPUs to run on, like 0 or 0,2-3.
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuList>,
    /// Gather small requests before sending them (Nagle's algorithm on).
    #[arg(long)]
    delay: bool,
    /// Before, measure what the same clients reach against a server that does least, and say what
    /// share of that the load reached.
    #[arg(long)]
    calibrate: bool,
    /// Write a line a client into this CSV file.
    #[arg(long, value_name = "FILE")]
    clients_csv: Option<PathBuf>,
    /// Allow a server that is not on this machine's loopback.
    #[arg(long)]
    allow_remote: bool,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    /// Tell phases on standard output and wait for a line on standard input before the warm-up and
    /// before closing the connections.
    #[arg(long, hide = true)]
    controlled: bool,
    /// Tell figures there too, again and again after this time.
    #[arg(long, hide = true, value_name = "TIME", requires = "controlled", value_parser = values::positive_duration)]
    figures_every: Option<Duration>,
    /// Be one of several processes that have this load together, from 0/N to N-1/N, and print what puts
    /// their results together.
    #[arg(long, hide = true, value_name = "NUMBER/OF", value_parser = values::share,
          conflicts_with = "calibrate")]
    share: Option<Share>,
}

impl Arguments {
    /// What is said and when, without the rest.
    pub(super) fn into_asking(self) -> Asking {
        Asking {
            speech: self.dialogue,
            shape: self.shape,
        }
    }
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let plan = plan(arguments)?;
    let csv = arguments.clients_csv.as_ref().map(|path| {
        File::create(path)
            .map(|file| (path, BufWriter::new(file)))
            .map_err(|error| Usage(format!("cannot write {}: {error}", path.display())))
    });
    let csv = csv.transpose()?;
    let stop = Stop::install().context("cannot handle signals")?;
    let ceiling = if arguments.calibrate {
        let server = values::destination(&arguments.addresses[0])?;
        let options = arguments.dialogue.served(&server)?;
        Some(calibrate::ceiling(&plan, &options, stop)?)
    } else {
        None
    };
    let mut outcome = if arguments.controlled {
        let waits_at_start = arguments.shape.until().is_some();
        let figures_every = arguments.figures_every;
        load::run(
            &plan,
            &mut Controlled::new(stop, waits_at_start, figures_every),
        )?
    } else {
        load::run(&plan, &mut Shown::new(stop, &plan))?
    };
    outcome.load.ceiling = ceiling.map(|ceiling| calibrate::reached(ceiling, &outcome.load));
    if let Some((path, mut csv)) = csv {
        outcome
            .write_clients(&mut csv)
            .and_then(|()| csv.flush())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    // Whoever is interrupted had no time to be served.
    let nobody = outcome.load.served == 0 && !stop.requested();
    let nobody = nobody.then(|| reasons(&outcome.load));
    print(arguments, &plan, outcome)?;
    if let Some(reasons) = nobody {
        anyhow::bail!("no client was served by {}{reasons}", targets(&plan));
    }
    Ok(Exit::unless_stopped(stop))
}

fn plan(arguments: &Arguments) -> anyhow::Result<Plan> {
    let destinations = destinations(arguments)?;
    let (protocol, settings) = arguments.dialogue.resolve(&destinations[0])?;
    let until = until(arguments)?;
    let cpus = match &arguments.cpus {
        Some(CpuList(cpus)) => cpus.clone(),
        None => Vec::new(),
    };
    let threads = match arguments.threads {
        Some(threads) => threads as usize,
        None if cpus.is_empty() => host::usable_cpus().len(),
        None => cpus.len(),
    };
    let room = room(arguments, &destinations, threads, protocol.closes())?;
    if !cpus.is_empty() {
        host::bind_to(&cpus)?;
    }
    if arguments.engine == Engine::IoUring
        && let Err(why) = ring::supported()
    {
        anyhow::bail!("the engine io-uring is not supported here: {why}");
    }
    let mut plan = Plan {
        socket: Options {
            nodelay: !arguments.delay,
            syn_retries: None,
        },
        warm_up: arguments.warm_up,
        connect_timeout: arguments.connect_timeout,
        patience: arguments.patience,
        eager: arguments.eager,
        engine: arguments.engine,
        threads: room.workers.threads,
        own_tables: room.workers.own_tables,
        cpus,
        at_once: room.at_once,
        share: arguments.share.unwrap_or(Share::WHOLE),
        gathers_clients: arguments.share.is_some() && arguments.clients_csv.is_some(),
        ..Plan::new(room.routes, protocol, settings, arguments.clients, until)
    };
    arguments.shape.check()?;
    arguments.shape.apply(&mut plan);
    Ok(plan)
}

/// When it is enough.
fn until(arguments: &Arguments) -> Result<Until, Usage> {
    let seconds = Duration::from_secs(10);
    Ok(match (arguments.requests, arguments.bytes) {
        (Some(requests), _) if requests < u64::from(arguments.clients) => {
            return Err(Usage(format!(
                "{requests} requests are fewer than {} clients; every client makes at least one",
                arguments.clients
            )));
        }
        (Some(requests), _) => Until::Requests(requests),
        (None, Some(bytes)) => Until::Bytes(bytes),
        (None, None) => {
            let each = arguments.shape.until();
            each.unwrap_or(Until::Duration(arguments.duration.unwrap_or(seconds)))
        }
    })
}

/// Where the load goes: all of them URLs, or none, and all with the same path.
fn destinations(arguments: &Arguments) -> anyhow::Result<Vec<Destination>> {
    let addresses = arguments.addresses.iter();
    let destinations: Vec<Destination> = addresses
        .map(|address| values::destination(address))
        .collect::<Result<_, _>>()?;
    let kind = |destination: &Destination| (destination.is_url, destination.path);
    let first = kind(&destinations[0]);
    match destinations.iter().position(|other| kind(other) != first) {
        None => Ok(destinations),
        Some(place) => Err(Usage(format!(
            "{} is not asked for the same as {}; write the same path behind each address",
            arguments.addresses[place], arguments.addresses[0]
        ))
        .into()),
    }
}

/// What this machine has for the clients.
struct Room {
    routes: Routes,
    workers: Workers,
    /// Most clients there at the same time, where not all may be.
    at_once: Option<u32>,
}

/// In the minute for which the kernel keeps a port, a client makes no more connections than this.
const CONNECTIONS_A_PORT_TIME: u32 = 64;

/// How the clients connect, once it is known that this machine lets them.
fn room(
    arguments: &Arguments,
    destinations: &[Destination],
    threads: usize,
    closes: bool,
) -> anyhow::Result<Room> {
    let targets = destinations
        .iter()
        .map(|to| values::target(&to.address, arguments.allow_remote))
        .collect::<anyhow::Result<Vec<_>>>()?;
    host::raise_descriptor_limit();
    let resources = host::load_resources();
    let part = arguments.share.unwrap_or(Share::WHOLE);
    let (clients, shape) = (part.of_clients(arguments.clients), &arguments.shape);
    let connections = shape.connections_each(closes).min(CONNECTIONS_A_PORT_TIME);
    let connections = clients.saturating_mul(connections);
    let routes = Routes::new(&targets, &arguments.source, connections, resources.ports)
        .map_err(|error| Usage(error.to_string()))?;
    let fits = |at_once: u32| {
        // The kernel gives a descriptor back a little after io_uring was told to close.
        let lingering = if at_once < clients && arguments.engine == Engine::IoUring {
            at_once / 4
        } else {
            0
        };
        let workers = foresee::workers(at_once + lingering, threads, resources.descriptors);
        foresee::check(at_once, workers, &routes, &resources).map(|crowded| (workers, crowded))
    };
    let mut at_once = shape.at_once().map(|count| count.min(arguments.clients));
    let mut found = fits(at_once.map_or(clients, |count| part.of_clients(count)));
    if let (Err(shortage), true, None) = (&found, shape.until().is_some(), at_once)
        && part == Share::WHOLE
        && shortage.at_most() > 0
    {
        let most = shortage.at_most();
        output::warning(&format!(
            "{shortage}: there will be {most} at once (--at-once)"
        ));
        at_once = Some(most);
        found = fits(most);
    }
    let (workers, crowded) = found?;
    if let Some(crowded) = crowded {
        output::warning(&crowded.to_string());
    }
    if let Some((source, error)) = socket::unusable_source(&routes) {
        let message = format!(
            "cannot connect from {source}: {error}; `ip address` lists what this machine has"
        );
        return Err(Usage(message).into());
    }
    Ok(Room {
        routes,
        workers,
        at_once,
    })
}

fn print(arguments: &Arguments, plan: &Plan, outcome: Outcome) -> anyhow::Result<()> {
    if arguments.share.is_some() {
        return output::json_line(&outcome.into_contribution());
    }
    if arguments.controlled {
        return output::json_line(&outcome.load);
    }
    if arguments.json {
        return output::json(&outcome.load);
    }
    output::text(&describe(plan, &outcome.load, cpus(plan)))
}

/// The targets in words.
fn targets(plan: &Plan) -> String {
    let targets = plan.routes.targets().map(|target| target.to_string());
    targets.collect::<Vec<_>>().join(", ")
}

/// How many CPUs the clients can use.
fn cpus(plan: &Plan) -> usize {
    match plan.cpus.len() {
        0 => host::usable_cpus().len(),
        count => count,
    }
}
