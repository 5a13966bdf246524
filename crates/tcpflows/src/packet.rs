//! One captured packet, and the TCP segment in it.
//!
//! `etherparse` parses addresses and extension headers. This module parses link headers and TCP headers; 20
//! captured bytes of the latter are enough.

use std::fmt;
use std::net::IpAddr;

use etherparse::{IpNumber, LaxIpSlice};

use super::file::Frame;
use super::mix::mix;

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    pub address: IpAddr,
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::net::SocketAddr::new(self.address, self.port).fmt(f)
    }
}

/// Bits of a segment's flags.
pub(super) mod flag {
    pub(crate) const FIN: u8 = 1;
    pub(crate) const SYN: u8 = 2;
    pub(crate) const RST: u8 = 4;
    pub(crate) const ACK: u8 = 16;
}

/// A TCP segment, without its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// When it was captured, in nanoseconds since the Unix epoch.
    pub time_ns: i64,
    /// Sender.
    pub source: Endpoint,
    /// Receiver.
    pub destination: Endpoint,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledged: u32,
    /// Flags as in the header: FIN 1, SYN 2, RST 4, PSH 8, ACK 16.
    pub flags: u8,
    /// Window as in the header, not scaled.
    pub window: u16,
    /// Payload bytes, captured or not.
    pub payload_bytes: u32,
    /// Bytes of the whole packet, captured or not.
    pub wire_bytes: u32,
    /// Its identity.
    pub identity: Identity,
}

impl Segment {
    /// Whether any of these flags is set.
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// Whether it requests a connection: SYN without ACK.
    pub fn is_first_syn(&self) -> bool {
        self.has(flag::SYN) && !self.has(flag::ACK)
    }
}

/// Identity of a packet, used to recognise one that was captured twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Hash of all fields that do not change while a packet passes through a machine.
    pub hash: u64,
    /// Whether the sender numbered it, so that the identity is unique for some time.
    pub numbered: bool,
    /// Hash of where it was captured: interface, direction, hardware addresses, TTL.
    pub place: u64,
}

/// Why a packet has no segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Other {
    /// Not TCP.
    #[error("not TCP")]
    NotTcp,
    /// A fragment of an IP packet. Only the first fragment has ports, and none has the length.
    #[error("a fragment")]
    Fragment,
    /// The captured part ends before the end of the TCP header's fixed fields.
    #[error("captured too short")]
    Short,
    /// Inconsistent headers.
    #[error("malformed")]
    Malformed,
    /// Unknown link type.
    #[error("of an unknown link")]
    UnknownLink,
}

const ETHERNET_IPV4: u16 = 0x0800;
const ETHERNET_IPV6: u16 = 0x86dd;
const VLAN_TAGS: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];

/// Parses a packet.
///
/// # Errors
/// If it has no TCP segment, the reason.
pub fn segment(frame: &Frame<'_>) -> Result<Segment, Other> {
    let link = Link::of(frame)?;
    let ip_bytes = frame.data.get(link.bytes..).ok_or(Other::Short)?;
    let is_cut = frame.data.len() < frame.wire_bytes as usize;
    let cut_or = |otherwise| if is_cut { Other::Short } else { otherwise };
    let (ip, _) = LaxIpSlice::from_slice(ip_bytes).map_err(|_| match header_length(ip_bytes) {
        Some(length) if ip_bytes.len() < length => cut_or(Other::Malformed),
        _ => Other::Malformed,
    })?;
    let payload = ip.payload();
    if payload.fragmented {
        return Err(Other::Fragment);
    }
    if payload.ip_number.is_ipv6_ext_header_value() {
        // The packet ends before a TCP header.
        return Err(cut_or(Other::NotTcp));
    }
    if payload.ip_number != IpNumber::TCP {
        return Err(Other::NotTcp);
    }
    let tcp = payload.payload;
    if tcp.len() < 20 {
        return Err(if payload.incomplete {
            Other::Short
        } else {
            cut_or(Other::Malformed)
        });
    }
    // With segmentation offload, the length in the IP header can be 0. Then the frame's length counts.
    let (stated, number, hops) = match &ip {
        LaxIpSlice::Ipv4(ip) => {
            let header = ip.header();
            (
                usize::from(header.total_len()),
                header.identification(),
                header.ttl(),
            )
        }
        LaxIpSlice::Ipv6(ip) => {
            let header = ip.header();
            let length = usize::from(header.payload_length());
            let stated = if length == 0 { 0 } else { 40 + length };
            (stated, 0, header.hop_limit())
        }
    };
    let whole_bytes = match stated {
        0 => (frame.wire_bytes as usize).saturating_sub(link.bytes),
        stated => stated,
    };
    let before_tcp = tcp.as_ptr().addr() - ip_bytes.as_ptr().addr();
    let header_bytes = usize::from(tcp[12] >> 4) * 4;
    let payload_bytes = whole_bytes.checked_sub(before_tcp + header_bytes);
    let Some(payload_bytes) = payload_bytes.filter(|_| header_bytes >= 20) else {
        return Err(Other::Malformed);
    };
    let short = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
    let long = |at: usize| u32::from_be_bytes([tcp[at], tcp[at + 1], tcp[at + 2], tcp[at + 3]]);
    let end = |address, port| Endpoint { address, port };
    let segment = Segment {
        time_ns: frame.time_ns,
        source: end(ip.source_addr(), short(0)),
        destination: end(ip.destination_addr(), short(2)),
        sequence: long(4),
        acknowledged: long(8),
        flags: tcp[13],
        window: short(14),
        payload_bytes: payload_bytes as u32,
        wire_bytes: frame.wire_bytes,
        identity: Identity {
            hash: identity(
                &ip,
                number,
                &tcp[..header_bytes.min(tcp.len())],
                payload_bytes,
            ),
            numbered: number != 0,
            place: mix(mix(link.place, hops.into()), frame.interface.into()),
        },
    };
    Ok(segment)
}

