//! The search for the largest value that holds: what to try next, and what is known. Pure.
//!
//! It multiplies until a trial breaks, then bisects, then confirms both ends. A single trial may be wrong by chance, so
//! none decides: the limit is where it contradicts the fewest trials, and an odd trial is outvoted by its neighbours.
//! The state is the trials alone, so a search resumes from its record.

use std::collections::BTreeMap;

use throng_record::{Purpose, SearchEnding, Tried};

/// Under which bounds a search goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Where it begins.
    pub from: u64,
    /// Nothing beyond this is tried.
    pub most: u64,
    /// By which factor it rises, more than 1.
    pub factor: f64,
    /// Largest distance between both ends, as a share of the lower.
    pub within: f64,
    /// Most trials.
    pub tries: u32,
    /// How often each end must come out the same again.
    pub confirm: u32,
    /// Whether what a broken trial still reached is taken for the limit exactly, or about.
    pub exact_hints: bool,
}

/// What to try next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// How much.
    pub value: u64,
    /// [`Purpose::Search`] or [`Purpose::Confirm`].
    pub purpose: Purpose,
}

/// The result of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it held.
    pub held: bool,
    /// Where it broke: how much was still reached, which is likely to be near the limit.
    pub reached: Option<u64>,
}

/// The results of the trials at one value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Attempts {
    held: u32,
    broke: u32,
    /// Of these, the ones that were to confirm.
    again: u32,
    reached: Option<u64>,
}

/// A search, as far as it has come.
#[derive(Debug, Clone)]
pub struct Search {
    bounds: Bounds,
    attempts: BTreeMap<u64, Attempts>,
    used: u32,
}

