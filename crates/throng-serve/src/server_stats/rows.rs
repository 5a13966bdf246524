//! The row of each client, in memory shared by all processes.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// Maximum number of rows, of 64 bytes each, which the kernel allocates when they are used.
pub(super) const ROWS: usize = 1 << 20;
pub(super) const ROW_WORDS: usize = 8;

/// The row of one client: one cache line.
pub(super) type Row = [AtomicU64; ROW_WORDS];

// Offsets of a client's values in its row.
pub(super) const STATE: usize = 0; // worker << 32 | port << 16 | is_ipv4 << 8 | outcome
pub(super) const CONNECTED_AT: usize = 1;
pub(super) const CLOSED_AT: usize = 2;
pub(super) const ROW_REQUESTS: usize = 3;
pub(super) const ROW_BYTES_IN: usize = 4;
pub(super) const ROW_BYTES_OUT: usize = 5;
pub(super) const ADDRESS: usize = 6;
/// In a free row, the index of the next free one, counted from 1; 0 if there is none.
const NEXT_FREE: usize = CLOSED_AT;

/// Whether rows of past clients are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// Keeps one row per client, for a log at the end. Clients beyond a million are only in the totals.
    Clients,
    /// Keeps only the totals: the number of concurrent clients bounds the memory.
    Totals,
}

/// All rows: the ones used so far at the front, and a list of the free ones among these.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows {
    pub(super) words: &'static [AtomicU64],
    /// Number of rows ever used.
    pub(super) used: &'static AtomicU64,
    /// The index of the first free row, counted from 1. The upper 32 bits change with each change of the list (against
    /// the ABA problem).
    pub(super) free: &'static AtomicU64,
    /// Whether rows of past clients are kept.
    pub(super) kept: &'static AtomicU64,
}

impl Rows {
    pub(super) fn keep(&self, keeps: Retention) {
        self.kept
            .store(u64::from(keeps == Retention::Clients), Relaxed);
    }

    pub(super) fn get(&self, place: u32) -> Option<&'static Row> {
        let (rows, _) = self.words.as_chunks();
        rows.get(place as usize)
    }

    /// The rows that are or were in use.
    pub(super) fn used(&self) -> impl Iterator<Item = (u32, &'static Row)> + use<> {
        let (rows, _) = self.words.as_chunks();
        let used = self.used.load(Relaxed).min(rows.len() as u64) as usize;
        (0..).zip(&rows[..used])
    }

    /// The index of a row for one more client; `None` if all are in use.
    pub(super) fn take(&self) -> Option<u32> {
        if let Some(free) = self.pop() {
            return Some(free);
        }
        let fresh = self.used.fetch_add(1, Relaxed);
        (fresh < (self.words.len() / ROW_WORDS) as u64).then_some(fresh as u32)
    }

    /// Frees the row of a client that has gone, unless it is kept.
    pub(super) fn give_back(&self, row: &Row) {
        if self.kept.load(Relaxed) != 0 {
            return;
        }
        let place = (row.as_ptr().addr() - self.words.as_ptr().addr()) / size_of::<Row>();
        let put = |free: u64| {
            row[NEXT_FREE].store(free & u64::from(u32::MAX), Relaxed);
            Some(following(free, place as u64 + 1))
        };
        let _ = self.free.fetch_update(AcqRel, Acquire, put);
    }

    fn pop(&self) -> Option<u32> {
        let first = |free: u64| {
            u32::try_from(free & u64::from(u32::MAX))
                .ok()?
                .checked_sub(1)
        };
        let take = |free: u64| {
            let row = self.get(first(free)?)?;
            Some(following(free, row[NEXT_FREE].load(Relaxed)))
        };
        let before = self.free.fetch_update(AcqRel, Acquire, take).ok()?;
        first(before)
    }
}

/// The next state of the list, with row `first` in front.
fn following(free: u64, first: u64) -> u64 {
    (free >> 32).wrapping_add(1) << 32 | first
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(count: usize, keeps: Retention) -> Rows {
        let words = throng_sys::shared::counters(3 + count * ROW_WORDS).unwrap();
        let rows = Rows {
            words: &words[3..],
            used: &words[0],
            free: &words[1],
            kept: &words[2],
        };
        rows.keep(keeps);
        rows
    }

    #[test]
    fn rows_of_clients_that_have_gone_are_taken_again() {
        let rows = rows(3, Retention::Totals);
        let taken = [(); 4].map(|()| rows.take());
        assert_eq!(taken, [Some(0), Some(1), Some(2), None]);
        rows.give_back(rows.get(0).unwrap());
        rows.give_back(rows.get(2).unwrap());
        let taken = [(); 3].map(|()| rows.take());
        assert_eq!(taken, [Some(2), Some(0), None]);
        assert_eq!(rows.used().count(), 3);
    }

    #[test]
    fn rows_for_a_log_are_taken_once() {
        let rows = rows(2, Retention::Clients);
        assert_eq!(rows.take(), Some(0));
        rows.give_back(rows.get(0).unwrap());
        assert_eq!([(); 2].map(|()| rows.take()), [Some(1), None]);
    }

    #[test]
    fn threads_share_them() {
        let rows = rows(8, Retention::Totals);
        let in_use = [(); 8].map(|()| AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..5000 {
                        let taken = [rows.take(), rows.take()].map(|row| row.unwrap());
                        for place in taken {
                            assert_eq!(in_use[place as usize].swap(1, AcqRel), 0);
                        }
                        for place in taken {
                            in_use[place as usize].store(0, Relaxed);
                            rows.give_back(rows.get(place).unwrap());
                        }
                    }
                });
            }
        });
        assert!(rows.used().count() <= 8);
    }
}
