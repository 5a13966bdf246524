//! The queues of an io_uring while its thread is stopped.
//!
//! `fdinfo` shows where the queues are and what has completed. For rings without an index array, as ours are, it does
//! not show submissions; they are read from the memory shared with the kernel.

use std::fs;
use std::os::fd::RawFd;

use super::decode::ThreadView;
use throng_sys::ring;

/// An operation to be submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Operation {
    /// "receive".
    pub(super) name: &'static str,
    pub(super) fd: RawFd,
    /// Identifies its completions.
    pub(super) known_as: u64,
}

/// A completion of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Completion {
    pub(super) known_as: u64,
    pub(super) result: i32,
}

/// Size of an entry of the submission queue (`struct io_uring_sqe`).
const ENTRY_BYTES: usize = 64;
/// Offset of the submission entries when a ring is mapped (`IORING_OFF_SQES`).
const ENTRIES_OFFSET: u64 = 0x1000_0000;
/// Maximum number of operations to read.
const MOST: u32 = 64;

/// The operations that wait to be submitted.
pub(super) fn operations(thread: i32, fdinfo: &str, look: &dyn ThreadView) -> Vec<Operation> {
    let inode = number(fdinfo, "ino:").unwrap_or(0);
    let maps = fs::read_to_string(format!("/proc/{thread}/maps")).unwrap_or_default();
    let Some(entries) = mapped(&maps, inode) else {
        return Vec::new();
    };
    let places = places(fdinfo).into_iter();
    let read = |place: u32| {
        let at = entries + u64::from(place) * ENTRY_BYTES as u64;
        operation(&look.memory(at, ENTRY_BYTES))
    };
    places.filter_map(read).collect()
}

/// The indices of entries that the program has filled and the kernel has not taken.
fn places(fdinfo: &str) -> Vec<u32> {
    let field = |name| number(fdinfo, name).map(|value| value as u32);
    let (Some(mask), Some(head), Some(tail)) =
        (field("SqMask:"), field("SqHead:"), field("SqTail:"))
    else {
        return Vec::new();
    };
    let count = tail.wrapping_sub(head).min(MOST);
    (0..count)
        .map(|place| head.wrapping_add(place) & mask)
        .collect()
}

/// The address, in a process's memory, of the submission entries of the ring with this inode.
fn mapped(maps: &str, inode: u64) -> Option<u64> {
    maps.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (range, offset) = (words.next()?, words.nth(1)?);
        let is_it = words.nth(1)?.parse() == Ok(inode) && line.contains("io_uring");
        let at = u64::from_str_radix(offset, 16).ok()?;
        let start = u64::from_str_radix(range.split('-').next()?, 16).ok()?;
        (is_it && at == ENTRIES_OFFSET).then_some(start)
    })
}

fn operation(entry: &[u8]) -> Option<Operation> {
    let fd = entry.get(4..8)?.try_into().ok()?;
    let bytes = entry.get(32..40)?.try_into().ok()?;
    let known_as = u64::from_ne_bytes(bytes);
    Some(Operation {
        name: ring::operation(known_as),
        fd: RawFd::from_ne_bytes(fd),
        known_as,
    })
}

/// The unread completions.
pub(super) fn completions(fdinfo: &str) -> Vec<Completion> {
    let lines = fdinfo.lines().filter(|line| line.contains("res:"));
    let completion = |line: &str| {
        Some(Completion {
            known_as: field(line, "user_data:")?.parse().ok()?,
            result: field(line, "res:")?.parse().ok()?,
        })
    };
    lines.filter_map(completion).collect()
}

/// The value of a line of `fdinfo`, decimal or hexadecimal.
fn number(fdinfo: &str, name: &str) -> Option<u64> {
    let value = fdinfo
        .lines()
        .find_map(|line| line.strip_prefix(name))?
        .trim();
    match value.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
    }
}

fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, after) = line.split_once(name)?;
    let end = after.find([',', ' ']).unwrap_or(after.len());
    Some(&after[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    const FDINFO: &str = "\
ino:\t77
SqMask:\t0xfff
SqHead:\t4095
SqTail:\t4097
CQEs:\t2
  271: user_data:42949672969, res:1000, flags:3
  272: user_data:7, res:-105, flags:0
SqThread:\t-1
";

    #[test]
    fn queues_are_read_as_the_kernel_writes_them() {
        assert_eq!(places(FDINFO), [4095, 0]);
        let completions = completions(FDINFO).into_iter();
        let results: Vec<(u64, i32)> = completions
            .map(|completion| (completion.known_as, completion.result))
            .collect();
        assert_eq!(results, [(42_949_672_969, 1000), (7, -105)]);
    }

    #[test]
    fn entries_are_found_in_memory() {
        let maps = "\
7f10000-7f20000 rw-s 00000000 00:0e 77    anon_inode:[io_uring]
7f30000-7f40000 rw-s 10000000 00:0e 76    anon_inode:[io_uring]
7f50000-7f60000 rw-s 10000000 00:0e 77    anon_inode:[io_uring]
";
        assert_eq!(mapped(maps, 77), Some(0x07f5_0000));
        assert_eq!(mapped(maps, 5), None);
        let mut entry = [0; ENTRY_BYTES];
        entry[4] = 9;
        entry[32] = 9;
        entry[36] = 2;
        let found = operation(&entry).unwrap();
        assert_eq!((found.name, found.fd), ("receive", 9));
        assert_eq!(operation(&entry[..20]), None);
    }
}
