//! What servers are compared by and judged by: figures of single trials, by name.

use super::format::{bytes, index, number, time, whole};
use crate::record::{Completion, Latency, Load, Trial};

/// A figure of a trial.
#[derive(Debug)]
pub struct Metric {
    /// The name typed in conditions and written as JSON.
    pub name: &'static str,
    /// Another name that users know for it.
    also: &'static str,
    /// Heading in tables.
    pub title: &'static str,
    /// What it is measured in.
    pub unit: Unit,
    /// Whether more of it is better.
    pub higher_is_better: bool,
    /// The share by which two values must differ at least for it to matter.
    pub least: f64,
    /// How the trials of a server make one value.
    pub whole: Whole,
    of_trial: fn(&Trial, &Load) -> Option<f64>,
}

/// What a value is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Times a second.
    PerSecond,
    /// Microseconds.
    Time,
    /// Bytes.
    Bytes,
    /// A number of things.
    Count,
    /// From 0 to 1.
    Index,
}

/// How the trials of a server make one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whole {
    /// Their median.
    Median,
    /// Their sum: of what must not happen at all, a median would hide some.
    Sum,
    /// The greatest, for the same reason.
    Greatest,
}

impl Unit {
    /// A value as a reader wants it.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::PerSecond => number(value),
            Self::Time => time(value),
            Self::Bytes => bytes(value),
            Self::Count => whole(value),
            Self::Index => index(value),
        }
    }
}

impl Metric {
    /// Its value in one trial; none when that failed or did not measure it.
    pub fn of(&self, trial: &Trial) -> Option<f64> {
        if self.name == FAILED_TRIALS {
            return Some(f64::from(u8::from(trial.failure.is_some())));
        }
        if trial.failure.is_some() {
            return None;
        }
        (self.of_trial)(trial, trial.load.as_ref()?)
    }

    /// The metric of this name, or the one that comes closest.
    ///
    /// # Errors
    /// When there is none, with the closest one if one is close.
    pub fn find(name: &str) -> Result<&'static Self, Option<&'static str>> {
        let plain = name.trim().to_lowercase().replace([' ', '-'], "_");
        let plain = plain.strip_prefix("service_").unwrap_or(&plain);
        let found = METRICS
            .iter()
            .find(|metric| metric.name == plain || (metric.also == plain && !plain.is_empty()));
        found.ok_or_else(|| {
            METRICS
                .iter()
                .map(|metric| (strsim::jaro_winkler(metric.name, plain), metric.name))
                .filter(|(likeness, _)| *likeness > 0.8)
                .max_by(|a, b| a.0.total_cmp(&b.0))
                .map(|(_, name)| name)
        })
    }
}

const FAILED_TRIALS: &str = "failed_trials";

const fn metric(
    name: &'static str,
    title: &'static str,
    unit: Unit,
    of_trial: fn(&Trial, &Load) -> Option<f64>,
) -> Metric {
    Metric {
        name,
        also: "",
        title,
        unit,
        higher_is_better: matches!(unit, Unit::PerSecond | Unit::Index),
        least: 0.0,
        whole: Whole::Median,
        of_trial,
    }
}

/// Verified replies a second.
pub const RATE: &Metric = &METRICS[0];
/// Verified replies for a second of CPU time of the server.
pub const RATE_PER_CPU: &Metric = &METRICS[1];

