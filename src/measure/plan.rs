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
}

/// How often each server meets each crowd, for one purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rounds {
    /// What for.
    pub purpose: Purpose,
    /// How often.
    pub repeats: u32,
}

/// All trials: in each round every server meets every crowd once, in an order of its own, so that
/// a machine that grows slower or faster meanwhile does so for all alike.
///
/// (Randomised complete blocks; Hoefler & Belli, "Scientific Benchmarking of Parallel Computing
/// Systems", SC 2015.)
pub fn interleave(servers: usize, clients: &[u32], rounds: &[Rounds], seed: u64) -> Vec<Planned> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut trials = Vec::new();
    for &Rounds { purpose, repeats } in rounds {
        for round in 0..repeats {
            let mut block: Vec<Planned> = (0..servers)
                .flat_map(|server| {
                    clients.iter().map(move |&clients| Planned {
                        round,
                        server,
                        clients,
                        purpose,
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

    fn timed(repeats: u32) -> Rounds {
        Rounds {
            purpose: Purpose::Timed,
            repeats,
        }
    }

    #[test]
    fn each_round_has_every_pair_once() {
        let trials = interleave(3, &[10, 100], &[timed(4)], 7);
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
        let order = |seed| interleave(9, &[1, 2], &[timed(3)], seed);
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }

    #[test]
    fn what_disturbs_comes_after_all_that_is_timed() {
        let counted = Rounds {
            purpose: Purpose::Counted,
            repeats: 1,
        };
        let trials = interleave(2, &[1, 2], &[timed(3), counted], 1);
        assert_eq!(trials.len(), 16);
        assert!(trials.is_sorted_by_key(|trial| trial.purpose));
        assert_eq!(trials[..12], interleave(2, &[1, 2], &[timed(3)], 1));
    }

    #[test]
    fn cpus_are_divided_evenly() {
        assert_eq!(divide_cpus(&[3]), (vec![], vec![]));
        assert_eq!(divide_cpus(&[0, 1]), (vec![0], vec![1]));
        assert_eq!(divide_cpus(&[0, 2, 4, 6, 8]), (vec![0, 2], vec![4, 6, 8]));
    }
}
