//! Caches facts about records and reads them again only after changes. Trials are counted by lines; those of a
//! finished run are not counted at all.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::run_entry::{RunEntry, State};
use throng_record::{self as record, Ending, Lock, Run, Study, Trials};
use throng_report::glance::machine;

/// Maximum size in bytes of a `run.json` in the list. The largest known one has a hundredth of that.
const MOST_BYTES: u64 = 8 << 20;
/// Maximum number of entries of an unreadable study to watch for changes.
const MOST_PARTS: usize = 200;
/// Bytes per read when counting.
const PIECE: usize = 1 << 16;
/// Number of digits of a commit to show.
const DIGITS: usize = 9;

/// Cached facts, and the state of the files they were read from.
#[derive(Debug, Default)]
pub(super) struct RecordCache {
    read_from: Vec<Option<Stamp>>,
    contents: Option<Result<Contents, String>>,
    lines: BTreeMap<PathBuf, Lines>,
}

/// The state of a file when it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    bytes: u64,
    /// Modification time, in seconds and nanoseconds.
    pub(super) changed: (i64, i64),
}

/// The lines of a trial file, which may grow.
#[derive(Debug, Default)]
struct Lines {
    inode: u64,
    bytes: u64,
    count: u64,
    /// When growth was last seen.
    grew: Option<Instant>,
}

/// The facts in a record.
#[derive(Debug, Clone)]
struct Contents {
    study: String,
    question: String,
    started_at: String,
    servers: Vec<String>,
    clients: Vec<u32>,
    warnings: u32,
    machine: String,
    throng: String,
    is_study: bool,
    parts: Vec<Part>,
}

/// A run by itself, or a part of a study.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// Its name, if it is a part.
    pub(super) name: Option<String>,
    ending: Ending,
    /// The planned number of trials, if known.
    planned: Option<u32>,
}

impl Part {
    /// The path of its record, within the record of the run.
    pub(super) fn place(&self, run: &Path) -> PathBuf {
        match &self.name {
            Some(name) => run.join(name),
            None => run.to_owned(),
        }
    }

    /// Whether it is complete.
    pub(super) fn is_complete(&self) -> bool {
        self.ending == Ending::Complete
    }
}

impl RecordCache {
    /// The current entry of a record; `None` if the directory is not a record.
    pub(super) fn entry(&mut self, name: &str, directory: &Path) -> Option<RunEntry> {
        let files = self.files(directory);
        let stamps: Vec<Option<Stamp>> = files.iter().map(|file| Stamp::of(file)).collect();
        if stamps.iter().all(Option::is_none) {
            // A run that has just started takes its lock before it writes any file.
            return Lock::is_taken(directory).then(|| RunEntry::starting(name));
        }
        if self.contents.is_none() || stamps != self.read_from {
            let contents = Contents::read(directory).map_err(|error| format!("{error:#}"));
            self.contents = Some(contents);
            // Reading may have revealed or changed parts.
            let files = self.files(directory);
            self.read_from = files.iter().map(|file| Stamp::of(file)).collect();
        }
        match self.contents.clone()? {
            Ok(contents) => {
                let trials = contents
                    .parts
                    .iter()
                    .map(|part| self.trials(directory, part));
                let trials = trials.sum();
                Some(contents.listed(name, directory, trials))
            }
            Err(problem) => Some(RunEntry {
                state: State::Broken,
                problem: Some(problem),
                ..RunEntry::starting(name)
            }),
        }
    }

    /// Its parts, each with its number of trials and the age of the last one.
    pub(super) fn parts(&mut self, directory: &Path) -> Vec<(Part, u64, Option<Duration>)> {
        let Some(Ok(contents)) = self.contents.clone() else {
            return Vec::new();
        };
        let parts = contents.parts.into_iter();
        parts
            .map(|part| {
                let trials = self.trials(directory, &part);
                let lines = self.lines.get(&part.place(directory));
                let grew = lines.and_then(|lines| lines.grew);
                (part, trials, grew.map(|grew| grew.elapsed()))
            })
            .collect()
    }

