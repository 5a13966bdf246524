//! The TOML form of a run: which servers, under which load, how often.
//!
//! Built-in studies are such files too, so `throng list studies NAME --toml` prints one to copy.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::registry::{self, Entry, Info};

/// A study as written.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Study {
    /// Its name, for the record's directory.
    pub name: String,
    /// The question it answers, one line.
    pub question: String,
    /// What takes part; empty: every model this machine supports.
    #[serde(default)]
    pub servers: Vec<ServerSpec>,
    /// What is said.
    #[serde(default = "defaults::protocol")]
    pub protocol: String,
    /// Bytes in a request.
    #[serde(default = "defaults::size")]
    pub size: usize,
    /// Numbers of clients.
    pub clients: Vec<u32>,
    /// How often each server meets each crowd.
    #[serde(default = "defaults::repeats")]
    pub repeats: u32,
    /// How long replies count.
    #[serde(default = "defaults::duration", deserialize_with = "time")]
    pub duration: Duration,
    /// How long to load before.
    #[serde(default = "defaults::warm_up", deserialize_with = "time")]
    pub warm_up: Duration,
    /// How long a server may take from its start until it listens.
    #[serde(default = "defaults::start_timeout", deserialize_with = "time")]
    pub start_timeout: Duration,
    /// How long a client may take to connect.
    #[serde(default = "defaults::connect_timeout", deserialize_with = "time")]
    pub connect_timeout: Duration,
    /// Without any new first answer for this long, clients still waiting count as never served.
    #[serde(default = "defaults::patience", deserialize_with = "time")]
    pub patience: Duration,
    /// Accept-queue length asked for.
    #[serde(default = "defaults::backlog")]
    pub backlog: u32,
    /// Parts of the rate that each server reached at which its response time is taken, in percent.
    #[serde(default)]
    pub below: Vec<u32>,
    /// What measures: names of probes, `default`, `all` or `none`.
    #[serde(default = "defaults::probes")]
    pub probes: Vec<String>,
}

/// One server that takes part.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServerSpec {
    /// The model.
    pub model: String,
    /// The name it goes by, where the same model takes part twice.
    pub name: Option<String>,
    /// Threads or processes, for models that have a fixed number of them.
    pub workers: Option<u32>,
    /// Descriptors that the sets of `select` hold, beyond 1024 on purpose.
    pub fd_setsize: Option<u32>,
}

mod defaults {
    use std::time::Duration;

    pub(super) fn protocol() -> String {
        "echo".to_owned()
    }
    pub(super) fn size() -> usize {
        1000
    }
    pub(super) fn repeats() -> u32 {
        5
    }
    pub(super) fn duration() -> Duration {
        Duration::from_secs(5)
    }
    pub(super) fn warm_up() -> Duration {
        Duration::from_millis(500)
    }
    pub(super) fn start_timeout() -> Duration {
        Duration::from_secs(10)
    }
    pub(super) fn connect_timeout() -> Duration {
        Duration::from_secs(10)
    }
    pub(super) fn patience() -> Duration {
        Duration::from_secs(3)
    }
    pub(super) fn backlog() -> u32 {
        4096
    }
    pub(super) fn probes() -> Vec<String> {
        vec!["default".to_owned()]
    }
}

fn time<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    use serde::de::Error as _;
    let text = String::deserialize(from)?;
    text.parse::<jiff::SignedDuration>()
        .ok()
        .and_then(|time| Duration::try_from(time).ok())
        .ok_or_else(|| D::Error::custom(format!("`{text}` is no time; write it like 10s or 250ms")))
}

/// A study that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The file cannot be read.
    #[error("cannot read the study {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not a study. The message shows line and column.
    #[error("the study {path} is wrong: {message}")]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong and where.
        message: String,
    },
    /// A value that makes no sense.
    #[error("the study `{study}` is wrong: {reason}")]
    Value {
        /// Its name.
        study: String,
        /// What is wrong with which key.
        reason: String,
    },
}

/// A study that comes with the program.
#[derive(Debug, Clone, Copy)]
pub struct BuiltIn {
    info: Info,
    /// The file.
    pub toml: &'static str,
}

