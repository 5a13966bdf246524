//! Checks that may fail on a busy machine although nothing is wrong.

use std::time::{Duration, Instant};

/// Maximum number of tries. A defect shows in each of them; noise on the machine does not.
const TRIES: usize = 8;

/// Time to wait before the next check, if the first one was at `began`. It grows with the time since then, since
/// checking all processes or sockets of a busy machine keeps it busy.
pub(crate) fn pause(began: Instant) -> Duration {
    let half = began.elapsed() / 2;
    half.clamp(Duration::from_millis(5), Duration::from_millis(100))
}

/// Repeats an attempt until it succeeds.
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
