//! Whether the results of a trial can be used: each check is one function in `CHECKS`.

use throng_record::cause::{self, Circumstances};
use throng_record::format::{self, counted, list, whole};
use throng_record::{
    Find, Host, HostPart, Invalid, InvalidCause, Load, ServerInfo, Settings, Trial,
};
use throng_stats::steadiness;

/// A stall of the load generator counts if it is longer than this, and than this share of the window.
const STOPPED_S: f64 = 0.25;
const STOPPED_SHARE: f64 = 0.1;
/// Requests count as late if they are later than `LATE_US`, and than `LATE_GAPS` times the mean time between two.
const LATE_US: f64 = 10_000.0;
const LATE_GAPS: f64 = 10.0;
/// Share of all CPUs that other processes may use.
const OTHERS: f64 = 0.5;
/// Maximum rise or fall of the rate within the window.
const RISE: f64 = 0.5;
const FALL: f64 = -0.33;
/// Largest difference between the starts of client hosts, as a share of the window.
const SKEW: f64 = 0.1;
/// Each client of a slow host gets less than this share of the replies that a client of the median host gets. This is
/// checked only if the median host got at least `SLOW_HOST_REPLIES` replies.
const SLOW_HOST: f64 = 0.25;
const SLOW_HOST_REPLIES: u64 = 200;
/// Share of replies that may have an unexpected status.
const UNEXPECTED: f64 = 0.01;

/// A trial with its load.
struct LoadedTrial<'a> {
    trial: &'a Trial,
    load: &'a Load,
    circumstances: Circumstances<'a>,
    has_rate: bool,
}

/// Returns what is wrong, or `None`.
type Check = fn(&LoadedTrial<'_>) -> Option<String>;

/// Every check. Problems of the load generator come first: they may be why the server looks bad.
const CHECKS: &[(InvalidCause, Check)] = &[
    (InvalidCause::GeneratorStopped, stopped),
    (InvalidCause::StartSkew, start_skew),
    (InvalidCause::SilentHost, silent_host),
    (InvalidCause::SlowHost, slow_host),
    (InvalidCause::Others, others),
    (InvalidCause::GeneratorLate, late),
    (InvalidCause::NoReply, no_reply),
    (InvalidCause::Unserved, unserved),
    (InvalidCause::SilentWorker, silent_worker),
    (InvalidCause::UnexpectedStatus, unexpected_status),
    (InvalidCause::NotLevel, not_level),
    (InvalidCause::Drift, drift),
];

/// Why the results of a trial must not be used; `None` if they can be. In a search for a limit, failures are results.
pub(crate) fn of_trial(
    trial: &Trial,
    server: &ServerInfo,
    settings: &Settings,
    host: &Host,
) -> Option<Invalid> {
    if trial.failure.is_some() || trial.purpose.seeks_limit() {
        return None;
    }
    let seen = LoadedTrial {
        trial,
        load: trial.load.as_ref()?,
        circumstances: Circumstances {
            server,
            settings,
            host,
            find: Find::Clients,
        },
        has_rate: settings.load.sets_the_rate().is_some(),
    };
    let mut checks = CHECKS.iter();
    checks.find_map(|(cause, check)| {
        let reason = check(&seen)?;
        Some(Invalid {
            cause: *cause,
            reason,
        })
    })
}

impl LoadedTrial<'_> {
    /// Whether it is timed and the server alone sets the pace.
    fn is_paced_by_server(&self) -> bool {
        let by_itself = self.trial.purpose.is_timed() && self.trial.slices.is_empty();
        by_itself
            && !self.has_rate
            && self.load.open_loop.is_none()
            && self.load.completion.is_none()
    }
}

fn stopped(seen: &LoadedTrial<'_>) -> Option<String> {
    let gap_s = seen.load.longest_gap_s?;
    let most = STOPPED_S.max(STOPPED_SHARE * seen.load.window.duration_s);
    (seen.trial.purpose.is_timed() && gap_s > most).then(|| {
        format!(
            "the load generator stalled for {} of {}",
            format::time(gap_s * 1e6),
            format::time(seen.load.window.duration_s * 1e6)
        )
    })
}

