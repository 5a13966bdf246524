//! What captured trials tell of the flows between server and clients.

use serde::Serialize;

use super::summary::Quantity;
use crate::record::{Purpose, Trial};

/// Figures of flows, from packets, of one server under one number of clients.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Wire {
    /// Payload in both directions over a flow's time: median over flows.
    pub flow_throughput_bytes_per_s: Option<Quantity>,
    /// From a flow's first packet to its last: median over flows.
    pub flow_latency_s: Option<Quantity>,
}

impl Wire {
    /// Of those of `trials` that were captured; none when none was.
    pub(super) fn of<'a>(trials: impl Iterator<Item = &'a Trial>, seed: u64) -> Option<Self> {
        let captured: Vec<&Trial> = trials
            .filter(|trial| trial.purpose == Purpose::Captured && trial.failure.is_none())
            .collect();
        let figure = |name: &str| {
            let values: Vec<f64> = captured
                .iter()
                .filter_map(|trial| trial.network.as_ref()?.metrics.get(name).copied())
                .collect();
            Quantity::of(&values, seed)
        };
        let wire = Self {
            flow_throughput_bytes_per_s: figure("flow_throughput_bytes_per_s"),
            flow_latency_s: figure("flow_latency_p50_s"),
        };
        let any = wire.flow_throughput_bytes_per_s.is_some() || wire.flow_latency_s.is_some();
        any.then_some(wire)
    }
}
