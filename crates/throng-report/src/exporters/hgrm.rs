//! The latencies of a server as the percentile distribution of HdrHistogram, which its plotter reads
//! (<https://hdrhistogram.github.io/HdrHistogram/plotFiles.html>).

use std::io::Write;

use anyhow::Context as _;

use super::Exporter;
use crate::Report;
use throng_record::load_stats::Times;
use throng_spec::registry::Info;

pub(super) const HGRM: Exporter = Exporter {
    info: Info {
        name: "hgrm",
        summary: "latencies of one server by percentile, as HdrHistogram's tools read them, on request",
    },
    file_name: None,
    render: write,
    render_study: |_, _| {
        anyhow::bail!("hgrm is of one run: name the directory of a part of the study")
    },
};

/// Lines per halving of the requests that took longer.
const STEPS: u32 = 5;
const NS_PER_MS: f64 = 1e6;

fn write(report: &Report<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
    let [server] = report.summary.servers.as_slice() else {
        anyhow::bail!(
            "hgrm is of one server: write one file per server, as in 'hgrm={{server}}.hgrm'"
        );
    };
    let clients = report.summary.clients.last().copied().unwrap_or_default();
    let timed = report.trials.iter().filter(|trial| {
        trial.purpose.is_timed() && trial.clients == clients && trial.failure.is_none()
    });
    let found = timed.filter_map(|trial| trial.load.as_ref()?.request_times());
    let whole = Times::merged(found)?.with_context(|| format!("{server} has no latencies"))?;
    writeln!(
        to,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    let mut sum = 0;
    for step in whole.iter_quantiles(STEPS) {
        sum += step.count_since_last_iteration();
        let quantile = step.quantile_iterated_to();
        let value_ms = step.value_iterated_to() as f64 / NS_PER_MS;
        write!(to, "{value_ms:>12.3} {quantile:>14.12} {sum:>10}")?;
        if quantile < 1.0 {
            write!(to, " {:>14.2}", 1.0 / (1.0 - quantile))?;
        }
        writeln!(to)?;
    }
    let [mean, deviation, largest] =
        [whole.mean(), whole.stdev(), whole.max() as f64].map(|value_ns| value_ns / NS_PER_MS);
    writeln!(
        to,
        "#[Mean    = {mean:>12.3}, StdDeviation   = {deviation:>12.3}]"
    )?;
    writeln!(
        to,
        "#[Max     = {largest:>12.3}, Total count    = {:>12}]",
        whole.len()
    )?;
    writeln!(
        to,
        "#[Buckets = {:>12}, SubBuckets     = {:>12}]",
        whole.buckets(),
        2048
    )?;
    Ok(())
}
