//! CPU time that other processes and the machine's host took during a trial.

use throng_record::{Side, Trial};

/// CPU time that neither the server nor the clients got, in percent of one CPU.
pub(super) struct TakenCpu {
    pub(super) by_others: f64,
    /// Steal time.
    pub(super) by_host: f64,
}

impl TakenCpu {
    pub(super) fn of(trial: &Trial) -> Option<Self> {
        let of = |side: &Option<Side>, name: &str| side.as_ref()?.metrics.get(name).copied();
        let busy = of(&trial.network, "machine_busy_percent")?;
        let server = of(&trial.server_side, "cpu_percent")?;
        let client = of(&trial.client_side, "cpu_percent")?;
        Some(Self {
            by_others: (busy - server - client).max(0.0),
            by_host: of(&trial.network, "machine_steal_percent").unwrap_or(0.0),
        })
    }

    pub(super) fn percent(&self) -> f64 {
        self.by_others + self.by_host
    }
}
