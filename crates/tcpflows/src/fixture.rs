//! Synthetic captures for tests.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::packet::{Endpoint, Identity, Segment, flag};

pub const SYN: u8 = flag::SYN;
pub const ACK: u8 = flag::ACK;
pub const FIN: u8 = flag::FIN;
pub const RST: u8 = flag::RST;

/// A packet to write: TCP over IP over some link.
#[derive(Debug, Clone, Copy)]
pub struct Packet {
    pub at_us: i64,
    pub by_client: bool,
    pub flags: u8,
    pub sequence: u32,
    pub acknowledged: u32,
    pub payload: u16,
    pub window: u16,
    /// Identification of the IP packet.
    pub number: u16,
    pub ipv6: bool,
}

/// A packet from the client at `at_us`, without payload.
pub fn by_client(at_us: i64, flags: u8, sequence: u32, acknowledged: u32) -> Packet {
    Packet {
        at_us,
        by_client: true,
        flags,
        sequence,
        acknowledged,
        payload: 0,
        window: 512,
        number: at_us as u16,
        ipv6: false,
    }
}

/// A packet from the server at `at_us`, without payload.
pub fn by_server(at_us: i64, flags: u8, sequence: u32, acknowledged: u32) -> Packet {
    Packet {
        by_client: false,
        ..by_client(at_us, flags, sequence, acknowledged)
    }
}

impl Packet {
    #[must_use]
    pub fn with(self, payload: u16) -> Self {
        Self { payload, ..self }
    }

    fn ends(&self) -> [(IpAddr, u16); 2] {
        let address = |last| {
            if self.ipv6 {
                IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last))
            } else {
                IpAddr::V4(Ipv4Addr::new(10, 0, 0, last as u8))
            }
        };
        let ends = [(address(1), 40_000), (address(2), 80)];
        if self.by_client {
            ends
        } else {
            [ends[1], ends[0]]
        }
    }

    pub fn segment(&self) -> Segment {
        let [from, to] = self
            .ends()
            .map(|(address, port)| Endpoint { address, port });
        Segment {
            time_ns: self.at_us * 1000,
            source: from,
            destination: to,
            sequence: self.sequence,
            acknowledged: self.acknowledged,
            flags: self.flags,
            window: self.window,
            payload_bytes: self.payload.into(),
            wire_bytes: 54 + u32::from(self.payload),
            identity: Identity {
                hash: 0,
                numbered: true,
                place: 0,
            },
        }
    }

    /// The bytes of the packet from its IP header on.
    pub fn ip(&self) -> Vec<u8> {
        let [from, to] = self.ends();
        let mut tcp = Vec::new();
        tcp.extend(from.1.to_be_bytes());
        tcp.extend(to.1.to_be_bytes());
        tcp.extend(self.sequence.to_be_bytes());
        tcp.extend(self.acknowledged.to_be_bytes());
        tcp.extend([5 << 4, self.flags]);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(vec![b'x'; self.payload.into()]);
        let length = tcp.len() as u16;
        let mut ip = Vec::new();
        match (from.0, to.0) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                ip.extend([0x45, 0]);
                ip.extend((length + 20).to_be_bytes());
                ip.extend(self.number.to_be_bytes());
                ip.extend([0x40, 0, 64, 6, 0, 0]);
                ip.extend(from.octets());
                ip.extend(to.octets());
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                ip.extend([0x60, 0, 0, 0]);
                ip.extend(length.to_be_bytes());
                ip.extend([6, 64]);
                ip.extend(from.octets());
                ip.extend(to.octets());
            }
            _ => unreachable!("both ends are of one kind"),
        }
        ip.extend(tcp);
        ip
    }

    /// The bytes of the packet with the header of link type `link`.
    pub fn on(&self, link: u32) -> Vec<u8> {
        let kind: [u8; 2] = if self.ipv6 { [0x86, 0xdd] } else { [8, 0] };
        let mut bytes = match link {
            0 => u32::from(if self.ipv6 { 10_u8 } else { 2 })
                .to_le_bytes()
                .to_vec(),
            108 => u32::from(if self.ipv6 { 30_u8 } else { 2 })
                .to_be_bytes()
                .to_vec(),
            1 => [&[1; 12][..], &kind].concat(),
            101 => Vec::new(),
            113 => [&[0, 0, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0][..], &kind].concat(),
            276 => [&kind[..], &[0; 18]].concat(),
            other => unreachable!("no header is known for {other}"),
        };
        bytes.extend(self.ip());
        bytes
    }
}

