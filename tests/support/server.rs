//! A server under test: its own process on a port chosen by the kernel, killed when dropped.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::program::THRONG;

/// Time limit for a server to listen, on a machine that is busy with other tests.
const START_LIMIT: Duration = Duration::from_mins(2);
/// Time limit for it to stop, on a machine that is busy with other tests.
const STOP_LIMIT: Duration = Duration::from_mins(2);

/// A running `throng serve`.
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    lines: Receiver<String>,
}

impl Server {
    /// Starts `throng serve` with these arguments and waits until it listens.
    pub(crate) fn start(arguments: &[&str]) -> anyhow::Result<Self> {
        let mut command = Command::new(THRONG);
        command.arg("serve").args(arguments);
        Self::spawn(command)
    }

    /// Runs a command that ends with `throng serve` and waits until it listens.
    pub(crate) fn spawn(command: Command) -> anyhow::Result<Self> {
        Self::spawn_on("127.0.0.1:0", command)
    }

    /// Like [`Server::spawn`], on this address.
    pub(crate) fn spawn_on(address: &str, mut command: Command) -> anyhow::Result<Self> {
        command.args(["--listen", address, "--json"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start the server")?;
        let stdout = child.stdout.take().context("standard output is piped")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut server = Self {
            child,
            address: SocketAddr::from(([0, 0, 0, 0], 0)),
            lines,
        };
        let line = server
            .lines
            .recv_timeout(START_LIMIT)
            .context("it does not listen")?;
        let address = line
            .strip_prefix("listening on ")
            .and_then(|line| line.split(' ').next())
            .with_context(|| format!("its first line is `{line}`"))?;
        server.address = address
            .parse()
            .with_context(|| format!("in the line `{line}`"))?;
        Ok(server)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Stops it.
    pub(crate) fn terminate(&self) -> anyhow::Result<()> {
        kill_process(self.pid(), Signal::TERM).context("cannot send SIGTERM")
    }

    /// Waits until it has ended after [`Server::terminate`]; returns its counts.
    pub(crate) fn counts(mut self) -> anyhow::Result<Value> {
        let deadline = Instant::now() + STOP_LIMIT;
        let mut last = String::new();
        // Its output ends when it and all its children have ended.
        loop {
            match self
                .lines
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(line) => last = line,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    bail!(
                        "it, or a child of it, lives {} s after SIGTERM",
                        STOP_LIMIT.as_secs()
                    )
                }
            }
        }
        let status = self.child.wait().context("cannot wait for it")?;
        ensure!(status.success(), "it ended with {status}");
        serde_json::from_str(&last).with_context(|| format!("its last line is `{last}`"))
    }

    /// [`Server::terminate`] and [`Server::counts`].
    pub(crate) fn stop(self) -> anyhow::Result<Value> {
        self.terminate()?;
        self.counts()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The kernel sends SIGTERM to children of the server when it is gone. After `counts` it is already reaped, and
        // this does nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
