//! The body of a request.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::SpecError;
use super::files::{self, Hashes};
use super::text::as_text;

/// Literal text, or `@` and the name of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// Literal text.
    Text(String),
    /// The content of this file.
    File(PathBuf),
}

impl Data {
    /// Its bytes.
    ///
    /// # Errors
    /// When the file cannot be read, is too large or has changed.
    pub(super) fn bytes(&self, known: &Hashes) -> Result<Vec<u8>, SpecError> {
        match self {
            Self::Text(text) => Ok(text.clone().into_bytes()),
            Self::File(path) => files::read("data", path, known),
        }
    }
}

impl FromStr for Data {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix('@') {
            Some("") => Err("the name of a file has to follow the @".to_owned()),
            Some(path) => Ok(Self::File(path.into())),
            None => Ok(Self::Text(text.to_owned())),
        }
    }
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "@{}", path.display()),
            Self::Text(text) => f.write_str(text),
        }
    }
}

as_text!(Data, "text, or @ and the name of a file");
