//! A directory for temporary files that only this user can access.

use std::fs::{DirBuilder, remove_dir_all};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::processes::claim::{self, Claim};

/// Prefix of the names.
const NAME: &str = "throng-run-";

/// Removed at the end, with its files; those of killed runs are removed by the watchdog or the next one.
#[derive(Debug)]
pub(crate) struct PrivateDirectory {
    path: PathBuf,
    _claim: Claim,
}

impl PrivateDirectory {
    /// # Errors
    /// When it cannot be created.
    pub(crate) fn new() -> io::Result<Self> {
        Self::within(&std::env::temp_dir())
    }

    pub(crate) fn within(place: &Path) -> io::Result<Self> {
        remove_abandoned_in(place);
        let mut private = DirBuilder::new();
        private.mode(0o700);
        let (path, claim) = Claim::create(&private, place, NAME)?;
        Ok(Self {
            path,
            _claim: claim,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        let _ = remove_dir_all(&self.path); // the next run tries again
    }
}

/// Removes the directories of runs that were killed.
pub fn remove_abandoned() {
    remove_abandoned_in(&std::env::temp_dir());
}

fn remove_abandoned_in(place: &Path) {
    for (directory, _claim) in claim::abandoned(place, NAME) {
        let _ = remove_dir_all(directory); // as above
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn nobody_else_can_access_it_and_nothing_is_left() {
        let directory = PrivateDirectory::new().unwrap();
        let path = directory.path().to_owned();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        std::fs::write(path.join("clients.csv"), "rows").unwrap();
        drop(directory);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_run_left_is_removed_by_the_next_one() {
        let place = tempfile::tempdir().unwrap();
        let living = PrivateDirectory::within(place.path()).unwrap();
        let left = place.path().join(format!("{NAME}left"));
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join("server.sock"), "").unwrap();
        let next = PrivateDirectory::within(place.path()).unwrap();
        assert!(!left.exists() && living.path.exists() && next.path.exists());
    }
}
