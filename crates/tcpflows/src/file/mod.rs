//! Capture files: pcap in either byte order and precision, and pcapng, read as a stream in bounded memory.
//!
//! Formats: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.

mod pcap;
mod pcapng;
mod window;

use std::fmt;
use std::io::Read;

use serde::Serialize;

use window::Window;

/// A longer packet means a damaged file. tcpdump captures at most 256 KiB.
const MOST_PACKET_BYTES: u32 = 16 << 20;

/// A defect of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct Damage {
    /// Number of the unreadable packet, from 1; 0 for the file header.
    pub packet: u64,
    /// Its offset in the file, bytes.
    pub offset: u64,
    /// Description of the defect.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.packet > 0 {
            write!(f, "packet {}, byte {}: ", self.packet, self.offset)?;
        }
        f.write_str(&self.what)
    }
}

/// A packet as captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Counted from 1.
    pub number: u64,
    /// When it was captured, in nanoseconds since the Unix epoch.
    pub time_ns: i64,
    /// Link type: the kind of its first header, as listed at tcpdump.org/linktypes.html.
    pub link: u32,
    /// The interface on which it was captured, as numbered in the file.
    pub interface: u32,
    /// Original length, bytes. The captured part may be shorter.
    pub wire_bytes: u32,
    /// The captured bytes.
    pub data: &'a [u8],
}

/// File format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// pcap with times in microseconds.
    PcapMicroseconds,
    /// pcap with times in nanoseconds.
    PcapNanoseconds,
    Pcapng,
}

/// Byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HostAssignment {
    Little,
    Big,
}

impl HostAssignment {
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let pair = [bytes[at], bytes[at + 1]];
        match self {
            Self::Little => u16::from_le_bytes(pair),
            Self::Big => u16::from_be_bytes(pair),
        }
    }

    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let four = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        match self {
            Self::Little => u32::from_le_bytes(four),
            Self::Big => u32::from_be_bytes(four),
        }
    }

    fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let (first, second) = (self.u32(bytes, at).into(), self.u32(bytes, at + 4).into());
        let (high, low): (u64, u64) = match self {
            Self::Little => (second, first),
            Self::Big => (first, second),
        };
        high << 32 | low
    }
}

/// A capture file, packet by packet.
pub struct Capture<R> {
    window: Window<R>,
    kind: Kind,
    packets: u64,
}

enum Kind {
    Pcap(pcap::Header),
    Pcapng(pcapng::Section),
}

/// The position of a packet in the window, and its metadata from the file.
struct PacketPlace {
    time_ns: i64,
    link: u32,
    interface: u32,
    wire_bytes: u32,
    /// Bytes in the window: before the packet's data, in the data, and after it.
    before: usize,
    captured: usize,
    behind: usize,
}

impl<R: Read> Capture<R> {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// If the format is unknown.
    pub fn open(inner: R) -> Result<Self, Damage> {
        let mut window = Window::new(inner);
        let at_start = |what: String| Damage {
            packet: 0,
            offset: 0,
            what,
        };
        let kind = kind(&mut window).map_err(at_start)?;
        Ok(Self {
            window,
            kind,
            packets: 0,
        })
    }

    /// The next packet; `None` at the end of the file.
    ///
    /// # Errors
    /// If the file is damaged or ends within a packet. Nothing after that can be read.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, Damage> {
        let mut offset = self.window.offset();
        let found = match &mut self.kind {
            Kind::Pcap(header) => pcap::next(&mut self.window, header),
            Kind::Pcapng(section) => pcapng::next(&mut self.window, section, &mut offset),
        };
        let number = self.packets + 1;
        let damage = |what| Damage {
            packet: number,
            offset,
            what,
        };
        let Some(found) = found.map_err(damage)? else {
            return Ok(None);
        };
        self.packets = number;
        // Consumed first, so that the borrowed bytes precede the window's position.
        let whole = found.before + found.captured + found.behind;
        let from = found.before;
        self.window.consume(whole);
        let data = &self.window.consumed(whole)[from..from + found.captured];
        Ok(Some(Frame {
            number,
            time_ns: found.time_ns,
            link: found.link,
            interface: found.interface,
            wire_bytes: found.wire_bytes,
            data,
        }))
    }

    /// File format.
    pub fn format(&self) -> Format {
        match &self.kind {
            Kind::Pcap(header) => header.format(),
            Kind::Pcapng(_) => Format::Pcapng,
        }
    }

    /// Number of packets that the capturing kernel dropped, if the file says so.
    pub fn dropped(&self) -> Option<u64> {
        match &self.kind {
            Kind::Pcap(_) => None,
            Kind::Pcapng(section) => section.dropped(),
        }
    }
}

/// Formats a read error as the reason of a [`Damage`].
fn cannot_read(error: &std::io::Error) -> String {
    format!("cannot be read: {error}")
}

/// Detects the format by the first bytes.
fn kind<R: Read>(window: &mut Window<R>) -> Result<Kind, String> {
    if !window.fill(4).map_err(|error| cannot_read(&error))? {
        return Err("not a packet capture: the file ends before its header".to_owned());
    }
    let magic = HostAssignment::Big.u32(window.bytes(), 0);
    if magic == pcapng::SECTION_HEADER {
        return Ok(Kind::Pcapng(pcapng::Section::default()));
    }
    if let Some(header) = pcap::open(window, magic)? {
        return Ok(Kind::Pcap(header));
    }
    let compressed = match window.bytes() {
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("zstdcat"),
        [0xfd, b'7', b'z', b'X', ..] => Some("xzcat"),
        _ => None,
    };
    Err(match compressed {
        Some(tool) => {
            format!("it is compressed; decompress it first: {tool} FILE | throng flows -")
        }
        None => format!(
            "not a packet capture: it begins with {magic:08x}, which is neither pcap nor pcapng; \
             capture with tcpdump -w FILE"
        ),
    })
}

#[cfg(test)]
mod tests;
