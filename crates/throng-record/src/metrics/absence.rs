//! Why a metric has no value.

use serde::Serialize;

use super::{Metric, Source, Unit, named};
use crate::{Load, Run, Side, Trial};
use throng_spec::registry::Unsupported;

/// Why a metric has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Absence {
    /// This machine cannot measure it.
    NotHere,
    /// Clients had too few replies.
    TooFewReplies,
}

impl Absence {
    /// The text in place of the value.
    pub fn text(self) -> &'static str {
        match self {
            Self::NotHere => "unavailable",
            Self::TooFewReplies => "too few replies",
        }
    }
}

impl Metric {
    /// Whether this load has so few replies that chance alone would look like unequal service.
    pub(super) fn has_too_few_replies(&self, load: &Load) -> bool {
        let fairness = load.fairness.as_ref();
        self.needs_replies && fairness.is_some_and(|fairness| !fairness.has_enough())
    }

    /// Whether it counts replies or clients by how they ended, and so has a meaning whatever went wrong.
    pub fn counts_outcomes(&self) -> bool {
        self.share_of.is_some() || self.unit == Unit::Clients
    }

    /// Whether none of these trials has a value because clients had too few replies.
    pub fn lacks_replies<'a>(&self, trials: impl IntoIterator<Item = &'a Trial>) -> bool {
        let mut own = trials.into_iter().filter(|trial| self.comes_from(trial));
        own.any(|trial| {
            let load = trial.load.as_ref().filter(|_| trial.failure.is_none());
            load.is_some_and(|load| self.has_too_few_replies(load))
        })
    }

    /// Why none of these trials has a value, if known.
    pub fn absence<'a>(
        &self,
        run: &'a Run,
        trials: impl IntoIterator<Item = &'a Trial>,
    ) -> Option<Absence> {
        if self.probe.is_some() {
            let why = self.why_absent(run, trials);
            return why.map(|_| Absence::NotHere);
        }
        self.lacks_replies(trials).then_some(Absence::TooFewReplies)
    }

    /// The reason given by a probe of the run or of these trials.
    pub fn why_absent<'a>(
        &self,
        run: &'a Run,
        trials: impl IntoIterator<Item = &'a Trial>,
    ) -> Option<&'a Unsupported> {
        let probe = self.probe?;
        let names = self.probe_value().map_or(&[][..], |value| value.needs);
        let own = self.probe_value().map(|value| value.name);
        let reason = |side: &'a Side| {
            let mut all = own.into_iter().chain(names.iter().copied());
            let found = all.find_map(|name| side.missing.get(probe)?.get(name));
            found.or_else(|| side.unavailable.get(probe))
        };
        let all: Vec<&Trial> = trials.into_iter().collect();
        let mut sides = all
            .iter()
            .filter(|trial| self.comes_from(trial))
            .filter_map(|trial| self.side(trial));
        let of_side = sides.find_map(reason);
        let of_terms = || {
            let Source::Sum(added) = self.source else {
                return None;
            };
            let mut terms = added.iter().filter_map(|name| named(name));
            terms.find_map(|term| term.why_absent(run, all.iter().copied()))
        };
        of_side
            .or_else(of_terms)
            .or_else(|| run.unavailable.get(probe))
    }
}
