//! The threads and processes of a server, and their system calls.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::fs::FileExt as _;
use std::rc::Rc;

use super::decode::{self, SyscallEntry, ThreadView};
use super::ring;
use super::tasks::{call_of, comm, fdinfo, is_caught, process_of, state, tasks, tracer_of};
use crate::probes::Tree;
use throng_record::traced::{Call, Kind, gathered};
use throng_sys::calls;
use throng_sys::trace::{StopReason, TraceStop, Tracer};

/// Maximum calls kept per step: a server that never waits makes very many.
const MOST_CALLS: usize = 4000;

/// The tracer and its observations.
pub(super) struct Watch {
    tracer: Tracer,
    /// The server's first thread, whose ID is that of its process.
    root: i32,
    threads: BTreeMap<i32, Thread>,
    /// All threads seen except the first, including ended ones, in order of appearance.
    known: Vec<TracedTask>,
    /// Sockets, by inode, that existed before any client.
    listeners: Rc<HashSet<String>>,
    /// Descriptions of ring operations, by their user data.
    operations: HashMap<u64, String>,
    seen: Vec<TracedCall>,
}

/// A living thread.
#[derive(Default)]
struct Thread {
    /// Its current call, with the index of that call in this step.
    inside: Option<CurrentCall>,
    /// A call that was interrupted, only by the tracing or by work that the kernel had for the thread, and that the
    /// kernel may restart. A restarted call is the same call, not another one of the server.
    interrupted: Option<CurrentCall>,
}

/// A thread's current call.
struct CurrentCall {
    entered: SyscallEntry,
    /// Its index among the calls of this step.
    place: Option<usize>,
    /// Whether the thread was asleep in it when the step began.
    asleep: bool,
}

/// A thread or process and how it can be named.
struct TracedTask {
    number: i32,
    is_process: bool,
    /// Its own name, once it has one.
    name: String,
}

/// A call of a step, as far as it is known.
struct TracedCall {
    thread: i32,
    name: String,
    arguments: String,
    outcome: String,
    /// The thread or process that it created.
    created_task: Option<i32>,
    kind: Kind,
}

impl Watch {
    /// Begins to trace all threads of a server and of its children. They are stopped until examined. `listeners` are
    /// the server's sockets that are not connections.
    pub(super) fn begin(root: u32, listeners: HashSet<String>) -> io::Result<Self> {
        let mut watch = Self {
            tracer: Tracer::default(),
            root: root.cast_signed(),
            threads: BTreeMap::new(),
            known: Vec::new(),
            listeners: Rc::new(listeners),
            operations: HashMap::new(),
            seen: Vec::new(),
        };
        let mut tree = Tree::of(root);
        // A traced process cannot start an untraced one, but may have done so before.
        loop {
            tree.refresh();
            let tasks = tree.pids().iter().flat_map(|pid| tasks(pid.cast_signed()));
            let new: Vec<i32> = tasks
                .filter(|thread| !watch.threads.contains_key(thread))
                .collect();
            let mut any = false;
            for thread in new {
                any |= watch.seize(thread)?;
            }
            if !any {
                return Ok(watch);
            }
        }
    }

    /// Begins to trace a thread; returns whether it is traced now.
    fn seize(&mut self, thread: i32) -> io::Result<bool> {
        let interrupted = call_of(thread);
        match self.tracer.seize(thread) {
            Ok(()) => {}
            // A traced thread created it, so it is traced itself.
            Err(_)
                if tracer_of(thread) == Some(rustix::thread::gettid().as_raw_nonzero().get()) => {}
            // It has ended, and may not be reaped yet. The kernel then returns the same error as for forbidden
            // tracing.
            Err(_) if state(thread).is_none_or(|state| "ZX".contains(state)) => return Ok(false),
            Err(error) => return Err(error),
        }
        self.add_thread(thread);
        if let Some(known) = self.threads.get_mut(&thread) {
            known.interrupted = interrupted.map(|entered| CurrentCall {
                entered,
                place: None,
                asleep: false,
            });
        }
        Ok(true)
    }

    /// Processes all events; returns whether there were any.
    pub(super) fn process_stops(&mut self) -> bool {
        let mut any = false;
        // Bounded, because a server that never waits would keep us from its client.
        for _ in 0..256 {
            let Ok(Some(happened)) = self.tracer.next() else {
                break;
            };
            any = true;
            self.on_stop(happened);
        }
        any
    }

    /// Whether every thread sleeps within a call.
    pub(super) fn all_sleep(&self) -> bool {
        self.threads
            .iter()
            .all(|(thread, known)| known.inside.is_some() && state(*thread) == Some('S'))
    }

