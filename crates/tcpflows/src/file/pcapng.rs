//! pcapng: blocks of many types. Blocks without packets are skipped.

use std::io::Read;

use super::window::Window;
use super::{HostAssignment, MOST_PACKET_BYTES, PacketPlace, cannot_read};

/// The same in both byte orders.
pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
/// Obsolete, but some programs still write it.
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

const TIME_RESOLUTION: u16 = 9;
const TIME_OFFSET: u16 = 14;
const DROPPED_BY_INTERFACE: u16 = 5;
const DROPPED_BY_SYSTEM: u16 = 7;

/// Bytes around a block's content: type and length before it, length after it.
const FRAME_BYTES: usize = 12;
/// Maximum length of a block with a packet and its options.
const MOST_BLOCK_BYTES: u32 = MOST_PACKET_BYTES + (1 << 16);
/// More interfaces than in any real capture.
const MOST_INTERFACES: usize = 1 << 16;

/// Declarations of the current section. Each section has its own byte order and interfaces.
#[derive(Default)]
pub(super) struct Section {
    /// `None` before the first section.
    order: Option<HostAssignment>,
    interfaces: Vec<Interface>,
    /// Packets dropped in earlier sections.
    dropped_before: Option<u64>,
}

struct Interface {
    link: u32,
    snap_bytes: u32,
    /// Units of time per second.
    per_second: u64,
    offset_s: i64,
    /// Dropped packets according to its last statistics block, which has totals.
    dropped: Option<u64>,
}

impl Section {
    pub(super) fn dropped(&self) -> Option<u64> {
        let stated = self.interfaces.iter().filter_map(|one| one.dropped);
        stated
            .chain(self.dropped_before)
            .reduce(u64::saturating_add)
    }
}

/// Reads the block of the next packet into the window; `None` at the end of the file. Stores the offset of the
/// block in `offset`.
pub(super) fn next<R: Read>(
    window: &mut Window<R>,
    section: &mut Section,
    offset: &mut u64,
) -> Result<Option<PacketPlace>, String> {
    loop {
        *offset = window.offset();
        if !fill(window, 8)? {
            return match window.bytes().len() {
                0 => Ok(None),
                _ => Err("the file ends within the header of a block".to_owned()),
            };
        }
        let first = HostAssignment::Big.u32(window.bytes(), 0);
        if first == SECTION_HEADER {
            begin_section(window, section)?;
        }
        let Some(order) = section.order else {
            return Err("no section begins here; the file is damaged here".to_owned());
        };
        let (kind, length) = (order.u32(window.bytes(), 0), order.u32(window.bytes(), 4));
        if (length as usize) < FRAME_BYTES || !length.is_multiple_of(4) {
            return Err(format!(
                "a block says that it is {length} bytes long; the file is damaged here"
            ));
        }
        let of_interest = [
            INTERFACE,
            PACKET,
            SIMPLE_PACKET,
            STATISTICS,
            ENHANCED_PACKET,
        ];
        if !of_interest.contains(&kind) {
            if !window
                .skip(length.into())
                .map_err(|error| cannot_read(&error))?
            {
                return Err(format!("the file ends within a block of {length} bytes"));
            }
            continue;
        }
        if length > MOST_BLOCK_BYTES {
            return Err(format!(
                "a block says that it is {length} bytes long, which no packet is; the file is \
                 damaged here"
            ));
        }
        if !fill(window, length as usize)? {
            return Err(format!("the file ends within a block of {length} bytes"));
        }
        let block = &window.bytes()[..length as usize];
        if order.u32(block, block.len() - 4) != length {
            return Err("the two lengths of a block differ; the file is damaged here".to_owned());
        }
        let body = Body {
            order,
            bytes: &block[8..block.len() - 4],
        };
        match kind {
            INTERFACE => section.add_interface(body)?,
            STATISTICS => section.take_statistics(body),
            _ => return packet(section, kind, body).map(Some),
        }
        window.consume(length as usize);
    }
}

fn fill<R: Read>(window: &mut Window<R>, bytes: usize) -> Result<bool, String> {
    window.fill(bytes).map_err(|error| cannot_read(&error))
}

fn begin_section<R: Read>(window: &mut Window<R>, section: &mut Section) -> Result<(), String> {
    if !fill(window, 12)? {
        return Err("the file ends within the header of a section".to_owned());
    }
    let order = [HostAssignment::Little, HostAssignment::Big]
        .into_iter()
        .find(|order| order.u32(window.bytes(), 8) == BYTE_ORDER);
    let Some(order) = order else {
        return Err("a section has no known byte order; the file is damaged here".to_owned());
    };
    *section = Section {
        order: Some(order),
        interfaces: Vec::new(),
        dropped_before: section.dropped(),
    };
    Ok(())
}

/// The content of a block.
#[derive(Clone, Copy)]
struct Body<'a> {
    order: HostAssignment,
    bytes: &'a [u8],
}

