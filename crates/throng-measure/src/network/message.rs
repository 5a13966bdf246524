//! The messages of sock_diag(7) about TCP, as bytes: a request, and the sockets in its answer; pure.
//!
//! Layouts are those of `<linux/netlink.h>`, `<linux/sock_diag.h>`, `<linux/inet_diag.h>` and `<linux/tcp.h>`. The
//! kernel only appends to them, so a shorter message is from an older kernel, and missing values are absent.

use std::io;
use std::net::{IpAddr, SocketAddr};

/// `SOCK_DIAG_BY_FAMILY`, both the request and a socket in the answer.
const BY_FAMILY: u16 = 20;
/// `NLMSG_ERROR` and `NLMSG_DONE`.
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
/// Bytes of `nlmsghdr`, `inet_diag_req_v2` and `inet_diag_msg`.
const HEADER: usize = 16;
const QUESTION: usize = 56;
const SOCKET: usize = 72;
/// `INET_DIAG_INFO` and `INET_DIAG_SKMEMINFO`.
const INFO: u16 = 2;
const MEMORY: u16 = 7;
const TCP: u8 = 6;

/// The state of a TCP socket, as `<net/tcp_states.h>` numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    Established = 1,
    SynReceived = 3,
    FinWait1 = 4,
    FinWait2 = 5,
    CloseWait = 8,
    LastAck = 9,
    Listen = 10,
    Closing = 11,
}

impl State {
    /// Its bit in a set of states.
    pub const fn bit(self) -> u32 {
        1 << self as u8
    }
}

/// The sockets to list, and their attributes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Question {
    pub ipv6: bool,
    /// Bits of [`State`].
    pub states: u32,
    /// The socket's own port; 0 for any. The kernel compares both ports itself, which is faster than bytecode.
    pub local_port: u16,
    /// Its peer's port; 0 for any.
    pub remote_port: u16,
    /// Whether to include `tcp_info`.
    pub info: bool,
    /// Whether to include the memory of its buffers, and its dropped packets.
    pub memory: bool,
}

/// The header of a request, followed by `bytes` bytes.
pub(super) fn header(bytes: usize, sequence: u32) -> Vec<u8> {
    let mut head = Vec::with_capacity(HEADER + bytes);
    head.extend(((HEADER + bytes) as u32).to_ne_bytes());
    head.extend(BY_FAMILY.to_ne_bytes());
    head.extend(DUMP.to_ne_bytes());
    head.extend(sequence.to_ne_bytes());
    head.extend(0_u32.to_ne_bytes());
    head
}

/// A request for the kernel.
pub(super) fn encode(question: &Question, sequence: u32) -> Vec<u8> {
    let family = if question.ipv6 {
        libc::AF_INET6
    } else {
        libc::AF_INET
    };
    let mut extensions = 0_u8;
    for (wanted, kind) in [(question.info, INFO), (question.memory, MEMORY)] {
        extensions |= u8::from(wanted) << (kind - 1);
    }
    let mut bytes = header(QUESTION, sequence);
    bytes.extend([family as u8, TCP, extensions, 0]);
    bytes.extend(question.states.to_ne_bytes());
    bytes.extend(question.local_port.to_be_bytes());
    bytes.extend(question.remote_port.to_be_bytes());
    bytes.resize(HEADER + QUESTION, 0);
    bytes
}

/// One socket.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Socket {
    /// One of the numbers of [`State`].
    pub state: u8,
    /// Listening: length of the accept queue. Otherwise: unread bytes.
    pub receive_queue: u32,
    /// Listening: limit of the accept queue. Otherwise: unacknowledged bytes.
    pub send_queue: u32,
    /// Whether a process has it open: false before it is accepted and after it was closed.
    pub is_held: bool,
    pub info: Option<Info>,
    /// Kernel memory of its buffers.
    pub buffer_bytes: Option<u64>,
    /// Dropped packets; for a listening socket, dropped handshakes (`SK_MEMINFO_DROPS`, since Linux 4.7).
    pub dropped: Option<u32>,
}

/// The part of `tcp_info` that is used here.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Info {
    /// Smoothed round-trip time.
    pub rtt_us: u32,
    /// Its mean deviation.
    pub rtt_variation_us: u32,
    /// Congestion window.
    pub window_segments: u32,
    /// Segments retransmitted in total.
    pub retransmits: u32,
    /// Since Linux 4.9.
    pub delivery_rate_bytes_per_s: Option<u64>,
}

