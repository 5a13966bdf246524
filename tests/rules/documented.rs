//! The page on measuring names the tests that keep each rule; they are there.

use std::path::Path;

const PAGE: &str = include_str!("../../docs/measuring.md");

/// The tests that the page names: `file::test`.
fn named() -> Vec<(&'static str, &'static str)> {
    let kept = PAGE
        .lines()
        .filter_map(|line| line.strip_prefix("Kept by "));
    kept.flat_map(|line| line.split('`').skip(1).step_by(2))
        .map(|name| name.split_once("::").expect("`file::test`"))
        .collect()
}

#[test]
fn every_test_that_is_named_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let named = named();
    assert!(named.len() > 30, "{named:?}");
    for (file, test) in named {
        let path = root.join(file);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
        let there = text.contains(&format!("fn {test}("));
        assert!(there, "{file} has no test {test}");
    }
}

#[test]
fn every_rule_has_a_test() {
    let rules: Vec<&str> = PAGE.split("\n### ").skip(1).collect();
    assert_eq!(rules.len(), 20);
    for (rule, number) in rules.iter().zip(1..) {
        assert!(rule.starts_with(&format!("{number}. ")), "{rule}");
        assert!(rule.contains("\nKept by `"), "rule {number} has no test");
    }
}
