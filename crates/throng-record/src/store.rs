//! Writing a record so that nothing measured is lost, and reading it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::error::{StoreError, file_error};
use super::reading;
use super::trials::{PLAIN, Trials, decompress, read_trials};
use super::writing::write_whole;
use super::{Failure, Lock, Run, Trial};

/// The directories for files of single trials.
const PARTS: [&str; 3] = ["samples", "clients", "server"];

/// A record for writing.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    trials: File,
    /// Bytes in that file.
    length: u64,
    lock: Lock,
}

impl Store {
    /// Creates the directory with its parts, so that an unwritable path is noticed before anything is measured.
    ///
    /// # Errors
    /// When it cannot be written, contains a record already, or another process is creating one there.
    pub fn create(directory: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(directory).map_err(file_error("create", directory))?;
        let lock = Lock::take(directory)?;
        let has_trials = Trials::open(directory)?.is_some_and(|trials| trials.metadata().len() > 0);
        let others = ["run.json", super::study::FILE];
        if has_trials || others.iter().any(|file| directory.join(file).exists()) {
            return Err(StoreError::Taken(directory.to_owned()));
        }
        for part in PARTS {
            let path = directory.join(part);
            fs::create_dir_all(&path).map_err(file_error("create", &path))?;
        }
        let path = directory.join(PLAIN);
        let trials = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(file_error("create", &path))?;
        Ok(Self {
            directory: directory.to_owned(),
            trials,
            length: 0,
            lock,
        })
    }

    /// Continues the record in `directory`. Decompresses its trials if necessary, and removes an incomplete last
    /// line.
    ///
    /// # Errors
    /// When there is none, its format is unknown, it cannot be written, or another process is writing it.
    pub fn resume(directory: &Path) -> Result<(Self, Run, Vec<Trial>), StoreError> {
        read(directory)?;
        let lock = Lock::take(directory)?;
        let run = read(directory)?;
        let trials = read_trials(directory)?;
        for part in PARTS {
            reading::refuse_others_in(directory, part)?;
        }
        decompress(directory)?;
        let path = directory.join(PLAIN);
        let open = || -> io::Result<(File, u64)> {
            let file = OpenOptions::new()
                .read(true)
                .append(true)
                .create(true)
                .open(&path)?;
            let text = fs::read(&path)?;
            let whole = text
                .iter()
                .rposition(|&byte| byte == b'\n')
                .map_or(0, |end| end + 1) as u64;
            file.set_len(whole)?;
            Ok((file, whole))
        };
        let (trials_file, length) = open().map_err(file_error("write", &path))?;
        let store = Self {
            directory: directory.to_owned(),
            trials: trials_file,
            length,
            lock,
        };
        Ok((store, run, trials))
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The CSV file of a trial in one of the parts "samples", "clients", "server".
    pub fn csv(&self, part: &str, trial: &Trial) -> PathBuf {
        self.file(part, trial, ".csv")
    }

    /// A file of a trial in any part, with this extension.
    pub fn file(&self, part: &str, trial: &Trial, ending: &str) -> PathBuf {
        self.directory.join(part).join(trial.file_stem() + ending)
    }

    /// Writes `run.json` atomically.
    ///
    /// # Errors
    /// When it cannot be written, or no longer exists.
    pub fn write_run(&self, run: &Run) -> Result<(), StoreError> {
        // Otherwise it might go into a directory that replaced the original one.
        self.check()?;
        write_whole(&self.directory.join("run.json"), run)
    }

    /// Appends a finished trial, and syncs it to disk.
    ///
    /// # Errors
    /// When it cannot be written, no longer exists, or this trial failed because of that.
    pub fn add_trial(&mut self, trial: &Trial) -> Result<(), StoreError> {
        self.check()?;
        if let Some(failure) = &trial.failure {
            self.refuse_own_fault(failure)?;
        }
        let path = self.directory.join(PLAIN);
        let mut write = || -> io::Result<()> {
            let mut line = serde_json::to_vec(trial)?;
            line.push(b'\n');
            self.trials.write_all(&line).inspect_err(|_| {
                // Readers skip an incomplete line, but none is better.
                let _ = self.trials.set_len(self.length);
            })?;
            self.length += line.len() as u64;
            self.trials.sync_data()
        };
        write().map_err(file_error("write", &path))?;
        self.check()
    }

    /// Checks that written trials are still in the directory: a removed file accepts writes, and keeps nothing.
    ///
    /// # Errors
    /// When the file was removed, replaced, moved or changed, or nobody may look any more.
    pub fn check(&self) -> Result<(), StoreError> {
        let path = self.directory.join(PLAIN);
        let open = self
            .trials
            .metadata()
            .map_err(file_error("look at", &path))?;
        let same = |found: &fs::Metadata| (found.dev(), found.ino()) == (open.dev(), open.ino());
        match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(file_error("look at", &path)(error));
            }
            Ok(found) if same(&found) && open.len() == self.length => return Ok(()),
            Ok(found) if same(&found) => return Err(StoreError::Changed(path)),
            _ => {}
        }
        let from = self.directory.clone();
        Err(match self.lock.place() {
            Some(to) if fs::metadata(to.join(PLAIN)).is_ok_and(|found| same(&found)) => {
                StoreError::Moved { from, to }
            }
            _ => StoreError::Gone(from),
        })
    }

    /// Built-in servers and loads write their rows themselves. If one could not, the record failed rather than the
    /// trial, and all further trials would fail too.
    fn refuse_own_fault(&self, failure: &Failure) -> Result<(), StoreError> {
        let words = format!("cannot write {}", self.directory.display());
        let mut lines = failure.output.lines().chain([failure.reason.as_str()]);
        match lines.find_map(|line| line.find(&words).map(|at| &line[at..])) {
            Some(line) => Err(StoreError::Reported(line.to_owned())),
            None => Ok(()),
        }
    }
}

/// Reads `run.json` of the record in `directory`.
///
/// # Errors
/// When there is none, or its format is unknown.
pub fn read(directory: &Path) -> Result<Run, StoreError> {
    let run = reading::file(&directory.join("run.json"))?;
    run.ok_or_else(|| StoreError::missing(directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_that_another_program_changes_are_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(PLAIN);
        let mut store = Store::create(directory.path()).unwrap();
        for _ in 0..2 {
            store.add_trial(&Trial::default()).unwrap();
        }
        let text = fs::read_to_string(&path).unwrap();
        for (changed, is_fine) in [("", false), (&text[..10], false), (text.as_str(), true)] {
            fs::write(&path, changed).unwrap();
            assert_eq!(store.check().is_ok(), is_fine);
        }
        fs::write(&path, "").unwrap();
        let error = store.add_trial(&Trial::default()).unwrap_err();
        assert!(matches!(error, StoreError::Changed(_)), "{error}");
    }
}
