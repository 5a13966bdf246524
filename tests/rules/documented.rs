//! Pages that name the tests that keep what they say: the tests are there.

use std::path::Path;

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
    assert_eq!(rules.len(), 20);
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
    let source = include_str!("../cli/uploads.rs");
    for test in source.split("#[test]\nfn ").skip(1) {
        let name = test.split('(').next().unwrap_or_default();
        assert!(UPLOADS.contains(&format!("::{name}`")), "no row for {name}");
    }
}
