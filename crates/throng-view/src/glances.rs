//! Cached summaries of runs: from `summary.json` if that is newer than its record, otherwise made from the trials on a
//! separate thread, one record at a time. For a study, the summaries of its parts are made too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::record_cache::{Stamp, is_older, stamps};
use throng_record::Study;
use throng_report::glance::{self, Glance};
use throng_report::summary::Summary;

/// Maximum number of cached summaries, and their maximum total size in bytes, as JSON.
const MOST_KNOWN: usize = 5000;
const MOST_BYTES: usize = 64 << 20;
/// Maximum number of records that wait for their summary; further ones are requested again later.
const MOST_WAITING: usize = 256;
/// Maximum time that a page waits for summaries that only need to be read.
pub(super) const READING_LIMIT: Duration = Duration::from_millis(250);

/// The state of a summary.
#[derive(Debug, Clone, Default)]
pub(super) enum GlanceState {
    /// It is being made.
    #[default]
    Waiting,
    Known(Arc<Glance>),
    /// The record is unreadable.
    Failed(Arc<str>),
}

impl GlanceState {
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
    known: Mutex<GlanceCache>,
    /// The records in the queue.
    waiting: Mutex<BTreeSet<String>>,
}

/// The cached summaries.
#[derive(Debug, Default)]
struct GlanceCache {
    all: BTreeMap<String, CachedGlance>,
    bytes: usize,
}

/// A summary, and the state of the files it was made from.
#[derive(Debug, Clone)]
struct CachedGlance {
    from: Vec<Option<Stamp>>,
    glanced: GlanceState,
    bytes: usize,
}

impl Glances {
    /// An empty cache. The thread ends when the returned value is dropped.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(super) fn new() -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (to_make, waiting) = sync_channel(MOST_WAITING);
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("glances".to_owned());
        thread.spawn(move || own.make_all(&waiting))?;
        Ok(Self { shared, to_make })
    }

    /// The summaries of these records, in the same order, if they are cached or can be read within [`READING_LIMIT`].
    /// The others are made from their trials for the next request.
    pub(super) fn of(&self, records: &[(String, PathBuf)]) -> Vec<GlanceState> {
        let began = Instant::now();
        let each = |(name, directory): &(String, PathBuf)| {
            let from = stamps(directory);
            if let Some(known) = self.shared.known_of(name, &from) {
                return known;
            }
            if began.elapsed() > READING_LIMIT {
                return GlanceState::Waiting;
            }
            let Some(glance) = stored(directory) else {
                self.ask_for(name, directory);
                return GlanceState::Waiting;
            };
            let glanced = GlanceState::Known(Arc::new(glance));
            self.shared.keep(name, from, glanced)
        };
        records.iter().map(each).collect()
    }

    /// The summary of one record, made immediately if necessary. With the numbers of the run, if they had to be read
    /// to make it.
    pub(super) fn now(&self, name: &str, directory: &Path) -> (GlanceState, Option<Summary>) {
        let from = stamps(directory);
        if let Some(known) = self.shared.known_of(name, &from) {
            return (known, None);
        }
        match stored(directory) {
            Some(glance) => {
                let glanced = GlanceState::Known(Arc::new(glance));
                (self.shared.keep(name, from, glanced), None)
            }
            None => self.shared.make(name, directory),
        }
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
    fn known_of(&self, name: &str, from: &[Option<Stamp>]) -> Option<GlanceState> {
        let known = locked(&self.known);
        let seen = known.all.get(name).filter(|seen| seen.from == from)?;
        Some(seen.glanced.clone())
    }

    fn keep(&self, name: &str, from: Vec<Option<Stamp>>, glanced: GlanceState) -> GlanceState {
        let text = glanced.known().map(serde_json::to_vec);
        let seen = CachedGlance {
            from,
            bytes: text.and_then(Result::ok).map_or(0, |text| text.len()),
            glanced: glanced.clone(),
        };
        locked(&self.known).keep(name, seen);
        glanced
    }

    /// Makes summaries until the sender is dropped.
    fn make_all(&self, waiting: &Receiver<(String, PathBuf)>) {
        for (name, directory) in waiting {
            self.make(&name, &directory);
            locked(&self.waiting).remove(&name);
        }
    }

    /// Makes the summary of a record from its trials, and those of its parts.
    fn make(&self, name: &str, directory: &Path) -> (GlanceState, Option<Summary>) {
        // The state before reading, so that later changes cause a new summary.
        let from = stamps(directory);
        let study = Study::is_in(directory).then(|| Study::read(directory).ok());
        let parts = study.flatten().map(|study| study.parts).unwrap_or_default();
        let parts: BTreeMap<String, Vec<Option<Stamp>>> = parts
            .into_iter()
            .map(|part| (part.name.clone(), stamps(&directory.join(part.name))))
            .collect();
        let mut numbers = None;
        let glanced = match std::panic::catch_unwind(|| glance::make(directory)) {
            Ok(Ok(made)) => {
                numbers = made.summary;
                for (part, glance) in made.parts {
                    if let Some(from) = parts.get(&part) {
                        let glanced = GlanceState::Known(Arc::new(glance));
                        self.keep(&format!("{name}/{part}"), from.clone(), glanced);
                    }
                }
                GlanceState::Known(Arc::new(made.glance))
            }
            Ok(Err(error)) => GlanceState::Failed(format!("{error:#}").into()),
            // The record caused a panic, which was reported on standard error.
            Err(_) => GlanceState::Failed("throng cannot make a report of this record".into()),
        };
        (self.keep(name, from, glanced), numbers)
    }
}

impl GlanceCache {
    fn keep(&mut self, name: &str, seen: CachedGlance) {
        self.bytes += seen.bytes;
        let before = self.all.insert(name.to_owned(), seen);
        self.bytes -= before.map_or(0, |before| before.bytes);
        while self.all.len() > MOST_KNOWN || self.bytes > MOST_BYTES {
            // Names usually begin with their time, so this is the oldest.
            let Some((_, oldest)) = self.all.pop_first() else {
                return;
            };
            self.bytes -= oldest.bytes;
        }
    }
}

fn locked<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The summary stored in a record, if it is newer than the rest of the record.
fn stored(directory: &Path) -> Option<Glance> {
    let is_new = !is_older(directory, &directory.join("summary.json"));
    is_new.then(|| glance::stored(directory)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_take_bounded_memory_and_the_oldest_go_first() {
        let mut known = GlanceCache::default();
        let seen = |bytes| CachedGlance {
            from: Vec::new(),
            glanced: GlanceState::Waiting,
            bytes,
        };
        for name in ["2026-01", "2026-02", "2026-03"] {
            known.keep(name, seen(MOST_BYTES / 3));
        }
        known.keep("2026-02", seen(MOST_BYTES / 3));
        assert_eq!(known.all.len(), 3, "the same one again takes no more");
        known.keep("2026-04", seen(10));
        assert!(!known.all.contains_key("2026-01"));
        assert_eq!(known.bytes, 2 * (MOST_BYTES / 3) + 10);
        for number in 0..MOST_KNOWN {
            known.keep(&format!("later-{number}"), seen(0));
        }
        assert_eq!((known.all.len(), known.bytes), (MOST_KNOWN, 0));
    }
}
