//! The only unsafe code: system interfaces without a safe wrapper in the standard library or `rustix`.
//!
//! Each file is a safe wrapper around one interface. Each unsafe block has a `SAFETY` comment.
#![expect(unsafe_code, reason = "this module is where the unsafe code is kept")]
#![cfg_attr(
    test,
    expect(
        clippy::shadow_unrelated,
        reason = "a test looks at several cases in turn"
    )
)]

pub mod aio;
#[cfg(target_os = "linux")]
pub mod calls;
#[cfg(target_os = "linux")]
pub mod clock;
pub mod completion_pipe;
#[cfg(target_os = "linux")]
pub mod descriptors;
pub mod flags;
pub mod fork;
#[cfg(target_os = "linux")]
pub mod network_namespace;
#[cfg(target_os = "linux")]
pub mod perf;
pub mod poll;
pub mod prefetch;
#[cfg(target_os = "linux")]
pub mod priority;
pub mod process;
#[cfg(target_os = "linux")]
pub mod ring;
#[cfg(target_os = "linux")]
pub mod samples;
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
