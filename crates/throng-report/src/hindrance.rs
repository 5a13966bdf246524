//! What held a server back and is not the server's speed: a quota of its control group, or a timer of TCP.
//!
//! Each is a sentence of the answer, next to the numbers that it explains.

use serde::Serialize;

use crate::facts::cpus;
use throng_record::format::list;
use throng_record::{Side, Trial, delayed_ack};
use throng_stats::median;

/// The share of a quota's periods in which it may stop a side.
const THROTTLED: f64 = 0.01;
/// The warning about requests that waited for a delayed acknowledgement.
pub(crate) const DELAYED_ACK: &str = "delayed-ack";

/// What held a server back.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Hindrance {
    /// A CPU quota stopped server or clients.
    CpuQuota {
        /// The CPUs that it allows.
        cpus: f64,
        /// The share of its periods in which it stopped them.
        throttled: f64,
    },
    /// The kernel slowed it down because its control group used too much memory.
    MemoryHigh,
    /// At least half of its replies waited for a delayed acknowledgement.
    DelayedAck {
        /// For this long.
        ms: u64,
    },
}

impl Hindrance {
    /// All of them in the trials of one server.
    pub(crate) fn all(trials: &[&Trial]) -> Vec<Self> {
        let found = [cpu_quota(trials), memory_high(trials), delayed_acks(trials)];
        found.into_iter().flatten().collect()
    }

    /// Whether it is the machine's, so that all servers suffer from it.
    pub(crate) fn is_of_machine(self) -> bool {
        !matches!(self, Self::DelayedAck { .. })
    }

    /// What happened, to complete a sentence about the grade.
    pub(crate) fn cause(self) -> String {
        match self {
            Self::CpuQuota {
                cpus: quota,
                throttled,
            } => format!(
                "a CPU quota of {} stopped processes in {:.0} % of its periods",
                cpus(quota),
                100.0 * throttled
            ),
            Self::MemoryHigh => "the kernel slowed down server or clients (memory.high)".to_owned(),
            Self::DelayedAck { ms } => format!("replies waited {ms} ms for a delayed ACK"),
        }
    }

    /// The sentence about these servers, with the remedy.
    pub(crate) fn sentence(self, servers: &[&str]) -> String {
        match self {
            Self::CpuQuota { .. } => format!(
                "{}: rates and latencies are those of the quota (cpu.max).",
                capital(&self.cause())
            ),
            Self::MemoryHigh => format!("{}: raise that limit.", capital(&self.cause())),
            Self::DelayedAck { ms } => format!(
                "Most replies of {} waited {ms} ms for a delayed ACK (Nagle's algorithm): set TCP_NODELAY in the server.",
                list(servers)
            ),
        }
    }
}

impl Hindrance {
    /// The order of sentences, the heaviest first.
    pub(crate) fn weight(self) -> f64 {
        match self {
            Self::CpuQuota { throttled, .. } => 2.0 + throttled,
            Self::MemoryHigh => 1.0,
            Self::DelayedAck { .. } => 0.0,
        }
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

fn sides<'a>(trials: &'a [&'a Trial]) -> impl Iterator<Item = &'a Side> {
    let of_trial = |trial: &&'a Trial| [&trial.server_side, &trial.client_side];
    trials.iter().flat_map(of_trial).flatten()
}

fn cpu_quota(trials: &[&Trial]) -> Option<Hindrance> {
    let of_side = |side: &Side| {
        let of = |name: &str| side.metrics.get(name).copied();
        let (throttled, periods) = (of("throttled_periods")?, of("quota_periods")?);
        let share = if periods > 0.0 {
            throttled / periods
        } else {
            0.0
        };
        Some((of("cpu_quota_percent")? / 100.0, share))
    };
    let found = sides(trials).filter_map(of_side);
    let (cpus, throttled) = found.max_by(|one, other| one.1.total_cmp(&other.1))?;
    (throttled > THROTTLED).then_some(Hindrance::CpuQuota { cpus, throttled })
}

fn memory_high(trials: &[&Trial]) -> Option<Hindrance> {
    let mut hits = sides(trials).filter_map(|side| side.metrics.get("memory_high_hits"));
    hits.any(|hits| *hits > 0.0)
        .then_some(Hindrance::MemoryHigh)
}

/// If the median is on a plateau of delayed acknowledgements, and most trials saw them.
fn delayed_acks(trials: &[&Trial]) -> Option<Hindrance> {
    let has_seen = |trial: &&&Trial| trial.warnings.iter().any(|one| one.kind == DELAYED_ACK);
    let seen = trials.iter().filter(has_seen).count();
    let times = trials.iter().filter_map(|trial| {
        let load = trial.load.as_ref()?;
        Some(load.service_time.as_ref()?.p50_us)
    });
    let ms = delayed_ack::plateau_of(median(&times.collect::<Vec<_>>())?)?;
    (2 * seen > trials.len()).then_some(Hindrance::DelayedAck { ms })
}
