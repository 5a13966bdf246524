//! Time series of individual trials, read from `samples/*.csv` of a record.

use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context as _, bail};

use super::clients::first_kept;
use super::lines::{Lines, number, shown};
use throng_record::{Load, Slice, Trial};

/// The maximum number of metrics in one file. The probes have a tenth as many.
const MOST_METRICS: usize = 1000;

/// Points kept per measurement; longer ones are thinned out evenly.
const MOST_POINTS: usize = 400;

/// Replies per second in each interval of the measured phase.
pub const RATE: (&str, &str) = ("client", "replies_per_s");

/// CPU usage, in percent of one CPU.
const CPU: &str = "cpu_percent";

/// Time series of one trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TimeSeries {
    /// The measurements, in order of their first sample.
    pub metrics: Vec<Measurement>,
}

/// A side ("server", "client", "network") with a metric, and its samples.
pub type Measurement = ((String, String), Vec<Sample>);

/// One value at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Seconds since the measured phase began; negative before.
    pub at_s: f64,
    pub value: f64,
}

impl TimeSeries {
    /// The samples of one measurement, in chronological order; empty if there are none.
    pub fn of(&self, (side, metric): (&str, &str)) -> &[Sample] {
        let found = self.metrics.iter().find(|((its_side, its_metric), _)| {
            (its_side.as_str(), its_metric.as_str()) == (side, metric)
        });
        found.map_or(&[], |(_, samples)| samples)
    }
}

impl TimeSeries {
    /// Reads the time series of a trial.
    ///
    /// # Errors
    /// When its file exists but cannot be read, naming it.
    pub fn read(dir: &Path, trial: &Trial) -> anyhow::Result<Self> {
        let mut series = Self::default();
        if let Some((_, name, file)) = first_kept(dir, "samples", &[trial])? {
            let path = || dir.join("samples").join(&name);
            series
                .parse(BufReader::new(file))
                .with_context(|| format!("cannot read {}", path().display()))?;
        }
        series.count_slices(&trial.slices);
        series.metrics.extend(trial.load.as_ref().and_then(rates));
        for (_, samples) in &mut series.metrics {
            thin(samples);
        }
        Ok(series)
    }

    fn parse(&mut self, reader: impl BufRead) -> anyhow::Result<()> {
        let mut lines = Lines::of(reader);
        let header = lines.header()?;
        if header != "at_s,side,metric,value" {
            bail!("its first line is `{}`", shown(&header));
        }
        while let Some((place, line)) = lines.next_line()? {
            let fields: Vec<&str> = line.split(',').collect();
            let &[at, side, metric, value] = fields.as_slice() else {
                bail!("line {place}: `{}` does not have four fields", shown(&line));
            };
            let sample = Sample {
                at_s: number(at, place, "at_s")?,
                value: number(value, place, "value")?,
            };
            self.add(side, metric, sample);
            if self.metrics.len() > MOST_METRICS {
                bail!(
                    "line {place}: more than {MOST_METRICS} metrics; the first beyond that is `{metric}`"
                );
            }
        }
        Ok(())
    }

    fn add(&mut self, side: &str, metric: &str, sample: Sample) {
        let known = self.metrics.iter_mut().find(|((its_side, its_metric), _)| {
            (its_side.as_str(), its_metric.as_str()) == (side, metric)
        });
        match known {
            Some((_, samples)) => samples.push(sample),
            None => self
                .metrics
                .push(((side.to_owned(), metric.to_owned()), vec![sample])),
        }
    }
}

impl TimeSeries {
    /// Replaces samples of CPU usage by that of each slice, at the time that the server's own slices had taken.
    /// Samples would include the pauses, when other servers have their turn.
    fn count_slices(&mut self, slices: &[Slice]) {
        if slices.is_empty() {
            return;
        }
        let is_cpu = |metric: &(String, String)| metric.1 == CPU;
        self.metrics.retain(|(metric, _)| !is_cpu(metric));
        let usage = |side: &str, of: fn(&Slice) -> Option<u64>| {
            let mut until_ns = 0;
            let sample = |slice: &Slice| {
                until_ns += slice.took_ns;
                let middle_ns = until_ns - slice.took_ns / 2;
                Some(Sample {
                    at_s: middle_ns as f64 / 1e9,
                    value: 100.0 * of(slice)? as f64 / slice.took_ns.max(1) as f64,
                })
            };
            let samples: Vec<Sample> = slices.iter().filter_map(sample).collect();
            (!samples.is_empty()).then(|| ((side.to_owned(), CPU.to_owned()), samples))
        };
        let server = usage("server", |slice| slice.server_cpu_ns);
        let clients = usage("client", |slice| Some(slice.client_cpu_ns));
        self.metrics.extend(server.into_iter().chain(clients));
    }
}

