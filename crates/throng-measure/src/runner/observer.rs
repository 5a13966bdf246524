//! The observer of a run, and its events.

use std::time::Duration;

use crate::cluster::live_snapshot::{LiveSnapshot, TimeEstimate};
use throng_record::{Purpose, SideBySide, Trial};
use throng_sys::signal::Stop;

/// The start of a trial.
pub struct TrialStart<'a> {
    /// Its index, from 0.
    pub index: usize,
    /// The number of trials.
    pub total: usize,
    /// Estimated duration of this and the remaining trials.
    pub estimate: Option<TimeEstimate>,
    /// Name of the server.
    pub server: &'a str,
    /// Number of clients.
    pub clients: u32,
    /// Requests per second, if the trial tries a rate.
    pub rate_per_s: Option<u64>,
    /// Repetition, from 0.
    pub round: u32,
    /// Its purpose.
    pub purpose: Purpose,
    /// Below the maximum: the percentage of the rate reached before.
    pub percent: Option<u32>,
}

/// Displays the progress of a run.
pub trait Observer {
    /// A trial begins.
    fn on_begin(&mut self, started: &TrialStart<'_>);
    /// The interval between live values of the load; `None` for no live values.
    fn live_interval(&self) -> Option<Duration> {
        None
    }
    /// Called many times per second while a load runs, between two samples, so it must be quick.
    fn on_snapshot(&mut self, _: &LiveSnapshot) {}
    /// Called about once per second while servers are measured side by side or warm up for it.
    fn on_side_by_side(&mut self, _: &SideBySide) {}
    /// A trial has ended and is on disk. Not called if a server did not start and this ends the run: the error that
    /// follows describes it.
    fn on_end(&mut self, trial: &Trial);
}

/// The observer of a trial, and the signal that may stop it.
pub(crate) struct Audience<'a> {
    pub(crate) observer: &'a mut dyn Observer,
    pub(crate) stop: Stop,
}
