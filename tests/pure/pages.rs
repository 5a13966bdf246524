//! Pages answer the questions of newcomers where they look.

use std::path::Path;

use super::words::add_files;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text_of(page: &Path) -> String {
    std::fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

/// Names of tests are for developers.
#[test]
fn pages_for_users_name_no_tests() {
    let mut pages = vec![root().join("README.md")];
    add_files(&root().join("docs"), &["md"], &mut pages);
    for page in pages {
        assert!(!text_of(&page).contains(".rs::"), "{}", page.display());
    }
}

/// The answers to a newcomer's questions are on the first two screens of the README, or at the top of a page that
/// these link to.
#[test]
fn a_newcomer_finds_answers() {
    const SCREENS: usize = 90;
    let answers = [
        (
            "What is it?",
            "README.md",
            "Benchmark network servers under many concurrent clients",
        ),
        ("Can it test my server?", "README.md", "Your server or ours"),
        (
            "How do I install it?",
            "README.md",
            "cargo install --path .",
        ),
        (
            "Is it faster than wrk?",
            "README.md",
            "as many requests](docs/comparison.md) per CPU-second as wrk",
        ),
        ("Does it do TLS?", "README.md", "over TLS too"),
        (
            "What is a model?",
            "README.md",
            "is a way to wait for many clients",
        ),
        ("How do I gate CI?", "docs/ci.md", "--fail-if-slower 10%"),
        (
            "What does inconclusive mean?",
            "README.md",
            "*inconclusive*: too much noise",
        ),
        ("Where is the data?", "README.md", "All data is in"),
        (
            "Can it hurt my machine?",
            "README.md",
            "throng needs no root",
        ),
    ];
    let top = |page: &str, lines| {
        let text = text_of(&root().join(page));
        let words = text.lines().take(lines).flat_map(str::split_whitespace);
        words.collect::<Vec<_>>().join(" ")
    };
    let readme = top("README.md", SCREENS);
    for (question, page, answer) in answers {
        let is_linked = page == "README.md" || readme.contains(&format!("]({page})"));
        let found = if page == "README.md" {
            readme.contains(answer)
        } else {
            top(page, SCREENS / 2).contains(answer)
        };
        assert!(is_linked && found, "{question} {page}");
    }
}

#[test]
fn the_readme_is_short() {
    let text = include_str!("../../README.md");
    let count = text.split_whitespace().count();
    assert!(count <= 1400, "README.md has {count} words");
    let first_screens: String = text.lines().take(40).collect();
    assert!(
        first_screens.contains("## Installation"),
        "it has to come early"
    );
}
