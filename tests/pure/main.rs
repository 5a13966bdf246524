//! Tests without processes: tables, pages and schemas agree with the code, and layers are kept.
#![expect(
    clippy::shadow_unrelated,
    reason = "a test looks at several cases in turn"
)]

mod agreement;
mod documented;
mod fuzz;
mod layering;
mod metrics;
mod pages;
mod posix;
mod readme;
mod schemas;
mod supply;
mod typed;
mod words;

#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "other test programs use the rest")]
mod support;
