//! Runs a study of several parts. Each part is a run with its own record.

mod mistakes;
pub(super) mod resolve;
mod search;

use std::path::Path;

use crate::cli::exit::OutputOptions;
use crate::cli::progress::RunProgress;
use crate::cli::runner;
use crate::cli::{Exit, Usage, has_viewer, output, report};
use crate::measure::cluster::Origin;
use crate::measure::{self, RunSpec};
use crate::record::{self, Ending, Lock, SCHEMA_VERSION, Scaled, Store};
use crate::study::Study;
use resolve::Resolved;

/// A part to run.
pub(super) struct Ready {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) plan: RunSpec,
    pub(super) store: Store,
}

/// Rejects a study if none of its parts can run here.
pub(super) fn check(study: &Study, parts: &[Resolved]) -> Result<(), Usage> {
    match parts.iter().find_map(|part| part.record.skipped.as_ref()) {
        Some(first) if parts.iter().all(|part| part.plan.is_err()) => Err(Usage(format!(
            "{}: no part can run on this machine: {first}",
            study.name
        ))),
        _ => Ok(()),
    }
}

/// Starts a study: resolves everything before the first trial, and creates the record of each part.
pub(super) fn run(
    study: &Study,
    scale: Option<Scaled>,
    parts: Vec<Resolved>,
    origin: &mut Origin,
    directory: &Path,
    accepted: OutputOptions,
) -> anyhow::Result<Exit> {
    let whole = record::Study {
        schema_version: SCHEMA_VERSION,
        throng_version: env!("CARGO_PKG_VERSION").to_owned(),
        name: study.name.clone(),
        question: study.question.clone(),
        summary: study.summary.clone(),
        changed: study.changed.clone(),
        source: study.source.clone(),
        scale,
        started_at: measure::utc_now(),
        arguments: runner::arguments(),
        parts: parts.iter().map(|part| part.record.clone()).collect(),
        claims: study.claims.clone(),
    };
    runner::refuse_others_files(directory)?;
    let lock = whole.create(directory).map_err(Usage::from)?;
    let mut ready = Vec::new();
    for part in parts {
        let Resolved { record, plan } = part;
        let Ok(plan) = plan else {
            continue;
        };
        let store = runner::create(&directory.join(&record.name))?;
        ready.push(Ready {
            name: record.name,
            title: record.title,
            plan: *plan,
            store,
        });
    }
    begin(ready, origin, directory, (&whole, lock), accepted)
}

/// Runs a study from the first of its parts.
pub(super) fn begin(
    parts: Vec<Ready>,
    origin: &mut Origin,
    directory: &Path,
    study: (&record::Study, Lock),
    accepted: OutputOptions,
) -> anyhow::Result<Exit> {
    for part in &parts {
        // This lets an interrupted study continue with parts that have not started.
        part.store
            .write_run(&measure::begun(&part.plan, Vec::new()))?;
    }
    runner(parts, origin, directory, study, accepted)
}

/// Continues with the parts that are unfinished.
pub(super) fn resume(
    directory: &Path,
    origin: &mut Origin,
    retry_invalid: bool,
    accepted: OutputOptions,
) -> anyhow::Result<Exit> {
    let whole = record::Study::read(directory).map_err(Usage::from)?;
    let lock = Lock::take(directory).map_err(Usage::from)?;
    let mut ready = Vec::new();
    for part in whole.parts.iter().filter(|part| part.skipped.is_none()) {
        let found = record::directory(directory, &part.name).map_err(Usage::from)?;
        let directory = found.unwrap_or_else(|| directory.join(&part.name));
        let run = record::read(&directory).map_err(Usage::from)?;
        if run.ending == Ending::Complete && !retry_invalid {
            continue;
        }
        let (store, plan) = runner::resume(&directory, origin, retry_invalid)?;
        ready.push(Ready {
            name: part.name.clone(),
            title: part.title.clone(),
            plan,
            store,
        });
    }
    runner(ready, origin, directory, (&whole, lock), accepted)
}

/// Runs the parts of a study whose directory is locked.
fn runner(
    parts: Vec<Ready>,
    origin: &mut Origin,
    directory: &Path,
    (whole, _lock): (&record::Study, Lock),
    accepted: OutputOptions,
) -> anyhow::Result<Exit> {
    let (stop, _watchdog) = runner::prepare()?;
    for part in &whole.parts {
        if let Some(why) = &part.skipped {
            output::note(&format!(
                "part {} cannot run on this machine: {why}",
                part.name
            ));
        }
        for left_out in &part.left_out {
            output::note(&format!("part {}: {}", part.name, left_out.words()));
        }
    }
    let (count, mut nothing) = (parts.len(), None);
    let mut lost = None;
    let cases: Vec<&str> = whole
        .parts
        .iter()
        .filter(|part| part.expected.is_some())
        .map(|part| part.name.as_str())
        .collect();
    let known: Option<Vec<f64>> = parts
        .iter()
        .map(|part| measure::expected_s(&part.plan))
        .collect();
    let expected_s = known.unwrap_or_else(|| vec![0.0; count]);
    for (place, mut part) in parts.into_iter().enumerate() {
        if stop.requested() {
            break;
        }
        if has_viewer() || !accepted.json {
            output::note(&format!(
                "part {} of {count}, {}: {}",
                place + 1,
                part.name,
                part.title
            ));
        }
        let others_s =
            [&expected_s[..place], &expected_s[place + 1..]].map(|some| some.iter().sum());
        let mut shown = RunProgress::new(part.store.directory(), accepted.json, others_s);
        let measured = measure::run(&part.plan, origin, &mut part.store, &mut shown, stop);
        let (run, trials) = measured.map_err(|error| runner::ended_by(error, &part.store))?;
        drop(shown);
        if run.ending == Ending::HostLost {
            lost = Some(runner::host_lost(&trials, directory));
            break;
        }
        let is_case = cases.contains(&part.name.as_str());
        if !is_case && !stop.requested() && trials.iter().all(|trial| trial.failure.is_some()) {
            nothing.get_or_insert(part.name);
        }
    }
    let made = report::make(directory, accepted.print)?;
    if stop.requested() {
        output::note(&format!(
            "{}: the finished trials are in {}{}",
            runner::interrupted(),
            directory.display(),
            runner::to_resume("run", directory)
        ));
        return Ok(Exit::Interrupted);
    }
    if let Some(lost) = lost {
        output::error(&lost);
        return Ok(Exit::Rough);
    }
    match nothing {
        Some(part) => {
            anyhow::bail!("every trial of part {part} failed; see the report for the reasons")
        }
        // A scaled study promises no good data.
        None => Ok(runner::exit(
            &made,
            accepted.accept_rough(whole.scale.is_some()),
        )),
    }
}
