//! The runs below a directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

use super::address::is_below;
use super::record_cache::{Part, RecordCache};
use super::run_entry::RunEntry;
use super::walk;
use throng_record as record;

/// Maximum number of runs in the list. If there are more, those with the last names, which begin with their time.
const MOST_RUNS: usize = 5000;
/// Maximum number of cached records.
const MOST_KNOWN: usize = 2 * MOST_RUNS;

/// The runs below a directory.
#[derive(Debug)]
pub(super) struct Runs {
    directory: PathBuf,
    known: Mutex<BTreeMap<String, RecordCache>>,
}

/// The list of runs.
#[derive(Debug, Serialize)]
pub(super) struct Listing {
    /// Newest first.
    pub(super) runs: Vec<RunEntry>,
    /// Number of further runs.
    pub(super) left_out: usize,
    /// Whether directories were skipped: too many, or too deep.
    pub(super) not_all: bool,
}

impl Runs {
    pub(super) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            known: Mutex::default(),
        }
    }

    /// The directory.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The directory of a run; `None` if there is no such entry, or if it leads elsewhere.
    pub(super) fn place(&self, name: &str) -> Option<PathBuf> {
        if !is_below(name) {
            return None;
        }
        let mut path = self.directory.clone();
        for entry in name.split('/') {
            path = record::directory(&path, entry).ok().flatten()?;
        }
        Some(path)
    }

    /// All runs.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub(super) fn list(&self) -> anyhow::Result<Listing> {
        let walk::FoundRecords { mut names, not_all } = walk::records(&self.directory)?;
        let last = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
        names.sort_by_cached_key(|name| std::cmp::Reverse(last(name)));
        let left_out = names.len().saturating_sub(MOST_RUNS);
        names.truncate(MOST_RUNS);
        let mut known = self.known();
        let mut runs: Vec<RunEntry> = names
            .into_iter()
            .filter_map(|name| {
                let directory = self.directory.join(&name);
                let known = known.entry(name.clone()).or_default();
                known.entry(&name, &directory)
            })
            .collect();
        runs.sort_by(|one, other| {
            let of = |run: &RunEntry| (run.started_at.clone(), run.name.clone());
            of(other).cmp(&of(one))
        });
        Ok(Listing {
            runs,
            left_out,
            not_all,
        })
    }

    /// The cached facts of records. Too many are all discarded.
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, RecordCache>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() > MOST_KNOWN {
            known.clear();
        }
        known
    }

    /// A run, or a part of one; `None` if `name` is not a run.
    pub(super) fn find(&self, name: &str) -> Option<(PathBuf, RunEntry)> {
        let directory = self.place(name)?;
        let mut known = self.known();
        let known = known.entry(name.to_owned()).or_default();
        let listed = known.entry(name, &directory)?;
        Some((directory, listed))
    }

    /// The parts of a run, each with its number of trials and the age of the last one. A run without parts is its own
    /// only part.
    pub(super) fn parts(&self, name: &str) -> Vec<(Part, u64, Option<Duration>)> {
        let Some(directory) = self.place(name) else {
            return Vec::new();
        };
        let mut known = self.known();
        let known = known.entry(name.to_owned()).or_default();
        known.parts(&directory)
    }
}
