//! Atomic writes: a crash leaves the old file or the new one, never a part.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use super::error::{StoreError, file_error};

/// Writes a JSON value into a file, atomically.
pub(super) fn write_whole<T: serde::Serialize>(path: &Path, value: &T) -> Result<(), StoreError> {
    replace(path, |file| {
        serde_json::to_writer_pretty(&mut *file, value)?;
        file.write_all(b"\n")
    })
}

/// Writes a file atomically.
pub(super) fn replace(
    path: &Path,
    content: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), StoreError> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    let write = || -> io::Result<()> {
        // A stale file, or a link to somewhere else.
        let _ = fs::remove_file(&draft);
        let mut file = File::create_new(&draft)?;
        content(&mut file)?;
        file.sync_all()?;
        fs::rename(&draft, path)
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&draft);
        file_error("write", path)(error)
    })?;
    // So that its name survives a power failure. Not every file system supports that for directories.
    if let Some(Ok(directory)) = path.parent().map(File::open) {
        let _ = directory.sync_all();
    }
    Ok(())
}
