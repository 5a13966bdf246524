//! The numbers in the OpenMetrics text format, for Prometheus and similar systems.
//!
//! Every measured metric of `throng list metrics` is a gauge in base units: seconds for times, ratios for percentages.
//! It has a sample per server and number of clients, and samples for both ends of its interval. The format is
//! OpenMetrics 1.0, restricted to what the older Prometheus format allows, so all Prometheus tools can read the file.

use std::fmt::Write as _;
use std::io::Write;

use super::Exporter;
use crate::Report;
use crate::study::StudyReport;
use crate::summary::Row;
use throng_record::Find;
use throng_record::format::shown;
use throng_record::metrics::{METRICS, Metric, Unit};
use throng_spec::registry::Info;

pub(super) const OPENMETRICS: Exporter = Exporter {
    info: Info {
        name: "openmetrics",
        summary: "every metric in the OpenMetrics text format, for Prometheus and its like",
    },
    file_name: "metrics.txt",
    render,
    render_study,
};

fn render(report: &Report<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
    write(&[Part { name: None, report }], to)
}

fn render_study(report: &StudyReport<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
    let parts = report.parts.iter().filter_map(|part| {
        let name = Some(part.record.name.as_str());
        part.report.as_ref().map(|report| Part { name, report })
    });
    write(&parts.collect::<Vec<_>>(), to)
}

/// A run, which may be a part of a study.
struct Part<'a> {
    name: Option<&'a str>,
    report: &'a Report<'a>,
}

/// Names and values of labels.
type Labels<'a> = Vec<(&'static str, &'a str)>;

impl Part<'_> {
    fn labels<'a>(&'a self, more: &[(&'static str, &'a str)]) -> Labels<'a> {
        let part = self.name.map(|name| ("part", name));
        let study = ("study", self.report.run.study.name.as_str());
        let of_run = [study].into_iter().chain(part);
        of_run.chain(more.iter().copied()).collect()
    }
}

fn write(parts: &[Part<'_>], to: &mut dyn Write) -> anyhow::Result<()> {
    let families = [
        runs(parts),
        trials(parts),
        errors(parts),
        limits(parts),
        causes(parts),
    ];
    for family in families {
        family.write(to)?;
    }
    for metric in METRICS {
        of_metric(metric, parts).write(to)?;
    }
    writeln!(to, "# EOF")?;
    Ok(())
}

/// The samples with one name.
struct Family {
    name: String,
    unit: &'static str,
    help: String,
    samples: Vec<String>,
}

impl Family {
    fn new(name: &str, unit: &'static str, help: &str) -> Self {
        let underline = if unit.is_empty() { "" } else { "_" };
        Self {
            name: format!("throng_{name}{underline}{unit}"),
            unit,
            help: help.to_owned(),
            samples: Vec::new(),
        }
    }

    fn add(&mut self, labels: &Labels<'_>, value: f64) {
        let mut sample = self.name.clone();
        for (place, (name, value)) in labels.iter().enumerate() {
            let before = if place == 0 { '{' } else { ',' };
            let _ = write!(sample, "{before}{name}=\"{}\"", escaped(value));
        }
        let _ = write!(sample, "}} {value}");
        self.samples.push(sample);
    }

    /// Writes nothing if there are no samples.
    fn write(&self, to: &mut dyn Write) -> anyhow::Result<()> {
        let Self {
            name, unit, help, ..
        } = self;
        if self.samples.is_empty() {
            return Ok(());
        }
        writeln!(to, "# TYPE {name} gauge")?;
        if !unit.is_empty() {
            writeln!(to, "# UNIT {name} {unit}")?;
        }
        writeln!(to, "# HELP {name} {}", escaped(help))?;
        for sample in &self.samples {
            writeln!(to, "{sample}")?;
        }
        Ok(())
    }
}

/// Text as it is written within quotes.
fn escaped(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => written.push_str(r"\\"),
            '"' => written.push_str("\\\""),
            '\n' => written.push_str(r"\n"),
            c => written.push(shown(c)),
        }
    }
    written
}

/// The study, machine and version, as labels; always 1.
fn runs(parts: &[Part<'_>]) -> Family {
    let mut family = Family::new("run_info", "", "what was run, where and by what");
    for part in parts {
        let run = part.report.run;
        let seed = run.seed.to_string();
        let said = run.settings.load.protocol.as_deref().unwrap_or("custom");
        let cpu = run.host.cpu_model.as_deref().unwrap_or_default();
        let labels = part.labels(&[
            ("protocol", said),
            ("seed", &seed),
            ("started_at", &run.started_at),
            ("throng_version", &run.throng_version),
            ("kernel", &run.host.kernel),
            ("cpu", cpu),
        ]);
        family.add(&labels, 1.0);
    }
    family
}

/// Calls `add` for each row.
fn of_rows(
    family: &mut Family,
    parts: &[Part<'_>],
    mut add: impl FnMut(&mut Family, &Part<'_>, &Row, [(&'static str, &str); 2]),
) {
    for part in parts {
        for row in &part.report.summary.rows {
            let clients = row.clients.to_string();
            let labels = [("server", row.server.as_str()), ("clients", &clients)];
            add(family, part, row, labels);
        }
    }
}

