//! The observer of a run, and what it sees.

use std::time::Duration;

use super::live_snapshot::{LiveSnapshot, TimeEstimate};
use throng_record::{Purpose, Trial};
use throng_stats::paired::LogRatio;
use throng_sys::signal::Stop;

/// A trial that begins.
pub struct Started<'a> {
    /// Its place, from 0.
    pub index: usize,
    /// The number of trials.
    pub total: usize,
    /// What it takes, and what the others do, where it is known which these are.
    pub estimate: Option<TimeEstimate>,
    /// Name of the server.
    pub server: &'a str,
    /// Number of clients.
    pub clients: u32,
    /// Requests per second, of a trial that tries a rate.
    pub rate_per_s: Option<u64>,
    /// Repetition, from 0.
    pub round: u32,
    /// What it is for.
    pub purpose: Purpose,
    /// Below the maximum: at which part of the rate reached before.
    pub percent: Option<u32>,
}

/// Displays the progress of a run.
pub trait Observer {
    /// A trial begins.
    fn begins(&mut self, started: &Started<'_>);
    /// How often it wants live values of the load; none: never.
    fn wants_figures_every(&self) -> Option<Duration> {
        None
    }
    /// Called many times a second while a load runs, between two samples, so it must be quick.
    fn sees(&mut self, _: &LiveSnapshot) {}
    /// Called about once a second while servers are measured side by side.
    fn sees_ratios(&mut self, _: &RatiosSoFar) {}
    /// A trial has ended and is on disk.
    fn ended(&mut self, trial: &Trial);
}

/// How servers that are measured side by side compare so far.
#[derive(Debug, Clone, Default)]
pub struct RatiosSoFar {
    /// Rounds so far.
    pub rounds: u32,
    /// Name of the server that the others are compared with.
    pub reference: String,
    /// Each server, that one first.
    pub servers: Vec<ServerSoFar>,
    /// How much of the time or of the rounds is over, from 0 to 1.
    pub share_done: f64,
}

/// One of them: medians over its last slices.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerSoFar {
    pub name: String,
    pub requests_per_s: Option<f64>,
    pub p50_us: Option<f64>,
    pub p99_us: Option<f64>,
    pub cpu_us_per_request: Option<f64>,
    /// Its requests per second relative to the reference, over all rounds, if there are enough.
    pub ratio: Option<LogRatio>,
}

/// The observer of a trial, and the signal that may stop it.
pub(super) struct Audience<'a> {
    pub(super) observer: &'a mut dyn Observer,
    pub(super) stop: Stop,
}
