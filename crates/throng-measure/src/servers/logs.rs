//! Log files of servers, read from where they ended when a trial began.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use crate::processes::known_messages::ServerMessages;
use crate::processes::lines::each_line;

/// Maximum bytes to read from the end.
const MOST_BYTES: u64 = 64 << 20;
/// Maximum length of a line; the rest of a longer one counts as another line.
const LINE_BYTES: u64 = 1 << 16;

/// A log file, and where it ended.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    /// Its inode and length at that time; `None` if it did not exist.
    then: Option<(u64, u64)>,
}

impl Log {
    /// Starts from the current end of the file.
    pub(crate) fn open(path: &str) -> Self {
        let about = std::fs::metadata(path).ok();
        Self {
            path: path.into(),
            then: about.map(|about| (about.ino(), about.len())),
        }
    }

    /// Known messages added since then.
    pub(crate) fn messages(&self) -> ServerMessages {
        let mut messages = ServerMessages::default();
        // A named pipe would block the trial.
        if !self.path.is_file() {
            return messages;
        }
        let Ok(mut file) = File::open(&self.path) else {
            return messages;
        };
        let Ok(about) = file.metadata() else {
            return messages;
        };
        let start = match self.then {
            // Otherwise it is a new file, or was truncated.
            Some((number, length)) if number == about.ino() && length <= about.len() => length,
            _ => 0,
        };
        let from = start.max(about.len().saturating_sub(MOST_BYTES));
        if file.seek(SeekFrom::Start(from)).is_err() {
            return messages;
        }
        // It may grow while it is read.
        each_line(file.take(MOST_BYTES), LINE_BYTES, |line| {
            messages.scan(&String::from_utf8_lossy(line), "log");
        });
        messages
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::*;

    const LINE: &str = "64 worker_connections are not enough\n";

    #[test]
    fn only_appended_lines_count_and_a_rotated_file_as_a_whole() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("error.log");
        let name = path.to_string_lossy().into_owned();
        let times = |log: &Log| {
            log.messages()
                .found()
                .first()
                .map_or(0, |found| found.times)
        };
        let absent = Log::open(&name);
        assert_eq!(times(&absent), 0);
        fs::write(&path, LINE).unwrap();
        assert_eq!(times(&absent), 1);
        let log = Log::open(&name);
        assert_eq!(times(&log), 0);
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(LINE.repeat(3).as_bytes()).unwrap();
        assert_eq!(times(&log), 3);
        fs::rename(&path, place.path().join("old")).unwrap();
        fs::write(&path, LINE.repeat(2)).unwrap();
        assert_eq!(times(&log), 2);
    }
}
