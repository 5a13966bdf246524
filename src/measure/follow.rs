//! A load that is followed through its phases, with samples taken at each; the same for one on this host
//! and for the part of one that a client host has.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::glimpse::{Glimpse, Rate};
use super::probes::{Moment, Panel};
pub(super) use crate::load::phase::Phase;

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

/// How far the clients are.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Progress {
    /// Connected now.
    pub(super) present: u64,
    pub(super) answered: u64,
    pub(super) done: u64,
    pub(super) failed: u64,
    pub(super) lost: u64,
    /// Replies; only told where figures are.
    pub(super) verified: Option<u64>,
    /// The same of times so far.
    pub(super) p50_ns: Option<u64>,
    pub(super) p99_ns: Option<u64>,
}

impl Progress {
    /// That of several parts together. Percentiles of parts say nothing about the whole.
    pub(super) fn together(parts: impl Iterator<Item = Self>) -> Self {
        let add = |sum: Self, part: Self| Self {
            present: sum.present + part.present,
            answered: sum.answered + part.answered,
            done: sum.done + part.done,
            failed: sum.failed + part.failed,
            lost: sum.lost + part.lost,
            verified: sum
                .verified
                .zip(part.verified)
                .map(|(sum, part)| sum + part),
            p50_ns: None,
            p99_ns: None,
        };
        parts.reduce(add).unwrap_or_default()
    }
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
            #[serde(default)]
            answered: u64,
            #[serde(default)]
            done: u64,
            #[serde(default)]
            failed: u64,
            #[serde(default)]
            lost: u64,
            verified: Option<u64>,
            p50_ns: Option<u64>,
            p99_ns: Option<u64>,
        }
        match serde_json::from_str::<Line>(line) {
            Ok(line) => {
                let progress = Progress {
                    present: line.present,
                    answered: line.answered,
                    done: line.done,
                    failed: line.failed,
                    lost: line.lost,
                    verified: line.verified,
                    p50_ns: line.p50_ns,
                    p99_ns: line.p99_ns,
                };
                let waits = line.waits;
                Some(match line.phase {
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
    progress: Progress,
    rate: Rate,
    replies_per_s: Option<f64>,
    /// When the next sample is due if nothing else happens.
    due: Instant,
}

impl Follower {
    /// Before the load begins.
    pub(super) fn new(clients: usize) -> Self {
        Self {
            clients,
            phase: Phase::Settle,
            progress: Progress::default(),
            rate: Rate::default(),
            replies_per_s: None,
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
    pub(super) fn note(&mut self, progress: Progress, panels: &mut [Panel]) {
        panels[self.clients].note("connected", progress.present as f64);
        self.learn(progress);
    }

    /// The same between two phases, where it may be as before.
    pub(super) fn note_news(&mut self, progress: Progress, panels: &mut [Panel]) {
        if progress.present == self.progress.present {
            self.learn(progress);
        } else {
            self.note(progress, panels);
        }
    }

    fn learn(&mut self, progress: Progress) {
        self.progress = progress;
        if let Some(replies) = progress.verified {
            self.replies_per_s = self.rate.at(Instant::now(), replies);
        }
    }

    /// What is known by now, with what the panels saw last.
    pub(super) fn glimpse(&self, [server, client, network]: [&Panel; 3]) -> Glimpse {
        let Progress {
            present,
            answered,
            done,
            failed,
            lost,
            p50_ns,
            p99_ns,
            ..
        } = self.progress;
        Glimpse {
            phase: self.phase.name(),
            present,
            answered,
            done,
            failed,
            lost,
            replies_per_s: self.replies_per_s,
            p50_ns,
            p99_ns,
            established: network.last("established").map(|count| count as u64),
            server_cpu_percent: server.last("cpu_percent"),
            client_cpu_percent: client.last("cpu_percent"),
        }
    }
}

fn sample(panels: &mut [Panel], moment: Moment) {
    for panel in panels {
        panel.sample(moment);
    }
}
