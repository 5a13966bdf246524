//! A load that is followed through its phases, with samples taken at each; the same for one on this host
//! and for the part of one that a client host has.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::probes::{Moment, Panel};

/// Time between two samples.
const TICK: Duration = Duration::from_millis(100);
/// The same while clients connect, of whom many come in a moment.
const SETTLE_TICK: Duration = Duration::from_millis(20);

/// A line of a controlled load.
pub(super) enum Told<R> {
    /// It enters a phase.
    Phase {
        phase: Phase,
        /// Whether it waits for a word before it goes on.
        waits: bool,
        progress: Progress,
    },
    /// Clients have come or gone.
    Progress(Progress),
    /// It is over.
    Result(Box<R>),
}

/// A phase that a load tells of, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Phase {
    Settle,
    WarmUp,
    Steady,
    Drain,
    Hold,
}

/// How far the clients are.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Progress {
    /// Connected now.
    pub(super) present: u64,
}

impl<R: DeserializeOwned> Told<R> {
    /// Reads a line; none when it is no such line.
    pub(super) fn read(line: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Line {
            phase: Option<Phase>,
            #[serde(default)]
            waits: bool,
            /// No result has it.
            present: u64,
        }
        match serde_json::from_str(line) {
            Ok(Line {
                phase,
                waits,
                present,
            }) => {
                let progress = Progress { present };
                Some(match phase {
                    Some(phase) => Self::Phase {
                        phase,
                        waits,
                        progress,
                    },
                    None => Self::Progress(progress),
                })
            }
            Err(_) => serde_json::from_str(line).ok().map(Self::Result),
        }
    }
}

/// Follows a load with panels of probes, of which one is the clients'.
pub(super) struct Follower {
    /// The place of that one.
    clients: usize,
    phase: Phase,
    /// When the next sample is due if nothing else happens.
    due: Instant,
}

impl Follower {
    /// Before the load begins.
    pub(super) fn new(clients: usize) -> Self {
        Self {
            clients,
            phase: Phase::Settle,
            due: Instant::now(),
        }
    }

    /// When a sample is due, whatever is heard until then.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    fn rest(&mut self) {
        let tick = match self.phase {
            Phase::Settle => SETTLE_TICK,
            _ => TICK,
        };
        self.due = Instant::now() + tick;
    }

    /// The load enters a phase.
    pub(super) fn enter(&mut self, phase: Phase, panels: &mut [Panel]) {
        let moment = match phase {
            Phase::Settle => None,
            Phase::WarmUp => Some(Moment::Before),
            Phase::Steady => Some(Moment::Start),
            Phase::Drain => Some(Moment::End),
            Phase::Hold => Some(Moment::After),
        };
        if let Some(moment) = moment {
            sample(panels, moment);
        }
        self.phase = phase;
        self.rest();
    }

    /// Takes the sample that is due.
    pub(super) fn sample(&mut self, panels: &mut [Panel]) {
        match self.phase {
            Phase::Settle | Phase::WarmUp => sample(panels, Moment::Settle),
            Phase::Steady => sample(panels, Moment::Tick),
            Phase::Drain | Phase::Hold => {}
        }
        self.rest();
    }

    /// The clients' own count of those connected, beside what the kernel counts.
    pub(super) fn note(&self, progress: Progress, panels: &mut [Panel]) {
        panels[self.clients].note("connected", progress.present as f64);
    }
}

fn sample(panels: &mut [Panel], moment: Moment) {
    for panel in panels {
        panel.sample(moment);
    }
}
