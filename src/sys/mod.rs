//! The only unsafe code: what the kernel offers and neither the standard library nor `rustix`
//! gives a safe name.
//!
//! Each file wraps one thing in a safe interface; each unsafe block says who keeps it true.
#![expect(unsafe_code, reason = "this module is where the unsafe code is kept")]

pub mod clock;
pub mod descriptors;
pub mod fork;
pub mod poll;
pub mod select;
pub mod shared;
pub mod signal;
pub mod spawn;