fn trials(parts: &[Part<'_>]) -> Family {
    let mut family = Family::new(
        "trials",
        "",
        "timed trials in the record, by how they ended",
    );
    of_rows(
        &mut family,
        parts,
        |family, part, row, [server, clients]| {
            let states = [("ok", row.trials_ok), ("failed", row.trials_failed)];
            for (state, count) in states {
                let labels = part.labels(&[server, clients, ("state", state)]);
                family.add(&labels, f64::from(count));
            }
        },
    );
    family
}

fn errors(parts: &[Part<'_>]) -> Family {
    let help = "clients that ended with an error, by kind, added up over trials";
    let mut family = Family::new("client_errors", "", help);
    of_rows(
        &mut family,
        parts,
        |family, part, row, [server, clients]| {
            for (kind, count) in &row.errors {
                let labels = part.labels(&[server, clients, ("kind", kind)]);
                family.add(&labels, *count as f64);
            }
        },
    );
    family
}

/// The limits of servers, if the run searched for them.
fn limits(parts: &[Part<'_>]) -> Family {
    let help = "most clients or requests per second that passed, and fewest above that failed";
    let mut family = Family::new("limit", "", help);
    for part in parts {
        let Some(limits) = &part.report.limits else {
            continue;
        };
        let find = match limits.find {
            Find::Clients => "clients",
            Find::Rate => "rate",
        };
        for server in &limits.servers {
            for (state, tried) in [("passed", server.passed), ("failed", server.failed)] {
                if let Some(tried) = tried {
                    let of = [
                        ("server", &*server.server),
                        ("find", find),
                        ("state", state),
                    ];
                    family.add(&part.labels(&of), tried.value as f64);
                }
            }
        }
    }
    family
}

/// The cause of a limit; always 1.
fn causes(parts: &[Part<'_>]) -> Family {
    let mut family = Family::new(
        "limit_cause_info",
        "",
        "what gave way first beyond the limit",
    );
    for part in parts {
        let servers = part.report.limits.iter().flat_map(|limits| &limits.servers);
        for server in servers {
            if let Some(cause) = &server.cause {
                let labels = part.labels(&[
                    ("server", &server.server),
                    ("kind", &cause.kind),
                    ("cause", &cause.sentence),
                ]);
                family.add(&labels, 1.0);
            }
        }
    }
    family
}

fn of_metric(metric: &Metric, parts: &[Part<'_>]) -> Family {
    let (unit, factor) = base_unit(metric.unit);
    let mut family = Family::new(&name_of(metric), unit, metric.help);
    of_rows(
        &mut family,
        parts,
        |family, part, row, [server, clients]| {
            let Some(found) = row.quantity(metric.name) else {
                return;
            };
            let ends = [
                ("value", Some(found.value)),
                ("low", found.low),
                ("high", found.high),
            ];
            for (estimate, value) in ends {
                if let Some(value) = value.filter(|value| value.is_finite()) {
                    let labels = part.labels(&[server, clients, ("estimate", estimate)]);
                    family.add(&labels, value * factor);
                }
            }
        },
    );
    family
}

/// The name of a metric without its unit, which the format requires at the end.
fn name_of(metric: &Metric) -> String {
    let (name, suffix) = (metric.name, metric.unit.suffix());
    match metric.unit {
        Unit::PerSecond => name
            .strip_suffix("_s")
            .map_or(name.to_owned(), |name| format!("{name}_second")),
        _ if suffix.is_empty() => name.to_owned(),
        _ => match name.strip_suffix(suffix) {
            Some(before) => before.to_owned(),
            None => name.replacen(&format!("{suffix}_per_"), "_per_", 1),
        },
    }
}

/// The unit in which a value is exported, and the factor from the metric's own unit to it.
fn base_unit(unit: Unit) -> (&'static str, f64) {
    match (unit, unit.microseconds()) {
        (_, Some(microseconds)) => ("seconds", microseconds * 1e-6),
        (Unit::Bytes, _) => ("bytes", 1.0),
        (Unit::BytesPerSecond, _) => ("bytes_per_second", 1.0),
        (Unit::Percent, _) => ("ratio", 1e-2),
        _ => ("", 1.0),
    }
}

#[cfg(test)]
mod tests;
