//! A study made smaller, for a quick look: what its parts say themselves about that, and a rule for the
//! rest.
//!
//! A factor makes everything smaller that takes time or room. The quick look keeps numbers of clients
//! that the study names, where they are small, so that what it says of them can be checked.

use std::str::FromStr;
use std::time::Duration;

use super::Study;
use super::options::{Options, Value};
use super::part::{Part, read_time};
use crate::record::JOB_OPTIONS;
use crate::report::format::whole;

/// How a study is made smaller.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// So that all of it takes less than a minute.
    Quick,
    /// By a factor below 1.
    By(f64),
}

impl FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse::<f64>()) {
            ("quick", _) => Ok(Self::Quick),
            (_, Ok(factor)) if factor > 0.0 && factor < 1.0 => Ok(Self::By(factor)),
            _ => Err(format!(
                "`{text}` is neither `quick` nor a number between 0 and 1"
            )),
        }
    }
}

impl std::fmt::Display for Scale {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Quick => f.write_str("quick"),
            Self::By(factor) => factor.fmt(f),
        }
    }
}

/// What a whole study may take for a quick look.
const QUICK: Duration = Duration::from_secs(45);
/// What clients are taken to need for a job, then, beside their time to think.
const QUICK_JOB: Duration = Duration::from_millis(250);
/// Most clients that a quick look has where the file says nothing.
const QUICK_CLIENTS: u32 = 200;
/// Requests larger than this are made smaller.
const LARGE_BYTES: f64 = 65_536.0;

/// Bounds of a search for a quick look, where the file says nothing, by option of `throng limit`.
const QUICK_SEARCH: [(&str, u32); 5] = [
    ("from", 8),
    ("most", 50),
    ("clients", 10),
    ("confirm", 1),
    ("tries", 16),
];
/// How close what held and what broke have to come, and how long that may take.
const QUICK_WITHIN: [(&str, &str); 2] = [("within", "10%"), ("search-time", "8s")];

/// How far the rule for a quick look goes: (numbers of clients, repeats).
const LEVELS: [(usize, u32); 4] = [(3, 2), (2, 2), (1, 2), (1, 1)];

impl Study {
    /// The study made smaller; each part says what became of it.
    #[must_use]
    pub fn scaled(&self, scale: Scale) -> Self {
        let by = |rule: &dyn Fn(&Part) -> Part| {
            let parts = self.parts.iter().map(|whole| {
                let mut part = rule(whole);
                part.note_changes(whole);
                part
            });
            Self {
                parts: parts.collect(),
                ..self.clone()
            }
        };
        match scale {
            Scale::By(factor) => by(&|part| smaller(part, factor)),
            Scale::Quick => {
                let levels = LEVELS
                    .iter()
                    .map(|(clients, repeats)| by(&|part| quick(part, *clients, *repeats)));
                let levels: Vec<Self> = levels.collect();
                let fits = levels
                    .iter()
                    .position(|study| study.about(QUICK_JOB) <= QUICK);
                levels[fits.unwrap_or(LEVELS.len() - 1)].clone()
            }
        }
    }
}

impl Part {
    /// Notes in what it is another than it was written.
    pub fn note_changes(&mut self, written: &Self) {
        self.scaled = differences(written, self);
    }
}

/// A part by a factor.
fn smaller(part: &Part, factor: f64) -> Part {
    let mut part = part.clone();
    for clients in &mut part.clients {
        *clients = (f64::from(*clients) * factor).round().max(1.0) as u32;
    }
    part.clients.dedup();
    let repeats = (f64::from(part.repeats) * factor).round() as u32;
    part.repeats = repeats.max(part.repeats.min(2));
    let counted = (f64::from(part.counted_repeats) * factor).round() as u32;
    part.counted_repeats = counted.max(part.counted_repeats.min(2));
    for name in ["from", "most", "clients", "confirm"] {
        if let Some(number) = number(&part.limit, name) {
            let fewer = (f64::from(number) * factor).round().max(1.0) as u32;
            part.limit.replace(name, &fewer.to_string());
        }
    }
    let shorter = |time: Duration, least: u64| {
        time.mul_f64(factor)
            .max(time.min(Duration::from_millis(least)))
    };
    part.duration = shorter(part.duration, 100);
    part.warm_up = shorter(part.warm_up, 50);
    options(&mut part, &|_| true, factor, factor);
    part
}

