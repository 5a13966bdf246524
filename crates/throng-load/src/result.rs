//! The result of a load in this process.

use std::io::{self, Write};
use std::time::Duration;

use super::Plan;
use super::client_stats::{ClientStats, ErrorKind, WorkerStats};
use super::shared::WindowTimes;
use throng_record::load_stats::{
    EarlyBias, FailedClient, LoadStats, ProbeStats, ServedClient, Span,
};
use throng_record::{StoppedBy, WarmUp};
use throng_spec::Share;

/// The result of a load in this process.
#[derive(Debug)]
pub struct LoadResult {
    /// The stats of its clients.
    pub stats: LoadStats,
    clients: Vec<ClientRow>,
    share: Share,
}

/// A client, with the number of its worker.
type ClientRow = (usize, ClientStats);

/// The leader's own results.
pub(super) struct LeaderResult {
    pub(super) window: WindowTimes,
    pub(super) stopped_by: StoppedBy,
    /// CPU time of this process in the window.
    pub(super) cpu: Option<Duration>,
    /// The warm-up, if it lasted until the server's rate was level.
    pub(super) warm_up: Option<WarmUp>,
}

impl LoadResult {
    /// The result of the workers, in order of their numbers, and of the worker with the probe clients.
    pub(super) fn of(
        plan: &Plan,
        led: &LeaderResult,
        workers: Vec<WorkerStats>,
        probes: Option<WorkerStats>,
    ) -> Self {
        let mut stats = LoadStats {
            processes: 1,
            stopped_by: Some(led.stopped_by),
            warm_up: led.warm_up,
            engine: plan.engine.name().to_owned(),
            ..LoadStats::default()
        };
        led.cpu
            .iter()
            .for_each(|time| stats.cpu.add(time.as_nanos() as u64));
        let (count, total) = (
            workers.len(),
            workers.iter().map(|(_, own)| own.len()).sum(),
        );
        let mut clients = vec![(0, ClientStats::default()); total];
        for (number, (mut seen, own)) in workers.into_iter().enumerate() {
            let numbered = own.iter().enumerate().map(|(place, client)| {
                let own_number = (place * count + number) as u64;
                (plan.share.among_all(own_number) as u32, client)
            });
            add_clients(&mut seen, numbered, &led.window);
            let is_silent = seen.clients > 0 && seen.window_replies == 0;
            seen.silent_threads = u32::from(is_silent && led.window.is_timed);
            if plan.one_each {
                // With a thread per client, waiting for the reply and for the CPU is normal.
                (seen.silent_threads, seen.longest_gap_ns) = (0, None);
            }
            stats.merge(&seen);
            for (place, client) in own.into_iter().enumerate() {
                clients[place * count + number] = (number, client);
            }
        }
        if let Some(jobs) = &mut stats.jobs {
            jobs.at_once = plan.most_at_once();
        }
        if matches!(
            led.stopped_by,
            StoppedBy::Interrupted | StoppedBy::TimeLimit
        ) {
            stats.left = 0; // clients could have made them
        }
        stats.early_bias = if plan.gathers_clients {
            stats.early_bias
        } else if plan.share == Share::WHOLE {
            stats.early_bias.finished()
        } else {
            EarlyBias::Unknown
        };
        stats.probe = probes.zip(plan.probes).map(|((mut seen, own), probes)| {
            add_clients(&mut seen, (0..).zip(&own), &led.window);
            Box::new(ProbeStats {
                rate_per_s: probes.rate_per_s,
                stats: seen,
            })
        });
        Self {
            stats,
            clients,
            share: plan.share,
        }
    }

