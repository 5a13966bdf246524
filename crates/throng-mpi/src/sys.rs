//! Messages that MPI sends or receives on its own: the only unsafe code of this crate.
//!
//! The buffer of such a message belongs to MPI until the message is complete, however long that takes, and forever if
//! the other end is dead. So the buffer is on the heap, has no owner that could drop it, and is returned only on
//! completion.
#![expect(unsafe_code, reason = "this module is where the unsafe code is kept")]

use mpi::point_to_point::Message;
use mpi::request::{Request, StaticScope};
use mpi::topology::Process;
use mpi::traits::Destination as _;

/// A message in transit.
pub(crate) struct Transfer {
    request: Option<Request<'static, [u8], StaticScope>>,
    buffer: *mut [u8],
}

impl Transfer {
    /// Starts to send `bytes`.
    pub(crate) fn send(to: &Process<'_>, bytes: Vec<u8>, tag: i32) -> Self {
        let buffer = Box::into_raw(bytes.into_boxed_slice());
        // SAFETY: the buffer was just leaked; nothing frees or writes it until `finish` has seen the
        // request complete, and never if that does not happen.
        let sent: &'static [u8] = unsafe { &*buffer };
        let request = to.immediate_send_with_tag(StaticScope, sent, tag);
        Self {
            request: Some(request),
            buffer,
        }
    }

    /// Starts to receive a message of `length` bytes that a probe has matched.
    pub(crate) fn receive(message: Message, length: usize) -> Self {
        let buffer = Box::into_raw(vec![0_u8; length].into_boxed_slice());
        // SAFETY: the buffer was just leaked; nothing else reads it until `finish` has seen the
        // request complete, and never if that does not happen.
        let bytes: &'static mut [u8] = unsafe { &mut *buffer };
        let request = message.immediate_matched_receive_into(StaticScope, bytes);
        Self {
            request: Some(request),
            buffer,
        }
    }

    /// The bytes once the message is complete, then `None`.
    pub(crate) fn finish(&mut self) -> Option<Vec<u8>> {
        match self.request.take()?.test() {
            // SAFETY: the request is complete and gone, and with it the only reference to the buffer;
            // it came from a box, and this runs only once since the request is taken.
            Ok(_) => Some(unsafe { Box::from_raw(self.buffer) }.into_vec()),
            Err(request) => {
                self.request = Some(request);
                None
            }
        }
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        // Dropping a request panics; the buffer stays MPI's.
        std::mem::forget(self.request.take());
    }
}
