//! Comments in code use the terms of the field.

use std::fs;
use std::path::Path;

/// Phrases that no comment may contain, except in quotes.
const BANNED_IN_COMMENTS: [&str; 20] = [
    " crowd",
    " does otherwise",
    " for ever ",
    " for want of ",
    " heard ",
    " in vain",
    " is looked whether ",
    " is said",
    " looked at ",
    " put together",
    " so long as ",
    " so many ",
    " somebody",
    " tell of ",
    " tells of ",
    " told",
    " two looks ",
    " under way",
    " what becomes of ",
    " whoever",
];

/// Comments with a banned phrase, in all sources below a directory.
fn faults(directory: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(directory).expect("a directory of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            faults(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let text = fs::read_to_string(&path).expect("sources can be read");
            for (number, line) in text.lines().enumerate() {
                let comment = line.split_once("// ").or_else(|| line.split_once("//! "));
                let Some((_, comment)) = comment else {
                    continue;
                };
                let unquoted: String = comment.split('"').step_by(2).collect();
                let lower = format!(" {} ", unquoted.to_lowercase());
                let banned = BANNED_IN_COMMENTS.iter();
                let banned = banned.filter(|phrase| lower.contains(**phrase));
                let place = format!("{}:{}", path.display(), number + 1);
                found.extend(banned.map(|phrase| format!("{place}: `{phrase}`")));
            }
        }
    }
}

#[test]
fn comments_read_well() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for directory in ["src", "crates"] {
        faults(&root.join(directory), &mut found);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
