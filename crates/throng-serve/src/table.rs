//! The connections of a readiness loop, indexed by descriptor.

use std::os::fd::RawFd;

/// A table indexed by descriptor. The kernel assigns the lowest free number, so the table stays dense.
#[derive(Debug)]
pub struct Table<T> {
    slots: Vec<Option<T>>,
    count: usize,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            count: 0,
        }
    }
}

impl<T> Table<T> {
    /// Stores the value of a descriptor.
    pub fn insert(&mut self, fd: RawFd, value: T) {
        let index = usize::try_from(fd).expect("an open descriptor is not negative");
        if index >= self.slots.len() {
            self.slots.resize_with(index + 1, || None);
        }
        self.count += usize::from(self.slots[index].replace(value).is_none());
    }

    /// The value of a descriptor; `None` if it was removed.
    pub fn get_mut(&mut self, fd: RawFd) -> Option<&mut T> {
        self.slots.get_mut(usize::try_from(fd).ok()?)?.as_mut()
    }

    /// Removes a value.
    pub fn remove(&mut self, fd: RawFd) -> Option<T> {
        let value = self.slots.get_mut(usize::try_from(fd).ok()?)?.take();
        self.count -= usize::from(value.is_some());
        value
    }

    /// Removes every value for which `stays` is false.
    pub fn retain(&mut self, mut stays: impl FnMut(&mut T) -> bool) {
        for slot in &mut self.slots {
            if slot.as_mut().is_some_and(|value| !stays(value)) {
                *slot = None;
                self.count -= 1;
            }
        }
    }

    /// The descriptors in the table.
    pub fn descriptors(&self) -> Vec<RawFd> {
        let places = self.slots.iter().enumerate();
        places
            .filter_map(|(index, slot)| slot.as_ref().map(|_| index as RawFd))
            .collect()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_values_by_descriptor() {
        let mut table = Table::default();
        table.insert(7, 'a');
        table.insert(3, 'b');
        assert_eq!(table.descriptors(), [3, 7]);
        assert_eq!(table.remove(7), Some('a'));
        assert_eq!(table.remove(7), None);
        assert_eq!(table.get_mut(1000), None);
        assert!(!table.is_empty());
        table.remove(3);
        assert!(table.is_empty());
    }
}
