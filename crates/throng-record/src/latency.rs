//! A distribution of times, as recorded.

use std::io::{Cursor, Read as _};

use anyhow::Context as _;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::bufread::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
use serde::de::Error as _;
use serde::{Deserialize, Serialize};

/// A distribution of times. Percentiles come from a histogram with 3 significant digits, or 2 for lateness, connect
/// time and the time of the first reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// Number of values.
    pub count: u64,
    /// Minimum.
    pub min_us: f64,
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile; absent below 100 values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_us: Option<f64>,
    /// 99.9th percentile; absent below 10,000 values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p999_us: Option<f64>,
    /// 99.99th percentile; absent below a million values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p9999_us: Option<f64>,
    /// Maximum.
    pub max_us: f64,
    /// The whole histogram in nanoseconds: `HdrHistogram` V2 deflate, base64. Merge these, never average percentiles.
    #[serde(deserialize_with = "sound")]
    pub histogram: String,
}

impl Latency {
    /// The statistics of a histogram of nanoseconds; `None` if it is empty. A percentile needs enough values for some
    /// to be above it.
    pub fn of(histogram: &Histogram<u64>) -> Option<Self> {
        let count = histogram.len();
        if count == 0 {
            return None;
        }
        let at = |percentile: f64| histogram.value_at_percentile(percentile) as f64 / 1e3;
        let from = |needed: u64, percentile: f64| (count >= needed).then(|| at(percentile));
        Some(Self {
            count,
            min_us: histogram.min() as f64 / 1e3,
            mean_us: histogram.mean() / 1e3,
            p50_us: at(50.0),
            p90_us: at(90.0),
            p99_us: from(100, 99.0),
            p999_us: from(10_000, 99.9),
            p9999_us: from(1_000_000, 99.99),
            max_us: histogram.max() as f64 / 1e3,
            histogram: encode(histogram),
        })
    }

    /// The histogram, in nanoseconds.
    ///
    /// # Errors
    /// When it is invalid.
    pub fn times(&self) -> anyhow::Result<Histogram<u64>> {
        decode(&self.histogram)
    }
}

/// A histogram that can be decoded, so that an error has the place of a damaged one.
fn sound<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    decode(&text).map_err(|error| D::Error::custom(format!("{error:#}")))?;
    Ok(text)
}

/// `HdrHistogram` V2 deflate, base64.
pub(crate) fn encode(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .expect("writing to memory does not fail");
    BASE64_STANDARD.encode(&bytes)
}

/// Decodes the result of [`encode`].
pub(crate) fn decode(text: &str) -> anyhow::Result<Histogram<u64>> {
    let bytes = BASE64_STANDARD
        .decode(text)
        .context("a histogram in the record is not base64; the record is damaged")?;
    histogram(&bytes)
        .context("a histogram in the record is not an HdrHistogram; the record is damaged")
}

/// A compressed histogram of the second version (V2). The size that it states is ignored; the actual size is passed.
fn histogram(compressed: &[u8]) -> Option<Histogram<u64>> {
    let (head, rest) = compressed.split_first_chunk::<HISTOGRAM_HEAD>()?;
    if !head.starts_with(&COMPRESSED.to_be_bytes()) {
        return None;
    }
    let mut bytes = Vec::new();
    let mut inflated = ZlibDecoder::new(rest).take(MOST_HISTOGRAM);
    let count = inflated.read_to_end(&mut bytes).ok()?;
    let number = |at: usize| {
        bytes
            .get(at..at + 4)?
            .try_into()
            .ok()
            .map(u32::from_be_bytes)
    };
    let (cookie, length, digits) = (number(0)?, number(4)?, number(12)?);
    let fits = length as usize <= count.checked_sub(INNER_HEAD)? && digits <= MOST_DIGITS;
    if cookie == COMPRESSED || !fits {
        return None;
    }
    Deserializer::new()
        .deserialize(&mut Cursor::new(bytes))
        .ok()
}

/// The cookie of a compressed histogram, and the bytes before its compressed data.
const COMPRESSED: u32 = 0x1c84_9314;
const HISTOGRAM_HEAD: usize = 8;
/// Bytes before the counts of an uncompressed one.
const INNER_HEAD: usize = 40;
/// Maximum significant digits; more would take more memory.
const MOST_DIGITS: u32 = 3;
/// Maximum bytes. The widest histograms that throng writes take a tenth of this.
const MOST_HISTOGRAM: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;

    /// A histogram that claims `digits` digits and `length` bytes after its header, but has four bytes there.
    fn claims(digits: u32, length: u32, low: u64, high: u64) -> Vec<u8> {
        let head = [0x1c84_9313, length, 0, digits]
            .map(u32::to_be_bytes)
            .concat();
        let range = [low, high, 1.0_f64.to_bits()]
            .map(u64::to_be_bytes)
            .concat();
        let mut to = ZlibEncoder::new(Vec::new(), Compression::fast());
        to.write_all(&[&head[..], &range, &[2, 4, 1, 6]].concat())
            .unwrap();
        let body = to.finish().unwrap();
        let length = body.len() as u32;
        [
            &[COMPRESSED, length].map(u32::to_be_bytes).concat()[..],
            &body,
        ]
        .concat()
    }

    #[test]
    fn a_histogram_takes_no_more_memory_than_it_has_values() {
        assert_eq!(histogram(&claims(3, 4, 1, 1 << 40)).unwrap().len(), 6);
        for (digits, length) in [(3, 5), (3, u32::MAX), (5, 4), (u32::MAX, 4)] {
            assert!(histogram(&claims(digits, length, 1, 1 << 40)).is_none());
        }
        assert!(histogram(&claims(3, 4, u64::MAX, 0)).is_none());
        let twice = [&COMPRESSED.to_be_bytes()[..], &[0; 4], &claims(3, 4, 1, 9)].concat();
        for cut in 0..twice.len() {
            assert!(histogram(&twice[..cut]).is_none());
        }
        // A few KB that would expand to 64 MiB.
        let mut to = ZlibEncoder::new(Vec::new(), Compression::best());
        to.write_all(&vec![0; 64 << 20]).unwrap();
        let bomb = [
            &[COMPRESSED, 0].map(u32::to_be_bytes).concat()[..],
            &to.finish().unwrap(),
        ];
        assert!(histogram(&bomb.concat()).is_none());
    }
}
