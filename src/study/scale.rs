//! Scales a study down for a quick look: as its parts specify, otherwise by a general rule.
//!
//! A factor scales everything that takes time or space. A quick look keeps those of the study's numbers of clients
//! that are small.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use super::Study;
use super::options::{Options, Value};
use super::part::Part;
use crate::record::format::whole;
use crate::spec::{LoadSpec, Sizes};

/// The scale of a study.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// For publication: as its parts specify, otherwise as written.
    Full,
    /// Scaled to less than a minute in total.
    Quick,
    /// Scaled by a factor below 1.
    By(f64),
}

impl FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse::<f64>()) {
            ("quick", _) => Ok(Self::Quick),
            ("full", _) => Ok(Self::Full),
            (_, Ok(factor)) if factor > 0.0 && factor < 1.0 => Ok(Self::By(factor)),
            _ => Err(format!(
                "`{text}` is not a scale; write quick, full or a number between 0 and 1"
            )),
        }
    }
}

impl std::fmt::Display for Scale {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Quick => f.write_str("quick"),
            Self::Full => f.write_str("full"),
            Self::By(factor) => factor.fmt(f),
        }
    }
}

/// Maximum duration of a whole study for a quick look.
const QUICK: Duration = Duration::from_secs(45);
/// The assumed duration of a job at that scale, not counting think time.
const QUICK_JOB: Duration = Duration::from_millis(250);
/// Maximum number of clients in a quick look, unless the file sets its own.
const QUICK_CLIENTS: u32 = 200;
/// Time for all slices with the same number of clients in a quick look.
const QUICK_SLICES: Duration = Duration::from_secs(2);
/// Requests that are larger are scaled down to this size.
const LARGE_BYTES: f64 = 65_536.0;

/// Bounds of a search in a quick look, unless the file sets its own, by option of `throng limit`.
const QUICK_SEARCH: [(&str, u32); 5] = [
    ("from", 8),
    ("max", 50),
    ("clients", 10),
    ("confirm", 1),
    ("tries", 16),
];
/// The precision of the limit, and the time limit of the search, in a quick look.
const QUICK_WITHIN: [(&str, &str); 2] = [("within", "10%"), ("search-time", "8s")];

/// Bounds of the rule for a quick look, from loose to tight: (numbers of clients, repeats).
const LEVELS: [(usize, u32); 4] = [(3, 2), (2, 2), (1, 2), (1, 1)];

impl Study {
    /// The scaled study. Each of its parts lists its changes.
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
            Scale::Full => {
                let parts = self
                    .parts
                    .iter()
                    .map(|part| part.full.as_deref().unwrap_or(part).clone());
                Self {
                    parts: parts.collect(),
                    ..self.clone()
                }
            }
            Scale::By(factor) => by(&|part| smaller(part, factor)),
            Scale::Quick => {
                let levels: Vec<Self> = LEVELS
                    .iter()
                    .map(|(clients, runs)| by(&|part| quick(part, *clients, *runs)))
                    .collect();
                let fits = levels
                    .iter()
                    .position(|study| study.about(QUICK_JOB) <= QUICK);
                levels[fits.unwrap_or(LEVELS.len() - 1)].clone()
            }
        }
    }
}

impl Part {
    /// Lists how the part differs from what was written.
    pub fn note_changes(&mut self, written: &Self) {
        self.scaled = differences(written, self);
    }
}

/// A part scaled by a factor.
fn smaller(part: &Part, factor: f64) -> Part {
    let mut part = part.clone();
    for clients in &mut part.clients {
        *clients = (f64::from(*clients) * factor).round().max(1.0) as u32;
    }
    part.clients.dedup();
    let runs = (f64::from(part.runs) * factor).round() as u32;
    part.runs = runs.max(part.runs.min(2));
    let counted = (f64::from(part.profiled_runs) * factor).round() as u32;
    part.profiled_runs = counted.max(part.profiled_runs.min(2));
    for name in ["from", "max", "clients", "confirm"] {
        if let Some(number) = number(&part.limit, name) {
            let fewer = (f64::from(number) * factor).round().max(1.0) as u32;
            part.limit.replace(name, &fewer.to_string());
        }
    }
    let shorter = |time: Duration, least: u64| {
        time.mul_f64(factor)
            .max(time.min(Duration::from_millis(least)))
    };
    part.load.duration = part.load.duration.map(|time| shorter(time, 100));
    part.slices = part.slices.map(|time| shorter(time, 1000));
    part.load.warm_up = shorter(part.load.warm_up, 50);
    make_load_smaller(&mut part.load, &|_| true, factor, factor);
    part
}