    /// All files that its facts depend on.
    fn files(&self, directory: &Path) -> Vec<PathBuf> {
        let mut files = vec![directory.join("run.json"), directory.join("study.json")];
        match &self.contents {
            Some(Ok(contents)) => {
                let parts = contents.parts.iter().filter(|part| part.name.is_some());
                files.extend(parts.map(|part| part.place(directory).join("run.json")));
            }
            // Any of them may be repaired.
            Some(Err(_)) => {
                let entries = fs::read_dir(directory).into_iter().flatten().flatten();
                let within = entries.map(|entry| entry.path().join("run.json"));
                files.extend(within.take(MOST_PARTS));
                files.sort_unstable();
            }
            None => {}
        }
        files
    }

    /// The number of trials of a part.
    fn trials(&mut self, directory: &Path, part: &Part) -> u64 {
        if part.is_complete()
            && let Some(planned) = part.planned
        {
            return planned.into();
        }
        let place = part.place(directory);
        let lines = self.lines.entry(place.clone()).or_default();
        // The trials of an unreadable part cannot be counted; its page shows the reason.
        let _ = lines.count_new(&place);
        lines.count
    }
}

impl Stamp {
    pub(super) fn of(path: &Path) -> Option<Self> {
        let found = fs::symlink_metadata(path).ok()?;
        Some(Self {
            inode: found.ino(),
            bytes: found.len(),
            changed: (found.mtime(), found.mtime_nsec()),
        })
    }
}

impl Lines {
    /// Counts the trials that were appended to a record.
    fn count_new(&mut self, record: &Path) -> anyhow::Result<()> {
        let Some(trials) = Trials::open(record)? else {
            *self = Self::default();
            return Ok(());
        };
        let found = trials.metadata();
        let is_another = found.ino() != self.inode || found.len() < self.bytes;
        if is_another || trials.is_compressed() && found.len() > self.bytes {
            *self = Self {
                inode: found.ino(),
                ..Self::default()
            };
        }
        if found.len() == self.bytes {
            return Ok(());
        }
        let mut lines = trials.lines_from(self.bytes)?;
        let (mut piece, mut added) = (vec![0; PIECE], 0);
        loop {
            let read = lines.read(&mut piece)?;
            if read == 0 {
                break;
            }
            let ends = piece[..read].iter().filter(|byte| **byte == b'\n');
            added += ends.count() as u64;
        }
        if self.bytes > 0 && added > 0 {
            self.grew = Some(Instant::now());
        }
        self.count += added;
        self.bytes = found.len();
        Ok(())
    }
}

impl Contents {
    fn read(directory: &Path) -> anyhow::Result<Self> {
        let run = |directory: &Path| -> anyhow::Result<Run> {
            let path = directory.join("run.json");
            let bytes = Stamp::of(&path).map_or(0, |stamp| stamp.bytes);
            anyhow::ensure!(
                bytes <= MOST_BYTES,
                "{} has {bytes} bytes; the limit is {MOST_BYTES}",
                path.display()
            );
            Ok(record::read(directory)?)
        };
        if Stamp::of(&directory.join("study.json")).is_none() {
            return Ok(Self::of_runs(None, &[(None, run(directory)?)]));
        }
        let study = Study::read(directory)?;
        let mut runs = Vec::new();
        for part in study.parts.iter().filter(|part| part.skipped.is_none()) {
            if let Some(found) = record::directory(directory, &part.name)? {
                runs.push((Some(part.name.clone()), run(&found)?));
            }
        }
        Ok(Self::of_runs(Some(&study), &runs))
    }

