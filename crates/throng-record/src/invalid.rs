//! Whether a trial is valid, and which trials of a run count.

use std::borrow::Cow;

use super::{Finding, Purpose, Trial};
use crate::findings::replies::UNSERVED;

impl Trial {
    /// Whether it has results and is valid.
    pub fn is_valid(&self) -> bool {
        self.failure.is_none() && self.invalid().is_none() && self.load.is_some()
    }

    /// Whether it is invalid because clients had no reply.
    fn left_clients_unserved(&self) -> bool {
        self.invalid().is_some_and(|finding| finding.is(&UNSERVED))
    }

    /// Whether it has the same server, load and purpose as another one.
    fn is_like(&self, other: &Self) -> bool {
        self.server == other.server
            && self.clients == other.clients
            && self.purpose == other.purpose
            && self.percent() == other.percent()
    }

    /// The index of the planned trial: its own, unless it repeats another one.
    pub fn planned_index(&self) -> u32 {
        self.repeats.unwrap_or(self.index)
    }
}

/// The trials that count. Invalid ones do not if they are exceptions. Otherwise they are kept, since they show what
/// the server does, or are graded unusable.
pub fn counting(trials: &[Trial]) -> Cow<'_, [Trial]> {
    let is_dropped = |trial: &&Trial| trial.invalid().is_some() && is_exception(trials, trial);
    if !trials.iter().any(|trial| is_dropped(&trial)) {
        return Cow::Borrowed(trials);
    }
    let kept = trials.iter().filter(|trial| !is_dropped(trial));
    Cow::Owned(kept.cloned().collect())
}

/// The invalid trials of a run, with the reason of each and whether a valid one replaced it. If most trials of a
/// server have a fault that may be its own, it is not reported for single trials.
pub fn set_aside(trials: &[Trial]) -> impl Iterator<Item = (&Trial, &Finding, bool)> {
    let invalid = trials
        .iter()
        .filter_map(|trial| Some((trial, trial.invalid()?)));
    invalid
        .filter(|(trial, invalid)| !invalid.kind.of_server || is_exception(trials, trial))
        .map(|(trial, invalid)| (trial, invalid, is_replaced(trials, trial)))
}

/// Whether a valid trial replaced this one.
fn is_replaced(trials: &[Trial], trial: &Trial) -> bool {
    let mut others = trials.iter();
    others.any(|other| other.is_valid() && other.repeats == Some(trial.planned_index()))
}

/// Whether an invalid trial is an exception: there is a valid one of the same kind, and if the server left clients
/// unserved, it did not do so in most trials of that kind.
fn is_exception(trials: &[Trial], trial: &Trial) -> bool {
    let alike = trials.iter().filter(|other| other.is_like(trial));
    let counts = Counts::of(alike);
    counts.valid > 0 && (!trial.left_clients_unserved() || counts.valid >= counts.unserved)
}

/// Trials by validity.
struct Counts {
    all: usize,
    valid: usize,
    /// Invalid because the server left clients unserved.
    unserved: usize,
}

impl Counts {
    fn of<'a>(trials: impl Iterator<Item = &'a Trial>) -> Self {
        let mut counts = Self {
            all: 0,
            valid: 0,
            unserved: 0,
        };
        for trial in trials {
            counts.all += 1;
            counts.valid += usize::from(trial.is_valid());
            counts.unserved += usize::from(trial.left_clients_unserved());
        }
        counts
    }
}

/// The number of trials that shows whether a server leaves clients unserved.
const ENOUGH: usize = 3;

/// Whether a server left clients unserved in most of several timed trials with `clients` clients. More of these trials
/// would take long, since each waits for those clients, and would show the same.
pub fn leaves_clients_unserved(trials: &[Trial], server: &str, clients: u32) -> bool {
    let counts = Counts::of(trials.iter().filter(|trial| {
        trial.server == server && trial.clients == clients && trial.purpose == Purpose::Timed
    }));
    counts.all >= ENOUGH && counts.unserved > counts.valid
}

