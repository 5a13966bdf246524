//! The progress of a run, from its record: the finished trials, the remaining time at the pace of the latest ones, and
//! their results.

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;

use super::run_entry::{RunEntry, State};
use super::runs::Runs;
use throng_record::format::{counted, or_absent, span};
use throng_record::metrics::{Metric, of_trial};
use throng_record::{self as record, LivePoint, LiveTrial, Trial, Trials, read_live};

/// Number of trials to show.
const SHOWN: usize = 10;
/// Bytes to read for them at the end of the trial file; a trial takes about 20,000 bytes.
const END: u64 = 1 << 20;

/// The progress of a run.
#[derive(Debug, Serialize)]
pub(super) struct Progress {
    /// The run.
    #[serde(flatten)]
    pub(super) run: RunEntry,
    /// The share done, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) percent: Option<u64>,
    /// The remaining time at the pace of the latest trials, while the run is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) left_s: Option<f64>,
    /// The running part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) part: Option<String>,
    /// The name of the record of these trials: the run, or one of its parts.
    pub(super) current: String,
    /// The running trial, with its values over time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) now: Option<(LiveTrial, Vec<LivePoint>)>,
    /// The latest trials while the run is active, newest first.
    pub(super) last: Vec<EndedTrial>,
    /// Why the latest trials cannot be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unread: Option<String>,
}

/// A finished trial.
#[derive(Debug, Serialize)]
pub(super) struct EndedTrial {
    /// Its index.
    pub(super) index: u32,
    pub(super) server: String,
    /// Number of clients.
    pub(super) clients: u32,
    /// Which of the trials with this server and number of clients it is.
    pub(super) occasion: String,
    /// Its duration.
    pub(super) took_s: f64,
    /// Each of [`of_trial`], as text.
    pub(super) figures: Vec<String>,
    /// Why it has no results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<String>,
    /// Why it is invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) invalid: Option<String>,
}

/// The progress of the run called `name`; `None` if there is no such run.
pub(super) fn of(runs: &Runs, name: &str) -> Option<Progress> {
    let (directory, run) = runs.find(name)?;
    let parts = runs.parts(name);
    // Parts run one after the other, so the last part with trials is the running one.
    let begun = parts.iter().rev().find(|(_, trials, _)| *trials > 0);
    let current = begun.or(parts.first());
    let mut unread = None;
    let mut last = Vec::new();
    let is_running = run.state == State::Running;
    if let Some((part, ..)) = current.filter(|_| is_running) {
        match last_trials(&part.place(&directory)) {
            Ok(trials) => last = trials,
            Err(error) => unread = Some(format!("{error:#}")),
        }
    }
    // Measured here, not taken from timestamps: the wall clock may be changed.
    let passed = current.and_then(|(_, _, since)| *since).unwrap_or_default();
    let left = run.planned.filter(|_| is_running && !last.is_empty());
    let left = left.map(|planned| {
        let mean = last.iter().map(|trial| trial.took_s).sum::<f64>() / last.len() as f64;
        let rest = planned.saturating_sub(run.trials) as f64 * mean;
        // The running trial may take longer than the previous ones did.
        (rest - passed.as_secs_f64().min(mean)).max(0.0)
    });
    let percent = run
        .planned
        .filter(|planned| *planned > 0)
        .map(|planned| (run.trials.min(planned) * 100) / planned);
    let part = current.and_then(|(part, ..)| part.name.clone());
    // The next part may already be running although its first trial has not ended.
    let places = parts.iter().rev().map(|(part, ..)| part.place(&directory));
    Some(Progress {
        now: is_running
            .then(|| places.into_iter().find_map(|place| read_live(&place)))
            .flatten(),
        current: match &part {
            Some(part) => format!("{name}/{part}"),
            None => name.to_owned(),
        },
        percent,
        left_s: left,
        part,
        last: last.iter().rev().map(EndedTrial::of).collect(),
        unread,
        run,
    })
}

impl Progress {
    /// The progress as text: "trial 7 of 66, 9 %, about 2m 10s left".
    pub(super) fn words(&self) -> String {
        let trials = u32::try_from(self.run.trials).unwrap_or(u32::MAX);
        let mut words = vec![match (self.run.state, self.run.planned) {
            (State::Running, Some(planned)) => {
                format!("trial {} of {planned}", (self.run.trials + 1).min(planned))
            }
            (State::Running, None) => format!("{} so far", counted(trials, "trial")),
            (_, Some(planned)) => format!("{trials} of {planned} trials"),
            (_, None) => counted(trials, "trial"),
        }];
        words.extend(self.percent.map(|percent| format!("{percent} %")));
        words.extend(self.left_s.and_then(|left| {
            let left = Duration::try_from_secs_f64(left).ok()?;
            Some(format!("about {} left", span(left)))
        }));
        words.join(", ")
    }
}

impl EndedTrial {
    pub(super) fn of(trial: &Trial) -> Self {
        let text = |metric: &Metric| or_absent(metric.of(trial), |value| metric.text(value));
        Self {
            index: trial.index,
            server: trial.server.clone(),
            clients: trial.clients,
            occasion: trial.occasion(),
            took_s: trial.took_s,
            figures: of_trial().map(text).collect(),
            failure: trial.failure.as_ref().map(|failure| failure.reason.clone()),
            invalid: trial.invalid.as_ref().map(|invalid| invalid.reason.clone()),
        }
    }
}

/// The last complete trials of a running record, whose file is never compressed.
fn last_trials(record: &Path) -> anyhow::Result<Vec<Trial>> {
    let Some(file) = Trials::open(record)? else {
        return Ok(Vec::new());
    };
    let from = file.metadata().len().saturating_sub(END);
    let mut end = Vec::new();
    file.lines_from(from)?.read_to_end(&mut end)?;
    let mut lines: Vec<&[u8]> = end.split(|byte| *byte == b'\n').collect();
    // After the last newline there is either nothing or an incomplete line. If reading did not begin at the start of
    // the file, the first line is the rest of an earlier one.
    lines.pop();
    if from > 0 && !lines.is_empty() {
        lines.remove(0);
    }
    let first = lines.len().saturating_sub(SHOWN);
    let read = |line: &&[u8]| -> anyhow::Result<Trial> {
        let trial = std::str::from_utf8(line).ok();
        let trial = trial.and_then(|line| record::parse(file.path(), 1, line).ok());
        // The line number would require reading the whole file.
        trial.context("a line of trials.jsonl is not a trial; the report says which and why")
    };
    lines[first..].iter().map(read).collect()
}
