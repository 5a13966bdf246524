//! Times caused by a kernel timer. Delayed acknowledgements come after at least 40 ms and at most 200 ms, in whole ticks of
//! its clock. On busy CPUs they come a few milliseconds later.

/// Where such times accumulate.
pub const PLATEAUS_MS: [u64; 2] = [40, 200];
const LATER_MS: u64 = 10;

/// The range of a plateau, in milliseconds.
pub fn around(plateau_ms: u64) -> (u64, u64) {
    (plateau_ms * 975 / 1000, plateau_ms + LATER_MS)
}

/// The plateau that a time is on.
pub fn plateau_of(time_us: f64) -> Option<u64> {
    PLATEAUS_MS.into_iter().find(|plateau_ms| {
        let (from, to) = around(*plateau_ms);
        (from as f64..to as f64).contains(&(time_us / 1e3))
    })
}
