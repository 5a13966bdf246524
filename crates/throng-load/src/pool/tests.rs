//! Clients with made-up time.

mod closed;
mod failures;
mod jobs;
mod open;
mod random;
mod slices;
mod world;