fn start_skew(seen: &LoadedTrial<'_>) -> Option<String> {
    let skew_us = seen.trial.start_skew?.skew_us;
    let window_us = seen.load.window.duration_s * 1e6;
    let hosts = seen.trial.hosts.iter();
    let last = hosts.max_by(|one, other| {
        let began = |host: &HostPart| host.start_offset_us.unwrap_or(0.0);
        began(one).total_cmp(&began(other))
    });
    let last = last.map_or_else(String::new, |host| format!(", {} last", host.label()));
    (skew_us > SKEW * window_us).then(|| {
        format!(
            "client hosts began to measure {} apart{last}, in a window of {}",
            format::time(skew_us),
            format::time(window_us)
        )
    })
}

fn silent_host(seen: &LoadedTrial<'_>) -> Option<String> {
    let is_silent = seen.load.window.replies > 0 && seen.load.open_loop.is_none();
    let hosts = seen.trial.hosts.iter();
    let silent = hosts.filter(|host| host.clients > 0 && host.replies == Some(0));
    let names: Vec<String> = silent.map(HostPart::label).collect();
    (is_silent && !names.is_empty())
        .then(|| format!("the clients on {} got no reply", list(&names)))
}

/// A host whose clients were all served once, but then got far fewer replies than the clients of other hosts: its CPUs
/// or its network limit their pace.
fn slow_host(seen: &LoadedTrial<'_>) -> Option<String> {
    let load = seen.load;
    if load.open_loop.is_some() || load.completion.is_some() {
        return None;
    }
    let mut rates: Vec<(f64, &HostPart)> = Vec::new();
    for host in seen.trial.hosts.iter().filter(|host| host.clients > 0) {
        rates.push((host.replies? as f64 / f64::from(host.clients), host));
    }
    rates.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (slowest, host) = *rates.first()?;
    let (usual, other) = *rates.get(rates.len() / 2).filter(|_| rates.len() > 1)?;
    let is_slow = host.served == Some(host.clients)
        && other.replies >= Some(SLOW_HOST_REPLIES)
        && slowest < SLOW_HOST * usual;
    is_slow.then(|| {
        format!(
            "each client on {} had {:.0} % of the replies of one on {}",
            host.label(),
            slowest / usual * 100.0,
            other.label()
        )
    })
}

fn others(seen: &LoadedTrial<'_>) -> Option<String> {
    let trial = seen.trial;
    let of =
        |side: &Option<throng_record::Side>, name: &str| side.as_ref()?.metrics.get(name).copied();
    let busy = of(&trial.network, "machine_busy_percent")?;
    let steal = of(&trial.network, "machine_steal_percent").unwrap_or(0.0);
    let server = of(&trial.server_side, "cpu_percent")?;
    let client = of(&trial.client_side, "cpu_percent")?;
    let share = ((busy - server - client).max(0.0) + steal)
        / 100.0
        / f64::from(seen.circumstances.host.cpus.max(1));
    (trial.purpose.is_timed() && share > OTHERS).then(|| {
        format!(
            "other processes or the host took {:.0} % of the machine's CPUs",
            share * 100.0
        )
    })
}

fn late(seen: &LoadedTrial<'_>) -> Option<String> {
    let open = seen.load.open_loop.as_ref()?;
    let late = seen.load.lateness.as_ref()?;
    let gap_us = seen.load.window.duration_s * 1e6 / open.due.max(1) as f64;
    // A request that waited for a client is late because of the server.
    let by_generator = open.waited as f64 <= open.due as f64 * UNEXPECTED;
    (by_generator && late.p50_us > LATE_US.max(LATE_GAPS * gap_us)).then(|| {
        format!(
            "requests were sent {} late (p50) although clients were idle",
            format::time(late.p50_us)
        )
    })
}

fn no_reply(seen: &LoadedTrial<'_>) -> Option<String> {
    let asks = seen.load.open_loop.as_ref().is_none_or(|open| open.due > 0);
    let is_timed = seen.load.window.duration_s > 0.0;
    let thinks = seen.has_rate && seen.load.open_loop.is_none();
    (seen.load.window.replies == 0 && asks && is_timed && !thinks)
        .then(|| "no reply arrived during the measurement".to_owned())
}

