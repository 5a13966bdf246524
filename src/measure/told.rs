//! What the load of a trial is told, as options of `throng load`.

use std::time::Duration;

use super::plan::Planned;
use super::run::RunPlan;
use crate::load::phase::LONGEST_SETTLE;
use crate::record::{Purpose, Settings, Trial};

/// Longest steady part of a trial whose packets are captured: enough for figures of flows, and for a
/// file that can still be opened.
const CAPTURED_S: f64 = 3.0;

/// How long replies count in a trial. What counts events takes a quarter of the time, but half a
/// second where that is less: nothing is timed, and counts of a reply differ little.
fn duration_s(settings: &Settings, purpose: Purpose) -> f64 {
    let full = settings.duration_s;
    match purpose {
        Purpose::Counted => full.min((full / 4.0).max(0.5)),
        Purpose::Captured => full.min(CAPTURED_S),
        _ => full,
    }
}

/// What a trial of this purpose takes beside what its settings say: a server to start and to verify, clients
/// that come, rest and go.
const BESIDE_S: f64 = 0.5;
/// Where several hosts tell figures, how far apart two of these are at least.
const FIGURES_APART: Duration = Duration::from_millis(5);

/// What a trial of this purpose takes by its settings; 1 where these do not say it.
pub(super) fn foreseen(plan: &RunPlan, purpose: Purpose) -> f64 {
    if plan.jobs.is_some() {
        return 1.0;
    }
    let coming = plan.coming.as_secs_f64();
    coming + plan.settings.warm_up_s + duration_s(&plan.settings, purpose) + BESIDE_S
}

/// The words behind `throng load`, but for what depends on where it runs. If somebody wants to see figures
/// every so often, it tells them.
pub(super) fn words(plan: &RunPlan, trial: &Trial, figures_every: Option<Duration>) -> Vec<String> {
    let settings = &plan.settings;
    let seconds = |value: f64| format!("{}us", (value * 1e6).round());
    let mut load = vec!["--controlled".to_owned()];
    load.extend(settings.options_of_load());
    let mut option = |name: &str, value: String| load.extend([name.to_owned(), value]);
    option("--clients", trial.clients.to_string());
    if let Some(rate) = trial.below.and_then(|below| below.rate_per_s) {
        option("--rate", format!("{rate:.3}"));
        option("--arrival", "poisson".to_owned());
    }
    if let Some(rate) = plan.rate_of(trial.attempt.as_ref()) {
        option("--rate", rate.to_string());
    }
    match &plan.jobs {
        Some(jobs) if jobs.limit.is_some() => {} // among the options
        Some(jobs) => {
            let limit = plan.coming + jobs.limit(trial.clients);
            option("--time-limit", seconds(limit.as_secs_f64()));
        }
        None => {
            let duration = duration_s(settings, trial.purpose);
            option("--duration", seconds(duration));
            option("--warm-up", seconds(settings.warm_up_s));
        }
    }
    if let Some(every) = figures_every {
        let hosts = u32::try_from(plan.client_hosts.len()).unwrap_or(u32::MAX);
        let every = every.max(FIGURES_APART.saturating_mul(hosts));
        option("--figures-every", seconds(every.as_secs_f64()));
    }
    option("--connect-timeout", seconds(settings.connect_timeout_s));
    option("--patience", seconds(settings.patience_s));
    load
}

/// What a load may take before it counts as hung.
pub(super) fn limit(plan: &RunPlan, planned: &Planned) -> Duration {
    let settings = &plan.settings;
    let limit = match &plan.jobs {
        Some(jobs) => jobs.limit(planned.clients),
        None => Duration::from_secs_f64(settings.warm_up_s + settings.duration_s),
    };
    let patience = settings.connect_timeout_s + settings.patience_s * f64::from(LONGEST_SETTLE);
    plan.coming + limit + Duration::from_secs_f64(patience)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_takes_less_time_than_timing() {
        let mut settings = Settings {
            duration_s: 20.0,
            ..Settings::default()
        };
        let counted = |settings: &Settings| duration_s(settings, Purpose::Counted);
        assert!((counted(&settings) - 5.0).abs() < 1e-9);
        assert!((duration_s(&settings, Purpose::Captured) - 3.0).abs() < 1e-9);
        settings.duration_s = 1.0;
        assert!((counted(&settings) - 0.5).abs() < 1e-9);
        settings.duration_s = 0.1;
        assert!((counted(&settings) - 0.1).abs() < 1e-9);
        assert!((duration_s(&settings, Purpose::Timed) - 0.1).abs() < 1e-9);
    }
}
