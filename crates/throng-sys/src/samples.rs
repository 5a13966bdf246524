//! Samples of all CPUs by the kernel's performance events (`perf_event_open(2)`): where programs are at regular times,
//! or each passage of a tracepoint; and which processes start others.
//!
//! A [`Sampler`] has one event and one ring buffer per CPU, whatever runs there, so its memory does not grow with the
//! number of processes and threads. The reader picks the processes that it wants. The kernel writes records; if a ring
//! is full, it drops them and counts how many.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::perf::{Attributes, Event, open_with};

/// What a sampler takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Where each busy CPU is, this often per second: the kernel's stack, and registers and top of the program's stack.
    Stacks {
        /// Samples per second and CPU.
        hertz: u32,
        /// Bytes of the program's stack; a multiple of 8.
        stack_bytes: u32,
    },
    /// Every passage of a tracepoint, with its data.
    Passages(Event),
}

/// A record of a ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record<'a> {
    /// A sample of a thread.
    Stack(Stack),
    /// A thread passed the tracepoint.
    Passage {
        /// The process.
        pid: u32,
        /// The tracepoint's data.
        data: &'a [u8],
    },
    /// A process started another one.
    Started {
        /// The new process.
        pid: u32,
        /// The process that started it.
        parent: u32,
    },
    /// The kernel dropped this many records.
    Lost(u64),
}

/// Where a thread was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    /// The process.
    pub pid: u32,
    /// Whether it was in the kernel.
    pub in_kernel: bool,
    /// Addresses in the kernel, innermost first.
    pub kernel: Vec<u64>,
    /// Registers of the program: frame pointer, link register where there is one, stack pointer, instruction pointer.
    /// Absent for threads of the kernel.
    pub registers: Option<[u64; REGISTER_COUNT]>,
    /// The program's memory from its stack pointer upwards.
    pub memory: Vec<u8>,
}

/// Frame pointer, stack pointer and instruction pointer of x86-64 (`asm/perf_regs.h`).
#[cfg(target_arch = "x86_64")]
const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
/// Frame pointer, link register, stack pointer and instruction pointer of other architectures, as on AArch64.
#[cfg(not(target_arch = "x86_64"))]
const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;
/// The number of registers in a sample.
pub const REGISTER_COUNT: usize = REGISTERS.count_ones() as usize;

/// The lowest of the markers in a list of addresses (`PERF_CONTEXT_MAX`).
const FIRST_MARKER: u64 = -4095_i64 as u64;

const SAMPLE_THREAD: u64 = 1 << 1;
const SAMPLE_CALL_CHAIN: u64 = 1 << 5;
const SAMPLE_DATA: u64 = 1 << 10;
const SAMPLE_REGISTERS: u64 = 1 << 12;
const SAMPLE_STACK: u64 = 1 << 13;

const EXCLUDE_IDLE: u64 = 1 << 7;
const BY_FREQUENCY: u64 = 1 << 10;
const TASK: u64 = 1 << 13;
const EXCLUDE_USER_CHAIN: u64 = 1 << 22;

const RECORD_LOST: u32 = 2;
const RECORD_FORK: u32 = 7;
const RECORD_SAMPLE: u32 = 9;
const MODE_MASK: u16 = 7;
const MODE_KERNEL: u16 = 1;
const HEADER: usize = 8;

/// Places of `data_head` and `data_tail` in the first page of a ring, in words (`struct perf_event_mmap_page`).
const HEAD: usize = 128;
const TAIL: usize = 129;

/// Samples of every CPU.
#[derive(Debug)]
pub struct Sampler {
    what: What,
    rings: Vec<Ring>,
}

impl Sampler {
    /// Begins to take samples on these CPUs, with a ring of `bytes` each: a power of two, at least a page.
    ///
    /// # Errors
    /// As `perf_event_open(2)` and `mmap(2)`.
    pub fn open(what: What, cpus: &[u32], bytes: usize) -> io::Result<Self> {
        let attributes = match what {
            What::Stacks { hertz, stack_bytes } => Attributes {
                sample_period: hertz.into(),
                sample_type: SAMPLE_THREAD | SAMPLE_CALL_CHAIN | SAMPLE_REGISTERS | SAMPLE_STACK,
                flags: EXCLUDE_IDLE | BY_FREQUENCY | TASK | EXCLUDE_USER_CHAIN,
                sample_registers: REGISTERS,
                sample_stack_bytes: stack_bytes,
                ..Attributes::of(Event::CPU_CLOCK)
            },
            What::Passages(event) => Attributes {
                sample_period: 1,
                sample_type: SAMPLE_THREAD | SAMPLE_DATA,
                flags: TASK,
                ..Attributes::of(event)
            },
        };
        let ring = |cpu: &u32| {
            let event = open_with(&attributes, -1, cpu.cast_signed(), None)?;
            Ring::map(event, bytes)
        };
        let rings = cpus.iter().map(ring).collect::<io::Result<_>>()?;
        Ok(Self { what, rings })
    }

