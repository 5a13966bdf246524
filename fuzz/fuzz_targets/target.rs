//! The program of every target: it is named after the one that it runs.

#![no_main]

use std::sync::OnceLock;

static BODY: OnceLock<fn(&[u8])> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    BODY.get_or_init(|| throng_fuzz::find(env!("CARGO_BIN_NAME")).body)(data);
});
