//! The trials of a record: `trials.jsonl`, or `trials.jsonl.gz` in an archived record.
//!
//! A run only writes the plain file. `gzip trials.jsonl` compresses it, and all readers accept either. Resuming a run
//! decompresses it first.

use std::fs::{self, File, Metadata};
use std::io::{self, BufReader, Read, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use super::error::{StoreError, file_error};
use super::reading::{self, MOST_BYTES};
use super::writing::replace;
use super::{MOST_TRIALS, Run, Trial};

/// The file that a run writes.
pub(super) const PLAIN: &str = "trials.jsonl";
const COMPRESSED: &str = "trials.jsonl.gz";
/// The possible names of the file.
pub const TRIALS: [&str; 2] = [PLAIN, COMPRESSED];

/// The open file of trials.
#[derive(Debug)]
pub struct Trials {
    path: PathBuf,
    file: File,
    found: Metadata,
}

impl Trials {
    /// Opens it in the directory of a record; `None` if no trial was written yet.
    ///
    /// # Errors
    /// When it cannot be read, or exists both plain and compressed.
    pub fn open(record: &Path) -> Result<Option<Self>, StoreError> {
        let mut open = None;
        for path in TRIALS.map(|name| record.join(name)) {
            let Some(file) = reading::open_if_there(&path)? else {
                continue;
            };
            if let Some(Self { path: plain, .. }) = open {
                return Err(StoreError::Twice {
                    plain,
                    compressed: path,
                });
            }
            let found = file.metadata().map_err(file_error("read", &path))?;
            open = Some(Self { path, file, found });
        }
        Ok(open)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its state when it was opened.
    pub fn metadata(&self) -> &Metadata {
        &self.found
    }

    /// Whether it must be read from its beginning.
    pub fn is_compressed(&self) -> bool {
        self.path.ends_with(COMPRESSED)
    }

    /// Its lines, up to where it ended when it was opened; in a plain file, from byte `from` on.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn lines_from(&self, from: u64) -> io::Result<Box<dyn Read + '_>> {
        let mut file = &self.file;
        if self.is_compressed() {
            file.rewind()?;
            let decoder = MultiGzDecoder::new(BufReader::new(file));
            // One byte more, to notice that there are too many.
            return Ok(Box::new(Checked(decoder).take(MOST_BYTES + 1)));
        }
        file.seek(SeekFrom::Start(from))?;
        Ok(Box::new(file.take(self.found.len().saturating_sub(from))))
    }

    fn bytes(&self) -> Result<Vec<u8>, StoreError> {
        let mut bytes = Vec::new();
        let mut read = || self.lines_from(0)?.read_to_end(&mut bytes);
        read().map_err(file_error("read", &self.path))?;
        if bytes.len() as u64 > MOST_BYTES {
            let why = format!("it has more than {MOST_BYTES} bytes decompressed");
            return Err(file_error("read", &self.path)(io::Error::other(why)));
        }
        Ok(bytes)
    }
}

/// Reports damaged gzip data as such, rather than how it is damaged.
struct Checked<R>(R);

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.0.read(to).map_err(|error| {
            let what = match error.kind() {
                io::ErrorKind::UnexpectedEof => "the gzip file is truncated".to_owned(),
                io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                    format!("the gzip file is damaged ({error})")
                }
                _ => return error,
            };
            io::Error::new(error.kind(), what)
        })
    }
}

/// Reads all finished trials of the record in `directory`, in the order in which they ran.
///
/// An incomplete last line, from a killed run, is left out.
///
/// # Errors
/// When a line's format is unknown, the file is damaged, or has more trials than the run can have.
pub fn read_trials(directory: &Path) -> Result<Vec<Trial>, StoreError> {
    let Some(trials) = Trials::open(directory)? else {
        return Ok(Vec::new());
    };
    let path = trials.path();
    let run: Option<Run> = reading::file(&directory.join("run.json"))?;
    let most = run.map_or(MOST_TRIALS, |run| run.most_trials());
    let whole = reading::whole_lines(path, trials.bytes()?)?;
    if whole.lines().nth(most).is_some() {
        let reason = format!("the run has at most {most} trials");
        return Err(reading::wrong(path, most + 1, b"", &reason));
    }
    whole
        .lines()
        .enumerate()
        .map(|(number, line)| reading::parse(path, number + 1, line))
        .collect()
}

