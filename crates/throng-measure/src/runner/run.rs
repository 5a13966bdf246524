//! All trials of one invocation, one after the other, each on disk before the next begins.

use super::limit;
use super::loads;
use super::measuring::{TrialEnd, begin, end, ending, measure};
use super::observer::{Audience, Observer};
use super::plan::TrialSpec;
use super::run_spec::{RunSpec, utc_now};
use super::side_by_side;
use crate::cluster::Origin;
use crate::network::link::SlowLink;
use crate::servers::server_setup::{ServerSetups, SetupError};
use throng_record::{
    AtLoad, Ending, FailedStage, Failure, Purpose, Run, Store, Trial, leaves_clients_unserved,
    to_repeat,
};
use throng_sys::signal::Stop;

/// Runs all trials, until a signal asks to stop.
///
/// # Errors
/// If the record cannot be written, or a server cannot be set up. A failure in a trial is part of the trial.
pub fn run(
    plan: &RunSpec,
    origin: &mut Origin,
    store: &mut Store,
    observer: &mut dyn Observer,
    stop: Stop,
) -> anyhow::Result<(Run, Vec<Trial>)> {
    let _link = SlowLink::wanted(plan.settings.link.as_ref())
        .map_err(|error| anyhow::anyhow!("cannot make the link of this run: {error}"))?;
    let setups = match ServerSetups::begin(&plan.servers, &plan.settings, stop) {
        Ok(setups) => setups,
        Err(why) => {
            let run = begin(plan, plan.order().len(), store)?;
            let (ending, error) = match why {
                SetupError::Interrupted => (Ending::Interrupted, None),
                SetupError::Failed(error) => (Ending::ServerFailed, Some(error)),
            };
            let ended = end(run, plan.done.clone(), ending, store)?;
            return error.map_or(Ok(ended), |error| Err(error.into()));
        }
    };
    if let Some(asked) = &plan.limit {
        let (run, trials, ending) = limit::run(plan, asked, origin, store, observer, stop)?;
        return end_all(setups, run, trials, ending, store);
    }
    let order = plan.order();
    let mut run = begin(plan, order.len(), store)?;
    let mut runner = Runner {
        plan,
        origin,
        store,
        audience: Audience { observer, stop },
        order: &order,
        trials: plan.done.clone(),
        wanted: plan.to_retry(),
    };
    let ending = runner.run_all()?;
    run.trials_planned -= runner.left_out().count() as u32;
    end_all(setups, run, runner.trials, ending, runner.store)
}

/// The expected duration of a run in seconds; `None` if the servers or a search determine it.
pub fn expected_s(plan: &RunSpec) -> Option<f64> {
    let is_known = plan.limit.is_none() && !plan.settings.load.has_jobs();
    is_known.then(|| loads::estimates(plan, &plan.order()).iter().sum())
}

/// Cleans up after the servers, and completes the record.
fn end_all(
    setups: ServerSetups<'_>,
    mut run: Run,
    trials: Vec<Trial>,
    ending: Ending,
    store: &Store,
) -> anyhow::Result<(Run, Vec<Trial>)> {
    run.findings.extend(setups.end());
    end(run, trials, ending, store)
}

/// A run in progress.
struct Runner<'a> {
    plan: &'a RunSpec,
    origin: &'a mut Origin,
    store: &'a mut Store,
    audience: Audience<'a>,
    /// The planned trials; a trial's index is its index in this slice.
    order: &'a [TrialSpec],
    /// Finished trials, including those of earlier invocations.
    trials: Vec<Trial>,
    /// Indexes of invalid trials of earlier invocations that are still to be repeated.
    wanted: Vec<u32>,
}

