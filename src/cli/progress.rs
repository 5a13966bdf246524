//! Shows the progress of a run.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use super::live::{Forecast, Live, TICK};
use super::live_file::{EVERY, LiveFile};
use super::{has_viewer, output};
use crate::measure::{LiveSnapshot, Observer, TrialStart};
use crate::record::{Load, Purpose, SideBySide, Trial, format};

/// The outcome of a trial with short-lived clients.
fn jobs(load: &Load) -> String {
    let jobs = load.completion.as_deref();
    let time = jobs
        .and_then(|jobs| jobs.last_done_s)
        .map_or(String::new(), |time| {
            format!(" in {}", format::time(time * 1e6))
        });
    let done = format::whole(jobs.map_or(0, |jobs| jobs.clients_done).into());
    let clients = format::whole(load.clients.into());
    format!("{done} of {clients} clients done{time}")
}

/// The progress of a run: on a terminal, a live view below the finished trials; otherwise plain lines.
pub(super) struct RunProgress {
    live: Option<Live>,
    /// The progress for `throng view`.
    file: LiveFile,
    plain: bool,
    forecast: Forecast,
    /// The servers whose last output was already printed.
    printed_outputs: BTreeSet<String>,
}

impl RunProgress {
    /// The progress of a run whose record is in a directory. `others_s` are the expected seconds of the earlier and the
    /// later parts of its study.
    pub(super) fn new(directory: &Path, json: bool, others_s: [f64; 2]) -> Self {
        Self {
            live: has_viewer().then(Live::new),
            file: LiveFile::new(directory),
            plain: !has_viewer() && !json,
            forecast: Forecast::new(others_s),
            printed_outputs: BTreeSet::new(),
        }
    }

    fn print(&self, line: &str) {
        if let Some(live) = &self.live {
            live.end(line);
        } else if self.plain {
            output::note(line);
        }
    }

    /// The last output of a server that failed, but only the first time.
    fn last_output<'a>(&mut self, trial: &'a Trial) -> Option<&'a str> {
        let failure = trial.failure.as_ref()?;
        let is_new = self.printed_outputs.insert(trial.server.clone());
        is_new.then_some(failure.output.as_str())
    }
}

impl Observer for RunProgress {
    fn on_begin(&mut self, started: &TrialStart<'_>) {
        if self.plain
            && let Some(line) = ahead(started)
        {
            output::note(&line);
        }
        let clock = self.forecast.begin(started.estimate, Instant::now());
        self.file.begin(started, clock);
        if let Some(live) = &self.live {
            let mut number = format!("trial {}", started.index + 1);
            // The number of trials of a search is not known in advance.
            if !started.purpose.seeks_limit() {
                number += &format!(" of {}", started.total);
            }
            let load = match started.rate_per_s {
                Some(rate) => format!("{} requests/s", format::whole(rate as f64)),
                None => format::counted(started.clients, "client"),
            };
            let occasion = started.purpose.occasion(started.round, started.percent);
            let what = format!("{} with {load}, {occasion}", started.server);
            live.begin(&number, &what, clock, true);
        }
    }

    fn live_interval(&self) -> Option<Duration> {
        Some(self.live.as_ref().map_or(EVERY, |_| TICK))
    }

    fn on_snapshot(&mut self, live_snapshot: &LiveSnapshot) {
        self.file.see(live_snapshot);
        if let Some(live) = &self.live {
            live.see(live_snapshot, None);
        }
    }

    fn on_side_by_side(&mut self, seen: &SideBySide) {
        self.file.see_side_by_side(seen);
        if let Some(live) = &self.live {
            live.see_side_by_side(seen);
        }
    }

    fn on_end(&mut self, trial: &Trial) {
        self.forecast.end(Instant::now());
        self.print(&outcome(trial));
        let last_output = self.last_output(trial).unwrap_or_default();
        for line in last_output.lines() {
            self.print(&format!("  {}", format::printable(line)));
        }
    }
}

/// Percentiles, like ", p50 1.2 ms, p99 4 ms".
fn times(load: &Load) -> String {
    let open = load.open_loop.as_ref();
    let latency = open.map_or(&load.service_time, |open| &open.response_time);
    latency.as_ref().map_or_else(String::new, |latency| {
        let p50 = format::time(latency.p50_us);
        let p99 = format::or_absent(latency.p99_us, format::time);
        format!(", p50 {p50}, p99 {p99}")
    })
}

/// The shortest run whose duration is announced.
const ANNOUNCED: Duration = Duration::from_secs(30);

/// The announcement before the first trial: "33 trials, about 5 minutes". A live view shows the remaining time instead.
fn ahead(started: &TrialStart<'_>) -> Option<String> {
    let estimate = started.estimate.filter(|estimate| estimate.in_seconds)?;
    let time = Duration::try_from_secs_f64(estimate.this + estimate.after).ok()?;
    let is_first = started.index == 0 && !started.purpose.seeks_limit();
    let trials = format::counted(started.total as u32, "trial");
    (is_first && time >= ANNOUNCED).then(|| format!("{trials}, about {}", format::about(time)))
}

/// The outcome of a trial, on one line.
fn outcome(trial: &Trial) -> String {
    let outcome = match (&trial.failure, &trial.load) {
        (Some(failure), _) => format!("failed ({}): {}", failure.stage, failure.reason),
        (None, Some(load)) if load.completion.is_some() => jobs(load),
        (None, Some(load)) => {
            let rate = format::or_absent(load.window.replies_per_s, format::number);
            let [served, all] =
                [load.served, load.clients].map(|count| format::whole(count.into()));
            let says_why = trial
                .attempt
                .as_ref()
                .is_some_and(|one| !one.reasons.is_empty());
            let served = if load.served < load.clients && !says_why {
                format!(", {served} of {all} clients served")
            } else {
                String::new()
            };
            // Counting events slows both sides down, so the rate and the times of such a trial mislead; those of slices
            // are in the result, each by itself.
            match trial.purpose {
                Purpose::Profiled => format!("done{served}"),
                _ if !trial.slices.is_empty() => format!("done{served}"),
                _ => format!("{rate} requests/s{}{served}", times(load)),
            }
        }
        (None, None) => "no results".to_owned(),
    };
    let special = match trial.purpose.words(trial.percent()) {
        words if words.is_empty() || trial.purpose == Purpose::Search => String::new(),
        words => format!(" ({words})"),
    };
    let (server, clients) = (&trial.server, format::counted(trial.clients, "client"));
    let verdict = trial.attempt.as_ref().map_or_else(String::new, |attempt| {
        // The number of clients is there already; a rate is not.
        let value = if attempt.value == u64::from(trial.clients) {
            String::new()
        } else {
            format!("{} ", format::whole(attempt.value as f64))
        };
        match attempt.reasons.first() {
            Some(why) => format!("; {value}failed: {why}"),
            None => format!("; {value}passed"),
        }
    });
    let found = trial.invalid();
    let invalid = found.map_or_else(String::new, |finding| {
        format!("; invalid: {}", finding.text)
    });
    let line = format!("{server} with {clients}{special}: {outcome}{verdict}{invalid}");
    format::printable(&line)
}
