//! The search for the limit of each server: trials, their results, and the cause.

mod room;
mod verdict;

use super::measuring::{TrialEnd, begin, ending, measure};
use super::observer::{Audience, Observer, TrialStart};
use super::plan::TrialSpec;
use super::run_spec::{RunSpec, utc_now};
use super::search::{Bounds, Point, Search, SearchState, Verdict};
use crate::cluster::Origin;
use throng_record::findings::{Circumstances, cause};
use throng_record::{
    Attempt, Ending, Find, Limit, LimitResult, Purpose, Run, SearchEnding, StoppedAt, Store, Trial,
    TriedValue,
};
use throng_spec::Spacing;
use throng_sys::signal::Stop;
use verdict::{Criteria, Judgement};

/// Shares of the limit at which a server is measured once its limit is known.
const SHARES: [f64; 2] = [0.5, 0.8];
/// A search ends after this many consecutive trials that failed before their clients connected.
const FAILURES: u32 = 2;

/// Searches for the limits of all servers, one after another, until a signal asks to stop.
///
/// # Errors
/// If the record cannot be written. A failure in a trial is part of the trial.
pub(crate) fn run(
    plan: &RunSpec,
    asked: &Limit,
    origin: &mut Origin,
    store: &mut Store,
    observer: &mut dyn Observer,
    stop: Stop,
) -> anyhow::Result<(Run, Vec<Trial>, Ending)> {
    let total = plan.servers.len() * (asked.tries as usize + SHARES.len());
    let mut run = begin(plan, total, store)?;
    let by_chance = plan.settings.load.arrival == Some(Spacing::Poisson);
    let criteria = Criteria::new(asked, by_chance)?;
    let mut trials = plan.done.clone();
    let mut all = Vec::new();
    let (mut host_lost, mut failed) = (false, false);
    for server in 0..plan.servers.len() {
        let mut hunt = ServerSearch {
            plan,
            asked,
            origin: &mut *origin,
            criteria: &criteria,
            server,
            total,
            stop,
            interrupted: false,
            host_lost: false,
            never_began: false,
            trials: &mut trials,
        };
        let found = hunt.go(store, observer)?;
        failed = hunt.never_began && !plan.settings.keep_going;
        let interrupted = hunt.interrupted || failed;
        host_lost = hunt.host_lost;
        all.push(found);
        let limit = run.limit.get_or_insert_with(|| asked.clone());
        limit.found.clone_from(&all);
        store.write_run(&run)?;
        if interrupted {
            break;
        }
    }
    let complete = all.len() == plan.servers.len()
        && all
            .iter()
            .all(|found| found.ending != SearchEnding::Interrupted);
    run.trials_planned = trials.len() as u32 + u32::from(!complete);
    let ending = if host_lost {
        Ending::HostLost
    } else if failed && !stop.requested() {
        Ending::ServerFailed
    } else {
        ending(complete && !stop.requested())
    };
    Ok((run, trials, ending))
}

/// The search for the limit of one server.
struct ServerSearch<'a> {
    plan: &'a RunSpec,
    asked: &'a Limit,
    origin: &'a mut Origin,
    criteria: &'a Criteria,
    server: usize,
    total: usize,
    stop: Stop,
    interrupted: bool,
    /// A client host was lost, which also interrupts the search.
    host_lost: bool,
    /// The server did not start, or did not reply correctly, the first time.
    never_began: bool,
    /// The trials of all servers' searches.
    trials: &'a mut Vec<Trial>,
}

