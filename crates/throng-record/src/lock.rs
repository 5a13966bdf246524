//! The lock of a record: one writer at a time.

use std::fs::{self, File, TryLockError};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use super::error::{StoreError, file_error};

/// Attempts to take a lock before it counts as taken, and the pause between them.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(5);

/// The right to write to a directory. It ends with the process that holds it, however that ends.
#[derive(Debug)]
pub struct Lock {
    directory: File,
}

impl Lock {
    /// Takes the lock.
    ///
    /// # Errors
    /// When another process holds it, or there is no such directory.
    pub fn take(directory: &Path) -> Result<Self, StoreError> {
        let open = File::open(directory).map_err(file_error("open", directory))?;
        for again in 0..=TRIES {
            // Readers hold it for a moment, see `is_taken`. So does a forked child of its last owner, until it runs
            // its program.
            if again > 0 {
                std::thread::sleep(PAUSE);
            }
            match open.try_lock() {
                // Some network file systems have no locks for directories. Then two writers are not detected, as with
                // two hosts.
                Ok(()) | Err(TryLockError::Error(_)) => return Ok(Self { directory: open }),
                Err(TryLockError::WouldBlock) => {}
            }
        }
        Err(StoreError::Busy(directory.to_owned()))
    }

    /// The current path of the directory, if known and not removed.
    pub(super) fn place(&self) -> Option<PathBuf> {
        let link = format!("/proc/self/fd/{}", self.directory.as_raw_fd());
        let place = fs::read_link(link).ok()?;
        let is_same = |found: fs::Metadata| {
            let own = self.directory.metadata();
            own.is_ok_and(|own| (own.dev(), own.ino()) == (found.dev(), found.ino()))
        };
        fs::metadata(&place).is_ok_and(is_same).then_some(place)
    }

    /// Whether a process holds it. Several may check at once. On file systems without locks, it is never taken.
    pub fn is_taken(directory: &Path) -> bool {
        // Does not block on a pipe of that name.
        let Ok(open) = rustix::fs::open(
            directory,
            OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        ) else {
            return false;
        };
        let taken = File::from(open).try_lock_shared();
        matches!(taken, Err(TryLockError::WouldBlock))
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
    fn checking_a_lock_does_not_take_it() {
        let directory = tempfile::tempdir().unwrap();
        assert!(!Lock::is_taken(directory.path()));
        let lock = Lock::take(directory.path()).unwrap();
        assert!(Lock::is_taken(directory.path()));
        drop(lock);
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    Lock::is_taken(directory.path());
                }
            });
            for _ in 0..200 {
                drop(Lock::take(directory.path()).unwrap());
            }
            over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert!(!Lock::is_taken(directory.path()));
        assert!(!Lock::is_taken(Path::new("/nonexistent/record")));
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let error = Lock::take(Path::new("/nonexistent/record")).unwrap_err();
        assert_eq!(error.to_string(), "cannot open /nonexistent/record");
    }
}
