//! Which trials, in which order, on which CPUs; pure.

use throng_record::Purpose;

/// A planned trial: its server, number of clients, and purpose. The load is that of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrialSpec {
    /// Round, from 0.
    pub round: u32,
    /// Index of the server.
    pub server: usize,
    /// Number of clients.
    pub clients: u32,
    /// Purpose.
    pub purpose: Purpose,
    /// For a trial below the maximum rate, the percentage of the rate reached before.
    pub percent: Option<u32>,
}

/// Rounds with the same servers, numbers of clients and purposes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rounds {
    /// Number of rounds.
    pub runs: u32,
    /// Their servers.
    pub servers_under_test: Vec<ServerUnderTest>,
}

/// A server in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerUnderTest {
    /// Its index.
    pub server: usize,
    /// Its purpose.
    pub purpose: Purpose,
    /// Below the maximum: the percentage of the rate reached before.
    pub percent: Option<u32>,
}

/// All trials: in each round every server runs once with every number of clients, in a new random order, so that a
/// machine that slows down or speeds up affects all equally.
///
/// (Randomised complete blocks; Hoefler & Belli, "Scientific Benchmarking of Parallel Computing Systems", SC 2015.)
pub fn interleave(clients: &[u32], rounds: &[Rounds], seed: u64) -> Vec<TrialSpec> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut trials = Vec::new();
    for Rounds {
        runs,
        servers_under_test,
    } in rounds
    {
        for round in 0..*runs {
            let mut block: Vec<TrialSpec> = servers_under_test
                .iter()
                .flat_map(|&server_under_test| {
                    clients.iter().map(move |&clients| TrialSpec {
                        round,
                        server: server_under_test.server,
                        clients,
                        purpose: server_under_test.purpose,
                        percent: server_under_test.percent,
                    })
                })
                .collect();
            random.shuffle(&mut block);
            trials.append(&mut block);
        }
    }
    trials
}

/// The CPUs of the server and of the clients: half each, disjoint. On a machine with a single CPU, neither is bound.
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

    fn rounds(runs: u32, servers: usize, purpose: Purpose) -> Rounds {
        let servers_under_test = (0..servers).map(|server| ServerUnderTest {
            server,
            purpose,
            percent: None,
        });
        Rounds {
            runs,
            servers_under_test: servers_under_test.collect(),
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
    fn profiled_trials_follow_all_timed_ones() {
        let timed = rounds(3, 2, Purpose::Timed);
        let counted = rounds(1, 2, Purpose::Profiled);
        let trials = interleave(&[1, 2], &[timed.clone(), counted], 1);
        assert_eq!(trials.len(), 16);
        assert!(trials.is_sorted_by_key(|trial| trial.purpose));
        assert_eq!(trials[..12], interleave(&[1, 2], &[timed], 1));
    }

    #[test]
    fn counting_again_has_rounds_of_its_own_and_changes_none_before() {
        let timed = rounds(2, 2, Purpose::Timed);
        let counted = |runs| rounds(runs, 2, Purpose::Profiled);
        let thrice = interleave(&[1, 2], &[timed.clone(), counted(3)], 1);
        assert_eq!(thrice.len(), 8 + 3 * 4);
        assert!(thrice.is_sorted_by_key(|trial| (trial.purpose, trial.round)));
        assert_eq!(thrice[..12], interleave(&[1, 2], &[timed, counted(1)], 1));
    }

    #[test]
    fn parts_of_a_rate_come_once_it_is_known_and_are_mixed() {
        let timed = rounds(3, 2, Purpose::Timed);
        let servers_under_test = (0..2).flat_map(|server| {
            [50, 80].map(|percent| ServerUnderTest {
                server,
                purpose: Purpose::AtLoad,
                percent: Some(percent),
            })
        });
        let at_load = Rounds {
            runs: 1,
            servers_under_test: servers_under_test.collect(),
        };
        let counted = rounds(1, 2, Purpose::Profiled);
        let trials = interleave(&[1, 2], &[timed.clone(), at_load, counted], 1);
        assert_eq!(trials.len(), 12 + 8 + 4);
        assert!(trials.is_sorted_by_key(|trial| trial.purpose));
        assert_eq!(trials[..12], interleave(&[1, 2], &[timed], 1));
        let at_load = &trials[12..20];
        let mut pairs: Vec<_> = at_load
            .iter()
            .map(|trial| (trial.server, trial.clients, trial.percent))
            .collect();
        assert!(!pairs.is_sorted(), "in an order of their own");
        pairs.sort_unstable();
        pairs.dedup();
        assert_eq!(pairs.len(), 8);
    }

    #[test]
    fn cpus_are_divided_evenly() {
        assert_eq!(divide_cpus(&[3]), (vec![], vec![]));
        assert_eq!(divide_cpus(&[0, 1]), (vec![0], vec![1]));
        assert_eq!(divide_cpus(&[0, 2, 4, 6, 8]), (vec![0, 2], vec![4, 6, 8]));
    }
}
