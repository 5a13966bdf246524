//! Follows a load through its phases and samples at each: for a load on this host, and for a client host's part of
//! one.

use std::time::{Duration, Instant};

use super::live_snapshot::{LiveSnapshot, Rate};
use crate::probes::{Moment, Panel};
use throng_record::{LoadSnapshot, Phase};

/// Interval of samples.
const TICK: Duration = Duration::from_millis(100);
/// Interval while clients connect, many of them within a moment.
const CONNECT_TICK: Duration = Duration::from_millis(20);

/// Follows a load with panels of probes, one of which is the clients'.
pub(crate) struct Follower {
    /// The index of the clients' panel.
    clients: usize,
    phase: Phase,
    snapshot: LoadSnapshot,
    rate: Rate,
    replies_per_s: Option<f64>,
    /// When the next sample is due, unless something else happens.
    due: Instant,
}

impl Follower {
    /// Before the load begins.
    pub(crate) fn new(clients: usize) -> Self {
        Self {
            clients,
            phase: Phase::Connect,
            snapshot: LoadSnapshot::default(),
            rate: Rate::default(),
            replies_per_s: None,
            due: Instant::now(),
        }
    }

    /// When a sample is due, regardless of other events.
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    fn set_next_sample(&mut self) {
        let tick = match self.phase {
            Phase::Connect => CONNECT_TICK,
            _ => TICK,
        };
        self.due = Instant::now() + tick;
    }

    /// The load enters a phase.
    pub(crate) fn enter(&mut self, phase: Phase, panels: &mut [Panel]) {
        let moment = match phase {
            Phase::Connect => None,
            Phase::WarmUp => Some(Moment::Before),
            Phase::Measure => Some(Moment::Start),
            Phase::Drain => Some(Moment::End),
            Phase::Idle => Some(Moment::After),
        };
        if let Some(moment) = moment {
            Panel::sample_all(panels, moment);
        }
        self.phase = phase;
        self.set_next_sample();
    }

    /// Takes the due sample.
    pub(crate) fn sample(&mut self, panels: &mut [Panel]) {
        match self.phase {
            Phase::Connect | Phase::WarmUp => Panel::sample_all(panels, Moment::Connect),
            Phase::Measure => Panel::sample_all(panels, Moment::Tick),
            Phase::Drain | Phase::Idle => {}
        }
        self.set_next_sample();
    }

    /// Adds the load's own count of connected clients, next to the kernel's.
    pub(crate) fn add_snapshot(&mut self, snapshot: LoadSnapshot, panels: &mut [Panel]) {
        panels[self.clients].add_sample("connected", snapshot.present as f64);
        for panel in panels {
            panel.set_present(snapshot.present);
        }
        self.keep_snapshot(snapshot);
    }

    /// Adds the count between two phases, which may be unchanged.
    pub(crate) fn add_snapshot_if_new(&mut self, snapshot: LoadSnapshot, panels: &mut [Panel]) {
        if snapshot.present == self.snapshot.present {
            self.keep_snapshot(snapshot);
        } else {
            self.add_snapshot(snapshot, panels);
        }
    }

    fn keep_snapshot(&mut self, snapshot: LoadSnapshot) {
        self.snapshot = snapshot;
        if let Some(replies) = snapshot.verified {
            self.replies_per_s = self.rate.at(Instant::now(), replies);
        }
    }

    /// The current state, with the panels' last samples.
    pub(crate) fn live_snapshot(&self, [server, client, network]: [&Panel; 3]) -> LiveSnapshot {
        LiveSnapshot {
            phase: self.phase.name(),
            clients: self.snapshot,
            replies_per_s: self.replies_per_s,
            established: network.last("established").map(|count| count as u64),
            server_cpu_percent: server.last("cpu_percent"),
            client_cpu_percent: client.last("cpu_percent"),
        }
    }
}
