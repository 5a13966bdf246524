//! The load of a trial: the run's load, adapted to the trial's purpose.

use std::time::Duration;

use super::plan::TrialSpec;
use super::run_spec::{RunSpec, is_watched};
use super::slices;
use throng_record::load_event::LONGEST_CONNECT;
use throng_record::{Method, Purpose, Settings, Trial, duration};
use throng_spec::{LoadSpec, RateRange, Spacing, Until};
use throng_stats::steadiness;

/// Minimum interval between live values, per client host.
const LEAST_FIGURES_INTERVAL: Duration = Duration::from_millis(5);

/// The expected length of a slice if the servers determine it.
const SLICE_S: f64 = 0.02;

/// The expected duration of each of these trials, in seconds. Among trials measured side by side, the first one gets
/// the duration of all.
pub(crate) fn estimates(plan: &RunSpec, order: &[TrialSpec]) -> Vec<f64> {
    let beside = |one: &TrialSpec, other: &TrialSpec| {
        plan.is_in_slices(other) && one.clients == other.clients
    };
    let estimate = |(place, planned): (usize, &TrialSpec)| {
        if !plan.is_in_slices(planned) {
            return estimate(&plan.settings, planned);
        }
        if order[..place].iter().any(|other| beside(planned, other)) {
            return 0.0;
        }
        let members = order.iter().filter(|other| beside(planned, other)).count();
        side_by_side(&plan.settings, planned.clients, members as u32)
    };
    order.iter().enumerate().map(estimate).collect()
}

fn side_by_side(settings: &Settings, clients: u32, members: u32) -> f64 {
    let slices_s = match settings.method {
        Method::Trials => 0.0,
        Method::Slices {
            rounds: None,
            budget_s,
            ..
        } => budget_s,
        Method::Slices {
            rounds: Some(rounds),
            length_s,
            ..
        } => f64::from(rounds) * f64::from(members) * length_s.unwrap_or(SLICE_S),
    };
    let watching = slices::time_of_watching(settings.why, members);
    let slices = Duration::try_from_secs_f64(slices_s).unwrap_or_default() + watching;
    duration::side_by_side(&settings.load, clients, members, slices).as_secs_f64()
}

/// The expected duration of a trial by itself.
pub(crate) fn estimate(settings: &Settings, planned: &TrialSpec) -> f64 {
    let purpose = planned.purpose;
    let mut expected = duration::of_trial(&settings.load, planned.clients, purpose);
    if let Until::Duration(full) = settings.load.until()
        && is_watched(settings, purpose)
    {
        let shortened = duration::shortened(full, purpose);
        expected += window(settings, full, purpose).saturating_sub(shortened);
    }
    expected.as_secs_f64()
}

/// The measurement duration of a trial of a load with this one.
fn window(settings: &Settings, full: Duration, purpose: Purpose) -> Duration {
    let shortened = duration::shortened(full, purpose);
    if is_watched(settings, purpose) {
        shortened.max(WATCHED)
    } else {
        shortened
    }
}

/// Minimum measurement of a trial in which the server is watched.
const WATCHED: Duration = Duration::from_secs(5);

/// The load of a trial. `earlier` trials show how long the server needs to warm up.
pub(crate) fn of_trial(plan: &RunSpec, trial: &Trial, earlier: &[Trial]) -> LoadSpec {
    let mut load = LoadSpec {
        clients: trial.clients,
        ..plan.settings.load.clone()
    };
    if trial.purpose.is_timed() {
        load.warm_up = warm_up(&load, &trial.server, earlier);
    }
    match load.until() {
        Until::Duration(full) => {
            load.duration = Some(window(&plan.settings, full, trial.purpose));
        }
        Until::Each { limit: None, .. } => {
            load.time_limit = Some(plan.settings.load.coming() + time_for_jobs(&load));
        }
        _ => {}
    }
    load.eager = is_eager(&load, trial.purpose);
    if !warms_up_until_level(trial.purpose) {
        load.warm_up_limit = Some(load.warm_up);
    }
    if let Some(rate) = trial.at_load.and_then(|at_load| at_load.rate_per_s) {
        load.rate = Some(RateRange::constant((rate * 1000.0).round() / 1000.0));
        load.arrival = Some(Spacing::Poisson);
    }
    if let Some(rate) = plan.rate_of(trial.attempt.as_ref()) {
        load.rate = Some(RateRange::constant(rate as f64));
    }
    load
}

