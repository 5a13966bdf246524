//! Every page is in the book's contents, and every link between pages leads somewhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All pages below a directory, as paths from there.
fn pages(directory: &Path) -> BTreeSet<String> {
    let mut pages = BTreeSet::new();
    let mut places = vec![directory.to_owned()];
    while let Some(place) = places.pop() {
        for entry in std::fs::read_dir(&place).expect("it can be read") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                places.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                let below = path.strip_prefix(directory).expect("it is below");
                pages.insert(below.to_string_lossy().into_owned());
            }
        }
    }
    pages
}

/// The targets of the links of a page, without those in code blocks.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        // Text between backquotes is code; it may be a link's text.
        let mut rest = line;
        while let Some((_, after)) = rest.split_once("](") {
            let Some((target, behind)) = after.split_once(')') else {
                break;
            };
            links.push(target.to_owned());
            rest = behind;
        }
    }
    links
}

/// The anchor of a heading: lower case, words joined by hyphens, nothing else.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept
        .chars()
        .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Whether a page has a heading with this anchor.
fn has_anchor(page: &Path, wanted: &str) -> bool {
    let text = std::fs::read_to_string(page).expect("a page is UTF-8");
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| anchor(line.trim_start_matches('#')))
        .any(|anchor| anchor == wanted)
}

#[test]
fn every_page_is_in_the_contents_of_the_book() {
    let docs = root().join("docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).expect("there is one");
    let listed: Vec<String> = links(&summary);
    let mut pages = pages(&docs);
    assert!(pages.remove("SUMMARY.md"));
    let missing: Vec<&String> = pages.iter().filter(|page| !listed.contains(page)).collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:?}");
    let wrong: Vec<&String> = listed
        .iter()
        .filter(|page| !pages.contains(*page))
        .collect();
    assert!(
        wrong.is_empty(),
        "in docs/SUMMARY.md, but not there: {wrong:?}"
    );
    assert_eq!(listed.len(), pages.len(), "a page is listed twice");
}

#[test]
fn every_link_of_the_documentation_leads_somewhere() {
    let docs = root().join("docs");
    let of_docs = pages(&docs);
    let mut files: Vec<PathBuf> = of_docs.iter().map(|page| docs.join(page)).collect();
    for page in [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "THREATS.md",
        "benches/README.md",
        "benches/generators/README.md",
        "benches/peers/README.md",
        "fuzz/README.md",
        "results/README.md",
        "tests/README.md",
    ] {
        files.push(root().join(page));
    }
    let mut count = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a page is UTF-8");
        for link in links(&text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            count += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match path {
                "" => file.clone(),
                path => file.parent().expect("a file is in a directory").join(path),
            };
            assert!(target.exists(), "{}: {link} leads nowhere", file.display());
            let found = anchor.is_empty() || has_anchor(&target, anchor);
            assert!(
                found,
                "{}: {link}: there is no such heading",
                file.display()
            );
        }
    }
    assert!(count > 50, "{count} links");
}

#[test]
fn links_are_found_and_headings_have_anchors() {
    let text = "See [a](b.md) and [c `d`](e.md#f-g).\n```\n[no](x)\n```\n";
    assert_eq!(links(text), ["b.md", "e.md#f-g"]);
    assert_eq!(anchor(" A lab, on `one` machine"), "a-lab-on-one-machine");
}
