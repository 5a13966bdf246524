//! The browser of the user, to open a page.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use super::output;

/// Programs that open a page, if there is a desktop.
const OPENERS: [&str; 3] = ["xdg-open", "wslview", "sensible-browser"];

/// Opens a page, or notes that there is no browser.
pub(super) fn open(url: &str) {
    if !is_opened(url) {
        output::note(&format!("no browser was found; open {url}"));
    }
}

/// Whether there is a browser to open pages with.
pub(super) fn exists() -> bool {
    has_desktop() || env::var_os("BROWSER").is_some()
}

/// Without a desktop, a browser of the terminal would take it from the run.
fn has_desktop() -> bool {
    let names = ["DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"];
    names.iter().any(|name| env::var_os(name).is_some())
}

fn is_opened(url: &str) -> bool {
    let chosen = env::var("BROWSER").ok();
    let others = OPENERS.iter().copied().filter(|_| has_desktop());
    let mut programs = chosen.as_deref().into_iter().chain(others);
    programs.any(|program| starts(program, url))
}

fn starts(program: &str, url: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}

/// The address of a file.
pub(super) fn address(file: &Path) -> String {
    let whole = file.canonicalize();
    format!(
        "file://{}",
        whole.unwrap_or_else(|_| file.to_owned()).display()
    )
}