/// One message of an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Message<T> {
    Socket(T),
    /// The answer is complete.
    Done,
    /// Irrelevant.
    Other,
}

/// Takes the next message from the front of the received bytes and parses it with `read`; `None` at the end.
///
/// # Errors
/// An error of the kernel, or an invalid message.
pub(crate) fn next<T>(
    received: &mut &[u8],
    read: impl FnOnce(&[u8]) -> Option<T>,
) -> io::Result<Option<Message<T>>> {
    let bytes = *received;
    if bytes.is_empty() {
        return Ok(None);
    }
    let length = u32_at(bytes, 0).ok_or_else(damaged)? as usize;
    if length < HEADER || length > bytes.len() {
        return Err(damaged());
    }
    *received = &bytes[length.next_multiple_of(4).min(bytes.len())..];
    let body = &bytes[HEADER..length];
    match u16_at(bytes, 4) {
        Some(BY_FAMILY) => Ok(Some(Message::Socket(read(body).ok_or_else(damaged)?))),
        Some(kind @ (ERROR | DONE)) => {
            let error = u32_at(body, 0).map_or(0, u32::cast_signed);
            if error < 0 {
                let positive = error.checked_neg().ok_or_else(damaged)?;
                return Err(io::Error::from_raw_os_error(positive));
            }
            let message = if kind == DONE {
                Message::Done
            } else {
                Message::Other
            };
            Ok(Some(message))
        }
        _ => Ok(Some(Message::Other)),
    }
}

fn damaged() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the kernel's answer is truncated",
    )
}

/// Parses a TCP socket.
pub(crate) fn socket(body: &[u8]) -> Option<Socket> {
    let mut socket = Socket {
        state: *body.get(1)?,
        receive_queue: u32_at(body, 56)?,
        send_queue: u32_at(body, 60)?,
        is_held: u32_at(body, 68)? != 0, // its inode
        ..Socket::default()
    };
    each_attribute(body.get(SOCKET..)?, |kind, content| match kind {
        INFO => socket.info = info(content),
        MEMORY => {
            socket.buffer_bytes = buffer_bytes(content);
            socket.dropped = u32_at(content, 8 * 4);
        }
        _ => {}
    })?;
    Some(socket)
}

/// Parses the inode and the local address of a TCP socket.
pub(crate) fn named(body: &[u8]) -> Option<(u64, SocketAddr)> {
    let port = u16::from_be_bytes(body.get(4..6)?.try_into().ok()?);
    let address: [u8; 16] = body.get(8..24)?.try_into().ok()?;
    let ip = if libc::c_int::from(*body.first()?) == libc::AF_INET6 {
        IpAddr::from(address)
    } else {
        IpAddr::from([address[0], address[1], address[2], address[3]])
    };
    let inode = u32_at(body, 68)?;
    Some((inode.into(), SocketAddr::new(ip, port)))
}

/// Passes kind and content of each attribute to `take`; stops at a truncated one.
pub(super) fn each_attribute(
    mut attributes: &[u8],
    mut take: impl FnMut(u16, &[u8]),
) -> Option<()> {
    while attributes.len() >= 4 {
        let length = usize::from(u16_at(attributes, 0)?);
        take(u16_at(attributes, 2)?, attributes.get(4..length)?);
        attributes = &attributes[length.next_multiple_of(4).min(attributes.len())..];
    }
    Some(())
}

/// Parses `tcp_info`, at the offsets of its definition.
fn info(content: &[u8]) -> Option<Info> {
    Some(Info {
        rtt_us: u32_at(content, 68)?,
        rtt_variation_us: u32_at(content, 72)?,
        window_segments: u32_at(content, 80)?,
        retransmits: u32_at(content, 100)?,
        delivery_rate_bytes_per_s: content
            .get(160..168)
            .and_then(|bytes| bytes.try_into().ok())
            .map(u64::from_ne_bytes),
    })
}

