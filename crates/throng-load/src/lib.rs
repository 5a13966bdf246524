//! Part 2: the load generator.
//!
//! [`run`] starts worker threads that share only a few counters (`worker`), leads them through the phases of a load
//! ([`phase`]) and merges their results (`result`). A worker's clients are a state machine without sockets (`pool`);
//! an engine (`engine`) moves their bytes.
#![cfg_attr(
    test,
    expect(
        clippy::shadow_unrelated,
        reason = "a test looks at several cases in turn"
    )
)]

pub mod arrival;
mod client;
mod client_stats;
mod engine;
#[cfg(test)]
mod fixture;
pub mod phase;
mod pool;
pub mod preflight;
mod result;
pub mod route;
mod shared;
mod slices;
pub mod socket;
mod times_so_far;
mod worker;

use std::num::NonZeroU64;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use hdrhistogram::Histogram;
use rustix::thread::CpuSet;

use arrival::{LONG_BY_CHANCE, Rate, Spacing, Think};
use client_stats::WorkerStats;
use phase::{Next, Phases, Progress};
use result::LeaderResult;
pub use result::LoadResult;
use route::Routes;
use shared::Shared;
use throng_protocol::{self as protocol, Dialogue};
pub use throng_record::load_event::{NextSlice, SliceStats};
use throng_record::{Phase, StoppedBy};
pub use throng_spec::{Close, Engine, Until};
use throng_spec::{LoadSpec, Share};
use throng_sys::priority::Raised;
use throng_sys::{clock, descriptors};
use times_so_far::TimesSoFar;
use worker::Worker;

/// How long servers may be silent before outstanding replies count as missing.
const GRACE: Duration = Duration::from_secs(2);

/// A load as run by one process, with its use of the machine.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each one is a choice of its own"
)]
#[derive(Clone)]
pub struct Plan {
    /// The targets of clients, and their source addresses.
    pub routes: Routes,
    /// Socket options.
    pub socket: socket::Options,
    /// TLS; `None` for plaintext.
    pub tls: Option<Arc<throng_tls::Client>>,
    /// The dialogue.
    pub dialogue: &'static dyn Dialogue,
    /// Parameters of the dialogue.
    pub settings: protocol::Settings,
    /// Clients, each with one connection at a time.
    pub clients: u32,
    /// The schedule of an open loop; `None` for a closed loop.
    pub rate: Option<Rate>,
    /// Think time in a closed loop.
    pub think: Think,
    /// Maximum open requests per client.
    pub pipeline: u16,
    /// When the load ends.
    pub until: Until,
    /// Whether the load comes in slices with pauses between them. The watcher starts the slices, and then ends the
    /// load.
    pub in_slices: bool,
    /// Maximum number of concurrent clients; `None` for all of them. For short-lived clients, each of which replaces
    /// another.
    pub at_once: Option<u32>,
    /// Warm-up time, once every client has had its first reply.
    pub warm_up: Duration,
    /// Longest warm-up time while the server's rate is not level.
    pub longest_warm_up: Duration,
    /// Number of clients that connect per second; `None` for as fast as possible.
    pub connects_per_s: Option<f64>,
    /// Connection timeout.
    pub connect_timeout: Duration,
    /// Request timeout.
    pub request_timeout: Option<Duration>,
    /// Number of requests after which a client reconnects.
    pub requests_per_connection: Option<u32>,
    /// Time after which a client reconnects.
    pub lifetime: Option<Duration>,
    /// How connections are closed before a client reconnects.
    pub close: Close,
    /// Whether a client reconnects after a failure.
    pub reconnect: bool,
    /// If no first reply arrives for this long, clients without one count as never served.
    pub first_reply_timeout: Duration,
    /// Whether clients that have had their first reply continue while others still wait for theirs. If the server does
    /// not get around to accepting then, some clients wait for a long time.
    pub eager: bool,
    /// How long servers may be silent before outstanding replies count as missing.
    pub grace: Duration,
    /// Extra clients with few requests, to measure response time under this load.
    pub probes: Option<Probes>,
    /// The engine, which moves the bytes.
    pub engine: Engine,
    /// Worker threads.
    pub threads: usize,
    /// Whether each client has its own thread.
    pub one_each: bool,
    /// Whether each thread has its own descriptor table.
    pub own_tables: bool,
    /// CPUs to which the workers are assigned in turn; empty for any CPU.
    pub cpus: Vec<u32>,
    /// Seed of all random choices.
    pub seed: u64,
    /// The share of this process. Numbers of clients, requests and the like are totals over all processes.
    pub share: Share,
    /// Whether the result includes the per-client data that merging several processes needs.
    pub gathers_clients: bool,
}

