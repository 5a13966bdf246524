//! Requests that take CPU time before their replies, as those of most real services do.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use throng_protocol::{ProtocolError, Session, Step};

/// Steps of one measurement of their duration, and the number of measurements. The shortest counts: in the others,
/// something else had the CPU.
const STEPS: u64 = 100_000;
const MEASUREMENTS: usize = 20;

/// A session whose requests each take this many steps of a loop.
pub(super) struct Working {
    session: Box<dyn Session>,
    steps: u64,
}

impl Working {
    /// The same session, with this CPU time per request. The number of steps is fixed at the first call, so that a
    /// thread that waits for a CPU does no less work.
    pub(super) fn of(session: Box<dyn Session>, time: Duration) -> Self {
        static STEPS_PER_NS: OnceLock<f64> = OnceLock::new();
        let steps_per_ns = STEPS_PER_NS.get_or_init(measured);
        Self {
            session,
            steps: (time.as_nanos() as f64 * steps_per_ns) as u64,
        }
    }
}

impl Session for Working {
    fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Step, ProtocolError> {
        let step = self.session.receive(input, out)?;
        for _ in 0..step.requests {
            work(self.steps);
        }
        Ok(step)
    }

    fn is_within_request(&self) -> bool {
        self.session.is_within_request()
    }
}

/// Steps per nanosecond.
fn measured() -> f64 {
    let took = (0..MEASUREMENTS).map(|_| {
        let before = Instant::now();
        work(STEPS);
        before.elapsed()
    });
    let shortest = took.min().unwrap_or_default();
    STEPS as f64 / shortest.as_nanos().max(1) as f64
}

/// Keeps the CPU busy. Each step depends on the one before.
fn work(steps: u64) {
    let mut value = black_box(steps | 1);
    for _ in 0..steps {
        value = value.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17);
    }
    black_box(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers every byte as a request of its own.
    struct Bytes;

    impl Session for Bytes {
        fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Step, ProtocolError> {
            out.extend_from_slice(input);
            Ok(Step {
                consumed: input.len(),
                requests: input.len() as u64,
                ..Step::default()
            })
        }

        fn is_within_request(&self) -> bool {
            false
        }
    }

    #[test]
    fn each_request_takes_its_steps_and_the_answer_is_the_same() {
        let mut session = Working::of(Box::new(Bytes), Duration::from_micros(100));
        assert!(session.steps > 1000, "{}", session.steps);
        let mut out = Vec::new();
        let step = session.receive(b"abc", &mut out).unwrap();
        assert_eq!((step.requests, out.as_slice()), (3, &b"abc"[..]));
        let twice = Working::of(Box::new(Bytes), Duration::from_micros(200));
        assert!(twice.steps.abs_diff(2 * session.steps) <= 2);
    }
}