impl Runner<'_> {
    fn run_all(&mut self) -> anyhow::Result<Ending> {
        let order = self.order;
        for (index, planned) in order.iter().enumerate() {
            if self.is_done(index) || self.has_known_outcome(planned) {
                continue;
            }
            // The loads of these trials are percentages of the rates of earlier ones, which must be valid by now.
            if planned.percent.is_some() {
                let ending = self.repeat_invalid()?;
                if ending != Ending::Complete {
                    return Ok(ending);
                }
            }
            let ending = if self.plan.is_in_slices(planned) {
                self.run_side_by_side(index, planned)?
            } else {
                let trial = Trial {
                    index: index as u32,
                    ..Trial::default()
                };
                self.run_one(trial, planned)?
            };
            if ending != Ending::Complete {
                return Ok(ending);
            }
        }
        let left_out = self.left_out().count();
        if self.done().count() + left_out < order.len() {
            return Ok(Ending::Interrupted);
        }
        self.repeat_invalid()
    }

    /// Expected duration of each planned trial, in seconds.
    fn estimate(&self) -> Vec<f64> {
        loads::estimates(self.plan, self.order)
    }

    /// Planned trials that are done.
    fn done(&self) -> impl Iterator<Item = usize> {
        (0..self.order.len()).filter(|index| self.is_done(*index))
    }

    /// Planned trials that are not run because their outcome is known.
    fn left_out(&self) -> impl Iterator<Item = usize> {
        let order = self.order.iter().enumerate();
        let left_out = order
            .filter(|(index, planned)| !self.is_done(*index) && self.has_known_outcome(planned));
        left_out.map(|(index, _)| index)
    }

    /// Whether a trial of a comparison would only show again that the server does not serve all clients.
    fn has_known_outcome(&self, planned: &TrialSpec) -> bool {
        let plan = self.plan;
        let server = &plan.server(planned).name;
        plan.comparison.is_some()
            && planned.purpose == Purpose::Timed
            && !plan.is_in_slices(planned)
            && leaves_clients_unserved(&self.trials, server, planned.clients)
    }

    fn is_done(&self, index: usize) -> bool {
        self.trials
            .iter()
            .any(|trial| trial.index as usize == index)
    }

    /// Runs all planned trials with this number of clients that are measured in slices.
    fn run_side_by_side(&mut self, index: usize, planned: &TrialSpec) -> anyhow::Result<Ending> {
        let plan = self.plan;
        let order = self.order.iter().enumerate();
        let together: Vec<(usize, &TrialSpec)> = order
            .filter(|(_, other)| plan.is_in_slices(other) && other.clients == planned.clients)
            .collect();
        let estimate = self.estimate();
        let started = plan.starts(planned, index, &estimate);
        self.audience.observer.on_begin(&started);
        let seen = side_by_side::run(plan, self.store, &together, &mut self.audience)?;
        let failed = seen.iter().any(|trial| self.ends_all(trial));
        for trial in seen {
            // A trial of an earlier invocation stays: the others of its round are measured again without it.
            if !self.is_done(trial.index as usize) {
                self.store.add_trial(&trial)?;
                if !self.ends_all(&trial) {
                    self.audience.observer.on_end(&trial);
                }
                self.trials.push(trial);
            }
        }
        if failed {
            return Ok(Ending::ServerFailed);
        }
        Ok(self.ending(TrialEnd::Complete))
    }

    /// Whether to stop because a server did not start, or did not reply correctly, in its first trial.
    fn ends_all(&self, trial: &Trial) -> bool {
        let failed = trial
            .failure
            .as_ref()
            .is_some_and(|failure| failure.stage.is_of_the_beginning());
        let mut earlier = self
            .trials
            .iter()
            .filter(|other| other.server == trial.server);
        failed
            && !self.plan.settings.keep_going
            && !self.audience.stop.requested()
            && earlier.all(|other| {
                other
                    .failure
                    .as_ref()
                    .is_some_and(|failure| failure.stage.is_of_the_beginning())
            })
    }

    /// Repeats invalid trials: those of an earlier invocation if requested, and then as often as the settings allow.
    /// Servers measured side by side cannot be repeated one by one.
    fn repeat_invalid(&mut self) -> anyhow::Result<Ending> {
        let settings = &self.plan.settings;
        let (plan, order) = (self.plan, self.order);
        let planned = |place: &u32| {
            let planned = order.get(*place as usize);
            planned.filter(|planned| !plan.is_in_slices(planned))
        };
        loop {
            if self.wanted.is_empty() {
                self.wanted = to_repeat(&self.trials, settings.retries, settings.runs);
            }
            self.wanted.retain(|place| planned(place).is_some());
            let Some(place) = self.wanted.first().copied() else {
                return Ok(Ending::Complete);
            };
            self.wanted.remove(0);
            let Some(planned) = planned(&place) else {
                continue;
            };
            // After every planned trial, including future ones.
            let last = self.trials.iter().map(|trial| trial.index).max();
            let again = Trial {
                index: last.map_or(0, |last| last + 1).max(order.len() as u32),
                repeats: Some(place),
                ..Trial::default()
            };
            let ending = self.run_one(again, planned)?;
            if ending != Ending::Complete {
                return Ok(ending);
            }
        }
    }

    /// Runs the trial at an index, and records it, unless a signal interrupted it.
    fn run_one(&mut self, trial: Trial, planned: &TrialSpec) -> anyhow::Result<Ending> {
        let plan = self.plan;
        let server = &plan.server(planned).name;
        let (shown, estimate) = if trial.repeats.is_some() {
            // No later trial is known.
            let takes = loads::estimate(&plan.settings, planned);
            (self.order.len() - 1, vec![takes; self.order.len()])
        } else {
            (trial.index as usize, self.estimate())
        };
        let started = plan.starts(planned, shown, &estimate);
        self.audience.observer.on_begin(&started);
        let mut trial = Trial {
            round: planned.round,
            server: server.clone(),
            clients: planned.clients,
            purpose: planned.purpose,
            at_load: planned
                .percent
                .map(|percent| AtLoad::of(percent, &self.trials, server, planned.clients)),
            started_at: utc_now(),
            ..trial
        };
        let measured = if trial
            .at_load
            .is_some_and(|at_load| at_load.rate_per_s.is_none())
        {
            trial.failure = Some(no_rate(planned.clients));
            TrialEnd::Complete
        } else {
            let (audience, trials) = (&mut self.audience, (&mut trial, &*self.trials));
            measure(plan, self.origin, self.store, planned, trials, audience)?
        };
        let failed = measured != TrialEnd::Interrupted && self.ends_all(&trial);
        if measured != TrialEnd::Interrupted {
            self.store.add_trial(&trial)?;
            if !failed {
                self.audience.observer.on_end(&trial);
            }
            self.trials.push(trial);
        }
        if failed {
            return Ok(Ending::ServerFailed);
        }
        Ok(self.ending(measured))
    }

    /// How the run ends after a trial; [`Ending::Complete`] if it continues.
    fn ending(&self, measured: TrialEnd) -> Ending {
        match measured {
            TrialEnd::HostLost => Ending::HostLost,
            TrialEnd::Interrupted => Ending::Interrupted,
            TrialEnd::Complete => ending(!self.audience.stop.requested()),
        }
    }
}

/// Why there is no load below an unknown maximum.
fn no_rate(clients: u32) -> Failure {
    Failure {
        stage: FailedStage::Load,
        reason: format!(
            "no trial at full speed with {clients} clients had replies, so its highest rate is unknown"
        ),
        output: String::new(),
        signal: None,
    }
}
