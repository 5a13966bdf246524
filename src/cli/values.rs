//! Parsers for values on the command line.

use std::str::FromStr;
use std::time::Duration;

#[cfg(target_os = "linux")]
pub(super) use crate::spec::count;
use crate::spec::whole_number;
pub(super) use crate::spec::{at_least_one, read_time as duration, request_size};
use crate::sys::process::usable_cpus;

/// A duration above 0.
pub(super) fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("must be longer than 0".to_owned()),
        time => Ok(time),
    }
}

/// The price of an hour of one CPU: "0.04" or "0.04/vcpu-hour".
#[cfg(target_os = "linux")]
pub(super) fn price(text: &str) -> Result<f64, String> {
    let amount = text.strip_suffix("/vcpu-hour").unwrap_or(text);
    let price = amount
        .parse()
        .ok()
        .filter(|price: &f64| price.is_finite() && *price > 0.0);
    price.ok_or_else(|| "expected a price above 0, like 0.04/vcpu-hour".to_owned())
}

/// The size of select()'s descriptor sets.
pub(super) fn fd_setsize(text: &str) -> Result<usize, String> {
    let least = crate::sys::select::FD_SETSIZE as u64;
    number::<usize>(least, 1 << 20)(text)
}

/// A value parser for whole numbers within bounds.
pub(super) fn number<T: TryFrom<u64>>(
    least: u64,
    most: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = whole_number(text)
            .ok()
            .filter(|number| (least..=most).contains(number))
            .and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| match most {
            u64::MAX => format!("expected a number of at least {least}"),
            _ => format!("expected a number from {least} to {most}"),
        })
    }
}

/// A value parser for an enumeration.
pub(super) fn one_of<T: Copy + Send + Sync + 'static>(
    named: &'static [(&'static str, T)],
) -> impl clap::builder::TypedValueParser<Value = T> {
    use clap::builder::TypedValueParser as _;
    let all = named.iter().map(|(name, _)| *name);
    clap::builder::PossibleValuesParser::new(all).map(move |typed| {
        let found = named.iter().find(|(name, _)| *name == typed);
        found.expect("it is one of the possible values").1
    })
}

/// A list of CPUs in the kernel's notation: `0`, `0,2`, `0-3,6`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CpuList(pub(super) Vec<u32>);

impl FromStr for CpuList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected a list of CPUs, like 0 or 0,2-3".to_owned();
        let number = |part: &str| part.trim().parse::<u32>().map_err(|_| wrong());
        let mut cpus = Vec::new();
        for part in text.split(',') {
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last || last >= 1024 {
                return Err(wrong());
            }
            cpus.extend(first..=last);
        }
        let usable = usable_cpus();
        match cpus.iter().find(|cpu| !usable.contains(cpu)) {
            Some(cpu) => {
                let listed: Vec<String> = usable.iter().map(u32::to_string).collect();
                Err(format!(
                    "CPU {cpu} is not available; this process may use {}",
                    listed.join(",")
                ))
            }
            None => Ok(Self(cpus)),
        }
    }
}

/// Percentages of a maximum, in ascending order, like `50,80`; `none` for an empty list.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Percents(pub(super) Vec<u32>);

#[cfg(target_os = "linux")]
impl FromStr for Percents {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim() == "none" {
            return Ok(Self(Vec::new()));
        }
        let percent = |part: &str| match part.trim().trim_end_matches('%').trim_end().parse() {
            Ok(percent) if (1..100).contains(&percent) => Ok(percent),
            _ => Err(format!(
                "`{part}` is not a percentage from 1 to 99; write a list like 50,80, or none"
            )),
        };
        let mut percents = text
            .split(',')
            .map(percent)
            .collect::<Result<Vec<u32>, _>>()?;
        percents.sort_unstable();
        percents.dedup();
        Ok(Self(percents))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_ranges_of_cpus_there_are() {
        let cpu = usable_cpus()[0];
        assert_eq!(CpuList::from_str(&cpu.to_string()), Ok(CpuList(vec![cpu])));
        assert!(CpuList::from_str("1-0").is_err());
        assert!(CpuList::from_str("").is_err());
        assert!(
            CpuList::from_str("1023")
                .unwrap_err()
                .contains("CPU 1023 is not available")
        );
    }
}
