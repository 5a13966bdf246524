//! An interrupted run resumes where it stopped: nothing is lost, nothing is done twice.

use std::io::Write as _;
use std::path::Path;
use std::process::Output;

use flate2::Compression;
use flate2::write::GzEncoder;
use throng::record::{self, AtLoad, Ending, Trial};

use crate::support::program::{throng, words};

fn run(directory: &Path) -> Output {
    let directory = directory.to_str().expect("the scratch path is UTF-8");
    throng(&words(
        "run --allow-rough --retries 0 --models epoll,poll --clients 1,3 --runs 2 --duration 20ms \
         --warm-up 10ms --warm-up-limit 10ms --seed 7 --latency-at 50 --probes cpu -o {} --json",
        &[directory],
    ))
}

fn places(trials: &[Trial]) -> Vec<(u32, String, u32)> {
    let place = |trial: &Trial| (trial.index, trial.server.clone(), trial.clients);
    trials.iter().map(place).collect()
}

#[test]
fn a_run_cut_off_in_the_middle_of_a_line_resumes() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("record");
    assert!(run(&directory).status.success());
    let whole = record::read_trials(&directory).unwrap();
    let planned = record::read(&directory).unwrap().trials_planned;
    assert_eq!(whole.len(), planned as usize);

    // As if it had been killed while it wrote the fourth trial.
    let path = directory.join("trials.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let cut_off = |kept: usize| {
        let lines = text.lines().take(kept).flat_map(|line| [line, "\n"]);
        lines.collect::<String>() + &format!("{{\"index\":{kept},\"rou")
    };
    std::fs::write(&path, cut_off(3)).unwrap();
    goes_on(&directory, &whole, 3);

    // And archived then, with fewer left to do.
    let kept = whole.len() - 2;
    let archived = directory.join("trials.jsonl.gz");
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(cut_off(kept).as_bytes()).unwrap();
    std::fs::write(&archived, gzip.finish().unwrap()).unwrap();
    let refused = throng(&[
        "run",
        "--allow-rough",
        "--resume",
        directory.to_str().unwrap(),
    ]);
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(message.contains("trials.jsonl.gz both exist"), "{message}");
    std::fs::remove_file(&path).unwrap();
    goes_on(&directory, &whole, kept);
    assert!(!archived.exists());
}

/// A record of the first trials of a run gets the others.
fn goes_on(directory: &Path, whole: &[Trial], kept: usize) {
    assert_eq!(
        record::read_trials(directory).expect("it can be read"),
        whole[..kept]
    );

    let resumed = throng(&[
        "run",
        "--allow-rough",
        "--resume",
        directory.to_str().expect("the scratch path is UTF-8"),
        "--json",
    ]);
    assert!(
        resumed.status.success(),
        "{}",
        String::from_utf8_lossy(&resumed.stderr)
    );
    let trials = record::read_trials(directory).expect("it can be read");
    assert_eq!(
        places(&trials),
        places(whole),
        "the same trials in the same order"
    );
    assert_eq!(
        trials[..kept],
        whole[..kept],
        "what was finished is not done again"
    );
    let parts: Vec<(&Trial, AtLoad)> = trials
        .iter()
        .filter_map(|trial| Some((trial, trial.at_load?)))
        .collect();
    assert_eq!(parts.len(), 4, "each server with each number of clients");
    for (trial, at_load) in parts {
        let of_rate = AtLoad::of(50, &trials, &trial.server, trial.clients);
        // None if the server got no CPU time in those trials.
        assert_eq!(at_load, of_rate);
    }
    let run = record::read(directory).expect("it can be read");
    assert_eq!(run.ending, Ending::Complete);
    assert_eq!(run.started_at, whole[0].started_at);
}

#[test]
fn a_directory_without_a_record_cannot_be_resumed() {
    let scratch = tempfile::tempdir().unwrap();
    let output = throng(&[
        "run",
        "--allow-rough",
        "--resume",
        scratch.path().to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("contains no record"), "{message}");
}
