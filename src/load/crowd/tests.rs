//! Clients on made-up time.

mod closed;
mod failures;
mod open;
mod random;
mod world;
