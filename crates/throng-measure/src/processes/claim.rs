//! Directories that belong to a running throng, by a lock. The kernel drops it however throng ends, and it is seen from
//! every PID namespace. So a later run recognises, and removes, what a killed one left.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Attempts to create a directory that another process takes for an abandoned one.
const TRIES: u32 = 3;

/// The lock of a directory, until this is dropped.
#[derive(Debug)]
pub(crate) struct Claim(#[expect(dead_code, reason = "it is locked while it is open")] File);

impl Claim {
    /// Creates a directory with a lock.
    ///
    /// # Errors
    /// As mkdir(2).
    pub(crate) fn create(builder: &DirBuilder, directory: &Path) -> io::Result<Self> {
        for _ in 0..TRIES {
            builder.create(directory)?;
            // Until it is locked, it looks abandoned.
            if let Some(claim) = Self::of(directory)
                && directory.is_dir()
            {
                return Ok(claim);
            }
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }

    /// Locks a directory, unless it has a lock or is gone.
    fn of(directory: &Path) -> Option<Self> {
        let mut options = OpenOptions::new();
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
        options.read(true).custom_flags(flags.bits().cast_signed());
        let file = options.open(directory).ok()?;
        file.try_lock().ok().map(|()| Self(file))
    }
}

/// The directories in `parent` with this prefix whose throng is gone, each locked until the next one.
pub(crate) fn abandoned(parent: &Path, prefix: &str) -> impl Iterator<Item = (PathBuf, Claim)> {
    let user = rustix::process::geteuid().as_raw();
    let is_ours = move |path: &Path| {
        let found = fs::symlink_metadata(path);
        found.is_ok_and(|found| found.is_dir() && found.uid() == user)
    };
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let prefix = prefix.to_owned();
    let has_prefix = move |name: &OsStr| name.as_encoded_bytes().starts_with(prefix.as_bytes());
    let named = entries.filter(move |entry| has_prefix(&entry.file_name()));
    let paths = named
        .map(|entry| entry.path())
        .filter(move |path| is_ours(path));
    paths.filter_map(|path| Claim::of(&path).map(|claim| (path, claim)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_abandoned_once_its_claim_is_gone() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("throng-1");
        let found = || -> Vec<PathBuf> {
            let all = abandoned(parent.path(), "throng-");
            all.map(|(path, _)| path).collect()
        };
        let claim = Claim::create(&DirBuilder::new(), &path).unwrap();
        fs::create_dir(parent.path().join("other")).unwrap();
        std::os::unix::fs::symlink("other", parent.path().join("throng-link")).unwrap();
        assert_eq!(found(), [] as [PathBuf; 0]);
        drop(claim);
        assert_eq!(found(), [path]);
    }
}