/// A part for a quick look.
fn quick(whole: &Part, most_clients: usize, repeats: u32) -> Part {
    let (mut part, keys) = match whole.quick.as_deref() {
        Some((part, keys)) => (part.clone(), keys.as_slice()),
        None => (whole.clone(), [].as_slice()),
    };
    let free = |key: &str| !keys.iter().any(|own| own == key);
    if part.is_search() {
        bound_search(&mut part.limit, &free);
    } else if free("clients") {
        part.clients = few(&part.clients, most_clients);
    }
    if free("repeats") {
        part.repeats = part.repeats.min(repeats);
    }
    if free("counted-repeats") {
        part.counted_repeats = part.counted_repeats.min(repeats);
    }
    let limits: [(&str, &mut Duration, u64); 4] = [
        ("duration", &mut part.duration, 200),
        ("warm-up", &mut part.warm_up, 50),
        ("patience", &mut part.patience, 1000),
        ("connect-timeout", &mut part.connect_timeout, 3000),
    ];
    for (key, time, most) in limits {
        if free(key) {
            *time = (*time).min(Duration::from_millis(most));
        }
    }
    let (most, before) = (part.clients.last(), whole.clients.last());
    let fewer = most
        .zip(before)
        .map_or(1.0, |(now, before)| f64::from(*now) / f64::from(*before));
    let longest = ["think", "ramp"].into_iter().filter_map(|name| {
        let Value::Typed(values) = &part.load.get(name)?.value else {
            return None;
        };
        longest(values.first()?)
    });
    let shorter = longest.max().map_or(1.0, |longest| {
        0.05_f64.min(longest.as_secs_f64()) / longest.as_secs_f64().max(1e-9)
    });
    options(&mut part, &free, shorter, fewer.min(0.1));
    part
}

/// Bounds a search for a quick look, but for what is said of that.
fn bound_search(limit: &mut Options, free: &dyn Fn(&str) -> bool) {
    // A rate rises from where it begins; clients are few.
    let is_rate = limit.get("find").is_some_and(
        |find| matches!(&find.value, Value::Typed(values) if values.iter().any(|what| what == "rate")),
    );
    for (name, most) in QUICK_SEARCH {
        let most = match name {
            "clients" if !is_rate => continue,
            "from" | "most" if is_rate => most * 20,
            _ => most,
        };
        if free(name) {
            let number = number(limit, name).map_or(most, |number| number.min(most));
            limit.replace(name, &number.to_string());
        }
    }
    for (name, value) in QUICK_WITHIN {
        if free(name) {
            limit.replace(name, value);
        }
    }
}

/// The number that an option says.
pub(super) fn number(options: &Options, name: &str) -> Option<u32> {
    match &options.get(name)?.value {
        Value::Typed(values) => values.first()?.parse().ok(),
        Value::Flag(_) => None,
    }
}

/// At most so many of the small numbers of clients, spread over them.
fn few(clients: &[u32], most: usize) -> Vec<u32> {
    let small: Vec<u32> = clients
        .iter()
        .copied()
        .filter(|clients| *clients <= QUICK_CLIENTS)
        .collect();
    let Some(last) = small.last().copied() else {
        return vec![QUICK_CLIENTS / 2];
    };
    if small.len() <= most {
        return small;
    }
    match most {
        1 => vec![last],
        2 => vec![small[0], last],
        _ => vec![small[0], small[small.len() / 2], last],
    }
}

