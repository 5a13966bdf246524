//! Pages read well, and answer the questions of newcomers where they look.

use std::path::{Path, PathBuf};

use super::{
    BANNED, LONG, MEAN, MOST_LONG, MOST_PASSIVE, is_passive, plain, read_well, sentences, words,
};

/// Pages and directories of pages, all of which are checked.
const PAGES: [&str; 14] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "THREATS.md",
    "benches",
    "benches/generators",
    "benches/peers",
    "docs",
    "docs/how-to",
    "docs/models",
    "fuzz",
    "results",
    "tests",
];
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = Vec::new();
    for page in PAGES.map(|page| root.join(page)) {
        if page.is_file() {
            pages.push(page);
            continue;
        }
        let entries = std::fs::read_dir(&page).expect("a directory of pages");
        let entries = entries.map(|entry| entry.expect("an entry").path());
        pages.extend(entries.filter(|path| path.extension().is_some_and(|kind| kind == "md")));
    }
    pages
}

fn text_of(page: &Path) -> String {
    std::fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

/// A page without its generated parts: those from the reference runs, which have the words of the records, and those
/// from the catalogue of metrics.
fn written(page: &str) -> String {
    let mut is_generated = false;
    let lines = page.lines().filter(|line| {
        is_generated |= line.starts_with("<!-- metrics:")
            || line.starts_with("<!-- ") && line.contains("reference run");
        let is_kept = !is_generated;
        is_generated &= !line.starts_with("<!-- end of ");
        is_kept
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The cells of a page's tables, without quoted text, which throng or other programs print.
fn cells(page: &str) -> Vec<String> {
    let rows = page.lines().filter(|line| line.starts_with('|'));
    let cells = rows.flat_map(|row| row.split('|')).map(plain);
    cells
        .map(|cell| cell.split('"').step_by(2).collect::<String>())
        .map(|cell| format!(" {}", cell.trim()))
        .collect()
}

/// The faults of the sentences of a page. On a short page, one may be long, and three in the passive voice.
fn faults(sentences: &[String]) -> Vec<String> {
    let count = sentences.len().max(1) as f64;
    let mean = sentences.iter().map(|text| words(text)).sum::<usize>() as f64 / count;
    let long = sentences.iter().filter(|text| words(text) > LONG);
    let long: Vec<&String> = long.collect();
    let passive = sentences.iter().filter(|text| is_passive(text)).count() as f64;
    let mut faults = Vec::new();
    if mean > MEAN {
        faults.push(format!("sentences have {mean:.1} words on average"));
    }
    if long.len() as f64 > (MOST_LONG * count).max(1.0) {
        faults.push(format!("long sentences: {long:#?}"));
    }
    if passive > (MOST_PASSIVE * count).max(3.0) {
        faults.push(format!("{passive} of {count} sentences are passive"));
    }
    faults
}

#[test]
fn pages_read_well() {
    let mut all = Vec::new();
    let mut wrong = Vec::new();
    for page in pages() {
        let name = page.display().to_string();
        let text = written(&text_of(&page));
        for cell in cells(&text) {
            let lower = format!("{} ", cell.to_lowercase());
            let banned = BANNED.iter().filter(|phrase| lower.contains(**phrase));
            wrong.extend(banned.map(|phrase| format!("{name}: `{phrase}` in{cell}")));
        }
        let sentences = sentences(&text);
        let faults = faults(&sentences).into_iter();
        wrong.extend(faults.map(|fault| format!("{name}: {fault}")));
        all.extend(sentences.into_iter().map(|text| (name.clone(), text)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    read_well(&all, &BANNED);
}

/// Names of tests are for developers.
#[test]
fn pages_for_users_name_no_tests() {
    for page in pages() {
        let place = page.strip_prefix(env!("CARGO_MANIFEST_DIR"));
        let place = place.expect("a page of the repository");
        let is_for_users = place.starts_with("docs") || place == Path::new("README.md");
        let named = text_of(&page).contains(".rs::");
        assert!(!(is_for_users && named), "{}", page.display());
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
        ("Does it do TLS?", "README.md", "for HTTP, HTTPS"),
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
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let top = |page: &str, lines| {
        let text = text_of(&root.join(page));
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
    let text = include_str!("../../../README.md");
    let count = text.split_whitespace().count();
    assert!(count <= 1400, "README.md has {count} words");
    let first_screens: String = text.lines().take(40).collect();
    assert!(
        first_screens.contains("## Installation"),
        "it has to come early"
    );
}

#[test]
fn generated_parts_are_left_out() {
    let page = "Kept.\n<!-- claims: of the reference run -->\nNo word of a record.\n<!-- end of claims -->\nKept, too.";
    assert_eq!(written(page), "Kept.\nKept, too.");
}
