//! `throng load ADDRESS`: loads one server, without a runner.

pub(super) mod calibrate;
mod debug;
mod describe;
mod encrypted;
mod watch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context as _;

use super::export::Exports;
use super::request::{self, RequestFlags};
use super::thresholds::Thresholds;
use super::tls_flags::TlsFlags;
use super::traffic::TrafficFlags;
use super::values::{self, CpuList};
use super::{Exit, Usage, output};
use crate::load::preflight::{self, Workers};
use crate::load::route::Routes;
use crate::load::{self, Engine, Plan, socket};
use crate::measure::host;
use crate::measure::probes::accept_queue::QueueWatch;
use crate::record::{Draft, Finding, Load, LoadEvent, StoppedBy, findings, format};
use crate::report::document::terminal;
use crate::spec::{
    Assignment, ClientThreads, Endpoint, LoadSpec, Network, RequestFile, Share, Target, UnixPath,
};
use crate::sys::ring;
use crate::sys::signal::Stop;
use describe::{by_kind, describe, reasons};
use watch::{ControlledProgress, TerminalProgress};

#[derive(Debug, clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each one is a flag on the command line"
)]
#[command(mut_arg("http_method", |method| method.visible_alias("method")), after_help = "\
Examples:
  throng load 127.0.0.1:7777 --clients 1000 --duration 10s
  throng load localhost:7777 --clients 50 --requests 100000 --json
  throng load 127.0.0.1:7777 --clients 2000 --clients-csv clients.csv
  throng load 127.0.0.1:7777 --clients 100000 --threads 6
  throng load 127.0.0.1:7777 --clients 100000 --each 1 --at-once 1000
  throng load http://127.0.0.1:8080/index.html --clients 100
  throng load http://127.0.0.1:8080 --path /:3 --path /news:1
  throng load unix:/run/app.sock --clients 100
  throng load http://localhost/index.html --unix-socket /run/nginx.sock
  throng load ws://localhost:8080/chat --clients 1000 --size 100
  throng load https://127.0.0.1:8443 --insecure
  throng load http://127.0.0.1:8080/api -H 'Accept: application/json' --data '{\"name\": \"x\"}'
  throng load http://127.0.0.1:8080/items/{number} --variables --cookies
  throng load http://127.0.0.1:8080 --request-file requests.jsonl --rate 10k
  throng load http://127.0.0.1:8080/api --debug
  throng load login.hurl --data-file users.csv --clients 100
  throng load 127.0.0.1:7777 --protocol upload --size 100kB:3,1MB:1
  throng load 127.0.0.1:6379 --send 'PING\\r\\n' --expect 'text:+PONG\\r\\n'

