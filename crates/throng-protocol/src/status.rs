//! HTTP statuses: which ones are expected, and how many of each came.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The first status, and the one after the last.
const FIRST: u16 = 100;
const END: u16 = 600;
const WORDS: usize = ((END - FIRST) as usize).div_ceil(64);

/// A set of statuses, written `2xx,404`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Statuses([u64; WORDS]);

impl Statuses {
    const NONE: Self = Self([0; WORDS]);

    /// Every status of these classes: `2..=3` for 2xx and 3xx.
    fn of_classes(classes: impl IntoIterator<Item = u16>) -> Self {
        let mut statuses = Self::NONE;
        for class in classes {
            (class * 100..class * 100 + 100).for_each(|status| statuses.insert(status));
        }
        statuses
    }

    fn insert(&mut self, status: u16) {
        if let Some((word, bit)) = place(status) {
            self.0[word] |= bit;
        }
    }

    /// Whether a status is one of them.
    pub fn contains(&self, status: u16) -> bool {
        place(status).is_some_and(|(word, bit)| self.0[word] & bit != 0)
    }
}

/// Where a status is kept; none for what is no status.
fn place(status: u16) -> Option<(usize, u64)> {
    let at = usize::from(status.checked_sub(FIRST)?);
    (status < END).then_some((at / 64, 1 << (at % 64)))
}

impl Default for Statuses {
    /// What a client expects that was told nothing: success, or a redirection.
    fn default() -> Self {
        Self::of_classes(2..=3)
    }
}

impl fmt::Display for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        for class in FIRST / 100..END / 100 {
            let statuses = || (class * 100..class * 100 + 100).filter(|s| self.contains(*s));
            if statuses().count() == 100 {
                parts.push(format!("{class}xx"));
            } else {
                parts.extend(statuses().map(|status| status.to_string()));
            }
        }
        f.write_str(&parts.join(","))
    }
}

impl FromStr for Statuses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut statuses = Self::NONE;
        for part in text.split(',').map(str::trim) {
            let wrong = || format!("`{part}` is not a status like 200 or a class like 2xx");
            if let Some(class) = part.strip_suffix("xx") {
                let class = class.parse().ok().filter(|class| (1..=5).contains(class));
                let class: u16 = class.ok_or_else(wrong)?;
                (class * 100..class * 100 + 100).for_each(|status| statuses.insert(status));
            } else {
                let is_status = part.len() == 3 && part.bytes().all(|byte| byte.is_ascii_digit());
                let status = part.parse().ok().filter(|_| is_status);
                let status: u16 = status.filter(|s| place(*s).is_some()).ok_or_else(wrong)?;
                statuses.insert(status);
            }
        }
        Ok(statuses)
    }
}

/// What one client, or several, had for replies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplyCounts {
    /// Replies by status, where they have one.
    pub statuses: BTreeMap<u16, u64>,
    /// Of these, the ones whose status was not expected.
    pub unexpected: BTreeMap<u16, u64>,
    /// Replies in which the server refused what it was asked, by reason.
    pub rejected: BTreeMap<&'static str, u64>,
}

/// How many replies had which status. Nearly all have the same one, so counting is one comparison.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StatusCounts {
    last: u16,
    count: u64,
    others: Vec<(u16, u64)>,
}

impl StatusCounts {
    pub(super) fn add(&mut self, status: u16) {
        if status != self.last {
            self.change_to(status);
        }
        self.count += 1;
    }

    #[cold]
    fn change_to(&mut self, status: u16) {
        if self.count > 0 {
            self.others.push((self.last, self.count));
        }
        let known = self.others.iter().position(|(other, _)| *other == status);
        let count = known.map_or(0, |place| self.others.swap_remove(place).1);
        (self.last, self.count) = (status, count);
    }

    /// Each status that came, with how often.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, u64)> {
        let last = (self.count > 0).then_some((self.last, self.count));
        last.into_iter().chain(self.others.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_read_and_written() {
        for (text, written) in [
            ("2xx,3xx", "2xx,3xx"),
            ("404, 2xx", "2xx,404"),
            ("500,200,201,200", "200,201,500"),
            ("1xx,599", "1xx,599"),
        ] {
            let read: Statuses = text.parse().unwrap();
            assert_eq!(read.to_string(), written);
            assert_eq!(written.parse(), Ok(read));
        }
        let usual = Statuses::default();
        assert_eq!(usual.to_string(), "2xx,3xx");
        for (status, expected) in [
            (200, true),
            (399, true),
            (400, false),
            (0, false),
            (999, false),
        ] {
            assert_eq!(usual.contains(status), expected, "{status}");
        }
        for wrong in [
            "", "2xx,", "6xx", "0xx", "20", "099", "600", "+20", "2xxx", "ok",
        ] {
            assert!(wrong.parse::<Statuses>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_status_is_counted() {
        let mut counts = StatusCounts::default();
        for status in [200, 200, 503, 200, 404, 503, 200] {
            counts.add(status);
        }
        let counts: BTreeMap<u16, u64> = counts.iter().collect();
        assert_eq!(counts, BTreeMap::from([(200, 4), (404, 1), (503, 2)]));
        assert_eq!(StatusCounts::default().iter().count(), 0);
    }
}
