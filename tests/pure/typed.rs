//! Texts are made at the rim: no code reads a sentence that code wrote, or asks a name what it contains. And a name is
//! bound once in a function: a value and what is made of it have different names.

use std::fs;
use std::path::{Path, PathBuf};

use super::words::add_files;

/// Methods that read a text.
const READS: [&str; 8] = [
    "starts_with",
    "ends_with",
    "contains",
    "split_once",
    "strip_prefix",
    "strip_suffix",
    "trim_end_matches",
    "trim_start_matches",
];
/// Fields that hold a text for people.
const TEXTS: [&str; 5] = ["reason", "kind", "name", "text", "label"];
/// Modules that only exist in tests.
const OF_TESTS: [&str; 6] = [
    "tests",
    "fixture",
    "estimates",
    "not_ranked",
    "one_value",
    "over",
];
/// Calls that may read a text: the file, the call, and the origin of the text.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    (
        "crates/throng-measure/src/network/unix.rs",
        "name.strip_prefix(",
        "a socket's name, from the kernel",
    ),
    (
        "crates/throng-measure/src/probes/capture.rs",
        "line.contains(\"listening on\"",
        "output of tcpdump",
    ),
    (
        "crates/throng-measure/src/probes/capture.rs",
        "what.ends_with(\"dropped by kernel\"",
        "output of tcpdump",
    ),
    (
        "crates/throng-measure/src/servers/announced.rs",
        "output.contains(\"address already in use\"",
        "output of a server",
    ),
    (
        "crates/throng-measure/src/servers/announced.rs",
        "line.split_once(\"listening on \"",
        "output of a server",
    ),
    (
        "crates/throng-record/src/metrics/find.rs",
        "name.strip_suffix(",
        "what a user typed",
    ),
    (
        "crates/throng-record/src/metrics/find.rs",
        "name.strip_prefix(",
        "what a user typed",
    ),
    (
        "crates/throng-report/src/document/terminal.rs",
        "text.ends_with(\"\\n\\n\"",
        "a buffer that is being written",
    ),
    (
        "crates/throng-spec/src/target/resolve.rs",
        "text.strip_prefix(\"failed to lookup address information: \"",
        "a message of Rust's library",
    ),
    (
        "crates/throng-view/src/list.rs",
        "name.contains(",
        "the name of a directory",
    ),
    (
        "src/study/file.rs",
        "message.strip_prefix(\"unknown field \"",
        "a message of serde",
    ),
];

/// Names that are bound again, with their files: clones for a thread, and other values on other systems.
const BOUND_AGAIN: [(&str, &str); 5] = [
    ("crates/throng-serve/src/models/thread_pool.rs", "queue"),
    ("crates/throng-sys/src/shared.rs", "flags"),
    ("src/cli/mod.rs", "ended"),
    ("src/cli/mod.rs", "typed"),
    ("src/cli/serve.rs", "offer"),
];

/// Its lines without comments and unit tests.
fn code_lines(source: &str) -> impl Iterator<Item = &str> {
    source
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default()
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("//"))
}

/// The names that a function binds again with `let` while the first binding is in scope.
fn bound_again(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut depth, mut bound): (usize, Vec<(usize, &str)>) = (0, Vec::new());
    // Bindings whose value is still being made.
    let mut open: Vec<(usize, &str)> = Vec::new();
    for line in code_lines(source) {
        if line.contains("fn ") && line.contains('(') {
            (bound, open) = Default::default();
        }
        // A line that closes a block may open the next one: `} else {`.
        let closing = line.chars().take_while(|c| "}])".contains(*c));
        let least = depth.saturating_sub(closing.filter(|c| *c == '}').count());
        bound.retain(|(at, _)| *at <= least);
        let declared = line.strip_prefix("let ");
        let declared = declared.map(|rest| rest.trim_start_matches("mut "));
        let name = declared.and_then(|rest| rest.split([' ', ':', ';']).next());
        let is_name =
            |name: &&str| *name != "_" && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if let Some(name) = name.filter(is_name) {
            if bound.iter().any(|(_, other)| *other == name) {
                found.push(name.to_owned());
            }
            open.push((least, name));
        }
        let braces = |sought| line.matches(sought).count();
        depth = (depth + braces('{')).saturating_sub(braces('}'));
        while let Some(ended) = open.pop_if(|(at, _)| *at == depth && line.ends_with(';')) {
            bound.push(ended);
        }
    }
    found.sort();
    found
}

