//! What must never be, as ARCHITECTURE.md says it: who may import whom, who prints, who is unsafe,
//! and how long a file may be.
//!
//! The checks read the source as text. Comments, the contents of strings and unit tests are left
//! out first; a path is followed whether it is written with `crate::`, with `super::` or in braces.

use std::fs;
use std::path::{Path, PathBuf};

/// Longest file, unit tests included.
const MOST_LINES: usize = 500;

/// A file of `src`, ready to be searched.
struct Source {
    /// Below `src`, like "load/worker.rs".
    path: String,
    lines: usize,
    /// Its code without comments, strings and unit tests.
    code: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        let code = without_comments_and_strings(text);
        let code = code
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        Self {
            path: path.to_owned(),
            lines: text.lines().count(),
            code: code.to_owned(),
        }
    }

    /// The module directly below the crate that it belongs to: "load" for load/worker.rs.
    fn part(&self) -> &str {
        let end = self.path.find(['/', '.']).unwrap_or(self.path.len());
        &self.path[..end]
    }

    /// Its module path: `["load", "worker"]` for load/worker.rs, `["load"]` for load/mod.rs.
    fn module(&self) -> Vec<&str> {
        let stem = self.path.trim_end_matches(".rs").trim_end_matches("/mod");
        stem.split('/')
            .filter(|name| !["lib", "main"].contains(name))
            .collect()
    }

    /// Paths that it names, as seen from the crate: "load::foresee::check".
    fn uses(&self) -> Vec<String> {
        let mut uses = Vec::new();
        for (at, _) in self.code.match_indices("crate::") {
            expand("", &self.code[at + "crate::".len()..], &mut uses);
        }
        let module = self.module();
        for (at, _) in self.code.match_indices("super::") {
            if self.code[..at].ends_with("super::") {
                continue; // counted from the first one
            }
            let mut rest = &self.code[at..];
            let mut depth = module.len();
            while let Some(after) = rest.strip_prefix("super::") {
                rest = after;
                depth = depth.saturating_sub(1);
            }
            expand(&module[..depth].join("::"), rest, &mut uses);
        }
        uses
    }

    /// Whether it names `target` or anything in it.
    fn names(&self, target: &str) -> bool {
        let within = format!("{target}::");
        let uses = self.uses();
        uses.iter()
            .any(|path| path == target || path.starts_with(&within))
    }
}

/// Adds every path that `text` begins with to `paths`: one, or several when braces follow.
fn expand(from: &str, text: &str, paths: &mut Vec<String>) {
    let joined = |name: &str| {
        if from.is_empty() {
            name.to_owned()
        } else {
            format!("{from}::{name}")
        }
    };
    let text = text.trim_start();
    if let Some(inside) = text.strip_prefix('{') {
        for branch in branches(inside) {
            expand(from, branch, paths);
        }
        return;
    }
    let end = text
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    if end == 0 {
        return;
    }
    let path = joined(&text[..end]);
    match text[end..].strip_prefix("::") {
        Some(rest) if !rest.starts_with(['<', '*']) => expand(&path, rest, paths),
        _ => paths.push(path),
    }
}

/// The parts between commas up to the brace that closes what was opened before `text`.
fn branches(text: &str) -> Vec<&str> {
    let mut branches = Vec::new();
    let (mut depth, mut from) = (0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                branches.push(&text[from..at]);
                return branches;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                branches.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    branches
}

/// The text with comments and what stands between double quotes taken out, line ends kept.
fn without_comments_and_strings(text: &str) -> String {
    let mut code = String::new();
    let mut chars = text.chars().peekable();
    let mut last = ' ';
    while let Some(c) = chars.next() {
        match c {
            '/' if chars.peek() == Some(&'/') => while chars.next_if(|&c| c != '\n').is_some() {},
            // A quote as a character is no string.
            '"' if last != '\'' && last != '\\' => {
                let mut escaped = false;
                for c in chars.by_ref() {
                    match c {
                        '"' if !escaped => break,
                        '\n' => code.push('\n'),
                        _ => {}
                    }
                    escaped = c == '\\' && !escaped;
                }
                code.push_str("\"\"");
            }
            c => code.push(c),
        }
        last = c;
    }
    code
}

/// Everything in which a source breaks the rules.
fn breaches(source: &Source) -> Vec<String> {
    let mut breaches = Vec::new();
    let part = source.part();
    let mut forbid = |target: &str, why: &str| {
        if source.names(target) {
            breaches.push(format!("{} uses `{target}`: {why}", source.path));
        }
    };
    match part {
        "protocol" | "stats" | "flows" => {
            let why = "it imports nothing of ours but `registry`";
            for other in PARTS
                .iter()
                .filter(|other| ![part, "registry"].contains(*other))
            {
                forbid(other, why);
            }
        }
        "serve" => forbid("load", "server and load know nothing of each other"),
        "load" => forbid("serve", "server and load know nothing of each other"),
        "measure" => {
            for target in ["serve", "load::run", "load::worker"] {
                forbid(target, "servers and loads are measured as processes");
            }
        }
        "report" => {
            for target in ["serve", "load", "measure"] {
                forbid(target, "a report runs nothing");
            }
        }
        "view" => {
            for target in ["serve", "load", "measure", "cli"] {
                forbid(target, "it shows what is there and runs nothing");
            }
        }
        "learn" => {
            for target in ["load", "measure", "cli"] {
                forbid(
                    target,
                    "a lesson runs nothing: it is told what was traced and measured",
                );
            }
        }
        _ => {}
    }
    if part == "report" && source.code.contains("std::process") {
        breaches.push(format!(
            "{} uses std::process: a report runs nothing",
            source.path
        ));
    }
    // "eprintln!" and "anstream::println!" contain these too.
    let prints = ["println!", "print!"]
        .iter()
        .any(|print| source.code.contains(print));
    if prints && !["cli", "report", "main"].contains(&part) {
        breaches.push(format!(
            "{} prints: only `cli` and `report` do",
            source.path
        ));
    }
    let mut words = source
        .code
        .split(|c: char| !c.is_alphanumeric() && c != '_');
    if part != "sys" && words.any(|word| word == "unsafe") {
        breaches.push(format!("{} is unsafe: only `sys` is", source.path));
    }
    if source.lines > MOST_LINES {
        let lines = source.lines;
        breaches.push(format!(
            "{} has {lines} lines: {MOST_LINES} at most",
            source.path
        ));
    }
    breaches
}

const PARTS: [&str; 14] = [
    "cli", "flows", "learn", "load", "measure", "protocol", "record", "registry", "report",
    "serve", "stats", "study", "sys", "view",
];

/// Every file of `src`.
fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources = Vec::new();
    let mut directories = vec![root.clone()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("src can be read") {
            let path: PathBuf = entry.expect("src can be read").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let below = path.strip_prefix(&root).expect("it is below src");
                let text = fs::read_to_string(&path).expect("a source is UTF-8");
                sources.push(Source::new(&below.to_string_lossy(), &text));
            }
        }
    }
    sources
}

