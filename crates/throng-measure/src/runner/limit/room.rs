//! The bound of a search, so that it does not exhaust the machine instead of the server.

use throng_record::format::{bytes, whole};
use throng_record::{StoppedAt, Trial};

/// Share of the machine's free resources that a search may use up.
const SHARE: f64 = 0.8;
/// Threads and processes are watched if there are at least this many per client.
const TASKS_PER_CLIENT: f64 = 0.5;
/// Minimum number of clients to estimate a cost per client.
const FEWEST: u32 = 16;

/// The number of clients that the machine has room for, estimated from their cost in a trial that passed.
pub(super) fn left_for(trial: &Trial) -> Option<StoppedAt> {
    if trial.clients < FEWEST {
        return None;
    }
    let ends = [threads(trial), memory(trial)].into_iter().flatten();
    ends.min_by_key(|end| end.value)
}

fn threads(trial: &Trial) -> Option<StoppedAt> {
    let clients = f64::from(trial.clients);
    let metric = |name: &str| trial.server_side.as_ref()?.metrics.get(name).copied();
    let each = metric("tasks_peak")? / clients;
    let (there, limit) = (
        metric("machine_tasks_peak")?,
        metric("machine_tasks_limit")?,
    );
    (each >= TASKS_PER_CLIENT).then(|| StoppedAt {
        value: (clients + SHARE * (limit - there).max(0.0) / each) as u64,
        reason: format!(
            "it needs {each:.1} threads or processes per client, and this machine has {} of {} left \
             (kernel.pid_max, kernel.threads-max)",
            whole((limit - there).max(0.0)),
            whole(limit)
        ),
    })
}

fn memory(trial: &Trial) -> Option<StoppedAt> {
    let clients = f64::from(trial.clients);
    let metric = |name: &str| trial.server_side.as_ref()?.metrics.get(name).copied();
    let each = metric("pss_bytes")? / clients;
    let left = metric("machine_memory_min_bytes")?;
    Some(StoppedAt {
        value: (clients + SHARE * left / each.max(1.0)) as u64,
        reason: format!(
            "it needs {} of memory per client, and {} is available",
            bytes(each),
            bytes(left)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_record::Side;

    fn trial(figures: &[(&str, f64)]) -> Trial {
        let figures = figures.iter();
        let metrics = figures.map(|(name, value)| ((*name).to_owned(), *value));
        Trial {
            clients: 100,
            server_side: Some(Side {
                metrics: metrics.collect(),
                ..Side::default()
            }),
            ..Trial::default()
        }
    }

    #[test]
    fn a_thread_a_client_ends_before_the_machine_does() {
        let threads = [
            ("tasks_peak", 100.0),
            ("machine_tasks_peak", 300.0),
            ("machine_tasks_limit", 10_300.0),
        ];
        let end = left_for(&trial(&threads)).unwrap();
        assert_eq!(end.value, 8100);
        assert!(end.reason.contains("1.0 threads"), "{}", end.reason);
        let loops = [("tasks_peak", 2.0), threads[1], threads[2]];
        assert_eq!(left_for(&trial(&loops)), None);
    }

    #[test]
    fn so_does_much_memory_a_client() {
        let end = left_for(&trial(&[
            ("pss_bytes", 1e9),
            ("machine_memory_min_bytes", 10e9),
        ]));
        assert_eq!(end.unwrap().value, 900);
    }
}
