//! Times so far, for the watcher of a load. Workers provide copies shortly after a request.

use std::time::Duration;

use super::shared::Shared;
use super::{Watcher, now};

/// Time after which the workers have provided copies.
const GIVEN_AFTER: Duration = Duration::from_millis(20);
/// Time from the first reply that counts to the first request for copies, so that short loads show times too.
const FIRST_AFTER: Duration = Duration::from_millis(50);

/// When copies were last requested, and whether they were shown.
pub(super) struct TimesSoFar {
    asked_at: u64,
    seen: bool,
}

impl TimesSoFar {
    pub(super) fn new() -> Self {
        Self {
            asked_at: now(),
            seen: true,
        }
    }

    /// Replies count from now on.
    pub(super) fn begin(&mut self, watcher: &dyn Watcher) {
        if let Some(every) = watcher.times_every() {
            let early = every.saturating_sub(FIRST_AFTER).as_nanos() as u64;
            self.asked_at = now().saturating_sub(early);
        }
    }

    /// Shows the copies, and requests new ones when it is time.
    pub(super) fn update(&mut self, watcher: &mut dyn Watcher, shared: &Shared) {
        let Some(every) = watcher.times_every() else {
            return;
        };
        let since = Duration::from_nanos(now().saturating_sub(self.asked_at));
        if !self.seen && since >= GIVEN_AFTER.min(every) {
            watcher.on_times(&shared.times());
            self.seen = true;
        }
        if since >= every {
            shared.ask_for_times();
            (self.asked_at, self.seen) = (now(), false);
        }
    }
}
