//! `throng list`: models, protocols and so on, and whether this machine supports them.

use std::fmt::Write as _;

use clap::ValueEnum;
use serde::Serialize;

use super::{Exit, Usage, output};
#[cfg(target_os = "linux")]
use crate::measure::probes::PROBES;
use crate::protocol::PROTOCOLS;
use crate::record::FINDINGS;
use crate::record::metrics::{self, METRICS, Metric};
use crate::registry::{self, Entry, UnknownName};
use crate::report::exporters::EXPORTERS;
use crate::report::figures::FIGURES;
use crate::serve::models::MODELS;
use crate::serve::{Card, Model};
use crate::study::{STUDIES, Study};

/// Measuring needs Linux.
#[cfg(not(target_os = "linux"))]
const PROBES: &[&'static dyn Entry] = &[];

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  throng list
  throng list models --json
  throng list models epoll
  throng list studies overview --toml > mine.toml")]
pub(super) struct Arguments {
    /// What to list [default: everything].
    kind: Option<Kind>,
    /// Show all details of the entry of this name.
    name: Option<String>,
    /// Print the list as JSON.
    #[arg(long)]
    json: bool,
    /// Print a study as TOML, to copy and edit.
    #[arg(long, conflicts_with = "json")]
    toml: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    Models,
    Protocols,
    Probes,
    Studies,
    Exporters,
    Figures,
    Metrics,
    Findings,
}

/// An entry of any table.
#[derive(Serialize)]
struct TableEntry {
    name: &'static str,
    summary: &'static str,
    supported: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

fn listed<T: Entry + ?Sized>(entry: &&'static T) -> TableEntry {
    let info = entry.info();
    let unsupported = entry.supported().err();
    TableEntry {
        name: info.name,
        summary: info.summary,
        supported: unsupported.is_none(),
        reason: unsupported
            .as_ref()
            .map(|unsupported| unsupported.reason.clone()),
        remedy: unsupported.map(|unsupported| unsupported.remedy),
    }
}

impl Kind {
    fn title(self) -> &'static str {
        match self {
            Kind::Models => "models",
            Kind::Protocols => "protocols",
            Kind::Probes => "probes",
            Kind::Studies => "studies",
            Kind::Exporters => "exporters",
            Kind::Figures => "figures",
            Kind::Metrics => "metrics",
            Kind::Findings => "findings",
        }
    }

    fn singular(self) -> &'static str {
        match self {
            Kind::Models => "model",
            Kind::Protocols => "protocol",
            Kind::Probes => "probe",
            Kind::Studies => "study",
            Kind::Exporters => "exporter",
            Kind::Figures => "figure",
            Kind::Metrics => "metric",
            Kind::Findings => "finding",
        }
    }

    /// The names of its entries.
    pub(super) fn names(self) -> Vec<&'static str> {
        let entries = self.entries().into_iter();
        entries.map(|entry| entry.name).collect()
    }

    fn entries(self) -> Vec<TableEntry> {
        match self {
            Kind::Models => MODELS.iter().map(listed).collect(),
            Kind::Protocols => PROTOCOLS.iter().map(listed).collect(),
            Kind::Probes => PROBES.iter().map(listed).collect(),
            Kind::Studies => STUDIES.iter().map(listed).collect(),
            Kind::Exporters => EXPORTERS.iter().map(listed).collect(),
            Kind::Figures => FIGURES.iter().map(listed).collect(),
            Kind::Metrics => METRICS.iter().map(|metric| listed(&metric)).collect(),
            Kind::Findings => FINDINGS.iter().map(listed).collect(),
        }
    }
}

impl Kind {
    /// The entries as JSON, including the fields that only their kind has.
    fn values(self) -> serde_json::Result<Vec<serde_json::Value>> {
        match self {
            Kind::Metrics => METRICS.iter().map(with_details).collect(),
            Kind::Findings => FINDINGS.iter().copied().map(with_details).collect(),
            _ => self.entries().iter().map(serde_json::to_value).collect(),
        }
    }
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    match (arguments.kind, &arguments.name) {
        (Some(Kind::Studies), Some(name)) if arguments.toml => {
            output::text(registry::find("study", STUDIES, name)?.toml)?;
        }
        _ if arguments.toml => {
            return Err(
                Usage("--toml needs a study: throng list studies NAME --toml".into()).into(),
            );
        }
        (Some(kind), Some(name)) => one(kind, name, arguments.json)?,
        (Some(kind), None) if arguments.json => output::json(&kind.values()?)?,
        (Some(kind), None) => output::text(&table(kind))?,
        (None, _) if arguments.json => {
            let all: serde_json::Map<String, serde_json::Value> = Kind::value_variants()
                .iter()
                .map(|kind| Ok((kind.title().to_owned(), kind.values()?.into())))
                .collect::<serde_json::Result<_>>()?;
            output::json(&all)?;
        }
        (None, _) => {
            let tables: Vec<String> = Kind::value_variants()
                .iter()
                .map(|kind| brief(*kind))
                .collect();
            output::text(&tables.join("\n"))?;
        }
    }
    Ok(Exit::Done)
}