/// Unread bytes, bytes queued to be sent or in flight, memory reserved for both, and options: `SK_MEMINFO_*` 0, 2, 4
/// and 6.
fn buffer_bytes(content: &[u8]) -> Option<u64> {
    let mut sum = 0;
    for place in [0, 2, 4, 6] {
        sum += u64::from(u32_at(content, place * 4)?);
    }
    Some(sum)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_ne_bytes(bytes.try_into().ok()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(((HEADER + body.len()) as u32).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(body);
        bytes
    }

    fn attribute(kind: u16, content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend((4 + content.len() as u16).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    /// A socket in CLOSE_WAIT with a queue on each side and these attributes.
    fn body(attributes: &[u8]) -> Vec<u8> {
        let mut body = vec![0; SOCKET];
        body[1] = State::CloseWait as u8;
        body[56..60].copy_from_slice(&7_u32.to_ne_bytes());
        body[60..64].copy_from_slice(&9_u32.to_ne_bytes());
        body.extend(attributes);
        body
    }

    #[test]
    fn a_question_is_laid_out_as_the_kernel_reads_it() {
        let question = Question {
            states: State::Established.bit() | State::Listen.bit(),
            local_port: 0x1f90,
            info: true,
            memory: true,
            ..Question::default()
        };
        let bytes = encode(&question, 5);
        assert_eq!(bytes.len(), 72);
        assert_eq!(u32_at(&bytes, 0), Some(72));
        assert_eq!(bytes[16..20], [2, 6, 0b100_0010, 0]);
        assert_eq!(u32_at(&bytes, 20), Some(0b100_0000_0010));
        assert_eq!(bytes[24..28], [0x1f, 0x90, 0, 0]);
    }

    #[test]
    fn a_socket_is_read_with_all_that_came_with_it() {
        let mut tcp_info = [0; 240];
        for (at, value) in [(68, 33_u32), (72, 12), (80, 10), (100, 4), (160, 5000)] {
            tcp_info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        let memory: Vec<u8> = (1..=9_u32).flat_map(u32::to_ne_bytes).collect();
        let attributes = [
            attribute(5, &[1]),
            attribute(INFO, &tcp_info),
            attribute(MEMORY, &memory),
        ];
        let bytes = [
            message(BY_FAMILY, &body(&attributes.concat())),
            message(DONE, &[0; 4]),
        ]
        .concat();
        let mut received = &bytes[..];
        let Some(Message::Socket(socket)) = next(&mut received, socket).unwrap() else {
            panic!("no socket");
        };
        assert_eq!(socket.state, State::CloseWait as u8);
        assert_eq!((socket.receive_queue, socket.send_queue), (7, 9));
        assert_eq!(socket.buffer_bytes, Some(1 + 3 + 5 + 7));
        assert_eq!(socket.dropped, Some(9));
        let info = socket.info.unwrap();
        assert_eq!((info.rtt_us, info.rtt_variation_us), (33, 12));
        assert_eq!((info.window_segments, info.retransmits), (10, 4));
        assert_eq!(info.delivery_rate_bytes_per_s, Some(5000));
        assert_eq!(
            next(&mut received, super::socket).unwrap(),
            Some(Message::Done)
        );
        assert_eq!(next(&mut received, super::socket).unwrap(), None);
    }

    #[test]
    fn an_older_kernel_reports_less() {
        let attributes = attribute(INFO, &[1; 104]);
        let bytes = message(BY_FAMILY, &body(&attributes));
        let Some(Message::Socket(socket)) = next(&mut &bytes[..], socket).unwrap() else {
            panic!("no socket");
        };
        assert_eq!(socket.info.unwrap().delivery_rate_bytes_per_s, None);
        assert_eq!(socket.buffer_bytes, None);
    }

    #[test]
    fn a_refusal_is_the_error_that_it_names() {
        let bytes = message(ERROR, &(-2_i32).to_ne_bytes());
        let error = next(&mut &bytes[..], socket).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(2));
    }

    /// A regression test: negating it overflowed.
    #[test]
    fn the_least_number_is_no_error() {
        let bytes = message(ERROR, &i32::MIN.to_ne_bytes());
        let error = next(&mut &bytes[..], socket).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn truncated_messages_are_errors_at_any_byte() {
        let bytes = message(BY_FAMILY, &body(&attribute(INFO, &[1; 104])));
        for length in 1..bytes.len() {
            assert!(
                next(&mut &bytes[..length], socket).is_err(),
                "after {length} bytes"
            );
        }
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut received = &bytes[..];
            while let Ok(Some(_)) = next(&mut received, socket) {}
            let _ = socket(&bytes);
        }
    }
}