/// A server whose rate still rose in the window of an earlier trial warms up for twice as long as that trial lasted, within
/// the limit. It may have been level at first, and faster only once its code was compiled.
fn warm_up(asked: &LoadSpec, server: &str, earlier: &[Trial]) -> Duration {
    let of_same = earlier
        .iter()
        .filter(|trial| trial.server == server && trial.purpose.is_timed());
    let rose = of_same.filter_map(|trial| {
        let load = trial.load.as_ref()?;
        steadiness::rise(&load.window.intervals)?;
        let took_s = load.warm_up.map(|warm_up| warm_up.took_s);
        Some(2.0 * (took_s.unwrap_or(asked.warm_up.as_secs_f64()) + load.window.duration_s))
    });
    let needed = Duration::try_from_secs_f64(rose.fold(0.0, f64::max)).unwrap_or_default();
    needed.clamp(asked.warm_up, asked.longest_warm_up())
}

/// Whether clients continue while others wait for their first reply. If events are counted, all clients rest first:
/// otherwise the events would belong to an unknown number of replies.
fn is_eager(load: &LoadSpec, purpose: Purpose) -> bool {
    load.eager && purpose != Purpose::Profiled
}

/// Whether the server is warmed up until its rate is level: only if the rate is measured, and not in a search.
fn warms_up_until_level(purpose: Purpose) -> bool {
    purpose.is_timed() && !purpose.seeks_limit()
}

/// The interval between live values, if they are displayed.
pub(crate) fn figures_every(plan: &RunSpec, wanted: Duration) -> Duration {
    let hosts = u32::try_from(plan.client_hosts.len()).unwrap_or(u32::MAX);
    wanted.max(LEAST_FIGURES_INTERVAL.saturating_mul(hosts))
}

/// The time after which a load counts as hung.
pub(crate) fn limit(plan: &RunSpec, trial: &TrialSpec) -> Duration {
    let load = LoadSpec {
        clients: trial.clients,
        ..plan.settings.load.clone()
    };
    let limit = match load.until() {
        Until::Duration(full) => load.longest_warm_up() + full,
        _ => time_for_jobs(&load),
    };
    let first_replies =
        load.connect_timeout + load.first_reply_timeout.saturating_mul(LONGEST_CONNECT);
    (plan.settings.load.coming() + limit).saturating_add(first_replies)
}

/// Without a time limit, all clients get the time that a sequential server this slow per request and per byte would
/// need, plus `AT_LEAST`, but never more than `AT_MOST`.
const SLOW_REQUEST: Duration = Duration::from_millis(10);
const SLOW_BYTES_PER_S: f64 = 10e6;
const AT_LEAST: Duration = Duration::from_mins(1);
const AT_MOST: Duration = Duration::from_hours(1);

