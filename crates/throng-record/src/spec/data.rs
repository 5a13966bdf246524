//! The body of a request.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::SpecError;
use super::text::as_text;
use crate::named_file;
use throng_protocol::LARGEST_SIZE;

/// Text as it stands, or `@` and the name of a file that holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// This.
    Text(String),
    /// What is in this file.
    File(PathBuf),
}

impl Data {
    /// Its bytes.
    ///
    /// # Errors
    /// When the file cannot be read or is too large.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, SpecError> {
        match self {
            Self::Text(text) => Ok(text.clone().into_bytes()),
            Self::File(path) => read("data", path),
        }
    }
}

/// What is in the file that a key of a load names.
pub(super) fn read(key: &'static str, path: &Path) -> Result<Vec<u8>, SpecError> {
    let refused = |why: String| SpecError::value(key, format!("`{key}`: {why}"));
    named_file::read(path, LARGEST_SIZE as u64)
        .map_err(|error| refused(format!("cannot read {}: {error}", path.display())))
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
