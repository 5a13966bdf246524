//! Log files of servers, read from where they ended when a trial began.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use super::sayings::Heard;

/// No more than the end of what was added is read.
const MOST_BYTES: u64 = 64 << 20;
/// Longest line; the rest of it is taken for another.
const LINE_BYTES: u64 = 1 << 16;

/// A log file, and where it ended.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    /// Its number and its length then; none: it was not there.
    then: Option<(u64, u64)>,
}

impl Log {
    /// From now on.
    pub(super) fn open(path: &str) -> Self {
        let about = std::fs::metadata(path).ok();
        Self {
            path: path.into(),
            then: about.map(|about| (about.ino(), about.len())),
        }
    }

    /// What was added since, as far as it is known to name a cause.
    pub(super) fn heard(&self) -> Heard {
        let mut heard = Heard::default();
        // A named pipe would hold up the trial.
        if !self.path.is_file() {
            return heard;
        }
        let Ok(mut file) = File::open(&self.path) else {
            return heard;
        };
        let Ok(about) = file.metadata() else {
            return heard;
        };
        let from = match self.then {
            // Else it is another file, or was begun again.
            Some((number, length)) if number == about.ino() && length <= about.len() => length,
            _ => 0,
        };
        let from = from.max(about.len().saturating_sub(MOST_BYTES));
        if file.seek(SeekFrom::Start(from)).is_err() {
            return heard;
        }
        // It may grow while it is read.
        let mut reader = BufReader::new(file.take(MOST_BYTES));
        let mut line = Vec::new();
        loop {
            line.clear();
            match reader
                .by_ref()
                .take(LINE_BYTES)
                .read_until(b'\n', &mut line)
            {
                Ok(0) | Err(_) => return heard,
                Ok(_) => heard.hear(&String::from_utf8_lossy(&line), "log"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::*;

    const LINE: &str = "64 worker_connections are not enough\n";

    #[test]
    fn only_what_was_added_counts_and_a_file_that_was_begun_again_as_a_whole() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("error.log");
        let name = path.to_string_lossy().into_owned();
        let times = |log: &Log| log.heard().said().first().map_or(0, |said| said.times);
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
