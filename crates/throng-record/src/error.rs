//! Errors of a record.

use std::io;
use std::path::{Path, PathBuf};

/// An error of a record, with its place.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// An error of the file system.
    #[error("cannot {what} {path}")]
    File {
        /// "create", "write", "read", ...
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The trials exist twice.
    #[error("{plain} and {compressed} both exist; remove one of them")]
    Twice {
        /// As written by a run.
        plain: PathBuf,
        /// With gzip.
        compressed: PathBuf,
    },
    /// The directory contains a record already.
    #[error("{0} already contains a record; choose another directory with --output, or remove it")]
    Taken(PathBuf),
    /// Another process is writing it.
    #[error(
        "another throng is writing to {0}; wait until it has finished, or choose another directory with \
         --output"
    )]
    Busy(PathBuf),
    /// It no longer exists.
    #[error("{0} was removed or replaced during the run; its trials are lost")]
    Gone(PathBuf),
    /// Its trials were truncated, or another program wrote to them.
    #[error("{0} was changed by another program during the run; trials may be lost")]
    Changed(PathBuf),
    /// It was moved.
    #[error(
        "{from} was moved to {to} during the run; the finished trials are there, and --resume {to} continues"
    )]
    Moved {
        /// Where it was created.
        from: PathBuf,
        /// Where it is.
        to: PathBuf,
    },
    /// A server or a load could not write its part of a trial to the record; the message is its own.
    #[error("{0}")]
    Reported(String),
    /// The directory contains no record.
    #[error("{0} contains no record: run.json and study.json are missing")]
    Missing(PathBuf),
    /// The directory contains no record itself, but has directories that do.
    #[error("{directory} contains no record itself; write a directory in it, like {newest}")]
    Within {
        /// The directory.
        directory: PathBuf,
        /// The newest record in it.
        newest: PathBuf,
    },
    /// The directory does not exist.
    #[error("{0} does not exist")]
    Absent(PathBuf),
    /// The content of a file is invalid.
    #[error("{path}, line {line}, column {column}: {reason}")]
    Content {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The byte of that line, from 1.
        column: usize,
        /// The error.
        reason: String,
    },
}

impl StoreError {
    /// No record can be read from this directory.
    pub(super) fn missing(directory: &Path) -> Self {
        let path = directory.to_owned();
        match newest_within(&path) {
            Some(newest) => Self::Within {
                directory: path,
                newest,
            },
            None if path.exists() => Self::Missing(path),
            None => Self::Absent(path),
        }
    }

    /// Whether an existing record cannot be read, rather than written.
    pub fn is_unreadable(&self) -> bool {
        match self {
            Self::Twice { .. }
            | Self::Missing(_)
            | Self::Within { .. }
            | Self::Absent(_)
            | Self::Content { .. } => true,
            Self::File { what, .. } => ["read", "open", "use"].contains(what),
            Self::Taken(_)
            | Self::Busy(_)
            | Self::Gone(_)
            | Self::Changed(_)
            | Self::Moved { .. }
            | Self::Reported(_) => false,
        }
    }
}

/// The last directory by name that has a record. Names begin with the time.
fn newest_within(directory: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(directory).ok()?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path.join("run.json").is_file()).max()
}

pub(super) fn file_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let owned = path.to_owned();
    move |source| StoreError::File {
        what,
        path: owned,
        source,
    }
}
