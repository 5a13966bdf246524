//! Counters of the kernel's performance events (`perf_event_open(2)`): instructions, context switches, tracepoints.
//!
//! A [`Group`] counts the thread that opened it and all of its later descendants, both threads and processes. For each
//! task, all counters are read at the same moment, so they are consistent.
//!
//! Counters are always on, and an interval is the difference of two readings. Switching them on and off would interrupt
//! a CPU for each of up to thousands of tasks (17 us each in a virtual machine); reading interrupts running tasks only.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd, FromRawFd as _};
use std::time::Duration;

/// A countable event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    kind: u32,
    config: u64,
    user_only: bool,
}

impl Event {
    /// CPU cycles.
    pub const CYCLES: Self = Self::hardware(0);
    /// Retired instructions.
    pub const INSTRUCTIONS: Self = Self::hardware(1);
    /// Retired instructions in user mode.
    pub const USER_INSTRUCTIONS: Self = Self {
        user_only: true,
        ..Self::INSTRUCTIONS
    };
    /// Accesses to the last-level cache.
    pub const CACHE_REFERENCES: Self = Self::hardware(2);
    /// Misses of the last-level cache.
    pub const CACHE_MISSES: Self = Self::hardware(3);
    /// Retired branches.
    pub const BRANCHES: Self = Self::hardware(4);
    /// Mispredicted branches.
    pub const BRANCH_MISSES: Self = Self::hardware(5);
    /// Cycles stalled in the front end.
    pub const STALLED_FRONT: Self = Self::hardware(7);
    /// Cycles stalled in the back end.
    pub const STALLED_BACK: Self = Self::hardware(8);
    /// The clock of a CPU, in nanoseconds: to take samples with.
    pub const CPU_CLOCK: Self = Self::software(0);
    /// Time on a CPU, in nanoseconds.
    pub const TASK_CLOCK: Self = Self::software(1);
    pub const PAGE_FAULTS: Self = Self::software(2);
    pub const CONTEXT_SWITCHES: Self = Self::software(3);
    /// Migrations between CPUs.
    pub const CPU_MIGRATIONS: Self = Self::software(4);

    const fn hardware(config: u64) -> Self {
        Self {
            kind: 0,
            config,
            user_only: false,
        }
    }

    const fn software(config: u64) -> Self {
        Self {
            kind: 1,
            config,
            user_only: false,
        }
    }

    /// The tracepoint whose `id` file in tracefs contains this number.
    pub const fn tracepoint(id: u64) -> Self {
        Self {
            kind: 2,
            config: id,
            user_only: false,
        }
    }
}

/// The first 96 bytes of `struct perf_event_attr`, which kernels accept since Linux 3.7 (`PERF_ATTR_SIZE_VER3`).
#[repr(C)]
#[derive(Default)]
pub(crate) struct Attributes {
    pub(crate) kind: u32,
    pub(crate) size: u32,
    pub(crate) config: u64,
    pub(crate) sample_period: u64,
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    pub(crate) flags: u64,
    pub(crate) wakeup_events: u32,
    pub(crate) breakpoint_kind: u32,
    pub(crate) config1: u64,
    pub(crate) config2: u64,
    pub(crate) branch_sample_type: u64,
    pub(crate) sample_registers: u64,
    pub(crate) sample_stack_bytes: u32,
    pub(crate) clock: u32,
}

impl Attributes {
    /// Those of an event that counts in every mode.
    pub(crate) fn of(event: Event) -> Self {
        Self {
            kind: event.kind,
            size: size_of::<Self>() as u32,
            config: event.config,
            ..Self::default()
        }
    }
}

const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const READ_GROUP_AND_TIMES: u64 = 0b1011;
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// Maximum retries of a read while tasks end, and the pause between them.
const MOST_TRIES: u32 = 1000;
const PAUSE: Duration = Duration::from_micros(100);