/// Every study that comes with the program. To add one: a file in `studies/` and a line here.
pub const STUDIES: &[&BuiltIn] = &[&BuiltIn {
    info: Info {
        name: "overview",
        summary: "every model under the same small load, about 3 minutes",
    },
    toml: include_str!("../../studies/overview.toml"),
}];

impl Entry for BuiltIn {
    fn info(&self) -> Info {
        self.info
    }
}

impl Study {
    /// Finds a built-in study by name, or reads the file when the word looks like one.
    ///
    /// # Errors
    /// Unknown names, files that cannot be read, wrong content with its place.
    pub fn find(name_or_file: &str) -> anyhow::Result<Self> {
        let path = Path::new(name_or_file);
        let is_file = path.extension().is_some_and(|ending| ending == "toml")
            || name_or_file.contains(std::path::MAIN_SEPARATOR);
        if is_file {
            let text = std::fs::read_to_string(path).map_err(|source| StudyError::File {
                path: path.to_owned(),
                source,
            })?;
            return Ok(Self::parse(path, &text)?);
        }
        let built_in = registry::find("study", STUDIES, name_or_file)?;
        Ok(Self::parse(Path::new(name_or_file), built_in.toml)?)
    }

    /// Reads the text of a study file.
    ///
    /// # Errors
    /// Wrong content, with its place.
    pub fn parse(path: &Path, text: &str) -> Result<Self, StudyError> {
        let study: Self = toml::from_str(text).map_err(|error| StudyError::Form {
            path: path.to_owned(),
            message: error.to_string(),
        })?;
        study.check()?;
        Ok(study)
    }

    /// Checks the values, also after some were replaced from the command line.
    ///
    /// # Errors
    /// The first one that makes no sense.
    pub fn check(&self) -> Result<(), StudyError> {
        let wrong = |reason: &str| {
            Err(StudyError::Value {
                study: self.name.clone(),
                reason: reason.to_owned(),
            })
        };
        if self.clients.is_empty() || self.clients.contains(&0) {
            return wrong("`clients` needs at least one number, each at least 1");
        }
        if self.repeats == 0 {
            return wrong("`repeats` must be at least 1");
        }
        if self.duration.is_zero() {
            return wrong("`duration` must be longer than 0");
        }
        if self.backlog == 0 {
            return wrong("`backlog` must be at least 1");
        }
        if self.size == 0 || self.size > crate::protocol::LARGEST_SIZE {
            let largest = crate::protocol::LARGEST_SIZE;
            return wrong(&format!("`size` must be from 1 to {largest} bytes"));
        }
        if self.below.iter().any(|percent| !(1..100).contains(percent)) {
            return wrong("`below` has percentages from 1 to 99, like [50, 80]");
        }
        if self.servers.iter().any(|server| server.workers == Some(0)) {
            return wrong("`workers` must be at least 1");
        }
        let name_is_plain = self
            .name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if !name_is_plain || self.name.is_empty() || self.name.starts_with('.') {
            return wrong("`name` becomes a directory: letters, digits, `-`, `_` and `.` only");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_studies_are_right_and_named_as_listed() {
        for built_in in STUDIES {
            let study = Study::find(built_in.info().name).unwrap();
            assert_eq!(study.name, built_in.info().name);
        }
    }

    fn error(text: &str) -> String {
        Study::parse(Path::new("x.toml"), text)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn unknown_keys_are_refused_with_their_place() {
        let message = error("name = \"x\"\nquestion = \"y\"\nclients = [1]\nclinets = [2]\n");
        assert!(message.contains("line 4, column 1"), "{message}");
        assert!(message.contains("unknown field `clinets`"), "{message}");
    }

    #[test]
    fn senseless_values_are_refused_by_name() {
        let with = |line: &str| error(&format!("name = \"x\"\nquestion = \"y\"\n{line}\n"));
        assert!(with("clients = []").contains("`clients` needs"));
        assert!(with("clients = [0]").contains("`clients` needs"));
        assert!(with("clients = [1]\nrepeats = 0").contains("`repeats`"));
        assert!(with("clients = [1]\nbelow = [50, 100]").contains("`below`"));
        assert!(with("clients = [1]\nbelow = [0]").contains("from 1 to 99"));
        assert!(with("clients = [1]\nduration = \"0s\"").contains("`duration`"));
        assert!(with("clients = [1]\nduration = \"soon\"").contains("`soon` is no time"));
    }
}
