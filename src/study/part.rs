//! One part of a study: servers under one kind of load, and published figures about them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::options::Options;
use super::published::Published;
use super::server::ServerSpec;
use super::values::{
    at_least_one, clients, conditions, link, named_model, optional_positive_time, percents,
    positive_time, spanned_name,
};
use crate::record;
use crate::record::format::{counted, decimal_bytes, whole};
use crate::record::metrics::{METRICS, Metric};
use crate::serve::models::MODELS;
use crate::spec::LoadSpec;

/// Positions of keys in a file: those of their names and of their values.
pub(super) type Places = BTreeMap<String, (Range<usize>, Range<usize>)>;

/// A part as written, including the keys that it inherits from the study.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[expect(clippy::struct_excessive_bools, reason = "keys of a file")]
pub struct Part {
    /// Its name, used for its directory and in claims.
    #[serde(deserialize_with = "spanned_name")]
    name: Spanned<String>,
    /// Its heading in the report.
    pub title: Option<String>,
    /// Its question, on one line.
    pub question: Option<String>,
    /// What the part does with its servers.
    #[serde(default)]
    kind: Kind,
    /// Its servers; if empty, every model that this machine supports.
    #[serde(default)]
    pub servers: Vec<ServerSpec>,
    /// Models to leave out, with the reasons.
    #[serde(default)]
    pub without: Vec<LeftOutModel>,
    /// Options of `throng serve` by model, if no servers are listed.
    #[serde(default)]
    pub options: BTreeMap<String, Options>,
    /// What its clients do. The number of clients is in `clients`.
    #[serde(skip)]
    pub load: LoadSpec,
    /// Positions of the load's keys in the file.
    #[serde(skip)]
    pub(super) load_places: Places,
    /// Options of `throng limit`, for a search.
    #[serde(default)]
    pub limit: Options,
    /// Numbers of clients; empty if the part searches for the limit.
    #[serde(default, deserialize_with = "clients")]
    pub clients: Vec<u32>,
    /// Trials per server and number of clients.
    #[serde(default = "defaults::runs", deserialize_with = "at_least_one")]
    pub runs: u32,
    /// Time for all slices with the same number of clients, if servers are measured side by side.
    #[serde(default, deserialize_with = "optional_positive_time")]
    pub slices: Option<Duration>,
    /// Trials per server and number of clients that count events and capture packets.
    #[serde(default = "defaults::profiled_runs", deserialize_with = "at_least_one")]
    pub profiled_runs: u32,
    /// Time limit until a server is ready.
    #[serde(
        default = "defaults::ready_timeout",
        deserialize_with = "positive_time"
    )]
    pub ready_timeout: Duration,
    /// Time limit for a server to stop before it is killed. Built-in servers have their own limit.
    #[serde(default = "defaults::stop_timeout", deserialize_with = "positive_time")]
    pub stop_timeout: Duration,
    /// Time limit of a command before or after a trial.
    #[serde(default = "defaults::hook_timeout", deserialize_with = "positive_time")]
    pub hook_timeout: Duration,
    /// listen() backlog.
    #[serde(default = "defaults::backlog", deserialize_with = "at_least_one")]
    pub backlog: u32,
    /// Percentages of each server's highest rate at which response time is measured.
    #[serde(default, deserialize_with = "percents")]
    pub latency_at: Vec<u32>,
    /// Names of probes, `default`, `all` or `none`.
    #[serde(default = "defaults::probes")]
    pub probes: Spanned<Vec<String>>,
    /// The server to run twice as a control, or `none`.
    pub control: Option<Spanned<String>>,
    /// The link between clients and servers.
    #[serde(default, deserialize_with = "link")]
    pub link: Option<record::Link>,
    /// CPUs for the servers, and for the clients; if only one side has any, the other gets the rest.
    #[serde(default)]
    pub server_cpus: Vec<u32>,
    #[serde(default)]
    pub client_cpus: Vec<u32>,
    /// Whether the server and the clients are bound to separate CPUs.
    #[serde(default = "defaults::pinned")]
    pub pinned: bool,
    /// The name of its figure that answers the question of the study, together with its first sentence.
    pub answer: Option<Spanned<String>>,
    /// Whether trials count although some clients got nothing.
    #[serde(default)]
    pub unserved_counts: bool,
    /// Conditions that each trial of a test case meets, like `errors = 0`.
    #[serde(default, deserialize_with = "conditions")]
    expect: Vec<String>,
    /// The stage in which each trial of a test case fails.
    expect_failure: Option<record::FailedStage>,
    /// Whether to also measure a minimal server.
    #[serde(default = "defaults::ceiling")]
    pub ceiling: bool,
    /// Whether to skip only the numbers of clients and the servers that this machine cannot run, with the reason,
    /// instead of the whole part.
    #[serde(default)]
    pub as_far_as_possible: bool,
    /// Published figures, as written.
    #[serde(default)]
    pub(super) published: Vec<Published>,
    /// Its scenes, each with its own question.
    #[serde(default, rename = "scene")]
    pub scenes: Vec<record::Scene>,
    /// Published figures, resolved for the record.
    #[serde(skip)]
    pub figures: Vec<record::Published>,
    /// Numbers of clients as written, before any scaling.
    #[serde(skip)]
    pub written_clients: Vec<u32>,
    /// The variant for a quick look, if the file has one, and the keys that it sets, including those in its tables of
    /// options.
    #[serde(skip)]
    pub(super) quick: Option<Box<(Part, Vec<String>)>>,
    /// The variant for publication, if the file has one.
    #[serde(skip)]
    pub(super) full: Option<Box<Part>>,
    /// The settings that were scaled down: "1 instead of 7" by name.
    #[serde(skip)]
    pub scaled: BTreeMap<String, String>,
}

