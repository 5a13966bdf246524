//! The runs below a directory. Records are found at any depth; directories within a record are not searched, symbolic
//! links are not followed, and hidden directories are skipped. What a record says is read again only after a change.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, Metadata};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::Serialize;

use super::address::{MOST_DEEP, is_below, is_entry};
use super::response::Refused;
use throng_record::{self as record, Ending, Lock, Run, Study, Trials};
use throng_report::glance::{self, Glance, machine, throng};

/// Maximum number of directories to search.
const MOST_DIRECTORIES: usize = 20_000;
/// Maximum number of runs in the list. If there are more, those with the last names, which begin with their time.
const MOST_RUNS: usize = 5000;
/// Maximum size in bytes of a `run.json` in the list. The largest known one has a hundredth of that.
const MOST_BYTES: u64 = 8 << 20;
/// Time after which a page leaves further answers to the next request.
const READING_LIMIT: Duration = Duration::from_millis(250);

/// The state of a run; that of a study is the last one here that a part of it has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    /// Complete.
    Finished,
    /// Killed: no process is writing the record, and it was never completed.
    Unfinished,
    /// A server did not start, or did not reply correctly.
    ServerFailed,
    /// A client host was lost.
    HostLost,
    /// Interrupted by a signal.
    Interrupted,
    /// Running: a process is writing the record.
    #[default]
    Running,
    /// Unreadable.
    Broken,
}

impl State {
    /// The state as text.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Interrupted => "interrupted",
            Self::HostLost => "client host lost",
            Self::ServerFailed => "server failed",
            Self::Unfinished => "unfinished",
            Self::Broken => "broken",
        }
    }
}

/// A run, or a part of a study.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct RunEntry {
    /// Its name: the path of its directory.
    pub(super) name: String,
    pub(super) state: State,
    pub(super) study: String,
    /// Its question.
    pub(super) question: String,
    /// Start time in UTC; empty if unknown.
    pub(super) started_at: String,
    /// The servers, each once.
    pub(super) servers: Vec<String>,
    /// The numbers of clients.
    pub(super) clients: BTreeSet<u32>,
    /// Its parts, if it is a study.
    pub(super) parts: Vec<Self>,
    /// Trials in the record.
    pub(super) trials: u64,
    /// Expected trials, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) planned: Option<u64>,
    /// Warnings about the run.
    pub(super) warnings: u32,
    /// The machine.
    pub(super) machine: String,
    /// Version and commit of the throng that took the measurements.
    pub(super) throng: String,
    /// Why it is unreadable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
    #[serde(skip)]
    pub(super) directory: PathBuf,
    /// Its answer, or why there is none; `None` until it is read.
    #[serde(skip)]
    pub(super) glance: Option<Result<Arc<Glance>, String>>,
    /// The files that all of this depends on.
    #[serde(skip)]
    pub(super) files: Files,
}

/// Files with their modification time, in seconds and nanoseconds, and size.
type Files = BTreeMap<PathBuf, ((i64, i64), u64)>;

fn changed(found: &Metadata) -> (i64, i64) {
    (found.mtime(), found.mtime_nsec())
}

/// The runs below a directory.
#[derive(Debug)]
pub(super) struct Runs {
    pub(super) directory: PathBuf,
    known: Mutex<BTreeMap<String, RunEntry>>,
}

/// The list of runs.
#[derive(Debug, Default, Serialize)]
pub(super) struct Listing {
    /// Newest first.
    pub(super) runs: Vec<RunEntry>,
    /// Number of further runs.
    pub(super) left_out: usize,
    /// Whether directories were skipped: too many, or too deep.
    pub(super) not_all: bool,
}

