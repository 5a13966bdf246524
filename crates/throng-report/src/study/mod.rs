//! A study of several parts as one report: first the claims, then published and measured values, then each part.

pub mod cases;
pub mod claims;
#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod over;
pub(crate) mod picture;
pub mod published;
mod published_figure;
mod sample;
pub mod scenes;

use std::path::Path;
use std::time::Duration;

use crate::facts::command_line;
use crate::figures::Figure;
use crate::{LoadedRun, Report, names};
use cases::Case;
use claims::JudgedClaim;
use picture::{deciding_picture, picture};
use published::Table;
use scenes::SceneResult;
use throng_record::format::about;
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

/// Reads the record in `dir`: a study, or a run as a study of a single part without a name.
///
/// # Errors
/// When a file is missing or damaged, naming it.
pub(crate) fn load_any(dir: &Path) -> anyhow::Result<LoadedStudy> {
    if record::Study::is_in(dir) {
        return load(dir);
    }
    Ok(LoadedStudy::of_run(crate::load(dir)?))
}

impl LoadedStudy {
    /// A run as a study of a single part without a name.
    pub(crate) fn of_run(loaded: LoadedRun) -> Self {
        let run = &loaded.run;
        let study = record::Study {
            schema_version: run.schema_version,
            throng_version: run.throng_version.clone(),
            name: run.study.name.clone(),
            question: run.study.question.clone(),
            summary: None,
            changed: Vec::new(),
            source: None,
            scale: None,
            started_at: run.started_at.clone(),
            arguments: run.arguments.clone(),
            parts: vec![StudyPart::default()],
            claims: Vec::new(),
        };
        Self {
            study,
            parts: vec![Some(loaded)],
        }
    }

    /// The report of this study.
    ///
    /// # Errors
    /// When a histogram in a record cannot be read.
    pub fn report(&self) -> anyhow::Result<StudyReport<'_>> {
        let servers = self.servers();
        let mut parts = Vec::new();
        for (record, loaded) in self.study.parts.iter().zip(&self.parts) {
            let report = loaded
                .as_ref()
                .map(|part| part.report_among(servers.clone()));
            let mut part = PartReport {
                record,
                report: report.transpose()?,
                published: Table::default(),
            };
            if self.study.scale.is_none() && !record.is_another() {
                part.published = Table::of(&part);
            }
            parts.push(part);
        }
        Ok(StudyReport {
            study: &self.study,
            claims: match self.study.scale {
                None => claims::judge(&self.study, &parts),
                Some(_) => Vec::new(),
            },
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
    /// Whether it compares servers under several loads.
    pub fn has_scenes(&self) -> bool {
        let mut parts = self.study.parts.iter();
        parts.any(|part| !part.scenes.is_empty())
    }

    /// The results of its scenes.
    pub fn scenes(&self) -> Vec<SceneResult<'_>> {
        SceneResult::all(&self.parts)
    }

    /// The parts that are test cases.
    pub fn cases(&self) -> Vec<Case<'_>> {
        self.parts.iter().filter_map(Case::of).collect()
    }

    /// The picture of the answer, followed by the pictures of the scenes in order.
    pub fn pictures(&self) -> Vec<Figure> {
        let (scenes, servers) = (self.scenes(), &self.servers);
        let first = deciding_picture(&scenes, servers);
        let numbered = scenes.iter().enumerate();
        let others = numbered.filter_map(|(number, shown)| picture(shown, number, servers));
        let published = self
            .published_figures()
            .into_iter()
            .map(|(_, figure)| figure);
        first.into_iter().chain(others).chain(published).collect()
    }

    /// Published and measured values in figures, each with the index of its part.
    pub fn published_figures(&self) -> Vec<(usize, Figure)> {
        published_figure::all(&self.parts, &self.servers)
    }

    /// A note that the study was scaled down, and what the whole study takes; `None` if it was not.
    pub fn scale_note(&self) -> Option<String> {
        let scale = self.study.scale.as_ref()?;
        let run = match scale.by.as_str() {
            "quick" => "Quick run".to_owned(),
            factor => format!("Run at scale {factor}"),
        };
        let without = if self.study.claims.is_empty() {
            "its numbers support no conclusion"
        } else {
            "no claim was checked"
        };
        let (whole, takes) = (command_line(&scale.whole), scale.whole_takes_s);
        let time = about(Duration::from_secs(takes));
        Some(format!("{run}: {without}. `{whole}` takes about {time}."))
    }

    /// How it ended: the worst ending of its parts.
    pub fn ending(&self) -> Ending {
        let parts = self.parts.iter();
        Ending::of_parts(parts.filter_map(|part| Some(part.report.as_ref()?.run.ending)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::document::{markdown, terminal};
    use crate::sections::of_study;
    use throng_record::{Published, PublishedValue, Scaled};

    fn texts(scale: Option<Scaled>) -> [String; 2] {
        let (mut study, parts) = fixture::scenes();
        study.scale = scale;
        study.parts[0].scenes.clear();
        study.parts[0].published = vec![Published {
            metric: "requests_per_s".to_owned(),
            unit: "/s".to_owned(),
            clients: vec![1000],
            note: None,
            system: None,
            values: BTreeMap::from([("epoll".to_owned(), vec![PublishedValue::Number(4321.0)])]),
        }];
        study.claims = vec![record::Claim {
            text: "epoll is fastest".to_owned(),
            ..record::Claim::default()
        }];
        let loaded = LoadedStudy { study, parts };
        let document = of_study(&loaded.report().unwrap());
        [
            markdown::text(&document),
            terminal::text(&document, 100, false),
        ]
    }

    #[test]
    fn a_quick_run_checks_no_claim_and_shows_no_published_value() {
        let quick = Scaled {
            by: "quick".to_owned(),
            whole: ["throng", "run", "fairness"].map(str::to_owned).to_vec(),
            whole_takes_s: 1200,
        };
        for text in texts(Some(quick)) {
            let text = text.replace('\n', " ");
            let note =
                "Quick run: no claim was checked. `throng run fairness` takes about 20 minutes.";
            assert!(
                text.contains(note) || text.contains(&note.replace('`', "\\`")),
                "{text}"
            );
            assert!(
                !text.contains("4,321") && !text.contains("not testable"),
                "{text}"
            );
            assert!(text.contains("Many clients"), "{text}");
        }
        // A terminal has no room for the published values.
        let [page, screen] = texts(None);
        assert!(page.contains("4,321") && page.contains("claim"), "{page}");
        assert!(screen.contains("claim"), "{screen}");
    }
}
