//! A built-in server outside any trial: to measure the clients' ceiling, or to trace a single client.

use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::announced::listening_address;
use crate::processes::ending::SignalTarget;
use crate::processes::process::{OutputCapture, Process};
use crate::processes::queue::LineError;
use throng_sys::signal::Stop;

/// Time limit to start listening, on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);
/// Time limit to stop, without clients.
const GRACE: Duration = Duration::from_secs(1);
/// Interval of checks for a stop while waiting for it.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The server, while it runs.
pub struct OwnServer {
    process: Process,
    address: SocketAddr,
}

impl OwnServer {
    /// Starts a model on these CPUs.
    ///
    /// # Errors
    /// When it does not start listening.
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

    /// Starts a command that announces its address like built-in servers.
    pub(crate) fn start_command(
        what: &str,
        command: Command,
        cpus: &[u32],
        stop: Stop,
    ) -> anyhow::Result<Self> {
        let process = Process::start(what, command, cpus, OutputCapture::Output)?;
        let deadline = Instant::now() + LIMIT;
        loop {
            match process.line(deadline.min(Instant::now() + POLL_INTERVAL)) {
                Ok(line) => {
                    let address = listening_address(&line);
                    if let Some(address) = address.and_then(|address| address.tcp()) {
                        return Ok(Self { process, address });
                    }
                }
                Err(LineError::Late) => {}
                Err(LineError::Ended) => {
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

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops it (SIGSTOP), or lets it continue.
    ///
    /// # Errors
    /// When it has ended.
    pub fn freeze(&self, freeze: bool) -> std::io::Result<()> {
        Ok(self.process.freeze(freeze)?)
    }

    /// The ID of its first process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        self.process.stop(GRACE, SignalTarget::Leader);
    }
}