/// Makes the options of a load smaller that take time (by `shorter`) or are many (by `fewer`).
fn options(part: &mut Part, free: &dyn Fn(&str) -> bool, shorter: f64, fewer: f64) {
    for choice in part.load.iter_mut().filter(|choice| free(&choice.name)) {
        let Value::Typed(values) = &mut choice.value else {
            continue;
        };
        for value in values {
            let made = match choice.name.as_str() {
                name if JOB_OPTIONS.contains(&name) => value
                    .parse()
                    .ok()
                    .map(|each: f64| (each * fewer).ceil().max(1.0).to_string()),
                "think" | "ramp" => times(value, shorter),
                "rate" | "connect-rate" => numbers(value, fewer),
                "size" => sizes(value, fewer),
                _ => None,
            };
            if let Some(made) = made {
                *value = made;
            }
        }
    }
    if free("size")
        && let Some(size) = &mut part.size
        && let Value::Typed(values) = size.get_mut()
    {
        for value in values {
            *value = sizes(value, fewer).unwrap_or_else(|| value.clone());
        }
    }
}

/// The longest time in `9s`, `1s..3s` or `exp:2s`.
pub(super) fn longest(text: &str) -> Option<Duration> {
    let text = text.strip_prefix("exp:").unwrap_or(text);
    read_time(text.rsplit("..").next().unwrap_or(text))
}

fn times(text: &str, factor: f64) -> Option<String> {
    let (prefix, rest) = match text.strip_prefix("exp:") {
        Some(rest) => ("exp:", rest),
        None => ("", text),
    };
    let part = |text: &str| {
        let micros = read_time(text)?.mul_f64(factor).as_micros().max(1);
        Some(format!("{micros}us"))
    };
    let parts = rest.split("..").map(part).collect::<Option<Vec<_>>>()?;
    Some(format!("{prefix}{}", parts.join("..")))
}

fn numbers(text: &str, factor: f64) -> Option<String> {
    let part = |text: &str| {
        Some(
            (text.trim().parse::<f64>().ok()? * factor)
                .max(0.001)
                .to_string(),
        )
    };
    let parts = text.split("..").map(part).collect::<Option<Vec<_>>>()?;
    Some(parts.join(".."))
}

/// Sizes, each with its weight, in bytes: where the largest is large, all are made smaller by one factor, so that
/// a mix keeps its proportions. None where two would become the same, which a mix cannot have.
fn sizes(text: &str, factor: f64) -> Option<String> {
    let parts = mix(text)?;
    let largest = parts.iter().map(|(bytes, _)| *bytes).fold(0.0, f64::max);
    if largest <= LARGE_BYTES {
        return Some(text.to_owned());
    }
    let factor = factor.max(LARGE_BYTES / largest);
    let small = |bytes: f64| (bytes * factor).round().max(1.0) as u64;
    let mut different: Vec<u64> = parts.iter().map(|(bytes, _)| small(*bytes)).collect();
    different.sort_unstable();
    different.dedup();
    let texts = parts
        .iter()
        .map(|(bytes, weight)| format!("{}{weight}", small(*bytes)));
    (different.len() == parts.len()).then(|| texts.collect::<Vec<_>>().join(","))
}

/// Sizes in bytes, each with its weight as it is written: `:3`, or nothing.
fn mix(text: &str) -> Option<Vec<(f64, String)>> {
    let part = |part: &str| {
        let (size, weight) = match part.split_once(':') {
            Some((size, weight)) => (size, format!(":{weight}")),
            None => (part, String::new()),
        };
        Some((bytes(size.trim())?, weight))
    };
    text.split(',').map(part).collect()
}

/// The mean of sizes by their weights, in bytes.
pub(super) fn mean_size(text: &str) -> Option<f64> {
    let (mut sum, mut weights) = (0.0, 0.0);
    for (bytes, weight) in mix(text)? {
        let weight: f64 = match weight.strip_prefix(':') {
            Some(weight) => weight.trim().parse().ok()?,
            None => 1.0,
        };
        sum += bytes * weight;
        weights += weight;
    }
    (weights > 0.0).then(|| sum / weights)
}

