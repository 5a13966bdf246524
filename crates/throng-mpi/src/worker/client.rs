//! A client host, which carries out the leading rank's orders.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use throng::load::now;
use throng::measure::cluster::{self, Agent, Report};
use throng::record::LoadEvent;

use super::line::{Line, Place, WorkerMessage};
use super::message::{FromHost, ToHost};
use crate::frame::ControlMessage;

/// Poll intervals of the socket: with no load, with a running load, and with a load that waits to continue. The
/// message to continue arrives earlier than needed by more than the last of these.
const RESTING: Duration = Duration::from_millis(200);
const RUNNING: Duration = Duration::from_millis(50);
const WAITING: Duration = Duration::from_millis(2);
/// A start time further ahead than this is an error.
const FARTHEST: Duration = Duration::from_secs(5);
/// Time limit for a load to stop when the run is over.
const STOP_LIMIT: Duration = Duration::from_secs(2);

struct Client {
    line: Line,
    program: PathBuf,
    work: Option<RunningLoad>,
}

/// A running load.
struct RunningLoad {
    number: u32,
    agent: Agent,
    waits: bool,
}

/// Carries out orders until it is dismissed.
pub(super) fn run(place: Place, line: Line) -> anyhow::Result<ExitCode> {
    let mut client = Client {
        line,
        program: std::env::current_exe().context("cannot find this program")?,
        work: None,
    };
    // Only the leading rank knows how many ranks share this machine.
    client.send(&FromHost::Here {
        host: cluster::this_host(place.rank as u32, 1),
        usable_cpus: throng::measure::host::usable_cpus(),
    })?;
    loop {
        let pause = match &client.work {
            None => RESTING,
            Some(_) => Duration::ZERO,
        };
        match client.line.next(Instant::now() + pause) {
            Some(WorkerMessage::Worker { body, .. }) => client.obey(&body)?,
            Some(WorkerMessage::Control(ControlMessage::Exit) | WorkerMessage::Gone(_)) => {
                if let Some(work) = &mut client.work {
                    work.agent.stop(STOP_LIMIT);
                }
                return Ok(ExitCode::SUCCESS);
            }
            Some(WorkerMessage::Control(_)) => {}
            None => client.work()?,
        }
    }
}

impl Client {
    fn send(&self, message: &FromHost) -> anyhow::Result<()> {
        self.line.send(0, serde_json::to_vec(message)?)
    }

    fn obey(&mut self, body: &[u8]) -> anyhow::Result<()> {
        match serde_json::from_slice(body).context("an assignment is invalid")? {
            ToHost::HostAssignment { number, order } => {
                // Dropping the agent ends the load of an earlier order.
                self.work = None;
                match Agent::start(&order, &self.program) {
                    Ok(agent) => {
                        self.work = Some(RunningLoad {
                            number,
                            agent,
                            waits: false,
                        });
                    }
                    Err(error) => self.send(&FromHost::Report {
                        number,
                        report: Report::Failed {
                            reason: format!("{error:#}"),
                            output: String::new(),
                        },
                    })?,
                }
            }
            ToHost::GoOn { number, at_ns } => {
                if let Some(work) = self.work.as_mut().filter(|work| work.number == number) {
                    let left = Duration::from_nanos(at_ns.saturating_sub(now()));
                    std::thread::sleep(left.min(FARTHEST));
                    work.agent.proceed();
                    work.waits = false;
                }
            }
            ToHost::Halt { number, limit_ms } => {
                if let Some(mut work) = self.work.take_if(|work| work.number == number) {
                    work.agent.stop(Duration::from_millis(limit_ms));
                }
                self.send(&FromHost::Halted { number })?;
            }
        }
        Ok(())
    }

    /// Polls the load.
    fn work(&mut self) -> anyhow::Result<()> {
        let Some(work) = &mut self.work else {
            return Ok(());
        };
        let pause = if work.waits { WAITING } else { RUNNING };
        let Some(report) = work.agent.next(Instant::now() + pause) else {
            if work.agent.is_over() {
                self.work = None;
            }
            return Ok(());
        };
        if let Report::Event(LoadEvent::Phase { waits, .. }) = report {
            work.waits |= waits;
        }
        let number = work.number;
        self.send(&FromHost::Report { number, report })
    }
}