/// A part scaled for a quick look.
fn quick(whole: &Part, max_clients: usize, runs: u32) -> Part {
    let (mut part, keys) = match whole.quick.as_deref() {
        Some((part, keys)) => (part.clone(), keys.as_slice()),
        None => (whole.clone(), [].as_slice()),
    };
    let free = |key: &str| !keys.iter().any(|own| own == key);
    if part.is_search() {
        bound_search(&mut part.limit, &free);
    } else if free("clients") {
        part.clients = few(&part.clients, max_clients);
    }
    if free("runs") {
        part.runs = part.runs.min(runs);
    }
    if free("profiled-runs") {
        part.profiled_runs = part.profiled_runs.min(runs);
    }
    if free("slices") {
        part.slices = part.slices.map(|time| time.min(QUICK_SLICES));
    }
    let load = &mut part.load;
    let limits: [(&str, Option<&mut Duration>, u64); 4] = [
        ("duration", load.duration.as_mut(), 200),
        ("warm-up", Some(&mut load.warm_up), 50),
        (
            "first-reply-timeout",
            Some(&mut load.first_reply_timeout),
            1000,
        ),
        ("connect-timeout", Some(&mut load.connect_timeout), 3000),
    ];
    for (key, time, most) in limits {
        if let Some(time) = time.filter(|_| free(key)) {
            *time = (*time).min(Duration::from_millis(most));
        }
    }
    if load.longest_warm_up() > load.warm_up {
        load.warm_up_limit = Some(load.warm_up);
    }
    let (most, before) = (part.clients.last(), whole.clients.last());
    let fewer = most
        .zip(before)
        .map_or(1.0, |(now, before)| f64::from(*now) / f64::from(*before));
    let longest = part
        .load
        .think
        .named()
        .max(part.load.ramp.unwrap_or_default());
    let shorter = 0.05_f64.min(longest.as_secs_f64()) / longest.as_secs_f64().max(1e-9);
    make_load_smaller(&mut part.load, &free, shorter, fewer.min(0.1));
    part
}

