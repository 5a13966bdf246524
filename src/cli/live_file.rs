//! The progress of a running trial for `throng view`, which a separate thread writes to `live.jsonl` once per second,
//! so that a slow disk delays nothing.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::live::Clock;
use crate::measure::{LiveSnapshot, TrialStart};
use crate::record::{LIVE, LivePoint, LiveTrial, SideBySide, refuse_other};

/// Interval between two points of a trial, which doubles after every [`OF_A_PACE`] points.
pub(super) const EVERY: Duration = Duration::from_secs(1);
const OF_A_PACE: u32 = 300;
/// Maximum number of lines that wait to be written; any more are dropped.
const MOST_WAITING: usize = 8;

/// The next thing to write.
enum Next {
    /// A trial starts, and the file starts over.
    Trial(LiveTrial),
    Point(LivePoint),
}

/// The file, while it exists.
pub(super) struct LiveFile {
    next: Option<SyncSender<Next>>,
    thread: Option<JoinHandle<()>>,
    began: Instant,
    /// The times of the run.
    clock: Option<Clock>,
    last: Option<Instant>,
    points: u32,
}

impl LiveFile {
    /// Creates the file in the directory of a record. If it cannot be written, the run continues without it.
    pub(super) fn new(directory: &Path) -> Self {
        let (next, waiting) = sync_channel(MOST_WAITING);
        let path = directory.join(LIVE);
        let writes = std::thread::Builder::new().name("live".to_owned());
        let thread = writes.spawn(move || write(&path, &waiting)).ok();
        Self {
            next: Some(next),
            thread,
            began: Instant::now(),
            clock: None,
            last: None,
            points: 0,
        }
    }

    pub(super) fn begin(&mut self, started: &TrialStart<'_>, clock: Clock) {
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        (self.began, self.last, self.points) = (Instant::now(), None, 0);
        let of = (!started.purpose.seeks_limit()).then(|| number(started.total));
        self.send(Next::Trial(LiveTrial {
            trial: number(started.index + 1),
            of,
            server: started.server.to_owned(),
            clients: started.clients,
            occasion: started.purpose.occasion(started.round, started.percent),
        }));
        self.clock = Some(clock);
        self.send(Next::Point(self.point()));
    }

    pub(super) fn see(&mut self, seen: &LiveSnapshot) {
        if self.is_due() {
            let us = |ns: u64| ns as f64 / 1e3;
            self.send(Next::Point(LivePoint {
                phase: seen.phase.to_owned(),
                connected: seen.clients.present,
                served: seen.clients.answered,
                failed: seen.clients.failed,
                replies_per_s: seen.replies_per_s,
                p99_us: seen.clients.p99_ns.map(us),
                server_cpu_percent: seen.server_cpu_percent,
                client_cpu_percent: seen.client_cpu_percent,
                ..self.point()
            }));
        }
    }

    /// Writes the current comparison of servers that are measured side by side.
    pub(super) fn see_side_by_side(&mut self, seen: &SideBySide) {
        self.send(Next::Point(LivePoint {
            side_by_side: Some(seen.clone()),
            ..self.point()
        }));
    }

    /// A point with the times only.
    fn point(&self) -> LivePoint {
        let times = self.clock.map(|clock| clock.times(None, Instant::now()));
        LivePoint {
            at_s: self.began.elapsed().as_secs_f64(),
            share: times.and_then(|times| times.share),
            left_s: times.and_then(|times| Some(times.left?.as_secs_f64())),
            ..LivePoint::default()
        }
    }

    fn is_due(&mut self) -> bool {
        let pace = EVERY * (1 << (self.points / OF_A_PACE).min(16));
        let now = Instant::now();
        let is_due = self
            .last
            .is_none_or(|last| now.duration_since(last) >= pace);
        if is_due {
            self.last = Some(now);
            self.points += 1;
        }
        is_due
    }

    fn send(&self, next: Next) {
        if let Some(to) = &self.next {
            // If the queue is full, the line is dropped.
            let _ = to.try_send(next);
        }
    }
}

impl Drop for LiveFile {
    fn drop(&mut self) {
        drop(self.next.take());
        if let Some(thread) = self.thread.take() {
            // The thread ends by itself. If it panicked, that was already reported.
            let _ = thread.join();
        }
    }
}

/// Writes until the channel closes, then removes the file.
fn write(path: &Path, waiting: &Receiver<Next>) {
    let mut file: Option<File> = None;
    for next in waiting {
        let line = match &next {
            Next::Trial(trial) => {
                file = anew(path);
                serde_json::to_vec(trial)
            }
            Next::Point(point) => serde_json::to_vec(point),
        };
        if let (Some(to), Ok(mut line)) = (&mut file, line) {
            line.push(b'\n');
            // Without the file there are no charts, but the run continues.
            let _ = to.write_all(&line);
        }
    }
    if file.is_some() {
        let _ = std::fs::remove_file(path);
    }
}

fn anew(path: &Path) -> Option<File> {
    refuse_other(path).ok()?;
    // Another name of the file keeps its content.
    let _ = std::fs::remove_file(path);
    File::create_new(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::live::Forecast;
    use crate::record::{Purpose, read_live};

    #[test]
    fn a_trial_is_there_while_it_runs_and_gone_with_the_run() {
        let record = tempfile::tempdir().unwrap();
        let mut live = LiveFile::new(record.path());
        for index in [0, 1] {
            let start = TrialStart {
                index,
                total: 2,
                estimate: None,
                server: "epoll",
                clients: 10,
                rate_per_s: None,
                round: 0,
                purpose: Purpose::Timed,
                percent: None,
            };
            live.begin(&start, Forecast::new([0.0; 2]).begin(None, Instant::now()));
            live.see(&LiveSnapshot::default());
            live.see_side_by_side(&SideBySide::default());
        }
        // Everything that fits into the queue is written, and in time.
        drop(live.next.take());
        let kept = || read_live(record.path());
        let thread = live.thread.take().unwrap();
        thread.join().unwrap();
        assert_eq!(kept(), None);
        let path = record.path().join(LIVE);
        let (next, waiting) = sync_channel(4);
        next.send(Next::Trial(LiveTrial::default())).unwrap();
        next.send(Next::Point(LivePoint::default())).unwrap();
        std::thread::scope(|scope| {
            let path = &path;
            scope.spawn(move || write(path, &waiting));
            // It may not be written yet.
            while kept().is_none_or(|(_, points)| points.is_empty()) {
                std::thread::yield_now();
            }
            drop(next);
        });
        assert_eq!(kept(), None);
    }
}
