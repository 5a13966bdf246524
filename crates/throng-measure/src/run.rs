//! All trials of one invocation, one after the other, each on disk before the next begins.

use super::cluster::Origin;
use super::measuring::{Measured, begin, end, measure};
use super::observer::{Audience, Observer};
use super::run_spec::{RunSpec, utc_now};
use super::{limit, loads, side_by_side};
use throng_record::spec::TrialSpec;
use throng_record::{Below, Ending, Failure, Run, Store, Trial, to_repeat};
use throng_sys::signal::Stop;

/// Runs all trials, or as many as there is time for until a signal asks to stop.
///
/// # Errors
/// When the record cannot be written; what failed in a trial is part of the trial.
pub fn run(
    plan: &RunSpec,
    origin: &mut Origin,
    store: &mut Store,
    observer: &mut dyn Observer,
    stop: Stop,
) -> anyhow::Result<(Run, Vec<Trial>)> {
    if let Some(asked) = &plan.limit {
        return limit::run(plan, asked, origin, store, observer, stop);
    }
    let order = plan.order();
    let foreseen: Vec<f64> = order
        .iter()
        .map(|planned| loads::foreseen(&plan.settings, planned.purpose))
        .collect();
    let run = begin(plan, order.len(), store)?;
    let mut trials = plan.done.clone();
    let audience = &mut Audience { observer, stop };
    for (index, planned) in order.iter().enumerate() {
        if trials.iter().any(|trial| trial.index as usize == index) {
            continue;
        }
        if plan.is_in_slices(planned) {
            let together: Vec<(usize, &TrialSpec)> = order
                .iter()
                .enumerate()
                .filter(|(_, other)| plan.is_in_slices(other) && other.clients == planned.clients)
                .collect();
            audience
                .observer
                .begins(&plan.starts(planned, index, &foreseen));
            let seen = side_by_side::run(plan, store, &together, audience)?;
            for trial in seen {
                // One of an earlier invocation stays: those of its round are measured again without it.
                if trials.iter().all(|other| other.index != trial.index) {
                    store.add_trial(&trial)?;
                    audience.observer.ended(&trial);
                    trials.push(trial);
                }
            }
            if stop.requested() {
                break;
            }
            continue;
        }
        let started = plan.starts(planned, index, &foreseen);
        audience.observer.begins(&started);
        let trial = Trial {
            index: index as u32,
            ..Trial::default()
        };
        let (measured, trial) = one_trial(plan, origin, store, &trials, trial, planned, audience)?;
        if measured == Measured::CutShort {
            break;
        }
        audience.observer.ended(&trial);
        trials.push(trial);
        if measured == Measured::HostLost {
            return end(run, trials, Ending::HostLost, store);
        }
        if stop.requested() {
            break;
        }
    }
    let is_there = |index: usize| trials.iter().any(|trial| trial.index as usize == index);
    if stop.requested() || !(0..order.len()).all(is_there) {
        return end(run, trials, Ending::Interrupted, store);
    }
    let ending = repeat(plan, origin, store, &mut trials, &order, audience)?;
    end(run, trials, ending, store)
}

/// Repeats invalid trials: those of an earlier invocation if that is wanted, and then as often as the settings say.
/// Those of servers that were side by side cannot be had one by one.
fn repeat(
    plan: &RunSpec,
    origin: &mut Origin,
    store: &mut Store,
    trials: &mut Vec<Trial>,
    order: &[TrialSpec],
    audience: &mut Audience<'_>,
) -> anyhow::Result<Ending> {
    let settings = &plan.settings;
    let mut wanted = plan.to_retry();
    loop {
        if wanted.is_empty() {
            wanted = to_repeat(trials, settings.retries, settings.runs);
        }
        let planned = |place: u32| {
            let planned = order.get(place as usize);
            planned.filter(|planned| !plan.is_in_slices(planned))
        };
        wanted.retain(|place| planned(*place).is_some());
        let Some(place) = wanted.first().copied() else {
            return Ok(Ending::Complete);
        };
        wanted.remove(0);
        let Some(planned) = planned(place) else {
            continue;
        };
        let foreseen = vec![loads::foreseen(settings, planned.purpose); order.len()];
        let started = plan.starts(planned, order.len() - 1, &foreseen);
        audience.observer.begins(&started);
        let again = Trial {
            index: 1 + trials
                .iter()
                .map(|trial| trial.index)
                .max()
                .unwrap_or(place),
            repeats: Some(place),
            ..Trial::default()
        };
        let (measured, trial) = one_trial(plan, origin, store, trials, again, planned, audience)?;
        if measured == Measured::CutShort {
            return Ok(Ending::Interrupted);
        }
        audience.observer.ended(&trial);
        trials.push(trial);
        if measured == Measured::HostLost {
            return Ok(Ending::HostLost);
        }
        if audience.stop.requested() {
            return Ok(Ending::Interrupted);
        }
    }
}

/// Runs one trial, of which its place is known, after those that are `done` and records it, unless a signal cut it short.
fn one_trial(
    plan: &RunSpec,
    origin: &mut Origin,
    store: &mut Store,
    done: &[Trial],
    trial: Trial,
    planned: &TrialSpec,
    audience: &mut Audience<'_>,
) -> anyhow::Result<(Measured, Trial)> {
    let server = &plan.server(planned).name;
    let mut trial = Trial {
        round: planned.round,
        server: server.clone(),
        clients: planned.clients,
        purpose: planned.purpose,
        below: planned
            .percent
            .map(|percent| Below::of(percent, done, server, planned.clients)),
        started_at: utc_now(),
        ..trial
    };
    let measured = if trial.below.is_some_and(|below| below.rate_per_s.is_none()) {
        trial.failure = Some(no_rate(planned.clients));
        Measured::Whole
    } else {
        measure(plan, origin, store, planned, &mut trial, audience)?
    };
    if measured != Measured::CutShort {
        store.add_trial(&trial)?;
    }
    Ok((measured, trial))
}

/// Why there is no load below a maximum that is not known.
fn no_rate(clients: u32) -> Failure {
    Failure {
        stage: "load".to_owned(),
        reason: format!(
            "no trial at full speed with as many clients ({clients}) had replies, so there is no rate to \
             take a part of"
        ),
        output: String::new(),
    }
}