    fn of_runs(study: Option<&Study>, runs: &[(Option<String>, Run)]) -> Self {
        let mut servers: Vec<String> = Vec::new();
        let mut clients: Vec<u32> = Vec::new();
        for (_, run) in runs {
            for server in &run.servers {
                if !servers.contains(&server.name) {
                    servers.push(server.name.clone());
                }
            }
            clients.extend(&run.settings.clients);
        }
        clients.sort_unstable();
        clients.dedup();
        let first = runs.first().map(|(_, run)| run);
        let text = |of_study: fn(&Study) -> &String, of_run: fn(&Run) -> &String| {
            study.map(of_study).or(first.map(of_run)).cloned()
        };
        let part = |(name, run): &(Option<String>, Run)| {
            // The length of a search is known only after it has ended.
            let is_open = run.limit.is_some() && run.ending != Ending::Complete;
            Part {
                name: name.clone(),
                ending: run.ending,
                planned: (!is_open).then_some(run.trials_planned),
            }
        };
        Self {
            study: text(|study| &study.name, |run| &run.study.name).unwrap_or_default(),
            question: text(|study| &study.question, |run| &run.study.question).unwrap_or_default(),
            started_at: text(|study| &study.started_at, |run| &run.started_at).unwrap_or_default(),
            servers,
            clients,
            warnings: runs.iter().map(|(_, run)| run.warnings.len() as u32).sum(),
            machine: first.map(machine).unwrap_or_default(),
            throng: first.map(throng).unwrap_or_default(),
            is_study: study.is_some(),
            parts: runs.iter().map(part).collect(),
        }
    }

    fn listed(self, name: &str, directory: &Path, trials: u64) -> RunEntry {
        let of_parts = self.parts.iter().filter(|part| part.name.is_some());
        let is_running = Lock::is_taken(directory)
            || of_parts
                .clone()
                .any(|part| Lock::is_taken(&part.place(directory)));
        let ending = Ending::of_parts(self.parts.iter().map(|part| part.ending));
        let state = match ending {
            _ if is_running => State::Running,
            // In a study that was killed, some parts may be finished while others never started.
            Ending::Complete => State::Finished,
            Ending::Interrupted => State::Interrupted,
            Ending::HostLost => State::HostLost,
            Ending::ServerFailed => State::ServerFailed,
            Ending::Unfinished => State::Unfinished,
        };
        let planned = self.parts.iter().map(|part| part.planned.map(u64::from));
        RunEntry {
            name: name.to_owned(),
            state,
            parts: if self.is_study {
                self.parts.len() as u32
            } else {
                0
            },
            study: self.study,
            question: self.question,
            started_at: self.started_at,
            servers: self.servers,
            clients: self.clients,
            trials,
            planned: planned.sum(),
            warnings: self.warnings,
            machine: self.machine,
            throng: self.throng,
            problem: None,
        }
    }
}

/// "0.1.0, 59807616e+": version and commit; the plus means that the source had uncommitted changes.
fn throng(run: &Run) -> String {
    let program = &run.throng_program;
    let Some(commit) = &program.commit else {
        return run.throng_version.clone();
    };
    let commit: String = commit.chars().take(DIGITS).collect();
    let more = if program.modified == Some(true) {
        "+"
    } else {
        ""
    };
    format!("{}, {commit}{more}", run.throng_version)
}

/// The files that a report depends on, whether or not they exist.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let parts = Study::is_in(directory).then(|| Study::read(directory).ok());
    let parts = parts.flatten().map(|study| study.parts).unwrap_or_default();
    let places = parts.iter().map(|part| directory.join(&part.name));
    let places = places.chain([directory.to_owned()]);
    let files = places.flat_map(|place| {
        let files = ["run.json", "study.json"].into_iter().chain(record::TRIALS);
        files.map(move |file| place.join(file))
    });
    files.collect()
}

/// Whether a derived file is missing or older than the files it depends on.
pub(super) fn is_older(directory: &Path, file: &Path) -> bool {
    let changed = |path: &Path| Stamp::of(path).map(|stamp| stamp.changed);
    let Some(made) = changed(file) else {
        return true;
    };
    let sources = sources(directory);
    let mut sources = sources.iter().filter_map(|source| changed(source));
    sources.any(|at| at > made)
}

/// The current state of the files that a report depends on, and of its summary.
pub(super) fn stamps(directory: &Path) -> Vec<Option<Stamp>> {
    let mut files = sources(directory);
    files.push(directory.join("summary.json"));
    files.iter().map(|file| Stamp::of(file)).collect()
}
