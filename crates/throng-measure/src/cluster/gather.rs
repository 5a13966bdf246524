//! The parts of a load on the hosts of a cluster, received as one.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::{Cluster, HostAssignment, HostMessage, HostResult, Report};
use throng_record::load_event::SliceStats;
use throng_record::{
    Draft, FailedStage, Failure, HostPart, Load, LoadEvent, LoadSnapshot, LoadStats, Phase,
    StartSkew, measurable,
};

/// A report of a load.
pub(in super::super) enum LoadNews {
    /// It enters a phase.
    Phase {
        phase: Phase,
        waits: bool,
        snapshot: LoadSnapshot,
    },
    /// Clients connected or left, or live values are due.
    Snapshot(LoadSnapshot),
    /// A slice is over.
    Slice(SliceStats),
    /// It is over.
    Result(Box<Load>),
    Failed {
        reason: String,
        output: String,
    },
    /// A line that is not a report.
    Nothing,
    /// No report in time.
    Late,
}

/// The running parts of a load. A phase begins when all parts have entered it.
pub(in super::super) struct Gathering<'a> {
    cluster: &'a mut dyn Cluster,
    parts: Vec<Part>,
    whole: LoadStats,
    phase: Phase,
    rows: Option<Draft>,
    /// When windows began, with the uncertainty; `None` once it is unknown for one host.
    starts: Option<Vec<(usize, i128, u64)>>,
    lost: bool,
    /// When the number of clients was last reported.
    last_report: Instant,
}

/// Minimum interval between two reports of the number of clients, however many hosts there are.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// Time limit for hosts to stop if not all could be started.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// The part of one host.
struct Part {
    host: usize,
    /// CPUs in use.
    cpus: usize,
    record: HostPart,
    phase: Phase,
    waits: bool,
    snapshot: LoadSnapshot,
    done: bool,
}

impl<'a> Gathering<'a> {
    /// Starts these assignments on a cluster. Clients' rows go into the file `rows`, if there is one.
    ///
    /// # Errors
    /// When the cluster cannot be reached, or the file cannot be written.
    pub(in super::super) fn start(
        cluster: &'a mut dyn Cluster,
        orders: &[HostAssignment],
        rows: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let create = |path: &Path| {
            let file = Draft::named(path);
            file.with_context(|| format!("cannot write {}", path.display()))
        };
        let created = rows.map(create).transpose()?;
        cluster
            .start(orders)
            .inspect_err(|_| cluster.stop(STOP_LIMIT))
            .context("cannot start the load on the client hosts")?;
        let part = |order: &HostAssignment| {
            let host = &cluster.hosts()[order.host];
            Part {
                host: order.host,
                cpus: match order.cpus.len() {
                    0 => host.cpus as usize,
                    count => count,
                },
                record: HostPart {
                    name: host.name.clone(),
                    rank: host.rank,
                    clients: order.clients,
                    ..HostPart::default()
                },
                phase: Phase::Connect,
                waits: false,
                snapshot: LoadSnapshot::default(),
                done: false,
            }
        };
        Ok(Self {
            parts: orders.iter().map(part).collect(),
            cluster,
            whole: LoadStats::default(),
            phase: Phase::Connect,
            rows: created,
            starts: Some(Vec::new()),
            lost: false,
            last_report: Instant::now(),
        })
    }

    /// The next report of all hosts together, awaited until `deadline`.
    pub(in super::super) fn receive(&mut self, deadline: Instant) -> LoadNews {
        match self.cluster.receive(deadline) {
            HostMessage::Late => LoadNews::Late,
            HostMessage::From { host, report } => {
                let Some(place) = self.place_of(host) else {
                    return LoadNews::Nothing;
                };
                match report {
                    Report::Event(event) => self.event(place, &event),
                    Report::Finished(result) => self.finished(place, *result),
                    Report::Failed { reason, output } => self.failed(place, &reason, output),
                }
            }
            HostMessage::Lost { host, reason } => {
                let Some(place) = self.place_of(host) else {
                    return LoadNews::Nothing;
                };
                self.lost = true;
                self.failed(place, &format!("it was lost: {reason}"), String::new())
            }
        }
    }

