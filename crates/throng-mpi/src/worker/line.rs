//! A worker's end of the socket to its relay.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::{Signal, getppid, kill_process};

use crate::frame::{self, ControlMessage, Frame, Reader};

/// Time limit for MPI to start on all hosts.
const BEGIN_LIMIT: Duration = Duration::from_mins(2);
/// Maximum number of queued messages. Further messages wait in the socket, then at the sender.
const QUEUE: usize = 256;
/// Heartbeats per silence limit.
const HEARTBEATS_PER_SILENCE: u32 = 5;

/// Messages from the relay.
#[derive(Debug)]
pub(super) enum WorkerMessage {
    /// From another rank's worker.
    Worker { rank: usize, body: Vec<u8> },
    /// From the relay itself.
    Control(ControlMessage),
    /// The relay has ended; the text is how that was detected. This is the last message.
    Gone(String),
}

/// This rank, and the number of ranks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) rank: usize,
    pub(super) ranks: usize,
}

pub(super) struct Line {
    writer: Arc<Mutex<UnixStream>>,
    news: Receiver<WorkerMessage>,
}

impl Line {
    /// Takes over standard input, which is the socket, and receives the first message.
    pub(super) fn open() -> anyhow::Result<(Place, Self)> {
        let stdin = io::stdin().as_fd().try_clone_to_owned()?;
        let mut socket = UnixStream::from(stdin);
        // Child processes must not inherit the socket.
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        socket.set_read_timeout(Some(BEGIN_LIMIT))?;
        let mut reader = Reader::default();
        let first = loop {
            if let Some(frame) = reader.next()? {
                break frame;
            }
            let more = reader.fill(&mut socket);
            if !more.context("MPI did not begin in time")? {
                bail!("MPI ended before it began");
            }
        };
        let Frame::Control(ControlMessage::Place {
            rank,
            ranks,
            silence_ms,
        }) = first
        else {
            bail!("the first message was {first:?}, not the greeting");
        };
        let silence = Duration::from_millis(silence_ms);
        let place = Place { rank, ranks };
        socket.set_read_timeout(Some(silence))?;
        socket.set_write_timeout(Some(silence))?;
        let writer = Arc::new(Mutex::new(socket.try_clone()?));
        let (sender, news) = sync_channel(QUEUE);
        let named = |name: &str| Builder::new().name(name.to_owned());
        named("receive").spawn(move || receive(socket, reader, &sender))?;
        let beating = Arc::clone(&writer);
        named("heartbeat")
            .spawn(move || send_heartbeats(&beating, silence / HEARTBEATS_PER_SILENCE))?;
        Ok((place, Self { writer, news }))
    }

    /// Sends to another rank's worker.
    pub(super) fn send(&self, rank: usize, body: Vec<u8>) -> anyhow::Result<()> {
        self.write(&Frame::Worker { rank, body })
    }

    /// Sends a message to the relay.
    pub(super) fn send_control(&self, word: ControlMessage) -> anyhow::Result<()> {
        self.write(&Frame::Control(word))
    }

    fn write(&self, frame: &Frame) -> anyhow::Result<()> {
        write(&self.writer, frame)
            .context("the MPI process of the leading rank accepts no more data")
    }

    /// The next message, if one arrives before `deadline`.
    pub(super) fn next(&self, deadline: Instant) -> Option<WorkerMessage> {
        let left = deadline.saturating_duration_since(Instant::now());
        self.news.recv_timeout(left).ok()
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let socket = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = socket.shutdown(std::net::Shutdown::Both);
    }
}

fn write(writer: &Mutex<UnixStream>, frame: &Frame) -> io::Result<()> {
    let mut socket = writer.lock().unwrap_or_else(PoisonError::into_inner);
    frame::write(&mut *socket, frame)
}

/// Forwards messages from the relay until the receiver or the relay ends.
fn receive(mut socket: UnixStream, mut reader: Reader, to: &SyncSender<WorkerMessage>) {
    let gone = loop {
        let news = match reader.next() {
            Ok(Some(Frame::Control(ControlMessage::Heartbeat))) => continue,
            Ok(Some(Frame::Control(word))) => WorkerMessage::Control(word),
            Ok(Some(Frame::Worker { rank, body })) => WorkerMessage::Worker { rank, body },
            Ok(None) => match reader.fill(&mut socket) {
                Ok(true) => continue,
                Ok(false) => break "has ended".to_owned(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    end_post();
                    break "no longer answers".to_owned();
                }
                Err(error) => break format!("cannot be read: {error}"),
            },
            Err(error) => break format!("sent invalid data: {error}"),
        };
        if to.send(news).is_err() {
            return;
        }
    };
    let _ = to.send(WorkerMessage::Gone(format!(
        "the MPI process of the leading rank {gone}"
    )));
}

/// Kills a stopped relay, since the launcher would otherwise wait for it forever.
fn end_post() {
    if let Some(relay) = getppid() {
        let _ = kill_process(relay, Signal::KILL);
    }
}

/// Sends heartbeats to the relay until it ends.
fn send_heartbeats(writer: &Mutex<UnixStream>, every: Duration) {
    while write(writer, &Frame::Control(ControlMessage::Heartbeat)).is_ok() {
        std::thread::sleep(every);
    }
}