/// Replies per second in each interval of the window.
fn rates(load: &Load) -> Option<Measurement> {
    let intervals = &load.window.intervals;
    let length = load.window.duration_s / intervals.len() as f64;
    let sample = |(place, replies): (usize, &u64)| Sample {
        at_s: (place as f64 + 0.5) * length,
        value: *replies as f64 / length,
    };
    let samples: Vec<Sample> = intervals.iter().enumerate().map(sample).collect();
    let (side, metric) = RATE;
    (!samples.is_empty() && length > 0.0).then(|| ((side.to_owned(), metric.to_owned()), samples))
}

/// Keeps about [`MOST_POINTS`] samples, evenly spaced, and always the last one.
fn thin(samples: &mut Vec<Sample>) {
    let step = samples.len().div_ceil(MOST_POINTS);
    let last = samples.len().saturating_sub(1);
    let mut place = 0;
    samples.retain(|_| {
        place += 1;
        (place - 1) % step == 0 || place - 1 == last
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> anyhow::Result<TimeSeries> {
        let mut series = TimeSeries::default();
        series.parse(text.as_bytes())?;
        Ok(series)
    }

    #[test]
    fn samples_are_kept_by_what_they_measure() {
        let text = "at_s,side,metric,value\n-0.5,network,established,3\n0.1,server,cpu_percent,50.5\n0.2,network,established,10\n";
        let series = parsed(text).unwrap();
        let values = |side, metric| -> Vec<(f64, f64)> {
            let samples = series.of((side, metric)).iter();
            samples.map(|sample| (sample.at_s, sample.value)).collect()
        };
        assert_eq!(values("network", "established"), [(-0.5, 3.0), (0.2, 10.0)]);
        assert_eq!(values("server", "cpu_percent"), [(0.1, 50.5)]);
        assert_eq!(values("client", "cpu_percent"), []);
    }

    #[test]
    fn pauses_between_slices_are_no_part_of_the_cpu_usage_over_time() {
        let mut series = parsed("at_s,side,metric,value\n0.1,server,cpu_percent,40\n").unwrap();
        let slice = |server_cpu_ns| Slice {
            took_ns: 20_000_000,
            server_cpu_ns: Some(server_cpu_ns),
            client_cpu_ns: 5_000_000,
            ..Slice::default()
        };
        series.count_slices(&[slice(20_000_000), slice(19_000_000)]);
        let values = |side| -> Vec<(f64, f64)> {
            let samples = series.of((side, CPU)).iter();
            samples.map(|sample| (sample.at_s, sample.value)).collect()
        };
        assert_eq!(values("server"), [(0.01, 100.0), (0.03, 95.0)]);
        assert_eq!(values("client"), [(0.01, 25.0), (0.03, 25.0)]);
    }

    #[test]
    fn a_bad_line_is_named() {
        for (line, given) in [
            (
                "0.1,server,cpu_percent",
                "line 2: `0.1,server,cpu_percent` does not have",
            ),
            (
                "0.1,server,cpu_percent,much",
                "line 2, column value: `much` is not a number",
            ),
        ] {
            let error = parsed(&format!("at_s,side,metric,value\n{line}\n")).unwrap_err();
            assert!(error.to_string().starts_with(given), "{error}");
        }
        assert!(parsed("time,value\n").is_err());
    }

    #[test]
    fn many_samples_are_thinned_out_and_the_last_one_stays() {
        let mut samples: Vec<Sample> = (0..1001)
            .map(|place| Sample {
                at_s: f64::from(place),
                value: 0.0,
            })
            .collect();
        thin(&mut samples);
        assert!(samples.len() <= MOST_POINTS + 1, "{}", samples.len());
        assert!((samples.last().unwrap().at_s - 1000.0).abs() < 1e-9);
        thin(&mut Vec::new());
    }
}
