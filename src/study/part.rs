//! One part of a study: servers under one kind of load, and what was published about them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::options::Options;
use super::published::Published;
use crate::protocol::Pattern;
use crate::record;
use crate::record::metrics::{METRICS, Metric};
use crate::record::spec::{LoadSpec, read_time};
use crate::registry;
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
    /// What takes part; empty: every model this machine supports.
    #[serde(default)]
    pub servers: Vec<ServerSpec>,
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
    /// How often each server meets each crowd.
    #[serde(default = "defaults::runs", deserialize_with = "at_least_one")]
    pub runs: u32,
    /// Time for all slices with the same number of clients, where servers are measured side by side and not in trials
    /// of their own.
    #[serde(default, deserialize_with = "optional_positive_time")]
    pub slices: Option<Duration>,
    /// How often events are counted, and packets captured, of each server with each crowd.
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
    /// Accept-queue length asked for.
    #[serde(default = "defaults::backlog", deserialize_with = "at_least_one")]
    pub backlog: u32,
    /// Parts of the rate that each server reached at which its response time is taken, in percent.
    #[serde(default, deserialize_with = "percents")]
    pub latency_at: Vec<u32>,
    /// What measures: names of probes, `default`, `all` or `none`.
    #[serde(default = "defaults::probes")]
    pub probes: Spanned<Vec<String>>,
    /// The server that takes part a second time, as its own control, or `none`.
    pub control: Option<Spanned<String>>,
    /// Of a hundred packets so many are lost on purpose.
    #[serde(default, deserialize_with = "loss")]
    pub loss: Option<f64>,
    /// Whether server and clients are bound to CPUs of their own.
    #[serde(default = "defaults::pinned")]
    pub pinned: bool,
    /// Whether a server that does least takes part too.
    #[serde(default = "defaults::ceiling")]
    pub ceiling: bool,
    /// Whether numbers of clients that this machine cannot hold, and servers that cannot run on it, are
    /// left out with the reason, instead of the whole part.
    #[serde(default)]
    pub as_far_as_possible: bool,
    /// What was published, as written.
    #[serde(default)]
    pub(super) published: Vec<Published>,
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
    /// What was made smaller, in words.
    #[serde(skip)]
    pub scaled: Vec<String>,
}

/// What a part does with its servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    /// They meet crowds, as with `throng run`.
    #[default]
    Run,
    /// Their limit is searched for, as with `throng limit`.
    Limit,
}

/// One server that takes part: a model, or a command line.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerSpec {
    /// What it is.
    pub kind: ServerKind,
    /// The name it goes by.
    pub name: String,
    /// Where it stands in the file.
    pub(super) at: Range<usize>,
    /// Variables in its environment.
    pub environment: BTreeMap<String, String>,
    /// The command lines run once before all of its trials and once after them; none when empty.
    pub setup: Vec<String>,
    pub cleanup: Vec<String>,
    /// The command line run before each of its trials; none when empty.
    pub prepare: Vec<String>,
    /// The command line run after each of them.
    pub conclude: Vec<String>,
}

/// What a server is.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerKind {
    /// One of throng's own.
    Own {
        model: String,
        /// Options of `throng serve` for it.
        options: Options,
    },
    /// Anybody's.
    Foreign {
        /// Its command line, in words.
        command: Vec<String>,
        /// What says that it is ready.
        ready: Option<String>,
    },
}

/// A server as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    #[serde(default, deserialize_with = "model")]
    model: Option<Spanned<String>>,
    #[serde(default)]
    options: Options,
    command: Option<Spanned<Vec<String>>>,
    name: Option<String>,
    #[serde(default, deserialize_with = "pattern")]
    ready: Option<String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default)]
    setup: Vec<String>,
    #[serde(default)]
    cleanup: Vec<String>,
    #[serde(default)]
    prepare: Vec<String>,
    #[serde(default)]
    conclude: Vec<String>,
}

impl<'de> Deserialize<'de> for ServerSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ServerReader)
    }
}

/// What is wrong is said while the server is read, so that it is its place which is shown.
struct ServerReader;

impl<'de> Visitor<'de> for ServerReader {
    type Value = ServerSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a server, like { model = \"epoll\" }")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ServerSpec, A::Error> {
        use serde::de::Error as _;
        let written = Written::deserialize(MapAccessDeserializer::new(map))?;
        ServerSpec::of(written).map_err(A::Error::custom)
    }
}

