//! select(2) over sets of any size.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

/// Capacity of the C library's `fd_set`.
pub const FD_SETSIZE: usize = libc::FD_SETSIZE;

const BITS: usize = usize::BITS as usize;

/// A set of descriptors below its capacity, in the kernel's layout: one bit each.
#[derive(Debug, Clone)]
pub struct FdSet {
    words: Vec<usize>,
}

impl FdSet {
    /// An empty set for descriptors below `capacity`.
    pub fn new(capacity: usize) -> Self {
        Self {
            words: vec![0; capacity.div_ceil(BITS).max(FD_SETSIZE / BITS)],
        }
    }

    /// Adds a descriptor; it must be below the capacity.
    pub fn insert(&mut self, fd: BorrowedFd<'_>) {
        let (word, bit) = place(fd.as_raw_fd());
        self.words[word] |= bit;
    }

    /// Removes a descriptor.
    pub fn remove(&mut self, fd: BorrowedFd<'_>) {
        let (word, bit) = place(fd.as_raw_fd());
        self.words[word] &= !bit;
    }

    /// Whether the set has the descriptor.
    pub fn contains(&self, fd: BorrowedFd<'_>) -> bool {
        let (word, bit) = place(fd.as_raw_fd());
        self.words[word] & bit != 0
    }

    /// Makes this set equal to `other` without allocating.
    pub fn copy_from(&mut self, other: &Self) {
        self.words.copy_from_slice(&other.words);
    }

    /// Descriptors that are in this set or in `other`, in ascending order: first those from `from` on,
    /// which must be below the capacity, then those before it.
    pub fn union<'a>(&'a self, other: &'a Self, from: RawFd) -> impl Iterator<Item = RawFd> + 'a {
        let (first, bit) = place(from);
        let count = self.words.len();
        // The word of `from` is visited twice: its upper bits first, its lower ones at the end.
        (0..=count).flat_map(move |step| {
            let word = (first + step) % count;
            let mask = match step {
                0 => !(bit - 1),
                _ if step == count => bit - 1,
                _ => !0,
            };
            let mut bits = (self.words[word] | other.words[word]) & mask;
            std::iter::from_fn(move || {
                (bits != 0).then(|| {
                    let lowest = bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    (word * BITS + lowest) as RawFd
                })
            })
        })
    }
}

fn place(fd: RawFd) -> (usize, usize) {
    let number = usize::try_from(fd).expect("an open descriptor is not negative");
    (number / BITS, 1 << (number % BITS))
}

/// Waits until a descriptor in `read` is readable or one in `write` writable, and removes all others from the sets.
/// Descriptors up to and including `highest` are considered.
///
/// # Errors
/// As select(2), EINTR included.
pub fn select(
    highest: RawFd,
    read: &mut FdSet,
    write: &mut FdSet,
    timeout: Option<Duration>,
) -> io::Result<usize> {
    let count = usize::try_from(highest + 1).map_err(io::Error::other)?;
    assert!(
        count <= read.words.len() * BITS && count <= write.words.len() * BITS,
        "every descriptor looked at has a bit in both sets"
    );
    // Both types depend on the system.
    let mut limit = timeout.map(|timeout| libc::timeval {
        tv_sec: timeout.as_secs() as _,
        tv_usec: (timeout.as_micros() % 1_000_000) as _,
    });
    let time = limit
        .as_mut()
        .map_or(std::ptr::null_mut(), std::ptr::from_mut);
    // SAFETY: both sets are at least `count` bits long (asserted above) and exclusively borrowed;
    // the kernel reads and writes only the first `count` bits, rounded up to words. `time` is null
    // or points to `limit`, which lives until the call is over.
    let ready = unsafe {
        libc::select(
            highest + 1,
            read.words.as_mut_ptr().cast(),
            write.words.as_mut_ptr().cast(),
            std::ptr::null_mut(),
            time,
        )
    };
    usize::try_from(ready).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn finds_readable_and_writable_descriptors() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let highest = reader.as_raw_fd().max(writer.as_raw_fd());
        let run = || {
            let (mut read, mut write) = (FdSet::new(FD_SETSIZE), FdSet::new(FD_SETSIZE));
            read.insert(reader.as_fd());
            let ready = select(highest, &mut read, &mut write, Some(Duration::ZERO)).unwrap();
            (ready, read.contains(reader.as_fd()))
        };
        assert_eq!(run(), (0, false));
        writer.write_all(b"x").unwrap();
        assert_eq!(run(), (1, true));
    }

    #[test]
    fn union_is_in_ascending_order_from_a_descriptor() {
        let (a, b) = std::io::pipe().unwrap();
        let (mut left, mut right) = (FdSet::new(FD_SETSIZE), FdSet::new(FD_SETSIZE));
        left.insert(b.as_fd());
        right.insert(a.as_fd());
        right.insert(b.as_fd());
        let mut expected = vec![a.as_raw_fd(), b.as_raw_fd()];
        expected.sort_unstable();
        assert_eq!(left.union(&right, 0).collect::<Vec<_>>(), expected);
        let from_the_second = left.union(&right, expected[1]).collect::<Vec<_>>();
        assert_eq!(from_the_second, [expected[1], expected[0]]);
        right.remove(b.as_fd());
        assert!(!right.contains(b.as_fd()));
    }
}
