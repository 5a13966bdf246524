//! Who watches a load while it runs.

use std::io::BufRead as _;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::Serialize;

use super::super::progress::Bar;
use super::super::{has_viewer, output};
use crate::load::Watcher;
use crate::load::phase::{Phase, Progress};
use crate::report::format;
use crate::sys::signal::Stop;

/// How often the figures of the live line change.
const REFRESH: Duration = Duration::from_millis(500);

/// For people: a line that lives, where there is a terminal.
pub(super) struct Shown {
    stop: Stop,
    bar: Option<Bar>,
    rate: Rate,
    /// Median and 99th percentile so far.
    times: Option<(u64, u64)>,
}

impl Shown {
    pub(super) fn new(stop: Stop) -> Self {
        Self {
            stop,
            bar: has_viewer().then(|| Bar::new("connecting")),
            rate: Rate::default(),
            times: None,
        }
    }
}

impl Watcher for Shown {
    fn enter(&mut self, phase: Phase, _: &Progress) -> anyhow::Result<()> {
        if let Some(bar) = &self.bar {
            bar.say(phase.name());
        }
        Ok(())
    }

    fn watch(&mut self, phase: Phase, progress: &Progress, share_done: f64) {
        if let Some(bar) = &self.bar {
            bar.set(share_done);
            let rate = self.rate.at(Instant::now(), progress.verified);
            bar.say(&line(phase, progress, rate, self.times));
        }
    }

    fn times_every(&self) -> Option<Duration> {
        self.bar.as_ref().map(|_| REFRESH)
    }

    fn see_times(&mut self, times: &Histogram<u64>) {
        self.times = (!times.is_empty()).then(|| {
            let at = |percentile| times.value_at_percentile(percentile);
            (at(50.0), at(99.0))
        });
    }

    fn interrupted(&self) -> bool {
        self.stop.requested()
    }
}

/// What a load does at the moment.
fn line(phase: Phase, progress: &Progress, rate: Option<f64>, times: Option<(u64, u64)>) -> String {
    let mut parts = vec![format!("{}: {} clients", phase.name(), progress.present())];
    if progress.done > 0 {
        parts.push(format!("{} done", progress.done));
    } else if progress.answered < progress.connected {
        parts.push(format!("{} served", progress.answered));
    }
    if let Some(rate) = rate {
        parts.push(format!("{}/s", format::number(rate)));
    }
    if let Some((median, most)) = times {
        let time = |nanoseconds: u64| format::time(nanoseconds as f64 / 1e3);
        parts.push(format!("p50 {}, p99 {}", time(median), time(most)));
    }
    if progress.failed + progress.lost > 0 {
        parts.push(format!(
            "{} failed, {} requests lost",
            progress.failed, progress.lost
        ));
    }
    parts.join(", ")
}

/// Replies a second, over the time since it was last worked out.
#[derive(Default)]
struct Rate {
    last: Option<(Instant, u64)>,
    per_s: Option<f64>,
}

impl Rate {
    fn at(&mut self, now: Instant, replies: u64) -> Option<f64> {
        let Some((then, before)) = self.last else {
            self.last = Some((now, replies));
            return None;
        };
        let passed = now.saturating_duration_since(then);
        if passed >= REFRESH {
            self.per_s = Some(replies.saturating_sub(before) as f64 / passed.as_secs_f64());
            self.last = Some((now, replies));
        }
        self.per_s
    }
}

/// One line on standard output for each phase, and where more clients are connected than before.
#[derive(Serialize)]
struct Event {
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<&'static str>,
    connected: u64,
    answered: u64,
    failed: u64,
    /// Clients connected now.
    present: u64,
    /// Whether a line is awaited before it goes on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    waits: bool,
}

/// For a measuring parent: phases as JSON lines, and its word awaited where it has to look first.
pub(super) struct Controlled {
    stop: Stop,
    /// Whether to wait for a word before the steady part too, since it begins with the first client.
    waits_at_start: bool,
    /// When clients were last told of, and how many were there.
    told: Option<(Instant, u64)>,
}

/// Least time between two lines about clients.
const NEWS: Duration = Duration::from_millis(100);

impl Controlled {
    pub(super) fn new(stop: Stop, waits_at_start: bool) -> Self {
        Self {
            stop,
            waits_at_start,
            told: None,
        }
    }

    fn waits(&self, phase: Phase) -> bool {
        match phase {
            Phase::WarmUp | Phase::Hold => true,
            Phase::Steady => self.waits_at_start,
            Phase::Settle | Phase::Drain => false,
        }
    }

    fn tell(&mut self, phase: Option<Phase>, progress: &Progress) -> anyhow::Result<()> {
        self.told = Some((Instant::now(), progress.present()));
        output::json_line(&Event {
            phase: phase.map(Phase::name),
            waits: phase.is_some_and(|phase| self.waits(phase)),
            connected: progress.connected,
            answered: progress.answered,
            failed: progress.failed,
            present: progress.present(),
        })
    }
}

impl Watcher for Controlled {
    fn enter(&mut self, phase: Phase, progress: &Progress) -> anyhow::Result<()> {
        self.tell(Some(phase), progress)?;
        if self.waits(phase) {
            // End of input means the same as a line: whoever waited has gone.
            let _ = std::io::stdin().lock().read_line(&mut String::new());
        }
        Ok(())
    }

    fn watch(&mut self, _: Phase, progress: &Progress, _: f64) {
        let is_news = self
            .told
            .is_some_and(|(at, count)| count != progress.present() && at.elapsed() >= NEWS);
        if is_news {
            // Whoever does not listen any more shows when the next phase is told.
            let _ = self.tell(None, progress);
        }
    }

    fn interrupted(&self) -> bool {
        self.stop.requested()
    }
}

/// Sees nothing but whether to stop.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_matters_now() {
        let progress = Progress {
            connected: 2000,
            answered: 2000,
            ..Progress::default()
        };
        let times = Some((12_345_678, 40_000_000));
        let shown = line(Phase::Steady, &progress, Some(148_213.4), times);
        assert_eq!(
            shown,
            "steady: 2000 clients, 148,000/s, p50 12.3 ms, p99 40.0 ms"
        );
        let progress = Progress {
            connected: 10,
            answered: 4,
            failed: 2,
            gone: 2,
            lost: 3,
            ..progress
        };
        assert_eq!(
            line(Phase::Settle, &progress, None, None),
            "settle: 8 clients, 4 served, 2 failed, 3 requests lost"
        );
        let progress = Progress {
            connected: 50,
            done: 40,
            gone: 41,
            failed: 1,
            ..Progress::default()
        };
        assert_eq!(
            line(Phase::Steady, &progress, None, None),
            "steady: 9 clients, 40 done, 1 failed, 0 requests lost"
        );
    }

    #[test]
    fn a_rate_is_of_the_time_since_the_last_one() {
        let mut rate = Rate::default();
        let start = Instant::now();
        assert_eq!(rate.at(start, 100), None);
        assert_eq!(rate.at(start + REFRESH / 2, 150), None);
        assert_eq!(rate.at(start + REFRESH, 200), Some(200.0));
        assert_eq!(rate.at(start + REFRESH * 3 / 2, 900), Some(200.0));
    }
}
