//! The layers that ARCHITECTURE.md describes. Cargo enforces who may import whom; this test pins the list of
//! dependencies, and checks what Cargo cannot: cycles between modules, printing, unsafe code, and file lengths.
//!
//! The checks read the source as text. Comments, the contents of strings and unit tests are removed
//! first; a path is followed whether it is written with `crate::`, with `super::` or in braces.

mod planted;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Longest file, unit tests included.
const MOST_LINES: usize = 1000;

/// Every crate of the workspace, and our crates that it may depend on.
const LAYERS: &[(&str, &[&str])] = &[
    ("throng-stats", &[]),
    ("tcpflows", &[]),
    ("throng-protocol", &[]),
    ("throng-sys", &[]),
    ("throng-spec", &["throng-protocol"]),
    (
        "throng-record",
        &["throng-protocol", "throng-spec", "throng-stats"],
    ),
    ("throng-tls", &["throng-protocol", "throng-spec"]),
    (
        "throng-serve",
        &["throng-protocol", "throng-spec", "throng-sys"],
    ),
    (
        "throng-report",
        &["throng-record", "throng-spec", "throng-stats"],
    ),
    (
        "throng-view",
        &["throng-record", "throng-report", "throng-sys"],
    ),
    (
        "throng-load",
        &[
            "throng-protocol",
            "throng-record",
            "throng-spec",
            "throng-stats",
            "throng-sys",
            "throng-tls",
        ],
    ),
    (
        "throng-measure",
        &[
            "tcpflows",
            "throng-protocol",
            "throng-record",
            "throng-spec",
            "throng-stats",
            "throng-sys",
            "throng-tls",
        ],
    ),
    ("throng-mpi", &["throng"]),
    (
        "throng",
        &[
            "tcpflows",
            "throng-load",
            "throng-measure",
            "throng-protocol",
            "throng-record",
            "throng-report",
            "throng-serve",
            "throng-spec",
            "throng-stats",
            "throng-sys",
            "throng-tls",
            "throng-view",
        ],
    ),
];

/// A source file, ready to be searched.
struct Source {
    /// The crate's directory below the workspace: "crates/throng-load"; "." is the program.
    home: String,
    /// The path below the crate's `src`: "engine/epoll.rs".
    path: String,
    lines: usize,
    /// Whether its documentation has an example that would be a test. Such tests are turned off (`doctest = false`).
    has_example: bool,
    /// Whether it includes a file outside of its crate, which a package of the crate would not have.
    leaves_crate: bool,
    /// Its code without comments, strings and unit tests.
    code: String,
}

impl Source {
    fn new(home: &str, path: &str, text: &str) -> Self {
        let code = without_comments_and_strings(text);
        let code = code
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        Self {
            home: home.to_owned(),
            path: path.to_owned(),
            lines: text.lines().count(),
            has_example: has_example(text),
            leaves_crate: leaves_crate(path, text),
            code: code.to_owned(),
        }
    }

    /// Its module path: `["load", "worker"]` for load/worker.rs, `["load"]` for load/mod.rs, empty for lib.rs.
    fn module(&self) -> Vec<&str> {
        let stem = self.path.trim_end_matches(".rs").trim_end_matches("/mod");
        stem.split('/')
            .filter(|name| !["lib", "main"].contains(name))
            .collect()
    }

    /// Paths that it names, relative to the crate: "load::preflight::check".
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
}

/// Whether a file is included from outside of the crate. Tests may: a package is built without them.
fn leaves_crate(path: &str, text: &str) -> bool {
    let calls = ["include_str!(", "include_bytes!("];
    let mut included = calls.iter().flat_map(|call| text.split(call).skip(1));
    let to_root = 1 + path.matches('/').count();
    !path.ends_with("tests.rs")
        && included.any(|rest| {
            let file: String = rest.chars().take(100).collect();
            let from_root = file.contains("CARGO_MANIFEST_DIR");
            file.contains(&"../".repeat(if from_root { 1 } else { to_root + 1 }))
        })
}