/// Length of an IP header, from its first byte; `None` if the packet is not IP.
fn header_length(packet: &[u8]) -> Option<usize> {
    match packet.first() {
        None => Some(1),
        Some(byte) if byte >> 4 == 6 => Some(40),
        Some(byte) if byte >> 4 == 4 => Some(20.max(usize::from(byte & 15) * 4)),
        Some(_) => None,
    }
}

/// Hash of the fields that do not change on the way: addresses, identification, and the TCP header without its
/// checksum, which may be filled in later.
fn identity(ip: &LaxIpSlice<'_>, number: u16, tcp: &[u8], payload_bytes: usize) -> u64 {
    let mut hash = mix(payload_bytes as u64, number.into());
    let addresses = match ip {
        LaxIpSlice::Ipv4(ip) => &ip.header().slice()[12..20],
        LaxIpSlice::Ipv6(ip) => &ip.header().slice()[8..40],
    };
    for part in [addresses, &tcp[..16], &tcp[18..]] {
        hash = mix_bytes(hash, part);
    }
    hash
}

fn mix_bytes(hash: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut hash = words
        .iter()
        .fold(hash, |hash, word| mix(hash, u64::from_ne_bytes(*word)));
    for byte in rest {
        hash = mix(hash, u64::from(*byte));
    }
    hash
}

/// The headers before IP.
struct Link {
    bytes: usize,
    /// Hash of the direction and the hardware addresses.
    place: u64,
}

impl Link {
    /// Parses the headers by link type (tcpdump.org/linktypes.html).
    fn of(frame: &Frame<'_>) -> Result<Self, Other> {
        let data = frame.data;
        let short = |at: usize| match data.get(at..at + 2) {
            Some(bytes) => Ok(u16::from_be_bytes([bytes[0], bytes[1]])),
            None => Err(Other::Short),
        };
        match frame.link {
            // BSD's loopback: an address family in the byte order of the capturing host.
            0 | 108 => {
                let family = u32::from(short(0)?) << 16 | u32::from(short(2)?);
                let families = [2, 10, 24, 28, 30];
                if !families.contains(&family) && !families.contains(&family.swap_bytes()) {
                    return Err(Other::NotTcp);
                }
                Ok(Self { bytes: 4, place: 0 })
            }
            1 => Self::behind_type(data, short(12)?, 14, mix_bytes(0, &data[..12])),
            // Raw IP, which has several numbers.
            12 | 14 | 101 | 228 | 229 => Ok(Self { bytes: 0, place: 0 }),
            // Linux "cooked", as captured on the device `any`.
            113 => Self::behind_type(data, short(14)?, 16, short(0)?.into()),
            276 => {
                let (kind, device) = (short(0)?, u64::from(short(6)?));
                let direction = *data.get(10).ok_or(Other::Short)?;
                Self::behind_type(data, kind, 20, device << 8 | u64::from(direction))
            }
            _ => Err(Other::UnknownLink),
        }
    }

    /// The headers before a payload of known type `kind`, which may be a VLAN tag.
    fn behind_type(data: &[u8], kind: u16, bytes: usize, place: u64) -> Result<Self, Other> {
        let (mut kind, mut bytes) = (kind, bytes);
        while VLAN_TAGS.contains(&kind) {
            let tag = data.get(bytes..bytes + 4).ok_or(Other::Short)?;
            kind = u16::from_be_bytes([tag[2], tag[3]]);
            bytes += 4;
        }
        match kind {
            ETHERNET_IPV4 | ETHERNET_IPV6 => Ok(Self { bytes, place }),
            _ => Err(Other::NotTcp),
        }
    }
}