/// Bounds a search for a quick look, except for the options that the file sets.
fn bound_search(limit: &mut Options, free: &dyn Fn(&str) -> bool) {
    // A search for a rate starts at its lower bound, and has few clients.
    let is_rate = limit.get("find").is_some_and(
        |find| matches!(&find.value, Value::Typed(values) if values.iter().any(|what| what == "rate")),
    );
    for (name, most) in QUICK_SEARCH {
        let most = match name {
            "clients" if !is_rate => continue,
            "from" | "max" if is_rate => most * 20,
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

/// The numeric value of an option.
pub(super) fn number(options: &Options, name: &str) -> Option<u32> {
    match &options.get(name)?.value {
        Value::Typed(values) => values.first()?.parse().ok(),
        Value::Flag(_) => None,
    }
}

/// At most `most` of the small numbers of clients, spread over their range.
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

/// Scales a load: durations by `shorter`, amounts by `fewer`.
fn make_load_smaller(load: &mut LoadSpec, free: &dyn Fn(&str) -> bool, shorter: f64, fewer: f64) {
    let time =
        |time: Duration| Duration::from_micros((time.mul_f64(shorter).as_micros() as u64).max(1));
    let rate = |per_s: f64| (per_s * fewer).max(0.001);
    if free("requests-per-client")
        && let Some(requests) = &mut load.requests_per_client
    {
        *requests = (f64::from(*requests) * fewer).ceil().max(1.0) as u32;
    }
    if free("live") {
        load.live = load.live.map(time);
    }
    if free("think") {
        load.think = load.think.map(time);
    }
    if free("ramp") {
        load.ramp = load.ramp.map(time);
    }
    if free("rate") {
        load.rate = load.rate.map(|range| range.map(rate));
    }
    if free("connect-rate") {
        load.connect_rate = load.connect_rate.map(rate);
    }
    if free("size") {
        load.size = sizes(&load.size, fewer).unwrap_or_else(|| load.size.clone());
    }
}

/// Scales sizes if the largest is too large: all by the same factor, so that a mix keeps its proportions. `None` if
/// nothing is too large, or if two sizes would become equal, which a mix does not allow.
fn sizes(sizes: &Sizes, factor: f64) -> Option<Sizes> {
    let largest = sizes.largest() as f64;
    if largest <= LARGE_BYTES {
        return None;
    }
    let factor = factor.max(LARGE_BYTES / largest);
    let small = |(size, weight): &(usize, u32)| {
        ((*size as f64 * factor).round().max(1.0) as usize, *weight)
    };
    Sizes::new(sizes.parts().iter().map(small).collect()).ok()
}

/// The differences of a part from what was written, as text.
fn differences(whole_part: &Part, part: &Part) -> BTreeMap<String, String> {
    let list = |clients: &[u32]| {
        let numbers: Vec<String> = clients.iter().map(|n| whole(f64::from(*n))).collect();
        numbers.join("; ")
    };
    let (before, now) = (whole_part, part);
    let mut all = vec![
        (
            "clients".to_owned(),
            list(&before.clients),
            list(&now.clients),
        ),
        (
            "runs".to_owned(),
            before.runs.to_string(),
            now.runs.to_string(),
        ),
        (
            "profiled-runs".to_owned(),
            before.profiled_runs.to_string(),
            now.profiled_runs.to_string(),
        ),
    ];
    let of_load = now.load.differing(&before.load).into_iter();
    all.extend(of_load.map(|(key, new, then)| (key, then, new)));
    for choice in now.limit.iter() {
        let text = |value: &Value| match value {
            Value::Flag(given) => given.to_string(),
            Value::Typed(values) => values.join(", "),
        };
        let old = before.limit.get(&choice.name);
        let then = old.map_or_else(|| "none".to_owned(), |old| text(&old.value));
        all.push((choice.name.clone(), then, text(&choice.value)));
    }
    all.into_iter()
        .filter(|(_, then, new)| then != new)
        // A search repeats each side as often as --confirm specifies.
        .filter(|(what, ..)| {
            !now.is_search() || !["runs", "profiled-runs"].contains(&what.as_str())
        })
        .map(|(what, then, now)| (what, format!("{now} instead of {then}")))
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
    fn a_load_is_made_smaller_key_by_key() {
        let smaller = |text: &str, factor: f64| {
            let mut load: LoadSpec = toml::from_str(text).unwrap();
            make_load_smaller(&mut load, &|_| true, factor, factor);
            load.flags_without(&["duration"])
        };
        assert_eq!(smaller("think = \"9s\"", 0.1), ["--think=900ms"]);
        assert_eq!(smaller("think = \"exp:1s\"", 0.5), ["--think=exp:500ms"]);
        assert_eq!(
            smaller("think = \"1s..3s\"", 0.5),
            ["--think=500ms..1500ms"]
        );
        assert_eq!(smaller("rate = \"0..1000\"", 0.1), ["--rate=0..100"]);
        assert_eq!(smaller("size = \"10MB\"", 0.1), ["--size=1000000"]);
        assert_eq!(smaller("size = 2000", 0.1), ["--size=2000"]);
        assert_eq!(
            smaller("size = \"100kB:3,1MiB:1\"", 0.1),
            ["--size=10000:3,104858"]
        );
        assert_eq!(
            smaller("size = \"100kB,1MB,10MB\"", 0.01),
            ["--size=1000,10000,100000"]
        );
        assert_eq!(
            smaller("size = \"1,2,10MB\"", 0.01),
            ["--size=1,2,10000000"]
        );
    }

    #[test]
    fn a_quick_look_keeps_small_numbers_of_clients() {
        assert_eq!(few(&[8, 32, 64, 128, 1024], 3), [8, 64, 128]);
        assert_eq!(few(&[8, 32, 64, 128, 1024], 2), [8, 128]);
        assert_eq!(few(&[2000], 3), [100]);
    }
}
