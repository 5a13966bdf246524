//! Part 2: the crowd of clients.
//!
//! [`run`] starts worker threads that share nothing but a few counters (`worker`), leads them
//! through the phases of a load ([`phase`]) and puts together what they saw (`result`). A worker's
//! clients are a state machine without sockets (`pool`), whose bytes an engine moves (`engine`).

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
use client_stats::Worked;
use phase::{Next, Phases, Progress};
use result::Led;
pub use result::LoadResult;
use route::Routes;
use shared::Shared;
use throng_protocol::{self as protocol, Dialogue};
use throng_record::Phase;
pub use throng_record::load_event::{NextSlice, SliceStats};
pub use throng_record::spec::{Close, Engine, Until};
use throng_record::spec::{LoadSpec, Share};
use throng_sys::priority::Raised;
use throng_sys::{clock, descriptors};
use times_so_far::TimesSoFar;
use worker::Worker;

/// How long servers may be silent before the last replies count as missing.
const GRACE: Duration = Duration::from_secs(2);

/// A load as one process runs it, with what it takes from the machine.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each one is a choice of its own"
)]
#[derive(Clone)]
pub struct Plan {
    /// Where clients connect to, and from where.
    pub routes: Routes,
    /// How their sockets are set.
    pub socket: socket::Options,
    /// How their connections are encrypted; none: not at all.
    pub tls: Option<Arc<throng_tls::Client>>,
    /// What is said.
    pub dialogue: &'static dyn Dialogue,
    /// How it is said.
    pub settings: protocol::Settings,
    /// Clients, each with one connection at a time.
    pub clients: u32,
    /// When requests come due in an open loop; none: a closed loop.
    pub rate: Option<Rate>,
    /// How long clients of a closed loop think.
    pub think: Think,
    /// Requests that a client may have out at once.
    pub pipeline: u16,
    /// When it is enough.
    pub until: Until,
    /// Whether it comes in slices, each at a word of the watcher, with rests in between; then this says when it is
    /// enough.
    pub in_slices: bool,
    /// Most clients that are there at the same time; none: all of them. For clients with a job each, who
    /// come as others go.
    pub at_once: Option<u32>,
    /// Time before replies count, once every client had its first answer.
    pub warm_up: Duration,
    /// The longest that this may be until the server's rate is level.
    pub longest_warm_up: Duration,
    /// Clients that connect for the first time in a second; none: as fast as they can.
    pub connects_per_s: Option<f64>,
    /// How long a client may take to connect.
    pub connect_timeout: Duration,
    /// How long a reply may take.
    pub request_timeout: Option<Duration>,
    /// Requests after which a connection is closed and the next one made.
    pub requests_per_connection: Option<u32>,
    /// Time after which it is.
    pub lifetime: Option<Duration>,
    /// How it is closed then.
    pub close: Close,
    /// Whether a client whose connection failed makes another one.
    pub reconnect: bool,
    /// Without any new first answer for this long, those still waiting count as never served.
    pub patience: Duration,
    /// Whether clients that had their first answer go on asking while others still wait for
    /// theirs. A server that does not get to accepting then keeps some waiting for long.
    pub eager: bool,
    /// How long it may be silent before the last replies count as missing.
    pub grace: Duration,
    /// Clients beside the crowd that ask seldom, to see what response time the crowd leaves.
    pub probes: Option<Probes>,
    /// What moves the bytes.
    pub engine: Engine,
    /// Worker threads.
    pub threads: usize,
    /// Whether each client has a thread of its own.
    pub one_each: bool,
    /// Whether each of them has a descriptor table of its own.
    pub own_tables: bool,
    /// CPUs that the workers are bound to in turn; empty: not bound.
    pub cpus: Vec<u32>,
    /// From which everything random is drawn.
    pub seed: u64,
    /// Which part of all that is this process's; numbers of clients, requests and the like are those of all
    /// parts together.
    pub share: Share,
    /// Whether the result is to say of each client what several parts need to be put together.
    pub gathers_clients: bool,
}

impl Plan {
    /// A load as it is on this machine, where it is all of one process with one thread.
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
            patience: load.patience,
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

    /// Whether requests come due by themselves, not when the last reply has come.
    fn has_dues(&self) -> bool {
        self.rate.is_some() || self.think != Think::None
    }

    /// Requests of each client, where each has so many to make and then is done. Clients beside such a
    /// crowd have none.
    fn job(&self) -> Option<u32> {
        match (self.until, self.rate) {
            (Until::Each { requests, .. }, None) => Some(requests),
            _ => None,
        }
    }

    /// Clients of this process.
    fn own_clients(&self) -> u32 {
        self.share.of_clients(self.clients)
    }

    /// Most of these that are there at the same time.
    fn most_at_once(&self) -> u32 {
        let at_once = self.at_once.unwrap_or(self.clients).min(self.clients);
        self.share.of_clients(at_once)
    }

