//! A study as text: its parts, servers, loads, and estimated duration.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use super::options::Value;
use super::scale::number;
use super::server::ServerKind;
use super::{Part, Study};
#[cfg(target_os = "linux")]
use crate::measure::probes;
use crate::record::format::{about, counted, list, whole};
use crate::record::{Purpose, duration};
use crate::spec::read_time;

/// Defaults of a search: its start and end, the usual number of trials for closing in, and the number of trials below
/// the limit.
const USUAL_FROM: u32 = 16;
const USUAL_MAX: u32 = 10_000;
const CLOSING_IN: u32 = 5;
const BELOW_A_LIMIT: u32 = 2;

impl Study {
    /// The estimated duration, if short-lived clients take `job` each, not counting think time.
    pub fn about(&self, job: Duration) -> Duration {
        self.parts.iter().map(|part| part.about(job)).sum()
    }

    /// A description for a terminal.
    pub fn describe(&self) -> String {
        let mut text = format!("{}: {}\n", self.name, self.question);
        if let Some(summary) = &self.summary {
            let _ = writeln!(text, "\n{}", summary.trim());
        }
        if let Some(source) = &self.source {
            let _ = writeln!(text, "\nPublished figures: {}", source.trim());
        }
        for part in &self.parts {
            let _ = writeln!(text, "\n{}", part.describe(self.flat));
        }
        if !self.claims.is_empty() {
            text += "\nclaims\n";
        }
        for claim in &self.claims {
            let _ = writeln!(text, "  {}", claim.text);
        }
        let least = about(self.about(Duration::ZERO));
        let jobs = |part: &Part| part.requests_of_a_job().is_some();
        if self.parts.iter().any(jobs) {
            let _ = write!(
                text,
                "\nIt takes at least about {least}. Parts that run until every client is done may take longer."
            );
        } else {
            let _ = write!(text, "\nIt takes about {least}.");
        }
        text
    }
}

impl Part {
    /// The estimated duration, if short-lived clients take `job` each, not counting think time.
    fn about(&self, job: Duration) -> Duration {
        let servers = self.server_names().len() as u32;
        if self.is_search() {
            return self.search() * servers;
        }
        let measured_twice = u32::from(
            self.control
                .as_ref()
                .is_none_or(|name| name.get_ref() != "none"),
        );
        let in_a_round = servers + measured_twice + u32::from(self.ceiling);
        let below_the_maximum = servers * self.latency_at.len() as u32;
        let beside = purposes_beside(self.probes.get_ref());
        let job = self.requests_of_a_job().map_or(Duration::ZERO, |_| job);
        let of_clients = |clients: &u32| {
            let trial = |purpose| duration::of_trial(&self.load, *clients, purpose) + job;
            let timed = match self.slices {
                Some(slices) => duration::side_by_side(&self.load, *clients, in_a_round, slices),
                None => trial(Purpose::Timed) * in_a_round * self.runs,
            };
            let counted: Duration = beside.iter().copied().map(trial).sum();
            timed
                + trial(Purpose::AtLoad) * below_the_maximum
                + counted * servers * self.profiled_runs
        };
        self.clients.iter().map(of_clients).sum()
    }

    /// Requests per client, if clients are short-lived.
    fn requests_of_a_job(&self) -> Option<u32> {
        self.load.requests_per_client
    }

    /// The estimated duration of a search for a server's limit. The search rises, closes in, then confirms the result,
    /// mostly with fewer clients than the maximum.
    fn search(&self) -> Duration {
        let option = |name: &str, usual: u32| number(&self.limit, name).unwrap_or(usual);
        let most = option("max", USUAL_MAX);
        let rises = (most / option("from", USUAL_FROM).min(most).max(1)).ilog2();
        let tries = (rises + CLOSING_IN + 2 * option("confirm", 3)).min(option("tries", 60));
        let clients = number(&self.limit, "clients").unwrap_or(most / 2);
        let each = duration::of_trial(&self.load, clients, Purpose::Search);
        let limit = match self.limit.get("search-time").map(|choice| &choice.value) {
            Some(Value::Typed(values)) => values.first().and_then(|time| read_time(time).ok()),
            _ => None,
        };
        (each * tries).min(limit.unwrap_or(Duration::from_mins(10))) + each * BELOW_A_LIMIT
    }

    fn describe(&self, alone: bool) -> String {
        let mut text = String::new();
        if !alone {
            let _ = writeln!(
                text,
                "{}: {}",
                self.name(),
                self.question.clone().unwrap_or_else(|| self.heading())
            );
        }
        let servers = if self.servers.is_empty() {
            vec!["every model that this machine supports".to_owned()]
        } else {
            self.servers
                .iter()
                .map(|server| match &server.kind {
                    ServerKind::Own { model, options } => {
                        let words = std::iter::once(model.clone()).chain(options.words());
                        let command = words.collect::<Vec<_>>().join(" ");
                        if command == server.info.name {
                            command
                        } else {
                            format!("{} ({command})", server.info.name)
                        }
                    }
                    ServerKind::Foreign { command, .. } => {
                        format!("{} ({})", server.info.name, command.join(" "))
                    }
                })
                .collect()
        };
        let clients: Vec<String> = self
            .clients
            .iter()
            .map(|clients| whole(f64::from(*clients)))
            .collect();
        let by_itself = [
            "duration",
            "warm-up",
            "connect-timeout",
            "first-reply-timeout",
        ];
        let load = self.load.flags_without(&by_itself).join(" ");
        let _ = writeln!(text, "  servers   {}", list(&servers));
        if self.is_search() {
            let limit = self.limit.words().join(" ");
            let _ = writeln!(
                text,
                "  limit     {}",
                format!("throng limit {limit}").trim()
            );
        } else {
            let _ = writeln!(text, "  clients   {}", clients.join("; "));
        }
        if !load.is_empty() {
            let _ = writeln!(text, "  load      {load}");
        }
        let least = about(self.about(Duration::ZERO));
        if let Some(slices) = self.slices {
            let seconds = slices.as_secs_f64();
            let _ = write!(
                text,
                "  slices    side by side, {seconds} s with each number of clients; about {least}"
            );
            return text;
        }
        let trials = if self.is_search() {
            "as many as it takes".to_owned()
        } else {
            counted(self.runs, "trial") + " each"
        };
        let lasting = match self.requests_of_a_job() {
            Some(_) => format!("until every client is done; at least about {least}"),
            None => format!(
                "replies count for {} s after {} s; about {least}",
                self.load.duration.unwrap_or_default().as_secs_f64(),
                self.load.warm_up.as_secs_f64()
            ),
        };
        let _ = write!(text, "  trials    {trials}, {lasting}");
        text
    }
}

/// The purposes of trials in addition to the timed ones: counting events, capturing packets.
#[cfg(target_os = "linux")]
fn purposes_beside(names: &[String]) -> BTreeSet<Purpose> {
    probes::choose(names).map_or(BTreeSet::new(), |kinds| probes::other_purposes(&kinds))
}

/// Nothing is measured on this system.
#[cfg(not(target_os = "linux"))]
fn purposes_beside(_names: &[String]) -> BTreeSet<Purpose> {
    BTreeSet::new()
}
