//! Shows the progress of a load.

use std::io::BufRead as _;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::super::live::{self, Live};
use super::super::{has_viewer, output};
use super::targets;
use crate::load::phase::Progress;
use crate::load::{Plan, SliceStats, Until, Watcher};
use crate::measure::servers::running::ServersCpu;
use crate::measure::{LiveSnapshot, Rate};
use crate::record::load_event::NextSlice;
use crate::record::{LoadEvent, LoadSnapshot, Phase, format, measurable};
use crate::sys::signal::Stop;

/// Shows the progress to people: a live view on a terminal.
pub(super) struct TerminalProgress {
    stop: Stop,
    live: Option<Live>,
    rate: Rate,
    times: TimesSoFar,
    /// The servers' processes, if they run on this machine.
    servers: Option<ServersCpu>,
    /// At the start and at the end of the window.
    readings: Vec<Reading>,
}

/// The servers' CPU time and the replies until a moment.
struct Reading {
    at: Instant,
    used: Duration,
    replies: u64,
}

/// What the servers used in the window.
pub(super) struct ServerUse {
    /// CPU seconds per second.
    pub(super) cpus: f64,
    pub(super) us_per_request: Option<f64>,
}

impl TerminalProgress {
    pub(super) fn new(stop: Stop, plan: &Plan) -> Self {
        let live = has_viewer().then(|| {
            let live = Live::new();
            let clients = format::counted(plan.clients, "client");
            let what = format!("{} with {clients}", targets(plan));
            let full_s = match plan.until {
                Until::Duration(duration) => Some((plan.warm_up + duration).as_secs_f64()),
                _ => None,
            };
            live.begin("load", &what, live::Clock::of_share(full_s), false);
            live
        });
        Self {
            stop,
            live,
            rate: Rate::default(),
            times: TimesSoFar::default(),
            servers: ServersCpu::of(plan.routes.targets()),
            readings: Vec::new(),
        }
    }

    /// What the servers used from the start of the window to its end; `None` if either is unknown. A load without a
    /// last phase has ended just now, after this number of replies.
    pub(super) fn server_use(&mut self, replies: u64) -> Option<ServerUse> {
        if self.readings.len() == 1 {
            self.read(replies);
        }
        let [from, until] = self.readings.as_slice() else {
            return None;
        };
        let used = until.used.saturating_sub(from.used).as_secs_f64();
        let took = measurable((until.at - from.at).as_secs_f64())?;
        let answered = until.replies.saturating_sub(from.replies);
        Some(ServerUse {
            cpus: used / took,
            us_per_request: (answered > 0).then(|| used * 1e6 / answered as f64),
        })
    }

    fn read(&mut self, replies: u64) {
        if let Some(used) = self.servers.as_mut().and_then(ServersCpu::used) {
            let at = Instant::now();
            self.readings.push(Reading { at, used, replies });
        }
    }
}

impl Watcher for TerminalProgress {
    fn enter(&mut self, phase: Phase, progress: &Progress) -> anyhow::Result<()> {
        if matches!(phase, Phase::Measure | Phase::Drain) {
            self.read(progress.verified);
        }
        Ok(())
    }

    fn watch(&mut self, phase: Phase, progress: &Progress, share_done: f64) {
        if let Some(live) = &self.live {
            live.see(
                &LiveSnapshot {
                    phase: phase.name(),
                    clients: self.times.snapshot(progress),
                    replies_per_s: self.rate.at(Instant::now(), progress.verified),
                    ..LiveSnapshot::default()
                },
                Some(share_done),
            );
        }
    }

    fn times_every(&self) -> Option<Duration> {
        self.live.as_ref().map(|_| live::TICK)
    }

    fn on_times(&mut self, times: &Histogram<u64>) {
        self.times = TimesSoFar::of(times);
    }

    fn interrupted(&self) -> bool {
        self.stop.requested()
    }
}

/// Percentiles of the times so far.
#[derive(Clone, Copy, Default)]
struct TimesSoFar {
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
}

impl TimesSoFar {
    fn of(times: &Histogram<u64>) -> Self {
        let at = |percentile| (!times.is_empty()).then(|| times.value_at_percentile(percentile));
        Self {
            p50_ns: at(50.0),
            p99_ns: at(99.0),
        }
    }

