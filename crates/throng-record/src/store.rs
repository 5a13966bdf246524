//! Writing a record so that nothing measured is lost, and reading it again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::error::{StoreError, file_error};
use super::reading;
use super::trials::{PLAIN, Trials, decompress, read_trials};
use super::writing::write_whole;
use super::{Failure, Lock, Run, Trial};

/// The directories of files that single trials leave.
const PARTS: [&str; 3] = ["samples", "clients", "server"];

/// A record being written.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    trials: File,
    lock: Lock,
}

impl Store {
    /// Makes the directory with its parts, so that a place that cannot be written is known before
    /// anything is measured.
    ///
    /// # Errors
    /// When it cannot be written, holds a record already, or somebody else is about to write one there.
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
            lock,
        })
    }

    /// Goes on with the record in `directory`, whose trials are decompressed if they are not plain; a last
    /// line cut off in the middle is taken out.
    ///
    /// # Errors
    /// When there is none, it is not of a form this version knows, it cannot be written, or somebody else
    /// writes it.
    pub fn resume(directory: &Path) -> Result<(Self, Run, Vec<Trial>), StoreError> {
        read(directory)?;
        let lock = Lock::take(directory)?;
        let run = read(directory)?;
        let trials = read_trials(directory)?;
        // Nothing is written where a link leads.
        for part in PARTS {
            reading::refuse_links_in(directory, part)?;
        }
        decompress(directory)?;
        let path = directory.join(PLAIN);
        let open = || -> io::Result<File> {
            let file = OpenOptions::new()
                .read(true)
                .append(true)
                .create(true)
                .open(&path)?;
            let text = fs::read(&path)?;
            let whole = text
                .iter()
                .rposition(|&byte| byte == b'\n')
                .map_or(0, |end| end + 1);
            file.set_len(whole as u64)?;
            Ok(file)
        };
        let trials_file = open().map_err(file_error("write", &path))?;
        let store = Self {
            directory: directory.to_owned(),
            trials: trials_file,
            lock,
        };
        Ok((store, run, trials))
    }

    /// Where the record is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The CSV file of a trial in one of the parts "samples", "clients", "server".
    pub fn csv(&self, part: &str, trial: &Trial) -> PathBuf {
        self.file(part, trial, ".csv")
    }

    /// A file of a trial in any part, with this ending.
    pub fn file(&self, part: &str, trial: &Trial, ending: &str) -> PathBuf {
        self.directory.join(part).join(trial.file_stem() + ending)
    }

    /// Writes `run.json` whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written, or is not there any more.
    pub fn write_run(&self, run: &Run) -> Result<(), StoreError> {
        // Else it might go into a directory that somebody put in its place.
        self.check()?;
        write_whole(&self.directory.join("run.json"), run)
    }

    /// Adds a finished trial; it is on the disk when this returns.
    ///
    /// # Errors
    /// When it cannot be written, is not there any more, or this trial failed for want of it.
    pub fn add_trial(&mut self, trial: &Trial) -> Result<(), StoreError> {
        self.check()?;
        if let Some(failure) = &trial.failure {
            self.refuse_own_fault(failure)?;
        }
        let path = self.directory.join(PLAIN);
        let mut write = || -> io::Result<()> {
            let mut line = serde_json::to_vec(trial)?;
            line.push(b'\n');
            let before = self.trials.metadata()?.len();
            self.trials.write_all(&line).inspect_err(|_| {
                // A line cut off is read over, but none is better.
                let _ = self.trials.set_len(before);
            })?;
            self.trials.sync_data()
        };
        write().map_err(file_error("write", &path))?;
        self.check()
    }

    /// Makes sure that what is written is still found in the directory: a file that was removed takes
    /// everything, and keeps nothing.
    ///
    /// # Errors
    /// When it was removed, replaced or moved.
    pub fn check(&self) -> Result<(), StoreError> {
        let path = self.directory.join(PLAIN);
        let open = self
            .trials
            .metadata()
            .map_err(file_error("look at", &path))?;
        let same = |found: fs::Metadata| (found.dev(), found.ino()) == (open.dev(), open.ino());
        if fs::metadata(&path).is_ok_and(same) {
            return Ok(());
        }
        let from = self.directory.clone();
        Err(match self.lock.place() {
            Some(to) if fs::metadata(to.join(PLAIN)).is_ok_and(same) => {
                StoreError::Moved { from, to }
            }
            _ => StoreError::Gone(from),
        })
    }

    /// Servers of ours and loads write their rows themselves. One that could not is no trial that failed:
    /// what failed is the record, and all further trials would too.
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
/// When there is none, or it is not of a form this version knows.
pub fn read(directory: &Path) -> Result<Run, StoreError> {
    let run = reading::file(&directory.join("run.json"))?;
    run.ok_or_else(|| StoreError::Missing(directory.to_owned()))
}
