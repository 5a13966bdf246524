//! Which part of the window is being counted.

use throng_record::load_stats::PARTS;

/// One of the equal parts of the window, which come one after the other.
#[derive(Debug)]
pub(super) struct Part {
    number: usize,
    ends: u64,
    length: u64,
}

impl Default for Part {
    /// Before anybody knows when replies count.
    fn default() -> Self {
        Self {
            number: 0,
            ends: u64::MAX,
            length: 1,
        }
    }
}

impl Part {
    /// Where it begins.
    pub(super) fn first(from: u64, until: u64) -> Self {
        let length = (until.saturating_sub(from) / PARTS as u64).max(1);
        Self {
            number: 0,
            ends: from.saturating_add(length),
            length,
        }
    }

    /// The number of the part that it is at a time of the window, which never goes back.
    #[inline]
    pub(super) fn at(&mut self, now: u64) -> usize {
        while now >= self.ends {
            self.number = (self.number + 1).min(PARTS - 1);
            self.ends += self.length;
        }
        self.number
    }
}
