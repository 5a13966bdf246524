//! The MPI process of a rank. It forwards messages between its own worker and the workers of other ranks, compares
//! clocks, and detects lost ranks.
//!
//! A rank has two processes because MPI may end its own process at any moment: a launcher kills the rest of a failed
//! job, and the library exits after a broken connection. Results must survive both. Servers and loads must not inherit
//! MPI's descriptors. All ranks communicate only with the leading rank, so a dead rank breaks no connection between
//! two others.
//!
//! A relay never blocks in MPI, which would spin: it sleeps between polls. It calls `MPI_Finalize` only if all ranks can
//! do so.

mod clocks;
mod exchange;
mod following;
pub(crate) mod launcher;
mod leading;
mod presence;
mod worker;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use mpi::Threading;
use mpi::environment::Universe;
use mpi::traits::Communicator as _;
use throng::sys::signal::Stop;

use crate::frame::{ControlMessage, Frame};
use exchange::{Exchange, Kind, Message};
use worker::Worker;

/// The environment variable with the silence limit of a rank, in seconds.
const SILENCE: &str = "THRONG_SILENCE";
/// The default silence limit, in seconds.
const SILENCE_S: f64 = 10.0;
/// Poll intervals while no messages are expected: for the leading rank, which receives all reports, and for the
/// others.
const IDLE_LEADING: Duration = Duration::from_millis(5);
const IDLE: Duration = Duration::from_millis(10);
/// Poll intervals with messages in transit and during clock comparisons.
const BUSY: Duration = Duration::from_micros(200);
const QUICK: Duration = Duration::from_micros(10);
/// Time limit for sending the last messages.
const LEAVE_LIMIT: Duration = Duration::from_secs(1);
/// Time limit for `MPI_Finalize`.
const FINALIZE_LIMIT: Duration = Duration::from_secs(10);

/// State common to both kinds of relay.
struct Relay {
    ranks: usize,
    exchange: Exchange,
    worker: Worker,
    /// The silence limit of a rank.
    silence: Duration,
    /// Poll interval while no messages are expected.
    idle: Duration,
    /// Polls are frequent until this time.
    quick_until: Instant,
    stop: Stop,
}

/// How a relay ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct End {
    /// Whether all ranks can end together.
    clean: bool,
    code: u8,
}

/// Behaviour that differs between relays.
trait Role {
    /// Handles a message from the worker.
    fn on_worker_frame(&mut self, relay: &mut Relay, frame: Frame);
    /// Handles a message from another rank's relay.
    fn on_rank_message(&mut self, relay: &mut Relay, message: Message);
    /// Called regularly. Returns the outcome once the run is over.
    fn tick(&mut self, relay: &mut Relay, now: Instant) -> Option<End>;
}

/// Runs the relay of this rank; runs `alone` instead if it is the only rank.
pub(crate) fn run(alone: impl FnOnce() -> ExitCode) -> anyhow::Result<ExitCode> {
    let silence = silence()?;
    let worker = Worker::start()?;
    let stop = Stop::install().context("cannot handle signals")?;
    let (universe, _) =
        mpi::initialize_with_threading(Threading::Single).context("MPI has begun already")?;
    let world = universe.world();
    let (rank, ranks) = (world.rank() as usize, world.size() as usize);
    let mut relay = Relay {
        ranks,
        exchange: Exchange::new(world),
        worker,
        silence,
        idle: if rank == 0 { IDLE_LEADING } else { IDLE },
        quick_until: Instant::now(),
        stop,
    };
    if ranks == 1 {
        relay.worker.kill();
        finalize(universe);
        return Ok(alone());
    }
    relay.worker.send_control(ControlMessage::Place {
        rank,
        ranks,
        silence_ms: silence.as_millis() as u64,
    });
    let end = if rank == 0 {
        relay.run(&mut leading::Leader::of(ranks, silence))
    } else {
        relay.run(&mut following::Following::new(silence))
    };
    if end.clean {
        finalize(universe);
    } else {
        // MPI_Finalize would wait for lost ranks. The launcher ends ranks that still run or are stopped, and then exits
        // with this code.
        std::mem::forget(universe);
        if rank == 0 {
            launcher::end_soon();
            relay.exchange.abort(i32::from(end.code.max(1)));
        }
    }
    Ok(ExitCode::from(end.code))
}

/// The silence limit of a rank.
fn silence() -> anyhow::Result<Duration> {
    let Ok(text) = std::env::var(SILENCE) else {
        return Ok(Duration::from_secs_f64(SILENCE_S));
    };
    let number = text.parse().ok();
    let allowed = number.filter(|seconds| (0.5..=600.0).contains(seconds));
    let seconds = allowed.with_context(|| {
        format!("{SILENCE} is how many seconds a rank may be silent, 0.5 to 600, not `{text}`")
    })?;
    Ok(Duration::from_secs_f64(seconds))
}

/// Finalizes MPI, or exits if that takes too long.
fn finalize(universe: Universe) {
    std::thread::spawn(|| {
        std::thread::sleep(FINALIZE_LIMIT);
        std::process::exit(1);
    });
    drop(universe);
}

impl Relay {
    /// Forwards messages until the run is over.
    fn run(&mut self, role: &mut dyn Role) -> End {
        let end = loop {
            while let Some(frame) = self.worker.next_frame() {
                role.on_worker_frame(self, frame);
            }
            while self.worker.has_room()
                && let Some(message) = self.exchange.turn()
            {
                role.on_rank_message(self, message);
            }
            self.worker.flush();
            let now = Instant::now();
            if let Some(end) = role.tick(self, now) {
                break end;
            }
            self.worker.wait(self.pause(now));
        };
        let deadline = Instant::now() + LEAVE_LIMIT;
        while !self.exchange.has_left() && Instant::now() < deadline {
            self.exchange.turn();
            std::thread::sleep(BUSY);
        }
        end
    }

    fn pause(&self, now: Instant) -> Duration {
        if now < self.quick_until {
            QUICK
        } else if self.exchange.is_busy() || self.worker.is_behind() {
            BUSY
        } else {
            self.idle
        }
    }

    /// Sends a short message to another rank's relay.
    fn send(&mut self, to: usize, kind: Kind, body: Vec<u8>) {
        self.exchange.send(to, kind, body);
    }
}
