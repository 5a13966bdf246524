//! Bytes that can be checked, and what all connections of a process share of them.

use std::sync::{Arc, Mutex, PoisonError};

/// Pseudo-random bytes, the same every time: enough to make neighbouring slices differ.
///
/// A xorshift generator (Marsaglia, 2003).
pub(super) fn noise() -> impl Iterator<Item = u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    })
}

/// Something that all connections share, kept for what was last asked for: in one process that is
/// always the same.
pub(super) struct Kept<K, V: ?Sized>(Mutex<Option<(K, Arc<V>)>>);

impl<K: PartialEq, V: ?Sized> Kept<K, V> {
    /// Nothing yet.
    pub(super) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// What is kept for `key`, or is made for it now.
    pub(super) fn get(&self, key: K, make: impl FnOnce(&K) -> Arc<V>) -> Arc<V> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((known, value)) if *known == key => Arc::clone(value),
            _ => {
                let value = make(&key);
                *kept = Some((key, Arc::clone(&value)));
                value
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_shared_until_something_else_is_asked_for() {
        static KEPT: Kept<usize, [u8]> = Kept::new();
        let get = |length: usize| KEPT.get(length, |&length| noise().take(length).collect());
        let first = get(100);
        assert!(Arc::ptr_eq(&first, &get(100)));
        assert_eq!(get(50)[..], first[..50]);
        assert!(!Arc::ptr_eq(&first, &get(100)));
    }
}