/// A complete connection: a request of 100 bytes, a reply of 1000, and FINs.
pub fn connection() -> Vec<Packet> {
    vec![
        by_client(0, SYN, 1000, 0),
        by_server(100, SYN | ACK, 5000, 1001),
        by_client(150, ACK, 1001, 5001),
        by_client(200, ACK, 1001, 5001).with(100),
        by_server(300, ACK, 5001, 1101).with(1000),
        by_client(350, ACK | FIN, 1101, 6001),
        by_server(400, ACK | FIN, 6001, 1102),
        by_client(450, ACK, 1102, 6002),
    ]
}

/// How a file is written.
pub struct Writing {
    pub big_endian: bool,
    pub nanoseconds: bool,
    pub link: u32,
    /// Maximum captured bytes per packet.
    pub snap: usize,
}

/// Little-endian, microseconds, Ethernet, no limit.
pub const USUAL: Writing = Writing {
    big_endian: false,
    nanoseconds: false,
    link: 1,
    snap: 65_535,
};

impl Writing {
    fn u16(&self, value: u16) -> [u8; 2] {
        if self.big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    fn u32(&self, value: u32) -> [u8; 4] {
        if self.big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    /// A pcap file.
    pub fn pcap(&self, packets: &[Packet]) -> Vec<u8> {
        let mut file = Vec::new();
        let magic = if self.nanoseconds {
            0xa1b2_3c4d
        } else {
            0xa1b2_c3d4
        };
        file.extend(self.u32(magic));
        file.extend(self.u16(2));
        file.extend(self.u16(4));
        for value in [0, 0, self.snap as u32, self.link] {
            file.extend(self.u32(value));
        }
        for packet in packets {
            let bytes = packet.on(self.link);
            let kept = bytes.len().min(self.snap);
            let fraction = (packet.at_us % 1_000_000) as u32;
            let fraction = if self.nanoseconds {
                fraction * 1000
            } else {
                fraction
            };
            let seconds = (packet.at_us / 1_000_000) as u32;
            for value in [seconds, fraction, kept as u32, bytes.len() as u32] {
                file.extend(self.u32(value));
            }
            file.extend(&bytes[..kept]);
        }
        file
    }

    fn block(&self, kind: u32, body: &[u8]) -> Vec<u8> {
        let padded = body.len().next_multiple_of(4);
        let length = self.u32(padded as u32 + 12);
        let padding = vec![0; padded - body.len()];
        [&self.u32(kind), &length, body, &padding, &length].concat()
    }

    fn option(&self, number: u16, value: &[u8]) -> Vec<u8> {
        let padding = vec![0; value.len().next_multiple_of(4) - value.len()];
        let (number, length) = (self.u16(number), self.u16(value.len() as u16));
        [&number[..], &length, value, &padding].concat()
    }

    /// A pcapng file with a count of 7 packets dropped by the kernel, and with blocks to skip.
    pub fn pcapng(&self, packets: &[Packet]) -> Vec<u8> {
        let section = [
            &self.u32(0x1a2b_3c4d)[..],
            &self.u16(1),
            &self.u16(0),
            &[0xff; 8],
        ]
        .concat();
        let power = if self.nanoseconds { 9 } else { 6 };
        let interface = [
            &self.u16(self.link as u16)[..],
            &[0; 2],
            &self.u32(self.snap as u32),
            &self.option(9, &[power]),
            &self.option(0, &[]),
        ];
        let mut file = self.block(0x0a0d_0d0a, &section);
        file.extend(self.block(1, &interface.concat()));
        file.extend(self.block(0x0bad, b"nobody knows"));
        for packet in packets {
            let bytes = packet.on(self.link);
            let kept = bytes.len().min(self.snap);
            let scale = if self.nanoseconds { 1000 } else { 1 };
            let time = packet.at_us as u64 * scale;
            let fields: Vec<u8> = [
                0,
                (time >> 32) as u32,
                time as u32,
                kept as u32,
                bytes.len() as u32,
            ]
            .into_iter()
            .flat_map(|field| self.u32(field))
            .collect();
            file.extend(self.block(6, &[&fields[..], &bytes[..kept]].concat()));
        }
        let seven: [u8; 8] = if self.big_endian {
            7_u64.to_be_bytes()
        } else {
            7_u64.to_le_bytes()
        };
        file.extend(self.block(5, &[&[0; 12][..], &self.option(5, &seven)].concat()));
        file
    }
}