fn unserved(seen: &LoadedTrial<'_>) -> Option<String> {
    let load = seen.load;
    let served = load
        .completion
        .as_ref()
        .map_or(load.served, |jobs| jobs.clients_done);
    (served < load.clients).then(|| {
        let cause = cause::of_unserved(&[seen.trial], &seen.circumstances);
        let cause = cause.map_or_else(String::new, |cause| format!(": {}", cause.sentence));
        format!(
            "{} of {} were served{cause}",
            whole(f64::from(served)),
            counted(load.clients, "client")
        )
    })
}

fn silent_worker(seen: &LoadedTrial<'_>) -> Option<String> {
    let silent = seen.load.silent_threads;
    (seen.is_paced_by_server() && silent > 0).then(|| {
        format!(
            "{silent} of {} load threads got no reply",
            seen.load.threads
        )
    })
}

fn unexpected_status(seen: &LoadedTrial<'_>) -> Option<String> {
    let load = seen.load;
    let share = load.unexpected() as f64 / load.replies().max(1) as f64;
    (share > UNEXPECTED).then(|| {
        let statuses: Vec<&str> = load.unexpected.keys().map(String::as_str).collect();
        format!(
            "{:.3} % of the replies had an unexpected status ({})",
            share * 100.0,
            list(&statuses)
        )
    })
}

fn not_level(seen: &LoadedTrial<'_>) -> Option<String> {
    seen.load.warm_up?.fault()
}

