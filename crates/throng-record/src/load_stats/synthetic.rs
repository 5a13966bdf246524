//! Made-up parts of a load, for tests and benches of merging.

use throng_stats::fairness::Counts;

use super::{EarlyBias, INTERVALS, LoadStats, OpenStats, PARTS, Span, StoppedBy, Sum, TENTHS};

/// Replies per client with individual times; further ones are only counted.
const TIMES_EACH: usize = 4;

/// The results of host `number` in an open loop with `clients` clients per host: times from a microsecond to seconds,
/// and different numbers of replies for most clients.
pub fn synthetic(number: u32, clients: u32) -> LoadStats {
    let mut random = fastrand::Rng::with_seed(number.into());
    let began = 1_000_000_000_000;
    let mut stats = LoadStats {
        span: Span {
            began_ns: Some(began),
            from_ns: Some(began + 3_000_000_000),
            until_ns: Some(began + 13_000_000_000),
            fixed_ns: Some(10_000_000_000),
            slices_ns: None,
        },
        clients,
        connected: clients,
        served: clients,
        connections: clients.into(),
        early_bias: EarlyBias::Unknown,
        threads: 1,
        processes: 1,
        cpu: Sum {
            count: 1,
            total: 9_500_000_000,
        },
        stopped_by: Some(StoppedBy::Duration),
        ..LoadStats::default()
    };
    let (mut open, mut counts) = (OpenStats::default(), Counts::default());
    for client in 0..clients {
        let replies = random.u64(500..5000);
        for _ in 0..TIMES_EACH {
            // Equally many per doubling.
            let mut time = || 1000 + (random.u64(0..1 << 22) >> random.u32(0..22)) * 1000;
            stats.service_time.record(time());
            stats.connect_time.record(time());
            stats.first_reply.record(time());
            stats.lateness.record(time());
            stats.reply_bytes.record(time(), 1);
            open.response_time.record(time());
            stats.times_by_part.record(client as usize % PARTS, time());
        }
        let tenth = (u64::from(client) * TENTHS as u64 / u64::from(clients)) as usize;
        stats.replies_by_tenth[tenth][client as usize % INTERVALS] += replies;
        stats.window_replies += replies;
        stats.requests += replies + 1;
        stats.verified += replies + 1;
        counts.add(replies);
    }
    stats.open = Some(open);
    stats.replies = counts;
    stats
}
