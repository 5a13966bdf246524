//! A client host: it runs its part of a load, with its own probes, and reports.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::super::probes::{self, ClientPresence, Panel, Subject, Target, Tree};
use super::{HostAssignment, HostResult, Report};
use crate::cluster::follow::Follower;
use crate::processes::process::{Process, StopTarget};
use crate::processes::queue::LineError;
use throng_record::spec::Assignment;
use throng_record::{LoadEvent, LoadStats};

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
    rows: Option<Rows>,
}

impl Agent {
    /// Starts the load of an order as a process of `program`, which is throng or has its `load` subcommand.
    ///
    /// # Errors
    /// When it cannot be started. Later failures are reports.
    pub fn start(order: &HostAssignment, program: &Path) -> anyhow::Result<Self> {
        let kinds = probes::choose(&order.probes)?;
        let rows = order.rows.then(Rows::new);
        let assignment = Assignment {
            clients_csv: rows.as_ref().map(|rows| rows.path.clone()),
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
        self.load.stop(limit, StopTarget::Leader);
    }

    fn finish(&mut self, seen: LoadStats) -> Report {
        self.load.stop(STOP_LIMIT, StopTarget::Leader);
        let side = self
            .panels
            .pop()
            .and_then(|panel| panel.finish().0.if_any());
        let rows = self.rows.as_ref().map(Rows::read).transpose();
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

/// The file into which a load writes its clients' rows; removed when dropped.
struct Rows {
    path: PathBuf,
}

impl Rows {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("throng-clients-{}-{number}.csv", std::process::id());
        Self {
            path: std::env::temp_dir().join(name),
        }
    }

    fn read(&self) -> anyhow::Result<String> {
        std::fs::read_to_string(&self.path)
            .with_context(|| format!("cannot read {}", self.path.display()))
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        // The file exists only if the load reached its end.
        let _ = std::fs::remove_file(&self.path);
    }
}