impl ServerSpec {
    fn of(written: Written) -> Result<Self, &'static str> {
        let (at, usual_name, kind) = match (written.model, written.command) {
            (None, None) => return Err("a server has a `model` or a `command`"),
            (Some(_), Some(_)) => return Err("a server has a `model` or a `command`, not both"),
            (Some(_), None) if written.ready.is_some() => {
                return Err(
                    "`ready` belongs to a `command`; throng knows when its own servers are",
                );
            }
            (None, Some(_)) if written.options.iter().next().is_some() => {
                return Err("`options` are those of `throng serve`, and belong to a `model`");
            }
            (Some(model), None) => {
                let (at, model) = (model.span(), model.into_inner());
                let options = written.options;
                (at, model.clone(), ServerKind::Own { model, options })
            }
            (None, Some(command)) => {
                let (at, command) = (command.span(), command.into_inner());
                let Some(program) = command.first() else {
                    return Err("`command` needs at least one word");
                };
                let name = program.rsplit('/').next().unwrap_or(program).to_owned();
                let ready = written.ready;
                (at, name, ServerKind::Foreign { command, ready })
            }
        };
        Ok(Self {
            kind,
            name: written.name.unwrap_or(usual_name),
            at,
            environment: written.environment,
            setup: written.setup,
            cleanup: written.cleanup,
            prepare: written.prepare,
            conclude: written.conclude,
        })
    }
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
                    "the part `{name}` searches for a limit, of which there is no `{metric_name}`; there are: {there}"
                ))
            }
            (false, true) => Err(format!(
                "the part `{name}` has no `{metric_name}`, which comes of a part with `kind = \"limit\"`"
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

    /// Has these measure.
    pub fn set_probes(&mut self, names: &[String]) {
        self.probes = Spanned::new(self.probes.span(), names.to_vec());
    }

    /// The heading in the report.
    pub fn heading(&self) -> &str {
        self.title.as_deref().unwrap_or(self.name())
    }

    /// The names of those that take part.
    pub fn server_names(&self) -> Vec<String> {
        if self.servers.is_empty() {
            let models = MODELS.iter().map(|model| model.info.name.to_owned());
            return models.collect();
        }
        self.servers
            .iter()
            .map(|server| server.name.clone())
            .collect()
    }
}

impl ServerSpec {
    /// Whether it goes by this name, or is of the model of this name.
    pub fn is(&self, name: &str) -> bool {
        let of_model = matches!(&self.kind, ServerKind::Own { model, .. } if model == name);
        of_model || self.name == name
    }

    /// Where it stands in the file.
    pub fn place(&self) -> Range<usize> {
        self.at.clone()
    }

    /// A model as it is.
    pub fn of_model(name: &str) -> Self {
        Self {
            kind: ServerKind::Own {
                model: name.to_owned(),
                options: Options::default(),
            },
            name: name.to_owned(),
            at: 0..0,
            environment: BTreeMap::new(),
            setup: Vec::new(),
            cleanup: Vec::new(),
            prepare: Vec::new(),
            conclude: Vec::new(),
        }
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

fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    use serde::de::Error as _;
    let text = String::deserialize(from)?;
    read_time(&text).map_err(D::Error::custom)
}

fn positive_time<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    use serde::de::Error as _;
    match time(from)? {
        Duration::ZERO => Err(D::Error::custom("it must be longer than 0")),
        time => Ok(time),
    }
}

fn optional_positive_time<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Duration>, D::Error> {
    positive_time(from).map(Some)
}

/// A share of packets, like "0.1%".
fn loss<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    use serde::de::Error as _;
    let text = String::deserialize(from)?;
    let percent = text
        .strip_suffix('%')
        .and_then(|text| text.trim().parse().ok());
    match percent.filter(|percent| (0.001..=50.0).contains(percent)) {
        Some(percent) => Ok(Some(percent)),
        None => Err(D::Error::custom(
            "`loss` is from 0.001% to 50% of the packets, like \"0.1%\"",
        )),
    }
}

fn at_least_one<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    use serde::de::Error as _;
    match record::spec::whole(from)? {
        0 => Err(D::Error::custom("it must be at least 1")),
        number => Ok(number),
    }
}

/// Numbers of clients, rising.
fn clients<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u32>, D::Error> {
    use serde::de::Error as _;
    #[derive(Deserialize)]
    struct Number(#[serde(deserialize_with = "record::spec::whole")] u32);
    let numbers = Vec::<Number>::deserialize(from)?;
    let mut clients: Vec<u32> = numbers.into_iter().map(|Number(number)| number).collect();
    if clients.is_empty() || clients.contains(&0) {
        let why = "`clients` needs at least one number, each at least 1";
        return Err(D::Error::custom(why));
    }
    clients.sort_unstable();
    clients.dedup();
    Ok(clients)
}

/// Percentages, rising.
fn percents<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u32>, D::Error> {
    use serde::de::Error as _;
    let mut percents = Vec::<u32>::deserialize(from)?;
    if percents.iter().any(|percent| !(1..100).contains(percent)) {
        let why = "`latency-at` has percentages from 1 to 99, like [50, 80]";
        return Err(D::Error::custom(why));
    }
    percents.sort_unstable();
    percents.dedup();
    Ok(percents)
}

/// A name that may be that of a directory.
pub(super) fn name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    spanned_name(from).map(Spanned::into_inner)
}

fn spanned_name<'de, D: Deserializer<'de>>(from: D) -> Result<Spanned<String>, D::Error> {
    use serde::de::Error as _;
    let name = Spanned::<String>::deserialize(from)?;
    checked_name(name.get_ref()).map_err(D::Error::custom)?;
    Ok(name)
}

fn checked_name(name: &str) -> Result<(), &'static str> {
    if !record::is_plain(name) {
        return Err("`name` becomes a directory: letters, digits, `-` and `_` only");
    }
    Ok(())
}

fn pattern<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    use serde::de::Error as _;
    let text = String::deserialize(from)?;
    // A URL and `tcp` are none.
    if text != "tcp" && !text.to_ascii_lowercase().starts_with("http://") {
        Pattern::new(&text).map_err(D::Error::custom)?;
    }
    Ok(Some(text))
}

fn model<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Spanned<String>>, D::Error> {
    use serde::de::Error as _;
    let name = Spanned::<String>::deserialize(from)?;
    registry::find("model", MODELS, name.get_ref()).map_err(D::Error::custom)?;
    Ok(Some(name))
}