By default the load is a closed loop: each client waits for a complete, correct reply before its next \
request. After its first reply, each client waits until all clients have one. Then the warm-up begins, \
then the measurement. With --requests-per-client, clients connect, send their requests and disconnect, \
and everything counts.")]
pub(super) struct Arguments {
    /// Server: HOST:PORT, http(s)://HOST:PORT/PATH, ws(s)://HOST:PORT/PATH or unix:/PATH. Or a file of steps, like
    /// flow.hurl or recording.har, whose URLs name the server.
    ///
    /// Clients are spread evenly over several servers.
    #[arg(required_unless_present_any = ["controlled", "unix_socket", "request_file"], value_name = "ADDRESS")]
    addresses: Vec<Address>,
    /// Connect to this unix socket. A URL then only gives protocol and path.
    #[arg(long, value_name = "PATH")]
    unix_socket: Option<UnixPath>,
    /// Concurrent clients, one connection each.
    #[arg(short, long, visible_aliases = ["connections", "concurrency"], alias = "vus", value_name = "N", default_value = "50",
          value_parser = values::at_least_one)]
    clients: u32,
    /// Measurement duration [default: 10s].
    #[arg(short, short_alias = 'z', long, value_name = "TIME", value_parser = values::positive_duration)]
    duration: Option<Duration>,
    /// Total requests, instead of a duration.
    #[arg(short = 'n', long, alias = "iterations", value_name = "N", value_parser = values::count)]
    requests: Option<u64>,
    /// Total bytes sent and received, instead of a duration.
    #[arg(long, value_name = "N", value_parser = values::count)]
    bytes: Option<u64>,
    /// Warm-up, after every client has its first reply.
    #[arg(long, alias = "warmup", value_name = "TIME", default_value = "500ms", conflicts_with_all = ["requests_per_client", "live"],
          value_parser = values::duration)]
    warm_up: Duration,
    /// Longest warm-up, until the rate is steady [default: 5s, or --warm-up if longer].
    #[arg(long, value_name = "TIME", conflicts_with_all = ["requests_per_client", "live"], value_parser = values::positive_duration)]
    warm_up_limit: Option<Duration>,
    /// Connection timeout.
    #[arg(long, value_name = "TIME", default_value = "10s",
          value_parser = values::positive_duration)]
    connect_timeout: Duration,
    /// Client addresses, like 10.0.0.7 or 127.0.1.0/24 [default: the system's, and more on loopback if ports run out].
    #[arg(long, value_name = "NET,...", value_delimiter = ',')]
    source: Vec<Network>,
    /// Stop waiting for first replies when none arrives for this long. Clients without one count as never served.
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = values::positive_duration)]
    first_reply_timeout: Duration,
    /// Send before all clients have their first reply.
    #[arg(long)]
    eager: bool,
    /// Send one request and print both messages. Exit with 0 if the reply is correct.
    #[arg(long)]
    debug: bool,
    /// Allow servers beyond this machine's loopback.
    #[arg(long)]
    allow_remote: bool,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    request: RequestFlags,
    #[command(flatten)]
    traffic: TrafficFlags,
    #[command(flatten)]
    tls: TlsFlags,
    /// I/O engine.
    #[arg(long, value_name = "epoll|io-uring", default_value = "epoll", hide_possible_values = true,
          value_parser = values::one_of(&Engine::NAMED), help_heading = "Load generator")]
    engine: Engine,
    /// Threads [default: one per CPU, or per CPU in --cpus].
    #[arg(long, value_name = "N", value_parser = values::at_least_one, help_heading = "Load generator")]
    threads: Option<u32>,
    /// CPUs to run on, like 0,2-3 [default: all].
    #[arg(long, value_name = "LIST", help_heading = "Load generator")]
    cpus: Option<CpuList>,
    /// Enable Nagle's algorithm.
    #[arg(long, help_heading = "Load generator")]
    delay: bool,
    /// First measure the same clients against a minimal server, and report the share reached.
    #[arg(long, help_heading = "Load generator")]
    calibrate: bool,
    /// Write one row per client to this CSV file.
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    clients_csv: Option<PathBuf>,
    #[command(flatten)]
    exports: Exports,
    #[command(flatten)]
    thresholds: Thresholds,
    /// Report phases on standard output, and wait for a line on standard input before the warm-up and
    /// before closing the connections. Without an address, the first line there is the assignment, as JSON.
    #[arg(long, hide = true)]
    controlled: bool,
}

