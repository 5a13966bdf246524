//! Reading a record from an untrusted source.
//!
//! Each of its files must be a regular one, within its directory and of a bounded size, and its numbers within a
//! plausible range. Anything else is rejected with its place.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

use super::SCHEMA_VERSION;
use super::error::{StoreError, file_error};
use super::format::shortened;

/// Maximum bytes of a file. The largest known file has a two-hundredth of this. In memory, trials take eight times as
/// many.
pub(super) const MOST_BYTES: u64 = 1 << 28;
/// Maximum characters of an error, which may quote the file.
const MOST_OF_REASON: usize = 300;
/// Maximum absolute value of a number in a record, so that thousands of them add up within 64 bits.
const GREATEST: f64 = 1e15;
/// Maximum digits of such a number.
const DIGITS: usize = 15;
/// Numbers that are never added up: random numbers, clock offsets, limits of a process, and the time of all connections
/// together, which with 10,000 clients exceeds the maximum after 100 s.
const ANY: [&str; 6] = ["seed", "offset_ns", "nofile", "nproc", "as", "answered_ns"];

/// Whether a name can only mean a directory within another one, wherever it is written.
pub fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    !name.is_empty() && !name.starts_with('-') && name.chars().all(plain)
}

/// The directory `name` of a record, if it has one; rejected if it leads elsewhere.
///
/// # Errors
/// When it is a symbolic link, or not a directory.
pub fn directory(record: &Path, name: &str) -> Result<Option<PathBuf>, StoreError> {
    let path = record.join(name);
    match fs::symlink_metadata(&path) {
        Ok(found) if found.is_dir() => Ok(Some(path)),
        Ok(found) if found.is_symlink() => Err(elsewhere(&path)),
        Ok(_) => Err(file_error("read", &path)(Errno::NOTDIR.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file_error("read", &path)(error)),
    }
}

/// Checks that the place of a file to be written is free, or has a regular file.
///
/// # Errors
/// When it has something else: a link leads out of the record, and a pipe may block.
pub fn refuse_other(path: &Path) -> Result<(), StoreError> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => Err(elsewhere(path)),
        Ok(found) if !found.is_file() => Err(irregular("write", path)),
        _ => Ok(()),
    }
}

fn irregular(what: &'static str, path: &Path) -> StoreError {
    file_error(what, path)(io::Error::other("it is not a regular file"))
}

/// Checks that the files in the directory `part` of a record are its own, including those to be rewritten.
pub(super) fn refuse_others_in(record: &Path, part: &str) -> Result<(), StoreError> {
    let Some(path) = directory(record, part)? else {
        return Ok(());
    };
    for entry in fs::read_dir(&path).map_err(file_error("read", &path))? {
        refuse_other(&entry.map_err(file_error("read", &path))?.path())?;
    }
    Ok(())
}

/// The file `name` in the directory `part` of a record, if it has one.
///
/// # Errors
/// When it cannot be read, or is not within the record.
pub fn open_in(record: &Path, part: &str, name: &str) -> Result<Option<File>, StoreError> {
    match directory(record, part)? {
        Some(part) => open_if_there(&part.join(name)),
        None => Ok(None),
    }
}

/// A regular file that is not a link and within the size limit, if there is one.
///
/// # Errors
/// When it is something else, or cannot be read.
pub fn open_if_there(path: &Path) -> Result<Option<File>, StoreError> {
    // Opening a pipe would wait for a writer.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            refuse_other(path)?;
            return Err(file_error("read", path)(error));
        }
    };
    let found = file.metadata().map_err(file_error("read", path))?;
    if !found.is_file() {
        return Err(irregular("read", path));
    }
    if found.len() > MOST_BYTES {
        let why = format!("it has {} bytes; the limit is {MOST_BYTES}", found.len());
        return Err(file_error("read", path)(io::Error::other(why)));
    }
    Ok(Some(file))
}