fn bytes(text: &str) -> Option<f64> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let thousand: f64 = if text.contains('i') { 1024.0 } else { 1000.0 };
    let power = match text[end..]
        .trim()
        .chars()
        .next()
        .map(|c| c.to_ascii_lowercase())
    {
        None | Some('b') => 0,
        Some('k') => 1,
        Some('m') => 2,
        Some('g') => 3,
        Some(_) => return None,
    };
    Some(number * thousand.powi(power))
}

/// In words, what of a part became another thing.
fn differences(whole_part: &Part, part: &Part) -> Vec<String> {
    let list = |clients: &[u32]| {
        let numbers: Vec<String> = clients.iter().map(|n| whole(f64::from(*n))).collect();
        numbers.join("; ")
    };
    let time = |time: Duration| format!("{} s", time.as_secs_f64());
    let (before, now) = (whole_part, part);
    let mut all = vec![
        (
            "clients".to_owned(),
            list(&before.clients),
            list(&now.clients),
        ),
        (
            "repeats".to_owned(),
            before.repeats.to_string(),
            now.repeats.to_string(),
        ),
        (
            "counted-repeats".to_owned(),
            before.counted_repeats.to_string(),
            now.counted_repeats.to_string(),
        ),
        (
            "duration".to_owned(),
            time(before.duration),
            time(now.duration),
        ),
        (
            "warm-up".to_owned(),
            time(before.warm_up),
            time(now.warm_up),
        ),
    ];
    let (old, new) = (before.load_options(), now.load_options());
    let of_load = new.iter().map(|choice| (choice, &old));
    let of_search = now.limit.iter().map(|choice| (choice, &before.limit));
    for (choice, old) in of_load.chain(of_search) {
        let text = |value: &Value| match value {
            Value::Flag(given) => given.to_string(),
            Value::Typed(values) => values.join(", "),
        };
        let then = old
            .get(&choice.name)
            .map_or_else(|| "none".to_owned(), |old| text(&old.value));
        all.push((choice.name.clone(), then, text(&choice.value)));
    }
    all.into_iter()
        .filter(|(_, then, now)| then != now)
        // A search is repeated as often as it confirms.
        .filter(|(what, ..)| !(now.is_search() && what.ends_with("repeats")))
        .map(|(what, then, now)| format!("{what} {now} instead of {then}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_is_a_word_or_a_factor() {
        assert_eq!("quick".parse(), Ok(Scale::Quick));
        assert_eq!("0.1".parse(), Ok(Scale::By(0.1)));
        for wrong in ["", "0", "1", "2", "-1", "NaN", "slow"] {
            assert!(wrong.parse::<Scale>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn options_are_made_smaller_as_they_are_written() {
        assert_eq!(times("9s", 0.1).unwrap(), "900000us");
        assert_eq!(times("exp:1s", 0.5).unwrap(), "exp:500000us");
        assert_eq!(times("1s..3s", 0.5).unwrap(), "500000us..1500000us");
        assert_eq!(times("soon", 0.5), None);
        assert_eq!(numbers("0..1000", 0.1).unwrap(), "0.001..100");
        assert_eq!(sizes("10MB", 0.1).unwrap(), "1000000");
        assert_eq!(sizes("1000", 0.1).unwrap(), "1000");
        assert_eq!(sizes("100kB:3,1MiB:1", 0.1).unwrap(), "10000:3,104858:1");
        assert_eq!(sizes("100kB,1MB,10MB", 0.01).unwrap(), "1000,10000,100000");
        assert_eq!(sizes("1,2,10MB", 0.01), None);
        assert_eq!(mean_size("100kB:3,1MB"), Some(325_000.0));
        assert_eq!(mean_size("100"), Some(100.0));
        assert_eq!(mean_size("large"), None);
    }

    #[test]
    fn a_quick_look_keeps_small_crowds() {
        assert_eq!(few(&[8, 32, 64, 128, 1024], 3), [8, 64, 128]);
        assert_eq!(few(&[8, 32, 64, 128, 1024], 2), [8, 128]);
        assert_eq!(few(&[2000], 3), [100]);
    }
}