impl Runs {
    pub(super) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            known: Mutex::default(),
        }
    }

    /// All runs.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub(super) fn list(&self) -> anyhow::Result<Listing> {
        let (mut names, not_all) = records(&self.directory)?;
        let last = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
        names.sort_by_cached_key(|name| std::cmp::Reverse(last(name)));
        let left_out = names.len().saturating_sub(MOST_RUNS);
        names.truncate(MOST_RUNS);
        let mut runs: Vec<RunEntry> = names.iter().filter_map(|name| self.entry(name)).collect();
        runs.sort_by(|one, other| {
            let of = |run: &RunEntry| (run.started_at.clone(), run.name.clone());
            of(other).cmp(&of(one))
        });
        Ok(Listing {
            runs,
            left_out,
            not_all,
        })
    }

    /// The run with a name.
    pub(super) fn find(&self, name: &str) -> Result<RunEntry, Refused> {
        self.entry(name)
            .ok_or_else(|| Refused::missing("No run has this name."))
    }

    /// The run with a name; `None` if there is no such run, or if the name leads elsewhere.
    fn entry(&self, name: &str) -> Option<RunEntry> {
        if !is_below(name) {
            return None;
        }
        let mut directory = self.directory.clone();
        for entry in name.split('/') {
            directory = record::directory(&directory, entry).ok().flatten()?;
        }
        let is_locked = Lock::is_taken(&directory);
        let mut run = RunEntry {
            name: name.to_owned(),
            files: files(&directory),
            directory,
            ..RunEntry::default()
        };
        // A run that has just started takes its lock before it writes any file.
        let has = |file| run.files.contains_key(&run.directory.join(file));
        if !has("run.json") && !has("study.json") {
            return is_locked.then_some(run);
        }
        if Study::is_in(&run.directory) {
            run = self.study(run);
        } else if let Some(known) = self.kept(&run) {
            run = known;
        } else {
            run = run.with_contents();
            self.keep(run.clone());
        }
        if is_locked {
            run.state = run.state.max(State::Running);
        }
        Some(run)
    }

    /// Adds what a study and its parts say.
    fn study(&self, mut whole: RunEntry) -> RunEntry {
        let study = match Study::read(&whole.directory) {
            Ok(study) => study,
            Err(error) => return whole.broken(&error.into()),
        };
        let begun = study.parts.iter().filter(|part| part.skipped.is_none());
        let parts = begun.filter_map(|part| self.entry(&format!("{}/{}", whole.name, part.name)));
        whole.parts = parts.collect();
        whole.state = State::Finished;
        for part in &whole.parts {
            whole.state = whole.state.max(part.state);
            for server in &part.servers {
                if !whole.servers.contains(server) {
                    whole.servers.push(server.clone());
                }
            }
            whole.clients.extend(&part.clients);
            whole.trials += part.trials;
            whole.warnings += part.warnings;
            whole.machine.clone_from(&part.machine);
            whole.throng.clone_from(&part.throng);
            whole.problem = whole.problem.or_else(|| part.problem.clone());
            whole.files.extend(part.files.clone());
        }
        whole.planned = whole.parts.iter().map(|part| part.planned).sum();
        whole.study = study.name;
        whole.question = study.question;
        whole.started_at = study.started_at;
        whole.glance = self.kept(&whole).and_then(|known| known.glance);
        whole
    }

    /// Adds the answers that are known, or can be read or made quickly; a later request gets the others.
    pub(super) fn add_glances(&self, runs: &mut [RunEntry]) {
        let began = Instant::now();
        for run in runs {
            if began.elapsed() < READING_LIMIT {
                self.add_glance(run);
            }
        }
    }

    /// Adds the answer of a run: from its `summary.json` if that is newer than the record, otherwise from its trials.
    pub(super) fn add_glance(&self, run: &mut RunEntry) {
        if !run.is_read() || run.glance.is_some() {
            return;
        }
        let is_current = run.is_older_than(&run.directory.join("summary.json"));
        let stored = is_current.then(|| glance::stored(&run.directory)).flatten();
        let result = match stored {
            Some(stored) => Ok(stored),
            // A panic would be reported on standard error, and take the whole list with it.
            None => std::panic::catch_unwind(|| glance::make(&run.directory))
                .unwrap_or_else(|_| anyhow::bail!("throng cannot make a report of this record")),
        };
        let made = result.map_err(|error| format!("{error:#}"));
        run.glance = Some(made.map(Arc::new));
        self.keep(run.clone());
    }

    fn keep(&self, run: RunEntry) {
        let mut known = self.known();
        if known.len() > 2 * MOST_RUNS {
            known.clear();
        }
        known.insert(run.name.clone(), run);
    }

    /// A run as it was read, unless it has changed since.
    fn kept(&self, run: &RunEntry) -> Option<RunEntry> {
        let known = self.known().get(&run.name).cloned();
        known.filter(|known| known.files == run.files)
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, RunEntry>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The files of a record that say something about it.
fn files(directory: &Path) -> Files {
    let names = ["run.json", "study.json"].into_iter().chain(record::TRIALS);
    let files = names.filter_map(|name| {
        let path = directory.join(name);
        let found = fs::symlink_metadata(&path).ok()?;
        Some((path, (changed(&found), found.len())))
    });
    files.collect()
}

impl RunEntry {
    /// Whether it has an answer: no report is made while a run is in progress.
    pub(super) fn is_read(&self) -> bool {
        self.problem.is_none() && self.state != State::Running && !self.study.is_empty()
    }

    /// Whether a derived file exists and is as new as all files that it depends on.
    pub(super) fn is_older_than(&self, derived: &Path) -> bool {
        let made = fs::symlink_metadata(derived).map(|found| changed(&found));
        made.is_ok_and(|made| self.files.values().all(|(changed, _)| *changed <= made))
    }

    fn broken(self, error: &anyhow::Error) -> Self {
        Self {
            state: State::Broken,
            problem: Some(format!("{error:#}")),
            ..self
        }
    }

    /// Adds what the record of a run says.
    fn with_contents(mut self) -> Self {
        let run = match self.run() {
            Ok(run) => run,
            Err(error) => return self.broken(&error),
        };
        self.state = match run.ending {
            Ending::Complete => State::Finished,
            Ending::Interrupted => State::Interrupted,
            Ending::HostLost => State::HostLost,
            Ending::ServerFailed => State::ServerFailed,
            Ending::Unfinished => State::Unfinished,
        };
        let is_complete = run.ending == Ending::Complete;
        // The length of a search is known only after it has ended.
        self.planned = (run.limit.is_none() || is_complete).then_some(run.trials_planned.into());
        self.trials = match self.planned.filter(|_| is_complete) {
            Some(all) => all,
            // The trials of an unreadable record cannot be counted; its page shows the reason.
            None => trials_in(&self.directory).unwrap_or_default(),
        };
        self.machine = machine(&run);
        self.throng = throng(&run);
        self.warnings = run.findings.len() as u32;
        self.servers = run.servers.into_iter().map(|server| server.name).collect();
        self.clients = run.settings.clients.into_iter().collect();
        self.study = run.study.name;
        self.question = run.study.question;
        self.started_at = run.started_at;
        self
    }

    fn run(&self) -> anyhow::Result<Run> {
        let path = self.directory.join("run.json");
        let bytes = self.files.get(&path).map_or(0, |(_, bytes)| *bytes);
        anyhow::ensure!(
            bytes <= MOST_BYTES,
            "{} has {bytes} bytes; the limit is {MOST_BYTES}",
            path.display()
        );
        Ok(record::read(&self.directory)?)
    }
}

/// The number of trials in a record, by lines.
fn trials_in(directory: &Path) -> anyhow::Result<u64> {
    let Some(trials) = Trials::open(directory)? else {
        return Ok(0);
    };
    let (mut lines, mut line) = (BufReader::new(trials.lines_from(0)?), Vec::new());
    let mut count = 0;
    while lines.read_until(b'\n', &mut line)? > 0 {
        // The last line may be incomplete.
        count += u64::from(line.ends_with(b"\n"));
        line.clear();
    }
    Ok(count)
}

/// The names of all records below a directory: their paths relative to it. Also whether directories were skipped,
/// because they are too many or too deep.
///
/// # Errors
/// When the directory cannot be read. Unreadable subdirectories are skipped.
fn records(directory: &Path) -> anyhow::Result<(Vec<String>, bool)> {
    let cannot = || format!("cannot read {}", directory.display());
    let (mut names, mut not_all) = (Vec::new(), false);
    let mut waiting: VecDeque<String> = within(directory).with_context(cannot)?.into();
    let mut looked_at = 0;
    while let Some(name) = waiting.pop_front() {
        looked_at += 1;
        if looked_at > MOST_DIRECTORIES {
            return Ok((names, true));
        }
        let path = directory.join(&name);
        let has = |file| fs::symlink_metadata(path.join(file)).is_ok();
        // A run takes its lock before it writes any file.
        if has("run.json") || has("study.json") || Lock::is_taken(&path) {
            names.push(name);
            continue;
        }
        let inner = within(&path).unwrap_or_default();
        if name.split('/').count() >= MOST_DEEP {
            not_all |= !inner.is_empty();
            continue;
        }
        waiting.extend(inner.iter().map(|inner| format!("{name}/{inner}")));
    }
    Ok((names, not_all))
}

/// The names of the subdirectories of a directory.
fn within(directory: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let found = entry?;
        // A name that is not valid UTF-8 cannot be in a URL.
        let name = found.file_name().into_string().unwrap_or_default();
        let is_directory = || found.file_type().is_ok_and(|kind| kind.is_dir());
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
        let (mut names, not_all) = records(&inside).unwrap();
        names.sort();
        assert_eq!(names, ["2026/vm/study", "here", "starting"]);
        assert!(!not_all);
        drop(lock);
        let has_deep = |(names, not_all): (Vec<String>, bool)| {
            let mut names = names.iter();
            (names.any(|name| name.starts_with("deep")), not_all)
        };
        let deep = inside.join(["deep"; MOST_DEEP].join("/"));
        record(&deep);
        assert_eq!(has_deep(records(&inside).unwrap()), (true, false));
        record(&deep.join("deeper"));
        fs::remove_file(deep.join("run.json")).unwrap();
        assert_eq!(has_deep(records(&inside).unwrap()), (false, true));
        assert!(records(&whole.path().join("nothing")).is_err());
    }
}
