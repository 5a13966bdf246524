//! A study of several parts made into one report: claims first, what was published beside what was
//! measured, then each part.

pub mod claims;
mod given;
#[cfg(test)]
mod over;
pub mod published;
mod sample;

use std::path::Path;

use crate::{Loaded, Report};
use claims::Judged;
use published::Table;
use throng_record::{self as record, Ending, StudyPart};

/// A study read from disk, to make a [`StudyReport`] of.
#[derive(Debug, Clone)]
pub struct LoadedStudy {
    pub study: record::Study,
    /// What its parts left, in its order; none for one that was not run.
    pub parts: Vec<Option<Loaded>>,
}

/// A part in the report.
#[derive(Debug, Clone)]
pub struct PartReport<'a> {
    /// As it stands in the study's record.
    pub record: &'a StudyPart,
    /// Its own report; none when it was not run.
    pub report: Option<Report<'a>>,
    /// What was published beside what was measured.
    pub published: Table,
}

/// Everything that is said of a study.
#[derive(Debug, Clone)]
pub struct StudyReport<'a> {
    pub study: &'a record::Study,
    pub parts: Vec<PartReport<'a>>,
    /// Its claims, judged.
    pub claims: Vec<Judged>,
}

/// Reads the study in `dir`, with the records of its parts.
///
/// # Errors
/// When a file is missing or damaged, naming it.
pub fn load(dir: &Path) -> anyhow::Result<LoadedStudy> {
    let study = record::Study::read(dir)?;
    let of_part = |part: &StudyPart| {
        if part.skipped.is_some() {
            return Ok(None);
        }
        // One that was not begun has none, and then the error names it.
        let found = record::directory(dir, &part.name)?;
        crate::load(&found.unwrap_or_else(|| dir.join(&part.name))).map(Some)
    };
    let parts = study
        .parts
        .iter()
        .map(of_part)
        .collect::<anyhow::Result<_>>()?;
    Ok(LoadedStudy { study, parts })
}

impl LoadedStudy {
    /// The report of this study.
    ///
    /// # Errors
    /// When a histogram in a record cannot be read.
    pub fn report(&self) -> anyhow::Result<StudyReport<'_>> {
        let mut parts = Vec::new();
        for (record, loaded) in self.study.parts.iter().zip(&self.parts) {
            let report = loaded.as_ref().map(Loaded::report).transpose()?;
            let mut part = PartReport {
                record,
                report,
                published: Table::default(),
            };
            part.published = Table::of(&part, self.study.scale.is_some() || record.is_another());
            parts.push(part);
        }
        Ok(StudyReport {
            study: &self.study,
            claims: claims::judge(&self.study, &parts),
            parts,
        })
    }
}

impl StudyReport<'_> {
    /// That it was made smaller, and what that means.
    pub fn scale_note(&self) -> Option<String> {
        let scale = self.study.scale.as_ref()?;
        let scale = match scale.as_str() {
            "quick" => "for a quick look".to_owned(),
            factor => format!("by the factor {factor}"),
        };
        Some(format!(
            "This study was made smaller {scale}: published figures stand here for orientation and are not \
             compared, and a claim is checked only where it is about numbers of clients that were run."
        ))
    }

    /// How it ended: as the worst of its parts.
    pub fn ending(&self) -> Ending {
        let parts = self.parts.iter();
        Ending::of_parts(parts.filter_map(|part| Some(part.report.as_ref()?.run.ending)))
    }
}
