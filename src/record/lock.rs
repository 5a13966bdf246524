//! Who writes a record: one process at a time.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::store::{StoreError, file_error};

/// The right to write into a directory. It ends with the process that has it, however that ends.
#[derive(Debug)]
pub struct Lock {
    /// Open is all it has to be.
    _directory: File,
}

impl Lock {
    /// Takes it.
    ///
    /// # Errors
    /// When another process has it, or there is no such directory.
    pub fn take(directory: &Path) -> Result<Self, StoreError> {
        let open = File::open(directory).map_err(file_error("open", directory))?;
        match open.try_lock() {
            // Some network file systems have no locks for directories. Then it is as with two hosts.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Self { _directory: open }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Busy(directory.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_locked_until_the_lock_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let lock = Lock::take(directory.path()).unwrap();
        let again = Lock::take(directory.path()).unwrap_err();
        assert!(matches!(again, StoreError::Busy(_)), "{again}");
        drop(lock);
        Lock::take(directory.path()).unwrap();
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let error = Lock::take(Path::new("/nonexistent/record")).unwrap_err();
        assert_eq!(error.to_string(), "cannot open /nonexistent/record");
    }
}
