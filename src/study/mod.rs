//! The TOML form of studies: servers, loads, repetitions, published figures and claims.
//!
//! Built-in studies are such files too: `throng list studies NAME --toml` prints one to copy. `docs/studies.md`
//! describes the format.

mod claim;
mod describe;
mod file;
mod options;
mod part;
mod place;
mod published;
mod scale;
mod server;
mod values;

use std::path::{Path, PathBuf};

use toml::Spanned;

pub use options::{Choice, Options, Value};
pub use part::{LeftOutModel, Part};
pub use place::Source;
pub use scale::Scale;
pub use server::{ServerKind, ServerSpec};

use crate::record;
use crate::registry::{self, Entry, Info};
use crate::report::figures::FIGURES;

/// Maximum size of a study file in bytes. The largest built-in one is a hundred times smaller.
const MOST_BYTES: u64 = 1 << 20;

/// A study as written in its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// Its name, used for the record's directory.
    pub name: String,
    /// Its question, on one line.
    pub question: String,
    /// A description in a few sentences.
    pub summary: Option<String>,
    /// The source of the published figures.
    pub source: Option<String>,
    /// What differs from the published setting.
    pub changed: Vec<String>,
    /// Its parts, in the order in which they run.
    pub parts: Vec<Part>,
    /// Whether it names no parts. If so, its record is in the directory itself.
    pub flat: bool,
    /// The only part to run, as a study without parts, if the command line sets the load.
    custom_load: Option<Spanned<String>>,
    /// Its claims.
    pub claims: Vec<record::Claim>,
    /// Its file.
    pub file: Source,
}

/// A study that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The file cannot be read.
    #[error("cannot read the study {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// The content is not a valid study. The message has the line and column.
    #[error("study {path}, {message}")]
    Form {
        /// The file.
        path: PathBuf,
        /// The error and its position.
        message: String,
    },
    /// The path is a directory, most likely a record.
    #[error(
        "{path} is a directory, not a study; `throng report {path}` reports on a record, and \
         `throng run --resume {path}` continues it"
    )]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// The study has no part of this name.
    #[error("the study `{study}` has no part `{name}`; expected one of: {known}")]
    UnknownPart {
        study: String,
        name: String,
        /// The names of its parts.
        known: String,
    },
}

/// A study that comes with the program.
#[derive(Debug, Clone, Copy)]
pub struct BuiltIn {
    info: Info,
    /// The file.
    pub toml: &'static str,
}

/// Every built-in study. To add one, create a file in `studies/` and add a line here.
pub const STUDIES: &[&BuiltIn] = &[
    &built_in(
        "overview",
        "when the I/O models differ: all busy, mostly idle, short-lived, memory; about 3 minutes",
        include_str!("../../studies/overview.toml"),
    ),
    &built_in(
        "completion",
        "select and epoll: the time until the last of up to 100,000 clients is done",
        include_str!("../../studies/completion.toml"),
    ),
    &built_in(
        "resources",
        "fork, thread, select, poll and epoll: CPU time, memory and flows with up to 3000 clients",
        include_str!("../../studies/resources.toml"),
    ),
    &built_in(
        "upload",
        "thread, aio, polling and select: service time of up to 10,000 uploads of up to 10 MB",
        include_str!("../../studies/upload.toml"),
    ),
    &built_in(
        "upload-cases",
        "thread, aio, polling and select: test cases of uploads, each with what is expected and seen",
        include_str!("../../studies/upload-cases.toml"),
    ),
    &built_in(
        "fairness",
        "thread, poll and epoll: how evenly 2000 clients are served",
        include_str!("../../studies/fairness.toml"),
    ),
    &built_in(
        "capacity",
        "thread, poll and epoll: how many clients each holds, and what limits it",
        include_str!("../../studies/capacity.toml"),
    ),
    &built_in(
        "counters",
        "iterative, thread and select: hardware and kernel event counts",
        include_str!("../../studies/counters.toml"),
    ),
    &built_in(
        "idle",
        "all models that can: memory and CPU of 1,000 to 300,000 idle connections",
        include_str!("../../studies/idle.toml"),
    ),
    &built_in(
        "churn",
        "nine ways to accept: connections per second, one request each",
        include_str!("../../studies/churn.toml"),
    ),
    &built_in(
        "io-uring",
        "epoll and io-uring, in the server, in the clients and in both",
        include_str!("../../studies/io-uring.toml"),
    ),
    &built_in(
        "io-uring-published",
        "epoll and io_uring with a thread per client, as published, and with other clients: why published gains differ",
        include_str!("../../studies/io-uring-published.toml"),
    ),
    &built_in(
        "reuseport",
        "one accept queue for all workers, or one each, with short and with slow requests: two published answers",
        include_str!("../../studies/reuseport.toml"),
    ),
    &built_in(
        "tls",
        "nginx and Node.js with and without TLS: requests, handshakes, resumed sessions",
        include_str!("../../studies/tls.toml"),
    ),
    &built_in(
        "http2",
        "five models and nginx over HTTP/1.1 and HTTP/2 with 1, 8 and 32 streams, also on lossy and long links",
        include_str!("../../studies/http2.toml"),
    ),
    &built_in(
        "runtimes",
        "Go, Java, Node.js, Python and Rust: the web servers that people write in them",
        include_str!("../../studies/runtimes.toml"),
    ),
];

