//! `throng serve MODEL`: a built-in server.

mod turned_away;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Context as _;

use super::values::{self, CpuList};
use super::{Exit, Usage, output, tuning};
use crate::protocol::{self, PROTOCOLS};
use crate::record::Draft;
use crate::registry::{self, Entry as _};
#[cfg(target_os = "linux")]
use crate::serve::Model;
use crate::serve::Server;
use crate::serve::listen::{ACCEPT_BATCH, Listener, Options};
use crate::serve::models::MODELS;
#[cfg(target_os = "linux")]
use crate::serve::processes::PROC;
use crate::serve::server_stats::{Retention, ServerStats};
use crate::serve::tuning::Accept;
use crate::serve::worker::Worker;
use crate::spec::Endpoint;
use crate::sys::process;
use crate::sys::signal::Stop;

#[derive(Debug, clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
#[command(after_help = "\
Examples:
  throng serve epoll
  throng serve prefork --workers 64 --listen 127.0.0.1:0 --log clients.csv
  throng serve epoll --listen unix:/run/app.sock --protocol http

The server is ready when it prints \"listening on ADDRESS\". SIGINT, SIGTERM or SIGHUP stops it. It then \
finishes pending replies and prints totals.")]
pub(super) struct Arguments {
    /// I/O model (`throng list models`).
    model: String,
    /// Address to listen on: HOST:PORT, :PORT or unix:/PATH.
    ///
    /// With port 0, the kernel chooses a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7777", value_parser = Endpoint::to_listen_on)]
    listen: Endpoint,
    /// Allow addresses beyond this machine's loopback. Anyone who reaches the address can connect.
    #[arg(long)]
    allow_remote: bool,
    /// Protocol (`throng list protocols`).
    #[arg(long, default_value = "echo")]
    protocol: String,
    /// Bytes per request, to count echo requests. For http, bytes per reply.
    #[arg(long, value_name = "BYTES", default_value = "1000", value_parser = values::request_size)]
    size: usize,
    /// listen() backlog. The kernel caps it at net.core.somaxconn.
    #[arg(long, value_name = "N", default_value = "4096", value_parser = values::at_least_one)]
    backlog: u32,
    /// Threads or processes, for models with a fixed number [default: 256 in a pool, one per CPU for reactors].
    #[arg(long, value_name = "N", value_parser = values::at_least_one)]
    workers: Option<u32>,
    /// Maximum concurrent clients. Further clients are rejected [default: no limit].
    #[arg(long, value_name = "N", value_parser = values::at_least_one)]
    max_clients: Option<u32>,
    /// Maximum open descriptors (soft RLIMIT_NOFILE) [default: the hard limit].
    #[arg(long, value_name = "N", value_parser = values::number::<u64>(16, u64::MAX))]
    max_descriptors: Option<u64>,
    /// Close connections that are idle for this long [default: never].
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    idle_timeout: Option<Duration>,
    /// Close connections whose request is incomplete this long after its first byte [default: never].
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    request_timeout: Option<Duration>,
    /// Maximum bytes of an upload. Larger uploads are rejected.
    #[arg(long, value_name = "BYTES", default_value_t = protocol::MAX_UPLOAD)]
    max_upload: u64,
    /// CPUs to run on, like 0 or 0,2-3 [default: all].
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuList>,
    /// Enable Nagle's algorithm.
    #[arg(long)]
    delay: bool,
    /// Let several servers listen on the same port (SO_REUSEPORT).
    #[arg(long)]
    reuse_port: bool,
    /// Time limit for pending replies after a signal to stop.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = values::duration)]
    drain: Duration,
    /// Write one row per client to this CSV file at the end. Until then, each client takes 64 bytes of memory, up to a
    /// million clients.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Print the totals as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    tuning: tuning::Arguments,
}

#[cfg(target_os = "linux")]
impl Arguments {
    /// The model, if this machine supports it and it has these options.
    pub(super) fn check(&self) -> anyhow::Result<&'static Model> {
        let model = registry::find("model", MODELS, &self.model)?;
        model.supported()?;
        self.tuning.resolve(model)?;
        Ok(model)
    }

    /// What limits such a server by design, as text; empty if nothing does.
    pub(super) fn limit(&self, model: &Model) -> String {
        match self.tuning.fd_setsize() {
            Some(size) => format!("its sets hold descriptors below {size}"),
            None => model.card.limit.to_owned(),
        }
    }
}

