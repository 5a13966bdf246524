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
    #[error("{0} holds a record already; name another directory with -o, or remove it")]
    Taken(PathBuf),
    /// Another process writes it.
    #[error(
        "another throng is writing the record in {0}; wait until it has ended, or name another directory \
         with -o"
    )]
    Busy(PathBuf),
    /// It was there and is not any more.
    #[error("{0} was removed or replaced while the run wrote to it; the trials it had are lost")]
    Gone(PathBuf),
    /// It is in another place now.
    #[error(
        "{from} was moved to {to} while the run wrote to it; the finished trials are there, and --resume {to} goes on"
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
    /// There is no record.
    #[error("{0} holds no record (it has no run.json, nor study.json)")]
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

pub(super) fn file_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::File { what, path, source }
}
