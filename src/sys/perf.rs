//! Counters of the kernel's performance events (`perf_event_open(2)`): instructions, context
//! switches, tracepoints.
//!
//! A [`Group`] counts the thread that opened it and whatever that thread starts from then on:
//! threads, processes, and theirs in turn. Its counters are switched on and off by their leader,
//! in each of the tasks at one moment, so that they can be set against each other; and one switch a
//! task is quick also where there are thousands.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::time::Duration;

/// What can be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    kind: u32,
    config: u64,
    user_only: bool,
}

impl Event {
    /// Cycles of the CPU.
    pub const CYCLES: Self = Self::hardware(0);
    /// Instructions that were completed.
    pub const INSTRUCTIONS: Self = Self::hardware(1);
    /// Instructions completed in user mode.
    pub const USER_INSTRUCTIONS: Self = Self {
        user_only: true,
        ..Self::INSTRUCTIONS
    };
    /// Accesses to the last level of cache.
    pub const CACHE_REFERENCES: Self = Self::hardware(2);
    /// Those that had to go to memory.
    pub const CACHE_MISSES: Self = Self::hardware(3);
    /// Branches that were completed.
    pub const BRANCHES: Self = Self::hardware(4);
    /// Branches that were foreseen wrongly.
    pub const BRANCH_MISSES: Self = Self::hardware(5);
    /// Cycles in which no instruction could be fetched.
    pub const STALLED_FRONT: Self = Self::hardware(7);
    /// Cycles in which no instruction could be completed.
    pub const STALLED_BACK: Self = Self::hardware(8);
    /// Time on a CPU, in nanoseconds.
    pub const TASK_CLOCK: Self = Self::software(1);
    /// Page faults.
    pub const PAGE_FAULTS: Self = Self::software(2);
    /// Context switches.
    pub const CONTEXT_SWITCHES: Self = Self::software(3);
    /// Moves from one CPU to another.
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

    /// The tracepoint whose `id` file in tracefs has this number.
    pub const fn tracepoint(id: u64) -> Self {
        Self {
            kind: 2,
            config: id,
            user_only: false,
        }
    }
}

/// The first 64 bytes of `struct perf_event_attr`, which every kernel takes
/// (`PERF_ATTR_SIZE_VER0`).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_kind: u32,
    config1: u64,
}

const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const READ_TIMES: u64 = 0b11;
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
const ENABLE: libc::Ioctl = 0x2400;
const DISABLE: libc::Ioctl = 0x2401;

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// How many.
    pub value: u64,
    /// For how long it was switched on, summed over tasks.
    pub enabled: Duration,
    /// For how long of that it counted: less when the CPU had to share its counters out.
    pub running: Duration,
}

impl Count {
    /// The count as it would be had it counted all the time; none when it never did.
    pub fn whole(&self) -> Option<f64> {
        if self.enabled.is_zero() {
            return Some(self.value as f64);
        }
        let share = self.share();
        (share > 0.0).then(|| self.value as f64 / share)
    }

    /// The share of the time in which it counted.
    pub fn share(&self) -> f64 {
        if self.enabled.is_zero() {
            return 1.0;
        }
        self.running.as_secs_f64() / self.enabled.as_secs_f64()
    }
}

/// Counters that are switched together, off at first.
#[derive(Debug)]
pub struct Group {
    counters: Vec<File>,
}

impl Group {
    /// A group of this one counter.
    ///
    /// # Errors
    /// As `perf_event_open(2)`.
    pub fn open(leader: Event) -> io::Result<Self> {
        Ok(Self {
            counters: vec![open(leader, None)?],
        })
    }

    /// Adds a counter; its place in the group is returned, the leader having 0.
    ///
    /// # Errors
    /// As `perf_event_open(2)`; `EINVAL` also where the CPU cannot count so many at a time.
    pub fn add(&mut self, event: Event) -> io::Result<usize> {
        let counter = open(event, self.counters.first())?;
        self.counters.push(counter);
        Ok(self.counters.len() - 1)
    }

    /// Switches all on.
    ///
    /// # Errors
    /// As ioctl(2).
    pub fn start(&self) -> io::Result<()> {
        self.switch(ENABLE)
    }

    /// Switches all off.
    ///
    /// # Errors
    /// As ioctl(2).
    pub fn stop(&self) -> io::Result<()> {
        self.switch(DISABLE)
    }

