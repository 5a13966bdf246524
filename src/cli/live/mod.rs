//! A view of what runs, in place, on a terminal: drawn from a thread of its own, which neither loads nor
//! measures, so that a terminal that is slow or stands still holds up nothing.
//!
//! It is not more than the last lines of the terminal: what has ended scrolls away above it like any
//! output. Nothing is asked of the terminal and nothing of it changed that would have to be put right
//! again (no raw mode, no other screen, no hidden cursor; wrapping only within one write), however the program ends.

mod clock;
#[cfg(test)]
mod reflow;
mod screen;
mod side_by_side;
mod trend;
mod view;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::output::{self, harmless};
use crate::measure::{LiveSnapshot, RatiosSoFar};
pub(super) use clock::{Clock, Forecast};
use screen::{Screen, Terminal};
use view::State;

/// Time between two draws, and between two figures of a load.
pub(super) const TICK: Duration = Duration::from_millis(250);

/// A view, as long as it lives.
pub(super) struct Live {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    content: Mutex<Content>,
    changed: Condvar,
}

#[derive(Default)]
struct Content {
    /// What runs; none before anything does.
    state: Option<State>,
    /// What has ended, not yet shown; as many as there are trials.
    ended: Vec<String>,
    over: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Live {
    /// One that shows nothing yet.
    pub(super) fn new() -> Self {
        Self {
            shared: Arc::default(),
            thread: Mutex::new(None),
        }
    }

    /// Something begins: its place among others, what it is, how its time passes, and whether it has a
    /// server that is measured.
    pub(super) fn begin(&self, heading: &str, what: &str, clock: Clock, has_server: bool) {
        let (heading, what) = (harmless(heading), harmless(what));
        self.shared.lock().state = Some(State::new(&heading, &what, clock, has_server));
        self.start();
    }

    /// How it is at the moment, and which share of it is done where that is known.
    pub(super) fn see(&self, live_snapshot: &LiveSnapshot, share: Option<f64>) {
        if let Some(state) = &mut self.shared.lock().state {
            state.see(live_snapshot, share, Instant::now());
        }
    }

    /// How servers that are measured side by side compare so far.
    pub(super) fn see_ratios(&self, seen: &RatiosSoFar) {
        if let Some(state) = &mut self.shared.lock().state {
            state.see_ratios(seen, Instant::now());
        }
    }

    /// It has ended: this line stays.
    pub(super) fn end(&self, line: &str) {
        self.shared.lock().ended.push(harmless(line));
        self.shared.changed.notify_one();
    }

    /// Starts the thread that draws. It runs on the CPUs of the calling thread, so that it never
    /// runs on those that are the server's.
    fn start(&self) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let screen = Screen::new(std::io::stderr(), screen::has_colour());
            let draws = std::thread::Builder::new().name("view".to_owned());
            // Without a thread there is no view, and the run continues.
            *thread = draws.spawn(move || show(&shared, screen)).ok();
        }
    }
}

impl Drop for Live {
    /// Takes the view away; while panicking it is left as it is, above the message.
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.changed.notify_one();
        let thread = self.thread.get_mut();
        let thread = thread.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && !std::thread::panicking()
        {
            // A stalled terminal must not keep a run from ending.
            let _ = output::join_writer(thread);
        }
    }
}

/// Draws until it is over.
fn show(shared: &Shared, mut screen: Screen<impl std::io::Write>) {
    loop {
        let (ended, view, over) = {
            let mut content = shared.lock();
            let ended = std::mem::take(&mut content.ended);
            let terminal = Terminal::now();
            let view = (content.state.as_mut()).map(|state| {
                state.tick(Instant::now());
                view::draw(state, terminal.view_columns(), terminal.view_rows())
            });
            (ended, view.map(|view| (view, terminal)), content.over)
        };
        // Not while others wait for what is locked: a terminal may stand still.
        for line in ended {
            screen.above(&line, Terminal::now());
        }
        if over {
            screen.clear(Terminal::now());
            return;
        }
        if let Some((view, terminal)) = view {
            screen.draw(view, terminal);
        }
        let content = shared.lock();
        let news = |content: &mut Content| !content.over && content.ended.is_empty();
        // Spurious wake-ups cost a draw.
        drop(shared.changed.wait_timeout_while(content, TICK, news));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_that_showed_nothing_ends() {
        drop(Live::new());
    }

    #[test]
    fn what_nobody_began_is_not_seen() {
        let live = Live::new();
        live.see(&LiveSnapshot::default(), Some(0.5));
        assert!(live.shared.lock().state.is_none());
    }
}
