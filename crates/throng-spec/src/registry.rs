//! Anything a user can choose by name: how it is described, whether it runs here, and how it is
//! found when the name is mistyped.

use std::fmt;

use serde::Serialize;
use throng_protocol::Protocol;

/// The description of a table's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Info {
    /// The name typed on the command line and written in records.
    pub name: &'static str,
    /// One line, no full stop.
    pub summary: &'static str,
}

/// Why something cannot be used on this machine, and what would change that.
#[derive(
    Debug,
    Clone,
    PartialEq,
    Eq,
    Serialize,
    serde::Deserialize,
    thiserror::Error,
    schemars::JsonSchema,
)]
#[error("{reason}; {remedy}")]
pub struct Unsupported {
    /// The missing part.
    pub reason: String,
    /// The remedy: what to install, set or choose instead.
    pub remedy: String,
}

/// An entry of one of the tables: `MODELS`, `PROTOCOLS`, `PROBES`, `STUDIES`, `EXPORTERS`, ...
pub trait Entry {
    /// Name and summary.
    fn info(&self) -> Info;

    /// Whether this machine can run it.
    fn supported(&self) -> Result<(), Unsupported> {
        Ok(())
    }
}

impl Entry for dyn Protocol + '_ {
    fn info(&self) -> Info {
        Info {
            name: self.name(),
            summary: self.summary(),
        }
    }

    fn supported(&self) -> Result<(), Unsupported> {
        if self.needs_linux() && cfg!(not(target_os = "linux")) {
            return Err(Unsupported {
                reason: "reading processes needs Linux's /proc".to_owned(),
                remedy: "choose another protocol, or run the server on Linux".to_owned(),
            });
        }
        Ok(())
    }
}

/// There is no entry with the requested name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    /// The kind: "model", "protocol", ...
    pub kind: &'static str,
    /// The name as typed.
    pub name: String,
    /// The closest name, if one is close.
    pub suggestion: Option<&'static str>,
    /// All names.
    pub known: Vec<&'static str>,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {} `{}`", self.kind, self.name)?;
        match self.suggestion {
            Some(suggestion) => write!(f, "; did you mean `{suggestion}`?"),
            None => write!(f, "; expected one of: {}", self.known.join(", ")),
        }
    }
}

impl std::error::Error for UnknownName {}

/// Finds an entry by its name, or suggests the closest name.
///
/// # Errors
/// [`UnknownName`] when no entry of `table` is called `name`.
pub fn find<T: Entry + ?Sized>(
    kind: &'static str,
    table: &[&'static T],
    name: &str,
) -> Result<&'static T, UnknownName> {
    if let Some(entry) = table.iter().find(|entry| entry.info().name == name) {
        return Ok(entry);
    }
    let known: Vec<&'static str> = table.iter().map(|entry| entry.info().name).collect();
    Err(UnknownName {
        kind,
        name: name.to_owned(),
        suggestion: closest(name, &known),
        known,
    })
}

/// The name that was most likely meant, if one is close to what was typed.
pub fn closest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|known| (strsim::jaro_winkler(known, &name.to_lowercase()), *known))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Named(&'static str);

    impl Entry for Named {
        fn info(&self) -> Info {
            Info {
                name: self.0,
                summary: "an entry for the test",
            }
        }
    }

    const TABLE: &[&Named] = &[&Named("epoll"), &Named("epoll-et"), &Named("thread")];

    #[test]
    fn finds_an_exact_name() {
        assert_eq!(find("model", TABLE, "epoll-et").unwrap().0, "epoll-et");
    }

    #[test]
    fn suggests_the_closest_name() {
        let error = find("model", TABLE, "epol").map(|_| ()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown model `epol`; did you mean `epoll`?"
        );
        assert_eq!(
            find("model", TABLE, "Threads").err().unwrap().suggestion,
            Some("thread")
        );
    }

    #[test]
    fn lists_all_names_when_none_is_close() {
        let error = find("model", TABLE, "quux").map(|_| ()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown model `quux`; expected one of: epoll, epoll-et, thread"
        );
    }
}
