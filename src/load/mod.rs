//! Part 2: the crowd of clients.
//!
//! [`run`] starts worker threads that share nothing but a few counters (`worker`), leads them
//! through the phases of a load ([`phase`]) and puts together what they saw (`tally`).

mod client;
pub mod foresee;
pub mod phase;
pub mod route;
mod shared;
pub mod socket;
mod tally;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rustix::thread::CpuSet;

use crate::protocol::{self, Protocol};
use crate::sys::descriptors;
use phase::{Next, Phase, Phases, Progress};
use route::Routes;
use shared::Shared;
pub use tally::Outcome;
use worker::Worker;

/// A load, ready to run.
#[derive(Clone)]
pub struct Plan {
    /// Where to connect to, and from where.
    pub routes: Routes,
    /// What is set on every socket.
    pub socket: socket::Options,
    /// What is said.
    pub protocol: &'static dyn Protocol,
    /// How it is said.
    pub settings: protocol::Settings,
    /// Clients, each with one connection and one request at a time.
    pub clients: u32,
    /// When it is enough.
    pub until: Until,
    /// Time before replies count, once every client had its first answer.
    pub warm_up: Duration,
    /// How long a client may take to connect.
    pub connect_timeout: Duration,
    /// Without any new first answer for this long, those still waiting count as never served.
    pub patience: Duration,
    /// Whether clients that had their first answer go on asking while others still wait for
    /// theirs. A server that does not get to accepting then keeps some waiting for long.
    pub eager: bool,
    /// How long it may be silent before the last replies count as missing.
    pub grace: Duration,
    /// Worker threads.
    pub threads: usize,
    /// Whether each of them has a descriptor table of its own.
    pub own_tables: bool,
    /// CPUs that the workers are bound to in turn; empty: not bound.
    pub cpus: Vec<u32>,
}

/// When a load is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// After a steady part of this length.
    Duration(Duration),
    /// After so many requests over all clients, divided evenly; warm-up does not apply.
    Requests(u64),
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

    /// Whether to stop early and keep what was measured.
    fn interrupted(&self) -> bool;
}

/// Nanoseconds on the clock that all processes of a machine share (`CLOCK_MONOTONIC`).
pub fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Runs a load to its end.
///
/// # Errors
/// When it cannot be started, or the watcher gives up. What servers do wrong is no error but part
/// of the outcome.
pub fn run(plan: &Plan, watcher: &mut dyn Watcher) -> anyhow::Result<Outcome> {
    let threads = plan.threads.clamp(1, plan.clients.max(1) as usize);
    let shared = Arc::new(Shared::new(threads, plan));
    watcher.enter(Phase::Settle, &Progress::default())?;
    let workers: Vec<_> = (0..threads)
        .map(|number| start_worker(plan, number, threads, &shared))
        .collect::<anyhow::Result<_>>()
        .inspect_err(|_| shared.close())?;
    let led = lead(plan, &shared, watcher);
    shared.close();
    let tallies = workers
        .into_iter()
        .map(|worker| {
            worker
                .join()
                .map_err(|_| anyhow::anyhow!("a load thread panicked"))?
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let ending = led?;
    Ok(Outcome::merge(
        tallies,
        &shared.window(),
        ending.name(),
        threads,
    ))
}

fn start_worker(
    plan: &Plan,
    number: usize,
    threads: usize,
    shared: &Arc<Shared>,
) -> anyhow::Result<std::thread::JoinHandle<anyhow::Result<tally::WorkerTally>>> {
    let (plan, shared) = (plan.clone(), Arc::clone(shared));
    let cpu = (!plan.cpus.is_empty()).then(|| plan.cpus[number % plan.cpus.len()]);
    std::thread::Builder::new()
        .name(format!("load-{number}"))
        .spawn(move || {
            if let Some(cpu) = cpu {
                let mut set = CpuSet::new();
                set.set(cpu as usize);
                rustix::thread::sched_setaffinity(None, &set)
                    .with_context(|| format!("cannot bind a load thread to CPU {cpu}"))?;
            }
            // Before it opens anything: then the table that the others copy has no socket in it.
            if plan.own_tables {
                descriptors::own_table().context("cannot take a descriptor table of its own")?;
            }
            Worker::new(&plan, number, threads, shared)?.run()
        })
        .context("cannot start a load thread")
}

/// Leads the workers through the phases until connections may be closed.
fn lead(plan: &Plan, shared: &Shared, watcher: &mut dyn Watcher) -> anyhow::Result<phase::Ending> {
    let mut phases = Phases::new(plan, now());
    loop {
        let progress = shared.progress();
        if watcher.interrupted() {
            phases.interrupt(now());
        }
        match phases.advance(now(), &progress) {
            Next::Wait(limit) => {
                watcher.watch(
                    phases.phase(),
                    &progress,
                    phases.share_done(now(), &progress),
                );
                std::thread::sleep(limit);
            }
            Next::Enter(phase) => {
                watcher.enter(phase, &progress)?;
                phases.entered(phase, now());
            }
            Next::Done(ending) => return Ok(ending),
        }
        shared.set_window(phases.window());
    }
}
