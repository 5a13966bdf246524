//! Prefetching: the CPU fetches memory before it is needed.

/// Starts fetching the cache line at `place`, which need not be valid. Does nothing on CPUs other than x86-64.
#[inline]
pub fn prefetch<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction reads nothing and affects only caches, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
