//! Distributions of several trials made one: histograms are added, percentiles never averaged.

use anyhow::Context as _;
use hdrhistogram::Histogram;
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
    let Some((whole, max_us)) = whole(parts)? else {
        return Ok(None);
    };
    let at = |quantile| whole.value_at_quantile(quantile) as f64 / 1000.0;
    Ok(Some(Times {
        count: whole.len(),
        p50_us: at(0.5),
        p90_us: at(0.9),
        p99_us: (whole.len() >= FEWEST_FOR_P99).then(|| at(0.99)),
        max_us,
    }))
}

/// All values, in nanoseconds, and the greatest in microseconds; `None` where there is no value.
///
/// # Errors
/// When a histogram in the record cannot be read.
pub fn whole<'a>(
    parts: impl IntoIterator<Item = &'a Latency>,
) -> anyhow::Result<Option<(Histogram<u64>, f64)>> {
    // One read from a record has a fixed range; this one grows to hold them all.
    let mut whole: Histogram<u64> = Histogram::new(3).context("cannot make a histogram")?;
    let mut max_us = f64::NEG_INFINITY;
    for part in parts {
        let histogram = part.times()?;
        max_us = max_us.max(part.max_us);
        whole
            .add(&histogram)
            .context("a histogram in the record has too great a range")?;
    }
    Ok((!whole.is_empty()).then_some((whole, max_us)))
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
        assert!((times.max_us / 5000.0 - 1.0).abs() < 0.001);
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
