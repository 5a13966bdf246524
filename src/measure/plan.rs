//! Which trials, in which order, on which CPUs; pure.

use crate::record::Purpose;

/// One trial to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planned {
    /// Repetition, from 0.
    pub round: u32,
    /// Index of the server.
    pub server: usize,
    /// Number of clients.
    pub clients: u32,
    /// What it is for.
    pub purpose: Purpose,
    /// Requests a second, where a trial has a rate of its own.
    pub rate_per_s: Option<u64>,
}

/// Rounds in which the same servers meet every crowd for the same purposes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rounds {
    /// How many.
    pub repeats: u32,
    /// Who takes part.
    pub entrants: Vec<Entrant>,
}

/// A server that takes part in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entrant {
    /// Its index.
    pub server: usize,
    /// What for.
    pub purpose: Purpose,
}

/// All trials: in each round every entrant meets every crowd once, in an order of its own, so that
/// a machine that grows slower or faster meanwhile does so for all alike.
///
/// (Randomised complete blocks; Hoefler & Belli, "Scientific Benchmarking of Parallel Computing
/// Systems", SC 2015.)
pub fn interleave(clients: &[u32], rounds: &[Rounds], seed: u64) -> Vec<Planned> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut trials = Vec::new();
    for Rounds { repeats, entrants } in rounds {
        for round in 0..*repeats {
            let mut block: Vec<Planned> = entrants
                .iter()
                .flat_map(|&Entrant { server, purpose }| {
                    clients.iter().map(move |&clients| Planned {
                        round,
                        server,
                        clients,
                        purpose,
                        rate_per_s: None,
                    })
                })
                .collect();
            random.shuffle(&mut block);
            trials.append(&mut block);
        }
    }
    trials
}

/// Which CPUs the server gets and which the clients: half each, apart, or none bound on a machine
/// with a single CPU.
pub fn divide_cpus(usable: &[u32]) -> (Vec<u32>, Vec<u32>) {
    if usable.len() < 2 {
        return (Vec::new(), Vec::new());
    }
    let (server, clients) = usable.split_at(usable.len() / 2);
    (server.to_vec(), clients.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(repeats: u32, servers: usize, purpose: Purpose) -> Rounds {
        let entrants = (0..servers).map(|server| Entrant { server, purpose });
        Rounds {
            repeats,
            entrants: entrants.collect(),
        }
    }

    #[test]
    fn each_round_has_every_pair_once() {
        let trials = interleave(&[10, 100], &[rounds(4, 3, Purpose::Timed)], 7);
        assert_eq!(trials.len(), 24);
        for round in 0..4_u32 {
            let mut block = trials[round as usize * 6..][..6].to_vec();
            assert!(block.iter().all(|trial| trial.round == round));
            block.sort_by_key(|trial| (trial.server, trial.clients));
            block.dedup();
            assert_eq!(block.len(), 6);
        }
    }

    #[test]
    fn the_seed_decides_the_order() {
        let order = |seed| interleave(&[1, 2], &[rounds(3, 9, Purpose::Timed)], seed);
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }

    #[test]
    fn what_disturbs_comes_after_all_that_is_timed() {
        let timed = rounds(3, 2, Purpose::Timed);
        let counted = rounds(1, 2, Purpose::Counted);
        let trials = interleave(&[1, 2], &[timed.clone(), counted], 1);
        assert_eq!(trials.len(), 16);
        assert!(trials.is_sorted_by_key(|trial| trial.purpose));
        assert_eq!(trials[..12], interleave(&[1, 2], &[timed], 1));
    }

    #[test]
    fn cpus_are_divided_evenly() {
        assert_eq!(divide_cpus(&[3]), (vec![], vec![]));
        assert_eq!(divide_cpus(&[0, 1]), (vec![0], vec![1]));
        assert_eq!(divide_cpus(&[0, 2, 4, 6, 8]), (vec![0, 2], vec![4, 6, 8]));
    }
}
