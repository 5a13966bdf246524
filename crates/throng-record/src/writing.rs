//! Files that are written anew: a crash leaves the old file or the new one, never a part.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::error::{StoreError, file_error};
use super::reading::refuse_other;

/// A file that takes its place when it is finished, and is removed otherwise.
#[derive(Debug)]
pub struct Draft {
    to: BufWriter<File>,
    /// Its place, and its path until then; `None` for a device or a pipe, which is written immediately.
    paths: Option<(PathBuf, PathBuf)>,
}

impl Draft {
    /// A file of a record.
    ///
    /// # Errors
    /// When it cannot be written, or its place is taken by anything but a regular file.
    pub fn of_record(place: &Path) -> Result<Self, StoreError> {
        refuse_other(place)?;
        Self::at(place).map_err(file_error("write", place))
    }

    /// A file that the user named. A link is followed, and a device or a pipe is written as it is.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn named(path: &Path) -> io::Result<Self> {
        let Ok(found) = fs::metadata(path) else {
            return Self::at(path);
        };
        // A file that is protected against writing is not replaced either.
        let file = OpenOptions::new().write(true).open(path)?;
        if found.is_file() {
            return Self::at(&fs::canonicalize(path)?);
        }
        Ok(Self {
            to: BufWriter::new(file),
            paths: None,
        })
    }

    fn at(place: &Path) -> io::Result<Self> {
        let mut draft = place.as_os_str().to_owned();
        draft.push(".new");
        // A stale file, or a link to somewhere else.
        let _ = fs::remove_file(&draft);
        Ok(Self {
            to: BufWriter::new(File::create_new(&draft)?),
            paths: Some((place.to_owned(), draft.into())),
        })
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.to.flush()?;
        let Some((place, draft)) = &self.paths else {
            return Ok(());
        };
        let own = self.to.get_ref().metadata()?;
        let is_own = |found: fs::Metadata| (found.dev(), found.ino()) == (own.dev(), own.ino());
        // Otherwise another process writes the same file, and replaced the draft by its own.
        if fs::symlink_metadata(draft).is_ok_and(is_own) {
            fs::rename(draft, place)?;
        }
        self.paths = None;
        Ok(())
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some((_, draft)) = &self.paths {
            let _ = fs::remove_file(draft);
        }
    }
}

/// Writes a JSON value into a file of a record, atomically, and syncs it to disk.
pub(super) fn write_whole<T: serde::Serialize>(path: &Path, value: &T) -> Result<(), StoreError> {
    replace(path, |file| {
        serde_json::to_writer_pretty(&mut *file, value)?;
        file.write_all(b"\n")
    })
}

/// Writes a file of a record atomically, and syncs it to disk.
pub(super) fn replace(
    path: &Path,
    content: impl FnOnce(&mut Draft) -> io::Result<()>,
) -> Result<(), StoreError> {
    let mut draft = Draft::of_record(path)?;
    let write = || -> io::Result<()> {
        content(&mut draft)?;
        draft.flush()?;
        draft.to.get_ref().sync_all()?;
        draft.finish()
    };
    write().map_err(file_error("write", path))?;
    // So that its name survives a power failure. Not every file system supports that for directories.
    if let Some(Ok(directory)) = path.parent().map(File::open) {
        let _ = directory.sync_all();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names in a directory, in order.
    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_old_or_new_and_other_names_of_it_keep_the_old_one() {
        let directory = tempfile::tempdir().unwrap();
        let [place, other] = ["place", "other"].map(|name| directory.path().join(name));
        fs::write(&other, "old").unwrap();
        fs::hard_link(&other, &place).unwrap();
        let mut unfinished = Draft::of_record(&place).unwrap();
        unfinished.write_all(b"half").unwrap();
        unfinished.flush().unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "old");
        drop(unfinished);
        assert_eq!(names(directory.path()), ["other", "place"]);
        let mut draft = Draft::of_record(&place).unwrap();
        draft.write_all(b"new").unwrap();
        draft.finish().unwrap();
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        assert_eq!((read(&place), read(&other)), ("new".into(), "old".into()));
        assert_eq!(names(directory.path()), ["other", "place"]);
    }

    #[test]
    fn of_two_writers_of_a_file_one_wins() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("place");
        let mut drafts = ["one", "two"].map(|_| Draft::of_record(&place).unwrap());
        drafts[1].write_all(b"two").unwrap();
        let [one, two] = drafts;
        one.finish().unwrap();
        assert!(!place.exists());
        two.finish().unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "two");
    }

    #[test]
    fn a_pipe_in_a_record_is_not_opened_and_one_that_the_user_names_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        let error = Draft::of_record(&pipe).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("cannot write {}", pipe.display())
        );
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        let mut draft = Draft::named(&pipe).unwrap();
        draft.write_all(b"text").unwrap();
        draft.finish().unwrap();
        assert_eq!(reader.join().unwrap(), "text");
        assert_eq!(names(directory.path()), ["pipe"]);
    }

    #[test]
    fn a_link_that_the_user_names_still_leads_to_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let [link, file] = ["link", "file"].map(|name| directory.path().join(name));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        let mut draft = Draft::named(&link).unwrap();
        draft.write_all(b"new").unwrap();
        draft.finish().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