    /// Hands over all records written until now.
    pub fn drain(&mut self, each: &mut dyn FnMut(Record<'_>)) {
        for ring in &mut self.rings {
            ring.drain(self.what, each);
        }
    }
}

/// The ring of a CPU.
#[derive(Debug)]
struct Ring {
    _event: File,
    mapped: NonNull<AtomicU64>,
    mapped_bytes: usize,
    data_bytes: usize,
    /// A record that wraps around the end of the ring, made whole.
    whole: Vec<u8>,
}

// SAFETY: the mapping belongs to this value alone, and the kernel allows access from every thread.
unsafe impl Send for Ring {}

impl Ring {
    fn map(event: File, data_bytes: usize) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let mapped_bytes = page + data_bytes;
        // SAFETY: a new mapping at a place that the kernel chooses.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapped = NonNull::new(address.cast()).ok_or_else(|| io::Error::other("mapped at 0"))?;
        Ok(Self {
            _event: event,
            mapped,
            mapped_bytes,
            data_bytes,
            whole: Vec::new(),
        })
    }

    /// One of the two positions in its first page.
    fn position(&self, place: usize) -> &AtomicU64 {
        // SAFETY: the first page is mapped as long as `self`, and both sides use atomic accesses.
        unsafe { &*self.mapped.as_ptr().add(place) }
    }

    /// The records between two positions.
    fn data(&self) -> &[u8] {
        let page = self.mapped_bytes - self.data_bytes;
        let first = self.mapped.as_ptr().cast::<u8>();
        // SAFETY: mapped as long as `self`. The kernel writes only beyond `head`, which the caller does not read, and
        // not over what lies behind `tail`.
        unsafe { std::slice::from_raw_parts(first.add(page), self.data_bytes) }
    }

    fn drain(&mut self, what: What, each: &mut dyn FnMut(Record<'_>)) {
        let head = self.position(HEAD).load(Ordering::Acquire);
        let mut tail = self.position(TAIL).load(Ordering::Relaxed);
        let mut whole = std::mem::take(&mut self.whole);
        while head.saturating_sub(tail) >= HEADER as u64 {
            let at = (tail % self.data_bytes as u64) as usize;
            let data = self.data();
            // Records are aligned to 8 bytes, so their headers do not wrap around.
            let Some(length) = half(data, at + 6).filter(|length| usize::from(*length) >= HEADER)
            else {
                break;
            };
            let bytes = usize::from(length);
            let record = if let Some(record) = data.get(at..at + bytes) {
                record
            } else {
                whole.clear();
                whole.extend_from_slice(&data[at..]);
                whole.extend_from_slice(&data[..at + bytes - self.data_bytes]);
                &whole
            };
            if let Some(record) = parse(what, record) {
                each(record);
            }
            tail += bytes as u64;
        }
        self.whole = whole;
        self.position(TAIL).store(tail, Ordering::Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is that of `map`, and nothing refers to it any more.
        unsafe { libc::munmap(self.mapped.as_ptr().cast(), self.mapped_bytes) };
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let whole = bytes.chunks_exact(8);
    whole.map(|word| word.try_into().map_or(0, u64::from_ne_bytes))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// Takes fields from the front of a record.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn word(&mut self) -> Option<u64> {
        words(self.bytes(8)?).next()
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.bytes(4)?.try_into().ok()?))
    }
}

/// Reads a record; `None` for kinds that are of no use here.
fn parse(what: What, record: &[u8]) -> Option<Record<'_>> {
    let mut fields = Fields(record);
    let kind = fields.number()?;
    let mode = half(fields.bytes(4)?, 0)? & MODE_MASK;
    match kind {
        RECORD_LOST => {
            fields.word()?;
            Some(Record::Lost(fields.word()?))
        }
        RECORD_FORK => {
            let (pid, parent) = (fields.number()?, fields.number()?);
            // A thread has the number of its own process here.
            (pid != parent).then_some(Record::Started { pid, parent })
        }
        RECORD_SAMPLE => {
            let pid = fields.number()?;
            fields.number()?;
            match what {
                What::Passages(_) => {
                    let bytes = fields.number()? as usize;
                    let data = fields.bytes(bytes)?;
                    Some(Record::Passage { pid, data })
                }
                What::Stacks { .. } => stack(pid, mode == MODE_KERNEL, fields).map(Record::Stack),
            }
        }
        _ => None,
    }
}

