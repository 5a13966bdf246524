//! TLS for clients: a [`Session`] is between the bytes of a socket and those of a client, and has no socket itself.
//!
//! A load's engines drive a session per connection; [`Stream`] drives one over a blocking socket. Sessions are
//! created by a [`Client`], which is created from a [`TlsSpec`](throng_record::spec::TlsSpec) once. A [`Fault`] of a
//! server has a kind, and a text with the remedy.

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
pub use session::{Negotiated, Session, SessionEvent};
pub use stream::{Stream, speaks_tls};
