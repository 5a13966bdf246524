//! Whether this machine supports io_uring with all required operations, and if not, why.

use std::{fmt, io};

use io_uring::{IoUring, Probe, opcode};

use super::Ring;

/// Operations that a server needs, with names and first Linux versions. Multishot receives came with SEND_ZC, and
/// cannot be probed separately.
const OPERATIONS: [(u8, &str); 6] = [
    (opcode::PollAdd::CODE, "POLL_ADD (Linux 5.1)"),
    (opcode::AsyncCancel2::CODE, "ASYNC_CANCEL (Linux 5.5)"),
    (opcode::AcceptMulti::CODE, "ACCEPT (Linux 5.5)"),
    (opcode::RecvMulti::CODE, "RECV (Linux 5.6)"),
    (opcode::Send::CODE, "SEND (Linux 5.6)"),
    (opcode::SendZc::CODE, "multishot RECV (Linux 6.0)"),
];

/// Why no ring with these operations can be set up.
#[derive(Debug)]
pub struct NoRing {
    /// The missing part.
    pub reason: String,
    /// What would change that.
    pub remedy: &'static str,
}

impl fmt::Display for NoRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.reason, self.remedy)
    }
}

impl std::error::Error for NoRing {}

const NEWER: &str = "run Linux 6.0 or newer";

/// Checks that a ring with all required operations can be set up.
///
/// # Errors
/// If something is missing or forbidden; the error names it, and the remedy.
pub fn supported() -> Result<(), NoRing> {
    Ring::new()?;
    let probed = || -> io::Result<Probe> {
        let mut probe = Probe::new();
        IoUring::new(2)?.submitter().register_probe(&mut probe)?;
        Ok(probe)
    };
    let probe = probed().map_err(|error| explain(&error))?;
    match OPERATIONS
        .iter()
        .find(|(code, _)| !probe.is_supported(*code))
    {
        Some((_, name)) => Err(no_ring(format!("io_uring here has no {name}"), NEWER)),
        None => Ok(()),
    }
}

/// Explains a setup error.
pub(super) fn explain(error: &io::Error) -> NoRing {
    let switch = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled")
        .ok()
        .and_then(|value| value.trim().parse().ok());
    explain_with(error, switch)
}

/// Explains a setup error, given the value of kernel.io_uring_disabled if it exists.
fn explain_with(error: &io::Error, switch: Option<u32>) -> NoRing {
    match (error.raw_os_error(), switch) {
        (Some(libc::ENOSYS), _) => no_ring(
            "this kernel has no io_uring",
            "run Linux 6.0 or newer, built with CONFIG_IO_URING; in a sandbox, outside of it",
        ),
        (Some(libc::EPERM), Some(2)) => no_ring(
            "io_uring is switched off (kernel.io_uring_disabled is 2)",
            "as root: sysctl kernel.io_uring_disabled=0",
        ),
        (Some(libc::EPERM), Some(1)) => no_ring(
            "io_uring is for root and a group only (kernel.io_uring_disabled is 1)",
            "as root: sysctl kernel.io_uring_disabled=0, or join the group whose number is \
             kernel.io_uring_group",
        ),
        (Some(libc::EPERM | libc::EACCES), _) => no_ring(
            "io_uring_setup() is forbidden, most likely by a seccomp filter",
            "let the filter pass io_uring_setup, io_uring_enter and io_uring_register (docker run \
             --security-opt seccomp=FILE)",
        ),
        (Some(libc::EINVAL), _) => no_ring(
            "this kernel's io_uring is too old: IORING_SETUP_SINGLE_ISSUER or buffer rings are \
             missing",
            NEWER,
        ),
        (Some(libc::ENOMEM), _) => no_ring(
            "there is no memory left for a ring, or the rings of this user exceed the limit of locked memory \
             (RLIMIT_MEMLOCK)",
            "ulimit -l with a higher number, or fewer --workers or --threads",
        ),
        (Some(libc::EMFILE | libc::ENFILE), _) => no_ring(
            "there is no descriptor left for a ring",
            "ulimit -n with a higher number",
        ),
        _ => no_ring(format!("no ring can be set up: {error}"), NEWER),
    }
}

fn no_ring(reason: impl Into<String>, remedy: &'static str) -> NoRing {
    NoRing {
        reason: reason.into(),
        remedy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_has_its_reason_and_its_remedy() {
        for (errno, switch, reason, remedy) in [
            (libc::ENOSYS, None, "no io_uring", "CONFIG_IO_URING"),
            (libc::EPERM, Some(2), "is 2", "io_uring_disabled=0"),
            (libc::EPERM, Some(1), "is 1", "io_uring_group"),
            (libc::EPERM, Some(0), "seccomp", "io_uring_setup"),
            (libc::EPERM, None, "seccomp", "io_uring_setup"),
            (libc::EINVAL, Some(0), "too old", "Linux 6.0"),
            (libc::ENOMEM, Some(0), "memory", "ulimit -l"),
            (libc::EMFILE, Some(0), "descriptor", "ulimit -n"),
            (libc::EIO, Some(0), "Input/output error", "Linux"),
        ] {
            let why = explain_with(&io::Error::from_raw_os_error(errno), switch);
            assert!(why.reason.contains(reason), "{errno}: {why}");
            assert!(why.remedy.contains(remedy), "{errno}: {why}");
        }
    }
}
