//! Clock offsets of other ranks, as pure functions.
//!
//! Each rank gets several requests for its time, one at a time, and all ranks are asked concurrently. The four
//! timestamps of a round give the offset. Half of the round-trip time, without the peer's processing, bounds the
//! offset's error, however asymmetric the two directions are (RFC 5905, section 8). The fastest round counts.

use throng::record::ClockOffset;

/// Requests to each rank.
pub(super) const ROUNDS: u32 = 16;

/// A comparison in progress.
#[derive(Debug)]
pub(super) struct Comparison {
    ranks: Vec<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of requests sent; 0 if the rank is not compared.
    asked: u32,
    asked_at_ns: u64,
    waits: bool,
    best: Option<ClockOffset>,
}

/// A reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pong {
    /// The round of the request.
    pub(super) round: u32,
    /// When the request arrived, by the peer's clock, nanoseconds.
    pub(super) came_ns: u64,
    /// When the reply was sent, by the same clock.
    pub(super) left_ns: u64,
}

impl Pong {
    pub(super) fn encode(self) -> Vec<u8> {
        let mut bytes = self.round.to_le_bytes().to_vec();
        bytes.extend(self.came_ns.to_le_bytes());
        bytes.extend(self.left_ns.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (round, rest) = bytes.split_first_chunk::<4>()?;
        let (came, left) = rest.split_first_chunk::<8>()?;
        Some(Self {
            round: u32::from_le_bytes(*round),
            came_ns: u64::from_le_bytes(*came),
            left_ns: u64::from_le_bytes(left.try_into().ok()?),
        })
    }
}

impl Comparison {
    /// A comparison of all ranks, including this one.
    pub(super) fn of(ranks: usize) -> Self {
        let states = (0..ranks).map(|_| State::default()).collect();
        Self { ranks: states }
    }

    /// Starts a round with `rank`, and returns its number.
    pub(super) fn ask(&mut self, rank: usize, now_ns: u64) -> u32 {
        let state = &mut self.ranks[rank];
        state.asked += 1;
        state.asked_at_ns = now_ns;
        state.waits = true;
        state.asked
    }

    /// Adds a reply. Returns whether the rank needs another request.
    pub(super) fn answered(&mut self, rank: usize, pong: Pong, now_ns: u64) -> bool {
        let state = &mut self.ranks[rank];
        if !state.waits || pong.round != state.asked {
            return false; // from an earlier comparison
        }
        state.waits = false;
        let there = pong.left_ns.saturating_sub(pong.came_ns);
        let trip = now_ns
            .saturating_sub(state.asked_at_ns)
            .saturating_sub(there);
        let ahead = |theirs: u64, ours: u64| i128::from(theirs) - i128::from(ours);
        let offset = i128::midpoint(
            ahead(pong.came_ns, state.asked_at_ns),
            ahead(pong.left_ns, now_ns),
        );
        let found = ClockOffset {
            offset_ns: offset as i64,
            error_ns: trip.div_ceil(2),
        };
        if state.best.is_none_or(|best| found.error_ns < best.error_ns) {
            state.best = Some(found);
        }
        state.asked < ROUNDS
    }

    /// Drops a lost rank.
    pub(super) fn remove(&mut self, rank: usize) {
        self.ranks[rank] = State::default();
    }

    /// Whether all rounds with all ranks are complete.
    pub(super) fn is_done(&self) -> bool {
        let answers = |state: &State| state.asked == 0 || (!state.waits && state.asked >= ROUNDS);
        self.ranks.iter().all(answers)
    }

    /// The offsets of all ranks that have replied.
    pub(super) fn found(&self) -> Vec<(usize, ClockOffset)> {
        let ranks = self.ranks.iter().enumerate();
        ranks
            .filter_map(|(rank, state)| Some((rank, state.best?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with a clock that is ahead by `ahead_ns`, with these delays.
    fn compare(ahead_ns: i64, ways_ns: &[(u64, u64)]) -> ClockOffset {
        let mut comparison = Comparison::of(2);
        let mut now = 5_000_000_000;
        for (there, back) in ways_ns {
            let round = comparison.ask(1, now);
            let came_ns = (now + there).strict_add_signed(ahead_ns);
            let left_ns = came_ns + 700;
            now += there + 700 + back;
            let pong = Pong {
                round,
                came_ns,
                left_ns,
            };
            comparison.answered(1, Pong::decode(&pong.encode()).unwrap(), now);
        }
        comparison.found()[0].1
    }

    #[test]
    fn the_fastest_round_gives_the_offset_and_its_error() {
        let equal = compare(-3_000_000_000, &[(900, 20), (40, 40), (300, 300)]);
        assert_eq!((equal.offset_ns, equal.error_ns), (-3_000_000_000, 40));
        // With asymmetric delays, the error of the offset is at most the reported one.
        for (there, back) in [(100, 0), (0, 100), (90, 30)] {
            let found = compare(1_000_000, &[(there, back)]);
            let wrong = found.offset_ns.abs_diff(1_000_000);
            assert!(wrong <= found.error_ns, "{found:?}");
            assert_eq!(found.error_ns, (there + back).div_ceil(2));
        }
    }

    #[test]
    fn it_ends_when_all_remaining_ranks_have_answered_all_rounds() {
        let mut comparison = Comparison::of(4);
        let (mut now, mut rounds) = (0, 0);
        let mut asked = [0, comparison.ask(1, now), comparison.ask(2, now), 0];
        while !comparison.is_done() {
            for rank in [1, 2] {
                now += 10;
                let pong = Pong {
                    round: asked[rank],
                    came_ns: now,
                    left_ns: now,
                };
                rounds += 1;
                if comparison.answered(rank, pong, now) {
                    asked[rank] = comparison.ask(rank, now);
                }
                // A duplicate reply is ignored.
                assert!(!comparison.answered(rank, Pong { round: 0, ..pong }, now));
            }
        }
        assert_eq!((rounds, comparison.found().len()), (2 * ROUNDS, 2));
        comparison.ask(3, now);
        assert!(!comparison.is_done());
        comparison.remove(3);
        assert!(comparison.is_done(), "a lost rank is not waited for");
        assert!(Pong::decode(&[1, 2, 3]).is_none());
    }
}
