//! The program under test.

/// Its path.
pub(crate) const THRONG: &str = env!("CARGO_BIN_EXE_throng");
