//! pcap: a file header, then a small header before each packet.

use std::io::Read;

use super::window::Window;
use super::{Format, HostAssignment, MOST_PACKET_BYTES, PacketPlace, cannot_read};

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const FILE_HEADER_BYTES: usize = 24;
const PACKET_HEADER_BYTES: usize = 16;

/// The header of the file.
pub(super) struct Header {
    order: HostAssignment,
    /// Nanoseconds per unit of the fraction of a second.
    unit_ns: u32,
    link: u32,
}

impl Header {
    pub(super) fn format(&self) -> Format {
        if self.unit_ns == 1 {
            Format::PcapNanoseconds
        } else {
            Format::PcapMicroseconds
        }
    }
}

/// Reads the file's header if `magic`, the first four bytes, is a pcap magic number.
pub(super) fn open<R: Read>(window: &mut Window<R>, magic: u32) -> Result<Option<Header>, String> {
    let (order, unit_ns) = match (magic, magic.swap_bytes()) {
        (MICROSECONDS, _) => (HostAssignment::Big, 1000),
        (NANOSECONDS, _) => (HostAssignment::Big, 1),
        (_, MICROSECONDS) => (HostAssignment::Little, 1000),
        (_, NANOSECONDS) => (HostAssignment::Little, 1),
        _ => return Ok(None),
    };
    let whole = window.fill(FILE_HEADER_BYTES);
    if !whole.map_err(|error| cannot_read(&error))? {
        return Err("the file ends within its header".to_owned());
    }
    // The upper bits describe checksums at the end of frames.
    let link = order.u32(window.bytes(), 20) & 0xffff;
    window.consume(FILE_HEADER_BYTES);
    Ok(Some(Header {
        order,
        unit_ns,
        link,
    }))
}

/// Reads the next packet into the window; `None` at the end of the file.
pub(super) fn next<R: Read>(
    window: &mut Window<R>,
    header: &Header,
) -> Result<Option<PacketPlace>, String> {
    let whole = window.fill(PACKET_HEADER_BYTES);
    if !whole.map_err(|error| cannot_read(&error))? {
        return match window.bytes().len() {
            0 => Ok(None),
            _ => Err("the file ends within the header of the packet".to_owned()),
        };
    }
    let field = |at| header.order.u32(window.bytes(), at);
    let (seconds, fraction, captured, wire_bytes) = (field(0), field(4), field(8), field(12));
    if captured > MOST_PACKET_BYTES {
        return Err(format!(
            "it says that {captured} bytes were captured, which no packet has; the file is damaged here"
        ));
    }
    let length = PACKET_HEADER_BYTES + captured as usize;
    if !window.fill(length).map_err(|error| cannot_read(&error))? {
        return Err(format!(
            "the file ends after {} of the {captured} bytes of the packet",
            window.bytes().len() - PACKET_HEADER_BYTES
        ));
    }
    Ok(Some(PacketPlace {
        time_ns: i64::from(seconds) * 1_000_000_000
            + i64::from(fraction) * i64::from(header.unit_ns),
        link: header.link,
        interface: 0,
        wire_bytes: wire_bytes.max(captured),
        before: PACKET_HEADER_BYTES,
        captured: captured as usize,
        behind: 0,
    }))
}
