//! Messages of gRPC: a message is the body of a request or a reply, after a head of five bytes.

use super::super::wrong::{Fault, WrongReply, wrong};

/// The Content-Type of requests and replies; longer ones name an encoding after it.
pub(super) const CONTENT_TYPE: &str = "application/grpc";

/// Length of what comes before a message: whether it is compressed, and its length.
pub(super) const HEAD: usize = 5;

/// What comes before a message.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MessageHead([u8; HEAD]);

impl MessageHead {
    /// Keeps its part of the bytes of a body, which begin at byte `at`.
    pub(super) fn keep(&mut self, at: u64, content: &[u8]) {
        let rest = self.0.iter_mut().skip(at as usize);
        rest.zip(content).for_each(|(kept, byte)| *kept = *byte);
    }

    fn length(self) -> u64 {
        let [_, length @ ..] = self.0;
        u32::from_be_bytes(length).into()
    }

    pub(super) fn is_compressed(self) -> bool {
        self.0[0] != 0
    }

    /// Whether a body of `bytes` bytes is this message and nothing else.
    pub(super) fn is_all_of(self, bytes: u64) -> bool {
        bytes == HEAD as u64 + self.length()
    }

    /// Checks the body of a successful reply.
    pub(super) fn check(self, bytes: u64) -> Result<(), WrongReply> {
        if self.is_compressed() {
            let what = "the message is compressed, which the client does not accept".to_owned();
            return wrong(Fault::Message, what);
        }
        if !self.is_all_of(bytes) {
            let what = match bytes {
                0 => "the call succeeded without a message".to_owned(),
                _ => format!(
                    "a body of {bytes} bytes has a message of {} bytes after its head of {HEAD}",
                    self.length()
                ),
            };
            return wrong(Fault::Message, what);
        }
        Ok(())
    }

    /// What comes before the text of a built-in server within such a message.
    pub(super) fn field_head(self) -> Vec<u8> {
        let length = self.length() as usize;
        let texts = (2..=6).filter_map(|head| length.checked_sub(head));
        let mut heads = texts.map(|text| (field_head(text), text));
        let head = heads.find(|(head, text)| head.len() + text == length);
        head.map_or_else(Vec::new, |(head, _)| head)
    }
}

/// The part of a body that belongs to the message, and at which of its bytes that begins.
pub(super) fn of_message(at: u64, content: &[u8]) -> (u64, &[u8]) {
    let head = (HEAD as u64).saturating_sub(at) as usize;
    let content = content.get(head..).unwrap_or_default();
    ((at + head as u64).saturating_sub(HEAD as u64), content)
}

/// A message as a body.
pub(super) fn body(message: &[u8]) -> Vec<u8> {
    let mut body = vec![0];
    body.extend_from_slice(&(message.len() as u32).to_be_bytes());
    body.extend_from_slice(message);
    body
}

/// The head of a field with a text of this length: number 1, bytes.
fn field_head(length: usize) -> Vec<u8> {
    let mut head = vec![1 << 3 | 2];
    let mut left = length;
    while left > 0x7f {
        head.push(left as u8 | 0x80);
        left >>= 7;
    }
    head.push(left as u8);
    head
}

/// What comes before the text of a built-in server in its reply.
pub(super) fn lead(size: usize) -> Vec<u8> {
    let field = field_head(size);
    let mut lead = vec![0];
    lead.extend_from_slice(&((field.len() + size) as u32).to_be_bytes());
    lead.extend_from_slice(&field);
    lead
}

/// Status of a successful call.
pub(super) const OK: u16 = 0;
/// Status of a call whose message cannot be read.
pub(super) const INTERNAL: u16 = 13;
/// Status of a call whose message is compressed, for a server that cannot do that.
pub(super) const UNIMPLEMENTED: u16 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_a_message_arrives_in_any_pieces() {
        let wire = body(b"hello");
        for cut in 0..wire.len() {
            let mut head = MessageHead::default();
            let mut message = Vec::new();
            for (at, piece) in [(0, &wire[..cut]), (cut as u64, &wire[cut..])] {
                head.keep(at, piece);
                let (place, content) = of_message(at, piece);
                assert_eq!(place, message.len() as u64);
                message.extend_from_slice(content);
            }
            assert_eq!((head.length(), head.check(10)), (5, Ok(())));
            assert_eq!(message, b"hello");
            assert!(head.check(9).is_err());
        }
    }

    #[test]
    fn a_reply_tells_the_head_of_its_text() {
        for size in [0, 1, 127, 128, 129, 1000, 16_383, 16_384, 3_000_000] {
            let lead = lead(size);
            let mut head = MessageHead::default();
            head.keep(0, &lead);
            assert_eq!(head.field_head(), lead[HEAD..], "{size}");
            assert!(head.is_all_of((lead.len() + size) as u64));
        }
        // No text has this length together with its head.
        let mut head = MessageHead::default();
        head.keep(0, &[0, 0, 0, 0, 130]);
        assert_eq!(head.field_head(), b"");
    }

    #[test]
    fn a_message_that_is_compressed_is_named() {
        let mut head = MessageHead::default();
        head.keep(0, &[1, 0, 0, 0, 0]);
        assert!(head.check(5).unwrap_err().what.contains("compressed"));
    }
}
