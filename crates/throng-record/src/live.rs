//! What a run says of the trial that is running, for `throng view`: `live.jsonl` in the record's directory. It is no
//! measurement and no part of the record: begun anew with each trial, removed when the run ends, and never synced.

use std::io::Read as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::open_if_there;

/// Name of the file.
pub const LIVE: &str = "live.jsonl";

/// As much of it is read.
const MOST_BYTES: u64 = 1 << 20;

/// The trial that is running; the first line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveTrial {
    /// Its number, from 1.
    pub trial: u32,
    /// How many there are; absent where a search decides it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u32>,
    /// Name of the server.
    pub server: String,
    /// Number of clients.
    pub clients: u32,
    /// Which of these trials it is: "round 2".
    pub occasion: String,
}

/// It at a moment; every further line. What is not known, or not yet, is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LivePoint {
    /// Seconds since the trial began.
    pub at_s: f64,
    /// What the load does.
    pub phase: String,
    /// Clients connected now.
    pub connected: u64,
    /// Clients that had an answer.
    pub served: u64,
    /// Clients that ended with an error.
    pub failed: u64,
    /// Checked replies per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replies_per_s: Option<f64>,
    /// 99th percentile of the latency of replies that count, so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_us: Option<f64>,
    /// CPU time of the server, 100 for one CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_cpu_percent: Option<f64>,
    /// The same of the clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_cpu_percent: Option<f64>,
    /// How servers that are measured side by side compare so far, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratios: Option<String>,
}

/// The trial that is running in the record at `directory`, with its points in order of time; none where nothing says so.
/// What cannot be read is left out: the run may be writing it.
pub fn read_live(directory: &Path) -> Option<(LiveTrial, Vec<LivePoint>)> {
    let file = open_if_there(&directory.join(LIVE)).ok()??;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines();
    let trial = serde_json::from_str(lines.next()?).ok()?;
    let points = lines.filter_map(|line| serde_json::from_str(line).ok());
    Some((trial, points.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_being_written_is_left_out() {
        let record = tempfile::tempdir().unwrap();
        assert_eq!(read_live(record.path()), None);
        let trial = LiveTrial {
            trial: 3,
            server: "epoll".to_owned(),
            ..LiveTrial::default()
        };
        let point = LivePoint {
            at_s: 1.5,
            replies_per_s: Some(2e5),
            ..LivePoint::default()
        };
        let (first, second) = (
            serde_json::to_string(&trial).unwrap(),
            serde_json::to_string(&point).unwrap(),
        );
        let text = format!("{first}\n{second}\n{{\"at_s\": 2.");
        std::fs::write(record.path().join(LIVE), text).unwrap();
        assert_eq!(read_live(record.path()), Some((trial, vec![point])));
    }
}
