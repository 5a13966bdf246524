//! Errors in a part of a study, with their position in the file.

use std::ops::Range;

use crate::cli::{Usage, WrongOption};
use crate::spec::SpecError;
use crate::study::{Options, Part, Study, StudyError};

/// The error of a load, with its position if it comes from the file.
pub(super) fn wrong_load(study: &Study, part: &Part, error: &SpecError) -> anyhow::Error {
    match part.load_place(error.key, error.is_value) {
        Some(place) => study.file.wrong(&place, &error.why).into(),
        None => Usage(error.of_flags()).into(),
    }
}

/// The error at the option that it is about, or at `otherwise` if it is about none.
pub(super) fn at_option(
    study: &Study,
    options: &Options,
    wrong: &WrongOption,
    otherwise: Range<usize>,
) -> StudyError {
    let found = options.iter().find(|choice| choice.name == wrong.option);
    let at = found.map_or(otherwise, |choice| {
        if wrong.is_value {
            choice.value_at.clone()
        } else {
            choice.name_at.clone()
        }
    });
    study.file.wrong(&at, &wrong.why)
}
