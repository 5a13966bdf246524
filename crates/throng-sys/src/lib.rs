//! The only unsafe code: system interfaces without a safe wrapper in the standard library or `rustix`.
//!
//! Each file wraps one interface safely; each unsafe block says who keeps it sound.
#![expect(unsafe_code, reason = "this module is where the unsafe code is kept")]

pub mod aio;
#[cfg(target_os = "linux")]
pub mod clock;
pub mod completion_pipe;
#[cfg(target_os = "linux")]
pub mod descriptors;
pub mod flags;
pub mod fork;
#[cfg(target_os = "linux")]
pub mod perf;
pub mod poll;
#[cfg(target_os = "linux")]
pub mod priority;
pub mod process;
#[cfg(target_os = "linux")]
pub mod ring;
pub mod select;
pub mod shared;
pub mod signal;
#[cfg(target_os = "linux")]
pub mod socket;
#[cfg(target_os = "linux")]
pub mod spawn;
#[cfg(target_os = "linux")]
pub mod trace;
#[cfg(target_os = "linux")]
pub mod wait;
