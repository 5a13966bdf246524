//! TLS for clients: a [`Session`] sits between the bytes of a socket and those of a client, and has no socket itself.
//!
//! A load's engines drive a session per connection; [`Stream`] drives one over a blocking socket. A [`Client`], which
//! is created once from a [`TlsSpec`](throng_spec::TlsSpec), creates sessions. A [`Fault`] of a server has a
//! kind, and a text with the remedy.

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
