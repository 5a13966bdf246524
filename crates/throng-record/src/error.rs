//! What can go wrong with a record.

use std::io;
use std::path::{Path, PathBuf};

/// What went wrong with a record, and where.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system refused.
    #[error("cannot {what} {path}")]
    File {
        /// "create", "write", "read", ...
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The trials are there twice.
    #[error("{plain} and {compressed} both exist; remove one of them")]
    Twice {
        /// As a run writes them.
        plain: PathBuf,
        /// With gzip.
        compressed: PathBuf,
    },
    /// The directory holds a record already.
    #[error("{0} already contains a record; choose another directory with --output, or remove it")]
    Taken(PathBuf),
    /// Another process writes it.
    #[error(
        "another throng is writing to {0}; wait until it has finished, or choose another directory with \
         --output"
    )]
    Busy(PathBuf),
    /// It was there and is not any more.
    #[error("{0} was removed or replaced during the run; its trials are lost")]
    Gone(PathBuf),
    /// It is in another place now.
    #[error(
        "{from} was moved to {to} during the run; the finished trials are there, and --resume {to} continues"
    )]
    Moved {
        /// Where it was made.
        from: PathBuf,
        /// Where it is.
        to: PathBuf,
    },
    /// A part of a trial that wrote to the record itself could not, in its own words.
    #[error("{0}")]
    Reported(String),
    /// The directory contains no record.
    #[error("{0} contains no record: run.json and study.json are missing")]
    Missing(PathBuf),
    /// A file is not what a record has there.
    #[error("{path}, line {line}, column {column}: {reason}")]
    Content {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The byte of that line, from 1.
        column: usize,
        /// What is wrong.
        reason: String,
    },
}

impl StoreError {
    /// Whether a record that was named cannot be read, unlike one that cannot be written.
    pub fn is_unreadable(&self) -> bool {
        match self {
            Self::Twice { .. } | Self::Missing(_) | Self::Content { .. } => true,
            Self::File { what, .. } => ["read", "open", "use"].contains(what),
            Self::Taken(_)
            | Self::Busy(_)
            | Self::Gone(_)
            | Self::Moved { .. }
            | Self::Reported(_) => false,
        }
    }
}

pub(super) fn file_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::File { what, path, source }
}
