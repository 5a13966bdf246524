//! The numbers in the OpenMetrics text format, for Prometheus and similar systems.
//!
//! Every measured metric of `throng list metrics` is a gauge with the name and the unit that it has everywhere. It has a
//! sample per server and number of clients, and samples for both ends of its interval. The format is OpenMetrics 1.0,
//! restricted to what the older Prometheus format allows, so all Prometheus tools can read it.

use std::fmt::Write as _;
use std::io::Write;

use super::Exporter;
use crate::Report;
use crate::study::StudyReport;
use throng_record::format::harmless;
use throng_record::metrics::METRICS;
use throng_spec::registry::Info;

pub(super) const OPENMETRICS: Exporter = Exporter {
    info: Info {
        name: "openmetrics",
        summary: "every metric in the OpenMetrics text format, for Prometheus and its like, on request",
    },
    file_name: None,
    render,
    render_study,
};

fn render(report: &Report<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
    write(&[(None, report)], to)
}

fn render_study(report: &StudyReport<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
    let parts = report.parts.iter().filter_map(|part| {
        let name = Some(part.record.name.as_str());
        Some((name, part.report.as_ref()?))
    });
    write(&parts.collect::<Vec<_>>(), to)
}

/// A run, with its name if it is a part of a study.
type ExportedRun<'a> = (Option<&'a str>, &'a Report<'a>);

fn write(parts: &[ExportedRun<'_>], to: &mut dyn Write) -> anyhow::Result<()> {
    let mut runs = Family::new("run_info", "what was run, where and by what");
    let mut trials = Family::new("trials", "timed trials in the record, by how they ended");
    let mut errors = Family::new(
        "client_errors",
        "clients that ended with an error, by kind, added up over trials",
    );
    let mut limits = Family::new(
        "limit",
        "most clients or requests per second that passed, and fewest above that failed",
    );
    let mut causes = Family::new("limit_cause_info", "what gave way first beyond the limit");
    let mut metrics: Vec<Family> = METRICS
        .iter()
        .map(|metric| Family::new(metric.name, metric.help))
        .collect();
    for part in parts {
        let run = part.1.run;
        let of_run = [
            ("started_at", run.started_at.as_str()),
            ("throng_version", &run.throng_version),
            ("kernel", &run.host.kernel),
            ("cpu", run.host.cpu_model.as_deref().unwrap_or_default()),
        ];
        runs.add(part, &of_run, 1.0);
        for server in part
            .1
            .limits
            .iter()
            .flat_map(|of_limits| &of_limits.servers)
        {
            for (state, tried) in [("passed", server.passed), ("failed", server.failed)] {
                if let Some(tried) = tried {
                    let labels = [("server", server.server.as_str()), ("state", state)];
                    limits.add(part, &labels, tried.value as f64);
                }
            }
            if let Some(cause) = &server.cause {
                let labels = [("server", &*server.server), ("cause", &*cause.sentence)];
                causes.add(part, &labels, 1.0);
            }
        }
        for row in &part.1.summary.rows {
            let clients = row.clients.to_string();
            let with = |name, value| {
                [
                    ("server", &*row.server),
                    ("clients", &*clients),
                    (name, value),
                ]
            };
            trials.add(part, &with("state", "ok"), row.trials_ok.into());
            trials.add(part, &with("state", "failed"), row.trials_failed.into());
            for (kind, count) in &row.errors {
                errors.add(part, &with("kind", kind), *count as f64);
            }
            for (metric, family) in METRICS.iter().zip(&mut metrics) {
                let Some(found) = row.quantity(metric.name) else {
                    continue;
                };
                family.add(part, &with("estimate", "value"), found.value);
                for (end, value) in [("low", found.low), ("high", found.high)] {
                    if let Some(value) = value {
                        family.add(part, &with("estimate", end), value);
                    }
                }
            }
        }
    }
    for family in [runs, trials, errors, limits, causes]
        .iter()
        .chain(&metrics)
    {
        to.write_all(family.text.as_bytes())?;
    }
    Ok(writeln!(to, "# EOF")?)
}

/// The samples with one name.
struct Family {
    name: String,
    help: &'static str,
    text: String,
}

impl Family {
    fn new(name: &str, help: &'static str) -> Self {
        Self {
            name: format!("throng_{name}"),
            help,
            text: String::new(),
        }
    }

    fn add(&mut self, (part, report): &ExportedRun<'_>, labels: &[(&str, &str)], value: f64) {
        let Self { name, help, text } = self;
        if !value.is_finite() {
            return;
        }
        if text.is_empty() {
            *text = format!("# TYPE {name} gauge\n# HELP {name} {}\n", escaped(help));
        }
        let _ = write!(
            text,
            "{name}{{study=\"{}\"",
            escaped(&report.run.study.name)
        );
        let of_part = part.map(|part| ("part", part));
        for (label, label_value) in of_part.iter().chain(labels) {
            let _ = write!(text, ",{label}=\"{}\"", escaped(label_value));
        }
        let _ = writeln!(text, "}} {value}");
    }
}

/// Text as it is written within quotes.
fn escaped(text: &str) -> String {
    let escaped = text.replace('\\', r"\\").replace('"', "\\\"");
    harmless(&escaped.replace('\n', r"\n"))
}

#[cfg(test)]
mod tests;