fn stack(pid: u32, in_kernel: bool, mut fields: Fields<'_>) -> Option<Stack> {
    let frames = fields.word()? as usize;
    let addresses = words(fields.bytes(frames.checked_mul(8)?)?);
    // Markers of the kind of address are the largest numbers.
    let kernel = addresses
        .filter(|address| *address < FIRST_MARKER)
        .collect();
    let abi = fields.word()?;
    let registers = if abi == 0 {
        None
    } else {
        let mut registers = [0; REGISTER_COUNT];
        for register in &mut registers {
            *register = fields.word()?;
        }
        Some(registers)
    };
    let bytes = fields.word()? as usize;
    let memory = fields.bytes(bytes)?;
    let filled = if bytes == 0 { 0 } else { fields.word()? };
    Some(Stack {
        pid,
        in_kernel,
        kernel,
        registers,
        memory: memory.get(..filled as usize)?.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn cpus() -> Vec<u32> {
        let set = rustix::thread::sched_getaffinity(None).unwrap();
        let is_usable = |cpu: &usize| set.is_set(*cpu);
        let usable = (0..rustix::thread::CpuSet::MAX_CPU).filter(is_usable);
        usable.map(|cpu| cpu as u32).collect()
    }

    fn opened(what: What) -> Option<Sampler> {
        let sampler = Sampler::open(what, &cpus(), 1 << 20);
        sampler
            .inspect_err(|error| eprintln!("skipped: perf_event_open: {error}"))
            .ok()
    }

    #[test]
    fn a_busy_thread_is_sampled_with_its_stack() {
        let what = What::Stacks {
            hertz: 997,
            stack_bytes: 1024,
        };
        let Some(mut sampler) = opened(what) else {
            return;
        };
        let (mut own, mut with_stack) = (0, 0);
        let until = Instant::now() + Duration::from_secs(20);
        while own < 20 && Instant::now() < until {
            let burnt = crate::clock::thread_cpu_time() + Duration::from_millis(5);
            while crate::clock::thread_cpu_time() < burnt {}
            sampler.drain(&mut |record| {
                if let Record::Stack(stack) = record
                    && stack.pid == std::process::id()
                {
                    own += 1;
                    with_stack +=
                        u32::from(stack.registers.is_some() && stack.memory.len() == 1024);
                    assert!(!stack.in_kernel || !stack.kernel.is_empty());
                }
            });
        }
        assert!(own >= 20 && with_stack > 0, "{own}, {with_stack}");
    }

    #[test]
    fn records_are_read_by_their_layout() {
        let stacks = What::Stacks {
            hertz: 1,
            stack_bytes: 16,
        };
        let mut sample: Vec<u8> = Vec::new();
        sample.extend(7_u32.to_ne_bytes());
        sample.extend(8_u32.to_ne_bytes());
        for word in [2, u64::MAX - 127, 0xffff_8000_0000_0001, 2] {
            sample.extend(word.to_ne_bytes());
        }
        let registers: Vec<u64> = (1..=REGISTER_COUNT as u64).collect();
        sample.extend(registers.iter().flat_map(|word| word.to_ne_bytes()));
        for word in [16_u64, 5, 6, 8] {
            sample.extend(word.to_ne_bytes());
        }
        let of = |kind: u32, body: &[u8]| {
            let mut record = kind.to_ne_bytes().to_vec();
            record.extend(MODE_KERNEL.to_ne_bytes());
            record.extend((body.len() as u16 + 8).to_ne_bytes());
            record.extend(body);
            record
        };
        let record = of(RECORD_SAMPLE, &sample);
        let Some(Record::Stack(stack)) = parse(stacks, &record) else {
            panic!("no sample");
        };
        assert_eq!((stack.pid, stack.in_kernel), (7, true));
        assert_eq!(stack.kernel, [0xffff_8000_0000_0001]);
        assert_eq!(stack.registers.unwrap().to_vec(), registers);
        assert_eq!(stack.memory, 5_u64.to_ne_bytes());
        for end in 0..record.len() {
            assert_eq!(parse(stacks, &record[..end]), None, "{end}");
        }
        let lost: Vec<u8> = [1_u64, 5]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        assert_eq!(
            parse(stacks, &of(RECORD_LOST, &lost)),
            Some(Record::Lost(5))
        );
        assert_eq!(parse(stacks, &of(3, &lost)), None);
        let numbers = |all: [u32; 4]| all.map(u32::to_ne_bytes).concat();
        let process = of(RECORD_FORK, &numbers([9, 7, 9, 7]));
        let started = Record::Started { pid: 9, parent: 7 };
        assert_eq!(parse(stacks, &process), Some(started));
        let thread = of(RECORD_FORK, &numbers([7, 7, 9, 7]));
        assert_eq!(parse(stacks, &thread), None);
    }
}
