//! Who is still there, by when each was last heard: pure.

use std::time::{Duration, Instant};

/// The part of a permitted silence after which whoever is there says so.
pub(super) const BEATS_A_SILENCE: u32 = 5;

/// When others were last heard.
#[derive(Debug)]
pub(super) struct Presence {
    silence: Duration,
    heard: Vec<Option<Instant>>,
    looked: Instant,
}

impl Presence {
    /// Of so many others, all just heard.
    pub(super) fn of(others: usize, silence: Duration, now: Instant) -> Self {
        Self {
            silence,
            heard: vec![Some(now); others],
            looked: now,
        }
    }

    pub(super) fn heard(&mut self, other: usize, now: Instant) {
        if let Some(heard) = &mut self.heard[other] {
            *heard = now;
        }
    }

    /// How long others may be silent, from now on.
    pub(super) fn permit(&mut self, silence: Duration) {
        self.silence = silence;
    }

    /// Expects nothing of one any more.
    pub(super) fn forget(&mut self, other: usize) {
        self.heard[other] = None;
    }

    pub(super) fn expects(&self, other: usize) -> bool {
        self.heard[other].is_some()
    }

    /// Those who have been silent for too long; each is reported once.
    pub(super) fn silent(&mut self, now: Instant) -> Vec<usize> {
        let away = now.saturating_duration_since(self.looked);
        self.looked = now;
        if away > self.silence / 2 {
            // It was us who stood still: what they said meanwhile is still to be heard.
            for heard in self.heard.iter_mut().flatten() {
                *heard = now;
            }
        }
        let mut silent = Vec::new();
        for (other, heard) in self.heard.iter_mut().enumerate() {
            if heard.is_some_and(|at| now.saturating_duration_since(at) > self.silence) {
                *heard = None;
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
    fn who_is_silent_too_long_is_reported_once() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut presence = Presence::of(3, Duration::from_secs(1), start);
        for ms in (0..3000).step_by(200) {
            presence.heard(0, at(ms));
            let silent = presence.silent(at(ms));
            let expected: &[usize] = if ms == 1200 { &[1, 2] } else { &[] };
            assert_eq!(silent, expected, "{ms}");
            if ms >= 1200 {
                // What comes from one that was given up changes nothing.
                presence.heard(1, at(ms));
            }
        }
        assert!(presence.expects(0) && !presence.expects(1));
        presence.forget(0);
        assert!(presence.silent(at(3100)).is_empty());
    }

    #[test]
    fn who_was_away_itself_blames_nobody() {
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