fn bytes(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(file) = open_if_there(path)? else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    // Even if it grows in the meantime.
    let read = file.take(MOST_BYTES).read_to_end(&mut bytes);
    read.map_err(file_error("read", path))?;
    Ok(Some(bytes))
}

fn text(path: &Path, bytes: Vec<u8>) -> Result<String, StoreError> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        wrong(path, 1, &error.as_bytes()[..at], "it is not UTF-8 text")
    })
}

/// A file with one JSON value and the version of its format.
pub(super) fn file<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, StoreError> {
    let Some(bytes) = bytes(path)? else {
        return Ok(None);
    };
    parse(path, 1, &text(path, bytes)?).map(Some)
}

/// The complete lines of a file, which may end within a character: empty if there are none.
pub(super) fn whole_lines(path: &Path, mut bytes: Vec<u8>) -> Result<String, StoreError> {
    let end = bytes.iter().rposition(|&byte| byte == b'\n');
    bytes.truncate(end.unwrap_or(0));
    text(path, bytes)
}

/// A JSON value of a record, from line `line` of the file `path`.
///
/// # Errors
/// When this version does not know its format. The error has the place.
pub fn parse<T: DeserializeOwned>(path: &Path, line: usize, text: &str) -> Result<T, StoreError> {
    // The version first: a newer format would only give puzzling errors about its fields.
    if let Ok(Version {
        schema_version: Some(version),
    }) = serde_json::from_str(text)
        && version != SCHEMA_VERSION
    {
        let help = if version > SCHEMA_VERSION {
            "read it with a newer throng"
        } else {
            "repeat the run, or read it with the throng that wrote it"
        };
        let reason = format!(
            "the record has format version {version}, and this throng reads version {SCHEMA_VERSION}; {help}"
        );
        return Err(wrong(path, line, b"", &reason));
    }
    let value = serde_json::from_str(text).map_err(|error| StoreError::Content {
        path: path.to_owned(),
        line: line + error.line().saturating_sub(1),
        column: error.column().max(1),
        reason: without_place(&error),
    })?;
    match too_great(text) {
        Some((at, number, name)) => {
            let what = format!("`{name}` is {number}, which is too large");
            Err(wrong(path, line, &text.as_bytes()[..at], &what))
        }
        None => Ok(value),
    }
}

/// The version of the format, whatever else a file contains.
#[derive(serde::Deserialize)]
struct Version {
    schema_version: Option<u32>,
}

/// The first number of a JSON text that is too large: its position, its text, and its key.
fn too_great(text: &str) -> Option<(usize, &str, &str)> {
    let bytes = text.as_bytes();
    let (mut at, mut name) = (0, "");
    while at < bytes.len() {
        let from = at;
        match bytes[at] {
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += 1 + usize::from(bytes[at] == b'\\');
                }
                at += 1;
                if text[at.min(text.len())..].trim_start().starts_with(':') {
                    name = text.get(from + 1..at - 1).unwrap_or_default();
                }
            }
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                at += bytes[from..]
                    .iter()
                    .take_while(|byte| is_part(byte))
                    .count();
                let number = &text[from..at];
                let may_be = number.len() > DIGITS || number.contains(['e', 'E']);
                let is_great = || !number.parse().is_ok_and(|n: f64| n.abs() <= GREATEST);
                if may_be && is_great() && !ANY.contains(&name) {
                    return Some((from, number, name));
                }
            }
            _ => at += 1,
        }
    }
    None
}

/// A member of a list in which each name appears once.
pub(super) trait Named {
    fn name(&self) -> &str;
}

/// A list of members with different names. Each of them makes rows of tables, or a report.
pub(super) fn distinct<'de, D: Deserializer<'de>, T: Named + Deserialize<'de>>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    let members = Vec::<T>::deserialize(from)?;
    let mut names = HashSet::new();
    match members.iter().find(|member| !names.insert(member.name())) {
        Some(member) => Err(D::Error::custom(format!(
            "the name `{}` appears twice",
            member.name()
        ))),
        None => Ok(members),
    }
}

