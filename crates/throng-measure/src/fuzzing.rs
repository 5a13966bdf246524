//! All parsers of foreign input, in one place for `fuzz`.

use std::io;

use super::host::cpu::{fields, mean_of};
use super::host::details::{of_process, threads_in, without_secrets};
use super::network::counters::{named, paired, socket_slab_pages};
use super::network::message::{self, Message};
use super::probes::machine::Ticks;
use crate::processes::control_group::{count, mounted};
use crate::servers::announced::{listening_address, reports_taken_port};

/// Parses a text as each kernel file in turn and as a server's output; returns the number of values found.
pub fn text(text: &str) -> usize {
    let _ = (
        threads_in(text),
        reports_taken_port(text),
        without_secrets(text),
    );
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

/// Parses bytes as the kernel's answer about sockets; returns the number of sockets.
///
/// # Errors
/// When they are not such an answer, or are an error of the kernel.
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