const fn built_in(name: &'static str, summary: &'static str, toml: &'static str) -> BuiltIn {
    BuiltIn {
        info: Info { name, summary },
        toml,
    }
}

impl Entry for BuiltIn {
    fn info(&self) -> Info {
        self.info
    }
}

impl Study {
    /// Finds a built-in study by name, or reads a file.
    ///
    /// # Errors
    /// If the name is unknown, the file cannot be read, or its content is invalid (with the position of the error).
    pub fn find(name_or_file: &str) -> anyhow::Result<Self> {
        let path = Path::new(name_or_file);
        let is_built_in = STUDIES.iter().any(|study| study.info.name == name_or_file);
        if !is_built_in && path.is_dir() {
            let directory = StudyError::Directory {
                path: path.to_owned(),
            };
            return Err(directory.into());
        }
        let is_file = path.extension().is_some_and(|ending| ending == "toml")
            || name_or_file.contains(std::path::MAIN_SEPARATOR)
            || path.is_file();
        if !is_built_in && is_file {
            let text = crate::spec::named_file::read_text(path, MOST_BYTES).map_err(|source| {
                StudyError::File {
                    path: path.to_owned(),
                    source,
                }
            })?;
            return Ok(Self::parse(path, &text)?);
        }
        let built_in = registry::find("study", STUDIES, name_or_file)?;
        Ok(Self::parse(Path::new(name_or_file), built_in.toml)?)
    }

    /// Reads the text of a study file.
    ///
    /// # Errors
    /// If the content is invalid, with the position of the error.
    pub fn parse(path: &Path, text: &str) -> Result<Self, StudyError> {
        file::read(Source::new(path, text), text)
    }

    /// Keeps only the parts with these names, in the order of the file.
    ///
    /// # Errors
    /// If a name is unknown.
    pub fn keep_parts(&mut self, names: &[String]) -> Result<(), StudyError> {
        let known: Vec<&str> = self.parts.iter().map(Part::name).collect();
        if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(StudyError::UnknownPart {
                study: self.name.clone(),
                name: name.clone(),
                known: known.join(", "),
            });
        }
        self.parts
            .retain(|part| names.iter().any(|name| name == part.name()));
        Ok(())
    }

    /// Keeps only the part for loads from the command line, if there is one, as a study without parts.
    pub fn for_custom_load(&mut self) {
        if let Some(name) = &self.custom_load
            && self.parts.len() > 1
        {
            let text = name.get_ref().as_str();
            self.parts.retain(|part| part.name() == text);
            for part in &mut self.parts {
                part.question = None;
                part.scenes.clear();
                // With a load of the user's choice, every model runs.
                part.without.clear();
            }
            self.flat = true;
        }
    }

    /// Checks that keys are consistent with each other.
    fn check(&self) -> Result<(), StudyError> {
        if let Some(name) = &self.custom_load
            && !self.parts.iter().any(|part| part.name() == name.get_ref())
        {
            let why = format!("unknown part `{}`", name.get_ref());
            return Err(self.file.wrong(&name.span(), &why));
        }
        for (place, part) in self.parts.iter().enumerate() {
            let quick = part.quick.iter().map(|quick| &quick.0);
            let others = quick.chain(part.full.as_deref());
            for one in std::iter::once(part).chain(others) {
                self.check_servers(one)?;
            }
            if let Some(name) = &part.answer {
                let before = &self.parts[..place];
                if before.iter().any(|other| other.answer.is_some()) {
                    let why = "only one part can answer the question of the study";
                    return Err(self.file.wrong(&name.span(), why));
                }
                if self.parts.iter().any(|other| !other.scenes.is_empty()) {
                    let why = "the scenes answer the question of this study; leave out `answer`";
                    return Err(self.file.wrong(&name.span(), why));
                }
                registry::find("figure", FIGURES, name.get_ref())
                    .map_err(|unknown| self.file.wrong(&name.span(), &unknown.to_string()))?;
            }
            if self.parts[..place]
                .iter()
                .any(|other| other.name() == part.name())
            {
                let why = format!("two parts have the name `{}`", part.name());
                return Err(self.file.wrong(&part.name_at(), &why));
            }
        }
        claim::check(self)
    }

    fn check_servers(&self, part: &Part) -> Result<(), StudyError> {
        let names_cpus = !part.server_cpus.is_empty() || !part.client_cpus.is_empty();
        if names_cpus && !part.pinned {
            let why = "`server-cpus` and `client-cpus` bind to CPUs, which `pinned = false` excludes; leave one of them out";
            return Err(self.file.wrong(&part.name_at(), why));
        }
        for (place, server) in part.servers.iter().enumerate() {
            let name = &server.info.name;
            if part.servers[..place]
                .iter()
                .any(|other| other.info.name == *name)
            {
                let why =
                    format!("two servers have the name `{name}`; give one of them another `name`");
                return Err(self.file.wrong(&server.at, &why));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
