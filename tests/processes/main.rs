//! Real servers and loads, as a user has them.
#![expect(
    clippy::shadow_unrelated,
    reason = "a test looks at several cases in turn"
)]

mod book;
mod cli;
mod compare;
mod exactness;
mod hostile;
mod images;
mod limit;
mod record;
mod reproduce;
mod resume;
mod security;
mod services;
mod situations;
mod studies;

#[path = "../support/mod.rs"]
mod support;
