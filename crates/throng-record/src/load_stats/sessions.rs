//! Statistics of sessions, which are the steps of a flow.

use serde::{Deserialize, Serialize};

use super::{LoadStats, Times};
use crate::{SessionStep, Sessions, measurable};

/// Sessions in the window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionStats {
    /// Sessions whose steps were all as they had to be.
    pub completed: u64,
    /// Sessions that ended at a step that failed, or with their connection.
    pub failed: u64,
    /// From when a complete session was due, or began, until its last reply.
    pub time: Times,
    /// Their steps, in order.
    pub steps: Vec<StepStats>,
}

/// One step of all sessions in the window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StepStats {
    pub name: String,
    /// From sending the request to its complete reply.
    pub times: Times,
    /// Replies that were not as they had to be.
    pub failed: u64,
    /// Of these, replies that took longer than allowed.
    pub slow: u64,
}

impl SessionStats {
    /// None yet, of these steps.
    pub fn of_steps<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let step = |name: &str| StepStats {
            name: name.to_owned(),
            times: Times::with_room(),
            ..StepStats::default()
        };
        Self {
            time: Times::with_room(),
            steps: names.map(step).collect(),
            ..Self::default()
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.completed = self.completed.saturating_add(other.completed);
        self.failed = self.failed.saturating_add(other.failed);
        self.time.merge(&other.time);
        if self.steps.is_empty() {
            self.steps.clone_from(&other.steps);
            return;
        }
        for (mine, theirs) in self.steps.iter_mut().zip(&other.steps) {
            mine.times.merge(&theirs.times);
            mine.failed = mine.failed.saturating_add(theirs.failed);
            mine.slow = mine.slow.saturating_add(theirs.slow);
        }
    }

    pub(super) fn figures(&self, load: &LoadStats) -> Sessions {
        let window_s = measurable(load.span.duration_s());
        Sessions {
            completed: self.completed,
            failed: self.failed,
            per_s: window_s.map(|window_s| self.completed as f64 / window_s),
            time: self.time.latency(),
            steps: self
                .steps
                .iter()
                .map(|step| SessionStep {
                    name: step.name.clone(),
                    replies: step.times.count(),
                    failed: step.failed,
                    slow: step.slow,
                    per_s: window_s.map(|window_s| step.times.count() as f64 / window_s),
                    service_time: step.times.latency(),
                })
                .collect(),
        }
    }
}