/// Whether a code block of the documentation is Rust: marked as such, or not marked.
fn has_example(text: &str) -> bool {
    let lines = text.lines().map(str::trim_start);
    let documentation =
        lines.filter_map(|line| line.strip_prefix("//!").or(line.strip_prefix("///")));
    let mut fences = documentation.filter_map(|line| line.trim().strip_prefix("```"));
    // The second fence of each pair ends the block.
    std::iter::from_fn(|| {
        let language = fences.next()?;
        fences.next();
        Some(language)
    })
    .any(|language| language.is_empty() || language.starts_with("rust"))
}

/// Adds every path that `text` begins with to `paths`: one, or several if braces follow.
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

/// The parts between commas up to the brace that closes the one before `text`.
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

/// The text without comments and string literals, with line ends kept.
fn without_comments_and_strings(text: &str) -> String {
    let mut code = String::new();
    let mut chars = text.chars().peekable();
    let mut last = ' ';
    while let Some(c) = chars.next() {
        match c {
            '/' if chars.peek() == Some(&'/') => while chars.next_if(|&c| c != '\n').is_some() {},
            // A quote in a character literal does not begin a string.
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

/// The groups of sibling modules that import each other, as "crates/NAME: parent: a b c".
fn cycles(sources: &[Source]) -> BTreeSet<String> {
    // For each parent module: which of its children import which.
    let mut imports: BTreeMap<(String, String), BTreeMap<String, BTreeSet<String>>> =
        BTreeMap::new();
    let modules: BTreeSet<(String, String)> = sources
        .iter()
        .map(|source| (source.home.clone(), source.module().join("::")))
        .collect();
    for source in sources {
        let from = source.module();
        // Compiled for tests only.
        if from
            .iter()
            .any(|name| ["fixture", "synthetic", "tests"].contains(name))
        {
            continue;
        }
        for path in source.uses() {
            let to: Vec<&str> = path.split("::").collect();
            let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            let (Some(a), Some(b)) = (from.get(shared), to.get(shared)) else {
                continue;
            };
            let parent = from[..shared].join("::");
            let target = to[..=shared].join("::");
            if modules.contains(&(source.home.clone(), target)) {
                imports
                    .entry((source.home.clone(), parent))
                    .or_default()
                    .entry((*a).to_owned())
                    .or_default()
                    .insert((*b).to_owned());
            }
        }
    }
    let mut found = BTreeSet::new();
    for ((home, parent), edges) in &imports {
        for from in edges.keys() {
            let back = |to: &String| reachable(edges, to).contains(from);
            let mut cycle: Vec<String> = reachable(edges, from).into_iter().filter(back).collect();
            cycle.sort();
            if cycle.len() > 1 {
                found.insert(format!("{home}: {parent}: {}", cycle.join(" ")));
            }
        }
    }
    found
}

/// Everything that can be reached from a module by following imports.
fn reachable(edges: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from.to_owned()];
    while let Some(module) = open.pop() {
        for next in edges.get(&module).into_iter().flatten() {
            if reached.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    reached
}

/// All breaches of the rules in a source.
fn breaches(source: &Source) -> Vec<String> {
    let mut breaches = Vec::new();
    let name = format!("{}/src/{}", source.home, source.path);
    if source.home == "crates/throng-report" && source.code.contains("std::process") {
        breaches.push(format!("{name} uses std::process: a report runs nothing"));
    }
    // "eprintln!" and "anstream::println!" contain these too.
    let prints = ["println!", "print!"]
        .iter()
        .any(|print| source.code.contains(print));
    let may_print = [".", "crates/throng-mpi"].contains(&source.home.as_str());
    if prints && !may_print {
        breaches.push(format!("{name} prints: only the program does"));
    }
    let may_be_unsafe =
        source.home == "crates/throng-sys" || name == "crates/throng-mpi/src/sys.rs";
    let mut words = source
        .code
        .split(|c: char| !c.is_alphanumeric() && c != '_');
    if !may_be_unsafe && words.any(|word| word == "unsafe") {
        breaches.push(format!("{name} is unsafe: only throng-sys is"));
    }
    if source.has_example {
        breaches.push(format!(
            "{name} has an example, which is not tested: `doctest` is false"
        ));
    }
    if source.leaves_crate {
        breaches.push(format!("{name} includes a file outside of its crate"));
    }
    if source.lines > MOST_LINES {
        let lines = source.lines;
        breaches.push(format!("{name} has {lines} lines: {MOST_LINES} at most"));
    }
    breaches
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The directories of all crates: "." and those in `crates`.
fn homes() -> Vec<String> {
    let mut homes = vec![".".to_owned()];
    for entry in fs::read_dir(root().join("crates")).expect("crates can be read") {
        let name = entry.expect("crates can be read").file_name();
        homes.push(format!("crates/{}", name.to_string_lossy()));
    }
    homes
}

/// Every source file of every crate.
fn sources() -> Vec<Source> {
    let mut sources = Vec::new();
    for home in homes() {
        let top = root().join(&home).join("src");
        let mut directories = vec![top.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(&directory).expect("src can be read") {
                let path: PathBuf = entry.expect("src can be read").path();
                if path.is_dir() {
                    directories.push(path);
                } else if path.extension().is_some_and(|ending| ending == "rs") {
                    let below = path.strip_prefix(&top).expect("it is below src");
                    let text = fs::read_to_string(&path).expect("a source is UTF-8");
                    sources.push(Source::new(&home, &below.to_string_lossy(), &text));
                }
            }
        }
    }
    sources
}

/// Our crates that a manifest depends on, except for tests.
fn dependencies(manifest: &toml::Table) -> BTreeSet<String> {
    let of = |table: &toml::Table| -> BTreeSet<String> {
        let names = table.get("dependencies").and_then(toml::Value::as_table);
        let ours = names.into_iter().flatten().map(|(name, _)| name.clone());
        ours.filter(|name| name.starts_with("throng") || name == "tcpflows")
            .collect()
    };
    let mut all = of(manifest);
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    for target in targets
        .into_iter()
        .flatten()
        .filter_map(|(_, table)| table.as_table())
    {
        all.extend(of(target));
    }
    all
}

#[test]
fn crates_depend_only_on_layers_below() {
    let mut seen = BTreeSet::new();
    for home in homes() {
        let text = fs::read_to_string(root().join(&home).join("Cargo.toml")).expect("a manifest");
        let manifest: toml::Table = text.parse().expect("a manifest is TOML");
        let name = manifest["package"]["name"]
            .as_str()
            .expect("a name")
            .to_owned();
        let allowed = LAYERS.iter().find(|(crate_name, _)| *crate_name == name);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("add `{name}` to LAYERS"));
        let allowed: BTreeSet<String> = allowed.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(dependencies(&manifest), allowed, "dependencies of {name}");
        // A layer may only use those above it in the table.
        for dependency in &allowed {
            assert!(
                name == "throng-mpi"
                    || seen.contains(dependency)
                    || name == "throng"
                    || below(&name, dependency),
                "{name} -> {dependency}"
            );
        }
        seen.insert(name);
    }
}

/// Whether `dependency` is above `name` in [`LAYERS`], that is, in a lower layer.
fn below(name: &str, dependency: &str) -> bool {
    let place = |name: &str| {
        LAYERS
            .iter()
            .position(|(crate_name, _)| *crate_name == name)
    };
    place(dependency) < place(name)
}

/// The table of crates in ARCHITECTURE.md names the same dependencies.
#[test]
fn the_page_has_the_same_layers() {
    let page = include_str!("../../ARCHITECTURE.md");
    for (name, dependencies) in LAYERS {
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}`")))
            .unwrap_or_else(|| panic!("no row for {name}"));
        let cell = row.trim_end_matches('|').rsplit('|').next();
        let cell = cell.expect("a last cell").trim();
        let short = dependencies
            .iter()
            .map(|name| name.trim_start_matches("throng-"));
        let expected = match *name {
            "throng" => "all of the above".to_owned(),
            _ => short.collect::<Vec<_>>().join(", "),
        };
        assert_eq!(cell, expected, "{name}");
    }
}

#[test]
fn sources_keep_the_rules() {
    let sources = sources();
    assert!(sources.len() > 300, "all crates were read");
    let found: Vec<String> = sources.iter().flat_map(breaches).collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn modules_have_no_cycles() {
    let found = cycles(&sources());
    assert!(found.is_empty(), "{found:#?}");
}
