//! A directory for temporary files that only this user can access.

use std::fs::{DirBuilder, remove_dir_all};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// Maximum number of existing names to skip.
const NAMES_TRIED: u32 = 100;

/// Removed at the end, with its files.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PrivateDirectory(PathBuf);

impl PrivateDirectory {
    /// # Errors
    /// When it cannot be created.
    pub(crate) fn new() -> io::Result<Self> {
        let mut private = DirBuilder::new();
        private.mode(0o700);
        for _ in 0..NAMES_TRIED {
            let name = format!("throng-{:08x}", fastrand::u32(..));
            let path = std::env::temp_dir().join(name);
            match private.create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        let _ = remove_dir_all(&self.0);
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
}