/// The invalid trials to repeat, by the indexes of their planned trials. Each is repeated at most `most_each` times,
/// and each kind at most `rounds` times.
pub fn to_repeat(trials: &[Trial], most_each: u32, rounds: u32) -> Vec<u32> {
    let mut places: Vec<u32> = Vec::new();
    for (trial, _, replaced) in set_aside(trials) {
        let place = trial.planned_index();
        let repeats = |of: &dyn Fn(&Trial) -> bool| {
            let repeats = trials.iter().filter(|other| other.repeats.is_some());
            repeats.filter(|other| of(other)).count() as u32
        };
        let of_place = repeats(&|other| other.repeats == Some(place));
        let known_of_kind = repeats(&|other| other.is_like(trial));
        let planned = places.iter().filter(|planned| {
            let mut all = trials.iter();
            all.any(|other| other.index == **planned && other.is_like(trial))
        });
        let of_kind = known_of_kind + planned.count() as u32;
        let may_repeat = !replaced && of_place < most_each && of_kind < rounds;
        if may_repeat && !places.contains(&place) && !trial.purpose.seeks_limit() {
            places.push(place);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{FindingKind, generator, replies};
    use crate::{Load, Severity};

    fn invalid(kind: &'static FindingKind) -> Finding {
        Finding {
            severity: Severity::Invalid,
            ..kind.found("so".to_owned())
        }
    }

    fn trial(index: u32, cause: Option<&'static FindingKind>) -> Trial {
        Trial {
            index,
            server: "node".to_owned(),
            load: Some(Load::default()),
            findings: cause.map(invalid).into_iter().collect(),
            ..Trial::default()
        }
    }

    fn repeat(index: u32, of: u32, cause: Option<&'static FindingKind>) -> Trial {
        Trial {
            repeats: Some(of),
            ..trial(index, cause)
        }
    }

    fn indices(trials: &[Trial]) -> Vec<u32> {
        counting(trials).iter().map(|trial| trial.index).collect()
    }

    const STOPPED: Option<&'static FindingKind> = Some(&generator::STALLED);
    const UNSERVED: Option<&'static FindingKind> = Some(&replies::UNSERVED);

    #[test]
    fn an_invalid_trial_does_not_void_valid_ones() {
        let trials = [trial(0, None), trial(1, UNSERVED), trial(2, None)];
        assert_eq!(indices(&trials), [0, 2]);
        assert_eq!(to_repeat(&trials, 3, 10), [1]);
        let aside: Vec<_> = set_aside(&trials)
            .map(|(_, _, replaced)| replaced)
            .collect();
        assert_eq!(aside, [false]);
    }

    #[test]
    fn errors_in_every_trial_are_the_servers_result() {
        let trials = [trial(0, UNSERVED), trial(1, UNSERVED)];
        assert_eq!(indices(&trials), [0, 1]);
        assert_eq!(set_aside(&trials).count(), 0);
        assert_eq!(to_repeat(&trials, 3, 10), [0; 0]);
        // Faults of the load generator are not the server's.
        let trials = [trial(0, STOPPED), trial(1, UNSERVED)];
        assert_eq!(to_repeat(&trials, 3, 10), [0]);
    }

    #[test]
    fn what_most_trials_show_is_the_servers_result() {
        let mut trials = vec![trial(0, UNSERVED), trial(1, None)];
        assert_eq!(indices(&trials), [1]);
        assert_eq!(to_repeat(&trials, 3, 10), [0]);
        trials.push(trial(2, UNSERVED));
        assert_eq!(indices(&trials), [0, 1, 2]);
        assert_eq!(set_aside(&trials).count(), 0);
        assert_eq!(to_repeat(&trials, 3, 10), [0; 0]);
        assert!(leaves_clients_unserved(&trials, "node", 0));
        assert!(!leaves_clients_unserved(&trials, "node", 50));
        assert!(!leaves_clients_unserved(&trials[..2], "node", 0), "too few");
        // Another trial may well become level.
        let drift = Some(&replies::UNSTEADY);
        let trials = [trial(0, drift), trial(1, None), trial(2, drift)];
        assert_eq!(indices(&trials), [1]);
        assert!(!leaves_clients_unserved(&trials, "node", 0));
    }

    #[test]
    fn repeats_are_bounded() {
        let mut trials = vec![trial(0, STOPPED), trial(1, STOPPED)];
        assert_eq!(to_repeat(&trials, 3, 2), [0, 1]);
        assert_eq!(to_repeat(&trials, 3, 1), [0], "no more than rounds");
        assert_eq!(to_repeat(&trials, 0, 2), [0; 0]);
        trials.push(repeat(2, 0, None));
        assert_eq!(indices(&trials), [2]);
        assert_eq!(to_repeat(&trials, 3, 10), [1]);
        for index in 3..6 {
            trials.push(repeat(index, 1, STOPPED));
        }
        assert_eq!(to_repeat(&trials, 3, 10), [0; 0], "three times");
        let replaced = set_aside(&trials).filter(|(.., replaced)| *replaced);
        assert_eq!(replaced.count(), 1);
    }
}
