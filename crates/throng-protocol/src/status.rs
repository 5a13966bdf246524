//! HTTP statuses: which ones are expected, and their counts.

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

    /// Whether it contains a status.
    pub fn contains(&self, status: u16) -> bool {
        place(status).is_some_and(|(word, bit)| self.0[word] & bit != 0)
    }
}

/// The position of a status; `None` if it is invalid.
fn place(status: u16) -> Option<(usize, u64)> {
    let at = usize::from(status.checked_sub(FIRST)?);
    (status < END).then_some((at / 64, 1 << (at % 64)))
}

impl Default for Statuses {
    /// By default a client expects success or a redirection.
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
                let number: u16 = class
                    .parse()
                    .ok()
                    .filter(|class| (1..=5).contains(class))
                    .ok_or_else(wrong)?;
                (number * 100..number * 100 + 100).for_each(|status| statuses.insert(status));
            } else {
                let is_status = part.len() == 3 && part.bytes().all(|byte| byte.is_ascii_digit());
                let status: u16 = part
                    .parse()
                    .ok()
                    .filter(|_| is_status)
                    .filter(|s| place(*s).is_some())
                    .ok_or_else(wrong)?;
                statuses.insert(status);
            }
        }
        Ok(statuses)
    }
}

/// Statistics of the replies to one or more clients.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplyCounts {
    /// Replies by status, if they have one.
    pub statuses: BTreeMap<u16, u64>,
    /// How many of these were unexpected, by status.
    pub unexpected: BTreeMap<u16, u64>,
    /// Replies that were not what their step of a flow requires, by message.
    pub failed: BTreeMap<&'static str, u64>,
    /// Replies that rejected the request, by reason.
    pub rejected: BTreeMap<&'static str, u64>,
    /// The location of one of the redirects; empty if the redirect has none.
    pub redirect: Option<String>,
    /// What servers allow on a connection, by the name of the setting.
    pub limits: BTreeMap<&'static str, u32>,
}

/// Statuses of replies without one of HTTP: of calls of gRPC from `CALL`, of reset streams from `RESET`.
pub(super) const CALL: u16 = 1000;
pub(super) const RESET: u16 = 2000;

/// The statuses of calls of gRPC, then the lack of one.
const CALLS: [&str; 18] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
    "no grpc-status",
];

/// The error codes of HTTP/2, by which streams and connections end.
const CODES: [&str; 14] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
];

/// The name of an error code of HTTP/2; unknown ones have the meaning of INTERNAL_ERROR.
pub(super) fn code_name(code: u32) -> &'static str {
    CODES.get(code as usize).copied().unwrap_or(CODES[2])
}

/// The status of a call of gRPC; unknown numbers have the meaning of UNKNOWN.
pub(super) fn of_call(number: Option<u16>) -> u16 {
    let none = CALLS.len() as u16 - 1;
    CALL + number.map_or(none, |number| if number < none { number } else { 2 })
}

/// A status of a reply in words: "404", "UNAVAILABLE" or "reset: CANCEL".
pub fn status_in_words(status: u16) -> String {
    if status >= RESET {
        return format!("reset: {}", code_name((status - RESET).into()));
    }
    let call = status.checked_sub(CALL).map(usize::from);
    match call.and_then(|call| CALLS.get(call)) {
        Some(name) => (*name).to_owned(),
        None => status.to_string(),
    }
}

/// Counts of replies by status and by body size. Nearly every reply equals the one before it, so counting costs one
/// comparison.
#[derive(Debug, Default)]
pub(super) struct ReplyTotals {
    status: u16,
    bytes: u64,
    /// Replies in a row with this status and size.
    count: u64,
    others: Option<Box<Others>>,
}

#[derive(Debug, Default)]
struct Others {
    statuses: Vec<(u16, u64)>,
    unexpected: Vec<(u16, u64)>,
    /// Sizes with their counts, not yet passed on.
    sizes: Vec<(u64, u64)>,
    /// Replies that were not what their step requires, by message.
    failed: Vec<(&'static str, u64)>,
    redirect: Option<Box<str>>,
}

/// Maximum number of sizes to keep if nothing reads them; a load reads them after a few dozen replies.
const MOST_SIZES: usize = 4096;
/// Maximum length in bytes of a redirect's location.
const LONGEST_PLACE: usize = 300;

impl ReplyTotals {
    /// Counts a reply of this status with `bytes` bytes in its body.
    pub(super) fn add(&mut self, status: u16, bytes: u64) {
        if (status, bytes) != (self.status, self.bytes) {
            self.close();
            (self.status, self.bytes) = (status, bytes);
        }
        self.count += 1;
    }

