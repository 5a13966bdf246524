//! One side of a row: what the server, or the load generator, needed.

use serde::Serialize;

use super::Quantity;
use crate::record::{Load, Run, Side, Trial};
use crate::stats::median;

/// One side of a row: medians over trials.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SideRow {
    /// CPU time for each reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_us_per_reply: Option<Quantity>,
    /// Its share in user mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_user_us_per_reply: Option<f64>,
    /// Its share in the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_system_us_per_reply: Option<f64>,
    /// CPU use; 100 is one CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<f64>,
    /// Memory, shared pages divided among those who share them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pss_bytes: Option<f64>,
    /// Threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<f64>,
    /// Processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<f64>,
    /// Open descriptors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub descriptors: Option<f64>,
    /// Context switches for each reply, because it waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voluntary_switches_per_reply: Option<f64>,
    /// Context switches for each reply, because its turn was over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub involuntary_switches_per_reply: Option<f64>,
}

impl SideRow {
    pub(super) fn of(
        run: &Run,
        good: &[(&Trial, &Load)],
        side: impl Fn(&Trial) -> Option<&Side>,
    ) -> Self {
        let sides = || {
            good.iter()
                .filter_map(|(trial, load)| Some((side(trial)?, *load)))
        };
        let of_replies = |name: &str, factor: f64| -> Vec<f64> {
            sides()
                .filter_map(|(side, load)| per_reply(side, load, name))
                .map(|value| value * factor)
                .collect()
        };
        let plain = |name: &str| {
            let values: Vec<f64> = sides()
                .filter_map(|(side, _)| side.metrics.get(name).copied())
                .collect();
            median(&values)
        };
        let per_reply_of_rate = |name: &str| {
            let values: Vec<f64> = sides()
                .filter(|(_, load)| load.window.replies_per_s > 0.0)
                .filter_map(|(side, load)| {
                    Some(side.metrics.get(name)? / load.window.replies_per_s)
                })
                .collect();
            median(&values)
        };
        Self {
            cpu_us_per_reply: Quantity::of(&of_replies("cpu_ms", 1000.0), run.seed),
            cpu_user_us_per_reply: median(&of_replies("cpu_user_ms", 1000.0)),
            cpu_system_us_per_reply: median(&of_replies("cpu_system_ms", 1000.0)),
            cpu_percent: plain("cpu_percent"),
            pss_bytes: plain("pss_bytes"),
            threads: plain("threads"),
            processes: plain("processes"),
            descriptors: plain("descriptors"),
            voluntary_switches_per_reply: per_reply_of_rate("voluntary_switches_per_s"),
            involuntary_switches_per_reply: per_reply_of_rate("involuntary_switches_per_s"),
        }
    }
}

/// A figure summed over the window, for each reply in it.
pub(super) fn per_reply(side: &Side, load: &Load, name: &str) -> Option<f64> {
    let total = side.metrics.get(name)?;
    (load.window.replies > 0).then(|| total / load.window.replies as f64)
}
