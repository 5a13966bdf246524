//! Whether anything grew.

use std::time::Duration;

use anyhow::ensure;

use super::balance::Balance;
use super::look::{Look, Used};

/// One thing that must not grow.
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    of: fn(&Look) -> u64,
    /// Absolute growth allowed, besides a twentieth.
    slack: u64,
}

/// Least time from which anything is reported: threads that have nothing to do stay for a second in aio's pool.
const LEAST: Duration = Duration::from_secs(5);
/// The share by which any value may grow: clients come and go at random, so that sometimes a few more of them, or of
/// those that have just left, exist at once.
const SHARE: u64 = 20;
/// KiB by which memory may grow besides: an allocator gives each thread an arena, and keeps memory it once had. A leak
/// of 10 bytes per connection would exceed it within 400,000 connections.
const MEMORY_SLACK_KIB: u64 = 4096;
/// Descriptors, threads or processes: those that come and go with a look of throng's own.
const COUNT_SLACK: u64 = 8;
/// Zombies: as many children as can end before their parent, busy with accepting a batch, reaps them.
const ZOMBIE_SLACK: u64 = 64;
/// Bytes of shared memory that a connection leaves behind, in its line of the server's log; a million of them at
/// most. The totals and what the program was started with have some pages.
const BYTES_A_LINE: u64 = 64;
const SHARED_SLACK_KIB: u64 = 1024;

/// All of them.
pub(crate) const METRICS: &[Metric] = &[
    metric(
        "server: KiB",
        |look| look.server.anonymous_kib,
        MEMORY_SLACK_KIB,
    ),
    metric("descriptors", |look| look.server.descriptors, COUNT_SLACK),
    metric("threads", |look| look.server.threads, COUNT_SLACK),
    metric("processes", |look| look.server.processes, COUNT_SLACK),
    metric("zombies", |look| look.server.zombies, ZOMBIE_SLACK),
    metric(
        "load: KiB",
        |look| look.load.anonymous_kib,
        MEMORY_SLACK_KIB,
    ),
    metric("descriptors", |look| look.load.descriptors, COUNT_SLACK),
    metric("threads", |look| look.load.threads, COUNT_SLACK),
    metric("run: KiB", |look| look.run.anonymous_kib, MEMORY_SLACK_KIB),
    metric("descriptors", |look| look.run.descriptors, COUNT_SLACK),
    metric("threads", |look| look.run.threads, COUNT_SLACK),
    metric("zombies", |look| look.run.zombies, 0),
];

const fn metric(name: &'static str, of: fn(&Look) -> u64, slack: u64) -> Metric {
    Metric { name, of, slack }
}

/// Its amount.
pub(crate) struct Grown {
    /// At most, in the first third.
    pub(crate) most_first: u64,
    /// Half of the time in the last third at most.
    pub(crate) median_last: u64,
}

pub(crate) fn grown(looks: &[Look], metric: &Metric) -> Grown {
    let third = looks.len() / 3;
    let most_first = looks[..third].iter().map(metric.of).max().unwrap_or(0);
    let mut last: Vec<u64> = looks[looks.len() - third..].iter().map(metric.of).collect();
    last.sort_unstable();
    Grown {
        most_first,
        median_last: last.get(last.len() / 2).copied().unwrap_or(0),
    }
}

/// Whether so long a time shows it.
pub(crate) fn shows_after(length: Duration) -> bool {
    length >= LEAST
}

pub(crate) fn check(looks: &[Look], balance: &Balance) -> anyhow::Result<()> {
    ensure!(
        looks.len() >= 12,
        "{} samples with all clients",
        looks.len()
    );
    for metric in METRICS {
        let Grown {
            most_first,
            median_last,
        } = grown(looks, metric);
        let most = most_first + most_first / SHARE + metric.slack;
        ensure!(
            median_last <= most,
            "{} grew: at most {most_first} in the first third, {median_last} in the last; up to {most} is allowed",
            metric.name
        );
    }
    let shared = looks.iter().map(|look: &Look| -> &Used { &look.server });
    let shared_kib = shared.map(|server| server.shared_kib).max().unwrap_or(0);
    let most = balance.accepted * BYTES_A_LINE / 1024 + SHARED_SLACK_KIB;
    ensure!(
        shared_kib <= most,
        "{} connections left {shared_kib} KiB of shared memory; up to {most} is allowed",
        balance.accepted
    );
    Ok(())
}