fn drift(seen: &LoadedTrial<'_>) -> Option<String> {
    let intervals = &seen.load.window.intervals;
    let steady = || {
        let trend = steadiness::trend(intervals);
        trend.filter(|_| steadiness::is_unsteady(intervals))
    };
    let change = steadiness::rise(intervals).or_else(|| Some(steady()?.change))?;
    let is_strong = !(FALL..=RISE).contains(&change);
    (seen.is_paced_by_server() && is_strong).then(|| {
        format!(
            "the rate changed by {:+.0} % during the measurement",
            change * 100.0
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_record::{Latency, OpenLoop, Purpose, Settling, Side, StartSkew, Unsettled, WarmUp};

    /// A valid trial.
    fn good() -> Trial {
        let mut load = Load {
            clients: 50,
            served: 50,
            verified: 1000,
            threads: 2,
            longest_gap_s: Some(0.01),
            ..Load::default()
        };
        load.window.duration_s = 2.0;
        load.window.replies = 900;
        Trial {
            load: Some(load),
            ..Trial::default()
        }
    }

    fn invalid(change: impl Fn(&mut Trial, &mut Load)) -> Option<Invalid> {
        let mut trial = good();
        let mut load = trial.load.take().unwrap();
        change(&mut trial, &mut load);
        trial.load = Some(load);
        let host = Host {
            cpus: 4,
            ..Host::default()
        };
        of_trial(&trial, &ServerInfo::default(), &Settings::default(), &host)
    }

    fn cause(change: impl Fn(&mut Trial, &mut Load)) -> Option<InvalidCause> {
        invalid(change).map(|invalid| invalid.cause)
    }

    fn side(metrics: &[(&str, f64)]) -> Side {
        let metrics = metrics
            .iter()
            .map(|&(name, value)| (name.to_owned(), value));
        Side {
            metrics: metrics.collect(),
            ..Side::default()
        }
    }

    #[test]
    fn each_cause_is_found() {
        assert_eq!(cause(|_, _| ()), None);
        let stopped = cause(|_, load| load.longest_gap_s = Some(1.9));
        assert_eq!(stopped, Some(InvalidCause::GeneratorStopped));
        let silent = cause(|_, load| load.window.replies = 0);
        assert_eq!(silent, Some(InvalidCause::NoReply));
        let unserved = cause(|_, load| load.served = 49);
        assert_eq!(unserved, Some(InvalidCause::Unserved));
        let worker = cause(|_, load| load.silent_threads = 1);
        assert_eq!(worker, Some(InvalidCause::SilentWorker));
        let failing = cause(|_, load| {
            load.unexpected.insert("503".to_owned(), 100);
        });
        assert_eq!(failing, Some(InvalidCause::UnexpectedStatus));
        let rising = cause(|_, load| {
            load.warm_up = Some(WarmUp {
                took_s: 30.0,
                unsettled: Some(Unsettled {
                    what: Settling::Rate,
                    change: 0.3,
                }),
            });
        });
        assert_eq!(rising, Some(InvalidCause::NotLevel));
        let rises = cause(|_, load| load.window.intervals = (1..=20).map(|n| 100 * n).collect());
        assert_eq!(rises, Some(InvalidCause::Drift));
        let skew = cause(|trial, _| {
            trial.start_skew = Some(StartSkew {
                skew_us: 300_000.0,
                error_us: 1.0,
            });
        });
        assert_eq!(skew, Some(InvalidCause::StartSkew));
        let others = cause(|trial, _| {
            trial.network = Some(side(&[("machine_busy_percent", 390.0)]));
            trial.server_side = Some(side(&[("cpu_percent", 90.0)]));
            trial.client_side = Some(side(&[("cpu_percent", 90.0)]));
        });
        assert_eq!(others, Some(InvalidCause::Others));
        let late = cause(|_, load| {
            load.open_loop = Some(OpenLoop {
                due: 900,
                ..OpenLoop::default()
            });
            load.lateness = Some(Latency {
                p50_us: 50_000.0,
                ..Latency::default()
            });
        });
        assert_eq!(late, Some(InvalidCause::GeneratorLate));
    }

    /// Hosts of 25 clients each: how many of them were served, their replies, and when they began to count.
    fn hosts(of: &[(u32, u64, f64)]) -> Vec<HostPart> {
        let hosts = (1..).zip(of);
        let hosts = hosts.map(|(rank, &(served, replies, began_us))| HostPart {
            name: "lab".to_owned(),
            rank,
            clients: 25,
            served: Some(served),
            replies: Some(replies),
            start_offset_us: Some(began_us),
            ..HostPart::default()
        });
        hosts.collect()
    }

    #[test]
    fn a_host_that_is_silent_slow_or_late_is_named() {
        let named = |cause, words: &str, of: &[(u32, u64, f64)]| {
            let found = invalid(|trial, _| {
                trial.hosts = hosts(of);
                let last = of.iter().map(|host| host.2).fold(0.0, f64::max);
                trial.start_skew = Some(StartSkew {
                    skew_us: last,
                    error_us: 1.0,
                });
            });
            let found = found.expect("it is invalid");
            assert_eq!((found.cause, found.reason.as_str()), (cause, words));
        };
        named(
            InvalidCause::SilentHost,
            "the clients on lab (rank 2) got no reply",
            &[(25, 900, 0.0), (25, 0, 0.0)],
        );
        named(
            InvalidCause::SlowHost,
            "each client on lab (rank 3) had 10 % of the replies of one on lab (rank 2)",
            &[(25, 1100, 0.0), (25, 1000, 0.0), (25, 100, 0.0)],
        );
        named(
            InvalidCause::StartSkew,
            "client hosts began to measure 300 ms apart, lab (rank 2) last, in a window of 2.00 s",
            &[(25, 900, 0.0), (25, 900, 300_000.0), (25, 900, 9.0)],
        );
        for fine in [
            &[(25, 1000, 0.0), (25, 260, 0.0)][..],
            &[(25, 190, 0.0), (25, 10, 0.0)],
            // The server did not serve them, which is its fault.
            &[(25, 1000, 0.0), (24, 100, 0.0)],
            &[(25, 1000, 0.0)],
        ] {
            assert_eq!(cause(|trial, _| trial.hosts = hosts(fine)), None);
        }
    }

    #[test]
    fn failed_clients_of_a_search_do_not_invalidate_a_trial() {
        let found = cause(|trial, load| {
            trial.purpose = Purpose::Search;
            load.served = 3;
        });
        assert_eq!(found, None);
    }

    #[test]
    fn a_few_unexpected_replies_are_errors_and_no_more() {
        let few = cause(|_, load| {
            load.unexpected.insert("503".to_owned(), 5);
        });
        assert_eq!(few, None);
    }
}