    /// What the counter at `place` has counted, over all tasks there are and were.
    ///
    /// # Errors
    /// As read(2); `UnexpectedEof` when the kernel gave the counter up.
    pub fn read(&self, place: usize) -> io::Result<Count> {
        let mut bytes = [0; 24];
        let mut counter = self
            .counters
            .get(place)
            .ok_or(io::ErrorKind::InvalidInput)?;
        counter.read_exact(&mut bytes)?;
        let number = |at: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&bytes[at..at + 8]);
            u64::from_ne_bytes(eight)
        };
        Ok(Count {
            value: number(0),
            enabled: Duration::from_nanos(number(8)),
            running: Duration::from_nanos(number(16)),
        })
    }

    fn switch(&self, request: libc::Ioctl) -> io::Result<()> {
        let Some(leader) = self.counters.first() else {
            return Ok(());
        };
        // SAFETY: the descriptor is open as long as `leader` lives; neither request has a pointer.
        let outcome = unsafe { libc::ioctl(leader.as_raw_fd(), request, 0) };
        if outcome == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

/// Opens a counter of the calling thread and its descendants; one that leads a group is off, the
/// others are on whenever their leader is.
fn open(event: Event, leader: Option<&File>) -> io::Result<File> {
    let mut flags = INHERIT;
    if leader.is_none() {
        flags |= DISABLED;
    }
    if event.user_only {
        flags |= EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR;
    }
    let attributes = Attributes {
        kind: event.kind,
        size: size_of::<Attributes>() as u32,
        config: event.config,
        read_format: READ_TIMES,
        flags,
        ..Attributes::default()
    };
    let (this_thread, any_cpu) = (0 as libc::pid_t, -1 as libc::c_int);
    let leader = leader.map_or(-1, |leader| leader.as_raw_fd());
    // SAFETY: the kernel reads `size` bytes of `attributes`, which lives through the call.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            this_thread,
            any_cpu,
            leader,
            CLOSE_ON_EXEC,
        )
    };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
    Ok(unsafe { File::from_raw_fd(descriptor as libc::c_int) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group of these, or nothing where the kernel does not let us count.
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
        let until = crate::sys::clock::thread_cpu_time() + time;
        while crate::sys::clock::thread_cpu_time() < until {}
    }

    #[test]
    fn counts_only_while_it_is_on() {
        let Some(group) = group(&[Event::TASK_CLOCK, Event::PAGE_FAULTS]) else {
            return;
        };
        burn(Duration::from_millis(2));
        assert_eq!(group.read(0).unwrap(), Count::default());
        group.start().unwrap();
        burn(Duration::from_millis(3));
        group.stop().unwrap();
        let count = group.read(0).unwrap();
        assert!(count.value >= 3_000_000, "{count:?}");
        assert_eq!(count.whole(), Some(count.value as f64));
        burn(Duration::from_millis(2));
        assert_eq!(group.read(0).unwrap(), count);
    }

    #[test]
    fn follows_threads_processes_and_theirs() {
        let Some(group) = group(&[Event::TASK_CLOCK, Event::CONTEXT_SWITCHES]) else {
            return;
        };
        group.start().unwrap();
        std::thread::spawn(|| {
            let deep = std::thread::spawn(|| burn(Duration::from_millis(4)));
            deep.join().unwrap();
            let status = std::process::Command::new("sh")
                .args(["-c", "sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'"])
                .status();
            assert!(status.unwrap().success());
        })
        .join()
        .unwrap();
        group.stop().unwrap();
        let clock = group.read(0).unwrap();
        assert!(clock.value > 4_000_000, "{clock:?}");
        assert!(group.read(1).unwrap().value >= 2);
    }

    #[test]
    fn another_thread_is_not_counted() {
        let Some(group) = group(&[Event::TASK_CLOCK]) else {
            return;
        };
        let (work, wait) = std::sync::mpsc::channel();
        let stranger = std::thread::scope(|scope| {
            // Born before the group was, as seen from a thread of its own.
            let counted = scope.spawn(move || {
                wait.recv().unwrap();
                burn(Duration::from_millis(5));
            });
            let own = scope.spawn(|| Group::open(Event::TASK_CLOCK).unwrap());
            let own = own.join().unwrap();
            own.start().unwrap();
            work.send(()).unwrap();
            counted.join().unwrap();
            own.stop().unwrap();
            own.read(0).unwrap()
        });
        drop(group);
        assert_eq!(stranger.value, 0);
    }

    #[test]
    fn a_count_of_part_of_the_time_is_scaled() {
        let mut count = Count {
            value: 50,
            enabled: Duration::from_millis(10),
            running: Duration::from_millis(5),
        };
        assert_eq!(count.whole(), Some(100.0));
        count.running = Duration::ZERO;
        assert_eq!(count.whole(), None);
        assert_eq!(Count::default().whole(), Some(0.0));
    }

    #[test]
    fn an_event_that_there_is_not_is_an_error() {
        assert!(Group::open(Event::tracepoint(u64::MAX)).is_err());
    }
}