/// Threads of any model may use these until the process exits. They are reachable from a static, so leak checkers do
/// not report them.
static LISTENERS: OnceLock<Vec<Listener>> = OnceLock::new();
static STATS: OnceLock<ServerStats> = OnceLock::new();

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let model = registry::find("model", MODELS, &arguments.model)?;
    model.supported()?;
    let protocol = registry::find("protocol", PROTOCOLS, &arguments.protocol)?;
    protocol.supported()?;
    let tuning = arguments.tuning.resolve(model)?;
    if let Some(address) = arguments.listen.tcp()
        && !arguments.listen.is_local()
        && !arguments.allow_remote
    {
        let address = address.ip();
        return Err(Usage(format!(
            "{address} is not on this machine's loopback: anyone who reaches it could connect; add \
             --allow-remote if the network is yours"
        ))
        .into());
    }
    if arguments.reuse_port && arguments.listen.tcp().is_none() {
        let why = "--reuse-port cannot be used with a unix socket; leave it out";
        return Err(Usage(why.to_owned()).into());
    }
    let log = arguments.log.as_deref().map(create).transpose()?;
    if let Some(CpuList(cpus)) = &arguments.cpus {
        process::bind_to(cpus)?;
    }
    process::raise_descriptor_limit();
    if let Some(most) = arguments.max_descriptors {
        process::lower_descriptor_limit(most).context("cannot lower the descriptor limit")?;
    }
    let worker_layout = model.worker_layout;
    let workers = arguments.workers.map_or_else(
        || worker_layout.members(process::usable_cpus().len()),
        |workers| workers as usize,
    );
    let opened = listen(arguments, worker_layout.listeners(workers), tuning.accept)?;
    let listeners = LISTENERS.get_or_init(|| opened);
    let stop = Stop::install().context("cannot handle signals")?;
    let keeps = match log {
        Some(_) => Retention::Clients,
        None => Retention::Totals,
    };
    let mapped = ServerStats::open(arguments.max_clients.map(u64::from), workers, keeps)
        .context("cannot map counters")?;
    let stats = STATS.get_or_init(|| mapped);
    let listener = &listeners[0];
    announce(&format!(
        "listening on {} ({}, {})",
        listener.address(),
        model.info.name,
        protocol.name()
    ))?;
    let offer = protocol::Offer {
        size: arguments.size,
        max_upload: arguments.max_upload,
        ..protocol::Offer::default()
    };
    #[cfg(target_os = "linux")]
    let offer = protocol::Offer {
        processes: &PROC,
        ..offer
    };
    let server = Server {
        listener,
        listeners,
        stop,
        protocol,
        offer,
        stats,
        worker: Worker::ANY,
        workers,
        tuning,
        drain: arguments.drain,
        idle_timeout: arguments.idle_timeout,
        request_timeout: arguments.request_timeout,
    };
    // State shared by all connections is created now, so that children inherit it.
    drop(server.session());
    let ran = (model.run)(server);
    listener.remove_file();
    ran?;
    finish(arguments, stats, log)?;
    Ok(Exit::Done)
}

/// Creates `count` sockets that listen on the same address.
fn listen(arguments: &Arguments, count: usize, accept: Accept) -> anyhow::Result<Vec<Listener>> {
    let options = Options {
        address: arguments.listen.clone(),
        backlog: arguments.backlog,
        reuse_port: arguments.reuse_port || (count > 1 && accept == Accept::ReusePort),
        // From a shared queue, each loop takes one client at a time, or the first to wake up would take all.
        batch: if accept == Accept::Shared {
            1
        } else {
            ACCEPT_BATCH
        },
        nodelay: !arguments.delay,
    };
    let mut listeners =
        vec![Listener::bind(&options).map_err(|e| cannot_listen(&options.address, &e))?];
    while listeners.len() < count {
        let another = listeners[0].sibling();
        listeners.push(another.map_err(|e| cannot_listen(listeners[0].address(), &e))?);
    }
    Ok(listeners)
}

/// Why a server cannot listen on this address, and the remedy.
pub(super) fn cannot_listen(endpoint: &Endpoint, error: &std::io::Error) -> anyhow::Error {
    let Some(address) = endpoint.tcp() else {
        let why = match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                "another server listens there; stop it, or choose another path".to_owned()
            }
            std::io::ErrorKind::NotFound => "its directory does not exist; create it".to_owned(),
            _ => error.to_string(),
        };
        return anyhow::anyhow!("cannot listen on {endpoint}: {why}");
    };
    let why = match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "the port is in use; choose another, or 0 for any free port".to_owned()
        }
        std::io::ErrorKind::PermissionDenied => format!(
            "port {} is privileged; choose one from 1024, or run with CAP_NET_BIND_SERVICE",
            address.port()
        ),
        std::io::ErrorKind::AddrNotAvailable => format!(
            "{} is not an address of this machine; `ip address` lists them",
            address.ip()
        ),
        _ => error.to_string(),
    };
    anyhow::anyhow!("cannot listen on {address}: {why}")
}

fn create(path: &Path) -> Result<Draft, Usage> {
    Draft::named(path).map_err(|error| Usage(format!("cannot write {}: {error}", path.display())))
}

/// Prints the line that marks the server as ready. It does not matter if the reader has closed its end.
fn announce(line: &str) -> anyhow::Result<()> {
    output::text(line)?;
    let _ = std::io::stdout().flush();
    Ok(())
}

fn finish(arguments: &Arguments, stats: &ServerStats, log: Option<Draft>) -> anyhow::Result<()> {
    if let (Some(mut log), Some(path)) = (log, &arguments.log) {
        stats
            .write_clients(&mut log)
            .and_then(|()| log.finish())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let counts = stats.counts();
    for sentence in turned_away::sentences(&counts.refused) {
        output::warning(&sentence);
    }
    if arguments.json {
        return output::json_line(&counts);
    }
    for (number, worker) in counts.workers.iter().enumerate() {
        let (clients, requests) = (worker.clients, worker.requests);
        output::text(&format!(
            "worker {number}: {clients} clients, {requests} requests"
        ))?;
    }
    let refused: u64 = counts.refused.values().sum();
    output::text(&format!(
        "served {} clients (at most {} at once, {refused} rejected), {} requests, \
         {} bytes in, {} bytes out",
        counts.accepted, counts.peak_open, counts.requests, counts.bytes_in, counts.bytes_out
    ))
}