impl Plan {
    /// A load for a single process with one thread.
    pub fn new(
        load: &LoadSpec,
        routes: Routes,
        dialogue: &'static dyn Dialogue,
        settings: protocol::Settings,
    ) -> Self {
        let until = load.until();
        let rate = load.rate.map(|range| Rate {
            from_per_s: range.from_per_s,
            to_per_s: range.to_per_s,
            rise: match until {
                Until::Duration(duration) => duration + load.warm_up,
                Until::Requests(_) | Until::Bytes(_) | Until::Each { .. } => Duration::ZERO,
            },
            spacing: load.arrival.unwrap_or(Spacing::Constant),
        });
        Self {
            routes,
            socket: socket::Options {
                nodelay: !load.delay,
                syn_retries: load.syn_retries,
            },
            tls: None,
            dialogue,
            settings,
            clients: load.clients,
            rate,
            think: load.think,
            pipeline: load.pipeline,
            until,
            in_slices: false,
            at_once: load.at_once,
            warm_up: load.warm_up,
            longest_warm_up: load.longest_warm_up(),
            connects_per_s: load.connects_per_s(),
            connect_timeout: load.connect_timeout,
            request_timeout: load.request_timeout,
            requests_per_connection: load.requests_per_connection,
            lifetime: load.lifetime,
            close: load.close,
            reconnect: load.reconnect,
            first_reply_timeout: load.first_reply_timeout,
            eager: load.eager,
            grace: GRACE,
            probes: load.probe_clients.map(|clients| Probes {
                clients,
                rate_per_s: load.probe_rate,
            }),
            engine: load.engine,
            threads: 1,
            one_each: load.client_threads.is_some(),
            own_tables: false,
            cpus: Vec::new(),
            seed: load.seed,
            share: Share::WHOLE,
            gathers_clients: false,
        }
    }

    /// Whether requests are due independently of replies.
    fn has_due_times(&self) -> bool {
        self.rate.is_some() || self.think != Think::None
    }

    /// Whether clients are short-lived. Probe clients, which have a rate, are not.
    fn has_jobs(&self) -> bool {
        matches!(self.until, Until::Each { .. }) && self.rate.is_none()
    }

    /// How long each client lives; `None` without a limit.
    fn life(&self) -> Option<Duration> {
        match self.until {
            Until::Each { live, .. } if self.rate.is_none() => live,
            _ => None,
        }
    }

    /// Number of clients in this process.
    fn own_clients(&self) -> u32 {
        self.share.of_clients(self.clients)
    }

    /// Maximum number of concurrent clients in this process.
    fn most_at_once(&self) -> u32 {
        let at_once = self.at_once.unwrap_or(self.clients).min(self.clients);
        self.share.of_clients(at_once)
    }

    /// When this process's share of the load ends.
    fn own_until(&self) -> Until {
        match self.until {
            // In a closed loop, requests are divided among the clients; in an open one, among the workers.
            Until::Requests(total) if self.rate.is_none() => {
                let clients = u64::from(self.clients.max(1));
                let each = total / clients * u64::from(self.own_clients());
                Until::Requests(each + self.share.of(total % clients))
            }
            Until::Requests(total) => Until::Requests(self.share.of(total)),
            Until::Bytes(total) => Until::Bytes(self.share.of(total)),
            until => until,
        }
    }

    /// Longest time without any event by design, in nanoseconds.
    fn longest_pause(&self) -> u64 {
        let between_dues = self.rate.map_or(0, |rate| {
            let at_once = match rate.spacing {
                Spacing::Burst(size) => f64::from(size),
                Spacing::Constant => 1.0,
                Spacing::Poisson => LONG_BY_CHANCE,
            };
            let slowest_total = rate.from_per_s.max(rate.to_per_s / LONG_BY_CHANCE);
            let slowest = slowest_total / f64::from(self.share.parts());
            (at_once * 1e9 / slowest) as u64
        });
        between_dues
            .max(self.think.longest().as_nanos() as u64)
            .max(pool::longest_delay(self).as_nanos() as u64)
    }