/// Numbers in ascending order, each once.
pub(super) fn ascending<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u32>, D::Error> {
    let numbers = Vec::<u32>::deserialize(from)?;
    if numbers.is_sorted_by(|one, next| one < next) {
        Ok(numbers)
    } else {
        Err(D::Error::custom("these numbers are not ascending"))
    }
}

/// The error after these bytes of a text that begins at `line`.
pub(super) fn wrong(path: &Path, line: usize, before: &[u8], reason: &str) -> StoreError {
    let start = before.iter().rposition(|&byte| byte == b'\n');
    StoreError::Content {
        path: path.to_owned(),
        line: line + before.split(|&byte| byte == b'\n').count() - 1,
        column: before.len() - start.map_or(0, |at| at + 1) + 1,
        reason: shortened(reason, MOST_OF_REASON),
    }
}

/// The error without its place, which counts lines from a different start.
fn without_place(error: &serde_json::Error) -> String {
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = error.to_string();
    shortened(text.strip_suffix(&place).unwrap_or(&text), MOST_OF_REASON)
}

fn elsewhere(path: &Path) -> StoreError {
    let why = "it is a symbolic link, which leads out of the record";
    file_error("use", path)(io::Error::other(why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Run, Study, read, read_trials};

    fn reason(error: &StoreError) -> String {
        let source = std::error::Error::source(error);
        format!(
            "{error}: {}",
            source.map(ToString::to_string).unwrap_or_default()
        )
    }

    #[test]
    fn names_of_directories_lead_nowhere_else() {
        assert!(is_plain("few-large_2"));
        for name in [
            "", ".", "..", "../x", "/etc", "a/b", "-o", "a b", "a\n", "\u{e4}", "<b>",
        ] {
            assert!(!is_plain(name), "{name:?}");
        }
    }

    #[test]
    fn files_outside_the_record_are_not_read() {
        let record = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join("secret"), "{}").unwrap();
        let link = |name: &str, to: &Path| {
            std::os::unix::fs::symlink(to, record.path().join(name)).unwrap();
        };
        link("run.json", &other.path().join("secret"));
        link("trials.jsonl", &other.path().join("secret"));
        link("study.json", &other.path().join("secret"));
        link("clients", other.path());
        for error in [
            read(record.path()).unwrap_err(),
            read_trials(record.path()).unwrap_err(),
            Study::read(record.path()).unwrap_err(),
            open_in(record.path(), "clients", "secret").unwrap_err(),
        ] {
            assert!(
                reason(&error).contains("leads out of the record"),
                "{error}"
            );
        }
        fs::write(record.path().join("samples"), "").unwrap();
        assert!(open_in(record.path(), "samples", "x").is_err());
        assert!(open_in(record.path(), "server", "x").unwrap().is_none());
    }

    #[test]
    fn irregular_and_endless_files_are_not_read() {
        let record = tempfile::tempdir().unwrap();
        let path = record.path().join("run.json");
        fs::create_dir(&path).unwrap();
        assert!(reason(&read(record.path()).unwrap_err()).contains("not a regular file"));
        fs::remove_dir(&path).unwrap();
        // Sparse: it takes no space.
        let file = File::create(&path).unwrap();
        file.set_len(10 << 30).unwrap();
        let error = read(record.path()).unwrap_err();
        assert!(
            reason(&error).contains("10737418240 bytes"),
            "{}",
            reason(&error)
        );
    }

    #[test]
    fn a_name_that_appears_twice_has_its_list() {
        #[derive(Debug, Deserialize)]
        struct Member(String);
        impl Named for Member {
            fn name(&self) -> &str {
                &self.0
            }
        }
        #[derive(Debug, Deserialize)]
        struct Lists {
            #[serde(deserialize_with = "distinct")]
            names: Vec<Member>,
            #[serde(deserialize_with = "ascending")]
            numbers: Vec<u32>,
        }
        let parsed = |text: &str| parse::<Lists>(Path::new("x"), 1, text);
        let fine = parsed("{\"names\": [\"a\", \"b\"], \"numbers\": [1, 3]}").unwrap();
        assert_eq!((fine.names.len(), fine.numbers.len()), (2, 2));
        for (text, place) in [
            (
                "{\"names\":\n[\"a\",\n\"a\",\n\"b\"]",
                "x, line 4, column 4: the name `a` ",
            ),
            (
                "{\"names\": [],\n\"numbers\": [1, 1]}",
                "x, line 2, column ",
            ),
        ] {
            let error = parsed(text).unwrap_err().to_string();
            assert!(error.starts_with(place), "{error}");
        }
    }

    #[test]
    fn an_error_quotes_no_whole_file() {
        let text = format!("{{\"seed\": \"{}\"}}", "x".repeat(100_000));
        let error = parse::<Run>(Path::new("x"), 1, &text)
            .unwrap_err()
            .to_string();
        assert!(error.len() < 2 * MOST_OF_REASON, "{error}");
        assert!(error.ends_with("expected u64"), "{error}");
    }

    #[test]
    fn a_damaged_histogram_has_its_place() {
        let latency = "{\"count\": 1, \"min_us\": 1, \"mean_us\": 1, \"p50_us\": 1, \"p90_us\": 1, \"max_us\": 1,\n\
                       \"histogram\": \"AAAA\"}";
        let error = parse::<crate::Latency>(Path::new("x"), 4, latency)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("x, line 5, column "), "{error}");
        assert!(error.contains("not an HdrHistogram"), "{error}");
    }

    #[test]
    fn errors_have_line_and_column() {
        let path = Path::new("run.json");
        let deep = "[".repeat(100_000);
        for (text, place, why) in [
            ("{\n \"b\": 1}", "line 3, column ", "unknown field `b`"),
            (
                "{\n\"schema_version\": 99}",
                "line 2, column 1",
                "format version 99",
            ),
            (
                "{\"schema_version\": NaN}",
                "line 2, column ",
                "expected value",
            ),
            ("", "line 2, column 1", "EOF"),
            (&deep, "line 2, column ", "invalid type"),
        ] {
            let error = parse::<Run>(path, 2, text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("run.json, {place}")), "{error}");
            assert!(error.contains(why) && !error.contains("at line"), "{error}");
        }
        let error = parse::<serde_json::Value>(path, 2, &deep).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("line 2, column 128: recursion limit"),
            "{error}"
        );
        let error = parse::<serde_json::Value>(path, 2, "{\n \"a\": trx}").unwrap_err();
        assert_eq!(
            error.to_string(),
            "run.json, line 3, column 9: expected ident"
        );
        for (text, place) in [
            ("[1,\n 18446744073709551615]", "line 3, column 2"),
            ("{\"a\": {\"b\\\"\": -1.5e300}}", "line 2, column 15"),
            ("[1000000000000001]", "line 2, column 2"),
        ] {
            let error = parse::<serde_json::Value>(path, 2, text)
                .unwrap_err()
                .to_string();
            assert!(
                error.contains(place) && error.contains("too large"),
                "{error}"
            );
        }
        let fine = "{\"seed\": 18446744073709551615, \"answered_ns\": 1489739485616369, \"x\": [0.30000000000000004, 1e15, \"1e99\"]}";
        assert!(parse::<serde_json::Value>(path, 1, fine).is_ok());
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_at_their_place() {
        let record = tempfile::tempdir().unwrap();
        fs::write(record.path().join("trials.jsonl"), b"{}\nab\xff\n").unwrap();
        let error = read_trials(record.path()).unwrap_err().to_string();
        assert!(
            error.ends_with("trials.jsonl, line 2, column 3: it is not UTF-8 text"),
            "{error}"
        );
    }
}
