//! The parts of a record that a comparison needs.

use std::path::Path;

use throng_record::{self as record, Run, Study, Trial};

/// A record: a run, or a study of several parts.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRecord {
    pub directory: String,
    /// The study, if the record has parts.
    pub study: Option<Study>,
    /// Its parts; a single run is the only part.
    pub parts: Vec<RecordedPart>,
}

/// A part of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedPart {
    /// Its name, if it belongs to a study.
    pub name: Option<String>,
    /// Its heading.
    pub title: Option<String>,
    /// Its measurements; `None` if it did not run.
    pub measured: Option<(Run, Vec<Trial>)>,
}

/// Reads the record in `directory`, without the files of individual trials.
///
/// # Errors
/// When it holds no record, or a file of the record is damaged, naming it.
pub fn load(directory: &Path) -> anyhow::Result<StoredRecord> {
    let read = |directory: &Path| -> anyhow::Result<(Run, Vec<Trial>)> {
        Ok((record::read(directory)?, record::read_trials(directory)?))
    };
    let name = directory.display().to_string();
    if !Study::is_in(directory) {
        let part = RecordedPart {
            name: None,
            title: None,
            measured: Some(read(directory)?),
        };
        return Ok(StoredRecord {
            directory: name,
            study: None,
            parts: vec![part],
        });
    }
    let study = Study::read(directory)?;
    let mut parts = Vec::new();
    for part in &study.parts {
        let found = match &part.skipped {
            Some(_) => None,
            None => record::directory(directory, &part.name)?,
        };
        parts.push(RecordedPart {
            name: Some(part.name.clone()),
            title: Some(part.title.clone()),
            measured: found.as_deref().map(read).transpose()?,
        });
    }
    Ok(StoredRecord {
        directory: name,
        study: Some(study),
        parts,
    })
}

impl StoredRecord {
    /// All of its parts that ran.
    pub(super) fn measured(&self) -> impl Iterator<Item = &(Run, Vec<Trial>)> {
        self.parts.iter().filter_map(|part| part.measured.as_ref())
    }

    /// The first run.
    pub(super) fn first(&self) -> Option<&Run> {
        self.measured().next().map(|(run, _)| run)
    }

    /// When it started, in UTC; empty if nothing ran.
    pub(super) fn started_at(&self) -> &str {
        let study = self.study.as_ref().map(|study| study.started_at.as_str());
        let first = || self.first().map(|run| run.started_at.as_str());
        study.or_else(first).unwrap_or_default()
    }

    /// Whether `other` is the same record, wherever it is stored.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.study == other.study && self.parts == other.parts
    }

    /// The directories of its parts.
    pub(super) fn directories(&self) -> Vec<String> {
        let names = self.parts.iter().filter_map(|part| part.name.as_ref());
        let directory = Path::new(&self.directory);
        names
            .map(|name| directory.join(name).display().to_string())
            .collect()
    }
}
