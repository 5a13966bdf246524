//! TLS for clients: a [`Session`] stands between the bytes of a socket and those of a client, and has no socket itself.
//!
//! A load's engines drive a session for each connection; [`Stream`] drives one over a socket that blocks. What a
//! session needs comes from a [`Client`], which is made of a [`TlsSpec`](throng_record::spec::TlsSpec) once. What is
//! wrong with a server is a [`Fault`], which has a kind, and says in words what would help.

mod client;
mod fault;
#[cfg(feature = "fixture")]
pub mod fixture;
mod session;
mod stream;
mod tickets;
mod verifier;

pub use client::{Client, Sessions};
pub use fault::{Fault, Kind};
pub use session::{Agreed, Heard, Session};
pub use stream::{Stream, speaks_tls};
