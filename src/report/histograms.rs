//! Distributions of several trials made one: histograms are added, percentiles never averaged.

use std::io::Cursor;

use anyhow::Context as _;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use serde::Serialize;

use crate::record::Latency;

/// Values below which a percentile would rest on less than one value beyond it.
const FEWEST_FOR_P99: u64 = 100;

/// Times over all trials of a row, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Times {
    /// Values recorded.
    pub count: u64,
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile; absent below 100 values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_us: Option<f64>,
    /// Greatest.
    pub max_us: f64,
}

/// Adds up the histograms of trials; `None` without any values.
///
/// # Errors
/// When a histogram in the record cannot be read.
pub fn merge<'a>(parts: impl IntoIterator<Item = &'a Latency>) -> anyhow::Result<Option<Times>> {
    let mut whole: Option<Histogram<u64>> = None;
    let mut max_us = f64::NEG_INFINITY;
    for part in parts {
        let bytes = BASE64_STANDARD
            .decode(&part.histogram)
            .context("a histogram in the record is not base64; the record is damaged")?;
        let histogram: Histogram<u64> = Deserializer::new()
            .deserialize(&mut Cursor::new(bytes))
            .ok()
            .context("a histogram in the record is not an HdrHistogram; the record is damaged")?;
        max_us = max_us.max(part.max_us);
        match &mut whole {
            Some(whole) => whole
                .add(&histogram)
                .context("a histogram in the record has another range than the first")?,
            None => whole = Some(histogram),
        }
    }
    Ok(whole
        .filter(|histogram| !histogram.is_empty())
        .map(|histogram| {
            let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1000.0;
            Times {
                count: histogram.len(),
                p50_us: at(0.5),
                p90_us: at(0.9),
                p99_us: (histogram.len() >= FEWEST_FOR_P99).then(|| at(0.99)),
                max_us,
            }
        }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::latency;

    #[test]
    fn merged_percentiles_come_from_all_values_and_not_from_an_average() {
        let quick = latency(&[10_000; 990]);
        let slow = latency(&[5_000_000; 10]);
        let times = merge([&quick, &slow]).unwrap().unwrap();
        assert_eq!(times.count, 1000);
        assert!((times.p50_us - 10.0).abs() < 0.1);
        // An average of the two p99 would be 2505 µs.
        assert!((times.p99_us.unwrap() - 10.0).abs() < 0.1);
        assert!((times.max_us - 5000.0).abs() < 0.1);
    }

    #[test]
    fn a_percentile_without_enough_values_is_absent() {
        let times = merge([&latency(&[1000; 99])]).unwrap().unwrap();
        assert_eq!(times.p99_us, None);
        assert_eq!(merge([]).unwrap(), None);
    }

    #[test]
    fn a_damaged_histogram_is_an_error() {
        let mut damaged = latency(&[1000; 5]);
        damaged.histogram = "AAAA".to_owned();
        assert!(merge([&damaged]).is_err());
    }
}
