//! A client that checks every byte, at any pace, and can be as awkward as real ones are.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket2::{Domain, Socket, Type};
use throng::measure::network::sock_diag::State;
use throng::protocol::{Protocol, Requester, Settings};

/// Time limit of everything that a client waits for.
pub(crate) const LIMIT: Duration = Duration::from_mins(2);

/// Most bytes that a client writes and reads at once.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) write_bytes: usize,
    pub(crate) read_bytes: usize,
}

/// As fast as it goes.
pub(crate) const FULL: Pace = Pace {
    write_bytes: usize::MAX,
    read_bytes: 64 * 1024,
};

/// One client, over as many connections as its protocol needs.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each one is a fact of its own"
)]
pub(crate) struct Client {
    address: SocketAddr,
    buffer_bytes: Option<usize>,
    /// Whether the server closes after each reply.
    closes: bool,
    /// Whether a connection begins with a handshake.
    has_handshake: bool,
    stream: TcpStream,
    requester: Box<dyn Requester>,
    /// Whether a request was sent on this connection.
    used: bool,
    unsent: Vec<u8>,
    /// Whether the last request was refused.
    was_refused: bool,
}

impl Client {
    /// Connects; `number` decides the content of its requests.
    pub(crate) fn connect(
        address: SocketAddr,
        protocol: &dyn Protocol,
        settings: Settings,
        number: u64,
    ) -> anyhow::Result<Self> {
        Self::with(address, None, protocol, settings, number)
    }

    /// As [`Client::connect`], with kernel buffers of about so many bytes.
    pub(crate) fn connect_with_buffers(
        address: SocketAddr,
        protocol: &dyn Protocol,
        settings: Settings,
        buffer_bytes: usize,
    ) -> anyhow::Result<Self> {
        Self::with(address, Some(buffer_bytes), protocol, settings, 0)
    }

