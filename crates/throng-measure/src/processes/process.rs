//! A child process: started in its own process group, read line by line, ended with all its descendants.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::all;
use super::ending::{self, SignalTarget};
use super::known_messages::{self, ServerMessages};
use super::lines::each_line;
use super::orphans;
use super::own_group::OwnGroup;
use super::queue::{LineError, LineReceiver, LineSender, queue};
use super::watchdog;
use throng_spec::Assignment;
use throng_sys::signal::Stop;
use throng_sys::spawn::spawn;

/// Lines of output kept to explain a failure: messages of Node.js about a missing module begin 30 lines before the
/// end.
const TAIL_LINES: usize = 40;
/// Maximum length of a line; the rest of a longer one counts as another line.
const LINE_BYTES: u64 = 1 << 20;
/// Time limit for a process to stop once throng was asked to stop.
const INTERRUPTED_GRACE: Duration = Duration::from_secs(5);
/// Time limit for the kernel to start a process, and for a process to take what is sent to it.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// A running process.
#[derive(Debug)]
pub(crate) struct Process {
    what: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: LineReceiver,
    tails: Tails,
    reaped: Option<ExitStatus>,
    /// Whether it was killed; it may have survived that.
    killed: bool,
    /// Its control group, dropped after the process was killed.
    group: Option<OwnGroup>,
    /// Keeps alive the thread that started it; the kernel kills the process when that thread ends.
    _parent: Sender<()>,
}

/// The last lines of a stream, its length, and the known messages in it.
#[derive(Debug, Clone, Default)]
struct Tail(Arc<Mutex<TailState>>);

/// The output of both streams.
#[derive(Debug, Clone, Default)]
struct Tails {
    output: Tail,
    errors: Tail,
}

#[derive(Debug, Default)]
struct TailState {
    bytes: u64,
    last: VecDeque<String>,
    messages: ServerMessages,
}

impl Tail {
    /// Adds a line of `bytes` bytes.
    fn push(&self, line: &str, bytes: usize, is_scanned: bool) {
        let mut written = self.written();
        written.bytes += bytes as u64;
        if is_scanned {
            written.messages.scan(line, "output");
        }
        if written.last.len() == TAIL_LINES {
            written.last.pop_front();
        }
        written.last.push_back(line.chars().take(500).collect());
    }

    fn written(&self) -> MutexGuard<'_, TailState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the stream was read to its end: the reading thread has ended.
    fn is_whole(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    fn text(&self) -> String {
        let written = self.written();
        let lines = written.last.iter();
        lines.fold(String::new(), |text, line| text + line + "\n")
    }
}

impl Tails {
    fn both(&self) -> [&Tail; 2] {
        [&self.errors, &self.output]
    }

    /// The last lines of standard error or, if that is empty, of standard output.
    fn text(&self) -> String {
        let texts = self.both().map(Tail::text);
        let text = texts.into_iter().find(|text| !text.trim().is_empty());
        text.unwrap_or_default()
    }
}

/// Which output is read line by line; all of it is kept to explain a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputCapture {
    /// Standard output.
    Output,
    /// Standard error too.
    Both,
}

/// How to stop a process.
#[derive(Debug)]
pub(crate) struct StopOrder {
    pub(crate) signal: Signal,
    pub(crate) signalled: SignalTarget,
    /// Time limit.
    pub(crate) grace: Duration,
    /// A signal that shortens the grace period.
    pub(crate) hurried: Option<Stop>,
}

impl StopOrder {
    /// Shortens the deadline once a signal asked throng to stop, and ends it at the second one.
    fn shorten(&self, deadline: Instant) -> Instant {
        if Stop::is_insisted() {
            deadline.min(Instant::now())
        } else if self.hurried.is_some_and(Stop::requested) {
            deadline.min(Instant::now() + INTERRUPTED_GRACE)
        } else {
            deadline
        }
    }
}

/// How a process ended after a stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// In time, with all of its group.
    InTime,
    /// Not in time; it was killed.
    Late,
    /// It ended, but these members of its group (as text) did not, and were killed.
    ButNot(String),
}

/// Why a process did not run to its end, and was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfinished {
    /// The time limit passed.
    Late,
    /// A signal asked to stop.
    Interrupted,
}

impl Process {
    /// Starts `command`, called `what` in messages, on `cpus`.
    pub(crate) fn start(
        what: &str,
        command: Command,
        cpus: &[u32],
        captured: OutputCapture,
    ) -> anyhow::Result<Self> {
        Self::start_prepared(what, command, cpus, captured, || ()).map(|(process, ())| process)
    }

