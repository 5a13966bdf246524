//! The queues of a ring, and their sizes.
//!
//! Rings count as locked memory before Linux 5.12, and again in recent versions (such as 6.18). Root and processes
//! with `CAP_IPC_LOCK` have no limit. All rings of any other user share `RLIMIT_MEMLOCK`, typically 8 MiB: the rings
//! of a server with a ring per CPU, of several servers side by side, and of their loads.

use std::io;

use io_uring::IoUring;
use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};

/// Number of operations that can wait for submission.
pub(super) const SUBMISSIONS: u32 = 4096;
/// Completions that fit into the ring; the kernel stores further ones elsewhere, at a cost.
const COMPLETIONS: u32 = 16_384;
/// The smallest number of submissions to try.
const FEWEST_SUBMISSIONS: u32 = 64;
/// Bytes of an entry in the queues.
const SUBMISSION_BYTES: u64 = 64;
const COMPLETION_BYTES: u64 = 16;
/// A ring takes at most one `RINGS`th of the memory that the user may lock.
const RINGS: u64 = 128;

/// Creates the queues, as large as the limit of locked memory allows.
pub(super) fn set_up() -> io::Result<IoUring> {
    let mut divisor = divisor(lockable_bytes());
    loop {
        match with_size(SUBMISSIONS / divisor, COMPLETIONS / divisor) {
            Err(error)
                if error.raw_os_error() == Some(libc::ENOMEM)
                    && SUBMISSIONS / divisor > FEWEST_SUBMISSIONS =>
            {
                divisor *= 2;
            }
            created => return created,
        }
    }
}

/// The limit of locked memory, if there is one for this process.
fn lockable_bytes() -> Option<u64> {
    let has_no_limit =
        |sets: rustix::thread::CapabilitySets| sets.effective.contains(CapabilitySet::IPC_LOCK);
    if capabilities(None).is_ok_and(has_no_limit) {
        return None;
    }
    getrlimit(Resource::Memlock).current
}

/// The factor by which the queues are smaller than usual under this limit, a power of two.
fn divisor(lockable_bytes: Option<u64>) -> u32 {
    let share = lockable_bytes.map_or(u64::MAX, |bytes| bytes / RINGS);
    let bytes = |divisor: u32| {
        u64::from(SUBMISSIONS / divisor) * SUBMISSION_BYTES
            + u64::from(COMPLETIONS / divisor) * COMPLETION_BYTES
    };
    let mut divisor = 1;
    while bytes(divisor) > share && SUBMISSIONS / divisor > FEWEST_SUBMISSIONS {
        divisor *= 2;
    }
    divisor
}

/// Creates queues of this size, with the best features that this kernel has.
fn with_size(submissions: u32, completions: u32) -> io::Result<IoUring> {
    let mut newest = IoUring::builder();
    // This thread processes completions when it waits for events: no interrupts, no locks.
    newest.setup_defer_taskrun().setup_no_sqarray(); // Linux 6.1 and 6.6
    let mut newer = IoUring::builder();
    newer.setup_defer_taskrun();
    let mut new = IoUring::builder();
    // Second best: at the next system call of this thread.
    new.setup_coop_taskrun().setup_taskrun_flag();
    let mut refused = io::Error::from_raw_os_error(libc::EINVAL);
    for builder in [&mut newest, &mut newer, &mut new] {
        builder.setup_single_issuer().setup_submit_all(); // Linux 6.0
        builder.setup_clamp().setup_cqsize(completions);
        match builder.build(submissions) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refused = error,
            created => return created,
        }
    }
    Err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_a_share_of_the_memory_that_may_be_locked() {
        assert_eq!(divisor(None), 1);
        assert_eq!(divisor(Some(u64::MAX)), 1);
        assert_eq!(divisor(Some(8 << 20)), 8, "64 KiB");
        assert_eq!(divisor(Some(64 << 10)), 64);
        assert_eq!(divisor(Some(0)), SUBMISSIONS / FEWEST_SUBMISSIONS);
    }
}
