//! Unread lines of a process, in a bounded queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Instant;

/// Maximum unread lines; further ones are dropped.
const MOST_LINES: usize = 1024;
/// Maximum total size of unread lines, enough for a few of the longest.
const MOST_BYTES: usize = 4 << 20;

/// The write end; several threads may have one.
#[derive(Debug, Clone)]
pub(crate) struct LineSender {
    lines: SyncSender<String>,
    waiting_bytes: Arc<AtomicUsize>,
}

/// The read end.
#[derive(Debug)]
pub(crate) struct LineReceiver {
    lines: Receiver<String>,
    waiting_bytes: Arc<AtomicUsize>,
}

/// Why no line was returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LineError {
    /// Not in time.
    Late,
    /// All writers have ended.
    Ended,
}

/// An empty queue.
pub(crate) fn queue() -> (LineSender, LineReceiver) {
    let (sender, receiver) = sync_channel(MOST_LINES);
    let waiting_bytes = Arc::new(AtomicUsize::new(0));
    let sender = LineSender {
        lines: sender,
        waiting_bytes: Arc::clone(&waiting_bytes),
    };
    let listener = LineReceiver {
        lines: receiver,
        waiting_bytes,
    };
    (sender, listener)
}

impl LineSender {
    /// Adds a line, unless the queue is full.
    pub(crate) fn send(&self, line: &str) {
        let bytes = line.len();
        if self.waiting_bytes.fetch_add(bytes, Relaxed) + bytes > MOST_BYTES
            || self.lines.try_send(line.to_owned()).is_err()
        {
            self.waiting_bytes.fetch_sub(bytes, Relaxed);
        }
    }
}

impl LineReceiver {
    /// The next line, awaited until `deadline`.
    pub(crate) fn next(&self, deadline: Instant) -> Result<String, LineError> {
        let left = deadline.saturating_duration_since(Instant::now());
        let line = self.lines.recv_timeout(left).map_err(|error| match error {
            RecvTimeoutError::Timeout => LineError::Late,
            RecvTimeoutError::Disconnected => LineError::Ended,
        })?;
        self.waiting_bytes.fetch_sub(line.len(), Relaxed);
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unread_lines_use_bounded_memory() {
        let (sender, listener) = queue();
        let line = "x".repeat(1 << 20);
        for _ in 0..50 {
            sender.send(&line);
        }
        for _ in 0..4 {
            assert_eq!(listener.next(Instant::now()).unwrap().len(), 1 << 20);
        }
        assert_eq!(listener.next(Instant::now()), Err(LineError::Late));
        // Reading makes room.
        sender.send("again");
        drop(sender);
        assert_eq!(listener.next(Instant::now()).as_deref(), Ok("again"));
        assert_eq!(listener.next(Instant::now()), Err(LineError::Ended));
    }

    #[test]
    fn short_lines_are_few_too() {
        let (sender, listener) = queue();
        for _ in 0..2 * MOST_LINES {
            sender.send("");
        }
        drop(sender);
        let lines = std::iter::from_fn(|| listener.next(Instant::now()).ok());
        assert_eq!(lines.count(), MOST_LINES);
    }
}
