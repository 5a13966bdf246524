//! The search for the largest value that passes: what to try next, and what is known. Pure.
//!
//! It multiplies until a trial fails, then bisects, then confirms both ends. A single trial may be wrong by chance, so
//! none decides alone: the limit is the value that contradicts the fewest trials, and an odd trial is outvoted by its
//! neighbours. The state consists of the trials alone, so a search can resume from its record.

use std::collections::BTreeMap;

use throng_record::{Purpose, SearchEnding, TriedValue};

/// The bounds of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// The first value to try.
    pub from: u64,
    /// The upper bound.
    pub max: u64,
    /// Growth factor, more than 1.
    pub factor: f64,
    /// Largest distance between the two ends, as a share of the lower one.
    pub within: f64,
    /// Maximum number of trials.
    pub tries: u32,
    /// How often each end must be confirmed.
    pub confirm: u32,
    /// Whether the rate that a failed trial reached is an exact estimate of the limit, or a rough one.
    pub exact_hints: bool,
}

/// The next step of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// The value.
    pub value: u64,
    /// [`Purpose::Search`] or [`Purpose::Confirm`].
    pub purpose: Purpose,
}

/// The result of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it passed.
    pub passed: bool,
    /// If it failed, the value that was reached, which is likely to be near the limit.
    pub reached: Option<u64>,
}

/// The results of the trials at one value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Attempts {
    passed: u32,
    failed: u32,
    /// Trials run to confirm a result.
    again: u32,
    reached: Option<u64>,
}

/// The state of a search.
#[derive(Debug, Clone)]
pub struct Search {
    bounds: Bounds,
    attempts: BTreeMap<u64, Attempts>,
    used: u32,
}

/// The result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchState {
    /// The result if the search ended now.
    pub ending: SearchEnding,
    /// The highest value that always passed.
    pub passed: Option<TriedValue>,
    /// The lowest value above it that always failed.
    pub failed: Option<TriedValue>,
}

