//! The state of the running trial, for `throng view`: `live.jsonl` in the record's directory. It is not part of the
//! record: it is rewritten with each trial, removed when the run ends, and never synced.

use std::io::Read as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::open_if_there;

/// Name of the file.
pub const LIVE: &str = "live.jsonl";

/// Maximum bytes that are read.
const MOST_BYTES: u64 = 1 << 20;

/// The running trial; the first line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveTrial {
    /// Its number, from 1.
    pub trial: u32,
    /// The number of trials; absent if a search decides it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u32>,
    /// Name of the server.
    pub server: String,
    /// Number of clients.
    pub clients: u32,
    /// Which of these trials it is: "round 2".
    pub occasion: String,
}

/// The state at one time; every further line. Unknown values are absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LivePoint {
    /// Seconds since the trial began.
    pub at_s: f64,
    /// The phase of the load.
    pub phase: String,
    /// Connected clients.
    pub connected: u64,
    /// Clients that had a reply.
    pub served: u64,
    /// Clients that failed.
    pub failed: u64,
    /// Verified replies per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replies_per_s: Option<f64>,
    /// p99 latency so far, of replies that count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_us: Option<f64>,
    /// CPU time of the server, 100 for one CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_cpu_percent: Option<f64>,
    /// The same for the clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_cpu_percent: Option<f64>,
    /// The comparison so far of servers that are measured side by side, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratios: Option<String>,
}

/// The running trial in the record at `directory`, with its points in chronological order; `None` if no trial is
/// reported. Unreadable parts are skipped: the run may still be writing them.
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
