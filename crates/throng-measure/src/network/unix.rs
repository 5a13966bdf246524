//! The messages of sock_diag(7) about listening unix sockets, as bytes; pure.
//!
//! Layouts are those of `<linux/unix_diag.h>`.

use std::os::unix::fs::MetadataExt as _;

use rustix::fs::{major, minor};
use throng_spec::UnixPath;

use super::message::{State, each_attribute, header, u32_at};

/// Bytes of `unix_diag_req` and `unix_diag_msg`.
const QUESTION: usize = 24;
const SOCKET: usize = 16;
/// `UDIAG_SHOW_NAME`, `UDIAG_SHOW_VFS` and `UDIAG_SHOW_RQLEN`.
const SHOW: u32 = 0x1 | 0x2 | 0x10;
/// `UNIX_DIAG_NAME`, `UNIX_DIAG_VFS` and `UNIX_DIAG_RQLEN`.
const NAME: u16 = 0;
const FILE: u16 = 1;
const QUEUE: u16 = 4;
/// Bits of the minor number in the kernel's own device numbers.
const MINOR_BITS: u32 = 20;

/// A listening unix socket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnixListener {
    /// Its bound address: a path, perhaps relative, or a zero byte and an abstract name.
    name: Vec<u8>,
    /// The inode of its file, and its device.
    file: Option<(u32, u32)>,
    /// Length of the accept queue.
    pub waiting: u32,
    /// Its backlog. One more than this may wait.
    pub backlog: u32,
}

impl UnixListener {
    /// Whether clients reach it at this address.
    pub fn is_at(&self, path: &UnixPath) -> bool {
        let Some(file) = path.file() else {
            let name = path.written();
            let abstract_name = self.name.strip_prefix(b"\0");
            return abstract_name == Some(name.trim_start_matches('@').as_bytes());
        };
        let Ok(file) = std::fs::metadata(file) else {
            return false;
        };
        let device = major(file.dev()) << MINOR_BITS | minor(file.dev());
        self.file == Some((file.ino() as u32, device))
    }
}

/// The request for all listening unix sockets.
pub(super) fn encode(sequence: u32) -> Vec<u8> {
    let mut bytes = header(QUESTION, sequence);
    bytes.extend([libc::AF_UNIX as u8, 0, 0, 0]);
    bytes.extend(State::Listen.bit().to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes()); // of any inode
    bytes.extend(SHOW.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes
}

/// Parses one listening unix socket.
pub(super) fn listener(body: &[u8]) -> Option<UnixListener> {
    let mut listener = UnixListener::default();
    each_attribute(body.get(SOCKET..)?, |kind, content| match kind {
        NAME => listener.name = content.to_vec(),
        FILE => listener.file = u32_at(content, 0).zip(u32_at(content, 4)),
        QUEUE => {
            listener.waiting = u32_at(content, 0).unwrap_or(0);
            listener.backlog = u32_at(content, 4).unwrap_or(0);
        }
        _ => {}
    })?;
    Some(listener)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_question_is_laid_out_as_the_kernel_reads_it() {
        let bytes = encode(5);
        assert_eq!(bytes.len(), 40);
        assert_eq!(bytes[16..20], [1, 0, 0, 0]);
        assert_eq!(u32_at(&bytes, 20), Some(1 << 10));
        assert_eq!(u32_at(&bytes, 28), Some(0x13));
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = listener(&bytes);
        }
    }
}
