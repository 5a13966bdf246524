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

/// A percentage of packets, like "0.1%".
pub(super) fn loss<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    use serde::de::Error as _;
    let text = String::deserialize(from)?;
    let percent = text
        .strip_suffix('%')
        .and_then(|text| text.trim().parse().ok());
    match percent.filter(|percent| (0.001..=100.0).contains(percent)) {
        Some(percent) => Ok(Some(percent)),
        None => Err(D::Error::custom(
            "`loss` must be from 0.001% to 100%, like \"0.1%\"",
        )),
    }
}
