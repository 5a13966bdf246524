//! The number of clients at which connecting starts to fail.

use serde::Serialize;

use super::Row;
use crate::completion::CompletionRow;

/// The smallest number of clients with which some did not get in: `connect()` failed, or the handshake completed on
/// their side only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FirstConnectFailure {
    pub server: String,
    /// The number; `None` if all numbers tried went well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// The largest number below it, or the largest of all, with which every client connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub none_with: Option<u32>,
}

impl FirstConnectFailure {
    /// Finds the number for each server whose clients each had a job.
    pub(super) fn of_run(servers: &[String], rows: &[Row]) -> Vec<Self> {
        let of_server = |server: &String| {
            let jobs = |row: &Row| Some((row.clients, row.completion.clone()?));
            let tried: Vec<(u32, CompletionRow)> = rows
                .iter()
                .filter(|row| row.server == *server)
                .filter_map(jobs)
                .collect();
            let failing = tried.iter().position(|(_, completion)| {
                !completion.connect_failures.is_empty() || completion.never_accepted > 0
            });
            let well = &tried[..failing.unwrap_or(tried.len())];
            (!tried.is_empty()).then(|| Self {
                server: server.clone(),
                clients: failing.map(|place| tried[place].0),
                none_with: well.last().map(|(clients, _)| *clients),
            })
        };
        servers.iter().filter_map(of_server).collect()
    }
}
