//! CPU time used by other processes, while several servers are measured at once.

use std::time::{Duration, Instant};

use crate::probes::machine::Ticks;
use throng_sys::clock::own_cpu_time;

/// Shares of a CPU, in percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OtherCpu {
    /// Used by other processes.
    pub(crate) busy_percent: f64,
    /// Taken by the machine's host.
    pub(crate) steal_percent: f64,
}

/// The start of an interval.
pub(crate) struct Meter {
    at: Instant,
    ticks: Ticks,
    own: Duration,
}

impl Meter {
    /// Starts an interval now; `None` if the machine does not report its CPU time.
    pub(crate) fn start() -> Option<Self> {
        Some(Self {
            at: Instant::now(),
            ticks: now()?,
            own: own_cpu_time(),
        })
    }

    /// The CPU use of others from the start until now, given the CPU time `measured` of the measured processes.
    pub(crate) fn others(&self, measured: Duration) -> Option<OtherCpu> {
        let elapsed_s = self.at.elapsed().as_secs_f64();
        let (busy_s, steal_s) = now()?.seconds_since(self.ticks);
        let own = own_cpu_time().saturating_sub(self.own);
        let of_others = (busy_s - (measured + own).as_secs_f64()).max(0.0);
        Some(OtherCpu {
            busy_percent: 100.0 * of_others / elapsed_s,
            steal_percent: 100.0 * steal_s / elapsed_s,
        })
    }
}

fn now() -> Option<Ticks> {
    Ticks::parse(&std::fs::read_to_string("/proc/stat").ok()?)
}
