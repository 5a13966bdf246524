//! The dependencies of throng: licences, sources and versions, as `deny.toml` allows them.
//!
//! cargo-deny reads the same file, but building it takes longer than all these tests, so they do not require it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const DENY: &str = include_str!("../../deny.toml");
const LOCK: &str = include_str!("../../Cargo.lock");
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn allowed(table: &str, key: &str) -> BTreeSet<String> {
    let deny: toml::Table = DENY.parse().expect("deny.toml is TOML");
    let list = deny[table][key].as_array().expect("it is a list");
    list.iter()
        .filter_map(|one| one.as_str().map(str::to_owned))
        .collect()
}

/// Whether these licences satisfy a licence expression (SPDX): one of the licences joined by `OR`, all of the licences
/// joined by `AND`. `/` is an old form of `OR`.
fn is_met(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut words = words.as_slice();
    let met = any(&mut words, allowed);
    met && words.is_empty()
}

fn any(words: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut met = all(words, allowed);
    while words.first() == Some(&"OR") {
        *words = &words[1..];
        met |= all(words, allowed);
    }
    met
}

fn all(words: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut met = one(words, allowed);
    while words.first() == Some(&"AND") {
        *words = &words[1..];
        met &= one(words, allowed);
    }
    met
}

fn one(words: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let Some((first, rest)) = words.split_first() else {
        return false;
    };
    *words = rest;
    if *first == "(" {
        let met = any(words, allowed);
        let closed = words.first() == Some(&")");
        *words = words.get(1..).unwrap_or_default();
        return met && closed;
    }
    match words {
        ["WITH", exception, rest @ ..] => {
            *words = rest;
            allowed.contains(&format!("{first} WITH {exception}"))
        }
        _ => allowed.contains(*first),
    }
}

#[test]
fn licence_expressions_are_read() {
    let allowed = ["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"]
        .map(str::to_owned)
        .into();
    for met in [
        "MIT",
        "GPL-3.0 OR MIT",
        "MIT/Apache-2.0",
        "(MIT OR GPL-3.0) AND Zlib",
        "Apache-2.0 WITH LLVM-exception OR Apache-2.0",
    ] {
        assert!(is_met(met, &allowed), "{met}");
    }
    for unmet in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "Apache-2.0",
        "(MIT",
        "MIT)",
        "MIT WITH x",
    ] {
        assert!(!is_met(unmet, &allowed), "{unmet}");
    }
}

/// Cargo's metadata of all packages, or its error.
fn metadata(more: &[&str]) -> Result<Value, String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--format-version=1", "--locked"]);
    command.args(["--filter-platform", "x86_64-unknown-linux-gnu"]);
    command.args(more);
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")));
    let reported = command.output().expect("cargo is there");
    if reported.status.success() {
        Ok(serde_json::from_slice(&reported.stdout).expect("it is JSON"))
    } else {
        Err(String::from_utf8_lossy(&reported.stderr).into_owned())
    }
}

#[test]
fn every_dependency_has_an_allowed_licence() {
    let metadata = match metadata(&["--offline"]).or_else(|_| metadata(&[])) {
        Ok(metadata) => metadata,
        Err(why) if why.contains("download") || why.contains("resolve host") => {
            println!("not looked at: what throng is built of is not all here: {why}");
            return;
        }
        Err(why) => panic!("{why}"),
    };
    let packages = metadata["packages"].as_array().expect("there are packages");
    assert!(packages.len() > 50, "{}", packages.len());
    let allowed = allowed("licenses", "allow");
    for package in packages {
        let licence = package["license"].as_str().unwrap_or_default();
        let (name, version) = (&package["name"], &package["version"]);
        assert!(
            is_met(licence, &allowed),
            "{name} {version} has the licence `{licence}`"
        );
    }
}

#[test]
fn every_dependency_is_from_the_registry_and_known_by_its_hash() {
    let lock: toml::Table = LOCK.parse().expect("Cargo.lock is TOML");
    let packages = lock["package"].as_array().expect("there are packages");
    let mut versions: BTreeMap<&str, usize> = BTreeMap::new();
    for package in packages {
        let text = |key: &str| package.get(key).and_then(toml::Value::as_str);
        let name = text("name").expect("it has a name");
        *versions.entry(name).or_default() += 1;
        if name == "tcpflows" || name.starts_with("throng") {
            assert_eq!(text("source"), None, "{name}");
            continue;
        }
        assert_eq!(text("source"), Some(REGISTRY), "{name}");
        let hash = text("checksum").unwrap_or_default();
        assert!(
            hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit()),
            "{name}"
        );
    }
    let several: BTreeSet<String> = versions
        .iter()
        .filter(|(_, count)| **count > 1)
        .map(|(name, _)| (*name).to_owned())
        .collect();
    assert_eq!(
        several,
        allowed("bans", "skip"),
        "what there are several versions of"
    );
}
