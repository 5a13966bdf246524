//! Commands before and after each trial.

use super::{compare, words_in};
use crate::support::interpreter;
use crate::support::program::words;

#[test]
fn commands_run_before_and_after_each_trial_with_what_they_left_running() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    // A helper on purpose: it lives until its trial is over, and no longer.
    let prepare = format!(
        "sleep 61 & echo $! >> {}; echo port $PORT >&2",
        log.display()
    );
    let helper_lives = format!(
        "kill -0 $(tail -n 1 {0}) && echo alive >> {0}",
        log.display()
    );
    let ran = compare(&words(
        "epoll thread --shell --prepare {} --conclude {} -r 2 -d 50ms --control none",
        &[&prepare, &helper_lives],
    ));
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    let words = words_in(&log);
    assert_eq!(words.len(), 8, "{words:?}");
    let alive = words.iter().filter(|word| *word == "alive").count();
    assert_eq!(alive, 4, "{words:?}");
}

#[test]
fn one_that_fails_or_hangs_fails_its_trial_and_what_it_made_is_cleared_away() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let conclude = format!("sh -c 'echo cleared >> {}'", log.display());
    let ran = compare(&words(
        "epoll thread poll --prepare {} --prepare {} --prepare true --conclude {} --keep-going \
         --hook-timeout 2s -r 1 -d 50ms --control none",
        &["sh -c 'echo no space >&2; exit 4'", "sleep 60", &conclude],
    ));
    assert_eq!(ran.code, 1, "{} {}", ran.out, ran.err);
    assert_eq!(words_in(&log), ["cleared"; 3]);
    for trial in ran.trials() {
        let reported = trial.failure.map_or_else(
            || "fine".to_owned(),
            |failure| format!("{}: {} {}", failure.stage, failure.reason, failure.output),
        );
        let expected = match trial.server.as_str() {
            "epoll" => ["prepare: ", "exit status: 4", "no space"],
            "thread" => ["prepare: ", "did not finish within 2s", "--hook-timeout"],
            _ => ["fine", "", ""],
        };
        for expected in expected {
            assert!(reported.contains(expected), "{expected}: {reported}");
        }
    }
}

/// For a bug: throng killed the command's process group alone, and then waited for ever.
#[test]
fn each_command_that_joins_the_process_group_of_throng_keeps_its_time_limit() {
    let Some(python) = interpreter::program("python3") else {
        return;
    };
    let script = "import os, time; os.setpgid(0, os.getpgid(os.getppid())); time.sleep(3600)";
    let command = format!("{python} -c '{script}'");
    for stage in ["setup", "prepare", "conclude", "cleanup"] {
        let option = format!("--{stage}");
        let ran = compare(&words(
            "epoll {} {} --hook-timeout 500ms -r 1 -d 50ms --control none",
            &[&option, &command],
        ));
        let late = format!("the command of --{stage} did not finish within 500ms");
        // What happens after all trials is a warning in the record.
        let run = std::fs::read_to_string(ran.record().join("run.json")).unwrap();
        assert!(
            ran.err.contains(&late) || run.contains(&late),
            "{} {run}",
            ran.err
        );
    }
}
