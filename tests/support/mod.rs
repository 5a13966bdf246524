//! Helpers that several test programs share.

pub(crate) mod group;
pub(crate) mod interpreter;
pub(crate) mod ledger;
pub(crate) mod load;
pub(crate) mod marked;
pub(crate) mod program;
pub(crate) mod runs;
pub(crate) mod schemas;
pub(crate) mod server;
pub(crate) mod sockets;
pub(crate) mod tries;
