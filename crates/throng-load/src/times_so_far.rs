//! Times so far, for whoever watches a load: workers are asked for a copy of theirs, which they give within moments.

use std::time::Duration;

use super::shared::Shared;
use super::{Watcher, now};

/// How soon after they were asked the workers have given theirs.
const GIVEN_AFTER: Duration = Duration::from_millis(20);
/// How soon after the first reply that counts they are asked, so that short loads show times too.
const FIRST_AFTER: Duration = Duration::from_millis(50);

/// When they were asked for last, and whether what they gave was seen.
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

    /// From now on replies count.
    pub(super) fn begin(&mut self, watcher: &dyn Watcher) {
        if let Some(every) = watcher.times_every() {
            let early = every.saturating_sub(FIRST_AFTER).as_nanos() as u64;
            self.asked_at = now().saturating_sub(early);
        }
    }

    /// Shows what was given, and asks again when it is time.
    pub(super) fn look(&mut self, watcher: &mut dyn Watcher, shared: &Shared) {
        let Some(every) = watcher.times_every() else {
            return;
        };
        let since = Duration::from_nanos(now().saturating_sub(self.asked_at));
        if !self.seen && since >= GIVEN_AFTER.min(every) {
            watcher.see_times(&shared.times());
            self.seen = true;
        }
        if since >= every {
            shared.ask_for_times();
            (self.asked_at, self.seen) = (now(), false);
        }
    }
}
