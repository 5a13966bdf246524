//! A live view of a run that is redrawn in place on a terminal. A separate thread draws it, one that neither loads nor
//! measures, so a slow or stopped terminal delays nothing.
//!
//! It uses only the last lines of the terminal. Finished lines scroll away above it like other output. It queries
//! nothing from the terminal and changes no state that would have to be restored, however the program ends: no raw
//! mode, no alternate screen, no hidden cursor, and line wrapping only within one write.

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
use crate::measure::LiveSnapshot;
use crate::record::SideBySide;
pub(super) use clock::{Clock, Forecast};
use screen::{Screen, Terminal};
use view::State;

/// Interval between two draws, and between two reports of a load's figures.
pub(super) const TICK: Duration = Duration::from_millis(250);

/// A view, while it exists.
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
    /// The current item; `None` before the first.
    state: Option<State>,
    /// Lines of finished items that were not shown yet: at most one per trial.
    ended: Vec<String>,
    over: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Live {
    /// An empty view.
    pub(super) fn new() -> Self {
        Self {
            shared: Arc::default(),
            thread: Mutex::new(None),
        }
    }

    /// Starts an item, with its number, its description, its clock, and whether it measures a server.
    pub(super) fn begin(&self, heading: &str, what: &str, clock: Clock, has_server: bool) {
        let (heading, what) = (harmless(heading), harmless(what));
        self.shared.lock().state = Some(State::new(&heading, &what, clock, has_server));
        self.start();
    }

    /// Updates the state of the current item, and the share that is done, if known.
    pub(super) fn see(&self, live_snapshot: &LiveSnapshot, share: Option<f64>) {
        if let Some(state) = &mut self.shared.lock().state {
            state.see(live_snapshot, share, Instant::now());
        }
    }

    /// Updates the comparison of servers that are measured side by side.
    pub(super) fn see_side_by_side(&self, seen: &SideBySide) {
        if let Some(state) = &mut self.shared.lock().state {
            state.see_side_by_side(seen, Instant::now());
        }
    }

    /// Ends the current item; its line stays.
    pub(super) fn end(&self, line: &str) {
        let lines = output::broken(&harmless(line));
        self.shared.lock().ended.extend(lines);
        self.shared.changed.notify_one();
    }

    /// Starts the thread that draws. It runs on the CPUs of the calling thread, so never on the server's.
    fn start(&self) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let screen = Screen::new(std::io::stderr(), screen::has_colour());
            let draws = std::thread::Builder::new().name("view".to_owned());
            // If the thread cannot be started, there is no view, and the run continues.
            *thread = draws.spawn(move || show(&shared, screen)).ok();
        }
    }
}

impl Drop for Live {
    /// Removes the view. On a panic, the view stays as it is, above the message.
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.changed.notify_one();
        let thread = self
            .thread
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread
            && !std::thread::panicking()
        {
            // A stopped terminal must not keep a run from ending.
            let _ = output::join_writer(thread);
        }
    }
}

/// Draws until the view ends.
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
        // Not while holding the lock: writing to a terminal may block.
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
        let news = |inner: &mut Content| !inner.over && inner.ended.is_empty();
        // A spurious wake-up costs one draw.
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
    fn nothing_is_shown_before_a_trial_begins() {
        let live = Live::new();
        live.see(&LiveSnapshot::default(), Some(0.5));
        assert!(live.shared.lock().state.is_none());
    }
}
