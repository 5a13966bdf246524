//! Verifiable bytes, and values that all connections of a process share.

use std::sync::{Mutex, PoisonError};

/// Pseudo-random bytes, always the same: enough to make adjacent slices differ.
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

/// Values shared by all connections, created once per key and kept until the program ends. There is one key per
/// combination of settings in a process, so there are few.
pub(super) struct Interned<K, V: ?Sized + 'static>(Mutex<Vec<(K, &'static V)>>);

impl<K: PartialEq, V: ?Sized> Interned<K, V> {
    /// An empty set of values.
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// The value of `key`, created now if necessary.
    pub(super) fn get(&self, key: K, make: impl FnOnce(&K) -> Box<V>) -> &'static V {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, value)) = kept.iter().find(|(known, _)| *known == key) {
            return value;
        }
        let value: &'static V = Box::leak(make(&key));
        kept.push((key, value));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_interned_once_per_key() {
        static INTERNED: Interned<usize, [u8]> = Interned::new();
        let get = |length: usize| INTERNED.get(length, |&length| noise().take(length).collect());
        let first = get(100);
        assert_eq!(get(50), &first[..50]);
        assert!(std::ptr::eq(first, get(100)));
        assert!(std::ptr::eq(get(50), get(50)));
    }
}
