//! Limits and signals, by the names that users type.

use rustix::process::{Resource, Signal};
use throng_spec::bytes;

/// Resource limits for servers, by the names of `prlimit(1)`.
pub(crate) const LIMITS: [(&str, Resource); 3] = [
    ("nofile", Resource::Nofile),
    ("nproc", Resource::Nproc),
    ("as", Resource::As),
];

/// Signals that can stop a server, by name; the first is the default.
pub(crate) const STOP_SIGNALS: [(&str, Signal); 7] = [
    ("TERM", Signal::TERM),
    ("INT", Signal::INT),
    ("QUIT", Signal::QUIT),
    ("HUP", Signal::HUP),
    ("USR1", Signal::USR1),
    ("USR2", Signal::USR2),
    ("KILL", Signal::KILL),
];

/// A limit for servers, by name and value: `nofile` and `300`, `as` and `64MiB`.
///
/// # Errors
/// Lists the valid names.
pub fn server_limit(name: &str, value: &str) -> Result<(String, u64), String> {
    let known = LIMITS.map(|(limit, _)| limit);
    if !known.contains(&name) {
        return Err(format!(
            "`{name}` is not a resource limit; expected one of: {}",
            known.join(", ")
        ));
    }
    Ok((name.to_owned(), bytes(value)?))
}

/// The name of a signal, with or without SIG.
///
/// # Errors
/// Lists the valid names.
pub fn stop_signal(text: &str) -> Result<String, String> {
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let known = STOP_SIGNALS.map(|(signal, _)| signal);
    if known.contains(&name) {
        Ok(name.to_owned())
    } else {
        Err(format!(
            "`{text}` is not a signal that stops a server; expected one of: {}",
            known.join(", ")
        ))
    }
}
