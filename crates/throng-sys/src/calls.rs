//! Names of system calls.

use syscalls::Sysno;

/// The name of the system call with a number on this architecture.
pub fn name(number: u64) -> String {
    let known = usize::try_from(number).ok().and_then(Sysno::new);
    known.map_or_else(|| format!("call {number}"), |call| call.name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_their_names() {
        assert_eq!(name(libc::SYS_sendto as u64), "sendto");
        assert_eq!(name(99_999), "call 99999");
    }
}