/// The counts of a group so far, over all present and past tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Counts, by index in the group.
    pub values: Vec<u64>,
    /// Total running time of the tasks.
    pub enabled: Duration,
    /// The part of `enabled` with active counters: smaller if the CPU multiplexed its counters.
    pub running: Duration,
}

impl Counts {
    /// The difference from `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let earlier = before.values.iter().copied().chain(std::iter::repeat(0));
        Self {
            values: self
                .values
                .iter()
                .zip(earlier)
                .map(|(now, earlier)| now.saturating_sub(earlier))
                .collect(),
            enabled: self.enabled.saturating_sub(before.enabled),
            running: self.running.saturating_sub(before.running),
        }
    }

    /// Share of the running time with active counters; 1 if no time has passed.
    pub fn share(&self) -> f64 {
        if self.enabled.is_zero() {
            return 1.0;
        }
        self.running.as_secs_f64() / self.enabled.as_secs_f64()
    }
}

/// Counters that are scheduled together.
#[derive(Debug)]
pub struct Group {
    counters: Vec<File>,
}

impl Group {
    /// A group with one counter.
    ///
    /// # Errors
    /// As `perf_event_open(2)`.
    pub fn open(leader: Event) -> io::Result<Self> {
        Ok(Self {
            counters: vec![open(leader, None)?],
        })
    }

    /// Adds a counter.
    ///
    /// # Errors
    /// As `perf_event_open(2)`; also `EINVAL` if the CPU has too few counters.
    pub fn add(&mut self, event: Event) -> io::Result<()> {
        let counter = open(event, self.counters.first())?;
        self.counters.push(counter);
        Ok(())
    }

