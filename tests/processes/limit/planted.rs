//! Limits that were put there, each of another kind.

use std::fs;
use std::path::Path;

use throng::record::SearchEnding;

use super::{limit, limit_of_echo, python};
use crate::support::group::SmallGroup;
use crate::support::program::{THRONG, words};
use crate::support::tries::once;

#[test]
fn a_limit_of_clients_is_found_exactly() {
    let ran = limit(&["epoll --max-clients 234", "--from", "200"]);
    assert_eq!(ran.ends(), (234, 235));
    assert_eq!(ran.found().ending, SearchEnding::Found);
    let (kind, printed) = ran.cause();
    assert_eq!(kind, "max-clients");
    assert!(
        printed.contains("--max-clients is 234") && printed.contains("rejected 1 of 235"),
        "{printed}"
    );
    assert!(
        ran.out
            .contains("handles 234 clients: its --max-clients is 234."),
        "{}",
        ran.out
    );
}

#[test]
fn a_limit_of_descriptors_is_found_exactly() {
    let ran = limit(&["epoll", "--server-limit", "nofile=300", "--from", "200"]);
    let (passed, failed) = ran.ends();
    // All but those that the server needs itself.
    assert!(
        (270..300).contains(&passed) && failed == passed + 1,
        "{}",
        ran.out
    );
    let (kind, printed) = ran.cause();
    assert_eq!(kind, "server-descriptors");
    assert!(printed.contains("ulimit -n is 300"), "{printed}");
    let counts = ran
        .trials()
        .into_iter()
        .filter_map(|trial| trial.server_counts);
    let most = counts.map(|counts| counts.peak_open).max();
    assert_eq!(most, Some(passed), "it never had more");
}

#[test]
fn the_size_of_the_sets_of_select_is_found_exactly() {
    let ran = limit(&["select", "--from", "1020"]);
    let (passed, failed) = ran.ends();
    assert!(
        (990..1024).contains(&passed) && failed == passed + 1,
        "{}",
        ran.out
    );
    let (kind, printed) = ran.cause();
    assert_eq!(kind, "set-size");
    assert!(printed.contains("FD_SETSIZE"), "{printed}");
}

#[test]
fn a_limit_of_threads_is_found_exactly() {
    let Some(group) = SmallGroup::make(40) else {
        return;
    };
    let server = format!(
        "{} && exec {THRONG} serve thread --listen {{address}} --size 100",
        group.enter()
    );
    let ran = limit(&words(
        "{} --shell --protocol echo --size 100 --from 20",
        &[&server],
    ));
    let (passed, failed) = ran.ends();
    // A thread per client, and a few of its own.
    assert!(
        (30..40).contains(&passed) && failed == passed + 1,
        "{}",
        ran.out
    );
    let (kind, printed) = ran.cause();
    assert_eq!(kind, "threads", "{printed}");
    assert!(
        printed.contains("40 threads and processes (pids.max)"),
        "{printed}"
    );
}

#[test]
fn exhausted_memory_is_found_with_the_last_output() {
    let Some(server) = python("hoard 8") else {
        return;
    };
    let ran = limit_of_echo(&server, "--server-limit as=192MiB --from 8");
    let (passed, failed) = ran.ends();
    assert!(
        (8..24).contains(&passed) && failed == passed + 1,
        "{}",
        ran.out
    );
    let (kind, printed) = ran.cause();
    assert_eq!(kind, "memory", "{printed}");
    // Its limit is known only if it was read when it was nearly full; then the server is gone.
    let sentences = ["RLIMIT_AS", "it ran out of memory"];
    assert!(
        sentences.iter().any(|words| printed.contains(words)) && printed.contains("MemoryError"),
        "{printed}"
    );
}

#[test]
fn clients_that_are_not_accepted_are_found_in_the_queue() {
    let Some(server) = python("stop 20") else {
        return;
    };
    let ran = limit_of_echo(&server, "--from 20 --factor 1.1 --first-reply-timeout 2s");
    assert_eq!(ran.ends(), (20, 21), "{}", ran.out);
    let (kind, printed) = ran.cause();
    assert_eq!(kind, "accept-queue", "{printed}");
    assert!(
        printed.contains("at most 20 clients at a time"),
        "{printed}"
    );
}

#[test]
fn the_highest_rate_matches_the_service_time() {
    // On a busy machine clients and server wait for their turn too.
    once(|| {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("took");
        match python(&format!("wait 4 {}", file.display())) {
            Some(server) => rate_of(&server, &file),
            None => Ok(()),
        }
    });
}

/// Whether the highest rate of a server is about what it writes into a file.
fn rate_of(server: &str, file: &Path) -> Result<(), String> {
    let ran = limit(&words(
        "{} --protocol echo --size 100 --find rate --arrival constant --clients 10 --from 100 \
         --within 10% --duration 500ms",
        &[server],
    ));
    let (passed, failed) = ran.ends();
    // A line a trial: requests, and the time for which it was busy with them.
    let text = fs::read_to_string(file).expect("the server wrote it");
    let sum = |place: usize| -> f64 {
        let words = text.lines().filter_map(|line| line.split(' ').nth(place));
        words.filter_map(|word| word.parse::<f64>().ok()).sum()
    };
    let capacity = sum(0) / sum(1);
    let (kind, printed) = ran.cause();
    let is_near = (passed as f64) < capacity * 1.15 && (failed as f64) > capacity * 0.7;
    if is_near && kind == "server-waits" {
        Ok(())
    } else {
        Err(format!(
            "{passed} and {failed} of {capacity}, {kind}, {printed}"
        ))
    }
}
