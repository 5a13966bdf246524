//! The state of the running trial, for `throng view`: `live.jsonl` in the record's directory. It is not part of the
//! record: it is rewritten with each trial, removed when the run ends, and never synced.

use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::metrics::Quantity;
use super::open_if_there;

/// Name of the file.
pub const LIVE: &str = "live.jsonl";

/// Maximum bytes that are read of the first line, and of the latest points.
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
    /// The share of the run that is done, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// The remaining seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_s: Option<f64>,
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
    /// The servers, if they are measured side by side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub side_by_side: Option<SideBySide>,
}

/// The comparison so far of servers that are measured side by side.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SideBySide {
    /// Rounds so far; 0 while the servers warm up one after the other.
    pub rounds: u32,
    /// Name of the reference.
    pub reference: String,
    /// Each server, the reference first.
    pub servers: Vec<ServerSoFar>,
    /// Whether they are compared by CPU time per request, because the load sets the rate of all.
    pub is_by_cpu: bool,
}

/// One server: medians over its last slices.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerSoFar {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_us_per_request: Option<f64>,
    /// What servers are compared by, relative to the reference, over all rounds, if there are enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Quantity>,
}

impl SideBySide {
    /// Whether a server is better than the reference; `None` while its interval includes 1.
    pub fn is_better(&self, server: &ServerSoFar) -> Option<bool> {
        let ratio = server.ratio?;
        match (ratio.low, ratio.high) {
            (Some(low), _) if low > 1.0 => Some(!self.is_by_cpu),
            (_, Some(high)) if high < 1.0 => Some(self.is_by_cpu),
            _ => None,
        }
    }
}

/// The running trial in the record at `directory`, with its points in chronological order; `None` if no trial is
/// reported. Unreadable parts are skipped: the run may still be writing them.
pub fn read_live(directory: &Path) -> Option<(LiveTrial, Vec<LivePoint>)> {
    let mut file = BufReader::new(open_if_there(&directory.join(LIVE)).ok()??);
    let mut first = Vec::new();
    (&mut file)
        .take(MOST_BYTES)
        .read_until(b'\n', &mut first)
        .ok()?;
    let trial = serde_json::from_slice(&first).ok()?;
    let end = file.get_ref().metadata().ok()?.len();
    let from = end.saturating_sub(MOST_BYTES).max(first.len() as u64);
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    let lines = bytes.split(|byte| *byte == b'\n');
    let points = lines.filter_map(|line| serde_json::from_slice(line).ok());
    Some((trial, points.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_cpu_time_is_better_where_the_load_sets_the_rate() {
        let server = ServerSoFar {
            ratio: Some(Quantity {
                low: Some(0.4),
                high: Some(0.6),
                ..Quantity::bare(0.5)
            }),
            ..ServerSoFar::default()
        };
        let is_better = |is_by_cpu| {
            let seen = SideBySide {
                is_by_cpu,
                ..SideBySide::default()
            };
            seen.is_better(&server)
        };
        assert_eq!([false, true].map(is_better), [Some(false), Some(true)]);
    }

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
