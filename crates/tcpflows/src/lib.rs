//! Flows: the TCP connections of a packet capture, one row of values per connection.
//!
//! Reads the bytes of a capture file without sockets or clocks. Memory depends on the number of flows, not on the
//! length of the file. Depends on no other crate of this workspace.
//!
//! - [`mod@file`]: pcap and pcapng, packet by packet.
//! - [`packet`]: extracts the TCP segment of a packet.
//! - `sequence`: the kind of a segment in its flow: new, retransmitted, out of order.
//! - [`flow`]: one connection; [`row`]: its values; [`summary`]: totals over all connections.
#![cfg_attr(
    test,
    expect(
        clippy::shadow_unrelated,
        reason = "a test looks at several cases in turn"
    )
)]

mod duplicates;
pub mod file;
pub mod flow;
mod mix;
pub mod packet;
pub mod row;
mod sequence;
pub mod summary;

use std::collections::HashMap;
use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use serde::Serialize;

use duplicates::Recent;
use file::{Capture, Damage, Format, Frame};
use flow::Flow;
use mix::Mixing;
use packet::{Endpoint, Other, Segment};
use row::Row;
use summary::Summary;

/// Default maximum number of flows; each takes less than half a KiB.
pub const MOST_FLOWS: usize = 1_000_000;

/// Options of an analysis.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Only flows with this port at either end.
    pub port: Option<u16>,
    /// Maximum number of flows. Packets of further flows are only counted.
    pub max_flows: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            port: None,
            max_flows: MOST_FLOWS,
        }
    }
}

/// Contents of the capture file, including packets that belong to no flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Contents {
    /// File format.
    pub format: Option<Format>,
    /// All packets.
    pub packets: u64,
    /// Time from the first to the last packet, seconds.
    pub duration_s: f64,
    /// Packets that the kernel dropped while capturing; `None` if the file does not say.
    pub dropped_by_kernel: Option<u64>,
    /// Packets captured again on another interface. Each counts once.
    pub duplicates: u64,
    /// TCP packets of ports other than the requested one.
    pub other_ports: u64,
    /// Packets of flows beyond the maximum number.
    pub beyond_max_flows: u64,
    /// Packets that are not TCP.
    pub not_tcp: u64,
    /// Fragments of IP packets.
    pub fragments: u64,
    /// TCP packets with too few captured bytes.
    pub captured_too_short: u64,
    /// Packets with inconsistent headers.
    pub malformed: u64,
    /// Packets of an unknown link type.
    pub unknown_link: u64,
    /// The defect at which reading stopped; `None` if the whole file was read.
    pub damage: Option<Damage>,
}

/// The two ends of a flow, the same for both directions.
#[derive(PartialEq, Eq, Hash)]
struct Key(Endpoint, Endpoint);

impl Key {
    fn of(segment: &Segment) -> Self {
        let (a, b) = (segment.source, segment.destination);
        Self(a.min(b), a.max(b))
    }
}

/// Assembles flows from packets.
pub struct Analysis {
    settings: Settings,
    contents: Contents,
    flows: Vec<Flow>,
    /// The latest flow of each pair of ends.
    newest: HashMap<Key, u32, Mixing>,
    recent: Recent,
    began_ns: i64,
    ended_ns: i64,
}