    /// Whether all threads have ended.
    pub(super) fn is_over(&self) -> bool {
        self.threads.is_empty()
    }

    /// Begins a step, and forgets earlier observations.
    pub(super) fn begin_step(&mut self) {
        self.seen.clear();
        for (number, thread) in &mut self.threads {
            for inside in thread.inside.iter_mut().chain(&mut thread.interrupted) {
                inside.place = None;
                inside.asleep = state(*number) == Some('S');
            }
        }
    }

    /// Number of calls seen in this step.
    pub(super) fn call_count(&self) -> usize {
        self.seen.len()
    }

    /// The calls of this step, which is over. If the server did not become idle, its current calls are left out.
    pub(super) fn calls(&mut self, rests: bool) -> Vec<Call> {
        let living: Vec<i32> = self.threads.keys().copied().collect();
        for thread in living {
            self.read_name(thread);
        }
        let mut seen = std::mem::take(&mut self.seen);
        seen.retain(|seen| rests || seen.kind != Kind::Sleeps);
        let calls = seen.into_iter().map(|seen| {
            let born = seen.created_task.map(|born| self.called(born));
            Call {
                who: self.called(seen.thread),
                name: seen.name,
                arguments: seen.arguments,
                outcome: born.unwrap_or(seen.outcome),
                kind: seen.kind,
                times: 1,
            }
        });
        gathered(&calls.collect::<Vec<_>>())
    }

    fn on_stop(&mut self, TraceStop { thread, what }: TraceStop) {
        self.add_thread(thread);
        let mut signal = 0;
        match what {
            StopReason::Entry { number, arguments } => {
                self.on_entry(thread, SyscallEntry { number, arguments });
            }
            StopReason::Exit(value) => self.on_exit(thread, value),
            StopReason::Creates(number) => self.add_thread(number),
            StopReason::Signal(number) => {
                signal = number;
                // A signal without a handler would not have reached it without the tracing.
                if is_caught(thread, number) {
                    self.was_interrupted(thread);
                    let name = decode::signal(number);
                    self.event(thread, "signal", name, String::new());
                }
            }
            StopReason::Other => {}
            StopReason::Gone => {
                self.threads.remove(&thread);
                return;
            }
        }
        self.tracer.resume(thread, signal);
    }

    fn add_thread(&mut self, thread: i32) {
        if self.threads.contains_key(&thread) {
            return;
        }
        self.threads.insert(thread, Thread::default());
        if thread != self.root {
            self.known.push(TracedTask {
                number: thread,
                is_process: process_of(thread).is_none_or(|process| process == thread),
                name: String::new(),
            });
        }
    }

    fn on_entry(&mut self, thread: i32, entered: SyscallEntry) {
        self.read_name(thread);
        if let Some(known) = self.threads.get_mut(&thread)
            && let Some(interrupted) = &known.interrupted
            && (decode::is_restart(&entered) || interrupted.entered == entered)
        {
            known.inside = known.interrupted.take();
            return;
        }
        self.was_interrupted(thread);
        let name = calls::name(entered.number);
        let look = self.at(thread);
        let arguments = decode::arguments(&entered, &look);
        if name == "io_uring_enter" {
            for operation in ring::operations(thread, &fdinfo(thread, entered.arguments[0]), &look)
            {
                let about = format!("{} {}", operation.name, look.descriptor(operation.fd));
                self.operations.insert(operation.known_as, about.clone());
                self.event(thread, "submits", about, String::new());
            }
        }
        let place = self.record(TracedCall {
            thread,
            name,
            arguments,
            outcome: String::new(),
            created_task: None,
            kind: if decode::ends(&entered) {
                Kind::Made
            } else {
                Kind::Sleeps
            },
        });
        if let Some(known) = self.threads.get_mut(&thread) {
            known.inside = Some(CurrentCall {
                entered,
                place,
                asleep: false,
            });
        }
    }

    fn on_exit(&mut self, thread: i32, value: i64) {
        let Some(known) = self.threads.get_mut(&thread) else {
            return;
        };
        let Some(inside) = known.inside.take() else {
            return; // it was in a call when it was seized, or is new
        };
        if decode::was_interrupted(value) {
            known.interrupted = Some(inside);
        } else {
            self.has_left(thread, &inside, value);
        }
    }

    /// Ends a thread's interrupted call, if it has one: it is not restarted.
    fn was_interrupted(&mut self, thread: i32) {
        let known = self.threads.get_mut(&thread);
        if let Some(inside) = known.and_then(|known| known.interrupted.take()) {
            self.has_left(thread, &inside, -i64::from(libc::EINTR));
        }
    }

