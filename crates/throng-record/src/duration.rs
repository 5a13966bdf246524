//! How long trials are expected to take, before any was measured.

use std::time::Duration;

use throng_spec::{LoadSpec, Until};

use super::Purpose;

/// The overhead of a trial: starting, verifying, connecting, sampling and stopping.
const OF_A_TRIAL: Duration = Duration::from_millis(450);
/// Additional time per client for connecting and sampling.
const OF_A_CLIENT: Duration = Duration::from_micros(100);
/// How long servers that are measured side by side usually take to be level.
const USUAL_WARM_UP_IN_SLICES: Duration = Duration::from_millis(1200);
/// The most bytes per second that loopback can carry.
const CARRIED_PER_S: f64 = 4e9;
/// Longest measurement of a trial with packet capture: long enough for flow statistics, and short enough for a file
/// that can still be opened.
const CAPTURED: Duration = Duration::from_secs(3);
/// Minimum measurement of a trial that counts events, if the timed one is longer.
const COUNTED: Duration = Duration::from_millis(500);

/// The measurement duration of a trial. Counting events takes a quarter of it, but at least half a second unless the
/// full duration is shorter: nothing is timed, and counts per reply vary little.
pub fn shortened(full: Duration, purpose: Purpose) -> Duration {
    match purpose {
        Purpose::Profiled => full.min((full / 4).max(COUNTED)),
        Purpose::Captured => full.min(CAPTURED),
        _ => full,
    }
}

/// A trial with this many clients. Short-lived ones take at least their think time, and what the network needs.
pub fn of_trial(load: &LoadSpec, clients: u32, purpose: Purpose) -> Duration {
    let think = load.think.named();
    let own = match load.until() {
        Until::Duration(full) => think + load.warm_up + shortened(full, purpose),
        Until::Each { requests, live, .. } => {
            let each = requests.unwrap_or(1);
            let bytes = load.size.mean() * f64::from(each);
            let carried = Duration::try_from_secs_f64(bytes / CARRIED_PER_S);
            let waves = clients.div_ceil(load.at_once.unwrap_or(clients).max(1));
            let lives = live.unwrap_or_default().saturating_mul(waves);
            let thinks = think.saturating_mul(each);
            lives.max(thinks) + carried.unwrap_or_default().saturating_mul(clients)
        }
        Until::Requests(_) | Until::Bytes(_) => Duration::ZERO,
    };
    around(load, clients).saturating_add(own)
}

/// `members` servers side by side, whose slices take this time in all. They warm up one after another.
pub fn side_by_side(load: &LoadSpec, clients: u32, members: u32, slices: Duration) -> Duration {
    let limit = load.warm_up_limit.unwrap_or(USUAL_WARM_UP_IN_SLICES);
    let warm_up = limit.min(USUAL_WARM_UP_IN_SLICES);
    slices + (around(load, clients) + warm_up) * members
}

/// Everything before and after the clients send.
fn around(load: &LoadSpec, clients: u32) -> Duration {
    OF_A_TRIAL + OF_A_CLIENT.saturating_mul(clients) + load.coming()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_takes_less_time_than_timing() {
        let ms = Duration::from_millis;
        for (full, purpose, shorter) in [
            (20_000, Purpose::Profiled, 5000),
            (20_000, Purpose::Captured, 3000),
            (1000, Purpose::Profiled, 500),
            (100, Purpose::Profiled, 100),
            (100, Purpose::Timed, 100),
        ] {
            assert_eq!(shortened(ms(full), purpose), ms(shorter));
        }
    }
}
