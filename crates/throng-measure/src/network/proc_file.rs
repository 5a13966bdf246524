//! A file of `/proc` that is read repeatedly: opened once, with a buffer that is kept.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use throng_spec::registry::Unsupported;

/// Initial size of the buffer, which grows as needed.
const ROOM: usize = 8 << 10;
/// Maximum length of a file; no counter file comes near it.
const MOST_BYTES: usize = 16 << 20;

/// An open file of `/proc`.
#[derive(Debug)]
pub(crate) struct ProcFile {
    file: File,
    buffer: Vec<u8>,
}

impl ProcFile {
    /// Opens it.
    ///
    /// # Errors
    /// When it does not exist or cannot be read.
    pub(crate) fn open(path: impl AsRef<Path>) -> Result<Self, Unsupported> {
        let place = path.as_ref();
        let opened = File::open(place).map(|file| Self {
            file,
            buffer: vec![0; ROOM],
        });
        opened.map_err(|error| Unsupported {
            reason: format!("cannot read {}: {error}", place.display()),
            remedy: "run on Linux with /proc mounted, as a user who may read this file".to_owned(),
        })
    }

    /// Its current content.
    ///
    /// # Errors
    /// Errors of read(2), and when it is not text or has no end.
    pub(crate) fn read(&mut self) -> io::Result<&str> {
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                if length >= MOST_BYTES {
                    return Err(io::Error::other("it has no end"));
                }
                self.buffer.resize(length * 2, 0);
            }
            match self.file.read_at(&mut self.buffer[length..], length as u64) {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        std::str::from_utf8(&self.buffer[..length]).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reading_is_a_new_one_however_long() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "one").unwrap();
        let mut file = ProcFile::open(&path).unwrap();
        assert_eq!(file.read().unwrap(), "one");
        let long = "x".repeat(ROOM * 3 + 1);
        std::fs::write(&path, &long).unwrap();
        assert_eq!(file.read().unwrap(), long);
        std::fs::write(&path, "two").unwrap();
        assert_eq!(file.read().unwrap(), "two");
    }

    #[test]
    fn missing_fields_are_named() {
        let error = ProcFile::open("/proc/no-such-file").unwrap_err();
        assert!(error.reason.contains("/proc/no-such-file"), "{error:?}");
    }
}
