//! A smoke run of all fuzz targets: over their corpus, and over random mutations of it.
//!
//! `fuzz/run` does the same for hours, guided by coverage. This one needs only a stable compiler, so it runs wherever
//! the tests do.

#![cfg(target_os = "linux")]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

#[path = "../../fuzz/src/lib.rs"]
#[expect(unreachable_pub, dead_code, reason = "it is a crate of its own too")]
mod targets;

use targets::{TARGETS, Target};

/// Maximum length of a generated input.
const MOST_BYTES: usize = 1 << 16;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

/// The corpus of a target, in order of file names.
fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let directory = root().join("corpus").join(target.name);
    let entries =
        fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let read = |path: &PathBuf| fs::read(path).expect("a corpus can be read");
    paths.iter().map(read).collect()
}

/// An input made from others: a few bytes changed, inserted or removed, or two halves joined.
fn mutated(inputs: &[Vec<u8>], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut input = random.choice(inputs).cloned().unwrap_or_default();
    for _ in 0..random.usize(1..8) {
        let at = random.usize(0..=input.len());
        let end = random.usize(at..=input.len().min(at + 16));
        match random.u8(0..6) {
            0 | 1 if at < input.len() => input[at] ^= 1 << random.u8(0..8),
            2 if at < input.len() => input[at] = random.u8(..),
            3 => input.insert(at, random.u8(..)),
            4 => drop(input.drain(at..end)),
            _ => {
                let other = random.choice(inputs).map_or(&[][..], Vec::as_slice);
                input.truncate(at);
                input.extend_from_slice(&other[at.min(other.len())..]);
            }
        }
    }
    input.truncate(MOST_BYTES);
    input
}

fn smoke(target: &Target) {
    let inputs = corpus(target);
    assert!(!inputs.is_empty(), "{} has no corpus", target.name);
    let mut random = fastrand::Rng::with_seed(7);
    let made = (0..inputs.len() * target.mutations).map(|_| mutated(&inputs, &mut random));
    for input in inputs.iter().cloned().chain(made) {
        let outcome = catch_unwind(AssertUnwindSafe(|| (target.body)(&input)));
        assert!(
            outcome.is_ok(),
            "{} fails on the input \"{}\"",
            target.name,
            input.escape_ascii()
        );
    }
}

#[test]
fn every_target_holds_over_its_corpus_and_what_is_made_of_it() {
    for target in TARGETS {
        smoke(target);
    }
}

/// If the format of records changed but the corpus did not, nothing would get past the reader, and nobody would
/// notice.
#[test]
fn complete_captures_of_the_corpus_are_read() {
    let read = |name: &str| fs::read(root().join("corpus").join(name)).expect("it is there");
    let directory = tempfile::tempdir().expect("it can be made");
    let whole = read("record/whole");
    let files = ["run.json", "trials.jsonl"].into_iter();
    for (name, bytes) in files.zip(whole.split(|&byte| byte == 0xff)) {
        fs::write(directory.path().join(name), bytes).expect("it can be written");
    }
    let record = throng::report::load(directory.path()).expect("it is a record");
    assert!(!record.trials.is_empty());
    for name in ["whole", "skipped"] {
        let text = String::from_utf8(read(&format!("study_record/{name}"))).expect("it is text");
        let study = throng::record::parse::<throng::record::Study>(Path::new(name), 1, &text);
        assert!(study.is_ok(), "{study:?}");
    }
}

#[test]
fn every_target_has_a_program_and_every_program_a_target() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("there is a manifest");
    let programs: Vec<&str> = manifest
        .split("[[bin]]\n")
        .skip(1)
        .filter_map(|bin| bin.lines().next()?.split('"').nth(1))
        .collect();
    let targets: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(programs, targets);
}
