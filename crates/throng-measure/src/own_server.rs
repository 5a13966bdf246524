//! A server of this program by itself, outside any trial: to see what clients can do when nothing else holds
//! them up, or what it does for one of them.

use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::announced::listening_address;
use super::process::{Captured, Process, Signalled};
use super::queue::NoLine;
use throng_sys::signal::Stop;

/// How long it may take to listen, on a machine that is busy with much else.
const LIMIT: Duration = Duration::from_secs(20);
/// How long it may take to stop, without clients.
const GRACE: Duration = Duration::from_secs(1);
/// How long it is waited for before the wish to stop is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// The server, as long as this lives.
pub struct OwnServer {
    process: Process,
    address: SocketAddr,
}

impl OwnServer {
    /// Starts a model of this program's own on these CPUs.
    ///
    /// # Errors
    /// When it does not come to listen.
    pub fn start(
        what: &str,
        model: &str,
        options: &[String],
        cpus: &[u32],
        stop: Stop,
    ) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find this program's file")?;
        let mut command = Command::new(program);
        command.args(["serve", model, "--listen", "127.0.0.1:0"]);
        command.args(options);
        Self::start_command(what, command, cpus, stop)
    }

    /// Starts a command that announces its address as our servers do.
    pub(super) fn start_command(
        what: &str,
        command: Command,
        cpus: &[u32],
        stop: Stop,
    ) -> anyhow::Result<Self> {
        let process = Process::start(what, command, cpus, Captured::Output)?;
        let deadline = Instant::now() + LIMIT;
        loop {
            match process.line(deadline.min(Instant::now() + LOOK)) {
                Ok(line) => {
                    let address = listening_address(&line);
                    if let Some(address) = address.and_then(|address| address.tcp()) {
                        return Ok(Self { process, address });
                    }
                }
                Err(NoLine::Late) => {}
                Err(NoLine::Ended) => {
                    let output = process.output();
                    bail!("{what} ended: {}", output.trim());
                }
            }
            if stop.requested() {
                bail!("interrupted");
            }
            if Instant::now() >= deadline {
                bail!("{what} does not listen");
            }
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of its first process.
    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        self.process.stop(GRACE, Signalled::Leader);
    }
}
