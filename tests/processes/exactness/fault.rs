//! Faults of a load while it runs.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use fastrand::Rng;
use rustix::process::{Pid, Signal, kill_process};

use super::draw::Drawn;
use super::stranger::{self, Strange};
use crate::support::program::{THRONG, words};
use crate::support::server::Server;

/// One kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// None.
    None,
    /// Other clients at the same time: slow ones with small buffers, and ones that send garbage, break off or vanish.
    Strangers,
    /// Another load at the same time, which is killed.
    OtherLoadKilled,
    /// SIGINT for the load.
    Interrupted,
    /// SIGTERM for the server, which is loaded.
    ServerStopped,
    /// SIGKILL for a child of the server.
    ChildKilled,
    /// The server is stopped for longer than clients wait.
    ServerHangs,
    /// The server closes clients that pause too long.
    IdleTimeout,
    /// The server turns away all but a few.
    FewMayBe,
}

/// Each kind, repeated by its weight.
const FAULTS: &[(Fault, u32)] = &[
    (Fault::None, 6),
    (Fault::Strangers, 4),
    (Fault::OtherLoadKilled, 2),
    (Fault::Interrupted, 2),
    (Fault::ServerStopped, 2),
    (Fault::ServerHangs, 1),
    (Fault::IdleTimeout, 1),
    (Fault::FewMayBe, 1),
];

impl Fault {
    pub(crate) fn draw(random: &mut Rng, model: &str) -> Self {
        if matches!(model, "fork" | "prefork") && random.u8(..5) == 0 {
            return Self::ChildKilled;
        }
        let all: u32 = FAULTS.iter().map(|fault| fault.1).sum();
        let mut place = random.u32(..all);
        for &(fault, share) in FAULTS {
            if place < share {
                return fault;
            }
            place -= share;
        }
        Self::None
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "nothing",
            Self::Strangers => "strangers",
            Self::OtherLoadKilled => "another load killed",
            Self::Interrupted => "load interrupted",
            Self::ServerStopped => "server stopped",
            Self::ChildKilled => "child of the server killed",
            Self::ServerHangs => "server stands still",
            Self::IdleTimeout => "idle timeout",
            Self::FewMayBe => "clients turned away",
        }
    }

    /// Whether it may cut connections of the judged load; not those of other clients.
    pub(crate) fn cuts(self) -> bool {
        !matches!(self, Self::None | Self::Strangers | Self::OtherLoadKilled)
    }

    /// Whether all clients have to be served at once: who waits outside would count as cut.
    pub(crate) fn needs_all_inside(self) -> bool {
        matches!(
            self,
            Self::Interrupted | Self::ServerHangs | Self::IdleTimeout
        )
    }

    pub(crate) fn stops_the_server(self) -> bool {
        self == Self::ServerStopped
    }

    /// Options of the server for it.
    pub(crate) fn of_server(self) -> &'static str {
        match self {
            Self::IdleTimeout => "--idle-timeout 20ms",
            Self::FewMayBe => "--max-clients 5",
            Self::ServerStopped => "--drain 300ms",
            _ => "",
        }
    }

    /// Options of the load for it. Its job may never be done.
    pub(crate) fn of_load(self) -> String {
        match self {
            Self::None
            | Self::Strangers
            | Self::OtherLoadKilled
            | Self::Interrupted
            | Self::IdleTimeout => "",
            Self::ServerStopped => "--first-reply-timeout 300ms --connect-timeout 1s",
            Self::ChildKilled => "--reconnect",
            Self::ServerHangs => "--request-timeout 40ms --first-reply-timeout 1s --reconnect",
            Self::FewMayBe => "--reconnect --first-reply-timeout 1s",
        }
        .to_owned()
    }

    /// Applies it during the load; returns the other clients.
    pub(crate) fn strike(
        self,
        drawn: &Drawn,
        server: &Server,
        load: &Child,
    ) -> anyhow::Result<Vec<Strange>> {
        let mut random = Rng::with_seed(drawn.seed);
        let somewhen = Duration::from_micros(random.u64(..120_000));
        match self {
            Self::None | Self::IdleTimeout | Self::FewMayBe => {}
            Self::Strangers => return stranger::come(drawn, server.address(), &mut random),
            Self::OtherLoadKilled => {
                let mut other = Command::new(THRONG)
                    .args(words(
                        "load {} --source 127.22.0.0/16 -d 20s",
                        &[&server.address().to_string()],
                    ))
                    .args(["-c", "7", "--eager", "--protocol", drawn.protocol])
                    .args(drawn.size_of_requests())
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()?;
                std::thread::sleep(somewhen);
                other.kill()?;
                other.wait()?;
            }
            Self::Interrupted => {
                until_it_handles_signals(load)?;
                std::thread::sleep(somewhen);
                // It may have ended already, and is not reaped yet.
                kill_process(Pid::from_child(load), Signal::INT).context("SIGINT")?;
            }
            Self::ServerStopped => {
                std::thread::sleep(somewhen);
                server.terminate()?;
            }
            Self::ServerHangs => {
                std::thread::sleep(somewhen);
                kill_process(server.pid(), Signal::STOP)?;
                std::thread::sleep(Duration::from_millis(60));
                kill_process(server.pid(), Signal::CONT)?;
            }
            Self::ChildKilled => {
                for _ in 0..=random.u32(..3) {
                    std::thread::sleep(somewhen / 3);
                    let pid = server.pid();
                    let children: Vec<i32> =
                        fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?
                            .split_whitespace()
                            .filter_map(|child| child.parse().ok())
                            .collect();
                    if let Some(child) = random.choice(children).and_then(Pid::from_raw) {
                        // Another one cannot have its number yet: the server may have reaped it, no more.
                        let _ = kill_process(child, Signal::KILL);
                    }
                }
            }
        }
        Ok(Vec::new())
    }
}

/// Waits until SIGINT ends a load in order; earlier, there is nothing to keep.
fn until_it_handles_signals(load: &Child) -> anyhow::Result<()> {
    const INT: u64 = 1 << (2 - 1);
    let deadline = Instant::now() + Duration::from_mins(2);
    loop {
        let status = fs::read_to_string(format!("/proc/{}/status", load.id()))?;
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.unwrap_or("0").trim(), 16)?;
        if caught & INT != 0 || status.contains("(zombie)") {
            return Ok(());
        }
        ensure!(
            Instant::now() < deadline,
            "the load does not handle signals"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}
