//! What the program knows of its own making: the commit of its source, the compiler, profile and flags.
//!
//! What cannot be found out is left out; there may be no git, and no repository.

use std::env;
use std::path::Path;
use std::process::Command;

/// What the program is built of, from the root of the repository.
const SOURCES: [&str; 7] = [
    "Cargo.lock",
    "Cargo.toml",
    "build.rs",
    "crates",
    "docs/models",
    "src",
    "studies",
];

fn main() {
    let manifest_directory = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let root = Path::new(&manifest_directory);
    for source in SOURCES {
        again_if_changed(&root.join(source));
    }
    println!("cargo:rerun-if-env-changed=RUSTFLAGS");
    if is_repository(root) {
        of_repository(root);
    } else {
        of_package(root);
    }
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    pass("COMPILER", output(Command::new(rustc).arg("--version")));
    pass("FLAGS", flags());
    // Tests start it thousands of times, and relocating it takes a fifth of a start.
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|it| it == value);
    if is("PROFILE", "debug") && is("TARGET", "x86_64-unknown-linux-gnu") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}

/// Makes a value known to the program as `THRONG_NAME`.
fn pass(name: &str, value: Option<String>) {
    let text = value.unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    if !line.is_empty() {
        println!("cargo:rustc-env=THRONG_{name}={line}");
    }
}

/// A path that is not there would have this run each time.
fn again_if_changed(path: &Path) {
    if path.exists() {
        println!("cargo:rerun-if-changed={}", path.display());
    }
}

fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    // Other programs that use the repository must not find it locked.
    git.env("GIT_OPTIONAL_LOCKS", "0");
    output(git.current_dir(root).args(arguments))
}

/// Whether this is a repository of its own: an archive may be unpacked within that of something else.
fn is_repository(root: &Path) -> bool {
    let top = git(root, &["rev-parse", "--show-toplevel"])
        .and_then(|top| Path::new(&top).canonicalize().ok());
    top.is_some() && top == root.canonicalize().ok()
}

fn of_repository(root: &Path) {
    // A commit changes the file of its branch; another branch changes HEAD.
    let branch = git(root, &["rev-parse", "--symbolic-full-name", "HEAD"]);
    for name in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        if let Some(path) = git(root, &["rev-parse", "--git-path", name]) {
            again_if_changed(&root.join(path));
        }
    }
    pass("COMMIT", git(root, &["rev-parse", "HEAD"]));
    let status = git(
        root,
        &[&["status", "--porcelain", "--"], &SOURCES[..]].concat(),
    );
    pass(
        "MODIFIED",
        status.map(|files| (!files.is_empty()).to_string()),
    );
}

/// What `cargo package` wrote down.
fn of_package(root: &Path) {
    let Ok(text) = std::fs::read_to_string(root.join(".cargo_vcs_info.json")) else {
        return;
    };
    let commit = text
        .split("\"sha1\"")
        .nth(1)
        .and_then(|rest| rest.split('"').nth(1));
    pass("COMMIT", commit.map(str::to_owned));
    pass(
        "MODIFIED",
        Some(text.contains("\"dirty\": true").to_string()),
    );
}

/// "release, -C target-cpu=native". `Cargo.toml` has the options of a profile.
fn flags() -> Option<String> {
    // target/PROFILE/build/throng-HASH/out
    let out = env::var("OUT_DIR").ok()?;
    let profile = Path::new(&out).ancestors().nth(3)?.file_name()?;
    let mut flags = profile.to_string_lossy().into_owned();
    let more = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    if !more.is_empty() {
        flags += &format!(", {}", more.replace('\u{1f}', " "));
    }
    Some(flags)
}
