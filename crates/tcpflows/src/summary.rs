//! Totals and percentiles over all flows of a capture.

use std::collections::BTreeMap;

use serde::Serialize;

use super::row::Row;

/// Percentiles of a value over flows, by nearest rank.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Percentiles {
    /// Number of flows that have the value.
    pub flows: u64,
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile; `None` below 100 flows.
    pub p99: Option<f64>,
    pub max: f64,
}

impl Percentiles {
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        let rank = |percent: usize| values[(values.len() * percent).div_ceil(100).max(1) - 1];
        Some(Self {
            flows: values.len() as u64,
            min: *values.first()?,
            p50: rank(50),
            p90: rank(90),
            p99: (values.len() >= 100).then(|| rank(99)),
            max: *values.last()?,
        })
    }
}

/// Totals and percentiles.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Number of flows.
    pub flows: u64,
    /// Flows captured from SYN to end.
    pub complete_flows: u64,
    /// Flows by ending.
    pub endings: BTreeMap<&'static str, u64>,
    /// Flows without a captured SYN, whose client is a guess.
    pub guessed_clients: u64,
    /// TCP packets in all flows.
    pub packets: u64,
    /// Bytes of these packets.
    pub wire_bytes: u64,
    /// Payload bytes in these packets.
    pub payload_bytes: u64,
    /// Time from the first to the last of these packets, seconds.
    pub duration_s: f64,
    /// Payload bytes of all flows per second of this time.
    pub throughput_bytes_per_s: Option<f64>,
    /// Retransmissions by clients.
    pub retransmissions_by_client: u64,
    /// Retransmissions by servers.
    pub retransmissions_by_server: u64,
    /// SYNs after the first of each flow.
    pub syn_retransmissions: u64,
    /// Sent by either side.
    pub out_of_order: u64,
    /// Sent by either side.
    pub keep_alives: u64,
    /// Resets that clients sent.
    pub resets_by_client: u64,
    /// Resets that servers sent.
    pub resets_by_server: u64,
    /// Duration of the handshake, over flows with a captured handshake.
    pub handshake_us: Option<Percentiles>,
    /// Duration, over complete flows.
    pub flow_duration_s: Option<Percentiles>,
    /// Over complete flows.
    pub flow_throughput_bytes_per_s: Option<Percentiles>,
    /// Over complete flows.
    pub packets_per_flow: Option<Percentiles>,
}

impl Summary {
    pub(super) fn of(rows: &(impl Iterator<Item = Row> + Clone)) -> Self {
        let complete = || rows.clone().filter(|row| row.complete);
        let sum = |figure: fn(&Row) -> u64| rows.clone().map(|row| figure(&row)).sum::<u64>();
        let mut endings = BTreeMap::new();
        let (mut began_s, mut ended_s) = (f64::MAX, f64::MIN);
        for row in rows.clone() {
            *endings.entry(row.ending.name()).or_default() += 1;
            began_s = began_s.min(row.start_s);
            ended_s = ended_s.max(row.start_s + row.duration_s);
        }
        let duration_s = (ended_s - began_s).max(0.0);
        let payload_bytes = sum(Row::payload_bytes);
        Self {
            flows: sum(|_| 1),
            complete_flows: sum(|row| row.complete.into()),
            endings,
            guessed_clients: sum(|row| row.client_known_by.is_guess().into()),
            packets: sum(Row::packets),
            wire_bytes: sum(|row| row.wire_bytes_by_client + row.wire_bytes_by_server),
            payload_bytes,
            duration_s,
            throughput_bytes_per_s: (duration_s > 0.0).then(|| payload_bytes as f64 / duration_s),
            retransmissions_by_client: sum(|row| row.retransmissions_by_client),
            retransmissions_by_server: sum(|row| row.retransmissions_by_server),
            syn_retransmissions: sum(|row| row.syn_retransmissions.into()),
            out_of_order: sum(|row| {
                u64::from(row.out_of_order_by_client) + u64::from(row.out_of_order_by_server)
            }),
            keep_alives: sum(|row| row.keep_alives),
            resets_by_client: sum(|row| row.resets_by_client.into()),
            resets_by_server: sum(|row| row.resets_by_server.into()),
            handshake_us: Percentiles::of(
                rows.clone().filter_map(|row| row.handshake_us).collect(),
            ),
            flow_duration_s: Percentiles::of(complete().map(|row| row.duration_s).collect()),
            flow_throughput_bytes_per_s: Percentiles::of(
                complete()
                    .filter_map(|row| row.throughput_bytes_per_s)
                    .collect(),
            ),
            packets_per_flow: Percentiles::of(complete().map(|row| row.packets() as f64).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        assert_eq!(Percentiles::of(Vec::new()), None);
        let few = Percentiles::of(vec![3.0, 1.0, 2.0]).unwrap();
        assert_eq!((few.min, few.p50, few.max), (1.0, 2.0, 3.0));
        assert_eq!(few.p99, None);
        let many = Percentiles::of((1..=200).map(f64::from).collect()).unwrap();
        assert_eq!((many.p50, many.p90, many.p99), (100.0, 180.0, Some(198.0)));
    }
}
