//! Pages that name the tests that keep what they say: the tests are there.

use std::path::Path;

const FAULTS: &str = include_str!("../../docs/faults.md");
const THREATS: &str = include_str!("../../THREATS.md");
const MEASURING: &str = include_str!("../../docs/measuring.md");
const UPLOADS: &str = include_str!("../../docs/upload-cases.md");

/// The tests that a line names: `file::test` between backticks.
fn named(line: &str) -> Vec<(&str, &str)> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter_map(|name| name.split_once("::")).collect()
}

fn they_exist(tests: &[(&str, &str)]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (file, test) in tests {
        let path = root.join(file);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
        let there = text.contains(&format!("fn {test}("));
        assert!(there, "{file} has no test {test}");
    }
}

#[test]
fn every_test_that_is_named_exists() {
    let kept = MEASURING
        .lines()
        .filter(|line| line.starts_with("Kept by "));
    let tests: Vec<_> = kept.flat_map(named).collect();
    assert!(tests.len() > 30, "{tests:?}");
    they_exist(&tests);
}

#[test]
fn every_rule_has_a_test() {
    let rules: Vec<&str> = MEASURING.split("\n### ").skip(1).collect();
    assert_eq!(rules.len(), 23);
    for (rule, number) in rules.iter().zip(1..) {
        assert!(rule.starts_with(&format!("{number}. ")), "{rule}");
        assert!(rule.contains("\nKept by `"), "rule {number} has no test");
    }
}

/// Every case of the page has a test, and every test of uploads is a case of the page.
#[test]
fn every_case_of_uploads_has_a_test_that_exists() {
    let rows = UPLOADS.lines().filter(|line| line.starts_with("| "));
    let cases: Vec<_> = rows.skip(1).map(|row| (row, named(row))).collect();
    assert!(cases.len() > 15, "{cases:?}");
    for (row, tests) in &cases {
        assert!(!tests.is_empty(), "no test: {row}");
        they_exist(tests);
    }
    let source = include_str!("../processes/cli/uploads.rs");
    for test in source.split("#[test]\nfn ").skip(1) {
        let name = test.split('(').next().unwrap_or_default();
        assert!(UPLOADS.contains(&format!("::{name}`")), "no row for {name}");
    }
}

/// The cells of each row of the page of faults, without heads.
fn faults() -> Vec<Vec<&'static str>> {
    let rows = FAULTS.lines().filter(|line| line.starts_with('|'));
    let rows = rows.map(|row| {
        let cells = row.trim_matches('|').split('|');
        cells.map(str::trim).collect::<Vec<_>>()
    });
    let is_head = |row: &Vec<&str>| row[0] == "fault" || row[0].starts_with("---");
    rows.filter(|row| !is_head(row)).collect()
}

#[test]
fn every_fault_has_a_promise_and_a_test_that_exists() {
    let faults = faults();
    assert!(faults.len() > 40, "{faults:?}");
    for row in &faults {
        assert_eq!(row.len(), 4, "fault, promise, what happens, tests: {row:?}");
        assert!(row.iter().all(|cell| !cell.is_empty()), "{row:?}");
        let tests = named(row[3]);
        assert!(!tests.is_empty(), "no test: {row:?}");
        they_exist(&tests);
    }
    for (place, row) in faults.iter().enumerate() {
        let twice = faults[..place].iter().any(|other| other[0] == row[0]);
        assert!(!twice, "two rows are about `{}`", row[0]);
    }
}

#[test]
fn every_threat_has_a_promise_and_a_test_that_exists() {
    let (_, promised) = THREATS
        .split_once("## What is promised")
        .expect("it is there");
    let rows = promised.lines().filter(|line| line.starts_with("| "));
    let rows: Vec<Vec<&str>> = rows
        .map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect())
        .filter(|row: &Vec<&str>| row[0] != "threat")
        .collect();
    assert!(rows.len() > 20, "{rows:?}");
    for row in &rows {
        assert_eq!(row.len(), 3, "threat, promise, tests: {row:?}");
        let tests = named(row[2]);
        assert!(!tests.is_empty(), "no test: {row:?}");
        they_exist(&tests);
    }
}

/// All of the program's source, strings that go over several lines put together.
fn source() -> String {
    let mut source = String::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut places = vec![root.join("src"), root.join("crates")];
    while let Some(place) = places.pop() {
        if place.is_dir() {
            let entries = std::fs::read_dir(&place).expect("src can be read");
            places.extend(entries.map(|entry| entry.expect("src can be read").path()));
        } else {
            source += &std::fs::read_to_string(&place).expect("a source is UTF-8");
        }
    }
    let mut lines = source.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |text, line| text + line.trim_start())
}

/// What is quoted is said by the program, or demanded by the test, in these words.
#[test]
fn the_words_of_a_fault_are_those_that_are_said() {
    let source = source();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for row in faults() {
        let tests = named(row[3]).into_iter();
        let tests = tests.map(|(file, _)| std::fs::read_to_string(root.join(file)));
        let tests: String = tests.map(|text| text.expect("the test is there")).collect();
        for quoted in row[2].split('"').skip(1).step_by(2) {
            for words in quoted.split('…').map(str::trim) {
                let braced = words.replace('{', "{{").replace('}', "}}");
                let said = source.contains(words) || source.contains(&braced);
                assert!(said || tests.contains(words), "nobody says `{words}`");
            }
        }
    }
}
