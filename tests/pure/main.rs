//! What needs no process: tables, pages and schemas say what the code says, and layers are kept.

mod documented;
mod fuzz;
mod layering;
mod metrics;
mod posix;
mod readme;
mod schemas;
mod supply;
mod words;

#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "other test programs use the rest")]
mod support;