/// The time limit of short-lived clients.
fn time_for_jobs(load: &LoadSpec) -> Duration {
    let transfer = Duration::from_secs_f64(load.size.largest() as f64 / SLOW_BYTES_PER_S);
    let one_by_one = load
        .think
        .longest()
        .saturating_add(SLOW_REQUEST + transfer)
        .saturating_mul(load.requests_per_client.unwrap_or(1))
        .saturating_mul(load.clients);
    let waves = load
        .clients
        .div_ceil(load.at_once.unwrap_or(load.clients).max(1));
    let lives = load.live.unwrap_or_default().saturating_mul(waves);
    load.time_limit.unwrap_or_else(|| {
        let longest = one_by_one.saturating_add(AT_LEAST).min(AT_MOST);
        lives.saturating_add(longest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_record::{Load, WarmUp};
    use throng_spec::Think;

    /// Regression: each trial of a JVM started as cold as the first one.
    #[test]
    fn a_server_that_rose_in_its_window_warms_up_for_longer_next_time() {
        let load = LoadSpec {
            warm_up: Duration::from_millis(300),
            warm_up_limit: Some(Duration::from_secs(5)),
            duration: Some(Duration::from_secs(1)),
            ..LoadSpec::default()
        };
        let trial = |server: &str, intervals: [u64; 8]| {
            let mut load = Load {
                warm_up: Some(WarmUp {
                    took_s: 0.5,
                    unsettled: None,
                }),
                ..Load::default()
            };
            load.window.duration_s = 1.0;
            load.window.intervals = intervals.to_vec();
            Trial {
                server: server.to_owned(),
                load: Some(load),
                ..Trial::default()
            }
        };
        let (rising, level) = ([1, 2, 3, 4, 5, 6, 7, 8], [5; 8]);
        let next = |earlier: &[Trial]| warm_up(&load, "java", earlier);
        assert_eq!(next(&[]), load.warm_up);
        assert_eq!(
            next(&[trial("java", level), trial("go", rising)]),
            load.warm_up
        );
        assert_eq!(next(&[trial("java", rising)]), Duration::from_secs(3));
        let mut later = trial("java", rising);
        later
            .load
            .as_mut()
            .unwrap()
            .warm_up
            .as_mut()
            .unwrap()
            .took_s = 3.0;
        assert_eq!(next(&[later]), Duration::from_secs(5), "the limit");
    }

    #[test]
    fn servers_side_by_side_share_their_time() {
        let slices = |rounds| Settings {
            method: Method::Slices {
                length_s: None,
                rounds,
                budget_s: 30.0,
                warm_up_limit_s: 30.0,
                half_width: 0.01,
            },
            load: LoadSpec {
                warm_up: Duration::from_secs(1),
                ..LoadSpec::default()
            },
            clients: vec![5, 50],
            ..Settings::default()
        };
        let planned = |purpose, clients| TrialSpec {
            round: 0,
            server: 0,
            clients,
            purpose,
            percent: None,
        };
        let order = [
            planned(Purpose::Timed, 5),
            planned(Purpose::Control, 5),
            planned(Purpose::Timed, 50),
            planned(Purpose::Timed, 5),
        ];
        let plan = RunSpec {
            settings: slices(None),
            ..RunSpec::default()
        };
        assert_eq!(estimates(&plan, &order), [34.9515, 0.0, 31.655, 0.0]);
        let few = side_by_side(&slices(Some(10)), 5, 2);
        assert!((few - 3.701).abs() < 1e-9, "{few}");
    }

    #[test]
    fn events_are_counted_from_rest_to_rest_in_an_eager_load_too() {
        let load = LoadSpec {
            eager: true,
            ..LoadSpec::default()
        };
        assert!(is_eager(&load, Purpose::Timed) && !is_eager(&load, Purpose::Profiled));
    }

    #[test]
    fn jobs_have_time_enough_and_never_for_ever() {
        let jobs = |clients| LoadSpec {
            clients,
            requests_per_client: Some(2),
            think: Think::Fixed(Duration::from_secs(9)),
            ..LoadSpec::default()
        };
        assert!(time_for_jobs(&jobs(8)) > Duration::from_secs(2 * 9 * 8));
        assert!(time_for_jobs(&jobs(8)) < Duration::from_secs(2 * 9 * 8 + 70));
        assert_eq!(time_for_jobs(&jobs(u32::MAX)), AT_MOST);
        let limit = Duration::from_secs(5);
        let bounded = LoadSpec {
            time_limit: Some(limit),
            ..jobs(100_000)
        };
        assert_eq!(time_for_jobs(&bounded), limit);
    }
}
