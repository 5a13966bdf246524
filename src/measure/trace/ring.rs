//! What is in the queues of an io_uring, as its `fdinfo` tells while its thread stands still.

use std::os::fd::RawFd;

/// An operation that the kernel is to be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Operation {
    /// "RECV".
    pub(super) name: String,
    pub(super) fd: RawFd,
    /// By what its completions are known.
    pub(super) known_as: u64,
}

/// A word of the kernel that an operation has come to something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Completion {
    pub(super) known_as: u64,
    pub(super) result: i32,
}

/// The operations that wait to be submitted.
pub(super) fn operations(fdinfo: &str) -> Vec<Operation> {
    let lines = fdinfo.lines().filter(|line| line.contains("opcode:"));
    let operation = |line: &str| {
        Some(Operation {
            name: field(line, "opcode:")?.to_owned(),
            fd: field(line, " fd:")?.parse().ok()?,
            known_as: field(line, "user_data:")?.parse().ok()?,
        })
    };
    lines.filter_map(operation).collect()
}

/// The completions that wait to be read.
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

fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, after) = line.split_once(name)?;
    let end = after.find([',', ' ']).unwrap_or(after.len());
    Some(&after[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_read_as_the_kernel_writes_them() {
        let fdinfo = "\
SqMask:\t0xfff
SQEs:\t1
  135: opcode:RECV, fd:9, flags:20, off:0, addr:0x0, rw_flags:0x0, buf_index:0 user_data:42949672969
CQEs:\t2
  271: user_data:42949672969, res:1000, flags:3
  272: user_data:7, res:-105, flags:0
SqThread:\t-1
";
        let operation = Operation {
            name: "RECV".to_owned(),
            fd: 9,
            known_as: 42_949_672_969,
        };
        assert_eq!(operations(fdinfo), [operation]);
        let results: Vec<(u64, i32)> = completions(fdinfo)
            .iter()
            .map(|completion| (completion.known_as, completion.result))
            .collect();
        assert_eq!(results, [(42_949_672_969, 1000), (7, -105)]);
    }
}
