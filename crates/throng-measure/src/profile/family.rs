//! Whose records are whose: the kernel writes those of all processes.

use std::collections::{HashMap, HashSet};

use throng_sys::samples::{Record, Sampler, Stack};

/// The processes of a server in a turn, and what they are seen to do.
pub(super) struct Family {
    /// Those of the beginning, and those that they have started since.
    own: HashSet<u32>,
    /// Processes that were started by one that is not known as the server's, with that one.
    started: Vec<(u32, u32)>,
    /// What was seen of processes that are not known as the server's, and may be: each CPU writes by itself, so the start
    /// of a process may be read after what it did.
    pending: Vec<(u32, Seen)>,
    pub(super) stacks: Vec<Stack>,
    /// The calls, by number.
    pub(super) passages: HashMap<u64, u64>,
    /// Records that the kernel dropped.
    pub(super) lost: u64,
}

/// What a process was seen to do.
enum Seen {
    Stack(Stack),
    Call(u64),
}

impl Family {
    pub(super) fn of(pids: &[u32]) -> Self {
        Self {
            own: pids.iter().copied().collect(),
            started: Vec::new(),
            pending: Vec::new(),
            stacks: Vec::new(),
            passages: HashMap::new(),
            lost: 0,
        }
    }

    /// Reads what was written, and decides whose that of the reading before was: by now all starts before it are known.
    pub(super) fn read(&mut self, sampler: &mut Sampler) {
        let undecided = self.pending.len();
        sampler.drain(&mut |record| match record {
            Record::Lost(count) => self.lost += count,
            Record::Started { pid, parent } => self.started.push((pid, parent)),
            Record::Stack(stack) => self.saw(stack.pid, Seen::Stack(stack)),
            Record::Passage { pid, data } => self.saw(pid, Seen::Call(call(data))),
        });
        loop {
            let known = self.own.len();
            let own = &mut self.own;
            self.started.retain(|(pid, parent)| {
                let is_own = own.contains(parent);
                if is_own {
                    own.insert(*pid);
                }
                !is_own
            });
            if self.own.len() == known {
                break;
            }
        }
        let newer = self.pending.split_off(undecided);
        for (pid, seen) in std::mem::replace(&mut self.pending, newer) {
            if self.own.contains(&pid) {
                self.keep(seen);
            }
        }
    }

    fn saw(&mut self, pid: u32, seen: Seen) {
        if self.own.contains(&pid) {
            self.keep(seen);
        } else {
            self.pending.push((pid, seen));
        }
    }

    fn keep(&mut self, seen: Seen) {
        match seen {
            Seen::Stack(stack) => self.stacks.push(stack),
            Seen::Call(number) => *self.passages.entry(number).or_default() += 1,
        }
    }
}

/// The number of a call, from the data of the tracepoint: after the eight bytes that all tracepoints have.
fn call(data: &[u8]) -> u64 {
    let number = data.get(8..16).and_then(|bytes| bytes.try_into().ok());
    number.map_or(u64::MAX, u64::from_ne_bytes)
}
