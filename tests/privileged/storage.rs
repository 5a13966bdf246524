//! The directory of a record fails while it is written: full, gone, read-only.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;
use throng::record::{self, Trial};

use crate::support::marked::Marked;
use crate::support::program::{THRONG, printed};
use crate::support::runs::{finish, text, throng_run};

/// More trials than can finish.
fn endless(record: &Path) -> Command {
    let mut command = throng_run(record, "10ms");
    command.args(["--models", "fork", "--clients", "3", "--runs", "5000"]);
    command
}

/// A shell script with a mount namespace of its own, in which $0 is throng, $1 an empty directory to mount over, and $2
/// one that is visible from outside. None if that is unsupported.
fn with_own_mounts(script: &str) -> Option<(TempDir, Output)> {
    if !rustix::process::geteuid().is_root() {
        println!("not tried: mounting takes root");
        return None;
    }
    let can = Command::new("unshare")
        .args(["-m", "mount", "-t", "tmpfs", "none", "/mnt"])
        .output();
    if !can.is_ok_and(|output| output.status.success()) {
        println!("not tried: there is no mount namespace to be had");
        return None;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let (inside, outside) = (
        directory.path().join("inside"),
        directory.path().join("outside"),
    );
    fs::create_dir(&inside).expect("a directory");
    fs::create_dir(&outside).expect("a directory");
    let mut command = Command::new("unshare");
    command
        .args(["-m", "sh", "-c", script, THRONG])
        .args([&inside, &outside]);
    let marked = Marked::by(directory.path(), &mut command);
    let output = command.output().expect("it can be started");
    marked.assert_all_ended();
    Some((directory, output))
}

/// The options of [`endless`] as a script has them.
const ENDLESS: &str = "--models fork --clients 3 --runs 5000 --duration 10ms --warm-up 0s --control none \
                       --no-ceiling --probes cpu";

/// Some trials were finished before, and they can be reported.
fn earlier_trials_are_there(record: &Path) -> Vec<Trial> {
    let trials = record::read_trials(record).expect("what was written before");
    assert!(!trials.is_empty());
    for (trial, place) in trials.iter().zip(0..) {
        assert_eq!((trial.index, &trial.failure), (place, &None));
    }
    let mut report = Command::new(THRONG);
    let output = report
        .arg("report")
        .arg(record)
        .output()
        .expect("it can be started");
    assert!(output.status.success(), "{}", printed(&output));
    assert!(text(&record.join("report.md")).contains(&trials[0].server));
    trials
}

#[test]
fn a_full_disk_ends_a_run_and_keeps_the_record() {
    let script = format!(
        "mount -t tmpfs -o size=200k none \"$1\" || exit 77
         \"$0\" run {ENDLESS} -o \"$1/record\"
         code=$?
         cp -r \"$1/record\" \"$2\" && exit $code"
    );
    let Some((directory, output)) = with_own_mounts(&script) else {
        return;
    };
    let printed = printed(&output);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    let place = directory.path().join("inside/record");
    let cannot = format!("cannot write {}/", place.display());
    assert!(printed.contains(&cannot), "{printed}");
    assert!(printed.contains("No space left on device"), "{printed}");
    assert!(printed.contains("the finished trials are in"), "{printed}");
    let record = directory.path().join("outside/record");
    let trials = earlier_trials_are_there(&record);
    let written = text(&record.join("trials.jsonl"));
    assert_eq!(written.lines().count(), trials.len(), "no half of a line");
}

#[test]
fn a_record_that_becomes_read_only_ends_a_run_and_is_kept() {
    // Servers cannot write their rows any more.
    let script = format!(
        "mount -t tmpfs none \"$1\" || exit 77
         \"$0\" run {ENDLESS} -o \"$1/record\" &
         for n in $(seq 3000); do
           [ \"$(wc -l < \"$1/record/trials.jsonl\")\" -ge 2 ] && break
           sleep 0.01
         done 2> /dev/null
         mount -t tmpfs -o ro none \"$1/record/server\" || {{ kill $!; exit 78; }}
         wait $!
         code=$?
         umount \"$1/record/server\"
         cp -r \"$1/record\" \"$2\" && exit $code"
    );
    let Some((directory, output)) = with_own_mounts(&script) else {
        return;
    };
    let printed = printed(&output);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    let cannot = format!(
        "cannot write {}/inside/record/server/",
        directory.path().display()
    );
    assert!(printed.contains(&cannot), "{printed}");
    assert!(printed.contains("Read-only file system"), "{printed}");
    earlier_trials_are_there(&directory.path().join("outside/record"));
}

#[test]
fn a_read_only_place_is_reported_before_anything_is_started() {
    let script = "mount -t tmpfs -o ro none \"$1\" || exit 77
                  exec \"$0\" run --models epoll -o \"$1/record\"";
    let Some((directory, output)) = with_own_mounts(script) else {
        return;
    };
    let printed = printed(&output);
    assert_eq!(output.status.code(), Some(2), "{printed}");
    let cannot = format!("cannot create {}/inside/record", directory.path().display());
    assert!(
        printed.contains(&cannot) && printed.contains("Read-only file system"),
        "{printed}"
    );
}

#[test]
fn a_report_of_a_read_only_record_is_printed() {
    let script = format!(
        "mount -t tmpfs none \"$1\" || exit 77
         \"$0\" run {} -o \"$1/record\" > \"$2/run\" 2>&1 || exit 78
         rm \"$1/record/report.html\"
         mount -o remount,ro \"$1\" || exit 79
         \"$0\" report \"$1/record\" && \"$0\" report --json \"$1/record\" > \"$2/json\"",
        ENDLESS.replace("5000", "2 --allow-rough")
    );
    let Some((directory, output)) = with_own_mounts(&script) else {
        return;
    };
    let printed = printed(&output);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains("fork"), "{report}");
    assert!(!report.contains("Report:"), "{report}");
    assert!(printed.contains("it is only printed"), "{printed}");
    let json = text(&directory.path().join("outside/json"));
    serde_json::from_str::<serde_json::Value>(&json).expect("it is JSON");
}

/// Changes of a record during a run.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Moved,
    MovedAndReplaced,
    Removed,
    ItsTrialsRemoved,
}

