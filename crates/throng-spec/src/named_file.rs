//! Reading a file that the user named, which may be anything.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Reads a regular file of at most `most_bytes` bytes.
///
/// # Errors
/// When it cannot be read, is larger, or is something else: a device or a pipe may have no end, or block the reader.
pub fn read(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    let mut open = OpenOptions::new();
    open.read(true);
    // A pipe without a writer opens immediately.
    open.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let file = open.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let too_large = || io::Error::other(format!("it has more than {most_bytes} bytes"));
    if file.metadata()?.len() > most_bytes {
        return Err(too_large());
    }
    // Its length may be wrong, or change in the meantime.
    let mut bytes = Vec::new();
    file.take(most_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        return Err(too_large());
    }
    Ok(bytes)
}

/// The same for text.
///
/// # Errors
/// Errors of [`read`]; or when it is not UTF-8.
pub fn read_text(path: &Path, most_bytes: u64) -> io::Result<String> {
    String::from_utf8(read(path, most_bytes)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs::{self, File};
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn endless_and_irregular_files_are_rejected() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &[u8]| directory.path().join(OsStr::from_bytes(name));
        // This also works for a name that is not text.
        fs::write(at(b"good\xff"), "text").unwrap();
        assert_eq!(read_text(&at(b"good\xff"), 4).unwrap(), "text");
        fs::write(at(b"bytes"), b"\xff").unwrap();
        File::create(at(b"large"))
            .unwrap()
            .set_len(10 << 30)
            .unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, at(b"pipe"), rustix::fs::Mode::RWXU).unwrap();
        for (path, why) in [
            (at(b"good\xff"), "it has more than 3 bytes"),
            (at(b"large"), "it has more than 3 bytes"),
            (at(b"bytes"), "it is not UTF-8 text"),
            (at(b"pipe"), "it is not a regular file"),
            ("/dev/zero".into(), "it is not a regular file"),
            (directory.path().to_owned(), "it is not a regular file"),
        ] {
            let error = read_text(&path, 3).unwrap_err();
            assert_eq!(error.to_string(), why, "{}", path.display());
        }
    }
}