impl Search {
    /// A search without trials.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            attempts: BTreeMap::new(),
            used: 0,
        }
    }

    /// Lowers the upper bound to `max`.
    pub fn stop_at(&mut self, max: u64) {
        self.bounds.max = self.bounds.max.min(max.max(1));
    }

    /// A trial has ended.
    pub fn add(&mut self, point: Point, verdict: Verdict) {
        let attempts = self.attempts.entry(point.value).or_default();
        if verdict.passed {
            attempts.passed += 1;
        } else {
            attempts.failed += 1;
            attempts.reached = verdict.reached;
        }
        attempts.again += u32::from(point.purpose == Purpose::Confirm);
        self.used += 1;
    }

    /// The next value to try; `None` if the limit is known, or all trials are used up.
    pub fn next(&self) -> Option<Point> {
        if self.used >= self.bounds.tries {
            return None;
        }
        let search = |value| {
            Some(Point {
                value,
                purpose: Purpose::Search,
            })
        };
        match self.split() {
            (None, None) => search(self.bounds.from.clamp(1, self.bounds.max)),
            (Some(low), None) if low < self.bounds.max => search(self.next_higher(low)),
            (None, Some(high)) if high > 1 => search(self.next_lower(high)),
            (Some(low), Some(high)) if !self.is_closed(low, high) => {
                search(self.between(low, high))
            }
            _ => self.unconfirmed(),
        }
    }

    /// The result so far.
    pub fn known(&self) -> SearchState {
        let certain = self.certain_ends();
        let (passed, failed) = certain.unwrap_or_else(|| self.so_far());
        let ending = match (passed, failed) {
            _ if certain.is_none() => SearchEnding::OutOfTries,
            (None, _) => SearchEnding::Nothing,
            (Some(_), None) => SearchEnding::AtLeast,
            (Some(passed), Some(failed)) if failed - passed > self.step(passed) => {
                SearchEnding::Between
            }
            (Some(_), Some(_)) => SearchEnding::Found,
        };
        let tried = |value: u64| TriedValue {
            value,
            times: self.attempts.get(&value).map_or(0, Attempts::times),
        };
        SearchState {
            ending,
            passed: passed.map(tried),
            failed: failed.map(tried),
        }
    }

    /// The closest values with consistent results, even from a single trial.
    fn so_far(&self) -> (Option<u64>, Option<u64>) {
        let (low, _) = self.split();
        let up_to = low.unwrap_or(0);
        let mut below = self.attempts.range(..=up_to).rev();
        let passed = below.find(|(_, attempts)| attempts.failed == 0);
        let mut above = self.attempts.range(up_to + 1..);
        let failed = above.find(|(_, attempts)| attempts.passed == 0);
        (
            passed.map(|(value, _)| *value),
            failed.map(|(value, _)| *value),
        )
    }

    /// Finds the limit below which most trials passed and above which most failed. Returns the highest value tried at
    /// or below it, and the lowest above it. If there are several such limits, it uses the highest, since a value that
    /// failed once may pass next time, and then the search continues.
    fn split(&self) -> (Option<u64>, Option<u64>) {
        let all_passed: u32 = self.attempts.values().map(|attempts| attempts.passed).sum();
        // If the limit were below all values, each trial that passed would be a misfit.
        let (mut misfits, mut fewest, mut low) = (all_passed, all_passed, None);
        for (value, attempts) in &self.attempts {
            misfits = misfits + attempts.failed - attempts.passed;
            if misfits <= fewest {
                (fewest, low) = (misfits, Some(*value));
            }
        }
        let above = |value: u64| self.attempts.keys().find(|other| **other > value).copied();
        (low, above(low.unwrap_or(0)))
    }

    fn next_higher(&self, low: u64) -> u64 {
        let next = (low as f64 * self.bounds.factor).round() as u64;
        next.max(low + 1).min(self.bounds.max)
    }

    fn next_lower(&self, high: u64) -> u64 {
        let next = (high as f64 / self.bounds.factor).round() as u64;
        // The value reached in a failed trial is closer to the limit than any guess.
        let reached = self.hint(high).filter(|reached| *reached < high);
        reached.unwrap_or(next).clamp(1, high - 1)
    }

    /// A value between the one that passed and the one that failed: the hint, or else the middle.
    fn between(&self, low: u64, high: u64) -> u64 {
        let middle = low + (high - low) / 2;
        self.next_from_hint(low, high).unwrap_or(middle)
    }

    /// The value that the last failed trial at `high` reached. If hints are to be exact, `None` once such a value has
    /// itself failed: a server that closes some clients in favour of others reaches less than any value given.
    fn hint(&self, high: u64) -> Option<u64> {
        let failed = |value| matches!(self.attempts.get(&value), Some(attempts) if attempts.failed > attempts.passed);
        let mut reached = self
            .attempts
            .values()
            .filter_map(|attempts| attempts.reached);
        let misleads = self.bounds.exact_hints && reached.any(failed);
        self.attempts[&high].reached.filter(|_| !misleads)
    }

    /// The value that a failed trial reached or, once that has passed, its neighbour; `None` if these were tried
    /// already.
    fn next_from_hint(&self, low: u64, high: u64) -> Option<u64> {
        let reached = self.hint(high)?;
        let neighbour = if self.bounds.exact_hints {
            reached + 1
        } else {
            reached + self.step(reached)
        };
        let fresh = |value: u64| low < value && value < high && !self.attempts.contains_key(&value);
        if fresh(reached) {
            Some(reached)
        } else {
            (reached <= low && fresh(neighbour)).then_some(neighbour)
        }
    }

    /// Whether both ends are close enough, and no exact hint between them is left to try.
    fn is_closed(&self, low: u64, high: u64) -> bool {
        let hinted = self.bounds.exact_hints && self.next_from_hint(low, high).is_some();
        high - low <= self.step(low) && !hinted
    }

    /// The largest distance allowed between the two ends.
    fn step(&self, low: u64) -> u64 {
        ((low as f64 * self.bounds.within) as u64).max(1)
    }

    /// The uncertain end with fewer confirmations so far; `None` if both are certain.
    fn unconfirmed(&self) -> Option<Point> {
        let times = |value: u64| self.attempts.get(&value).map_or(0, Attempts::times);
        let open = |end: End| match end {
            End::Open(value) => Some(value),
            End::Certain(_) => None,
        };
        let (passed, failed) = self.ends();
        let value = match (open(passed), open(failed)) {
            (Some(passed), Some(failed)) if times(failed) < times(passed) => failed,
            (Some(value), _) | (None, Some(value)) => value,
            (None, None) => return None,
        };
        Some(Point {
            value,
            purpose: Purpose::Confirm,
        })
    }

    /// The next values to confirm. If the results at a value are mixed, the next one is further away, at doubling
    /// distances.
    fn ends(&self) -> (End, End) {
        let (low, high) = self.split();
        (self.end_below(low), self.end_above(low, high))
    }

    fn end_below(&self, low: Option<u64>) -> End {
        let Some(low) = low else {
            return End::Certain(None);
        };
        let (mut value, mut off) = (low, self.step(low));
        loop {
            match self.attempts.get(&value) {
                Some(attempts) if attempts.failed > 0 => {}
                Some(attempts) if attempts.again >= self.bounds.confirm => {
                    return End::Certain(Some(value));
                }
                _ => return End::Open(value),
            }
            if off >= value {
                return End::Certain(None);
            }
            value -= off;
            off *= 2;
        }
    }

    fn end_above(&self, low: Option<u64>, high: Option<u64>) -> End {
        // No value above the maximum is tried.
        let Some(high) = high else {
            return End::Certain(None);
        };
        let (mut value, mut off) = (high, self.step(low.unwrap_or(high)));
        loop {
            match self.attempts.get(&value) {
                Some(attempts) if attempts.passed > 0 => {}
                Some(attempts) if attempts.again >= self.bounds.confirm => {
                    return End::Certain(Some(value));
                }
                _ => return End::Open(value),
            }
            if value >= self.bounds.max {
                return End::Certain(None);
            }
            value = value.saturating_add(off).min(self.bounds.max);
            off = off.saturating_mul(2);
        }
    }

    /// Both ends, once they are certain.
    fn certain_ends(&self) -> Option<(Option<u64>, Option<u64>)> {
        let bisected = match self.split() {
            (None, None) => false,
            (Some(low), None) => low >= self.bounds.max,
            (None, Some(high)) => high <= 1,
            (Some(low), Some(high)) => self.is_closed(low, high),
        };
        match self.ends() {
            (End::Certain(passed), End::Certain(failed)) if bisected => Some((passed, failed)),
            _ => None,
        }
    }
}

/// One end of what is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The result was confirmed as often as requested; `None` if there is no such value.
    Certain(Option<u64>),
    /// This value is still to be tried.
    Open(u64),
}

impl Attempts {
    fn times(&self) -> u32 {
        self.passed + self.failed
    }
}

#[cfg(test)]
mod tests;