/// Makes sure that the trials are in the plain file, to append to it.
///
/// # Errors
/// When they are damaged, or the plain file cannot be written. Then the compressed file still exists.
pub(super) fn decompress(directory: &Path) -> Result<(), StoreError> {
    let Some(trials) = Trials::open(directory)?.filter(Trials::is_compressed) else {
        return Ok(());
    };
    let bytes = trials.bytes()?;
    replace(&directory.join(PLAIN), |file| file.write_all(&bytes))?;
    fs::remove_file(trials.path()).map_err(file_error("remove", trials.path()))
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::Store;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut to = GzEncoder::new(Vec::new(), Compression::best());
        to.write_all(text).unwrap();
        to.finish().unwrap()
    }

    /// Two trials as written.
    fn two_trials() -> String {
        let line = |index| {
            let trial = Trial {
                index,
                server: "epoll".to_owned(),
                ..Trial::default()
            };
            serde_json::to_string(&trial).unwrap() + "\n"
        };
        line(0) + &line(1)
    }

    fn record(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let record = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            fs::write(record.path().join(name), bytes).unwrap();
        }
        record
    }

    fn refused(record: &Path) -> String {
        let error = read_trials(record).unwrap_err();
        let why = error.source().map(ToString::to_string);
        format!("{error}: {}", why.unwrap_or_default())
    }

    #[test]
    fn compressed_trials_are_read_like_plain_ones() {
        let text = two_trials();
        let plain = record(&[(PLAIN, text.as_bytes())]);
        let expected = read_trials(plain.path()).unwrap();
        assert_eq!(expected.len(), 2);
        // One gzip member each, as `cat` of two files leaves them, and an incomplete last line.
        let (first, second) = text.split_at(text.find('\n').unwrap() + 1);
        let members = [gzip(first.as_bytes()), gzip(second.as_bytes())].concat();
        let unfinished = gzip(format!("{text}{{\"index\": 2, \"server\": \"\u{f6}").as_bytes());
        for bytes in [gzip(text.as_bytes()), members, unfinished] {
            let archived = record(&[(COMPRESSED, &bytes)]);
            assert_eq!(read_trials(archived.path()).unwrap(), expected);
        }
        assert!(read_trials(record(&[]).path()).unwrap().is_empty());
    }

    #[test]
    fn a_damaged_gzip_file_is_refused_by_name_wherever_it_ends() {
        let whole = gzip(two_trials().as_bytes());
        for end in 0..whole.len() {
            let cut = record(&[(COMPRESSED, &whole[..end])]);
            let error = refused(cut.path());
            assert!(
                error.contains("trials.jsonl.gz: the gzip file is truncated"),
                "{end}: {error}"
            );
        }
        let mut flipped = whole.clone();
        flipped[whole.len() - 6] ^= 1;
        let plain = two_trials().into_bytes();
        for bytes in [flipped, plain, [&whole[..], b"more"].concat()] {
            let error = refused(record(&[(COMPRESSED, &bytes)]).path());
            assert!(
                error.contains("trials.jsonl.gz: the gzip file is "),
                "{error}"
            );
        }
    }

    #[test]
    fn a_line_that_is_no_trial_is_named_in_the_compressed_file() {
        let text = format!("{}{{}}\n", two_trials());
        let error = refused(record(&[(COMPRESSED, &gzip(text.as_bytes()))]).path());
        assert!(
            error.contains("trials.jsonl.gz, line 3, column "),
            "{error}"
        );
    }

    #[test]
    fn trials_both_plain_and_compressed_are_refused() {
        let both = record(&[(PLAIN, b""), (COMPRESSED, &gzip(b""))]);
        let error = refused(both.path());
        assert!(
            error.contains("trials.jsonl and ") && error.contains("trials.jsonl.gz both exist"),
            "{error}"
        );
        decompress(both.path()).unwrap_err();
        assert!(both.path().join(COMPRESSED).exists());
    }

    #[test]
    fn a_record_with_compressed_trials_is_not_written_over() {
        let archived = record(&[(COMPRESSED, &gzip(b""))]);
        let error = Store::create(archived.path()).unwrap_err();
        assert!(matches!(error, StoreError::Taken(_)), "{error}");
    }

    #[test]
    fn decompressing_leaves_the_plain_file_alone_and_keeps_damaged_ones() {
        let text = two_trials();
        let archived = record(&[(COMPRESSED, &gzip(text.as_bytes()))]);
        decompress(archived.path()).unwrap();
        decompress(archived.path()).unwrap();
        let plain = fs::read_to_string(archived.path().join(PLAIN)).unwrap();
        assert_eq!(plain, text);
        assert_eq!(fs::read_dir(archived.path()).unwrap().count(), 1);

        let whole = gzip(text.as_bytes());
        let cut = record(&[(COMPRESSED, &whole[..whole.len() - 1])]);
        decompress(cut.path()).unwrap_err();
        assert_eq!(fs::read_dir(cut.path()).unwrap().count(), 1);
    }

    #[test]
    fn compressed_trials_that_lie_elsewhere_are_not_read() {
        let other = record(&[("secret", &gzip(b""))]);
        let inside = record(&[]);
        let link = inside.path().join(COMPRESSED);
        std::os::unix::fs::symlink(other.path().join("secret"), link).unwrap();
        assert!(refused(inside.path()).contains("leads out of the record"));
    }
}