    /// The load of the probe clients.
    fn of_probes(&self, probes: Probes) -> Self {
        let rate_per_s = f64::from(probes.clients) * probes.rate_per_s;
        Self {
            clients: probes.clients,
            rate: Some(Rate {
                from_per_s: rate_per_s,
                to_per_s: rate_per_s,
                rise: Duration::ZERO,
                spacing: Spacing::Poisson,
            }),
            think: Think::None,
            pipeline: 1,
            at_once: None,
            connects_per_s: None,
            eager: false,
            probes: None,
            engine: Engine::Epoll,
            threads: 1,
            one_each: false,
            ..self.clone()
        }
    }
}

/// Extra clients with few requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probes {
    pub clients: u32,
    /// Requests per second of each, at random times.
    pub rate_per_s: f64,
}

/// The caller's view and control of a running load.
pub trait Watcher {
    /// A phase begins. Returns as soon as it may begin.
    ///
    /// # Errors
    /// An error ends the load.
    fn enter(&mut self, phase: Phase, progress: &Progress) -> anyhow::Result<()>;

    /// Called many times per second during a phase.
    fn watch(&mut self, phase: Phase, progress: &Progress, share_done: f64);

    /// Interval at which the watcher wants the latencies so far. Each time, the workers have to make a copy.
    fn times_every(&self) -> Option<Duration> {
        None
    }

    /// The latencies so far, in nanoseconds: response times in an open loop, otherwise service times.
    fn on_times(&mut self, _times: &Histogram<u64>) {}

    /// Whether to stop early and keep the results so far.
    fn interrupted(&self) -> bool;

    /// The next slice; `None` if there are no more. `last` is the result of the previous one. Called only for a load
    /// in slices.
    ///
    /// # Errors
    /// An error ends the load.
    fn next_slice(&mut self, _last: Option<SliceStats>) -> anyhow::Result<Option<NextSlice>> {
        Ok(None)
    }
}