fn table(kind: Kind) -> String {
    let bold = anstyle::Style::new().bold();
    let mut text = format!("{bold}{}{bold:#}\n", kind.title());
    if kind == Kind::Metrics {
        for metric in METRICS {
            let _ = writeln!(text, "  {:<44} {}", metric.name, described(metric));
        }
        return text;
    }
    for entry in kind.entries() {
        let _ = writeln!(text, "  {:<18} {}", entry.name, entry.summary);
        if let (Some(reason), Some(remedy)) = (entry.reason, entry.remedy) {
            let _ = writeln!(text, "  {:<18} not supported here: {reason}; {remedy}", "");
        }
    }
    text
}

/// The table for `throng list` without a kind, which omits long lists.
fn brief(kind: Kind) -> String {
    let (count, what) = match kind {
        Kind::Metrics => (METRICS.len(), "for thresholds and studies"),
        Kind::Findings => (FINDINGS.len(), "about what is wrong with a result"),
        _ => return table(kind),
    };
    let (bold, title) = (anstyle::Style::new().bold(), kind.title());
    format!("{bold}{title}{bold:#}\n  {count} {title} {what}: throng list {title}\n")
}

/// The meaning of a metric, with its unit, better direction and source in parentheses.
fn described(metric: &Metric) -> String {
    format!("{} ({})", metric.help, metric.terms())
}

fn one(kind: Kind, name: &str, json: bool) -> anyhow::Result<()> {
    match kind {
        Kind::Models => {
            let model = registry::find("model", MODELS, name)?;
            if json {
                output::json(&with_card(model)?)?;
            } else {
                output::text(&card(model))?;
            }
        }
        Kind::Findings => {
            let finding = registry::find("finding", FINDINGS, name)?;
            if json {
                output::json(&with_details(finding)?)?;
            } else {
                let (severity, remedy) = (finding.severity.text(), finding.remedy);
                output::text(&format!(
                    "{} ({severity}): {}\n\n  remedy: {remedy}",
                    finding.name, finding.meaning
                ))?;
            }
        }
        Kind::Studies if !json => output::text(&Study::find(name)?.describe())?,
        #[cfg(target_os = "linux")]
        Kind::Probes => probe(name, json)?,
        Kind::Metrics => {
            let metric = metrics::find(name).map_err(|unknown| Usage(unknown.to_string()))?;
            if json {
                output::json(&with_details(metric)?)?;
            } else {
                output::text(&format!("{}: {}", metric.name, described(metric)))?;
            }
        }
        _ => {
            let entries = kind.entries();
            let Some(entry) = entries.iter().find(|entry| entry.name == name) else {
                return Err(UnknownName {
                    kind: kind.singular(),
                    name: name.to_owned(),
                    suggestion: registry::closest(name, &kind.names()),
                    known: kind.names(),
                }
                .into());
            };
            if json {
                output::json(entry)?;
            } else {
                output::text(&format!("{}: {}", entry.name, entry.summary))?;
            }
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn probe(name: &str, json: bool) -> anyhow::Result<()> {
    let probe = registry::find("probe", PROBES, name)?;
    if json {
        return output::json(&probe.metrics);
    }
    let mut text = format!("{}: {}\n\n", probe.info().name, probe.info().summary);
    for metric in probe.metrics {
        let _ = writeln!(text, "  {:<44} {}", metric.name, metric.help);
    }
    output::text(&text)
}

fn with_card(model: &'static Model) -> serde_json::Result<serde_json::Value> {
    let mut value = serde_json::to_value(listed(&model))?;
    let card = serde_json::to_value(model.card)?;
    if let (Some(value), serde_json::Value::Object(card)) = (value.as_object_mut(), card) {
        value.extend(card);
    }
    Ok(value)
}

/// An entry with the fields of its own kind.
fn with_details<T: Entry + Serialize>(entry: &'static T) -> serde_json::Result<serde_json::Value> {
    let mut value = serde_json::to_value(listed(&entry))?;
    let details = serde_json::to_value(entry)?;
    if let (Some(value), serde_json::Value::Object(details)) = (value.as_object_mut(), details) {
        value.extend(details);
    }
    Ok(value)
}

fn card(model: &'static Model) -> String {
    let Card {
        idea,
        waits_in,
        system_calls,
        processes,
        good_at,
        breaks_when,
        source,
        limit,
        page: _,
        waits: _,
    } = model.card;
    let mut text = format!("{}: {}\n\n", model.info().name, model.info().summary);
    for (name, value) in [
        ("idea", idea),
        ("waits in", waits_in),
        ("system calls", system_calls),
        ("processes", processes),
        ("good at", good_at),
        ("weak when", breaks_when),
        ("limit", limit),
        ("source", source),
    ] {
        if !value.is_empty() {
            let _ = writeln!(text, "  {name:<13} {value}");
        }
    }
    text
}
