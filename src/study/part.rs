//! One part of a study: servers under one kind of load, and what was published about them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::options::Options;
use super::published::Published;
use super::server::ServerSpec;
use super::values::{
    at_least_one, clients, loss, named_model, optional_positive_time, percents, positive_time,
    spanned_name,
};
use crate::record;
use crate::record::metrics::{METRICS, Metric};
use crate::record::spec::LoadSpec;
use crate::serve::models::MODELS;

/// Where keys stand in a file: their names, and their values.
pub(super) type Places = BTreeMap<String, (Range<usize>, Range<usize>)>;

/// A part as written, with what it takes from the study.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Part {
    /// Its name: that of its directory, and how claims call it.
    #[serde(deserialize_with = "spanned_name")]
    name: Spanned<String>,
    /// Its heading in the report.
    pub title: Option<String>,
    /// The question it answers, one line.
    pub question: Option<String>,
    /// What is done with its servers.
    #[serde(default)]
    kind: Kind,
    /// The servers; empty: every model that this machine supports.
    #[serde(default)]
    pub servers: Vec<ServerSpec>,
    /// Models to leave out, and why.
    #[serde(default)]
    pub without: Vec<Without>,
    /// Options of `throng serve` by model, where no servers are listed.
    #[serde(default)]
    pub options: BTreeMap<String, Options>,
    /// What its clients do; how many there are, `clients` says.
    #[serde(skip)]
    pub load: LoadSpec,
    /// Where that stands in the file, by its keys.
    #[serde(skip)]
    pub(super) load_places: Places,
    /// Options of `throng limit`, where that is what is done.
    #[serde(default)]
    pub limit: Options,
    /// Numbers of clients; none where their limit is searched for.
    #[serde(default, deserialize_with = "clients")]
    pub clients: Vec<u32>,
    /// Trials of each server with each number of clients.
    #[serde(default = "defaults::runs", deserialize_with = "at_least_one")]
    pub runs: u32,
    /// Time for all slices with the same number of clients, where servers are measured side by side and not in trials
    /// of their own.
    #[serde(default, deserialize_with = "optional_positive_time")]
    pub slices: Option<Duration>,
    /// Trials of each server with each number of clients that count events and capture packets.
    #[serde(default = "defaults::profiled_runs", deserialize_with = "at_least_one")]
    pub profiled_runs: u32,
    /// How long a server may take from its start until it is ready.
    #[serde(
        default = "defaults::ready_timeout",
        deserialize_with = "positive_time"
    )]
    pub ready_timeout: Duration,
    /// How long a server that is not one of throng's own may take to stop before it is killed.
    #[serde(default = "defaults::stop_timeout", deserialize_with = "positive_time")]
    pub stop_timeout: Duration,
    /// How long a command before or after a trial may take.
    #[serde(default = "defaults::hook_timeout", deserialize_with = "positive_time")]
    pub hook_timeout: Duration,
    /// listen() backlog.
    #[serde(default = "defaults::backlog", deserialize_with = "at_least_one")]
    pub backlog: u32,
    /// Parts of the rate that each server reached at which its response time is taken, in percent.
    #[serde(default, deserialize_with = "percents")]
    pub latency_at: Vec<u32>,
    /// What measures: names of probes, `default`, `all` or `none`.
    #[serde(default = "defaults::probes")]
    pub probes: Spanned<Vec<String>>,
    /// The server that runs twice as a control, or `none`.
    pub control: Option<Spanned<String>>,
    /// Percentage of packets to drop.
    #[serde(default, deserialize_with = "loss")]
    pub loss: Option<f64>,
    /// Whether server and clients are bound to CPUs of their own.
    #[serde(default = "defaults::pinned")]
    pub pinned: bool,
    /// Whether to measure a minimal server too.
    #[serde(default = "defaults::ceiling")]
    pub ceiling: bool,
    /// Whether numbers of clients that this machine cannot hold, and servers that cannot run on it, are
    /// left out with the reason, instead of the whole part.
    #[serde(default)]
    pub as_far_as_possible: bool,
    /// What was published, as written.
    #[serde(default)]
    pub(super) published: Vec<Published>,
    /// What it shows, each with a question of its own.
    #[serde(default, rename = "scene")]
    pub scenes: Vec<record::Scene>,
    /// The same as it stands in a record.
    #[serde(skip)]
    pub figures: Vec<record::Published>,
    /// Numbers of clients as written, whatever becomes of them.
    #[serde(skip)]
    pub written_clients: Vec<u32>,
    /// The part as it is for a quick look, where the file says anything about that, and the keys it says
    /// there, with those of its tables of options.
    #[serde(skip)]
    pub(super) quick: Option<Box<(Part, Vec<String>)>>,
    /// The part as it is for publication, where the file says anything about that.
    #[serde(skip)]
    pub(super) full: Option<Box<Part>>,
    /// What was made smaller, in words.
    #[serde(skip)]
    pub scaled: Vec<String>,
}

