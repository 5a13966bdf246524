//! Directories that belong to a running throng, by a lock. The kernel drops it however throng ends, and it is seen from
//! every PID namespace. So a later run recognises, and removes, what a killed one left.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Names tried for one directory. Each scan of another throng can cost one, and so can each name that exists.
const NAMES_TRIED: u32 = 100;

/// The lock of a directory, until this is dropped.
#[derive(Debug)]
pub(crate) struct Claim(#[expect(dead_code, reason = "it is locked while it is open")] File);

impl Claim {
    /// Creates a directory with a lock in `parent`. Its name is the prefix and something random.
    ///
    /// # Errors
    /// As mkdir(2).
    pub(crate) fn create(
        builder: &DirBuilder,
        parent: &Path,
        prefix: &str,
    ) -> io::Result<(PathBuf, Self)> {
        for _ in 0..NAMES_TRIED {
            let directory = parent.join(format!("{prefix}{:08x}", fastrand::u32(..)));
            match builder.create(&directory) {
                // Until it is locked, it looks abandoned. A name that another throng has seen is not used again.
                Ok(()) => {
                    if let Some(claim) = Self::of(&directory) {
                        return Ok((directory, claim));
                    }
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Locks a directory, unless it has a lock or is gone.
    fn of(directory: &Path) -> Option<Self> {
        let mut options = OpenOptions::new();
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
        options.read(true).custom_flags(flags.bits().cast_signed());
        let file = options.open(directory).ok()?;
        file.try_lock().ok()?;
        let identity = |found: &Metadata| (found.dev(), found.ino());
        let locked = identity(&file.metadata().ok()?);
        let named = identity(&fs::symlink_metadata(directory).ok()?);
        (locked == named).then(|| Self(file))
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
    let owned = prefix.to_owned();
    let has_prefix = move |name: &OsStr| name.as_encoded_bytes().starts_with(owned.as_bytes());
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
        let found = || -> Vec<PathBuf> {
            let all = abandoned(parent.path(), "throng-");
            all.map(|(path, _)| path).collect()
        };
        let (path, claim) = Claim::create(&DirBuilder::new(), parent.path(), "throng-").unwrap();
        fs::create_dir(parent.path().join("other")).unwrap();
        std::os::unix::fs::symlink("other", parent.path().join("throng-link")).unwrap();
        assert_eq!(found(), [] as [PathBuf; 0]);
        drop(claim);
        assert_eq!(found(), [path]);
    }

    /// For a bug: three attempts with one name were few enough that other throngs took them all.
    #[test]
    fn many_that_create_and_remove_at_once_keep_their_own() {
        let parent = tempfile::tempdir().unwrap();
        let turn = || {
            for _ in 0..200 {
                for (path, _claim) in abandoned(parent.path(), "throng-") {
                    let _ = fs::remove_dir(path); // another may have been first
                }
                let created = Claim::create(&DirBuilder::new(), parent.path(), "throng-");
                let (path, _claim) = created.unwrap();
                std::thread::yield_now();
                assert!(path.is_dir(), "it was removed by another");
                fs::remove_dir(path).unwrap();
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(turn);
            }
        });
    }
}