#[test]
fn nothing_is_as_it_must_never_be() {
    let sources = sources();
    assert!(sources.len() > 40, "all of src was read");
    let found: Vec<String> = sources.iter().flat_map(breaches).collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn every_part_is_known_here() {
    for source in sources() {
        let part = source.part();
        let known = PARTS.contains(&part) || ["main", "lib"].contains(&part);
        assert!(known, "add `{part}` to PARTS, and say what it may import");
    }
}

/// What the checker says about a file with this code.
fn about(path: &str, code: &str) -> Vec<String> {
    breaches(&Source::new(path, code))
}

#[test]
fn planted_breaches_are_found() {
    for (path, code) in [
        ("protocol/http.rs", "use crate::load::now;"),
        ("protocol/http.rs", "use crate::{registry::Info, sys};"),
        ("protocol/mod.rs", "use super::record::Run;"),
        (
            "stats/interval.rs",
            "fn f() { crate::sys::clock::thread_cpu_time(); }",
        ),
        ("stats/interval.rs", "use super::super::study::Study;"),
        ("flows/packet.rs", "use crate::load::now;"),
        (
            "serve/conn.rs",
            "use crate::{\n    protocol::{self, Session},\n    load::{Plan, run},\n};",
        ),
        ("load/worker.rs", "use super::super::serve::Server;"),
        ("measure/run.rs", "crate::load::run(&plan, &mut watcher)"),
        (
            "measure/run.rs",
            "use crate::load::{foresee, worker::Worker};",
        ),
        (
            "measure/probes/cpu.rs",
            "use super::super::super::serve::models::MODELS;",
        ),
        ("report/mod.rs", "use crate::measure::host;"),
        ("view/server.rs", "use crate::measure::run;"),
        ("learn/page.rs", "use crate::measure::trace;"),
        (
            "report/render/png.rs",
            "std::process::Command::new(\"dot\")",
        ),
        ("serve/listen.rs", "eprintln!(\"out of descriptors\");"),
        ("measure/run.rs", "anstream::println!(\"trial\");"),
        ("load/mod.rs", "let value = unsafe { *pointer };"),
        ("serve/listen.rs", &"\n".repeat(MOST_LINES + 1)),
    ] {
        assert_eq!(about(path, code).len(), 1, "{path}: {code}");
    }
}

#[test]
fn what_is_allowed_is_no_breach() {
    for (path, code) in [
        (
            "protocol/http.rs",
            "use crate::registry::{Entry, Info};\nuse super::{Protocol, Session};",
        ),
        (
            "protocol/http.rs",
            "/// As `crate::load::now` would.\n// unsafe, println!\nfn f() {}",
        ),
        (
            "protocol/http.rs",
            "const TEXT: &str = \"use crate::load; \\\" unsafe println!\";",
        ),
        (
            "stats/mod.rs",
            "fn f() {}\n\n#[cfg(test)]\nmod tests {\n    use crate::load::now;\n}",
        ),
        (
            "measure/plan.rs",
            "use crate::load::foresee::Resources;\nuse super::run::Observer;",
        ),
        (
            "load/mod.rs",
            "pub(crate) fn run() {}\nuse self::phase::Phase;",
        ),
        ("cli/output.rs", "println!(\"{text}\");"),
        ("sys/poll.rs", "unsafe { poll() }"),
        ("serve/listen.rs", "let quote = '\"'; let other = '\"';"),
    ] {
        assert_eq!(about(path, code), [""; 0], "{path}: {code}");
    }
}
