//! Errors in a part of a study, with their position in the file.

use std::ops::Range;

use crate::cli::Usage;
use crate::spec::SpecError;
use crate::study::{Options, Part, Study, StudyError};

/// The error of a load, with its position if it comes from the file.
pub(super) fn wrong_load(study: &Study, part: &Part, error: &SpecError) -> anyhow::Error {
    match part.load_place(error.key, error.is_value) {
        Some(place) => study.file.wrong(&place, &error.why).into(),
        None => Usage(error.of_flags()).into(),
    }
}

/// Adapts clap's message for an unknown option to a study file.
pub(super) fn no_option(message: &str, command: &str) -> String {
    match message.split_once("unexpected argument ") {
        Some((_, rest)) => {
            let name = rest.trim_end_matches(" found");
            format!("`throng {command}` has no option {name}")
        }
        None => message.to_owned(),
    }
}

/// The error at the option that a message is about, or at `otherwise` if it is about none.
pub(super) fn at_option(
    study: &Study,
    options: &Options,
    message: &str,
    why: &str,
    otherwise: Range<usize>,
) -> StudyError {
    let about = |name: &str| {
        let dashed = format!("--{name}");
        message.match_indices(&dashed).any(|(at, _)| {
            let next = message[at + dashed.len()..].chars().next();
            !next.is_some_and(|next| next.is_alphanumeric() || next == '-')
        })
    };
    let found = options.iter().find(|choice| about(&choice.name));
    let at = found.map_or(otherwise, |choice| {
        if why.contains("invalid value") {
            choice.value_at.clone()
        } else {
            choice.name_at.clone()
        }
    });
    study.file.wrong(&at, why)
}
