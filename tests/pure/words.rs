//! Texts use the terms of the field.

use std::fs;
use std::path::{Path, PathBuf};

/// Phrases that a native engineer would not use, or not in this sense.
const BANNED: [&str; 14] = [
    " costs least",
    " for ever ",
    " for want of ",
    " heard ",
    " in vain",
    " is said",
    " lonely",
    " mended",
    " put together",
    " requests a second",
    " so long as ",
    " tells of ",
    " told",
    " whoever",
];

/// Adds all files below a directory with one of these extensions.
pub(super) fn add_files(directory: &Path, extensions: &[&str], all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("it can be read") {
        let path = entry.expect("it can be read").path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.is_dir() {
            add_files(&path, extensions, all);
        } else if extension.is_some_and(|extension| extensions.contains(&extension)) {
            all.push(path);
        }
    }
}

/// Documentation, sources with their comments and messages, studies, and what the program printed in tests.
#[test]
fn no_text_has_a_banned_phrase() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "THREATS.md",
    ];
    let mut files: Vec<PathBuf> = pages.map(|page| root.join(page)).into();
    for directory in [
        "crates",
        "docs",
        "src",
        "studies",
        "tests/processes/cli/snapshots",
    ] {
        add_files(
            &root.join(directory),
            &["md", "rs", "snap", "toml"],
            &mut files,
        );
    }
    let mut found = Vec::new();
    for path in &files {
        let text = fs::read_to_string(path).expect("a text is UTF-8");
        for (number, line) in text.lines().enumerate() {
            let lower = format!(" {} ", line.to_lowercase());
            let banned = BANNED.iter().filter(|phrase| lower.contains(**phrase));
            let place = format!("{}:{}", path.display(), number + 1);
            found.extend(banned.map(|phrase| format!("{place}: `{phrase}`")));
        }
    }
    assert!(
        files.len() > 500 && found.is_empty(),
        "{}",
        found.join("\n")
    );
}
