//! Judgements that a busy machine may spoil, though nothing is wrong.

/// A defect shows each time; a disturbance of the machine does not.
const TRIES: usize = 8;

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