/// A model that does not take part.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Without {
    #[serde(deserialize_with = "named_model")]
    pub model: String,
    /// The number of clients above which it does not; absent: it takes no part at all.
    pub above: Option<u32>,
    /// Why: "it serves one client at a time".
    pub why: String,
}

/// What a part does with its servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    /// They run trials, as with `throng run`.
    #[default]
    Run,
    /// Their limit is searched for, as with `throng limit`.
    Limit,
}

impl Part {
    /// Whether it searches for the limit of its servers.
    pub fn is_search(&self) -> bool {
        self.kind == Kind::Limit
    }

    /// Whether a metric can be measured in it.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn measures(&self, metric: &Metric) -> Result<(), String> {
        let (metric_name, name) = (metric.name, self.name());
        match (self.is_search(), metric.is_of_search()) {
            (true, false) => {
                let of_search = METRICS.iter().filter(|metric| metric.is_of_search());
                let there: Vec<_> = of_search.map(|metric| metric.name).collect();
                let there = there.join(", ");
                Err(format!(
                    "the part `{name}` searches for a limit, which has no metric `{metric_name}`; expected one of: {there}"
                ))
            }
            (false, true) => Err(format!(
                "the part `{name}` has no metric `{metric_name}`, which needs `kind = \"limit\"`"
            )),
            _ => Ok(()),
        }
    }

    pub fn name(&self) -> &str {
        self.name.get_ref()
    }

    /// Where that stands in the file.
    pub(super) fn name_at(&self) -> Range<usize> {
        self.name.span()
    }

    /// Where a key of the load stands in the file, or its value; none where it does not.
    pub fn load_place(&self, key: &str, is_value: bool) -> Option<Range<usize>> {
        let (name, value) = self.load_places.get(key)?;
        Some(if is_value { value } else { name }.clone())
    }

    /// Sets the probes.
    pub fn set_probes(&mut self, names: &[String]) {
        self.probes = Spanned::new(self.probes.span(), names.to_vec());
    }

    /// A model, for a part without a list of servers.
    pub fn server_of(&self, model: &str) -> ServerSpec {
        let options = self.options.get(model).cloned().unwrap_or_default();
        ServerSpec::of_model(model, options)
    }

    /// Why a server is left out, if it is.
    pub fn excludes(&self, server: &ServerSpec) -> Option<&str> {
        let mut without = self.without.iter();
        let excluded =
            without.find(|excluded| excluded.above.is_none() && server.is(&excluded.model))?;
        Some(&excluded.why)
    }

    /// The most clients that a server is measured with, and why not more, if it has such a bound.
    pub fn most_clients(&self, server: &ServerSpec) -> Option<(u32, &str)> {
        let mut without = self.without.iter();
        without.find_map(|excluded| {
            let above = excluded.above.filter(|_| server.is(&excluded.model))?;
            Some((above, excluded.why.as_str()))
        })
    }

    /// The heading in the report.
    pub fn heading(&self) -> &str {
        self.title.as_deref().unwrap_or(self.name())
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
