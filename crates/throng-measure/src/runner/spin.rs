//! The speed of the CPUs, measured by a fixed loop.
//!
//! In a virtual machine a neighbour on the same core takes time that no counter shows: the same loop then takes up to
//! twice as long. Measured before and after each trial, it shows which trials were affected.

use std::hint::black_box;
use std::io;
use std::thread::{Builder, ScopedJoinHandle};
use std::time::Instant;

use throng_sys::process::bind_to;

/// Steps of the loop, for about 2 ms; fewer in a debug build, where each takes three times as long.
const STEPS: u32 = if cfg!(debug_assertions) {
    300_000
} else {
    1_000_000
};

/// Nanoseconds per step on the server's first CPU and on the clients' first CPU, measured at the same time.
pub(crate) fn of_both(server_cpus: &[u32], client_cpus: &[u32]) -> (f64, f64) {
    std::thread::scope(|scope| {
        let start = |cpu| Builder::new().spawn_scoped(scope, move || step_ns(cpu));
        let both = [server_cpus.first(), client_cpus.first()].map(start);
        let taken = |thread: io::Result<ScopedJoinHandle<'_, f64>>| {
            let spun = thread.ok().map(ScopedJoinHandle::join);
            // If no thread can be started, the loop runs in this one.
            spun.and_then(Result::ok).unwrap_or_else(|| step_ns(None))
        };
        let [server, client] = both.map(taken);
        (server, client)
    })
}

fn step_ns(cpu: Option<&u32>) -> f64 {
    if let Some(cpu) = cpu {
        // If the thread cannot be bound, the loop runs anyway.
        let _ = bind_to(&[*cpu]);
    }
    let began = Instant::now();
    let mut state = black_box(0x9e37_79b9_7f4a_7c15_u64);
    let mut step = 0;
    // In a debug build, a range would take ten times as long.
    while step < STEPS {
        // Each step depends on the one before, so that only the clock frequency matters.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        step += 1;
    }
    black_box(state);
    began.elapsed().as_secs_f64() * 1e9 / f64::from(STEPS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cpu_has_a_pace() {
        let (server, client) = of_both(&[0], &[]);
        assert!(server > 0.0 && client > 0.0);
    }
}