    /// When its part of the load is enough.
    fn own_until(&self) -> Until {
        match self.until {
            // Of a closed loop they are divided among the clients; of an open one, among the workers.
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

    /// How long nothing may happen by plan, in nanoseconds.
    fn longest_pause(&self) -> u64 {
        let between_dues = self.rate.map_or(0, |rate| {
            let at_once = match rate.spacing {
                Spacing::Burst(size) => f64::from(size),
                Spacing::Constant => 1.0,
                Spacing::Poisson => LONG_BY_CHANCE,
            };
            let slowest = rate.from_per_s.max(rate.to_per_s / LONG_BY_CHANCE);
            let slowest = slowest / f64::from(self.share.parts());
            (at_once * 1e9 / slowest) as u64
        });
        between_dues.max(self.think.longest().as_nanos() as u64)
    }

    /// The load that the probe clients are.
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

/// Clients that ask seldom beside a crowd.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probes {
    /// How many.
    pub clients: u32,
    /// Requests a second of each, at random times.
    pub rate_per_s: f64,
}

/// Whoever runs a load watches and leads it through this.
pub trait Watcher {
    /// A phase begins; returns once it may.
    ///
    /// # Errors
    /// Ends the load.
    fn enter(&mut self, phase: Phase, progress: &Progress) -> anyhow::Result<()>;

    /// Called many times a second while a phase lasts.
    fn watch(&mut self, phase: Phase, progress: &Progress, share_done: f64);

    /// How often it wants to see the latencies so far; each time costs the workers a copy of them.
    fn times_every(&self) -> Option<Duration> {
        None
    }

    /// The latencies so far, in nanoseconds: response times of an open loop, else service times.
    fn see_times(&mut self, _times: &Histogram<u64>) {}

    /// Whether to stop early and keep what was measured.
    fn interrupted(&self) -> bool;

    /// The next slice; none: there is no other. `last` is what came of the one before. Asked of a load in slices only.
    ///
    /// # Errors
    /// Ends the load.
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
/// When it cannot be started, or the watcher gives up. What servers do wrong is no error but part
/// of the result.
pub fn run(plan: &Plan, watcher: &mut dyn Watcher) -> anyhow::Result<LoadResult> {
    let threads = plan.threads.clamp(1, plan.most_at_once().max(1) as usize);
    let has_probes = |probes: &Probes| plan.share.of_clients(probes.clients) > 0;
    let probes = plan.probes.filter(has_probes);
    let probes = probes.map(|probes| Arc::new(plan.of_probes(probes)));
    watcher.enter(Phase::Connect, &Progress::default())?;
    if plan.job().is_some() {
        // All that clients do counts, so who looks before and at the beginning does so before they come.
        watcher.enter(Phase::WarmUp, &Progress::default())?;
        watcher.enter(Phase::Measure, &Progress::default())?;
    }
    let shared = Arc::new(Shared::new(threads, plan));
    let pool = Arc::new(plan.clone());
    let started = start_workers(&pool, threads, probes.as_ref(), &shared);
    let workers = started.inspect_err(|_| shared.close());
    shared.begin();
    let workers = workers?;
    // Among thousands of threads this one would seldom run.
    let priority = plan.one_each.then(Raised::new);
    let led = lead(plan, &shared, watcher);
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
    let led = led?;
    let of_probes = probes.and_then(|_| worked.pop());
    Ok(LoadResult::of(plan, &led, worked, of_probes))
}

/// The workers of the crowd, and after them the one of the probe clients.
fn start_workers(
    pool: &Arc<Plan>,
    threads: usize,
    probes: Option<&Arc<Plan>>,
    shared: &Arc<Shared>,
) -> anyhow::Result<Vec<JoinHandle<anyhow::Result<Worked>>>> {
    let of_crowd = (0..threads).map(|number| (pool, number, threads));
    // Nobody waits for what probe clients do.
    let of_probes = probes.map(|probes| (probes, 0, 1));
    of_crowd
        .chain(of_probes)
        .enumerate()
        .map(|(place, (plan, number, workers))| {
            let (plan, shared) = (Arc::clone(plan), Arc::clone(shared));
            std::thread::Builder::new()
                .name(format!("load-{place}"))
                .spawn(move || {
                    prepare_thread(&plan, place)?;
                    let tells = (place < threads).then_some(place);
                    let (number, workers) = plan.share.worker(number, workers);
                    Worker::new(&plan, number, workers, &shared, tells)?.run()
                })
                .context("cannot start a load thread")
        })
        .collect()
}

/// Before a thread opens anything: then a table that others copy has no socket in it.
fn prepare_thread(plan: &Plan, place: usize) -> anyhow::Result<()> {
    if plan.own_tables {
        descriptors::own_table().context("cannot take a descriptor table of its own")?;
    }
    if !plan.cpus.is_empty() {
        let cpu = plan.cpus[place % plan.cpus.len()];
        let mut set = CpuSet::new();
        set.set(cpu as usize);
        rustix::thread::sched_setaffinity(None, &set)
            .with_context(|| format!("cannot bind a load thread to CPU {cpu}"))?;
    }
    if plan.has_dues() {
        // Waits may else overrun by 50 us. What it cannot do shows in the lateness.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    }
    Ok(())
}

/// Leads the workers through the phases until connections may be closed.
fn lead(plan: &Plan, shared: &Shared, watcher: &mut dyn Watcher) -> anyhow::Result<Led> {
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
                times.look(watcher, shared);
                std::thread::sleep(limit);
            }
            Next::Enter(phase) => {
                let slices = shared.slices.as_ref();
                let slices = slices.filter(|_| phase == Phase::Measure);
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
                return Ok(Led {
                    window: shared.window(),
                    stopped_by,
                    cpu: cpu.in_window(),
                    warm_up: phases.warm_up_ended(),
                });
            }
        }
        shared.set_window(phases.window());
    }
}

/// CPU time of this process from the beginning of the window to its end.
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