    fn with(
        address: SocketAddr,
        buffer_bytes: Option<usize>,
        protocol: &dyn Protocol,
        settings: Settings,
        number: u64,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            address,
            buffer_bytes,
            closes: protocol.closes(),
            has_handshake: protocol.has_handshake(),
            stream: connect(address, buffer_bytes)?,
            requester: protocol.requester(&settings, number),
            used: false,
            unsent: Vec::new(),
            was_refused: false,
        })
    }

    /// Sends this many requests at once and receives all replies; one after the other, on a connection each, if the
    /// server closes after every reply.
    pub(crate) fn converse(&mut self, requests: u32, pace: Pace) -> anyhow::Result<()> {
        let at_once = if self.closes { 1 } else { requests };
        for _ in 0..requests / at_once {
            self.ask(at_once)?;
            self.receive(at_once, pace)?;
        }
        Ok(())
    }

    /// Prepares requests; they are sent with the next bytes.
    pub(crate) fn ask(&mut self, requests: u32) -> anyhow::Result<()> {
        if self.closes && self.used {
            self.stream = connect(self.address, self.buffer_bytes)?;
        }
        let is_new = !std::mem::replace(&mut self.used, true);
        for _ in 0..requests {
            self.requester.request(&mut self.unsent);
        }
        if is_new && self.has_handshake && requests > 0 {
            self.send()?;
            let deadline = Instant::now() + LIMIT;
            while self.unsent.is_empty() {
                self.wait(PollFlags::IN, deadline)
                    .context("the handshake")?;
                self.read(FULL.read_bytes)?;
            }
        }
        Ok(())
    }

    /// Sends one request, but at most this many bytes of it.
    pub(crate) fn begin_to_send(&mut self, bytes: usize) -> anyhow::Result<()> {
        self.ask(1)?;
        self.unsent.truncate(bytes);
        self.send()
    }

    /// Whether the last request was refused.
    pub(crate) fn was_refused(&self) -> bool {
        self.was_refused
    }

    /// Sends all prepared requests, and reads nothing.
    pub(crate) fn send(&mut self) -> anyhow::Result<()> {
        self.receive(0, FULL)
    }

    /// Bytes prepared and not sent yet.
    pub(crate) fn unsent_bytes(&self) -> usize {
        self.unsent.len()
    }

    /// Sends all prepared requests, and receives this many replies meanwhile and afterwards.
    pub(crate) fn receive(&mut self, replies: u32, pace: Pace) -> anyhow::Result<()> {
        let deadline = Instant::now() + LIMIT;
        let mut received = 0;
        while received < replies || !self.unsent.is_empty() {
            let mut wanted = PollFlags::empty();
            wanted.set(PollFlags::OUT, !self.unsent.is_empty());
            wanted.set(PollFlags::IN, received < replies);
            let ready = self.wait(wanted, deadline).with_context(|| {
                format!(
                    "{received} of {replies} replies, {} bytes unsent",
                    self.unsent.len()
                )
            })?;
            if wanted.contains(PollFlags::OUT) && ready.intersects(PollFlags::OUT) {
                self.write(pace.write_bytes)?;
            }
            if wanted.contains(PollFlags::IN) && ready.intersects(PollFlags::IN | PollFlags::HUP) {
                received += self.read(pace.read_bytes)?;
            }
            ensure!(!ready.contains(PollFlags::NVAL), "the socket is closed");
        }
        ensure!(
            received == replies,
            "{received} replies to {replies} requests"
        );
        if self.closes && replies > 0 {
            self.expect_close()?;
        }
        Ok(())
    }

    fn wait(&self, wanted: PollFlags, deadline: Instant) -> anyhow::Result<PollFlags> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).context("the time left is a timespec")?;
            let mut set = [PollFd::new(&self.stream, wanted)];
            match poll(&mut set, Some(&left)) {
                Ok(0) => bail!("nothing for {} s", LIMIT.as_secs()),
                Ok(_) => return Ok(set[0].revents()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("poll failed"),
            }
        }
    }

    fn write(&mut self, most: usize) -> anyhow::Result<()> {
        let piece = self.unsent.len().min(most);
        match self.stream.write(&self.unsent[..piece]) {
            Ok(count) => drop(self.unsent.drain(..count)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error).context("cannot send"),
        }
        Ok(())
    }

    fn read(&mut self, most: usize) -> anyhow::Result<u32> {
        let mut input = vec![0; most];
        match self.stream.read(&mut input) {
            Ok(0) => bail!("the server closed the connection before its replies were whole"),
            Ok(count) => {
                let replies = self.requester.receive(&input[..count])?;
                self.requester.append_pending(&mut self.unsent);
                self.was_refused = replies.refused > 0;
                if self.was_refused {
                    self.unsent.clear();
                }
                Ok(replies.completed)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error).context("cannot receive"),
        }
    }

    /// Sends these bytes, valid or not.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.unsent.extend_from_slice(bytes);
        self.send()
    }

    /// Expects exactly these bytes, and not the end.
    pub(crate) fn expect(&mut self, expected: &[u8]) -> anyhow::Result<()> {
        let deadline = Instant::now() + LIMIT;
        let mut received = Vec::new();
        while received.len() < expected.len() {
            self.wait(PollFlags::IN, deadline)
                .with_context(|| format!("received so far: {}", received.escape_ascii()))?;
            let mut input = vec![0; expected.len() - received.len()];
            match self.stream.read(&mut input) {
                Ok(0) => bail!("the end came after {}", received.escape_ascii()),
                Ok(count) => received.extend_from_slice(&input[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error).context("cannot receive"),
            }
        }
        ensure!(
            received == expected,
            "{} instead of {}",
            received.escape_ascii(),
            expected.escape_ascii()
        );
        Ok(())
    }

    /// Receives up to this many bytes of any content; returns their number.
    pub(crate) fn take(&mut self, most: usize) -> anyhow::Result<usize> {
        self.wait(PollFlags::IN, Instant::now() + LIMIT)?;
        let count = self
            .stream
            .read(&mut vec![0; most])
            .context("cannot receive")?;
        ensure!(count > 0, "the server closed the connection");
        Ok(count)
    }

    /// Sends no more.
    pub(crate) fn half_close(&mut self) -> anyhow::Result<()> {
        self.send()?;
        self.stream
            .shutdown(Shutdown::Write)
            .context("cannot half-close")
    }

    /// Whether anything comes within this time, or has come and was not read; the end of the stream too.
    pub(crate) fn has_news(&self, within: Duration) -> anyhow::Result<bool> {
        let within = Timespec::try_from(within).context("the time is a timespec")?;
        let mut set = [PollFd::new(&self.stream, PollFlags::IN)];
        Ok(poll(&mut set, Some(&within))? > 0)
    }

    /// Waits for the end of the stream, which is to come without another byte.
    pub(crate) fn expect_close(&mut self) -> anyhow::Result<()> {
        let deadline = Instant::now() + LIMIT;
        loop {
            self.wait(PollFlags::IN, deadline)
                .context("waiting for the end of the stream")?;
            match self.stream.read(&mut [0; 1]) {
                Ok(0) => return Ok(()),
                Ok(_) => bail!("a byte came after the last reply"),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error).context("no orderly end of the stream"),
            }
        }
    }

    /// Waits until all that was sent has reached the server's machine, and is acknowledged.
    pub(crate) fn wait_until_arrived(&self) -> anyhow::Result<()> {
        let own = self.stream.local_addr()?.port();
        let server = self.stream.peer_addr()?.port();
        crate::process::eventually("what was sent arrives", || {
            let sockets = crate::support::sockets::between(own, server)?;
            Ok(sockets.iter().all(|socket| socket.send_queue == 0))
        })
    }

    /// Waits until the server has accepted this connection and read some of the `bytes` that were sent.
    pub(crate) fn wait_until_read(&self, bytes: usize) -> anyhow::Result<()> {
        let own = self.stream.local_addr()?.port();
        let server = self.stream.peer_addr()?.port();
        crate::process::eventually("the server reads", || {
            let sockets = crate::support::sockets::between(server, own)?;
            // Once the server has closed the connection, there is nothing to wait for.
            Ok(sockets.iter().all(|socket| {
                let is_open = socket.state == State::Established as u8;
                !is_open || (socket.is_held && (socket.receive_queue as usize) < bytes)
            }))
        })
    }

    /// Sends up to `bytes` of noise and never reads, until the server takes no more for `pause` or ends the connection;
    /// returns how much it took.
    pub(crate) fn flood(&mut self, bytes: usize, pause: Duration) -> anyhow::Result<usize> {
        let noise: Vec<u8> = (0..256 * 1024_u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        self.stream.set_nonblocking(false)?;
        self.stream.set_write_timeout(Some(pause))?;
        let mut sent = 0;
        while sent < bytes {
            match self.stream.write(&noise) {
                Ok(count) => sent += count,
                Err(_) => break,
            }
        }
        Ok(sent)
    }

    /// Waits for a byte to arrive and vanishes with it unread: the server gets a reset.
    pub(crate) fn vanish(self) -> anyhow::Result<()> {
        self.wait(PollFlags::IN, Instant::now() + LIMIT)
            .context("waiting to vanish")?;
        self.vanish_at_once()
    }

    /// Vanishes: the server gets a reset.
    pub(crate) fn vanish_at_once(self) -> anyhow::Result<()> {
        socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO))?;
        Ok(())
    }
}

fn connect(address: SocketAddr, buffer_bytes: Option<usize>) -> anyhow::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    if let Some(bytes) = buffer_bytes {
        socket.set_recv_buffer_size(bytes)?;
        socket.set_send_buffer_size(bytes)?;
    }
    socket
        .connect_timeout(&address.into(), LIMIT)
        .context("cannot connect")?;
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}
