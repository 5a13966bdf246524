//! The trials that an undecided comparison would need.

use super::ClaimVerdict;
use super::weigh::{FEWEST_FOR_INTERVALS, RoundsToDecide};
use throng_record::format::counted;

/// The unit of repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeats {
    /// Timed trials.
    Timed,
    /// Profiled trials, which count events.
    Profiled,
    /// Slices of a trial.
    Slices,
}

impl Repeats {
    fn counted(self, number: usize) -> String {
        let noun = if self == Self::Slices {
            "slice"
        } else {
            "trial"
        };
        counted(number as u32, noun)
    }

    /// The command-line option that asks for `number` repetitions.
    fn option(self, number: usize) -> String {
        match self {
            Self::Timed => format!("--runs {number}"),
            Self::Profiled => format!("--profiled-runs {number}"),
            Self::Slices => "a longer --budget".to_owned(),
        }
    }
}

/// A sentence on the trials that a decision would need, if the finding is inconclusive.
pub(super) fn taking(finding: ClaimVerdict, need: RoundsToDecide, repeats: Repeats) -> String {
    if finding != ClaimVerdict::Inconclusive {
        return String::new();
    }
    let takes = |about: &str, wanted: usize, had: usize| {
        let are = if had == 1 { "is" } else { "are" };
        let (all, option) = (repeats.counted(wanted), repeats.option(wanted));
        format!(" It takes {about} {all} each; there {are} {had} ({option}).")
    };
    match need {
        RoundsToDecide::None => String::new(),
        RoundsToDecide::More { had } if had < FEWEST_FOR_INTERVALS => {
            takes("at least", FEWEST_FOR_INTERVALS, had)
        }
        RoundsToDecide::More { had } => {
            let had = repeats.counted(had);
            format!(" Some of the {had} are 0, which allows no interval.")
        }
        RoundsToDecide::About { had, rounds } => takes("about", rounds, had),
        RoundsToDecide::TooMany { had } => {
            let had = repeats.counted(had);
            format!(" The {had} vary so much that it takes over 1,000.")
        }
    }
}