impl Analysis {
    /// An analysis without packets.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            contents: Contents::default(),
            flows: Vec::new(),
            newest: HashMap::default(),
            recent: Recent::new(),
            began_ns: i64::MAX,
            ended_ns: i64::MIN,
        }
    }

    /// Adds the next packet.
    pub fn take(&mut self, frame: &Frame<'_>) {
        let contents = &mut self.contents;
        contents.packets += 1;
        self.began_ns = self.began_ns.min(frame.time_ns);
        self.ended_ns = self.ended_ns.max(frame.time_ns);
        let segment = match packet::segment(frame) {
            Ok(segment) => segment,
            Err(other) => {
                *match other {
                    Other::NotTcp => &mut contents.not_tcp,
                    Other::Fragment => &mut contents.fragments,
                    Other::Short => &mut contents.captured_too_short,
                    Other::Malformed => &mut contents.malformed,
                    Other::UnknownLink => &mut contents.unknown_link,
                } += 1;
                return;
            }
        };
        let ports = [segment.source.port, segment.destination.port];
        if self
            .settings
            .port
            .is_some_and(|port| !ports.contains(&port))
        {
            contents.other_ports += 1;
        } else if self.recent.has(&segment) {
            contents.duplicates += 1;
        } else if let Some(flow) = self.flow_of(&segment) {
            flow.take(&segment);
        } else {
            self.contents.beyond_max_flows += 1;
        }
    }

    /// The flow of a packet, created if new; `None` beyond the maximum number.
    fn flow_of(&mut self, segment: &Segment) -> Option<&mut Flow> {
        let key = Key::of(segment);
        if let Some(&at) = self.newest.get(&key)
            && !self.flows[at as usize].is_over_for(segment)
        {
            return self.flows.get_mut(at as usize);
        }
        let at = self.flows.len();
        if at >= self.settings.max_flows.min(u32::MAX as usize) {
            return None;
        }
        self.newest.insert(key, at as u32);
        self.flows.push(Flow::new(segment));
        self.flows.last_mut()
    }

    /// Returns the results. `dropped` is the number of dropped packets according to the file, `damage` why reading
    /// stopped.
    pub fn finish(self, dropped: Option<u64>, damage: Option<Damage>) -> Report {
        let mut contents = self.contents;
        if contents.packets > 0 {
            contents.duration_s = row::seconds(self.began_ns, self.ended_ns);
        }
        contents.dropped_by_kernel = dropped;
        contents.damage = damage;
        let mut report = Report {
            contents,
            summary: Summary::of(&std::iter::empty()),
            flows: self.flows,
            began_ns: self.began_ns,
        };
        let summary = Summary::of(&report.rows());
        report.summary = summary;
        report
    }
}

/// The flows of a capture.
pub struct Report {
    /// Contents of the file.
    pub contents: Contents,
    /// Totals and percentiles.
    pub summary: Summary,
    flows: Vec<Flow>,
    began_ns: i64,
}

impl Report {
    /// The flows, in the order of their first packets.
    pub fn rows(&self) -> impl Iterator<Item = Row> + Clone {
        let numbered = (1..).zip(&self.flows);
        numbered.map(|(number, flow)| Row::new(number, flow, self.began_ns))
    }

    /// A flow by index, from 0.
    pub fn row(&self, at: usize) -> Option<Row> {
        let flow = self.flows.get(at)?;
        Some(Row::new(at as u64 + 1, flow, self.began_ns))
    }
}

/// The first two bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Opens a capture file, decompressing gzip.
///
/// # Errors
/// If it cannot be read.
pub fn decompressed<'a>(mut file: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut first = Vec::new();
    file.by_ref()
        .take(GZIP.len() as u64)
        .read_to_end(&mut first)?;
    let is_compressed = first == GZIP;
    let whole = io::Cursor::new(first).chain(file);
    Ok(if is_compressed {
        Box::new(MultiGzDecoder::new(whole))
    } else {
        Box::new(whole)
    })
}

/// Reads a whole capture file. If the file is damaged, the report has all packets before the defect, and the defect.
///
/// # Errors
/// If it is not a capture.
pub fn analyse<R: Read>(file: R, settings: Settings) -> Result<Report, Damage> {
    let mut capture = Capture::open(file)?;
    let mut analysis = Analysis::new(settings);
    analysis.contents.format = Some(capture.format());
    let damage = loop {
        match capture.next_frame() {
            Ok(Some(frame)) => analysis.take(&frame),
            Ok(None) => break None,
            Err(damage) => break Some(damage),
        }
    };
    Ok(analysis.finish(capture.dropped(), damage))
}

#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
#[cfg(test)]
mod tests;