    /// The progress of the clients, with these percentiles.
    fn snapshot(self, progress: &Progress) -> LoadSnapshot {
        LoadSnapshot {
            present: progress.present(),
            answered: progress.answered,
            done: progress.done,
            failed: progress.failed,
            lost: progress.lost,
            verified: Some(progress.verified),
            p50_ns: self.p50_ns,
            p99_ns: self.p99_ns,
        }
    }
}

/// Reports the progress to a runner: phases as JSON lines. If required, waits for the runner's command before
/// measuring.
pub(super) struct ControlledProgress {
    stop: Stop,
    /// Whether to wait before the measurement too: one that begins with the first client, or that is made in slices.
    waits_at_start: bool,
    /// When clients were last reported, and how many there were.
    last_reported: Option<(Instant, u64)>,
    /// Interval between reports of figures; `None` if they are not reported.
    figures_every: Option<Duration>,
    times: TimesSoFar,
}

/// Minimum interval between two lines about the number of clients.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

impl ControlledProgress {
    pub(super) fn new(stop: Stop, waits_at_start: bool, figures_every: Option<Duration>) -> Self {
        Self {
            stop,
            waits_at_start,
            last_reported: None,
            figures_every,
            times: TimesSoFar::default(),
        }
    }

    fn waits(&self, phase: Phase) -> bool {
        match phase {
            Phase::WarmUp | Phase::Idle => true,
            Phase::Measure => self.waits_at_start,
            Phase::Connect | Phase::Drain => false,
        }
    }

    fn report(&mut self, phase: Option<Phase>, progress: &Progress) -> anyhow::Result<()> {
        self.last_reported = Some((Instant::now(), progress.present()));
        let mut snapshot = self.times.snapshot(progress);
        if self.figures_every.is_none() {
            snapshot.verified = None;
        }
        output::json_line(&match phase {
            Some(phase) => LoadEvent::Phase {
                phase,
                waits: self.waits(phase),
                snapshot,
            },
            None => LoadEvent::Snapshot(snapshot),
        })
    }
}

impl Watcher for ControlledProgress {
    fn enter(&mut self, phase: Phase, progress: &Progress) -> anyhow::Result<()> {
        self.report(Some(phase), progress)?;
        if self.waits(phase) {
            // The end of input counts as a line: it means that the runner has exited.
            let _ = std::io::stdin().lock().read_line(&mut String::new());
        }
        Ok(())
    }

    fn watch(&mut self, _: Phase, progress: &Progress, _: f64) {
        let is_news = self.last_reported.is_some_and(|(at, count)| {
            let passed = at.elapsed();
            let is_due = self.figures_every.is_some_and(|every| passed >= every);
            is_due || count != progress.present() && passed >= PROGRESS_INTERVAL
        });
        if is_news {
            // If the reader has closed its end, the next phase notices it.
            let _ = self.report(None, progress);
        }
    }

    fn times_every(&self) -> Option<Duration> {
        self.figures_every
    }

    fn on_times(&mut self, times: &Histogram<u64>) {
        self.times = TimesSoFar::of(times);
    }

    fn interrupted(&self) -> bool {
        self.stop.requested()
    }

    fn next_slice(&mut self, last: Option<SliceStats>) -> anyhow::Result<Option<NextSlice>> {
        if let Some(last) = last {
            output::json_line(&LoadEvent::Slice(last))?;
        }
        let mut line = String::new();
        // As for a phase, the end of input means that the runner has exited.
        let _ = std::io::stdin().lock().read_line(&mut line);
        Ok(NextSlice::read(&line))
    }
}

/// Shows nothing, and only watches for a signal to stop.
pub(super) struct Unseen(pub(super) Stop);

impl Watcher for Unseen {
    fn enter(&mut self, _: Phase, _: &Progress) -> anyhow::Result<()> {
        Ok(())
    }

    fn watch(&mut self, _: Phase, _: &Progress, _: f64) {}

    fn interrupted(&self) -> bool {
        self.0.requested()
    }
}
