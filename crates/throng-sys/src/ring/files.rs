//! Sockets registered with a ring. Operations on them need neither look up a descriptor nor count references to the
//! open file.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, RawFd};

use io_uring::types::{Fd, Fixed};
use io_uring::{IoUring, opcode, squeue};
use rustix::process::{Resource, getrlimit};

use super::queues::SUBMISSIONS;
use super::{Kind, Ring};

/// Maximum number of registered sockets; the kernel needs 8 bytes per slot.
const MOST_PLACES: u32 = 32_768;

/// The socket of an operation: registered in the slot of its descriptor's number, or else the descriptor itself.
#[derive(Debug, Clone, Copy)]
pub struct Target(i32);

impl Target {
    fn registered(place: u32) -> Self {
        Self(place as i32)
    }

    fn descriptor(descriptor: RawFd) -> Self {
        Self(!descriptor)
    }

    fn place(self) -> Option<u32> {
        u32::try_from(self.0).ok()
    }

    /// The name that an operation uses.
    pub(super) fn file(self) -> Result<Fixed, Fd> {
        self.place().map(Fixed).ok_or(Fd(!self.0))
    }
}

/// No socket.
impl Default for Target {
    fn default() -> Self {
        Self::descriptor(-1)
    }
}

/// A socket by its descriptor.
impl<S: AsFd> From<&S> for Target {
    fn from(socket: &S) -> Self {
        Self::descriptor(socket.as_fd().as_raw_fd())
    }
}

/// The slots for registered sockets.
pub(super) struct Files {
    places: u32,
    /// Descriptors to register, kept until the kernel has read them: one more than it can have unread.
    updates: Box<[RawFd]>,
    next: usize,
}

impl Files {
    /// Registers empty slots if the kernel is recent. Before Linux 6.13, a socket stayed open until all earlier
    /// operations of the ring had ended. The feature flag that shows a recent kernel came with 6.15.
    pub(super) fn register(queue: &IoUring) -> Self {
        let limit = getrlimit(Resource::Nofile).current;
        let places = limit.map_or(MOST_PLACES, |limit| limit.min(MOST_PLACES.into()) as u32);
        let is_recent = queue.params().is_feature_no_iowait();
        let has_places =
            is_recent && places > 0 && queue.submitter().register_files_sparse(places).is_ok();
        Self {
            places: if has_places { places } else { 0 },
            updates: vec![0; SUBMISSIONS as usize + 1].into(),
            next: 0,
        }
    }

    /// Closes the sockets that are still registered. Otherwise, the kernel would do so some time after the ring is
    /// gone.
    pub(super) fn unregister(&self, queue: &IoUring) {
        if self.places > 0 {
            let _ = queue.submitter().unregister_files();
        }
    }
}

impl Ring {
    /// Registers a socket if there is a slot for it. The kernel then keeps the connection until the socket is closed
    /// and [released](Self::release).
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn adopt(&mut self, socket: impl AsFd) -> io::Result<Target> {
        let descriptor = socket.as_fd().as_raw_fd();
        match u32::try_from(descriptor) {
            Ok(place) if place < self.files.places => {
                self.set_file(place, descriptor)?;
                Ok(Target::registered(place))
            }
            _ => Ok(Target::descriptor(descriptor)),
        }
    }

    /// Ends the registration of a socket, with the next submission. Its operations must have ended.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn release(&mut self, target: Target) -> io::Result<()> {
        target
            .place()
            .map_or(Ok(()), |place| self.set_file(place, -1))
    }

    fn set_file(&mut self, place: u32, descriptor: RawFd) -> io::Result<()> {
        let Files { updates, next, .. } = &mut self.files;
        *next = (*next + 1) % updates.len();
        updates[*next] = descriptor;
        let update = opcode::FilesUpdate::new(&raw const updates[*next], 1)
            .offset(place as i32)
            .build()
            .flags(squeue::Flags::SKIP_SUCCESS);
        self.begin(&update.user_data(Kind::Update.with(place)))?;
        // Its completion is not awaited. If it fails, the operations that follow fail too.
        self.unfinished -= 1;
        Ok(())
    }
}
