//! Memory shared with forked children.

use std::io;
use std::sync::atomic::AtomicU64;

/// Maps `count` zeroed counters that this process shares with children forked later.
///
/// The mapping lasts as long as the process, and untouched pages take no memory.
///
/// # Errors
/// `OutOfMemory` if there is no room for the mapping.
pub fn counters(count: usize) -> io::Result<&'static [AtomicU64]> {
    let length = count.max(1) * size_of::<AtomicU64>();
    // Otherwise Linux reserves memory for the whole mapping.
    #[cfg(target_os = "linux")]
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    #[cfg(not(target_os = "linux"))]
    let flags = libc::MAP_SHARED | libc::MAP_ANON;
    // SAFETY: an anonymous mapping at an address of the kernel's choice touches nothing we own.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping is page-aligned, `count` words long, zeroed (a valid AtomicU64), and
    // never unmapped; every access goes through atomics, in this process and in its children.
    Ok(unsafe { std::slice::from_raw_parts(start.cast::<AtomicU64>(), count) })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn starts_at_zero_and_counts() {
        let counters = counters(1000).unwrap();
        assert!(counters.iter().all(|counter| counter.load(Relaxed) == 0));
        counters[999].fetch_add(3, Relaxed);
        assert_eq!(counters[999].load(Relaxed), 3);
    }
}
