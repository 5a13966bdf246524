//! `study.json`: a study of several parts, next to their records.

use std::collections::BTreeMap;
use std::path::Path;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::claim::Claim;
use super::error::{StoreError, file_error};
use super::format::whole;
use super::metrics::{UnknownMetric, find};
use super::reading::{self, Named, is_plain};
use super::trials::TRIALS;
use super::writing::write_whole;
use super::{FailedStage, Lock};

/// `study.json`: a study and its parts. Each part has its own record in the directory of its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Version of this format.
    pub schema_version: u32,
    /// Version of throng that wrote it.
    pub throng_version: String,
    pub name: String,
    /// Its question, on one line.
    pub question: String,
    /// A description in a few sentences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The source of the published figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What differs from the published setting: a sentence each about machine, network and settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// How it was scaled, if it was. Then no claim is checked, and no published figure is compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scaled>,
    /// UTC, RFC 3339.
    pub started_at: String,
    /// The command line that started it.
    pub arguments: Vec<String>,
    /// Its parts, in the order in which they run.
    #[serde(deserialize_with = "reading::distinct")]
    pub parts: Vec<StudyPart>,
    /// Its claims.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
}

/// How a study was scaled, and what the whole study takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scaled {
    /// "quick", or a factor.
    pub by: String,
    /// The command that runs the whole study.
    pub whole: Vec<String>,
    /// Its estimated duration.
    pub whole_takes_s: u64,
}

/// A part of a study.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyPart {
    /// Its name, and that of its directory.
    #[serde(deserialize_with = "directory_name")]
    pub name: String,
    /// Its heading.
    pub title: String,
    /// Its question.
    pub question: String,
    /// The name of its figure that answers the question of the study, together with its first sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Numbers of clients in the study, whether they ran or not.
    pub clients: Vec<u32>,
    /// Why it cannot run on this machine, if so. Then it has no directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Skipped parts and servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// The settings that differ from what is written, by scaling or by the command line: "1 instead of 7" by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scaled: BTreeMap<String, String>,
    /// Published figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// Its scenes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scenes: Vec<Scene>,
    /// What is expected of each of its trials, if it is a case of a test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Expected>,
}

/// What is expected of each trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Conditions that hold, like `errors = 0`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<String>,
    /// The stage in which the trial fails; absent if it does not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailedStage>,
}

/// A scene: a question that a part answers, with its own picture and line in the table "which when".
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scene {
    /// Its anchor.
    #[serde(deserialize_with = "directory_name")]
    pub name: String,
    /// Its heading.
    pub title: String,
    /// Its question.
    pub question: String,
    /// The situation, for a line of a table: "Most of many connections are idle".
    pub when: String,
    /// The metric that decides, one of those that rank servers.
    #[serde(deserialize_with = "ranked_metric")]
    pub metric: String,
    /// The number of clients that decides; the largest if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// Further metrics of the picture.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "metric_names"
    )]
    pub beside: Vec<String>,
}

/// A metric's name.
fn metric<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    known(&name).map_err(D::Error::custom)
}

fn ranked_metric<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = metric(from)?;
    if crate::metrics::ranked().any(|one| one.name == name) {
        return Ok(name);
    }
    let names: Vec<&str> = crate::metrics::ranked().map(|one| one.name).collect();
    let known = names.join(", ");
    Err(D::Error::custom(format!(
        "servers are not ranked by `{name}`; expected one of: {known}"
    )))
}

fn metric_names<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(from)?;
    names
        .iter()
        .map(|name| known(name))
        .collect::<Result<_, _>>()
        .map_err(D::Error::custom)
}

fn known(name: &str) -> Result<String, UnknownMetric> {
    find(name).map(|metric| metric.name.to_owned())
}

/// A name that becomes a directory, and part of links, must not lead elsewhere.
fn directory_name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    if is_plain(&name) {
        Ok(name)
    } else {
        let why =
            format!("`{name}` is not a valid name of a part: use letters, digits, `-` and `_`");
        Err(D::Error::custom(why))
    }
}

/// Skipped numbers of clients, or a skipped server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// The numbers of clients; empty for all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<u32>,
    /// The server; absent for all servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The reason.
    pub reason: String,
}

impl Named for StudyPart {
    fn name(&self) -> &str {
        &self.name
    }
}

impl StudyPart {
    /// Whether it ran differently than written, beyond repetitions and numbers of clients.
    pub fn is_another(&self) -> bool {
        let mut settings = self.scaled.keys();
        settings.any(|setting| !["clients", "runs", "profiled-runs"].contains(&setting.as_str()))
    }

    /// How it differs from what is written: "clients 1 instead of 7, runs 2 instead of 8".
    pub fn scaled_in_words(&self) -> String {
        let changes: Vec<String> = self
            .scaled
            .iter()
            .map(|(setting, change)| format!("{setting} {change}"))
            .collect();
        changes.join(", ")
    }
}

impl LeftOut {
    /// The skipped loads and servers with the reason, as text.
    pub fn words(&self) -> String {
        let numbers: Vec<String> = self
            .clients
            .iter()
            .map(|one| whole(f64::from(*one)))
            .collect();
        let clients = numbers.join(", ");
        let what = match (&self.server, clients.as_str()) {
            (Some(server), "") => server.clone(),
            (Some(server), clients) => format!("{server} with {clients} clients"),
            (None, clients) => format!("{clients} clients"),
        };
        format!("without {what} ({})", self.reason)
    }
}

/// Published values of one metric.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Name of the metric.
    pub metric: String,
    /// Unit of the values.
    pub unit: String,
    /// Numbers of clients; empty for a value over all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<u32>,
    /// A note for readers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The other system that they are of, if any. Then they stand apart, never beside a measured value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The values per server.
    pub values: BTreeMap<String, Vec<PublishedValue>>,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum PublishedValue {
    Number(f64),
    /// Why it is missing.
    Absent(String),
}

pub(super) const FILE: &str = "study.json";

impl Study {
    /// Whether the directory contains one.
    pub fn is_in(directory: &Path) -> bool {
        directory.join(FILE).exists()
    }

    /// Reads it.
    ///
    /// # Errors
    /// When there is none, or its format is unknown.
    pub fn read(directory: &Path) -> Result<Self, StoreError> {
        let path = directory.join(FILE);
        let study: Option<Self> = reading::file(&path)?;
        study.ok_or_else(|| StoreError::missing(directory))
    }

    /// Writes it atomically into a directory, which is created.
    ///
    /// # Errors
    /// When it cannot be written, the directory contains a record already, or another process is creating one there.
    pub fn create(&self, directory: &Path) -> Result<Lock, StoreError> {
        std::fs::create_dir_all(directory).map_err(file_error("create", directory))?;
        let lock = Lock::take(directory)?;
        let taken = [FILE, "run.json"]
            .iter()
            .chain(&TRIALS)
            .any(|file| directory.join(file).exists());
        if taken {
            return Err(StoreError::Taken(directory.to_owned()));
        }
        write_whole(&directory.join(FILE), self)?;
        Ok(lock)
    }
}
