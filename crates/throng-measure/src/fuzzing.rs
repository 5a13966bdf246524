//! What others say and throng takes apart by itself, all of it in one place: for whoever tries that with anything at
//! all, as `fuzz` does.

use std::io;

use super::announced::{listening_address, says_taken};
use super::control_group::{count, mounted};
use super::host::cpu::{fields, mean_of};
use super::host::details::{of_process, threads_in, without_secrets};
use super::network::counters::{named, paired, socket_slab_pages};
use super::network::message::{self, Message};
use super::probes::machine::Ticks;

/// A text, as if it were that of each file of the kernel in turn, and what a server writes; gives how many values were
/// found in it.
pub fn text(text: &str) -> usize {
    let _ = (threads_in(text), says_taken(text), without_secrets(text));
    let single = [
        socket_slab_pages(text).is_some(),
        Ticks::parse(text).is_some(),
        listening_address(text).is_some(),
        count(text, "max").is_some(),
        mean_of(text).is_some(),
    ];
    let of_counters = paired(text).count() + named(text).count();
    let of_groups = mounted(text, "pids").len() + of_process(text).len() + fields(text).len();
    of_counters + of_groups + single.into_iter().filter(|found| *found).count()
}

/// Bytes, as if the kernel had answered them to a question about sockets; gives how many sockets were found.
///
/// # Errors
/// When they are no such answer, or the kernel refuses one.
pub fn sockets(mut answer: &[u8]) -> io::Result<usize> {
    let mut sockets = 0;
    while let Some(message) = message::next(&mut answer, message::socket)? {
        match message {
            Message::Socket(_) => sockets += 1,
            Message::Done => break,
            Message::Other => {}
        }
    }
    Ok(sockets)
}