    /// The current counts.
    ///
    /// # Errors
    /// As read(2); `UnexpectedEof` if the kernel has disabled the counters.
    pub fn read(&self) -> io::Result<Counts> {
        // The number of counters, the two times, and the counters.
        let mut bytes = vec![0; (3 + self.counters.len()) * size_of::<u64>()];
        let mut tries = 0;
        loop {
            tries += 1;
            match self
                .counters
                .first()
                .map(|mut leader| leader.read(&mut bytes))
            {
                Some(Ok(length)) if length < bytes.len() => {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                // A task is just ending and its counters are partly gone (Linux 6.3 and later). It may be waiting for
                // this thread's CPU.
                Some(Err(error))
                    if error.raw_os_error() == Some(libc::ECHILD) && tries < MOST_TRIES =>
                {
                    std::thread::sleep(PAUSE);
                }
                Some(Err(error)) => return Err(error),
                Some(Ok(_)) | None => break,
            }
        }
        let mut numbers = bytes
            .chunks_exact(size_of::<u64>())
            .map(|bytes| bytes.try_into().map_or(0, u64::from_ne_bytes))
            .skip(1);
        let mut time = || Duration::from_nanos(numbers.next().unwrap_or(0));
        Ok(Counts {
            enabled: time(),
            running: time(),
            values: numbers.collect(),
        })
    }
}

/// Opens a counter of the calling thread and its descendants, in the group of `leader`.
fn open(event: Event, leader: Option<&File>) -> io::Result<File> {
    let mut flags = INHERIT;
    if event.user_only {
        flags |= EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR;
    }
    let attributes = Attributes {
        read_format: READ_GROUP_AND_TIMES,
        flags,
        ..Attributes::of(event)
    };
    let (this_thread, any_cpu) = (0, -1);
    open_with(&attributes, this_thread, any_cpu, leader)
}

/// Opens an event of a thread, or of all (-1), on a CPU, or on any (-1).
pub(crate) fn open_with(
    attributes: &Attributes,
    thread: libc::pid_t,
    cpu: libc::c_int,
    leader: Option<&File>,
) -> io::Result<File> {
    let group = leader.map_or(-1, File::as_raw_fd);
    // SAFETY: the kernel reads `size` bytes of `attributes`, which lives through the call.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attributes),
            thread,
            cpu,
            group,
            CLOSE_ON_EXEC,
        )
    };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor, and no other owner exists.
    Ok(unsafe { File::from_raw_fd(descriptor as libc::c_int) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group of these events, or `None` if the kernel forbids counting.
    fn group(events: &[Event]) -> Option<Group> {
        let mut group = Group::open(events[0])
            .inspect_err(|error| eprintln!("skipped: perf_event_open: {error}"))
            .ok()?;
        for event in &events[1..] {
            group.add(*event).unwrap();
        }
        Some(group)
    }

    fn burn(time: Duration) {
        let until = crate::clock::thread_cpu_time() + time;
        while crate::clock::thread_cpu_time() < until {}
    }

    #[test]
    fn counts_between_two_readings() {
        let Some(group) = group(&[Event::TASK_CLOCK, Event::PAGE_FAULTS]) else {
            return;
        };
        burn(Duration::from_millis(2));
        let before = group.read().unwrap();
        burn(Duration::from_millis(3));
        let after = group.read().unwrap();
        let between = after.since(&before);
        assert!(between.values[0] >= 2_700_000, "{between:?}");
        assert!(after.values[0] >= between.values[0] + 1_800_000);
        assert!((between.share() - 1.0).abs() < 1e-9);
        assert!(between.enabled >= Duration::from_micros(2_700));
    }

    #[test]
    fn follows_threads_and_processes() {
        let Some(group) = group(&[Event::TASK_CLOCK, Event::CONTEXT_SWITCHES]) else {
            return;
        };
        std::thread::spawn(|| {
            let deep = std::thread::spawn(|| burn(Duration::from_millis(4)));
            deep.join().unwrap();
            let status = std::process::Command::new("sh")
                .args([
                    "-c",
                    "sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'",
                ])
                .status();
            assert!(status.unwrap().success());
        })
        .join()
        .unwrap();
        let counts = group.read().unwrap();
        assert!(counts.values[0] > 4_000_000, "{counts:?}");
        assert!(counts.values[1] >= 2, "{counts:?}");
    }

    #[test]
    fn an_earlier_thread_is_not_counted() {
        if group(&[Event::TASK_CLOCK]).is_none() {
            return;
        }
        let (work, wait) = std::sync::mpsc::channel();
        let own = Duration::from_nanos(std::thread::scope(|scope| {
            let stranger = scope.spawn(move || {
                wait.recv().unwrap();
                burn(Duration::from_millis(50));
            });
            let counter = scope
                .spawn(|| Group::open(Event::TASK_CLOCK).unwrap())
                .join()
                .unwrap();
            work.send(()).unwrap();
            stranger.join().unwrap();
            counter.read().unwrap().values[0]
        }));
        assert!(own < Duration::from_millis(50), "{own:?}");
    }

    #[test]
    fn can_be_read_while_threads_start_and_end() {
        let events = [Event::TASK_CLOCK, Event::PAGE_FAULTS, Event::CPU_MIGRATIONS];
        let Some(group) = group(&events) else {
            return;
        };
        std::thread::scope(|scope| {
            let busy = scope.spawn(|| {
                for _ in 0..500 {
                    std::thread::spawn(|| ()).join().unwrap();
                }
            });
            while !busy.is_finished() {
                group.read().unwrap();
            }
        });
    }

    #[test]
    fn a_reading_includes_the_share_of_time_counted() {
        let before = Counts {
            values: vec![5, 7],
            enabled: Duration::from_millis(10),
            running: Duration::from_millis(10),
        };
        let after = Counts {
            values: vec![15, 7],
            enabled: Duration::from_millis(30),
            running: Duration::from_millis(20),
        };
        let between = after.since(&before);
        assert_eq!(between.values, [10, 0]);
        assert!((between.share() - 0.5).abs() < 1e-9);
        assert!((Counts::default().share() - 1.0).abs() < 1e-9);
        assert_eq!(after.since(&Counts::default()), after);
    }

    #[test]
    fn an_unknown_event_is_an_error() {
        assert!(Group::open(Event::tracepoint(u64::MAX)).is_err());
    }
}
