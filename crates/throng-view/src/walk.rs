//! Finds the records below a directory, at any depth. Directories within a record are not searched, symbolic links are
//! not followed, and hidden directories are skipped.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;

use anyhow::Context as _;

use super::address::{MOST_DEEP, is_entry};
use super::record_cache::Stamp;
use throng_record::Lock;

/// Maximum number of directories to search.
const MOST_DIRECTORIES: usize = 20_000;

/// The records found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FoundRecords {
    /// Their names: paths relative to the directory.
    pub(super) names: Vec<String>,
    /// Whether directories were skipped: too many, or too deep.
    pub(super) not_all: bool,
}

/// All records below a directory.
///
/// # Errors
/// When the directory cannot be read. Unreadable subdirectories are skipped.
pub(super) fn records(directory: &Path) -> anyhow::Result<FoundRecords> {
    let cannot = || format!("cannot read {}", directory.display());
    let mut found = FoundRecords::default();
    let mut waiting: VecDeque<String> = within(directory).with_context(cannot)?.into();
    let mut looked_at = 0;
    while let Some(name) = waiting.pop_front() {
        looked_at += 1;
        if looked_at > MOST_DIRECTORIES {
            found.not_all = true;
            break;
        }
        let path = directory.join(&name);
        if is_record(&path) {
            found.names.push(name);
            continue;
        }
        let inner = within(&path).unwrap_or_default();
        if name.split('/').count() >= MOST_DEEP {
            found.not_all |= !inner.is_empty();
            continue;
        }
        waiting.extend(inner.iter().map(|inner| format!("{name}/{inner}")));
    }
    Ok(found)
}

/// Whether there is a record, or one is about to be written: a run takes its lock before it writes any file.
fn is_record(path: &Path) -> bool {
    let files = ["run.json", "study.json"].map(|file| Stamp::of(&path.join(file)));
    files.iter().any(Option::is_some) || Lock::is_taken(path)
}

/// The names of the subdirectories of a directory.
fn within(directory: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // A name that is not valid UTF-8 cannot be in a URL.
        let name = entry.file_name().into_string().unwrap_or_default();
        let is_directory = || entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_entry(&name) && !name.starts_with('.') && is_directory() {
            names.push(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_found_at_any_depth_and_links_are_not_followed() {
        let whole = tempfile::tempdir().unwrap();
        let (inside, outside) = (whole.path().join("in"), whole.path().join("out"));
        let record = |path: &Path| {
            fs::create_dir_all(path).unwrap();
            fs::write(path.join("run.json"), "{}").unwrap();
        };
        record(&inside.join("here"));
        record(&inside.join("2026/vm/study"));
        record(&inside.join("2026/vm/study/part"));
        record(&inside.join(".hidden/run"));
        record(&outside.join("run"));
        std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
        std::os::unix::fs::symlink("..", inside.join("2026/up")).unwrap();
        fs::create_dir(inside.join("starting")).unwrap();
        let lock = Lock::take(&inside.join("starting")).unwrap();
        let mut found = records(&inside).unwrap();
        found.names.sort();
        assert_eq!(found.names, ["2026/vm/study", "here", "starting"]);
        assert!(!found.not_all);
        drop(lock);
        let deep = inside.join(["deep"; MOST_DEEP].join("/"));
        record(&deep);
        let found = records(&inside).unwrap();
        assert!(found.names.iter().any(|name| name.starts_with("deep")) && !found.not_all);
        record(&deep.join("deeper"));
        fs::remove_file(deep.join("run.json")).unwrap();
        let found = records(&inside).unwrap();
        assert!(!found.names.iter().any(|name| name.starts_with("deep")) && found.not_all);
        assert!(records(&whole.path().join("nothing")).is_err());
    }
}
