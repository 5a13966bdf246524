//! Deserializes values of a part.

use std::time::Duration;

use serde::{Deserialize, Deserializer};
use toml::Spanned;

use crate::record;
use crate::record::metrics::Condition;
use crate::registry;
use crate::serve::models::MODELS;
use crate::spec::{self, read_time};

pub(super) fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    use serde::de::Error as _;
    let text = String::deserialize(from)?;
    read_time(&text).map_err(D::Error::custom)
}

pub(super) fn positive_time<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    use serde::de::Error as _;
    match time(from)? {
        Duration::ZERO => Err(D::Error::custom("must be longer than 0")),
        time => Ok(time),
    }
}

pub(super) fn optional_positive_time<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Duration>, D::Error> {
    positive_time(from).map(Some)
}

pub(super) fn at_least_one<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    use serde::de::Error as _;
    match spec::whole(from)? {
        0 => Err(D::Error::custom("must be at least 1")),
        number => Ok(number),
    }
}

/// Numbers of clients, in ascending order.
pub(super) fn clients<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u32>, D::Error> {
    use serde::de::Error as _;
    #[derive(Deserialize)]
    struct Number(#[serde(deserialize_with = "spec::whole")] u32);
    let numbers = Vec::<Number>::deserialize(from)?;
    let mut clients: Vec<u32> = numbers.into_iter().map(|Number(number)| number).collect();
    if clients.is_empty() || clients.contains(&0) {
        let why = "`clients` must list numbers that are at least 1, like [10, 100]";
        return Err(D::Error::custom(why));
    }
    clients.sort_unstable();
    clients.dedup();
    Ok(clients)
}

/// Percentages, in ascending order.
pub(super) fn percents<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u32>, D::Error> {
    use serde::de::Error as _;
    let mut percents = Vec::<u32>::deserialize(from)?;
    if percents.iter().any(|percent| !(1..100).contains(percent)) {
        let why = "`latency-at` must list percentages from 1 to 99, like [50, 80]";
        return Err(D::Error::custom(why));
    }
    percents.sort_unstable();
    percents.dedup();
    Ok(percents)
}

/// A name that is also valid as the name of a directory.
pub(super) fn name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    spanned_name(from).map(Spanned::into_inner)
}

pub(super) fn spanned_name<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Spanned<String>, D::Error> {
    use serde::de::Error as _;
    let name = Spanned::<String>::deserialize(from)?;
    checked_name(name.get_ref()).map_err(D::Error::custom)?;
    Ok(name)
}

pub(super) fn checked_name(name: &str) -> Result<(), &'static str> {
    if !record::is_plain(name) {
        return Err("`name` may only contain letters, digits, `-` and `_`");
    }
    Ok(())
}

pub(super) fn named_model<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    use serde::de::Error as _;
    model(from)?
        .map(Spanned::into_inner)
        .ok_or_else(|| D::Error::custom("the name of a model is missing"))
}

pub(super) fn model<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Spanned<String>>, D::Error> {
    use serde::de::Error as _;
    let name = Spanned::<String>::deserialize(from)?;
    registry::find("model", MODELS, name.get_ref()).map_err(D::Error::custom)?;
    Ok(Some(name))
}

/// Conditions on metrics, as written.
pub(super) fn conditions<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    use serde::de::Error as _;
    let conditions = Vec::<String>::deserialize(from)?;
    for text in &conditions {
        Condition::parse(text).map_err(D::Error::custom)?;
    }
    Ok(conditions)
}

/// A link as written, like `{ rate = "1Gbit", delay = "1ms", loss = "0.1%" }`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkToml {
    rate: Option<String>,
    #[serde(default, deserialize_with = "optional_positive_time")]
    delay: Option<Duration>,
    loss: Option<String>,
}

pub(super) fn link<'de, D: Deserializer<'de>>(from: D) -> Result<Option<record::Link>, D::Error> {
    use serde::de::Error as _;
    let written = LinkToml::deserialize(from)?;
    let rate = written.rate.as_deref().map(bits_per_s).transpose();
    let loss = written.loss.as_deref().map(percent_lost).transpose();
    let link = record::Link {
        rate_bits_per_s: rate.map_err(D::Error::custom)?,
        delay_s: written.delay.map(|delay| delay.as_secs_f64()),
        loss_percent: loss.map_err(D::Error::custom)?,
    };
    if link == record::Link::default() {
        return Err(D::Error::custom(
            "`link` needs a `rate`, a `delay` or a `loss`",
        ));
    }
    Ok(Some(link))
}

/// Bits per second, like "100Mbit".
fn bits_per_s(text: &str) -> Result<u64, &'static str> {
    const UNITS: [(&str, f64); 3] = [("kbit", 1e3), ("Mbit", 1e6), ("Gbit", 1e9)];
    let known = UNITS.iter().find_map(|(unit, size)| {
        let number: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        Some((number * size).round())
    });
    known
        .filter(|rate| (64e3..=100e9).contains(rate))
        .map(|rate| rate as u64)
        .ok_or("`rate` must be from 64kbit to 100Gbit, like \"100Mbit\" or \"1Gbit\"")
}

/// A percentage of packets, like "0.1%".
fn percent_lost(text: &str) -> Result<f64, &'static str> {
    let number = text.strip_suffix('%').map(str::trim);
    number
        .and_then(|number| number.parse().ok())
        .filter(|percent| (0.001..=100.0).contains(percent))
        .ok_or("`loss` must be from 0.001% to 100%, like \"0.1%\"")
}
