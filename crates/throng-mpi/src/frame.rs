//! Frames between the two processes of a rank, over a socket.
//!
//! A frame consists of its length (4 bytes), the rank that it comes from or goes to (4 bytes; [`TO_RELAY`] for the
//! local process), and its body. All numbers are little-endian.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};
use throng::record::ClockOffset;

/// Used instead of a rank for the process at the other end of the socket.
const TO_RELAY: u32 = u32::MAX;
/// Maximum frame length; a result with rows for a million clients needs a tenth of it.
const LONGEST: usize = 1 << 30;
/// Maximum bytes per read.
const READ_BYTES: usize = 64 << 10;
/// Size of the header: length and rank.
const HEAD: usize = 8;

/// Content of a frame.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Frame {
    /// A message from or to the worker of another rank, opaque here.
    Worker { rank: usize, body: Vec<u8> },
    /// A message between the two processes.
    Control(ControlMessage),
}

/// Messages between relay and worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ControlMessage {
    /// The relay's first message: the rank, the number of ranks, and the silence limit.
    Place {
        rank: usize,
        ranks: usize,
        silence_ms: u64,
    },
    /// Heartbeat, sent by both processes.
    Heartbeat,
    /// From the leading worker: compare the clocks of all ranks.
    Compare,
    /// The reply: offsets of the ranks that answered in time.
    Clocks(Vec<(usize, ClockOffset)>),
    /// From the relay: a rank is lost.
    Lost { rank: usize, reason: String },
    /// From the relay: the run is over.
    Exit,
}

impl Frame {
    fn encode(&self) -> io::Result<Vec<u8>> {
        let (rank, words);
        let body = match self {
            Self::Worker { rank: of, body } => {
                rank = u32::try_from(*of).map_err(io::Error::other)?;
                body
            }
            Self::Control(word) => {
                rank = TO_RELAY;
                words = serde_json::to_vec(word)?;
                &words
            }
        };
        let length = u32::try_from(body.len()).map_err(io::Error::other)?;
        let mut bytes = Vec::with_capacity(HEAD + body.len());
        bytes.extend(length.to_le_bytes());
        bytes.extend(rank.to_le_bytes());
        bytes.extend(body);
        Ok(bytes)
    }

    fn decode(rank: u32, body: Vec<u8>) -> io::Result<Self> {
        if rank == TO_RELAY {
            return Ok(Self::Control(serde_json::from_slice(&body)?));
        }
        let index = rank as usize;
        Ok(Self::Worker { rank: index, body })
    }
}

/// Writes a frame to a blocking socket.
pub(crate) fn write(to: &mut impl Write, frame: &Frame) -> io::Result<()> {
    to.write_all(&frame.encode()?)
}

/// Decodes frames from a stream.
#[derive(Debug)]
pub(crate) struct Reader {
    /// Reused buffer, since reads are frequent and mostly return nothing.
    arriving: Box<[u8]>,
    bytes: Vec<u8>,
    /// Offset of the next frame.
    from: usize,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            arriving: vec![0; READ_BYTES].into_boxed_slice(),
            bytes: Vec::new(),
            from: 0,
        }
    }
}

impl Reader {
    /// Reads once; false at the end of the stream.
    pub(crate) fn fill(&mut self, stream: &mut impl Read) -> io::Result<bool> {
        let read = stream.read(&mut self.arriving)?;
        self.bytes.drain(..self.from);
        self.from = 0;
        self.bytes.extend_from_slice(&self.arriving[..read]);
        Ok(read != 0)
    }

    /// The next complete frame.
    pub(crate) fn next(&mut self) -> io::Result<Option<Frame>> {
        let bytes = &self.bytes[self.from..];
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let [length, rank] = [&head[..4], &head[4..]].map(|number| {
            number
                .iter()
                .rev()
                .fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte))
        });
        let count = length as usize;
        if count > LONGEST {
            return Err(io::Error::other("a frame of the other process has no end"));
        }
        let Some(body) = rest.get(..count) else {
            return Ok(None);
        };
        let frame = Frame::decode(rank, body.to_vec())?;
        self.from += HEAD + count;
        Ok(Some(frame))
    }
}

/// Queued output to a non-blocking socket.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
    written: usize,
}

impl Writer {
    pub(crate) fn push(&mut self, frame: &Frame) -> io::Result<()> {
        self.bytes.extend(frame.encode()?);
        Ok(())
    }

    /// Number of queued bytes.
    pub(crate) fn waiting(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Writes as much as the socket accepts.
    pub(crate) fn flush(&mut self, stream: &mut impl Write) -> io::Result<()> {
        while self.waiting() > 0 {
            match stream.write(&self.bytes[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => self.written += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.bytes.clear();
        self.written = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Vec<Frame> {
        let mail = |rank, length| Frame::Worker {
            rank,
            body: (0..length).map(|at| at as u8).collect(),
        };
        vec![
            Frame::Control(ControlMessage::Heartbeat),
            mail(3, 0),
            mail(4095, 200_000),
            Frame::Control(ControlMessage::Lost {
                rank: 7,
                reason: "ü".to_owned(),
            }),
        ]
    }

    #[test]
    fn frames_are_decoded_wherever_the_stream_is_cut() {
        let mut stream = Vec::new();
        for frame in frames() {
            write(&mut stream, &frame).unwrap();
        }
        for cut in [1, 7, 8, 9, 64, 4096, stream.len()] {
            let mut reader = Reader::default();
            let mut received = Vec::new();
            // Small pieces of a long frame would be slow.
            let pieces = stream[..stream.len().min(cut * 300)].chunks(cut);
            for mut piece in pieces {
                assert!(reader.fill(&mut piece).unwrap());
                while let Some(frame) = reader.next().unwrap() {
                    received.push(frame);
                }
            }
            assert_eq!(received, frames()[..received.len()]);
            assert!(received.len() >= 2, "{cut}");
        }
        assert!(
            !Reader::default().fill(&mut io::empty()).unwrap(),
            "the end"
        );
    }

    #[test]
    fn a_malformed_frame_is_an_error() {
        let mut reader = Reader::default();
        assert!(reader.fill(&mut [0xff_u8; 16].as_slice()).unwrap());
        assert!(reader.next().is_err(), "too long");
        let mut reader = Reader::default();
        let bytes = [2, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, b'{', b'}'];
        assert!(reader.fill(&mut bytes.as_slice()).unwrap());
        assert!(reader.next().is_err(), "no word");
    }

    /// Accepts three bytes per call, and none in every second call.
    struct Narrow(Vec<u8>, bool);

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let taken = &bytes[..bytes.len().min(3)];
            self.0.extend(taken);
            Ok(taken.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn output_waits_until_the_socket_accepts_it() {
        let (mut writer, mut narrow) = (Writer::default(), Narrow(Vec::new(), false));
        let mut whole = Vec::new();
        for frame in [&frames()[0], &frames()[3]] {
            writer.push(frame).unwrap();
            write(&mut whole, frame).unwrap();
        }
        while writer.waiting() > 0 {
            writer.flush(&mut narrow).unwrap();
        }
        assert_eq!(narrow.0, whole);
    }
}