    /// Moves the current run of equal replies to the other counts.
    #[cold]
    fn close(&mut self) {
        let count = std::mem::take(&mut self.count);
        if count == 0 {
            return;
        }
        let others = self.others.get_or_insert_default();
        add_to(&mut others.statuses, self.status, count);
        if others.sizes.len() >= MOST_SIZES {
            others.sizes.clear();
        }
        others.sizes.push((self.bytes, count));
    }

    /// Records that the last reply had an unexpected status.
    #[cold]
    pub(super) fn refuse(&mut self, status: u16) {
        let others = self.others.get_or_insert_default();
        add_to(&mut others.unexpected, status, 1);
    }

    /// Records that the last reply was not what its step requires.
    #[cold]
    pub(super) fn fail(&mut self, why: &'static str) {
        let others = self.others.get_or_insert_default();
        add_to(&mut others.failed, why, 1);
    }

    /// Records a redirect to this location.
    pub(super) fn redirect(&mut self, place: &[u8]) {
        let others = self.others.get_or_insert_default();
        others.redirect.get_or_insert_with(|| {
            let place = &place[..place.len().min(LONGEST_PLACE)];
            String::from_utf8_lossy(place).into()
        });
    }

    /// Passes the sizes of the bodies so far to `record`, each with its count.
    pub(super) fn take_sizes(&mut self, record: &mut dyn FnMut(u64, u64)) {
        self.close();
        if let Some(others) = &mut self.others {
            others
                .sizes
                .drain(..)
                .for_each(|(bytes, count)| record(bytes, count));
        }
    }

    /// Adds everything except the sizes to `counts`.
    pub(super) fn add_to(&self, counts: &mut ReplyCounts) {
        if self.count > 0 {
            *counts.statuses.entry(self.status).or_default() += self.count;
        }
        let Some(others) = &self.others else {
            return;
        };
        for (status, count) in &others.statuses {
            *counts.statuses.entry(*status).or_default() += count;
        }
        for (status, count) in &others.unexpected {
            *counts.unexpected.entry(*status).or_default() += count;
        }
        for (why, count) in &others.failed {
            *counts.failed.entry(why).or_default() += count;
        }
        if let Some(place) = &others.redirect {
            counts.redirect.get_or_insert_with(|| place.to_string());
        }
    }
}

fn add_to<T: PartialEq>(counts: &mut Vec<(T, u64)>, counted: T, count: u64) {
    match counts.iter_mut().find(|(other, _)| *other == counted) {
        Some((_, sum)) => *sum += count,
        None => counts.push((counted, count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_words() {
        for (status, words) in [
            (404, "404"),
            (of_call(Some(0)), "OK"),
            (of_call(Some(16)), "UNAUTHENTICATED"),
            (of_call(Some(17)), "UNKNOWN"),
            (of_call(None), "no grpc-status"),
            (RESET + 7, "reset: REFUSED_STREAM"),
            (RESET + 99, "reset: INTERNAL_ERROR"),
        ] {
            assert_eq!(status_in_words(status), words);
        }
    }

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
    fn each_status_and_each_size_is_counted() {
        let mut tally = ReplyTotals::default();
        for (status, bytes) in [
            (200, 5),
            (200, 5),
            (503, 0),
            (200, 5),
            (404, 7),
            (503, 0),
            (200, 6),
        ] {
            tally.add(status, bytes);
            if status == 404 {
                tally.refuse(status);
            }
        }
        tally.redirect(b"/a");
        tally.redirect(b"/b");
        let mut counts = ReplyCounts::default();
        tally.add_to(&mut counts);
        assert_eq!(counts.statuses, [(200, 4), (404, 1), (503, 2)].into());
        assert_eq!(counts.unexpected, [(404, 1)].into());
        assert_eq!(counts.redirect.as_deref(), Some("/a"));
        let mut sizes = BTreeMap::new();
        for _ in 0..2 {
            tally.take_sizes(&mut |bytes, count| *sizes.entry(bytes).or_default() += count);
            assert_eq!(
                sizes,
                BTreeMap::from([(0, 2), (5, 3), (6, 1), (7, 1)]),
                "each once"
            );
        }
        let mut counts = ReplyCounts::default();
        tally.add_to(&mut counts);
        assert_eq!(counts.statuses, [(200, 4), (404, 1), (503, 2)].into());
    }

    #[test]
    fn reply_sizes_are_bounded() {
        let mut tally = ReplyTotals::default();
        (0..100_000).for_each(|bytes| tally.add(200, bytes));
        let mut sizes = 0;
        tally.take_sizes(&mut |_, _| sizes += 1);
        assert!(sizes <= MOST_SIZES);
        tally.redirect(&[b'x'; 5000]);
        let mut counts = ReplyCounts::default();
        tally.add_to(&mut counts);
        assert_eq!(
            counts.redirect.map(|place| place.len()),
            Some(LONGEST_PLACE)
        );
    }
}
