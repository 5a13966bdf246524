//! What takes root: networks of several hosts, captured packets, counters of the kernel, mounts. Each test that cannot
//! be done here says why and passes.

mod captures;
mod counters;
mod flows;
mod lab;
mod storage;

#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "other test programs use the rest")]
mod support;