#[test]
fn a_record_that_is_moved_away_ends_a_run() {
    use Fate::{ItsTrialsRemoved, Moved, MovedAndReplaced, Removed};
    for fate in [Moved, MovedAndReplaced, Removed, ItsTrialsRemoved] {
        let directory = tempfile::tempdir().unwrap();
        let (record, elsewhere) = (
            directory.path().join("record"),
            directory.path().join("moved"),
        );
        let mut command = endless(&record);
        let marked = Marked::by(directory.path(), &mut command);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut run = command.spawn().unwrap();
        let mut lines = BufReader::new(run.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        // How long it takes, and a line for each trial that is on disk.
        assert_eq!(lines.by_ref().take(3).count(), 3);
        match fate {
            ItsTrialsRemoved => fs::remove_file(record.join("trials.jsonl")).unwrap(),
            _ => fs::rename(&record, &elsewhere).unwrap(),
        }
        match fate {
            MovedAndReplaced => fs::create_dir(&record).unwrap(),
            Removed => fs::remove_dir_all(&elsewhere).unwrap(),
            Moved | ItsTrialsRemoved => {}
        }
        let last = lines.last().unwrap_or_default();
        assert_eq!(run.wait().unwrap().code(), Some(1), "{last}");
        marked.assert_all_ended();
        let (from, to) = (record.display(), elsewhere.display());
        if [Moved, MovedAndReplaced].contains(&fate) {
            assert!(
                last.contains(&format!("{from} was moved to {to} during the run")),
                "{last}"
            );
            assert!(last.contains(&format!("--resume {to} continues")), "{last}");
            assert!(earlier_trials_are_there(&elsewhere).len() >= 2);
        } else {
            assert!(
                last.contains(&format!("{from} was removed or replaced during")),
                "{last}"
            );
            assert!(last.ends_with("its trials are lost"), "{last}");
        }
        // Nothing was written into what took its place.
        if fate == MovedAndReplaced {
            assert_eq!(fs::read_dir(&record).unwrap().count(), 0);
        }
    }
}

/// A line that is cut off may end within a character.
#[test]
fn a_record_cut_off_within_a_character_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = throng_run(directory.path(), "10ms");
    command.args(["--models", "epoll", "--clients", "1", "--runs", "1"]);
    finish(command);
    let path = directory.path().join("trials.jsonl");
    let mut bytes = fs::read(&path).unwrap();
    let next = "{\"index\":1,\"server\":\"größe";
    let within = next.find('ö').expect("it is there") + 1;
    bytes.extend(&next.as_bytes()[..within]);
    assert!(std::str::from_utf8(&bytes).is_err());
    fs::write(&path, bytes).unwrap();
    assert_eq!(earlier_trials_are_there(directory.path()).len(), 1);
}