impl ServerSearch<'_> {
    fn go(
        &mut self,
        store: &mut Store,
        observer: &mut dyn Observer,
    ) -> anyhow::Result<LimitResult> {
        let mut search = Search::new(self.bounds());
        let mut stopped_at: Option<StoppedAt> = None;
        let mut took_s = 0.0;
        let mut failures = 0;
        let mut failure = String::new();
        let earlier_trials: Vec<Trial> = self
            .own()
            .filter(|trial| is_of_search(trial))
            .cloned()
            .collect();
        let mut earlier = earlier_trials.into_iter();
        let mut out_of_time = false;
        while let Some(point) = search.next() {
            if took_s >= self.asked.time_limit_s {
                out_of_time = true;
                break;
            }
            // The results of an interrupted run are replayed before the first trial.
            let trial = match earlier.next() {
                Some(trial) => trial,
                None if self.interrupted => break,
                None => match self.attempt(point, None, store, observer)? {
                    Some(trial) => trial,
                    None => break,
                },
            };
            took_s += trial.took_s;
            match self.criteria.judge(&trial) {
                Judgement::Decided(verdict, _) => {
                    failures = 0;
                    self.bound_by_machine(&trial, verdict, &mut search, &mut stopped_at);
                    search.add(tried_point(&trial, point), verdict);
                }
                Judgement::Void(why) => {
                    failures += 1;
                    let began = trial
                        .failure
                        .as_ref()
                        .is_none_or(|judged| !judged.stage.is_of_the_beginning());
                    self.never_began = !began && self.own().count() == 1;
                    let is_over = self.never_began && !self.plan.settings.keep_going;
                    if is_over || failures >= FAILURES {
                        failure = why;
                        break;
                    }
                }
            }
        }
        let known = SearchState {
            ending: match search.known().ending {
                _ if !failure.is_empty() => SearchEnding::Failed,
                SearchEnding::OutOfTries if self.interrupted => SearchEnding::Interrupted,
                SearchEnding::OutOfTries if out_of_time => SearchEnding::OutOfTime,
                ending => ending,
            },
            ..search.known()
        };
        self.at_shares(&known, store, observer)?;
        Ok(self.found(&known, stopped_at, failure))
    }

    fn bounds(&self) -> Bounds {
        let asked = self.asked;
        Bounds {
            from: asked.from,
            max: asked.max,
            factor: asked.factor,
            within: asked.within_percent / 100.0,
            tries: asked.tries,
            confirm: asked.confirm,
            exact_hints: asked.find == Find::Clients,
        }
    }

    fn name(&self) -> &str {
        &self.plan.servers[self.server].name
    }

    fn own(&self) -> impl Iterator<Item = &Trial> {
        self.trials
            .iter()
            .filter(|trial| trial.server == self.plan.servers[self.server].name)
    }

    /// Tries a value; `None` if a signal interrupted the trial. If the signal came after the trial, its result still
    /// counts, but it is the last trial.
    fn attempt(
        &mut self,
        point: Point,
        share: Option<f64>,
        store: &mut Store,
        observer: &mut dyn Observer,
    ) -> anyhow::Result<Option<Trial>> {
        let same = |trial: &&Trial| {
            let attempt = trial.attempt.as_ref();
            attempt.is_some_and(|attempt| (attempt.value, attempt.share) == (point.value, share))
        };
        let round = self.own().filter(same).count() as u32;
        let clients = match self.asked.find {
            Find::Clients => u32::try_from(point.value).unwrap_or(u32::MAX),
            Find::Rate | Find::Sessions => self.asked.clients.unwrap_or(1),
        };
        let planned = TrialSpec {
            round,
            server: self.server,
            clients,
            purpose: point.purpose,
            percent: None,
        };
        let mut trial = Trial {
            index: self.trials.len() as u32,
            round,
            server: self.name().to_owned(),
            clients,
            purpose: point.purpose,
            attempt: Some(Attempt {
                value: point.value,
                share,
                ..Attempt::default()
            }),
            started_at: utc_now(),
            ..Trial::default()
        };
        observer.on_begin(&TrialStart {
            index: self.trials.len(),
            total: self.total,
            estimate: None,
            server: self.name(),
            clients,
            rate_per_s: self.plan.rate_of(trial.attempt.as_ref()),
            round,
            purpose: point.purpose,
            percent: None,
        });
        let measured = measure(
            self.plan,
            self.origin,
            store,
            &planned,
            (&mut trial, self.trials.as_slice()),
            &mut Audience {
                observer: &mut *observer,
                stop: self.stop,
            },
        )?;
        if measured == TrialEnd::Interrupted {
            self.interrupted = true;
            return Ok(None);
        }
        self.host_lost = measured == TrialEnd::HostLost;
        let (passed, reasons) = match self.criteria.judge(&trial) {
            Judgement::Decided(verdict, reasons) => (verdict.passed, reasons),
            Judgement::Void(why) => (false, vec![why]),
        };
        trial.attempt = Some(Attempt {
            value: point.value,
            share,
            passed,
            reasons,
        });
        store.add_trial(&trial)?;
        let ends_run = !self.plan.settings.keep_going
            && self.own().next().is_none()
            && trial
                .failure
                .as_ref()
                .is_some_and(|failure| failure.stage.is_of_the_beginning());
        if !ends_run {
            observer.on_end(&trial);
        }
        self.trials.push(trial.clone());
        self.interrupted |= self.stop.requested() || self.host_lost;
        Ok(Some(trial))
    }

    /// A server that takes a thread, a process or much memory per client would exhaust the machine before its own
    /// limit.
    fn bound_by_machine(
        &self,
        trial: &Trial,
        verdict: Verdict,
        search: &mut Search,
        stopped_at: &mut Option<StoppedAt>,
    ) {
        if self.asked.find != Find::Clients || !verdict.passed {
            return;
        }
        let Some(end) = room::left_for(trial) else {
            return;
        };
        let nearer = stopped_at.as_ref().is_none_or(|at| end.value < at.value);
        if end.value < self.asked.max && nearer {
            search.stop_at(end.value.max(u64::from(trial.clients)));
            *stopped_at = Some(end);
        }
    }

    /// Measures the server at shares of its limit.
    fn at_shares(
        &mut self,
        known: &SearchState,
        store: &mut Store,
        observer: &mut dyn Observer,
    ) -> anyhow::Result<()> {
        let settled = [
            SearchEnding::Found,
            SearchEnding::Between,
            SearchEnding::AtLeast,
        ];
        let Some(passed) = known.passed.filter(|_| settled.contains(&known.ending)) else {
            return Ok(());
        };
        for share in SHARES {
            let value = (passed.value as f64 * share).round() as u64;
            let there = self.own().any(|trial| {
                let attempt = trial.attempt.as_ref();
                attempt.is_some_and(|attempt| attempt.share == Some(share))
            });
            // One client cannot be halved.
            let is_share = (1..passed.value).contains(&value);
            if there || !is_share || self.interrupted {
                continue;
            }
            let point = Point {
                value,
                purpose: Purpose::Share,
            };
            self.attempt(point, Some(share), store, observer)?;
        }
        Ok(())
    }

    fn found(
        &self,
        known: &SearchState,
        stopped_at: Option<StoppedAt>,
        failure: String,
    ) -> LimitResult {
        let tried = |tried: Option<TriedValue>, passed: bool| -> Vec<&Trial> {
            let value = tried.map(|tried| tried.value);
            let own = self.own().filter(|trial| is_of_search(trial));
            own.filter(|trial| {
                let attempt = trial.attempt.as_ref();
                attempt
                    .is_some_and(|attempt| Some(attempt.value) == value && attempt.passed == passed)
            })
            .collect()
        };
        let (passed, failed) = (tried(known.passed, true), tried(known.failed, false));
        let reason = failed
            .iter()
            .find_map(|trial| trial.attempt.as_ref()?.reasons.first().cloned());
        let circumstances = Circumstances {
            server: &self.plan.servers[self.server],
            settings: &self.plan.settings,
            host: &self.plan.host,
            find: self.asked.find,
        };
        LimitResult {
            server: self.name().to_owned(),
            ending: known.ending,
            passed: known.passed,
            failed: known.failed,
            stopped_at: stopped_at.filter(|_| known.ending == SearchEnding::AtLeast),
            reason: reason.unwrap_or_default(),
            cause: (!failed.is_empty()).then(|| cause::of(&passed, &failed, &circumstances)),
            failure,
        }
    }
}

/// Whether a trial belongs to a search.
fn is_of_search(trial: &Trial) -> bool {
    matches!(trial.purpose, Purpose::Search | Purpose::Confirm)
}

/// The value that a trial tried; for a trial of an earlier run, taken from the record.
fn tried_point(trial: &Trial, point: Point) -> Point {
    let tried = trial.attempt.as_ref().map(|attempt| Point {
        value: attempt.value,
        purpose: trial.purpose,
    });
    tried.unwrap_or(point)
}
