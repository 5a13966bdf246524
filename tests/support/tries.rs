//! Judgements that a busy machine may spoil, though nothing is wrong.

use std::time::{Duration, Instant};

/// A defect shows each time; a disturbance of the machine does not.
const TRIES: usize = 8;

/// Time to wait before another look, if the first was then: the longer it took, the longer, since a look at all
/// processes or sockets of a busy machine keeps it busy.
pub(crate) fn pause(began: Instant) -> Duration {
    let half = began.elapsed() / 2;
    half.clamp(Duration::from_millis(5), Duration::from_millis(100))
}

/// Tries until it is as it should be.
pub(crate) fn once<T>(mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let mut faults = Vec::new();
    for _ in 0..TRIES {
        match attempt() {
            Ok(value) => return value,
            Err(fault) => faults.push(fault),
        }
    }
    panic!("none of {TRIES} tries: {faults:#?}")
}
