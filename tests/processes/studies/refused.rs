//! Errors in the file of a study are reported with their place before anything is begun.

use std::path::Path;

use super::{SEARCH, STUDY, THRONG, printed, throng, word, written};

#[test]
fn wrong_options_of_searches_are_shown_with_their_place() {
    let scratch = tempfile::tempdir().unwrap();
    let changes = [
        (
            "from = 5",
            "form = 5",
            "line 11, column 11",
            "no option '--form'",
        ),
        (
            "from = 5",
            "from = 50",
            "line 11, column 11",
            "is above the upper bound of 40",
        ),
        (
            "from = 5",
            "find = \"weight\"",
            "line 11, column 18",
            "invalid value 'weight'",
        ),
        (
            "from = 5",
            "clients = 5",
            "line 11, column 11",
            "--clients cannot be set",
        ),
        (
            "from = 5",
            "duration = \"1s\"",
            "line 11, column 11",
            "the key `duration` of the part",
        ),
        (
            "from = 5",
            "think = \"1s\"",
            "line 11, column 11",
            "write `load = { think = ... }`",
        ),
        (
            "from = 5",
            "until = [\"weight > 5\"]",
            "line 11, column 19",
            "unknown metric `weight`",
        ),
        (
            "limit = { from = 5",
            "load = { rate = 50 }\nlimit = { find = \"rate\"",
            "line 11, column 10",
            "`rate` cannot be set",
        ),
    ];
    refuse(scratch.path(), SEARCH, &changes);
    let (file, _) = written(scratch.path(), SEARCH);
    let clients = throng(&["run", word(&file), "--clients", "5"]);
    assert!(
        printed(&clients).contains("--clients cannot be used with part"),
        "{}",
        printed(&clients)
    );
}

#[test]
fn a_name_that_is_too_long_for_a_directory_is_wrong_usage() {
    let scratch = tempfile::tempdir().unwrap();
    let long = format!("name = \"{}\"", "x".repeat(300));
    let (file, _) = written(scratch.path(), &STUDY.replace("name = \"tiny\"", &long));
    let mut command = std::process::Command::new(THRONG);
    command
        .current_dir(scratch.path())
        .args(["run", word(&file)]);
    let output = command.output().expect("it can be started");
    assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
    for part in ["cannot create throng-results/", "too long", "--output"] {
        assert!(printed(&output).contains(part), "{}", printed(&output));
    }
}

/// Demands that a file is refused for each change to it (what, into what), with the place and why.
fn refuse(scratch: &Path, original: &str, cases: &[(&str, &str, &str, &str)]) {
    for (from, to, place, why) in cases {
        let changed = original.replace(from, to);
        assert_ne!(changed, original);
        let (file, directory) = written(scratch, &changed);
        let output = throng(&["run", word(&file), "-o", word(&directory)]);
        assert_eq!(output.status.code(), Some(2), "{to}: {}", printed(&output));
        let finished = printed(&output);
        assert!(
            finished.contains(place) && finished.contains(why),
            "{to}: {finished}"
        );
        assert!(!directory.exists(), "nothing was begun");
    }
}

#[test]
fn wrong_options_of_loads_and_servers_are_shown_with_their_place() {
    let scratch = tempfile::tempdir().unwrap();
    let changes = [
        (
            "eager = true",
            "eager = true, thnk = \"9s\"",
            "line 17, column 24",
            "unknown key `thnk`; did you mean `think`?",
        ),
        (
            "eager = true",
            "think = \"soon\"",
            "line 17, column 18",
            "`soon` is not a time",
        ),
        (
            "eager = true",
            "duration = \"9s\"",
            "line 17, column 10",
            "the key `duration` of the part",
        ),
        (
            "backlog = 5",
            "backlog = 0",
            "line 16, column 53",
            "at least 1",
        ),
        (
            "backlog = 5",
            "fd-setsize = 2048",
            "line 16, column 43",
            "is an option of select",
        ),
        (
            "backlog = 5",
            "listen = \"127.0.0.1:1\"",
            "line 16, column 43",
            "throng chooses the address",
        ),
        (
            "[\"cpu\"]",
            "[\"cpuu\"]",
            "line 9, column 10",
            "did you mean `cpu`",
        ),
        (
            "control = \"none\"",
            "control = \"fork\"",
            "line 10, column 11",
            "unknown server `fork`",
        ),
    ];
    refuse(scratch.path(), STUDY, &changes);
}

#[test]
fn parts_that_are_not_there_or_cannot_be_are_reported() {
    let scratch = tempfile::tempdir().unwrap();
    let (file, directory) = written(scratch.path(), STUDY);
    let none = throng(&[
        "run",
        word(&file),
        "--part",
        "nobody",
        "-o",
        word(&directory),
    ]);
    assert!(
        printed(&none).contains("no part `nobody`; expected one of: own, partly, never"),
        "{}",
        printed(&none)
    );
    let never = throng(&[
        "run",
        word(&file),
        "--part",
        "never",
        "-o",
        word(&directory),
    ]);
    assert!(
        printed(&never).contains("tiny: no part can run on this machine"),
        "{}",
        printed(&never)
    );
}