/// Nanoseconds on the clock that all processes of a machine share (`CLOCK_MONOTONIC`).
#[inline]
pub fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Runs a load to its end.
///
/// # Errors
/// If it cannot be started, or the watcher fails. Faults of servers are not errors but part of the result.
pub fn run(plan: &Plan, watcher: &mut dyn Watcher) -> anyhow::Result<LoadResult> {
    let threads = plan.threads.clamp(1, plan.most_at_once().max(1) as usize);
    let has_probes = |probes: &Probes| plan.share.of_clients(probes.clients) > 0;
    let probes = plan
        .probes
        .filter(has_probes)
        .map(|probes| Arc::new(plan.of_probes(probes)));
    watcher.enter(Phase::Connect, &Progress::default())?;
    if plan.has_jobs() {
        // With short-lived clients, everything counts, so probes take their first samples before any client connects.
        watcher.enter(Phase::WarmUp, &Progress::default())?;
        watcher.enter(Phase::Measure, &Progress::default())?;
    }
    let shared = Arc::new(Shared::new(threads, plan));
    let pool = Arc::new(plan.clone());
    let started = start_workers(&pool, threads, probes.as_ref(), &shared);
    let all_started = started.inspect_err(|_| shared.close());
    shared.begin();
    let workers = all_started?;
    // Among thousands of threads, this one would rarely run.
    let priority = plan.one_each.then(Raised::new);
    let outcome = lead(plan, &shared, watcher);
    drop(priority);
    shared.close();
    let mut worked = workers
        .into_iter()
        .map(|worker| {
            worker
                .join()
                .map_err(|_| anyhow::anyhow!("a load thread panicked"))?
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let led = outcome?;
    let of_probes = probes.and_then(|_| worked.pop());
    Ok(LoadResult::of(plan, &led, worked, of_probes))
}

/// Starts the workers of the main clients, then the worker of the probe clients.
fn start_workers(
    pool: &Arc<Plan>,
    threads: usize,
    probes: Option<&Arc<Plan>>,
    shared: &Arc<Shared>,
) -> anyhow::Result<Vec<JoinHandle<anyhow::Result<WorkerStats>>>> {
    let of_clients = (0..threads).map(|number| (pool, number, threads));
    // Nothing waits for probe clients.
    let of_probes = probes.map(|probes| (probes, 0, 1));
    of_clients
        .chain(of_probes)
        .enumerate()
        .map(|(place, (plan, number, workers))| {
            let (plan, shared) = (Arc::clone(plan), Arc::clone(shared));
            std::thread::Builder::new()
                .name(format!("load-{place}"))
                .spawn(move || {
                    prepare_thread(&plan, place)?;
                    let reports_as = (place < threads).then_some(place);
                    let (number, workers) = plan.share.worker(number, workers);
                    Worker::new(&plan, number, workers, &shared, reports_as)?.run()
                })
                .context("cannot start a load thread")
        })
        .collect()
}

/// Prepares a thread before it opens anything, so that tables copied later contain no sockets.
fn prepare_thread(plan: &Plan, place: usize) -> anyhow::Result<()> {
    if plan.own_tables {
        descriptors::own_table().context("cannot create a separate descriptor table")?;
    }
    if !plan.cpus.is_empty() {
        let cpu = plan.cpus[place % plan.cpus.len()];
        let mut set = CpuSet::new();
        set.set(cpu as usize);
        rustix::thread::sched_setaffinity(None, &set)
            .with_context(|| format!("cannot bind a load thread to CPU {cpu}"))?;
    }
    if plan.has_due_times() {
        // Otherwise, waits may overrun by 50 us. If this fails, it shows in the lateness.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    }
    Ok(())
}

/// Leads the workers through the phases until connections may be closed.
fn lead(plan: &Plan, shared: &Shared, watcher: &mut dyn Watcher) -> anyhow::Result<LeaderResult> {
    let mut phases = Phases::new(plan, shared.began());
    let mut cpu = CpuMeter::default();
    let mut times = TimesSoFar::new();
    cpu.enter(phases.phase(), plan.until);
    loop {
        let progress = shared.progress();
        if watcher.interrupted() {
            phases.interrupt(now());
        }
        match phases.advance(now(), &progress) {
            Next::Wait(limit) => {
                let share = phases.share_done(now(), &progress);
                watcher.watch(phases.phase(), &progress, share);
                times.update(watcher, shared);
                std::thread::sleep(limit);
            }
            Next::Enter(phase) => {
                let slices = shared.slices.as_ref().filter(|_| phase == Phase::Measure);
                if let Some(slices) = slices {
                    slices.rest(plan.grace);
                }
                cpu.enter(phase, plan.until);
                watcher.enter(phase, &progress)?;
                if phase == Phase::Measure {
                    times.begin(watcher);
                }
                phases.entered(phase, now());
                if let Some(slices) = slices {
                    shared.set_window(phases.window());
                    slices.lead(watcher, plan.grace)?;
                    phases.finish(now());
                }
            }
            Next::Done(stopped_by) => {
                return Ok(LeaderResult {
                    window: shared.window(),
                    stopped_by,
                    // The window of a load that fell silent ended long before the load did.
                    cpu: cpu.in_window().filter(|_| stopped_by != StoppedBy::Silence),
                    warm_up: phases.warm_up_ended(),
                });
            }
        }
        shared.set_window(phases.window());
    }
}

/// CPU time of this process from the start to the end of the window.
#[derive(Default)]
struct CpuMeter {
    from: Option<Duration>,
    until: Option<Duration>,
}

impl CpuMeter {
    fn enter(&mut self, phase: Phase, until: Until) {
        let begins = match until {
            Until::Duration(_) | Until::Each { .. } => Phase::Measure,
            Until::Requests(_) | Until::Bytes(_) => Phase::Connect,
        };
        if phase == begins {
            self.from = Some(clock::own_cpu_time());
        } else if matches!(phase, Phase::Drain | Phase::Idle) && self.until.is_none() {
            self.until = Some(clock::own_cpu_time());
        }
    }

    fn in_window(&self) -> Option<Duration> {
        Some(self.until?.saturating_sub(self.from?))
    }
}
