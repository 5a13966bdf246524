//! Detects lost ranks by the time of their last message, as pure functions.

use std::time::{Duration, Instant};

/// Number of heartbeats per silence limit.
pub(super) const HEARTBEATS_PER_SILENCE: u32 = 5;

/// When the last message of each rank arrived.
#[derive(Debug)]
pub(super) struct Presence {
    silence: Duration,
    last_seen: Vec<Option<Instant>>,
    checked_at: Instant,
}

impl Presence {
    /// Tracks `others` ranks, as if each had just sent a message.
    pub(super) fn of(others: usize, silence: Duration, now: Instant) -> Self {
        Self {
            silence,
            last_seen: vec![Some(now); others],
            checked_at: now,
        }
    }

    pub(super) fn seen(&mut self, other: usize, now: Instant) {
        if let Some(last) = &mut self.last_seen[other] {
            *last = now;
        }
    }

    /// Sets the silence limit.
    pub(super) fn permit(&mut self, silence: Duration) {
        self.silence = silence;
    }

    /// Stops watching a rank.
    pub(super) fn remove(&mut self, other: usize) {
        self.last_seen[other] = None;
    }

    pub(super) fn expects(&self, other: usize) -> bool {
        self.last_seen[other].is_some()
    }

    /// Ranks that were silent for too long; each is reported once.
    pub(super) fn silent(&mut self, now: Instant) -> Vec<usize> {
        let away = now.saturating_duration_since(self.checked_at);
        self.checked_at = now;
        if away > self.silence / 2 {
            // This process itself was suspended: messages that arrived in the meantime are still unread.
            for last in self.last_seen.iter_mut().flatten() {
                *last = now;
            }
        }
        let mut silent = Vec::new();
        for (other, last) in self.last_seen.iter_mut().enumerate() {
            if last.is_some_and(|at| now.saturating_duration_since(at) > self.silence) {
                *last = None;
                silent.push(other);
            }
        }
        silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_silent_too_long_is_reported_once() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut presence = Presence::of(3, Duration::from_secs(1), start);
        for ms in (0..3000).step_by(200) {
            presence.seen(0, at(ms));
            let silent = presence.silent(at(ms));
            let expected: &[usize] = if ms == 1200 { &[1, 2] } else { &[] };
            assert_eq!(silent, expected, "{ms}");
            if ms >= 1200 {
                // Messages from a lost rank are ignored.
                presence.seen(1, at(ms));
            }
        }
        assert!(presence.expects(0) && !presence.expects(1));
        presence.remove(0);
        assert!(presence.silent(at(3100)).is_empty());
    }

    #[test]
    fn a_rank_that_was_suspended_blames_no_other() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut presence = Presence::of(1, Duration::from_secs(1), start);
        assert!(
            presence.silent(at(50_000)).is_empty(),
            "stopped and continued"
        );
        for ms in (50_200..51_200).step_by(200) {
            assert!(presence.silent(at(ms)).is_empty(), "{ms}");
        }
        assert_eq!(presence.silent(at(51_200)), [0]);
    }
}
