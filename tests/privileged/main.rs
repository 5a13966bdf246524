//! Tests that need root: networks of several hosts, captured packets, kernel counters, mounts. Each test that cannot
//! run here prints why and passes.
#![expect(
    clippy::shadow_unrelated,
    reason = "a test looks at several cases in turn"
)]

mod captures;
mod counters;
mod flows;
mod lab;
mod loss;
mod quotas;
mod stopping;
mod storage;

#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "other test programs use the rest")]
mod support;