    /// Starts the phase that all loads are waiting for.
    pub(in super::super) fn proceed(&mut self) -> anyhow::Result<()> {
        for part in &mut self.parts {
            part.waits = false;
        }
        self.cluster.proceed()
    }

    /// Ends all parts that are still running.
    pub(in super::super) fn stop(&mut self, limit: Duration) {
        self.cluster.stop(limit);
    }

    /// The hosts without a result, as text: a few of them.
    pub(in super::super) fn missing(&self) -> String {
        let missing: Vec<&Part> = self.parts.iter().filter(|part| !part.done).collect();
        let names: Vec<String> = missing
            .iter()
            .take(5)
            .map(|part| part.record.label())
            .collect();
        let more = match missing.len().saturating_sub(names.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("no result from {}{more}", names.join(", "))
    }

    /// The outcome of each host, the skew between their starts, and whether one was lost.
    pub(in super::super) fn into_record(self) -> (Vec<HostPart>, Option<StartSkew>, bool) {
        let mut records: Vec<HostPart> = self.parts.into_iter().map(|part| part.record).collect();
        let starts = self.starts.filter(|starts| starts.len() == records.len());
        let skew = starts.and_then(|starts| {
            let first = starts.iter().min_by_key(|start| start.1)?;
            let last = starts.iter().max_by_key(|start| start.1)?;
            let microseconds = |time: i128| time as f64 / 1e3;
            for &(place, at, _) in &starts {
                records[place].start_offset_us = Some(microseconds(at - first.1));
            }
            Some(StartSkew {
                skew_us: microseconds(last.1 - first.1),
                error_us: (first.2 + last.2) as f64 / 1e3,
            })
        });
        (records, skew, self.lost)
    }

    fn place_of(&self, host: usize) -> Option<usize> {
        self.parts.iter().position(|part| part.host == host)
    }

    fn event(&mut self, place: usize, event: &LoadEvent) -> LoadNews {
        let part = &mut self.parts[place];
        match *event {
            LoadEvent::Phase {
                phase,
                waits,
                snapshot,
            } => {
                part.snapshot = snapshot;
                (part.phase, part.waits) = (phase, waits);
                self.entered()
            }
            LoadEvent::Snapshot(snapshot) => {
                part.snapshot = snapshot;
                self.report()
            }
            // It is part of the host's result.
            LoadEvent::Result(_) | LoadEvent::Slice(_) => LoadNews::Nothing,
        }
    }

    /// The phase that all running parts have reached, if it is new.
    fn entered(&mut self) -> LoadNews {
        let running = || self.parts.iter().filter(|part| !part.done);
        let Some(phase) = running().map(|part| part.phase).min() else {
            return LoadNews::Nothing;
        };
        if phase <= self.phase {
            return self.report();
        }
        self.phase = phase;
        let waits = running().any(|part| part.waits);
        LoadNews::Phase {
            phase,
            waits,
            snapshot: self.snapshot(),
        }
    }

    /// The number of clients, unless it was just reported.
    fn report(&mut self) -> LoadNews {
        if self.last_report.elapsed() < PROGRESS_INTERVAL {
            return LoadNews::Nothing;
        }
        self.last_report = Instant::now();
        LoadNews::Snapshot(self.snapshot())
    }

    fn snapshot(&self) -> LoadSnapshot {
        LoadSnapshot::together(self.parts.iter().map(|part| part.snapshot))
    }

    fn finished(&mut self, place: usize, result: HostResult) -> LoadNews {
        match self.take(place, result) {
            Ok(()) if self.parts.iter().all(|part| part.done) => self.end(),
            // Hosts that ended early are excluded.
            Ok(()) => self.entered(),
            Err(error) => self.failed(place, &format!("{error:#}"), String::new()),
        }
    }

    /// Merges a host's result.
    fn take(&mut self, place: usize, result: HostResult) -> anyhow::Result<()> {
        let part = &mut self.parts[place];
        let HostResult {
            mut seen,
            side,
            rows,
        } = result;
        let clock = self.cluster.hosts()[part.host].clock;
        if let (Some(rows), Some(file)) = (rows, &mut self.rows) {
            let is_first = self.parts.iter().all(|each| !each.done);
            let record = &self.parts[place].record;
            write_rows(file, &rows, is_first, record).context("cannot write the clients' rows")?;
        }
        let ended = &mut self.parts[place];
        ended.keep_results(&seen);
        ended.record.side = side;
        ended.record.clock_error_us = clock.map(|clock| clock.error_ns as f64 / 1e3);
        match (&mut self.starts, seen.span.from_ns, clock) {
            (Some(starts), Some(from), Some(clock)) => {
                let at = i128::from(from) - i128::from(clock.offset_ns);
                starts.push((place, at, clock.error_ns));
            }
            (starts, _, _) => *starts = None,
        }
        ended.done = true;
        ended.snapshot.present = 0;
        // Without a clock offset, its load is assumed to have begun with the first one.
        let (first, began) = (self.whole.span.began_ns, seen.span.began_ns);
        let together = || Some(first?.saturating_sub(began?));
        let by_ns = clock.map(|clock| clock.offset_ns.saturating_neg());
        seen.shift(by_ns.or_else(together).unwrap_or_default());
        self.whole.merge(&seen);
        Ok(())
    }

    fn end(&mut self) -> LoadNews {
        let written = self.rows.take().map_or(Ok(()), Draft::finish);
        match written {
            Ok(()) => LoadNews::Result(Box::new(self.whole.summary())),
            Err(error) => LoadNews::Failed {
                reason: format!("cannot write the clients' rows: {error}"),
                output: String::new(),
            },
        }
    }

    fn failed(&mut self, place: usize, reason: &str, output: String) -> LoadNews {
        let part = &mut self.parts[place];
        part.done = true;
        part.record.failure = Some(Failure {
            stage: FailedStage::Load,
            reason: reason.to_owned(),
            output: output.clone(),
            signal: None,
        });
        LoadNews::Failed {
            reason: format!("client host {}: {reason}", part.record.label()),
            output,
        }
    }
}

impl Part {
    fn keep_results(&mut self, seen: &LoadStats) {
        let record = &mut self.record;
        let times = seen.service_time.latency();
        let errors = seen.errors.values().map(|errors| errors.count);
        record.served = Some(seen.served);
        record.replies = Some(seen.window_replies);
        record.replies_per_s = seen.replies_per_s();
        record.p50_us = times.as_ref().map(|times| times.p50_us);
        record.p99_us = times.and_then(|times| times.p99_us);
        record.errors = Some(errors.fold(0, u64::saturating_add));
        record.cpu_s = seen.cpu_s();
        let had_s = measurable(seen.span.duration_s())
            .map(|time_s| time_s * self.cpus.min(seen.threads as usize) as f64);
        record.cpu_share = record
            .cpu_s
            .zip(had_s)
            .map(|(used_s, had_s)| used_s / had_s);
    }
}

/// Appends a host's rows, each with the host's rank and name.
fn write_rows(
    file: &mut impl std::io::Write,
    rows: &str,
    with_names: bool,
    host: &HostPart,
) -> std::io::Result<()> {
    let mut lines = rows.lines();
    if let Some(names) = lines.next().filter(|_| with_names) {
        writeln!(file, "{names},rank,host")?;
    }
    for line in lines {
        writeln!(file, "{line},{},{}", host.rank, host.name)?;
    }
    Ok(())
}