/// What a load goes to.
#[derive(Debug, Clone)]
enum Address {
    Server(Target),
    /// The file of steps, whose URLs name the server.
    Steps(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(text);
        if RequestFile::new(&path).has_steps() {
            return Ok(Self::Steps(path));
        }
        text.parse().map(Self::Server)
    }
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let is_assigned =
        arguments.controlled && arguments.addresses.is_empty() && arguments.unix_socket.is_none();
    let assignment = if is_assigned {
        Assignment::read(&mut std::io::stdin().lock())?
    } else {
        assignment(arguments)?
    };
    let steps = assignment.load.step_names().map_err(Usage::from)?;
    arguments.thresholds.check_of_load(&steps)?;
    let bound = arguments.cpus.as_ref().map(|CpuList(cpus)| cpus.clone());
    let plan = plan(&assignment, bound.unwrap_or_default())?;
    let csv = assignment.clients_csv.as_deref().map(rows).transpose()?;
    let exports = arguments.exports.open()?;
    let stop = Stop::install().context("cannot handle signals")?;
    if arguments.debug {
        return debug::run(&plan, stop);
    }
    if !arguments.controlled {
        encrypted::check(&plan)?;
    }
    let ceiling = if arguments.calibrate {
        let options = calibrate::options(&assignment.load)?;
        Some(calibrate::ceiling(&plan, &options, stop)?)
    } else {
        None
    };
    let targets = plan.routes.targets().filter(|_| !arguments.controlled);
    let queues: Vec<QueueWatch> = targets.filter_map(QueueWatch::begin).collect();
    let (result, server_use) = if arguments.controlled {
        let waits_at_start = assignment.load.has_jobs() || assignment.in_slices;
        let figures_every = assignment.figures_every;
        let mut progress = ControlledProgress::new(stop, waits_at_start, figures_every);
        (load::run(&plan, &mut progress)?, None)
    } else {
        let mut progress = TerminalProgress::new(stop, &plan);
        let result = load::run(&plan, &mut progress)?;
        let server_use = progress.server_use(result.stats.verified);
        (result, server_use)
    };
    if let Some((path, mut csv)) = csv {
        result
            .write_clients(&mut csv)
            .and_then(|()| csv.finish())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let stopped_by = result.stats.stopped_by;
    let mut load = result.stats.summary();
    // An interrupted load left no time for clients to be served.
    let why = (!stop.requested())
        .then(|| nothing_correct(&load, &plan))
        .flatten();
    if arguments.controlled {
        output::json_line(&LoadEvent::Result(Box::new(result.stats)))?;
    } else {
        load.ceiling = ceiling.and_then(|ceiling| calibrate::reached(ceiling, &load));
        let found = all_findings(&load, cpus(&plan) as u32, queues);
        let described = describe(&plan, &load, server_use.as_ref(), &found);
        match (arguments.exports.fill_stdout(), arguments.json) {
            (true, _) => {}
            (false, true) => output::json(&load)?,
            (false, false) => output::text(&terminal::blocks(&described, output::width()))?,
        }
        exports.of_load(&load, &described)?;
    }
    let mut missed = false;
    for judged in arguments.thresholds.of_load(&load)? {
        missed |= judged.missed;
        let (word, demand, seen) = (judged.word(), &judged.demand, &judged.seen);
        output::note(&format!("{word}: fail if {demand}: {seen}"));
    }
    let is_alone = !arguments.controlled && !stop.requested();
    if let Some(why) = why.or_else(|| fell_short(&load, &plan, stopped_by).filter(|_| is_alone)) {
        anyhow::bail!(why);
    }
    Ok(if missed {
        Exit::Missed
    } else {
        Exit::unless_stopped(stop)
    })
}

/// The file for rows of clients, with its name.
fn rows(path: &Path) -> Result<(&Path, Draft), Usage> {
    Draft::named(path)
        .map(|file| (path, file))
        .map_err(|error| Usage(format!("cannot write {}: {error}", path.display())))
}

/// Why a load has no result, if no reply was correct.
fn nothing_correct(load: &Load, plan: &Plan) -> Option<String> {
    let targets = targets(plan);
    if load.served == 0 {
        let why = match encrypted::spoken_instead(plan, load) {
            "" if load.errors.keys().eq(["refused"]) => {
                by_kind(&load.errors) + "; no server listens there"
            }
            "" => reasons(load),
            // A server that speaks TLS may have replied with an error in plaintext.
            spoken => by_kind(&load.errors) + spoken,
        };
        return Some(format!("{targets} served no client{why}"));
    }
    if let Some(sessions) = load
        .sessions
        .as_ref()
        .filter(|all| all.completed == 0 && all.failed > 0)
    {
        let failed = format::whole(sessions.failed as f64);
        return Some(format!(
            "no session was complete; {failed} failed{} (--debug shows a session step by step)",
            by_kind(&load.unexpected)
        ));
    }
    (load.verified == 0).then(|| {
        let spoken = encrypted::spoken_instead(plan, load);
        let remedy = if spoken.is_empty() {
            "; check --path (--debug shows a request and its reply; --expect-status accepts other HTTP statuses)"
        } else {
            spoken
        };
        format!("no reply was correct{}{remedy}", by_kind(&load.unexpected))
    })
}

/// What a load did not reach of what it was to do.
fn fell_short(load: &Load, plan: &Plan, stopped_by: Option<StoppedBy>) -> Option<String> {
    let window = &load.window;
    let answered = |asked: u64| {
        let replies = load.replies();
        (replies < asked).then(|| format!("only {replies} of {asked} requests were answered"))
    };
    let short = match plan.until {
        load::Until::Duration(wanted) => {
            let time = format::time(wanted.as_secs_f64() * 1e6);
            let measured = format::time(window.duration_s * 1e6);
            if !load.errors.is_empty() && stopped_by == Some(StoppedBy::NoClientsLeft) {
                Some(format!("all clients failed after {measured} of {time}"))
            } else {
                let counted = match &load.open_loop {
                    // Replies to requests that were due in the window, also if they came later.
                    Some(open) => {
                        let times = load.service_time.as_ref();
                        times.map_or(0, |times| times.count.saturating_sub(open.unanswered))
                    }
                    None => window.replies,
                };
                (counted == 0).then(|| format!("no reply arrived in the {measured} of measurement"))
            }
        }
        load::Until::Requests(asked) => answered(asked),
        load::Until::Bytes(asked) => {
            let bytes = window.bytes_sent.saturating_add(window.bytes_received);
            let is_short = bytes < asked && stopped_by != Some(StoppedBy::Bytes);
            is_short.then(|| format!("only {bytes} of {asked} bytes were transferred"))
        }
        // The time limit is another end that the load was given.
        load::Until::Each { .. } if stopped_by == Some(StoppedBy::TimeLimit) => None,
        load::Until::Each {
            requests: Some(requests),
            live: None,
            ..
        } => answered(u64::from(requests).saturating_mul(plan.clients.into())),
        load::Until::Each { .. } => {
            let (served, all) = (load.served, load.clients);
            (served < all).then(|| format!("only {served} of {all} clients got a reply"))
        }
    };
    Some(short? + &by_kind(&load.errors))
}

/// Turns the flags into an assignment like the one that a runner writes.
fn assignment(arguments: &Arguments) -> anyhow::Result<Assignment> {
    let (load, servers) = load_and_servers(arguments)?;
    let load = request::complete(load).map_err(Usage::from)?;
    let threads = match (arguments.threads, &arguments.cpus) {
        (Some(threads), _) => threads,
        (None, Some(CpuList(cpus))) => cpus.len() as u32,
        (None, None) => host::usable_cpus().len() as u32,
    };
    Ok(Assignment {
        servers,
        allow_remote: arguments.allow_remote,
        clients_csv: arguments.clients_csv.clone(),
        ..Assignment::new(load, threads)
    })
}

/// The load that the flags describe, and its servers.
fn load_and_servers(arguments: &Arguments) -> Result<(LoadSpec, Vec<Target>), Usage> {
    let mut draft = spec(arguments)?;
    let servers = servers(arguments, &draft)?;
    draft.ask_for(&servers[0])?;
    let load = draft.checked()?;
    load.check_arrival()?;
    Ok((load, servers))
}

/// The load that the flags describe, against any server.
fn spec(arguments: &Arguments) -> Result<LoadSpec, Usage> {
    let mut load = LoadSpec {
        clients: arguments.clients,
        warm_up: arguments.warm_up,
        warm_up_limit: arguments.warm_up_limit,
        connect_timeout: arguments.connect_timeout,
        first_reply_timeout: arguments.first_reply_timeout,
        eager: arguments.eager,
        engine: arguments.engine,
        delay: arguments.delay,
        source: arguments.source.clone(),
        ..LoadSpec::default()
    };
    arguments.traffic.apply(&mut load);
    load.duration = arguments.duration;
    load.requests = arguments.requests;
    load.bytes = arguments.bytes;
    arguments.tls.apply(&mut load);
    arguments.request.apply(&mut load)?;
    for address in &arguments.addresses {
        if let Address::Steps(path) = address {
            if let Some(other) = &load.request_file {
                return Err(Usage(format!(
                    "{} and {} are both files of requests; give one",
                    other,
                    path.display()
                )));
            }
            load.request_file = Some(RequestFile::new(path));
        }
    }
    Ok(load)
}

/// A load in slices is ended by the runner, so its duration only has to be long enough.
const LONGEST_IN_SLICES: Duration = Duration::from_hours(1000);

/// Adapts the load to this machine.
fn plan(assignment: &Assignment, cpus: Vec<u32>) -> anyhow::Result<Plan> {
    let load = &assignment.load;
    let (dialogue, settings) = load
        .dialogue(&assignment.servers[0].host())
        .map_err(Usage::from)?;
    let room = room(assignment, dialogue.closes())?;
    if !cpus.is_empty() {
        host::bind_to(&cpus)?;
    }
    if load.engine == Engine::IoUring
        && let Err(why) = ring::supported()
    {
        anyhow::bail!("--engine io-uring is not supported here: {why}");
    }
    Ok(Plan {
        threads: room.workers.threads,
        own_tables: room.workers.own_tables,
        until: if assignment.in_slices {
            load::Until::Duration(LONGEST_IN_SLICES)
        } else {
            load.until()
        },
        in_slices: assignment.in_slices,
        cpus,
        at_once: room.at_once,
        share: assignment.share.unwrap_or(Share::WHOLE),
        gathers_clients: assignment.share.is_some() && assignment.clients_csv.is_some(),
        tls: encrypted::client(load, &assignment.servers)?,
        ..Plan::new(load, room.routes, dialogue, settings)
    })
}

/// The servers, which all get the same requests.
fn servers(arguments: &Arguments, load: &LoadSpec) -> Result<Vec<Target>, Usage> {
    let given = arguments
        .addresses
        .iter()
        .filter_map(|address| match address {
            Address::Server(server) => Some(server.clone()),
            Address::Steps(_) => None,
        });
    let mut servers: Vec<Target> = given.collect();
    if servers.is_empty() && arguments.unix_socket.is_none() {
        let Some(origin) = load.flow_origin()? else {
            let why =
                "no server is known: give its address, or the --variable with which the URLs begin";
            return Err(Usage(why.to_owned()));
        };
        let server = origin
            .parse()
            .map_err(|why| Usage(format!("{origin}: {why}")))?;
        servers.push(server);
    }
    if let Some(socket) = &arguments.unix_socket {
        servers = match servers.pop() {
            None => vec![Endpoint::Unix(socket.clone()).into()],
            Some(url) if servers.is_empty() && url.is_url() => vec![url.over(socket.clone())],
            Some(_) => {
                let why = "--unix-socket replaces the address; give at most one URL, for protocol and path";
                return Err(Usage(why.to_owned()));
            }
        };
    }
    let first = &servers[0];
    if let Some(other) = servers.iter().find(|server| !server.asks_the_same(first)) {
        return Err(Usage(format!(
            "{other} and {first} differ in scheme, path or user; use the same for every address"
        )));
    }
    Ok(servers)
}

/// The address of a server.
fn endpoint(server: &Target, allow_remote: bool) -> Result<Endpoint, Usage> {
    server.endpoint(allow_remote).map_err(Usage)
}

/// The clients' addresses, the servers, and the number of workers.
struct Room {
    routes: Routes,
    workers: Workers,
    /// Maximum concurrent clients, if not all can be connected at once.
    at_once: Option<u32>,
}

/// Maximum connections of a client within the minute for which the kernel keeps a port.
const CONNECTIONS_PER_PORT: u32 = 64;

/// The routes of the clients, if this machine supports that many clients.
fn room(assignment: &Assignment, closes: bool) -> anyhow::Result<Room> {
    let load = &assignment.load;
    let targets = assignment
        .servers
        .iter()
        .map(|server| endpoint(server, assignment.allow_remote))
        .collect::<Result<Vec<_>, _>>()?;
    host::raise_descriptor_limit();
    let resources = host::load_resources();
    let part = assignment.share.unwrap_or(Share::WHOLE);
    let threads = assignment.threads as usize;
    let clients = part.of_clients(load.clients);
    let each = load.connections_each(closes).min(CONNECTIONS_PER_PORT);
    let connections = clients.saturating_mul(each);
    let routes = Routes::new(&targets, &load.source, connections, resources.ports)
        .map_err(|error| Usage(error.to_string()))?;
    let fits = |at_once: u32| {
        // io_uring closes a descriptor with a slight delay.
        let lingering = if at_once < clients && load.engine == Engine::IoUring {
            at_once / 4
        } else {
            0
        };
        let workers = match load.client_threads {
            Some(ClientThreads::OneEach) => preflight::one_each(at_once),
            None => preflight::workers(at_once + lingering, threads, resources.descriptors),
        };
        let checked = preflight::check(at_once, workers, &routes, load.tls.is_some(), &resources);
        checked.map(|scarce_ports| (workers, scarce_ports))
    };
    let mut at_once = load.at_once.map(|count| count.min(load.clients));
    let mut found = fits(at_once.map_or(clients, |count| part.of_clients(count)));
    if let (Err(shortage), true, None) = (&found, load.has_jobs(), at_once)
        && part == Share::WHOLE
        && shortage.at_most() > 0
    {
        let most = shortage.at_most();
        output::warning(&format!(
            "{shortage}; running {most} clients at once (--at-once)"
        ));
        at_once = Some(most);
        found = fits(most);
    }
    let (workers, scarce_ports) = found?;
    if let Some(scarce_ports) = scarce_ports {
        output::warning(&scarce_ports.to_string());
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

/// Findings about the load, and about the fullest queue of the servers on this machine.
fn all_findings(load: &Load, cpus: u32, queues: Vec<QueueWatch>) -> Vec<Finding> {
    let overflows = |queue: &BTreeMap<String, f64>| queue.get("listen_overflows").copied();
    let ended = queues.into_iter().map(QueueWatch::end);
    let fullest = ended.max_by(|one, other| {
        let (one, other) = (overflows(one), overflows(other));
        one.unwrap_or(0.0).total_cmp(&other.unwrap_or(0.0))
    });
    findings::of_load(load, cpus, &fullest.unwrap_or_default())
}

/// The servers' addresses as text.
fn targets(plan: &Plan) -> String {
    let targets = plan.routes.targets().map(ToString::to_string);
    targets.collect::<Vec<_>>().join(", ")
}

/// Number of CPUs that the clients can use.
fn cpus(plan: &Plan) -> usize {
    match plan.cpus.len() {
        0 => host::usable_cpus().len(),
        count => count,
    }
}

#[cfg(test)]
mod tests;
