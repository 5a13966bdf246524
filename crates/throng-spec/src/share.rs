//! A process's share of a load that several processes generate.
//!
//! Clients, requests and workers of the whole load are numbered. Each process has the numbers that are congruent to
//! its own modulo the number of processes. So clients connect in the same order, requests are due by the same
//! schedule, and random numbers come from the same streams as in a single process with all workers.

use std::fmt;
use std::str::FromStr;

/// A share of a load, written as `0/3` to `2/3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    number: u32,
    of: u32,
}

impl Share {
    /// The whole load.
    pub const WHOLE: Self = Self { number: 0, of: 1 };

    /// Share `number` of `of`, from 0; `None` if there is no such share.
    pub fn new(number: u32, of: u32) -> Option<Self> {
        (number < of).then_some(Self { number, of })
    }

    /// Its part of `total` items.
    pub fn of(self, total: u64) -> u64 {
        let of = u64::from(self.of);
        total / of + u64::from(u64::from(self.number) < total % of)
    }

    /// The same for a number of clients.
    pub fn of_clients(self, total: u32) -> u32 {
        self.of(total.into()) as u32
    }

    /// Number of shares.
    pub fn parts(self) -> u32 {
        self.of
    }

    /// The global number of the item with number `own` in this share.
    pub fn among_all(self, own: u64) -> u64 {
        u64::from(self.number) + u64::from(self.of) * own
    }

    /// The global number of worker `number` of `workers`.
    pub fn worker(self, number: usize, workers: usize) -> (usize, usize) {
        let number = self.among_all(number as u64) as usize;
        (number, workers * self.of as usize)
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text
            .split_once('/')
            .and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        numbers
            .and_then(|(number, of)| Self::new(number, of))
            .ok_or_else(|| format!("`{text}` is not a share; expected 0/N to N-1/N"))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

super::text::as_text!(Share, "a part, like \"0/3\"");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn there_is_no_part_beyond_the_last() {
        assert_eq!(Share::new(0, 1), Some(Share::WHOLE));
        assert_eq!(Share::new(3, 3), None);
        assert_eq!(Share::new(0, 0), None);
    }

    proptest! {
        #[test]
        fn every_client_is_in_one_part_and_with_one_worker(
            total in 0..500_u64, parts in 1..9_u32, workers in prop::collection::vec(1..5_usize, 9),
        ) {
            let mut clients = Vec::new();
            let mut sum = 0;
            for number in 0..parts {
                let share = Share::new(number, parts).unwrap();
                sum += share.of(total);
                // Hosts may have different numbers of CPUs.
                let workers = workers[number as usize];
                for worker in 0..workers {
                    let (number, all) = share.worker(worker, workers);
                    clients.extend((number as u64..total).step_by(all));
                }
            }
            clients.sort_unstable();
            prop_assert_eq!(clients, (0..total).collect::<Vec<_>>());
            prop_assert_eq!(sum, total);
        }
    }
}