    /// Like [`start`](Self::start), but from a new thread that first calls `prepare`. That thread does nothing else
    /// and lives as long as the process, so that only this process inherits its properties.
    pub(crate) fn start_prepared<P: Send + 'static>(
        what: &str,
        mut command: Command,
        cpus: &[u32],
        captured: OutputCapture,
        prepare: impl FnOnce() -> P + Send + 'static,
    ) -> anyhow::Result<(Self, P)> {
        command.stdin(Stdio::piped());
        command.stdout(Stdio::piped());
        command.stderr(Stdio::piped());
        let program = command.get_program().to_owned();
        let is_scanned = captured == OutputCapture::Both;
        if is_scanned {
            known_messages::prepare();
        }
        let group =
            watchdog::register(&mut command).context("cannot register with the watchdog")?;
        let copied = cpus.to_vec();
        let (parent, until_the_end) = channel::<()>();
        let (sender, receiver) = sync_channel(1);
        std::thread::Builder::new()
            .name("parent".to_owned())
            .spawn(move || {
                let prepared = prepare();
                // The receiver waits for this.
                let _ = sender.send((spawn(&mut command, &copied), prepared));
                // Nothing is ever sent: the channel closes when the process is dropped.
                let _ = until_the_end.recv();
            })
            .context("cannot start a thread")?;
        let (child, prepared) = receiver
            .recv_timeout(ANSWER_LIMIT)
            .with_context(|| format!("{what} did not start within {ANSWER_LIMIT:?}"))?;
        let mut started =
            child.with_context(|| format!("cannot start {what} ({})", program.display()))?;
        orphans::mark_awaited(started.id());
        let tails = Tails::default();
        let (line_sender, lines) = queue();
        let stdout = started.stdout.take().expect("standard output is piped");
        let stderr = started.stderr.take().expect("standard error is piped");
        let errors = is_scanned.then(|| line_sender.clone());
        let input = started.stdin.take();
        if let Some(input) = &input {
            fcntl_setfl(input, OFlags::NONBLOCK).context("cannot prepare its standard input")?;
        }
        let process = Self {
            what: what.to_owned(),
            input,
            child: started,
            lines,
            tails: tails.clone(),
            reaped: None,
            killed: false,
            group,
            _parent: parent,
        };
        listen(stdout, tails.output, Some(line_sender), is_scanned)?;
        listen(stderr, tails.errors, errors, is_scanned)?;
        Ok((process, prepared))
    }

    /// Starts `program` as the load of an assignment.
    pub(crate) fn start_load<P: Send + 'static>(
        program: &Path,
        assignment: &Assignment,
        cpus: &[u32],
        prepare: impl FnOnce() -> P + Send + 'static,
    ) -> anyhow::Result<(Self, P)> {
        let line = assignment.line()?;
        let mut command = Command::new(program);
        command.args(["load", "--controlled"]);
        if assignment.threads as usize == cpus.len() {
            // Each thread is bound to a CPU. Two on one CPU would wait for each other for whole ticks.
            let numbers: Vec<String> = cpus.iter().map(u32::to_string).collect();
            command.args(["--cpus", &numbers.join(",")]);
        }
        let (mut load, prepared) =
            Self::start_prepared("the load", command, cpus, OutputCapture::Output, prepare)?;
        load.send(&line);
        Ok((load, prepared))
    }

    /// Deliberately lets the processes that it leaves running live on.
    pub(crate) fn is_outlived(&mut self) {
        self.group.iter_mut().for_each(OwnGroup::is_outlived);
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line of captured output, awaited until `deadline`.
    pub(crate) fn line(&self, deadline: Instant) -> Result<String, LineError> {
        self.lines.next(deadline)
    }

    /// Number of bytes written so far.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.tails
            .both()
            .iter()
            .map(|tail| tail.written().bytes)
            .sum()
    }

    /// The known messages in its output so far.
    pub(crate) fn messages(&self) -> ServerMessages {
        let mut messages = ServerMessages::default();
        for tail in self.tails.both() {
            messages.add(tail.written().messages.clone());
        }
        messages
    }

    /// Writes an empty line to standard input.
    pub(crate) fn proceed(&mut self) {
        self.send("\n");
    }

    /// Stops it and its whole group (SIGSTOP), or lets them continue.
    ///
    /// # Errors
    /// As kill(2).
    pub(crate) fn freeze(&self, freeze: bool) -> Result<(), Errno> {
        let signal = if freeze { Signal::STOP } else { Signal::CONT };
        match self.reaped {
            Some(_) => Ok(()),
            None => ending::signal(self.leader(), SignalTarget::Group, signal),
        }
    }

    /// Writes to its standard input, which is closed if the process does not read in time.
    pub(crate) fn send(&mut self, text: &str) {
        let deadline = Instant::now() + ANSWER_LIMIT;
        let mut rest = text.as_bytes();
        while let (Some(input), false) = (&mut self.input, rest.is_empty()) {
            match input.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if error.kind() == ErrorKind::WouldBlock && Instant::now() < deadline =>
                {
                    let second = Timespec {
                        tv_sec: 1,
                        tv_nsec: 0,
                    };
                    // Whatever this returns, the next write shows whether there is room.
                    let _ = poll(&mut [PollFd::new(input, PollFlags::OUT)], Some(&second));
                }
                // If the process has ended, reading its output shows that.
                Err(_) => self.input = None,
            }
        }
    }

    /// Whether it has ended. It is not reaped yet, so its ID stays reserved until its whole group has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.reaped.is_some() || ending::has_ended(self.leader())
    }

    /// Waits until it has ended, for at most `limit`.
    pub(crate) fn wait_for_end(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        while !self.has_ended() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until it has ended, and returns its status. Kills it at the time limit, at a second signal, and at the
    /// first one if `heed` is given.
    pub(crate) fn finish(
        &mut self,
        limit: Duration,
        heed: Option<Stop>,
    ) -> Result<ExitStatus, Unfinished> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.reap() {
                return Ok(status);
            }
            let is_interrupted = heed.is_some_and(Stop::requested) || Stop::is_insisted();
            if is_interrupted || Instant::now() >= deadline {
                self.kill();
                return Err(if is_interrupted {
                    Unfinished::Interrupted
                } else {
                    Unfinished::Late
                });
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn leader(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The signal that ended it.
    pub(crate) fn signal(&mut self) -> Option<i32> {
        self.reap().and_then(|status| status.signal())
    }

    /// How it ended, for a message.
    pub(crate) fn ending(&mut self) -> String {
        self.wait_for_output();
        if self.has_ended() {
            self.kill();
        }
        match self.reaped {
            Some(status) => format!("{} ended with {status}", self.what),
            None => format!("{} closed its output", self.what),
        }
    }

    /// Waits until it has ended and its last lines were read. Its output closes slightly before its end; a child of it
    /// may keep the output open.
    pub(crate) fn wait_for_output(&self) {
        let deadline = Instant::now() + Duration::from_secs(2);
        let is_over = || self.has_ended() && self.tails.both().iter().all(|it| it.is_whole());
        while !is_over() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The last lines of standard error or, if there are none, of standard output.
    pub(crate) fn output(&self) -> String {
        self.tails.text()
    }

    /// The last lines of both streams, of standard output first.
    pub(crate) fn all_output(&self) -> String {
        self.tails
            .both()
            .map(Tail::text)
            .iter()
            .rev()
            .cloned()
            .collect()
    }

    /// Records its end, without ending other members of its group; `None` while it runs.
    pub(crate) fn reap(&mut self) -> Option<ExitStatus> {
        if self.reaped.is_none() && self.has_ended() {
            watchdog::unregister(self.pid());
            self.reaped = self.child.try_wait().ok().flatten();
            orphans::unmark_awaited(self.pid());
        }
        self.reaped
    }

    /// Stops it and waits for up to `grace`, with `Group` for all members. Then kills it and its process group.
    pub(crate) fn stop(&mut self, grace: Duration, signalled: SignalTarget) -> Stopped {
        self.stop_with(&StopOrder {
            signal: Signal::TERM,
            signalled,
            grace,
            hurried: None,
        })
    }

    /// Like [`stop`](Self::stop), with these settings.
    pub(crate) fn stop_with(&mut self, how: &StopOrder) -> Stopped {
        if self.reaped.is_none() {
            // A process that may not be signalled is not killed either, and then named.
            let _ = ending::signal(self.leader(), how.signalled, how.signal);
        }
        // A signal does not interrupt a read of a line, but the end of the stream does.
        self.input = None;
        let mut deadline = Instant::now() + how.grace;
        while !self.has_ended() && Instant::now() < deadline {
            deadline = how.shorten(deadline);
            std::thread::sleep(Duration::from_millis(1));
        }
        let stopped = if !self.has_ended() {
            Stopped::Late
        } else if how.signalled == SignalTarget::Group && self.reaped.is_none() {
            self.wait_for_group(deadline, how)
        } else {
            Stopped::InTime
        };
        self.kill();
        stopped
    }

    /// Waits until its whole group has ended, too.
    fn wait_for_group(&self, mut deadline: Instant, how: &StopOrder) -> Stopped {
        loop {
            let others = all::of_group(self.pid().cast_signed());
            if others.is_empty() {
                return Stopped::InTime;
            }
            if Instant::now() >= deadline {
                return Stopped::ButNot(all::in_words(&others));
            }
            deadline = how.shorten(deadline);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends it and every process of its group.
    fn kill(&mut self) {
        if self.reaped.is_none() && !std::mem::replace(&mut self.killed, true) {
            watchdog::unregister(self.pid());
            let group = self.group.as_ref().map_or(&[][..], OwnGroup::directories);
            self.reaped = ending::kill(&mut self.child, group);
            // A survivor is named once, and is no orphan.
            if self.reaped.is_some() {
                orphans::unmark_awaited(self.pid());
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads a stream line by line in its own thread, until its end.
fn listen(
    stream: impl Read + Send + 'static,
    tail: Tail,
    to: Option<LineSender>,
    is_scanned: bool,
) -> anyhow::Result<()> {
    std::thread::Builder::new()
        .name("listen".to_owned())
        .spawn(move || {
            each_line(stream, LINE_BYTES, |line| {
                let text = String::from_utf8_lossy(line);
                tail.push(text.trim_end(), line.len(), is_scanned);
                // The stream is read even without a reader of lines, or a full pipe would block the process.
                if let Some(to) = &to {
                    to.send(text.trim_end());
                }
            });
        })
        .context("cannot start a thread")?;
    Ok(())
}
