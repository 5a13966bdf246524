//! A client host: it runs its part of a load, with its own probes, and reports.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::super::probes::{self, ClientPresence, Panel, Subject, Target, Tree};
use super::{HostAssignment, HostResult, Report};
use crate::cluster::follow::Follower;
use crate::private_directory::PrivateDirectory;
use crate::processes::ending::SignalTarget;
use crate::processes::process::Process;
use crate::processes::queue::LineError;
use throng_record::{LoadEvent, LoadStats};
use throng_spec::Assignment;

/// Time limit for a load to stop after its result.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// A client host's part of one load, while it runs.
///
/// The launcher calls [`next`](Agent::next) repeatedly, carries each report to the leading host and calls
/// [`proceed`](Agent::proceed) when that host says so. Nothing is sampled between two calls, so they should follow each
/// other closely, each with a near deadline. Dropping it ends the load.
pub struct Agent {
    load: Process,
    /// The clients' panel; empty when the load is over.
    panels: Vec<Panel>,
    follower: Follower,
    /// The directory into whose file the load writes its clients' rows.
    rows: Option<PrivateDirectory>,
}

impl Agent {
    /// Starts the load of an order as a process of `program`, which is throng or has its `load` subcommand.
    ///
    /// # Errors
    /// When it cannot be started. Later failures are reports.
    pub fn start(order: &HostAssignment, program: &Path) -> anyhow::Result<Self> {
        let kinds = probes::choose(&order.probes)?;
        let rows = order
            .rows
            .then(PrivateDirectory::new)
            .transpose()
            .context("cannot create a directory for the clients' rows")?;
        let assignment = Assignment {
            clients_csv: rows.as_ref().map(rows_in),
            ..order.load.clone()
        };
        let purpose = order.purpose;
        let prepare = move || Panel::prepare(&kinds, Subject::Processes, purpose);
        let (load, mut panel) = Process::start_load(program, &assignment, &order.cpus, prepare)?;
        panel.attach(Target {
            tree: Tree::of(load.pid()),
            server: order.server.clone(),
            clients: order.clients,
            // Only probes of the network leave files.
            files: PathBuf::new(),
            presence: ClientPresence::of(&order.load.load),
        });
        Ok(Self {
            load,
            panels: vec![panel],
            follower: Follower::new(0),
            rows,
        })
    }

    /// The next report, awaited until `deadline`; `None` if there is none yet, or none will follow
    /// ([`is_over`](Agent::is_over)).
    pub fn next(&mut self, deadline: Instant) -> Option<Report> {
        while !self.is_over() {
            if Instant::now() >= self.follower.due() {
                self.follower.sample(&mut self.panels);
            }
            match self.load.line(deadline.min(self.follower.due())) {
                Ok(line) => {
                    let report = self.take(&line);
                    if report.is_some() {
                        return report;
                    }
                }
                Err(LineError::Late) if Instant::now() >= deadline => return None,
                Err(LineError::Late) => {}
                Err(LineError::Ended) => return Some(self.fail()),
            }
        }
        None
    }

    /// The report in a line of the load. Other lines stay in its output, for messages.
    fn take(&mut self, line: &str) -> Option<Report> {
        let event = LoadEvent::read(line)?;
        match event {
            LoadEvent::Phase {
                phase, snapshot, ..
            } => {
                self.follower.add_snapshot(snapshot, &mut self.panels);
                // The leading host may start the next phase as soon as it knows of this one.
                self.follower.enter(phase, &mut self.panels);
            }
            LoadEvent::Snapshot(snapshot) => {
                self.follower
                    .add_snapshot_if_new(snapshot, &mut self.panels);
            }
            // Loads of several hosts do not come in slices.
            LoadEvent::Slice(_) => return None,
            LoadEvent::Result(seen) => return Some(self.finish(*seen)),
        }
        Some(Report::Event(event))
    }

    /// Whether the last report was returned.
    pub fn is_over(&self) -> bool {
        self.panels.is_empty()
    }

    /// Starts the phase that the load waits for.
    pub fn proceed(&mut self) {
        self.load.proceed();
    }

    /// Ends the load if it is still running, within slightly more than `limit`. Nothing more is reported.
    pub fn stop(&mut self, limit: Duration) {
        self.panels.clear();
        self.load.stop(limit, SignalTarget::Leader);
    }

    fn finish(&mut self, seen: LoadStats) -> Report {
        self.load.stop(STOP_LIMIT, SignalTarget::Leader);
        let side = self
            .panels
            .pop()
            .and_then(|panel| panel.finish().0.if_any());
        let rows = self.rows.as_ref().map(read_rows).transpose();
        match rows {
            Ok(rows) => Report::Finished(Box::new(HostResult { seen, side, rows })),
            Err(error) => Report::Failed {
                reason: format!("{error:#}"),
                output: self.load.output(),
            },
        }
    }

    fn fail(&mut self) -> Report {
        self.panels.clear();
        Report::Failed {
            reason: self.load.ending(),
            output: self.load.output(),
        }
    }
}

fn rows_in(directory: &PrivateDirectory) -> PathBuf {
    directory.path().join("clients.csv")
}

fn read_rows(directory: &PrivateDirectory) -> anyhow::Result<String> {
    let path = rows_in(directory);
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}
