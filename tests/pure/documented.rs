//! Each promise of the documentation has tests: tests/README.md names them, and they exist.

use std::path::Path;

const TESTS: &str = include_str!("../README.md");
const FAULTS: &str = include_str!("../../docs/faults.md");
const THREATS: &str = include_str!("../../THREATS.md");
const MEASURING: &str = include_str!("../../docs/measuring.md");

/// The tests that a cell names: `file::test` between backticks.
fn named(cell: &str) -> Vec<(&str, &str)> {
    let quoted = cell.split('`').skip(1).step_by(2);
    quoted.filter_map(|name| name.split_once("::")).collect()
}

/// The rows of all tables of a text, without their headers.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let lines: Vec<&str> = text.lines().collect();
    let is_row = |place: &usize| {
        let next = lines.get(place + 1).unwrap_or(&"");
        lines[*place].starts_with("| ") && !next.starts_with("|--")
    };
    let places = (0..lines.len()).filter(is_row);
    let cells = places.map(|place| lines[place].trim_matches('|').split(" | "));
    cells.map(|cells| cells.map(str::trim).collect()).collect()
}

/// The rows of a section of tests/README.md: each promise with its tests, which must exist.
fn promises(section: &str) -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
    let (_, text) = TESTS
        .split_once(&format!("\n## {section}\n"))
        .expect("it has this section");
    let rows = rows(text.split("\n## ").next().unwrap_or_default());
    let promises: Vec<_> = rows
        .iter()
        .map(|row| {
            assert_eq!(row.len(), 2, "a promise and its tests: {row:?}");
            (row[0], named(row[1]))
        })
        .collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (promise, tests) in &promises {
        assert!(!tests.is_empty(), "no test: {promise}");
        for (file, test) in tests {
            let path = root.join(file);
            let text =
                std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
            let exists = text.contains(&format!("fn {test}("));
            assert!(exists, "{file} has no test {test}");
        }
    }
    promises
}

/// Asserts that a section has the promises of a page, in the same words and order. Only the paths of links differ.
fn same_promises(section: &str, page: &[String]) {
    let promises: Vec<String> = promises(section)
        .iter()
        .map(|(promise, _)| promise.replace("](../docs/", "]("))
        .collect();
    assert_eq!(promises, page, "{section}: tests/README.md and the page");
    for (place, promise) in page.iter().enumerate() {
        assert!(!page[..place].contains(promise), "twice: {promise}");
    }
}

fn first_cells(rows: &[Vec<&str>]) -> Vec<String> {
    rows.iter().map(|row| row[0].to_owned()).collect()
}

#[test]
fn every_rule_has_tests() {
    let headings = MEASURING
        .lines()
        .filter_map(|line| line.strip_prefix("### "));
    let rules: Vec<String> = headings.map(str::to_owned).collect();
    for (rule, number) in rules.iter().zip(1..) {
        assert!(rule.starts_with(&format!("{number}. ")), "{rule}");
    }
    assert_eq!(rules.len(), 23);
    same_promises("Rules of measuring", &rules);
}

#[test]
fn every_fault_has_a_promise_and_tests() {
    let faults = rows(FAULTS);
    assert!(faults.len() > 40, "{faults:?}");
    for row in &faults {
        assert_eq!(
            row.len(),
            3,
            "fault, what throng does, what you see: {row:?}"
        );
        assert!(row.iter().all(|cell| !cell.is_empty()), "{row:?}");
    }
    same_promises("Faults", &first_cells(&faults));
}

#[test]
fn every_threat_has_a_promise_and_tests() {
    let (_, threats) = THREATS.split_once("\n## Threats\n").expect("a section");
    let threats = rows(threats);
    assert!(threats.len() > 20, "{threats:?}");
    for row in &threats {
        assert_eq!(row.len(), 2, "threat, what throng does: {row:?}");
    }
    same_promises("Threats", &first_cells(&threats));
}

/// Every case has a test, and every test of uploads is a case.
#[test]
fn every_case_of_uploads_has_a_test() {
    let cases = promises("Bulk uploads");
    assert!(cases.len() > 15, "{cases:?}");
    let source = include_str!("../processes/cli/uploads.rs");
    for test in source.split("#[test]\nfn ").skip(1) {
        let name = test.split('(').next().unwrap_or_default();
        let is_named = cases
            .iter()
            .any(|(_, tests)| tests.iter().any(|(_, test)| *test == name));
        assert!(is_named, "no case for {name}");
    }
}

/// All of the program's source, with strings that span several lines joined.
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

/// throng prints what the page on faults quotes, or the fault's tests require it.
#[test]
fn throng_prints_what_faults_quote() {
    let source = source();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (row, (_, tests)) in rows(FAULTS).iter().zip(promises("Faults")) {
        let tests: String = tests
            .iter()
            .map(|(file, _)| {
                std::fs::read_to_string(root.join(file)).expect("promises() has read it")
            })
            .collect();
        for quoted in row[2].split('"').skip(1).step_by(2) {
            for words in quoted.split('…').map(str::trim) {
                let braced = words.replace('{', "{{").replace('}', "}}");
                let printed = source.contains(words) || source.contains(&braced);
                assert!(printed || tests.contains(words), "nothing prints `{words}`");
            }
        }
    }
}
