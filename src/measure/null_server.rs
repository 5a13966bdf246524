//! A server that does least, to see what clients can do when nothing else holds them up.

use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::process::{Heard, Process, Whom};
use super::queue::NoLine;
use super::server::listening_address;

/// How long it may take to listen, and to stop.
const LIMIT: Duration = Duration::from_secs(5);

/// The server, as long as this lives.
pub struct NullServer {
    process: Process,
    address: SocketAddr,
}

impl NullServer {
    /// Starts a model of this program's own on these CPUs.
    ///
    /// # Errors
    /// When it does not come to listen.
    pub fn start(model: &str, options: &[String], cpus: &[u32]) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find my own program")?;
        let mut command = Command::new(program);
        command.args(["serve", model, "--listen", "127.0.0.1:0"]);
        command.args(options);
        let process = Process::start("the server to calibrate with", command, cpus, Heard::Output)?;
        let deadline = Instant::now() + LIMIT;
        loop {
            match process.line(deadline) {
                Ok(line) => {
                    if let Some(address) = listening_address(&line) {
                        return Ok(Self { process, address });
                    }
                }
                Err(NoLine::Late) => bail!("the server to calibrate with does not listen"),
                Err(NoLine::Ended) => {
                    let output = process.output();
                    bail!("the server to calibrate with ended: {}", output.trim());
                }
            }
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        self.process.stop(LIMIT, Whom::Leader);
    }
}