    fn has_left(&mut self, thread: i32, inside: &CurrentCall, value: i64) {
        let CurrentCall {
            entered,
            place,
            asleep,
        } = *inside;
        let look = self.at(thread);
        let outcome = decode::outcome(&entered, value, &look);
        let born = (value > 0 && decode::returns_task(&entered)).then_some(value as i32);
        if let Some(seen) = place.and_then(|place| self.seen.get_mut(place)) {
            seen.outcome = outcome;
            seen.created_task = born;
            seen.kind = Kind::Made;
        } else {
            self.record(TracedCall {
                thread,
                name: calls::name(entered.number),
                arguments: decode::arguments(&entered, &look),
                outcome,
                created_task: born,
                kind: if asleep { Kind::Woken } else { Kind::Made },
            });
        }
        if calls::name(entered.number) == "io_uring_enter" {
            for completion in ring::completions(&fdinfo(thread, entered.arguments[0])) {
                // Of operations submitted before the tracing began, only the kind is known.
                let kind = throng_sys::ring::operation(completion.known_as);
                let about = self
                    .operations
                    .get(&completion.known_as)
                    .map_or(kind, String::as_str)
                    .to_owned();
                let came = match (kind, completion.result) {
                    ("accept", socket @ 0..) => look.descriptor(socket),
                    (_, result) => decode::completed(kind, result),
                };
                self.event(thread, "completed", about, came);
            }
        }
    }

    fn event(&mut self, thread: i32, name: &str, arguments: String, outcome: String) {
        self.record(TracedCall {
            thread,
            name: name.to_owned(),
            arguments,
            outcome,
            created_task: None,
            kind: Kind::Event,
        });
    }

    fn record(&mut self, seen: TracedCall) -> Option<usize> {
        if self.seen.len() >= MOST_CALLS {
            return None;
        }
        self.seen.push(seen);
        Some(self.seen.len() - 1)
    }

    fn at(&self, thread: i32) -> StoppedThread {
        StoppedThread {
            thread,
            listeners: Rc::clone(&self.listeners),
        }
    }

    /// Records a thread's own name, which it sets only once it runs.
    fn read_name(&mut self, thread: i32) {
        let known = self.known.iter_mut().rev();
        if let Some(known) = known.into_iter().find(|known| known.number == thread)
            && let Some(name) = comm(thread)
        {
            known.name = name;
        }
    }

    /// The name of a thread or process in the list of calls.
    fn called(&self, thread: i32) -> String {
        let some_is = |process: bool| self.known.iter().any(|known| known.is_process == process);
        let Some(place) = self.known.iter().rposition(|known| known.number == thread) else {
            let name = match (some_is(true), some_is(false)) {
                (true, _) => "parent",
                (_, true) => "main",
                _ => "server",
            };
            return name.to_owned();
        };
        let known = &self.known[place];
        let of_its_kind = self.known[..=place].iter();
        let number = of_its_kind
            .filter(|other| other.is_process == known.is_process)
            .count();
        if known.is_process {
            return format!("child {number}");
        }
        // A thread without its own name has its creator's.
        if known.name.is_empty() || Some(&known.name) == comm(self.root).as_ref() {
            return format!("thread {number}");
        }
        let alike: Vec<i32> = self
            .known
            .iter()
            .filter(|other| other.name == known.name)
            .map(|known| known.number)
            .collect();
        if alike.len() == 1 {
            return known.name.clone();
        }
        let index = alike.iter().position(|other| *other == thread);
        format!("{} {}", known.name, index.map_or(0, |index| index + 1))
    }
}

/// A stopped thread, to be examined.
struct StoppedThread {
    thread: i32,
    listeners: Rc<HashSet<String>>,
}

impl ThreadView for StoppedThread {
    fn descriptor(&self, fd: RawFd) -> String {
        let Ok(target) = fs::read_link(format!("/proc/{}/fd/{fd}", self.thread)) else {
            return fd.to_string();
        };
        let name = target.to_string_lossy();
        match name.split_once(':').map_or(&*name, |(kind, _)| kind) {
            "socket" if self.listeners.contains(&*name) => "listener".to_owned(),
            "socket" => "connection".to_owned(),
            "pipe" => "pipe".to_owned(),
            "anon_inode" => {
                let kind = name.split_once(':').map_or("", |(_, kind)| kind);
                match kind.trim_matches(['[', ']']) {
                    "eventpoll" => "epoll",
                    "io_uring" => "ring",
                    kind => kind,
                }
                .to_owned()
            }
            _ => "file".to_owned(),
        }
    }

    fn memory(&self, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let memory = fs::File::open(format!("/proc/{}/mem", self.thread));
        let read = memory.and_then(|memory| memory.read_at(&mut bytes, address));
        bytes.truncate(read.unwrap_or(0));
        bytes
    }
}
