//! Clients that wait for room in a server's accept queue.
//!
//! Over TCP, the kernel waits. A non-blocking unix socket returns EAGAIN instead, with nothing to wait for. So these
//! clients retry in order, until they are connected or reach the connection timeout.

use std::collections::VecDeque;
use std::time::Duration;

/// Interval between two attempts.
const PAUSE: Duration = Duration::from_micros(250);

/// The queue of waiting clients.
#[derive(Debug)]
pub(super) struct FullQueues {
    line: VecDeque<u32>,
    /// Number of accept queues that may be full.
    targets: usize,
    tried_at: u64,
}

impl FullQueues {
    /// An empty queue, for `targets` servers.
    pub(super) fn of(targets: usize) -> Self {
        Self {
            line: VecDeque::new(),
            targets,
            tried_at: 0,
        }
    }

    /// Adds a client whose server has a full accept queue.
    pub(super) fn join(&mut self, slot: usize) {
        self.line.push_back(slot as u32);
    }

    /// The time to wait for events, which is at most `longest_wait`.
    pub(super) fn longest_wait(&self, longest_wait: Duration) -> Duration {
        if self.line.is_empty() {
            longest_wait
        } else {
            longest_wait.min(PAUSE)
        }
    }

    /// Number of attempts that may fail before the next interval.
    pub(super) fn tries(&mut self, now: impl FnOnce() -> u64) -> usize {
        if self.line.is_empty() {
            return 0;
        }
        let read_at = now();
        if read_at.saturating_sub(self.tried_at) < PAUSE.as_nanos() as u64 {
            return 0;
        }
        self.tried_at = read_at;
        self.targets
    }

    /// The next client that tries to connect.
    pub(super) fn next(&mut self) -> Option<usize> {
        self.line.pop_front().map(|slot| slot as usize)
    }

    /// Puts back a client that found the accept queue full again.
    pub(super) fn put_back(&mut self, slot: usize) {
        if self.targets == 1 {
            self.line.push_front(slot as u32);
        } else {
            // The next client may have another server.
            self.line.push_back(slot as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_wait_in_order_and_pauses_lie_between_tries() {
        let second = Duration::from_secs(1);
        let mut full = FullQueues::of(1);
        assert_eq!((full.longest_wait(second), full.tries(|| 0)), (second, 0));
        full.join(5);
        full.join(6);
        assert_eq!(full.longest_wait(second), PAUSE);
        assert_eq!(full.tries(|| 1_000_000), 1);
        assert_eq!(full.next(), Some(5));
        full.put_back(5);
        assert_eq!(full.tries(|| 1_000_001), 0);
        assert_eq!(full.tries(|| 2_000_000), 1);
        assert_eq!(
            [full.next(), full.next(), full.next()],
            [Some(5), Some(6), None]
        );
        let mut full = FullQueues::of(2);
        full.join(5);
        full.join(6);
        assert_eq!(full.next(), Some(5));
        full.put_back(5);
        assert_eq!(full.next(), Some(6));
    }
}
