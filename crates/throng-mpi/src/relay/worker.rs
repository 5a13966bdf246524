//! The other process of this rank, which does the work without MPI.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use throng::measure::processes::ending;

use crate::RELAY;
use crate::frame::{ControlMessage, Frame, Reader, Writer};

/// Prefixes of the launcher's and MPI's variables. A server or load that inherits them might run as a rank.
const OF_MPI: [&str; 10] = [
    "OMPI_", "PMIX_", "PMI_", "PMI2_", "ORTE_", "OPAL_", "PRTE_", "HYDRA_", "MPIR_", "MPICH_",
];

/// Time limit for the worker to exit after it has closed its socket.
const END_LIMIT: Duration = Duration::from_secs(3);
/// Maximum number of queued bytes. Beyond it, no more messages for the worker are received.
const ROOM: usize = 16 << 20;

/// The worker of this rank.
pub(super) struct Worker {
    child: Child,
    socket: UnixStream,
    reader: Reader,
    writer: Writer,
    closed: bool,
}

impl Worker {
    /// Starts this program again with the same arguments, in a process group of its own: a launcher that ends a job
    /// kills the group of each rank, and the worker still has to write the record then.
    ///
    /// It starts before MPI, so that it inherits none of MPI's descriptors.
    pub(super) fn start() -> anyhow::Result<Self> {
        let (socket, theirs) = UnixStream::pair().context("cannot make a socket pair")?;
        socket.set_nonblocking(true)?;
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        command.args(std::env::args_os().skip(1));
        for (name, _) in std::env::vars_os() {
            let known = name.to_string_lossy();
            if OF_MPI.iter().any(|prefix| known.starts_with(prefix)) {
                command.env_remove(&name);
            }
        }
        command.env(RELAY, std::process::id().to_string());
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        command.process_group(0);
        let child = command.spawn().context("cannot start the worker")?;
        Ok(Self {
            child,
            socket,
            reader: Reader::default(),
            writer: Writer::default(),
            closed: false,
        })
    }

    /// Sends a frame, unless the worker has ended.
    pub(super) fn send(&mut self, frame: &Frame) {
        if !self.closed {
            self.closed = self.writer.push(frame).is_err();
            self.flush();
        }
    }

    pub(super) fn send_control(&mut self, word: ControlMessage) {
        self.send(&Frame::Control(word));
    }

    pub(super) fn flush(&mut self) {
        self.closed |= self.writer.flush(&mut self.socket).is_err();
    }

    /// The worker's next complete message, if any.
    pub(super) fn next_frame(&mut self) -> Option<Frame> {
        while !self.closed {
            match self.reader.next() {
                Ok(Some(frame)) => return Some(frame),
                Ok(None) => {}
                Err(_) => break,
            }
            match self.reader.fill(&mut self.socket) {
                Ok(true) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(false) | Err(_) => break,
            }
        }
        self.closed = true;
        None
    }

    /// Whether its queue has room.
    pub(super) fn has_room(&self) -> bool {
        self.closed || self.writer.waiting() < ROOM
    }

    /// Whether its queue has messages.
    pub(super) fn is_behind(&self) -> bool {
        !self.closed && self.writer.waiting() > 0
    }

    /// Whether the worker has closed its socket, as it does on exit.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Waits for a message, for at most `time`.
    pub(super) fn wait(&self, time: Duration) {
        if self.closed {
            std::thread::sleep(time);
            return;
        }
        let mut flags = PollFlags::IN;
        if self.writer.waiting() > 0 {
            flags |= PollFlags::OUT;
        }
        let mut sockets = [PollFd::new(&self.socket, flags)];
        let limit = Timespec::try_from(time).expect("waiting is short");
        // A signal may end the wait early.
        let _ = poll(&mut sockets, Some(&limit));
    }

    /// The worker's exit status. Kills the worker if it has closed its socket but does not exit in time.
    pub(super) fn end(&mut self) -> Option<ExitStatus> {
        let deadline = Instant::now() + END_LIMIT;
        while Instant::now() < deadline {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        self.kill()
    }

    pub(super) fn kill(&mut self) -> Option<ExitStatus> {
        self.closed = true;
        ending::kill(&mut self.child, &[])
    }

    /// Asks the worker to stop, as Ctrl-C does.
    pub(super) fn terminate(&self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
    }
}
