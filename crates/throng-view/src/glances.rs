//! Cached summaries of runs: from `summary.json` if that is newer than its record, otherwise made from the trials, in
//! a separate thread, one record at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::known::{Stamp, is_older, stamps};
use throng_report::glance::{self, Glance};

/// Size of the cache.
const MOST_KNOWN: usize = 2000;
/// Maximum records that wait for their summary; further ones are requested again later.
const MOST_WAITING: usize = 256;
/// How long a page waits for summaries that only have to be read.
pub(super) const PATIENCE: Duration = Duration::from_millis(250);

/// The state of a summary.
#[derive(Debug, Clone, Default)]
pub(super) enum Glanced {
    /// It is being made.
    #[default]
    Waiting,
    Known(Arc<Glance>),
    /// The record is unreadable.
    Failed(Arc<str>),
}

impl Glanced {
    pub(super) fn known(&self) -> Option<&Glance> {
        match self {
            Self::Known(glance) => Some(glance),
            Self::Waiting | Self::Failed(_) => None,
        }
    }
}

/// All summaries.
#[derive(Debug)]
pub(super) struct Glances {
    shared: Arc<Shared>,
    to_make: SyncSender<(String, PathBuf)>,
}

#[derive(Debug, Default)]
struct Shared {
    known: Mutex<BTreeMap<String, Seen>>,
    /// The queue of records.
    waiting: Mutex<BTreeSet<String>>,
}

/// A summary, and the state of its files.
#[derive(Debug, Clone)]
struct Seen {
    from: Vec<Option<Stamp>>,
    glanced: Glanced,
}

impl Glances {
    /// An empty cache. The thread ends when the returned value is dropped.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn new() -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (to_make, waiting) = sync_channel(MOST_WAITING);
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("glances".to_owned());
        thread.spawn(move || own.make(&waiting))?;
        Ok(Self { shared, to_make })
    }

    /// The summaries of these records, in their order: those that are cached, or can be read within [`PATIENCE`]. The
    /// others are made from their trials for the next time.
    pub(super) fn of(&self, records: &[(String, PathBuf)]) -> Vec<Glanced> {
        let began = Instant::now();
        let each = |(name, directory): &(String, PathBuf)| {
            let from = stamps(directory);
            if let Some(known) = self.shared.known_of(name, &from) {
                return known;
            }
            if began.elapsed() > PATIENCE {
                return Glanced::Waiting;
            }
            let Some(glance) = stored(directory) else {
                self.ask_for(name, directory);
                return Glanced::Waiting;
            };
            let glanced = Glanced::Known(Arc::new(glance));
            self.shared.keep(name, from, glanced)
        };
        records.iter().map(each).collect()
    }

    /// The summary of one record, made immediately if necessary.
    pub(super) fn now(&self, name: &str, directory: &Path) -> Glanced {
        let from = stamps(directory);
        let known = self.shared.known_of(name, &from);
        known.unwrap_or_else(|| {
            let glanced = match stored(directory) {
                Some(glance) => Glanced::Known(Arc::new(glance)),
                None => made(directory),
            };
            self.shared.keep(name, from, glanced)
        })
    }

    fn ask_for(&self, name: &str, directory: &Path) {
        let mut waiting = locked(&self.shared.waiting);
        if !waiting.contains(name) {
            let asked = (name.to_owned(), directory.to_owned());
            if self.to_make.try_send(asked).is_ok() {
                waiting.insert(name.to_owned());
            }
        }
    }
}

impl Shared {
    fn known_of(&self, name: &str, from: &[Option<Stamp>]) -> Option<Glanced> {
        let known = locked(&self.known);
        let seen = known.get(name).filter(|seen| seen.from == from)?;
        Some(seen.glanced.clone())
    }

    fn keep(&self, name: &str, from: Vec<Option<Stamp>>, glanced: Glanced) -> Glanced {
        let mut known = locked(&self.known);
        if known.len() >= MOST_KNOWN {
            // Names usually begin with their time, so this is the oldest.
            known.pop_first();
        }
        let seen = Seen {
            from,
            glanced: glanced.clone(),
        };
        known.insert(name.to_owned(), seen);
        glanced
    }

    /// Makes summaries until the sender is dropped.
    fn make(&self, waiting: &Receiver<(String, PathBuf)>) {
        for (name, directory) in waiting {
            // The state before: later changes make it again.
            let from = stamps(&directory);
            self.keep(&name, from, made(&directory));
            locked(&self.waiting).remove(&name);
        }
    }
}

fn locked<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The summary in a record, if it is newer than this.
fn stored(directory: &Path) -> Option<Glance> {
    let is_new = !is_older(directory, &directory.join("summary.json"));
    is_new.then(|| glance::stored(directory)).flatten()
}

/// A summary made from the trials.
fn made(directory: &Path) -> Glanced {
    let made = std::panic::catch_unwind(|| glance::of(directory));
    match made {
        Ok(Ok(glance)) => Glanced::Known(Arc::new(glance)),
        Ok(Err(error)) => Glanced::Failed(format!("{error:#}").into()),
        // Because of the record; the panic itself was reported on standard error.
        Err(_) => Glanced::Failed("throng cannot make a report of this record".into()),
    }
}