/// What is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// What the search would end with if it ended now.
    pub ending: SearchEnding,
    /// The most that held each time.
    pub held: Option<Tried>,
    /// The least above it that broke each time.
    pub broke: Option<Tried>,
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

    /// Nothing beyond `most` is tried from now on.
    pub fn stop_at(&mut self, most: u64) {
        self.bounds.most = self.bounds.most.min(most.max(1));
    }

    /// A trial has ended.
    pub fn learn(&mut self, point: Point, verdict: Verdict) {
        let attempts = self.attempts.entry(point.value).or_default();
        if verdict.held {
            attempts.held += 1;
        } else {
            attempts.broke += 1;
            attempts.reached = verdict.reached;
        }
        attempts.again += u32::from(point.purpose == Purpose::Confirm);
        self.used += 1;
    }

    /// What to try next; none when the limit is known, or all tries are used up.
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
            (None, None) => search(self.bounds.from.clamp(1, self.bounds.most)),
            (Some(low), None) if low < self.bounds.most => search(self.higher(low)),
            (None, Some(high)) if high > 1 => search(self.lower(high)),
            (Some(low), Some(high)) if !self.is_closed(low, high) => {
                search(self.between(low, high))
            }
            _ => self.unconfirmed(),
        }
    }

    /// What is known now.
    pub fn known(&self) -> Known {
        let certain = self.certain();
        let (held, broke) = certain.unwrap_or_else(|| self.so_far());
        let ending = match (held, broke) {
            _ if certain.is_none() => SearchEnding::OutOfTries,
            (None, _) => SearchEnding::Nothing,
            (Some(_), None) => SearchEnding::AtLeast,
            (Some(held), Some(broke)) if broke - held > self.step(held) => SearchEnding::Between,
            (Some(_), Some(_)) => SearchEnding::Found,
        };
        let tried = |value: u64| Tried {
            value,
            times: self.attempts.get(&value).map_or(0, Attempts::times),
        };
        Known {
            ending,
            held: held.map(tried),
            broke: broke.map(tried),
        }
    }

    /// The closest values that came out the same each time that they were tried, were it only once.
    fn so_far(&self) -> (Option<u64>, Option<u64>) {
        let (low, _) = self.split();
        let up_to = low.unwrap_or(0);
        let mut below = self.attempts.range(..=up_to).rev();
        let held = below.find(|(_, attempts)| attempts.broke == 0);
        let mut above = self.attempts.range(up_to + 1..);
        let broke = above.find(|(_, attempts)| attempts.held == 0);
        (
            held.map(|(value, _)| *value),
            broke.map(|(value, _)| *value),
        )
    }

    /// The value below which most trials held and above which most broke: the highest tried at or below it, and the
    /// lowest above. Of several such values the highest, since a value that broke once may hold next time, and then the
    /// search continues.
    fn split(&self) -> (Option<u64>, Option<u64>) {
        let all_held: u32 = self.attempts.values().map(|attempts| attempts.held).sum();
        // With the limit below everything, each trial that held does not fit.
        let (mut misfits, mut fewest, mut low) = (all_held, all_held, None);
        for (value, attempts) in &self.attempts {
            misfits = misfits + attempts.broke - attempts.held;
            if misfits <= fewest {
                (fewest, low) = (misfits, Some(*value));
            }
        }
        let above = |value: u64| self.attempts.keys().find(|other| **other > value).copied();
        (low, above(low.unwrap_or(0)))
    }

    fn higher(&self, low: u64) -> u64 {
        let next = (low as f64 * self.bounds.factor).round() as u64;
        next.max(low + 1).min(self.bounds.most)
    }

    fn lower(&self, high: u64) -> u64 {
        let next = (high as f64 / self.bounds.factor).round() as u64;
        // What was reached when it broke is nearer to the limit than any guess.
        let reached = self.attempts[&high]
            .reached
            .filter(|reached| *reached < high);
        reached.unwrap_or(next).clamp(1, high - 1)
    }

    /// A value between what held and what broke: the hint, or else the middle.
    fn between(&self, low: u64, high: u64) -> u64 {
        let middle = low + (high - low) / 2;
        self.hinted(low, high).unwrap_or(middle)
    }

    /// What a broken trial still reached, and once that holds its neighbour, unless they were tried.
    fn hinted(&self, low: u64, high: u64) -> Option<u64> {
        let reached = self.attempts[&high].reached?;
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

    /// Whether both ends are close enough: adjacent if a hint determines the step.
    fn is_closed(&self, low: u64, high: u64) -> bool {
        let hinted = self.bounds.exact_hints && self.hinted(low, high).is_some();
        high - low <= self.step(low) && !hinted
    }

    /// The largest distance of both ends.
    fn step(&self, low: u64) -> u64 {
        ((low as f64 * self.bounds.within) as u64).max(1)
    }

    /// The end that was confirmed less often so far, if one is not certain.
    fn unconfirmed(&self) -> Option<Point> {
        let times = |value: u64| self.attempts.get(&value).map_or(0, Attempts::times);
        let open = |end: End| match end {
            End::Open(value) => Some(value),
            End::Certain(_) => None,
        };
        let (held, broke) = self.ends();
        let value = match (open(held), open(broke)) {
            (Some(held), Some(broke)) if times(broke) < times(held) => broke,
            (Some(value), _) | (None, Some(value)) => value,
            (None, None) => return None,
        };
        Some(Point {
            value,
            purpose: Purpose::Confirm,
        })
    }

    /// The values at which to be certain. Where one goes now this way, now the other, the next ones
    /// tried lie further and further off.
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
                Some(attempts) if attempts.broke > 0 => {}
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
                Some(attempts) if attempts.held > 0 => {}
                Some(attempts) if attempts.again >= self.bounds.confirm => {
                    return End::Certain(Some(value));
                }
                _ => return End::Open(value),
            }
            if value >= self.bounds.most {
                return End::Certain(None);
            }
            value = value.saturating_add(off).min(self.bounds.most);
            off = off.saturating_mul(2);
        }
    }

    /// Both ends, once they are certain.
    fn certain(&self) -> Option<(Option<u64>, Option<u64>)> {
        let bisected = match self.split() {
            (None, None) => false,
            (Some(low), None) => low >= self.bounds.most,
            (None, Some(high)) => high <= 1,
            (Some(low), Some(high)) => self.is_closed(low, high),
        };
        match self.ends() {
            (End::Certain(held), End::Certain(broke)) if bisected => Some((held, broke)),
            _ => None,
        }
    }
}

/// One end of what is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The result was confirmed as often as requested; none: no value holds.
    Certain(Option<u64>),
    /// It is to be tried.
    Open(u64),
}

impl Attempts {
    fn times(&self) -> u32 {
        self.held + self.broke
    }
}

#[cfg(test)]
mod tests;