/// The calls in a source that read a text: with an argument of several words, or on a field for people. Comments and
/// unit tests do not count.
fn reads(source: &str) -> Vec<String> {
    let code: Vec<&str> = code_lines(source).collect();
    // A chain of calls on one line.
    let code = code.join("\n").replace("\n.", ".");
    let mut found = Vec::new();
    for method in READS {
        for (at, call) in code.match_indices(&format!(".{method}(")) {
            let receiver = code[..at]
                .trim_end_matches("()")
                .trim_end_matches(".as_str");
            let field = receiver
                .rsplit(|c: char| !c.is_alphanumeric() && c != '_')
                .next();
            let before = &receiver[..receiver.len() - field.map_or(0, str::len)];
            let is_text =
                before.ends_with('.') && field.is_some_and(|field| TEXTS.contains(&field));
            let argument = code[at + call.len()..].trim_start();
            let literal = argument
                .strip_prefix('"')
                .and_then(|rest| rest.split('"').next());
            let is_word = |word: &&str| word.chars().any(char::is_alphanumeric);
            let words = literal.map_or(0, |text| text.split_whitespace().filter(is_word).count());
            if words > 1 || is_text {
                let owner = field.unwrap_or_default();
                let argument = literal.map_or(String::new(), |text| format!("\"{text}\""));
                found.push(format!("{owner}.{method}({argument}"));
            }
        }
    }
    found
}

/// What `seek` finds in the sources of the product, with the files.
fn found_in_all(seek: fn(&str) -> Vec<String>) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<PathBuf> = Vec::new();
    for directory in ["crates", "src"] {
        add_files(&root.join(directory), &["rs"], &mut files);
    }
    let mut found = Vec::new();
    for file in files {
        let path = file.strip_prefix(root).expect("it is below the root");
        let mut steps = path.iter().filter_map(|step| step.to_str());
        let is_source =
            path.starts_with("src") || path.iter().nth(2).is_some_and(|step| step == "src");
        if is_source && !steps.any(|step| OF_TESTS.contains(&step.trim_end_matches(".rs"))) {
            let text = fs::read_to_string(&file).expect("a source is UTF-8");
            let path = path.display().to_string();
            found.extend(seek(&text).into_iter().map(|what| (path.clone(), what)));
        }
    }
    found.sort();
    found
}

#[test]
fn no_code_reads_a_text_that_code_wrote() {
    let found = found_in_all(reads);
    let is_allowed = |(path, call): &&(String, String)| {
        EXCEPTIONS
            .iter()
            .any(|(file, text, _)| path == file && call == text)
    };
    let others: Vec<_> = found.iter().filter(|read| !is_allowed(read)).collect();
    assert!(others.is_empty(), "use a typed value: {others:#?}");
    for (file, call, origin) in EXCEPTIONS {
        let is_used = found
            .iter()
            .any(|(path, text)| path == file && text == call);
        assert!(is_used && !origin.is_empty(), "{file} no longer has {call}");
    }
}

#[test]
fn planted_readers_are_found() {
    let planted = "\
fn find(failure: &Failure) -> bool {
    // failure.reason.starts_with(\"the server\") in a comment
    failure.reason.starts_with(PREFIX)
        || failure
            .kind
            .as_str()
            .ends_with('s')
        || line.contains(
            \"4 clients unserved\",
        )
        || names.contains(&name) || line.starts_with(\"POST /\") || line.contains(\" client\")
}
#[cfg(test)]
mod tests {
    fn f() { assert!(text.contains(\"of a test\")); }
}
";
    assert_eq!(
        reads(planted),
        [
            "reason.starts_with(",
            "kind.ends_with(",
            "line.contains(\"4 clients unserved\"",
        ]
    );
}

#[test]
fn a_name_is_bound_once_in_a_function() {
    let found = found_in_all(bound_again);
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|(file, name)| (&**file, &**name))
        .collect();
    assert_eq!(
        found, BOUND_AGAIN,
        "give what is made of a value a name of its own"
    );
}

#[test]
fn planted_names_that_are_bound_again_are_found() {
    let planted = "\
fn f(text: &str) {
    let words = text.split(' ');
    let mut words: Vec<&str> = words.collect();
    for word in words {
        let word_text = word;
    }
    let word_text = 1;
    if word_text > 0 {
        let other = 1;
    } else {
        let other = format!(\"{}\", 2);
        let _ = { let other = 3; };
        let words = 4;
    }
}
fn g() { let words = 1; }
";
    assert_eq!(bound_again(planted), ["words", "words"]);
}
