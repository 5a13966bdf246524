//! A study of several parts as one report: first the claims, then published and measured values, then each part.

pub mod claims;
#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod over;
pub(crate) mod picture;
pub mod published;
mod published_cell;
mod sample;
pub mod scenes;

use std::path::Path;

use crate::figures::Figure;
use crate::{LoadedRun, Report, names};
use claims::JudgedClaim;
use picture::{deciding_picture, picture};
use published::Table;
use scenes::{SceneResult, widest};
use throng_record::{self as record, Ending, StudyPart};

/// A study read from disk, from which to make a [`StudyReport`].
#[derive(Debug, Clone)]
pub struct LoadedStudy {
    pub study: record::Study,
    /// The results of its parts, in order; `None` for a part that did not run.
    pub parts: Vec<Option<LoadedRun>>,
}

/// A part in the report.
#[derive(Debug, Clone)]
pub struct PartReport<'a> {
    /// Its entry in the study's record.
    pub record: &'a StudyPart,
    /// Its own report; `None` if it was not run.
    pub report: Option<Report<'a>>,
    /// Published and measured values.
    pub published: Table,
}

/// The report of a study.
#[derive(Debug, Clone)]
pub struct StudyReport<'a> {
    pub study: &'a record::Study,
    pub parts: Vec<PartReport<'a>>,
    /// Its claims, judged.
    pub claims: Vec<JudgedClaim>,
    /// The servers of all its parts.
    pub servers: Vec<String>,
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
        // A part that never started has no directory; the error then names it.
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
        let servers = self.servers();
        for (record, loaded) in self.study.parts.iter().zip(&self.parts) {
            let report = loaded.as_ref();
            let report = report
                .map(|loaded| loaded.report_among(servers.clone()))
                .transpose()?;
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
            servers,
        })
    }

    /// The servers of all parts, each once, in the order of the part that has the most servers.
    fn servers(&self) -> Vec<String> {
        let of_parts = || self.parts.iter().flatten().map(|part| names(&part.run));
        let most = of_parts().max_by_key(Vec::len);
        let mut servers: Vec<String> = Vec::new();
        for name in most.into_iter().chain(of_parts()).flatten() {
            if !servers.contains(&name) {
                servers.push(name);
            }
        }
        servers
    }
}

impl StudyReport<'_> {
    /// The results of its scenes.
    pub fn scenes(&self) -> Vec<SceneResult<'_>> {
        SceneResult::all(&self.parts)
    }

    /// The picture of the answer, followed by the pictures of the scenes in order.
    pub fn pictures(&self) -> Vec<Figure> {
        let (scenes, servers) = (self.scenes(), &self.servers);
        let first = widest(&scenes).and_then(|shown| deciding_picture(shown, servers));
        let numbered = scenes.iter().enumerate();
        let others = numbered.filter_map(|(number, shown)| picture(shown, number, servers));
        first.into_iter().chain(others).collect()
    }

    /// A note that the study was scaled down, and what that means; `None` if it was not.
    pub fn scale_note(&self) -> Option<String> {
        let scale = self.study.scale.as_ref()?;
        let scale = match scale.as_str() {
            "quick" => "in its quick form".to_owned(),
            factor => format!("at scale {factor}"),
        };
        Some(format!(
            "This study ran {scale}: published values are not compared, and a claim is checked only if all its numbers \
             of clients ran."
        ))
    }

    /// How it ended: the worst ending of its parts.
    pub fn ending(&self) -> Ending {
        let parts = self.parts.iter();
        Ending::of_parts(parts.filter_map(|part| Some(part.report.as_ref()?.run.ending)))
    }
}