/// A model that is left out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOutModel {
    #[serde(deserialize_with = "named_model")]
    pub model: String,
    /// The number of clients above which it is left out; `None` to leave it out always.
    pub above: Option<u32>,
    /// The reason, like "it serves one client at a time".
    pub why: String,
}

/// What a part does with its servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    /// Runs trials, like `throng run`.
    #[default]
    Run,
    /// Searches for their limit, like `throng limit`.
    Limit,
}

impl Part {
    /// Whether the part searches for the limit of its servers.
    pub fn is_search(&self) -> bool {
        self.kind == Kind::Limit
    }

    /// Checks that the part can measure a metric.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub(super) fn measures(&self, metric: &Metric) -> Result<(), String> {
        let (metric_name, name) = (metric.name, self.name());
        if self.is_search() && !metric.is_of_search() {
            let of_search = METRICS.iter().filter(|one| one.is_of_search());
            let names: Vec<_> = of_search.map(|one| one.name).collect();
            let there = names.join(", ");
            return Err(format!(
                "the part `{name}` searches for a limit, which has no metric `{metric_name}`; expected one of: {there}"
            ));
        }
        if !self.is_search() && !metric.is_of_trials() {
            return Err(format!(
                "the part `{name}` has no metric `{metric_name}`, which needs `kind = \"limit\"`"
            ));
        }
        Ok(())
    }

    pub fn name(&self) -> &str {
        self.name.get_ref()
    }

    /// The position of its name in the file.
    pub(super) fn name_at(&self) -> Range<usize> {
        self.name.span()
    }

    /// The position of a key of the load, or of its value; `None` if the load does not come from the file.
    pub fn load_place(&self, key: &str, is_value: bool) -> Option<Range<usize>> {
        let (name, value) = self.load_places.get(key)?;
        Some(if is_value { value } else { name }.clone())
    }

    /// What is expected of each trial, if the part is a test case.
    pub fn expected(&self) -> Option<record::Expected> {
        let is_case = !self.expect.is_empty() || self.expect_failure.is_some();
        is_case.then(|| record::Expected {
            conditions: self.expect.clone(),
            failure: self.expect_failure,
        })
    }

    /// Sets the probes.
    pub fn set_probes(&mut self, names: &[String]) {
        self.probes = Spanned::new(self.probes.span(), names.to_vec());
    }

    /// The server for a model, for a part without a list of servers.
    pub fn server_of(&self, model: &str) -> ServerSpec {
        let options = self.options.get(model).cloned().unwrap_or_default();
        ServerSpec::of_model(model, options)
    }

    /// Why a server is left out; `None` if it is not.
    pub fn excludes(&self, server: &ServerSpec) -> Option<&str> {
        let mut without = self.without.iter();
        let excluded =
            without.find(|excluded| excluded.above.is_none() && server.is(&excluded.model))?;
        Some(&excluded.why)
    }

    /// The maximum number of clients for a server and the reason, if the part sets one.
    pub fn max_clients(&self, server: &ServerSpec) -> Option<(u32, &str)> {
        let mut without = self.without.iter();
        without.find_map(|excluded| {
            let above = excluded.above.filter(|_| server.is(&excluded.model))?;
            Some((above, excluded.why.as_str()))
        })
    }

    /// The heading in the report.
    pub fn heading(&self) -> String {
        self.filled(self.title.as_deref().unwrap_or(self.name()), None)
    }

    /// A title with the numbers that the part has at its scale.
    pub fn filled(&self, title: &str, wanted: Option<u32>) -> String {
        let known = wanted.filter(|own| self.clients.contains(own));
        let clients = known.or(self.clients.last().copied()).unwrap_or_default();
        let duration = self.load.duration.unwrap_or_default();
        let sizes: Vec<String> = self
            .load
            .size
            .parts()
            .iter()
            .map(|(size, _)| decimal_bytes(*size))
            .collect();
        let size = match sizes.as_slice() {
            [sizes @ .., last] if !sizes.is_empty() => format!("{} or {last}", sizes.join(", ")),
            sizes => sizes.concat(),
        };
        [
            ("{clients}", whole(f64::from(clients))),
            ("{duration}", in_words(duration)),
            ("{think}", in_words(self.load.think.named())),
            ("{size}", size),
        ]
        .iter()
        .fold(title.to_owned(), |filled, (place, text)| {
            filled.replace(place, text)
        })
    }

    /// The names of the servers.
    pub fn server_names(&self) -> Vec<String> {
        if self.servers.is_empty() {
            let models = MODELS.iter().map(|model| model.info.name.to_owned());
            let is_in = |name: &String| self.excludes(&self.server_of(name)).is_none();
            return models.filter(is_in).collect();
        }
        self.servers
            .iter()
            .map(|server| server.info.name.clone())
            .collect()
    }
}

mod defaults {
    use std::time::Duration;

    use toml::Spanned;

    pub(super) fn runs() -> u32 {
        5
    }
    pub(super) fn profiled_runs() -> u32 {
        1
    }
    pub(super) fn stop_timeout() -> Duration {
        Duration::from_secs(30)
    }
    pub(super) fn ready_timeout() -> Duration {
        Duration::from_secs(10)
    }
    pub(super) fn hook_timeout() -> Duration {
        Duration::from_mins(1)
    }
    pub(super) fn backlog() -> u32 {
        4096
    }
    pub(super) fn probes() -> Spanned<Vec<String>> {
        Spanned::new(0..0, vec!["default".to_owned()])
    }
    pub(super) fn pinned() -> bool {
        true
    }
    pub(super) fn ceiling() -> bool {
        true
    }
}

/// "9 seconds", "50 ms".
fn in_words(time: Duration) -> String {
    match time.subsec_nanos() {
        0 => counted(time.as_secs() as u32, "second"),
        _ => format!("{} ms", whole(time.as_secs_f64() * 1e3)),
    }
}
