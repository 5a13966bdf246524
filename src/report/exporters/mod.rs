//! The forms a report is written in.
//!
//! A new form is one file here, its `mod` line and its line in [`EXPORTERS`].

pub(crate) mod html;
mod json;
pub(super) mod markdown;
mod openmetrics;

use std::io::Write;

use super::Report;
use super::format::{ABSENT, bytes, list, or_absent, whole};
use super::study::StudyReport;
use crate::record::{Run, Settings};
use crate::registry::Entry;

/// Every form, in the order in which they are written.
pub const EXPORTERS: &[&dyn Exporter] = &[
    &html::Html,
    &markdown::Markdown,
    &json::Json,
    &openmetrics::OpenMetrics,
];

/// A form a report is written in.
pub trait Exporter: Entry + Sync {
    /// Name of the file in the record's directory.
    fn file_name(&self) -> &'static str;

    /// Writes the report.
    ///
    /// # Errors
    /// When `to` cannot be written.
    fn render(&self, report: &Report<'_>, to: &mut dyn Write) -> anyhow::Result<()>;

    /// Writes the report of a study of several parts.
    ///
    /// # Errors
    /// When `to` cannot be written.
    fn render_study(&self, report: &StudyReport<'_>, to: &mut dyn Write) -> anyhow::Result<()>;
}

/// The settings and the machine, as (name, value).
pub(super) fn facts(run: &Run) -> Vec<(&'static str, String)> {
    let mut facts = of_settings(run);
    facts.extend(of_host(run));
    facts
}

fn of_settings(run: &Run) -> Vec<(&'static str, String)> {
    let settings = &run.settings;
    let cpus = |cpus: &[u32]| {
        if cpus.is_empty() {
            "not bound".to_owned()
        } else {
            list(&cpus.iter().map(ToString::to_string).collect::<Vec<_>>())
        }
    };
    let facts = vec![
        ("Protocol", said(run)),
        ("Load", options(settings)),
        ("Repeats", settings.repeats.to_string()),
        ("Steady part", steady_part(settings)),
        (
            "Connect timeout",
            format!("{} s", settings.connect_timeout_s),
        ),
        (
            "Patience",
            format!("{} s without a new first answer", settings.patience_s),
        ),
        ("Accept queue asked for", whole(f64::from(settings.backlog))),
        ("Server CPUs", cpus(&settings.server_cpus)),
        ("Client CPUs", cpus(&settings.client_cpus)),
        ("Load threads", settings.load_threads.to_string()),
        ("Seed", run.seed.to_string()),
    ];
    facts
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .collect()
}

/// When replies count.
fn steady_part(settings: &Settings) -> String {
    if settings.has_jobs() {
        return "the whole load, until all clients are done".to_owned();
    }
    format!(
        "{} s, after {} s of warm-up",
        settings.duration_s, settings.warm_up_s
    )
}

/// What is said, in words.
fn said(run: &Run) -> String {
    let settings = &run.settings;
    if settings.dialogue.is_empty() {
        return format!(
            "{}, {} bytes a request",
            settings.protocol,
            whole(settings.size_bytes as f64)
        );
    }
    settings.dialogue.clone()
}

/// What else a load was told about what to say and when.
fn options(settings: &Settings) -> String {
    let plain = |option: &&String| {
        let common = ["--protocol=", "--size=", "--path=", "--send=", "--expect="];
        !common.iter().any(|common| option.starts_with(common))
    };
    let options: Vec<&str> = settings
        .load_options
        .iter()
        .filter(plain)
        .map(String::as_str)
        .collect();
    options.join(" ")
}

fn of_host(run: &Run) -> Vec<(&'static str, String)> {
    let host = &run.host;
    let optional = |value: &Option<String>| value.clone().unwrap_or_else(|| ABSENT.to_owned());
    let count = |value: Option<u64>| or_absent(value.map(|value| value as f64), whole);
    vec![
        ("Kernel", host.kernel.clone()),
        (
            "CPU",
            format!("{}, {} usable", optional(&host.cpu_model), host.cpus),
        ),
        (
            "Memory",
            or_absent(host.memory_bytes.map(|value| value as f64), bytes),
        ),
        (
            "Virtual machine",
            host.virtual_machine
                .clone()
                .unwrap_or_else(|| "no sign of one".to_owned()),
        ),
        ("Governor", optional(&host.governor)),
        (
            "Simultaneous multithreading",
            optional(&host.simultaneous_threads),
        ),
        ("Clock source", optional(&host.clock_source)),
        ("Huge pages", optional(&host.huge_pages)),
        ("C library", optional(&host.libc)),
        ("somaxconn", count(host.somaxconn.map(u64::from))),
        (
            "Descriptors, soft and hard limit",
            format!(
                "{} and {}",
                count(host.descriptors_soft),
                count(host.descriptors_hard)
            ),
        ),
        (
            "Ephemeral ports",
            host.ephemeral_ports.map_or_else(
                || ABSENT.to_owned(),
                |(first, last)| format!("{first} to {last}"),
            ),
        ),
        (
            "Load average at the start",
            or_absent(host.load_average_1min, |load| format!("{load:.2}")),
        ),
        ("Started", run.started_at.clone()),
        ("Finished", optional(&run.finished_at)),
        (
            "throng",
            [run.throng_version.as_str(), run.throng_build.as_str()]
                .join(" ")
                .trim_end()
                .to_owned(),
        ),
    ]
}

/// The command line that repeats the run, quoted for a shell.
pub(super) fn command_line(arguments: &[String]) -> String {
    let quoted: Vec<String> = arguments.iter().map(|argument| quote(argument)).collect();
    quoted.join(" ")
}

fn quote(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=@%+".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_quoted_for_a_shell() {
        let arguments = ["throng", "compare", "node server.js {port}", "it's"].map(str::to_owned);
        assert_eq!(
            command_line(&arguments),
            r"throng compare 'node server.js {port}' 'it'\''s'"
        );
    }
}