/// Every metric, the ones that servers are compared by first.
pub const METRICS: &[Metric] = &[
    metric("replies_per_s", "Replies/s", Unit::PerSecond, |_, load| {
        Some(load.window.replies_per_s)
    }),
    metric(
        "replies_per_cpu_s",
        "Replies/CPU s",
        Unit::PerSecond,
        |trial, load| Some(1e6 / cpu_us_per_reply(trial, load).filter(|cost| *cost > 0.0)?),
    ),
    metric("p50", "p50", Unit::Time, |_, load| {
        Some(load.service_time.as_ref()?.p50_us)
    }),
    metric("p99", "p99", Unit::Time, |_, load| {
        load.service_time.as_ref()?.p99_us
    }),
    metric("response_p50", "Response p50", Unit::Time, |_, load| {
        Some(response(load)?.p50_us)
    }),
    metric("response_p99", "Response p99", Unit::Time, |_, load| {
        response(load)?.p99_us
    }),
    Metric {
        also: "pss",
        ..metric("memory", "Memory", Unit::Bytes, |trial, _| {
            let side = trial.server_side.as_ref()?;
            side.metrics.get("pss_bytes").copied()
        })
    },
    Metric {
        also: "fairness",
        // An index close to 1 is told apart from itself in its last digits.
        least: 0.01,
        ..metric("jain", "Fairness", Unit::Index, |_, load| {
            Some(load.fairness.as_ref()?.jain)
        })
    },
    // Of loads in which each client has a job.
    metric("completion", "Completion", Unit::Time, |_, load| {
        Some(jobs(load)?.last_done_s? * 1e6)
    }),
    metric("clients_per_s", "Clients/s", Unit::PerSecond, |_, load| {
        jobs(load)?.clients_per_s
    }),
    metric("job_p50", "Job p50", Unit::Time, |_, load| {
        Some(jobs(load)?.job_time.as_ref()?.p50_us)
    }),
    metric("job_p99", "Job p99", Unit::Time, |_, load| {
        jobs(load)?.job_time.as_ref()?.p99_us
    }),
    metric("service_sample", "Mean of 50", Unit::Time, |_, load| {
        Some(jobs(load)?.service_sample?.mean_us)
    }),
    Metric {
        whole: Whole::Sum,
        ..metric(
            "failed_clients",
            "Failed clients",
            Unit::Count,
            |_, load| Some(f64::from(jobs(load)?.failed)),
        )
    },
    Metric {
        whole: Whole::Sum,
        ..metric("not_done", "Not done", Unit::Count, |_, load| {
            Some(f64::from(jobs(load)?.not_done))
        })
    },
    metric("cpu_per_reply", "CPU/reply", Unit::Time, cpu_us_per_reply),
    metric("p90", "p90", Unit::Time, |_, load| {
        Some(load.service_time.as_ref()?.p90_us)
    }),
    metric("p99.9", "p99.9", Unit::Time, |_, load| {
        load.service_time.as_ref()?.p999_us
    }),
    metric("max", "Slowest", Unit::Time, |_, load| {
        Some(load.service_time.as_ref()?.max_us)
    }),
    metric("response_p90", "Response p90", Unit::Time, |_, load| {
        Some(response(load)?.p90_us)
    }),
    metric("response_p99.9", "Response p99.9", Unit::Time, |_, load| {
        response(load)?.p999_us
    }),
    metric("response_max", "Slowest response", Unit::Time, |_, load| {
        Some(response(load)?.max_us)
    }),
    metric("first_answer", "First answer", Unit::Time, |_, load| {
        Some(load.first_answer.as_ref()?.max_us)
    }),
    Metric {
        whole: Whole::Sum,
        ..metric("errors", "Errors", Unit::Count, |_, load| {
            Some(load.errors.values().sum::<u64>() as f64)
        })
    },
    Metric {
        whole: Whole::Greatest,
        ..metric("never_served", "Never served", Unit::Count, |_, load| {
            Some(f64::from(load.never_served))
        })
    },
    Metric {
        whole: Whole::Sum,
        ..metric(FAILED_TRIALS, "Failed trials", Unit::Count, |_, _| None)
    },
];

/// How many of [`METRICS`] servers are compared by.
pub const COMPARED: usize = 13;

fn jobs(load: &Load) -> Option<&Completion> {
    load.completion.as_deref()
}

fn response(load: &Load) -> Option<&Latency> {
    load.open_loop.as_ref()?.response_time.as_ref()
}

fn cpu_us_per_reply(trial: &Trial, load: &Load) -> Option<f64> {
    let cpu_ms = trial.server_side.as_ref()?.metrics.get("cpu_ms")?;
    (load.window.replies > 0).then(|| cpu_ms * 1000.0 / load.window.replies as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_found_as_users_write_them() {
        for (typed, name) in [
            ("p99", "p99"),
            ("Service p99", "p99"),
            ("response p99.9", "response_p99.9"),
            ("pss", "memory"),
            (" never-served ", "never_served"),
        ] {
            assert_eq!(Metric::find(typed).unwrap().name, name);
        }
        assert_eq!(
            Metric::find("replies_per_cpu").unwrap_err(),
            Some("replies_per_cpu_s")
        );
        assert_eq!(Metric::find("").unwrap_err(), None);
        assert_eq!(
            (RATE.name, RATE_PER_CPU.name),
            ("replies_per_s", "replies_per_cpu_s")
        );
    }
}