    /// Writes a line per client, in order of their numbers, in which they begin to connect. Only short-lived clients
    /// are ever done.
    ///
    /// # Errors
    /// Errors from writing to `to`.
    pub fn write_clients(&self, to: &mut dyn Write) -> io::Result<()> {
        writeln!(
            to,
            "client,worker,source,connected_at_us,connect_us,first_reply_us,done_at_us,connections,\
             requests,replies,window_replies,bytes_sent,bytes_received,errors,error"
        )?;
        let since = |from: Option<u64>, then: Option<u64>| match (from, then) {
            (Some(from), Some(then)) => format!("{:.1}", then.saturating_sub(from) as f64 / 1e3),
            _ => String::new(),
        };
        for (number, (worker, client)) in self.clients.iter().enumerate() {
            let number = self.share.among_all(number as u64);
            writeln!(
                to,
                "{number},{worker},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                client
                    .source
                    .map(|source| source.to_string())
                    .unwrap_or_default(),
                since(Some(0), client.connected_at),
                since(client.started_at, client.connected_at),
                since(client.started_at, client.first_reply_at),
                since(Some(0), client.done_at),
                client.connections,
                client.requests,
                client.replies,
                client.window_replies,
                client.bytes_sent,
                client.bytes_received,
                client.errors,
                client.error.map(ErrorKind::name).unwrap_or_default(),
            )?;
        }
        Ok(())
    }
}

/// Merges the stats of a worker's clients, each with its number among all clients.
fn add_clients<'a>(
    stats: &mut LoadStats,
    clients: impl Iterator<Item = (u32, &'a ClientStats)> + Clone,
    window: &WindowTimes,
) {
    let at = |since_began: u64| window.began.saturating_add(since_began) as i64;
    // Clients with a number of requests do not compete for a server's time, so equal numbers of replies say nothing.
    let jobs = stats.jobs.as_ref();
    let compete = jobs.is_none_or(|jobs| jobs.requests_each.is_none());
    let mut served = Vec::new();
    for (number, client) in clients.clone() {
        stats.clients += 1;
        stats.requests += client.requests;
        stats.verified += client.replies;
        stats.window_replies += client.window_replies;
        stats.connections += u64::from(client.connections);
        stats.connected += u32::from(client.connected_at.is_some());
        if let Some(took) = client.first_reply_within(window) {
            stats.served += 1;
            stats.first_reply.record(took);
            if compete {
                stats.replies.add(client.window_replies);
                stats.life.add(client.replies);
                served.push(ServedClient {
                    connected_ns: at(client.connected_at.unwrap_or_default()),
                    window_replies: client.window_replies,
                    replies: client.replies,
                });
            }
        } else if client.error.is_none() {
            stats.never_served += 1;
        }
        if let Some(sums) = &mut stats.jobs {
            sums.done += u32::from(client.done_at.is_some());
            sums.last_done_ns = sums.last_done_ns.max(client.done_at.map(at));
            if let Some(failed_at) = client.failed_at {
                sums.failed += 1;
                let failed = FailedClient {
                    at_ns: at(failed_at),
                    client: number,
                    kind: client.error.map(ErrorKind::name).unwrap_or_default(),
                    connected: client.connected_at.is_some()
                        || client.error == Some(ErrorKind::Reset),
                };
                let first = sums.first_failure.take().into_iter();
                sums.first_failure = first.chain([failed]).min();
            }
        }
    }
    stats.verified -= stats.unexpected.values().sum::<u64>().min(stats.verified);
    served.sort_unstable();
    stats.early_bias = EarlyBias::Clients(served);
    let until = match last_end(clients) {
        // The leader noticed slightly after the last client ended.
        Some(end) if !compete && window.ends_after(end) => window.began.saturating_add(end + 1),
        _ => window.until,
    };
    let is_known = window.from < u64::MAX;
    stats.span = Span {
        began_ns: Some(window.began as i64),
        from_ns: is_known.then_some(window.from as i64),
        until_ns: is_known.then_some(until as i64),
        fixed_ns: (window.is_timed && window.slices_ns.is_none()).then(|| window.duration_ns()),
        slices_ns: window.slices_ns,
    };
}

/// When the last client ended, done or not, if all have ended.
fn last_end<'a>(clients: impl Iterator<Item = (u32, &'a ClientStats)>) -> Option<u64> {
    let ends = clients.map(|(_, client)| client.done_at.or(client.failed_at));
    ends.collect::<Option<Vec<u64>>>()?.into_iter().max()
}

impl ClientStats {
    /// The time from the start of connecting to the first reply, if that reply came before the end of the window.
    fn first_reply_within(&self, window: &WindowTimes) -> Option<u64> {
        let then = self.first_reply_at?;
        let took = then.saturating_sub(self.started_at?);
        window.ends_after(then).then_some(took)
    }
}

#[cfg(test)]
mod tests;