impl<'a> Body<'a> {
    fn u16(self, at: usize) -> Option<u16> {
        (self.bytes.len() >= at + 2).then(|| self.order.u16(self.bytes, at))
    }

    fn u32(self, at: usize) -> Option<u32> {
        (self.bytes.len() >= at + 4).then(|| self.order.u32(self.bytes, at))
    }

    /// Its options, which begin at offset `from`, as number and value.
    fn options(self, from: usize) -> impl Iterator<Item = (u16, &'a [u8])> {
        let mut at = from;
        std::iter::from_fn(move || {
            let (number, length) = (self.u16(at)?, usize::from(self.u16(at + 2)?));
            let value = self.bytes.get(at + 4..at + 4 + length)?;
            at += 4 + length.next_multiple_of(4);
            (number != 0).then_some((number, value))
        })
    }
}

impl Section {
    fn add_interface(&mut self, body: Body<'_>) -> Result<(), String> {
        let (Some(link), Some(snap_bytes)) = (body.u16(0), body.u32(4)) else {
            return Err("an interface is described in too few bytes".to_owned());
        };
        if self.interfaces.len() == MOST_INTERFACES {
            return Err(format!("it has more than {MOST_INTERFACES} interfaces"));
        }
        let mut interface = Interface {
            link: link.into(),
            snap_bytes,
            per_second: 1_000_000,
            offset_s: 0,
            dropped: None,
        };
        for (number, value) in body.options(8) {
            match (number, value) {
                (TIME_RESOLUTION, &[power]) => {
                    let base: u64 = if power & 0x80 == 0 { 10 } else { 2 };
                    let per_second = base.checked_pow(u32::from(power & 0x7f));
                    interface.per_second = per_second
                        .ok_or_else(|| format!("an interface has timestamps in {power:#x}"))?;
                }
                (TIME_OFFSET, value) if value.len() == 8 => {
                    interface.offset_s = body.order.u64(value, 0) as i64;
                }
                _ => {}
            }
        }
        self.interfaces.push(interface);
        Ok(())
    }

    fn take_statistics(&mut self, body: Body<'_>) {
        let interface = body
            .u32(0)
            .and_then(|number| self.interfaces.get_mut(number as usize));
        let Some(interface) = interface else { return };
        let dropped = body
            .options(12)
            .filter(|(number, value)| {
                [DROPPED_BY_INTERFACE, DROPPED_BY_SYSTEM].contains(number) && value.len() == 8
            })
            .map(|(_, value)| body.order.u64(value, 0))
            .reduce(u64::saturating_add);
        interface.dropped = dropped.or(interface.dropped);
    }
}

fn packet(section: &Section, kind: u32, body: Body<'_>) -> Result<PacketPlace, String> {
    let short = || "the block of a packet is too short".to_owned();
    let field = |at| body.u32(at).ok_or_else(short);
    let (number, time, captured, wire_bytes, before) = if kind == SIMPLE_PACKET {
        // It belongs to the first interface, has no time, and is captured up to the file's limit.
        let wire_bytes = field(0)?;
        let bytes = section.interfaces.first().map_or(0, |one| one.snap_bytes);
        let limit = if bytes == 0 { u32::MAX } else { bytes };
        let room = body.bytes.len() as u32 - 4;
        (0, None, wire_bytes.min(limit).min(room), wire_bytes, 4)
    } else {
        let number = if kind == PACKET {
            body.u16(0).ok_or_else(short)?.into()
        } else {
            field(0)?
        };
        let time = u64::from(field(4)?) << 32 | u64::from(field(8)?);
        (number, Some(time), field(12)?, field(16)?, 20)
    };
    let Some(interface) = section.interfaces.get(number as usize) else {
        return Err(format!(
            "it was seen on interface {number}, which the file does not describe"
        ));
    };
    let room = body.bytes.len() - before;
    if captured as usize > room {
        return Err(format!(
            "it says that {captured} bytes were captured, in a block with room for {room}"
        ));
    }
    Ok(PacketPlace {
        time_ns: time.map_or(0, |time| interface.time_ns(time)),
        link: interface.link,
        interface: number,
        wire_bytes: wire_bytes.max(captured),
        before: 8 + before,
        captured: captured as usize,
        behind: room - captured as usize + 4,
    })
}

impl Interface {
    fn time_ns(&self, units: u64) -> i64 {
        const SECOND: u64 = 1_000_000_000;
        if self.offset_s == 0 && SECOND.is_multiple_of(self.per_second) {
            let since = units.saturating_mul(SECOND / self.per_second);
            return since.min(i64::MAX as u64) as i64;
        }
        let since = i128::from(units) * i128::from(SECOND) / i128::from(self.per_second);
        let time = since + i128::from(self.offset_s) * i128::from(SECOND);
        time.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}
