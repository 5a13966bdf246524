//! `throng flows FILE`: the TCP connections of a packet capture, one row each.

mod table;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::ValueEnum;
use serde::{Serialize, Serializer};

use super::{Exit, Usage, output};
use crate::flows::file::Damage;
use crate::flows::row::{Row, write_csv};
use crate::flows::summary::Summary;
use crate::flows::{Contents, MOST_FLOWS, Report, Settings, analyse, decompressed};
use crate::record::format::printable;
use crate::report::document::terminal;

/// Default number of rows on a terminal.
const ROWS: usize = 20;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tcpdump -i lo -s 128 -w load.pcap tcp port 7777     capture during a load, until Ctrl-C
  throng flows load.pcap
  throng flows load.pcap --sort retransmissions --limit 5
  throng flows load.pcap --port 7777 --csv > flows.csv
  throng flows load.pcap.gz --json

The client of a flow is the side that sent the SYN. Without a captured SYN, the side with the lower port \
counts as the server. Retransmissions are counted as in Wireshark.")]
pub(super) struct Arguments {
    /// Capture in pcap or pcapng format, optionally compressed with gzip, or - for standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print everything as JSON.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the flows as CSV, one per row.
    #[arg(long)]
    csv: bool,
    /// Show only flows from or to this port [default: all].
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Sort flows by this column, largest first; `start` is the order of their first packets.
    #[arg(long, value_enum, value_name = "COLUMN", default_value_t = Sort::Start)]
    sort: Sort,
    /// Show this many flows [default: 20 in the table, all as JSON or CSV].
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Keep at most this many flows in memory. Packets of further flows are only counted.
    #[arg(long, value_name = "N", default_value_t = MOST_FLOWS)]
    max_flows: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    Start,
    Duration,
    Handshake,
    Packets,
    Bytes,
    Throughput,
    Retransmissions,
    Resets,
}

impl Sort {
    /// The value to sort by, largest first.
    fn key(self, row: &Row) -> f64 {
        match self {
            Self::Start => -(row.flow as f64),
            Self::Duration => row.duration_s,
            Self::Handshake => row.handshake_us.unwrap_or(-1.0),
            Self::Packets => row.packets() as f64,
            Self::Bytes => row.payload_bytes() as f64,
            Self::Throughput => row.throughput_bytes_per_s.unwrap_or(-1.0),
            Self::Retransmissions => row.retransmissions() as f64,
            Self::Resets => row.resets().into(),
        }
    }
}

/// Selects the flows to show. Returns row numbers, since a report may have a million rows.
fn chosen(report: &Report, sort: Sort, limit: usize) -> Vec<usize> {
    let mut keys: Vec<(f64, usize)> = report
        .rows()
        .enumerate()
        .map(|(at, row)| (sort.key(&row), at))
        .collect();
    keys.sort_by(|a, b| b.0.total_cmp(&a.0));
    keys.truncate(limit);
    keys.into_iter().map(|(_, at)| at).collect()
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let settings = Settings {
        port: arguments.port,
        max_flows: arguments.max_flows,
    };
    let name = printable(&arguments.file.to_string_lossy());
    let unusable = |why: &dyn std::fmt::Display| Usage(format!("cannot read {name}: {why}"));
    let file = decompressed(open(&arguments.file)?).map_err(|error| unusable(&error))?;
    let report = analyse(file, settings).map_err(|damage| unusable(&damage))?;
    let machine = arguments.json || arguments.csv;
    let limit = arguments
        .limit
        .unwrap_or(if machine { usize::MAX } else { ROWS });
    let chosen = chosen(&report, arguments.sort, limit);
    let rows = chosen.iter().filter_map(|at| report.row(*at));
    if arguments.json {
        output::json(&FlowsJson {
            capture: &report.contents,
            summary: &report.summary,
            flows: Rows(rows),
        })?;
    } else if arguments.csv {
        output::written(|out| write_csv(rows, out))?;
    } else {
        let listed: Vec<Row> = rows.collect();
        let blocks = table::blocks(&name, &report, &listed);
        output::text(&terminal::blocks(&blocks, output::width()))?;
    }
    match report.contents.damage {
        None => Ok(Exit::Done),
        Some(damage) => Err(unread(damage, report.contents.packets)).context(name),
    }
}

/// The error for a damaged capture. The packets before the damage were already printed.
fn unread(damage: Damage, packets: u64) -> anyhow::Error {
    anyhow::Error::new(damage).context(format!(
        "the capture is damaged after packet {packets}; the results cover the packets before"
    ))
}

fn open(path: &Path) -> anyhow::Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file = File::open(path)
        .map_err(|error| Usage(format!("cannot read {}: {error}", path.display())))?;
    Ok(Box::new(file))
}

#[derive(Serialize)]
#[serde(bound = "")]
struct FlowsJson<'a, I: Iterator<Item = Row> + Clone> {
    capture: &'a Contents,
    summary: &'a Summary,
    flows: Rows<I>,
}

/// Rows that are generated while they are written.
struct Rows<I>(I);

impl<I: Iterator<Item = Row> + Clone> Serialize for Rows<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone())
    }
}
