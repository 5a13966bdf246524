//! Files named by users may be anything: devices, pipes, endless, with names that are not UTF-8, or owned by others.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::process::Command;

use super::{Finished, finished, throng, word};
use crate::support::program::THRONG;

/// throng in a directory, with a name in it that is not text.
fn with_a_name_that_is_no_text(directory: &Path, before: &[&str]) -> Finished {
    let mut command = Command::new(THRONG);
    command.current_dir(directory).args(before);
    command.arg(OsStr::from_bytes(b"bad\xff"));
    finished(command)
}

/// Regression test: `throng run -o $'bad\xff'` panicked.
#[test]
fn names_that_are_no_text_are_refused_where_results_are_text() {
    let directory = tempfile::tempdir().unwrap();
    for before in [
        &["run", "-o"][..],
        &["run", "--resume"],
        &["compare", "epoll", "--export-json"],
        &["limit", "epoll", "-o"],
        &["reproduce", "record", "-o"],
        &["load", "127.0.0.1:9", "--cacert"],
        &["load", "http://127.0.0.1:9/", "--request-file"],
    ] {
        let finished = with_a_name_that_is_no_text(directory.path(), before);
        finished.is_refused(&["bad\u{fffd}", "not UTF-8"]);
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    // A device that discards output accepts it.
    for before in [
        &["report"][..],
        &["flows"],
        &["report", "--json"],
        &["view", "--listen", "127.0.0.1:0"],
    ] {
        let finished = with_a_name_that_is_no_text(directory.path(), before);
        finished.begins_nothing(&["bad"]);
        assert!(!finished.err.contains("panicked"), "{}", finished.err);
    }
    // Nor does a place of that name keep anything from beginning.
    let here = directory
        .path()
        .join(OsString::from_vec(b"here\xff".to_vec()));
    fs::create_dir(&here).unwrap();
    let mut command = Command::new(THRONG);
    command
        .current_dir(&here)
        .args(["compare", "true", "--cwd", "."]);
    finished(command).is_refused(&["--cwd", "not UTF-8"]);
}

#[test]
fn studies_and_other_files_without_an_end_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    File::create(at("large.toml"))
        .unwrap()
        .set_len(10 << 30)
        .unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe.toml"), rustix::fs::Mode::RWXU).unwrap();
    let (large, pipe) = (at("large.toml"), at("pipe.toml"));
    for (path, why) in [
        ("/dev/zero", "not a regular file"),
        (word(&large), "has more than"),
        (word(&pipe), "not a regular file"),
        (word(directory.path()), "not a"),
    ] {
        throng(&["run", path]).is_refused(&[path, why]);
        let data = format!("@{path}");
        let load = |option: &str, value: &str| {
            let tls = if option == "--cacert" {
                "https"
            } else {
                "http"
            };
            throng(&["load", &format!("{tls}://127.0.0.1:9/"), option, value])
        };
        load("--data", &data).begins_nothing(&[path, why]);
        load("--request-file", path).begins_nothing(&[path, why]);
        load("--cacert", path).begins_nothing(&[path, why]);
        throng(&["load", "127.0.0.1:9", "--send", &data, "--expect", "close"])
            .begins_nothing(&[path, why]);
    }
}

#[test]
fn a_record_overwrites_no_file_that_throng_did_not_write() {
    let directory = tempfile::tempdir().unwrap();
    for name in [
        "report.md",
        "report.html",
        "summary.json",
        "figures/mine.svg",
        "samples/mine.csv",
    ] {
        let place = directory.path().join(name.replace('/', "-"));
        let own = place.join(name);
        fs::create_dir_all(own.parent().unwrap()).unwrap();
        fs::write(&own, "mine").unwrap();
        let first = place.join(name.split('/').next().unwrap());
        for study in [
            &["run", "--models", "epoll"][..],
            &["run", "completion"],
            &["compare", "epoll"],
        ] {
            let finished = throng(&[study, &["-o", word(&place)]].concat());
            finished.is_refused(&[word(&first), "exists and would be overwritten"]);
        }
        assert_eq!(fs::read_to_string(&own).unwrap(), "mine");
        assert_eq!(fs::read_dir(&place).unwrap().count(), 1);
    }
}
