//! A server of a study as written.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::options::{Options, Value};
use super::values::model;
#[cfg(target_os = "linux")]
use crate::measure::{Ready, server_limit, stop_signal};
use crate::record::ServerInfo;
#[cfg(not(target_os = "linux"))]
use as_written::{Ready, server_limit, stop_signal};

/// On other systems, a study can only be shown as it was written.
#[cfg(not(target_os = "linux"))]
#[expect(
    clippy::unnecessary_wraps,
    reason = "they stand for functions that refuse some"
)]
mod as_written {
    pub(super) struct Ready;

    impl Ready {
        pub(super) fn read(_text: &str) -> Result<Self, String> {
            Ok(Self)
        }
    }

    pub(super) fn server_limit(name: &str, value: &str) -> Result<(String, u64), String> {
        Ok((name.to_owned(), crate::spec::bytes(value)?))
    }

    pub(super) fn stop_signal(text: &str) -> Result<String, String> {
        Ok(text.to_owned())
    }
}

/// One server: a model or a command line.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerSpec {
    /// Its kind.
    pub kind: ServerKind,
    /// Its position in the file.
    pub(super) at: Range<usize>,
    /// Its name, and how to start and stop it; its directory is as written.
    pub info: ServerInfo,
}

/// The kind of a server.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerKind {
    /// A built-in server.
    Own {
        model: String,
        /// Options of `throng serve` for the model.
        options: Options,
    },
    /// A command.
    Foreign {
        /// The words of the command.
        command: Vec<String>,
        /// How to tell that it is ready.
        ready: Option<String>,
        /// The signal that stops it.
        stop_signal: Option<String>,
    },
}

/// A server as written in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ServerToml {
    #[serde(default, deserialize_with = "model")]
    model: Option<Spanned<String>>,
    #[serde(default)]
    options: Options,
    command: Option<Spanned<Vec<String>>>,
    name: Option<String>,
    #[serde(default, deserialize_with = "ready")]
    ready: Option<String>,
    #[serde(default, deserialize_with = "signal")]
    stop_signal: Option<String>,
    cwd: Option<String>,
    #[serde(default)]
    limits: Options,
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
    #[serde(default)]
    logs: Vec<String>,
}

impl<'de> Deserialize<'de> for ServerSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ServerReader)
    }
}

/// Checks a server while parsing it, so that errors have its position.
struct ServerReader;

impl<'de> Visitor<'de> for ServerReader {
    type Value = ServerSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a server, like { model = \"epoll\" }")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ServerSpec, A::Error> {
        use serde::de::Error as _;
        let written = ServerToml::deserialize(MapAccessDeserializer::new(map))?;
        ServerSpec::of(written).map_err(A::Error::custom)
    }
}

impl ServerSpec {
    fn of(written: ServerToml) -> Result<Self, String> {
        let limits = limits(&written.limits)?;
        let only_of_commands = [
            ("ready", written.ready.is_some()),
            ("stop-signal", written.stop_signal.is_some()),
        ];
        let only_of_command = only_of_commands.into_iter().find(|(_, is_given)| *is_given);
        let (at, usual_name, kind) = match (written.model, written.command) {
            (None, None) => return Err("a server needs a `model` or a `command`".to_owned()),
            (Some(_), Some(_)) => {
                return Err("a server needs either a `model` or a `command`, not both".to_owned());
            }
            (Some(_), None) if only_of_command.is_some() => {
                let (key, _) = only_of_command.unwrap_or_default();
                return Err(format!(
                    "`{key}` is for a `command`, not for built-in servers; leave it out"
                ));
            }
            (None, Some(_)) if written.options.iter().next().is_some() => {
                return Err(
                    "`options` are for a `model`; add them to the `command` instead".to_owned(),
                );
            }
            (Some(model), None) => {
                let (at, model) = (model.span(), model.into_inner());
                let options = written.options;
                (at, model.clone(), ServerKind::Own { model, options })
            }
            (None, Some(command)) => {
                let (at, command) = (command.span(), command.into_inner());
                let Some(program) = command.first() else {
                    return Err("`command` must not be empty".to_owned());
                };
                let name = program.rsplit('/').next().unwrap_or(program).to_owned();
                let kind = ServerKind::Foreign {
                    command,
                    ready: written.ready,
                    stop_signal: written.stop_signal,
                };
                (at, name, kind)
            }
        };
        Ok(Self {
            kind,
            at,
            info: ServerInfo {
                name: written.name.unwrap_or(usual_name),
                limits,
                environment: written.environment,
                cwd: written.cwd,
                setup: written.setup,
                cleanup: written.cleanup,
                prepare: written.prepare,
                conclude: written.conclude,
                logs: written.logs,
                ..ServerInfo::default()
            },
        })
    }

    /// Whether the server has this name, or is of the model with this name.
    pub fn is(&self, name: &str) -> bool {
        let of_model = matches!(&self.kind, ServerKind::Own { model, .. } if model == name);
        of_model || self.info.name == name
    }

    /// Its position in the file.
    pub fn place(&self) -> Range<usize> {
        self.at.clone()
    }

    /// A server of a model with these options.
    pub fn of_model(name: &str, options: Options) -> Self {
        Self {
            kind: ServerKind::Own {
                model: name.to_owned(),
                options,
            },
            at: 0..0,
            info: ServerInfo {
                name: name.to_owned(),
                ..ServerInfo::default()
            },
        }
    }
}

/// Parses limits from values as typed.
fn limits(written: &Options) -> Result<BTreeMap<String, u64>, String> {
    let read = |choice: &super::Choice| match &choice.value {
        Value::Typed(values) if values.len() == 1 => server_limit(&choice.name, &values[0]),
        _ => Err(format!("`{}` must be a number", choice.name)),
    };
    let limits = written.iter().map(read).collect::<Result<_, _>>();
    limits.map_err(|why| format!("`limits`: {why}"))
}

fn ready<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    use serde::de::Error as _;
    let text = String::deserialize(from)?;
    Ready::read(&text).map_err(D::Error::custom)?;
    Ok(Some(text))
}

fn signal<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    use serde::de::Error as _;
    let text = String::deserialize(from)?;
    stop_signal(&text).map(Some).map_err(D::Error::custom)
}
