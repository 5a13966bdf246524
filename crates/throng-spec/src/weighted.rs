//! A weighted mix of values.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::ser::SerializeSeq as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::bytes::request_size;
use super::text::{NumberOrText, deserialize_number, schema_of};
use throng_protocol::{check_parts, greatest_common_divisor, parse_parts, parse_weight};

/// One value, or several, each with a weight. Weights have no common divisor; the weight of a single value is 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weighted<T>(Vec<(T, u32)>);

impl<T: PartialEq> Weighted<T> {
    /// A single value.
    pub fn one(value: T) -> Self {
        Self(vec![(value, 1)])
    }

    /// Several values with weights.
    ///
    /// # Errors
    /// The error.
    pub fn new(parts: Vec<(T, u32)>) -> Result<Self, String> {
        check_parts(&parts)?;
        let common = parts.iter().fold(0, |common, (_, weight)| {
            greatest_common_divisor(common, *weight)
        });
        let reduced = parts
            .into_iter()
            .map(|(value, weight)| (value, weight / common.max(1)));
        Ok(Self(reduced.collect()))
    }

    /// All values with their weights.
    pub fn parts(&self) -> &[(T, u32)] {
        &self.0
    }
}

/// Bytes per request: `1000`, or by weight `100kB:3,1MB:1`.
pub type Sizes = Weighted<usize>;

impl Sizes {
    /// The largest size.
    pub fn largest(&self) -> usize {
        let sizes = self.0.iter().map(|(size, _)| *size);
        sizes.max().unwrap_or(0)
    }

    /// Their weighted mean.
    pub fn mean(&self) -> f64 {
        let (mut sum, mut weights) = (0.0, 0.0);
        for (size, weight) in &self.0 {
            sum += *size as f64 * f64::from(*weight);
            weights += f64::from(*weight);
        }
        sum / weights
    }
}

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_parts(text, request_size).and_then(Self::new)
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (size, weight)) in self.0.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{size}")?;
            if *weight > 1 {
                write!(f, ":{weight}")?;
            }
        }
        Ok(())
    }
}

impl Serialize for Sizes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [(size, _)] => to.serialize_u64(*size as u64),
            _ => to.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let expected = "bytes in a request, like 1000, \"64KiB\" or \"100kB:3,1MB:1\"";
        deserialize_number(from, expected, str::parse)
    }
}

schema_of!(Sizes, NumberOrText);

/// Paths, including the query: each as `/news`, or with a weight as `/news:3`.
pub type Paths = Weighted<String>;

/// Parses a path, and a weight if a number follows the last colon.
///
/// # Errors
/// When it is not a path.
pub fn weighted_path(text: &str) -> Result<(String, u32), String> {
    let weight = text
        .rsplit_once(':')
        .filter(|(_, weight)| is_number(weight));
    let (path, weight) = match weight {
        Some((path, weight)) => (path, parse_weight(weight)?),
        None => (text, 1),
    };
    if !path.starts_with('/') {
        return Err(format!("the path `{path}` must begin with a slash"));
    }
    if !path.bytes().all(|byte| byte.is_ascii_graphic()) || path.contains('#') {
        return Err(format!(
            "the path `{path}` has characters that must be written as %XX"
        ));
    }
    Ok((path.to_owned(), weight))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl Paths {
    /// Each as written.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(path, weight)| {
            // A number that looks like a weight is part of the path if a weight follows.
            let has_weight = path.rsplit_once(':').is_some_and(|(_, end)| is_number(end));
            if *weight > 1 || has_weight {
                format!("{path}:{weight}")
            } else {
                path.clone()
            }
        })
    }
}

impl Serialize for Paths {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut list = to.serialize_seq(Some(self.0.len()))?;
        for text in self.texts() {
            list.serialize_element(&text)?;
        }
        list.end()
    }
}

impl<'de> Deserialize<'de> for Paths {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "expected a path, or a list of them, like [\"/:3\", \"/news\"]"
        )]
        enum Written {
            One(String),
            Several(Vec<String>),
        }

        let texts = match Written::deserialize(from)? {
            Written::One(text) => vec![text],
            Written::Several(texts) => texts,
        };
        let paths: Result<Vec<_>, String> = texts.iter().map(|text| weighted_path(text)).collect();
        paths.and_then(Self::new).map_err(D::Error::custom)
    }
}

schema_of!(Paths, Vec<String>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_name_the_part_that_is_wrong() {
        let sizes: Sizes = "100kB:3,1MB:1,10MB:1".parse().unwrap();
        assert_eq!(
            sizes.parts(),
            [(100_000, 3), (1_000_000, 1), (10_000_000, 1)]
        );
        assert_eq!(sizes.to_string(), "100000:3,1000000,10000000");
        let error = "100kB:3,1Mb:1,1000KB:2".parse::<Sizes>().unwrap_err();
        assert_eq!(error, "parts 2 and 3 are equal; add up their weights");
        let error = "100kB:3,1MX".parse::<Sizes>().unwrap_err();
        assert!(error.starts_with("part 2 of the mix: `MX` in `1MX`"));
        assert!("".parse::<Sizes>().is_err());
    }

    #[test]
    fn sizes_are_equal_by_their_shares() {
        let equal = |a: &str, b: &str| a.parse::<Sizes>().unwrap() == b.parse().unwrap();
        assert!(equal("5:7", "5") && equal("1kB:6,2:2", "1000:3,2"));
        assert!(!equal("5:2,6", "5,6"));
        let mean = |text: &str| text.parse::<Sizes>().unwrap().mean();
        assert!((mean("100kB:3,1MB") - 325_000.0).abs() < 1e-6);
        assert!((mean("100") - 100.0).abs() < 1e-6);
    }

    #[test]
    fn a_path_may_have_a_weight() {
        let path = |path: &str, weight| Ok((path.to_owned(), weight));
        assert_eq!(weighted_path("/"), path("/", 1));
        assert_eq!(weighted_path("/a:3"), path("/a", 3));
        assert_eq!(weighted_path("/a:3:2"), path("/a:3", 2));
        assert_eq!(weighted_path("/a:b?c=d"), path("/a:b?c=d", 1));
        assert_eq!(weighted_path("/a:"), path("/a:", 1));
        for (wrong, why) in [
            ("", "must begin with a slash"),
            ("a", "must begin with a slash"),
            ("/a:0", "at least 1"),
            ("/a:99999999999", "is not a weight"),
            ("/a b", "%XX"),
            ("/a#b", "%XX"),
            ("/\u{e4}", "%XX"),
        ] {
            let error = weighted_path(wrong).unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }
}
