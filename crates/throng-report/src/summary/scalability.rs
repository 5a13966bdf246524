//! Throughput and cost of each server against the number of clients: the rows used, and their description. The
//! mathematics are in [`throng_stats::scalability`].

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Row, has_jobs};
use throng_record::findings::replies::UNSTEADY;
use throng_record::format::whole;
use throng_stats::Sample;
use throng_stats::scalability::{
    self as stats, Estimate, FEWEST_FOR_GROWTH, FEWEST_FOR_TURN, Group, Growth, LEAST_SPAN,
};

/// The scalability of one server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scaling {
    /// Name of the server.
    pub server: String,
    /// The number of clients with the highest rate, if the rate falls beyond it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_clients: Option<Estimate>,
    /// The largest number of clients of which the rate is known, if there are enough to see a peak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_up_to: Option<u32>,
    /// Why it is unknown whether the rate has a peak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_peak: Option<String>,
    /// The power with which the CPU time per reply grows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_growth: Option<Growth>,
    /// Why there is no such power.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_cpu_growth: Option<String>,
    /// Numbers of clients whose rates are left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<LeftOutReason, Vec<u32>>,
}

/// Why a row is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftOutReason {
    /// Not every client was served in every trial, or all trials failed.
    NotServed,
    /// The rate drifted while it was measured, in half of the trials or more.
    Unsteady,
    /// The load generator ran out of CPU, so the rate is the generator's own. Costs still count.
    ClientLimited,
    /// The load set the pace, so the rate is the load's own. Costs still count.
    Paced,
}

impl Scaling {
    /// The scalability of all servers of a run; empty without enough numbers of clients.
    pub(super) fn of_run(
        servers: &[String],
        clients: &[u32],
        rows: &[Row],
        seed: u64,
    ) -> Vec<Self> {
        let spans = matches!(clients, [first, .., last] if last / (*first).max(1) >= LEAST_SPAN);
        // Clients with a job each come and go.
        if has_jobs(rows) || !spans || clients.len() < FEWEST_FOR_GROWTH {
            return Vec::new();
        }
        servers
            .iter()
            .map(|server| {
                let rows: Vec<&Row> = rows.iter().filter(|row| row.server == *server).collect();
                Self::of(server, &rows, clients.len(), seed)
            })
            .collect()
    }

    fn of(server: &str, rows: &[&Row], numbers: usize, seed: u64) -> Self {
        let points = |usable: fn(Option<LeftOutReason>) -> bool, metric: &str| {
            let rows = rows.iter().filter(|row| usable(why(row)));
            let groups = rows.map(|row| Group {
                clients: row.clients,
                trials: row
                    .metrics
                    .sample(metric)
                    .map_or_else(Vec::new, Sample::by_round),
            });
            groups.collect::<Vec<Group>>()
        };
        let rates = points(|why| why.is_none(), "requests_per_s");
        let peak = (numbers >= FEWEST_FOR_TURN).then(|| stats::turning_point(&rates, seed));
        // Costs count although the rate is not the server's own.
        let has_own_cost = |why| {
            use LeftOutReason::{ClientLimited, Paced};
            matches!(why, None | Some(ClientLimited | Paced))
        };
        let costs = points(has_own_cost, "server_cpu_us_per_request");
        let growth = stats::growth(&costs, seed);
        let rate_up_to = match &peak {
            Some(Ok(_)) => rates.last().map(|group| group.clients),
            Some(Err(_)) | None => None,
        };
        let (peak, no_peak) = peak.map_or((None, None), found_or_why);
        let (cpu_growth, no_cpu_growth) = found_or_why(growth);
        let mut left_out: BTreeMap<LeftOutReason, Vec<u32>> = BTreeMap::new();
        for row in rows {
            if let Some(why) = why(row) {
                left_out.entry(why).or_default().push(row.clients);
            }
        }
        Self {
            server: server.to_owned(),
            peak_clients: peak.flatten(),
            rate_up_to,
            no_peak,
            cpu_growth,
            no_cpu_growth,
            left_out,
        }
    }
}

fn found_or_why<T>(found: Result<T, stats::FitError>) -> (Option<T>, Option<String>) {
    match found {
        Ok(found) => (Some(found), None),
        Err(unfit) => (None, Some(unfit.to_string())),
    }
}

/// Why the rate of a row is left out, or `None` when it is not.
fn why(row: &Row) -> Option<LeftOutReason> {
    if !row.served_all {
        Some(LeftOutReason::NotServed)
    } else if row.mostly(&UNSTEADY) {
        Some(LeftOutReason::Unsteady)
    } else if row.client_limited() {
        Some(LeftOutReason::ClientLimited)
    } else if row.paced_by.is_some() {
        Some(LeftOutReason::Paced)
    } else {
        None
    }
}

/// "1.2–1.4", or empty without an interval.
pub(crate) fn range(estimate: &Estimate, text: fn(f64) -> String) -> String {
    let (Some(low), Some(high)) = (estimate.low, estimate.high) else {
        return String::new();
    };
    let to = if low < 0.0 { " to " } else { "–" };
    format!("{}{to}{}", text(low), text(high))
}

/// An exponent with two decimals and a proper minus sign.
pub(crate) fn power(value: f64) -> String {
    let text = format!("{:.2}", value.abs());
    if value < 0.0 && text != "0.00" {
        format!("−{text}")
    } else {
        text
    }
}

pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 {
        format!("{percent:.1} %")
    } else {
        format!("{} %", whole(percent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::summary::Summary;
    use throng_record::Trial;

    fn scaling(change: impl Fn(&mut Trial)) -> Vec<Scaling> {
        let (run, mut trials) = fixture::growing();
        trials.iter_mut().for_each(change);
        fixture::examine(&run, &mut trials);
        Summary::of(&run, &trials).unwrap().scaling
    }

    fn of<'a>(scaling: &'a [Scaling], server: &str) -> &'a Scaling {
        scaling.iter().find(|one| one.server == server).unwrap()
    }

    #[test]
    fn seven_numbers_of_clients_show_a_peak_and_a_growth() {
        let all = scaling(|trial| {
            if trial.server == "select" && trial.clients == 900 {
                let load = trial.load.as_mut().unwrap();
                load.window
                    .replies_per_s
                    .iter_mut()
                    .for_each(|rate| *rate *= 0.5);
            }
        });
        let (epoll, select) = (of(&all, "epoll"), of(&all, "select"));
        assert!(
            epoll.rate_up_to == Some(900) && epoll.left_out.is_empty(),
            "{epoll:?}"
        );
        assert!(select.peak_clients.is_some_and(|peak| peak.value < 900.0));
        let exponent = |one: &Scaling| one.cpu_growth.as_ref().unwrap().exponent;
        assert!((exponent(epoll).value - 1.03_f64.log10()).abs() < 0.01);
        assert!((exponent(select).value - 1.9_f64.log10()).abs() < 0.01);
        assert!(exponent(select).low.unwrap() > exponent(epoll).high.unwrap());
    }

    #[test]
    fn servers_with_unserved_clients_have_a_reason_instead_of_a_peak() {
        let all = scaling(|_| ());
        let prefork = of(&all, "prefork");
        assert_eq!(prefork.rate_up_to, None);
        assert_eq!(
            prefork.no_peak.as_deref(),
            Some("3 usable of the 6 different numbers of clients that it needs")
        );
        assert_eq!(prefork.left_out[&LeftOutReason::NotServed][0], 100);
        assert!(prefork.cpu_growth.is_some());
    }

    #[test]
    fn rates_of_the_load_generator_and_drifting_ones_are_left_out() {
        let all = scaling(|trial| {
            if trial.clients == 900 {
                fixture::limit_by_clients(trial);
            }
            if trial.clients == 1 {
                let intervals = &mut trial.load.as_mut().unwrap().window.intervals;
                *intervals = (0..20).map(|place| 100 + 10 * place).collect();
            }
        });
        let epoll = of(&all, "epoll");
        let left_out = [
            (LeftOutReason::Unsteady, vec![1]),
            (LeftOutReason::ClientLimited, vec![900]),
        ];
        assert_eq!(epoll.left_out, BTreeMap::from(left_out));
        assert!(epoll.rate_up_to.is_none() && epoll.no_peak.is_some());
        let measured = &epoll.cpu_growth.as_ref().unwrap().residuals;
        let clients: Vec<u32> = measured.iter().map(|residual| residual.clients).collect();
        assert_eq!(
            clients,
            [5, 20, 100, 300, 600, 900],
            "costs are still its own"
        );
    }

    #[test]
    fn three_numbers_of_clients_give_a_growth_only_and_one_gives_nothing() {
        let (run, mut trials) = fixture::record();
        let summary = Summary::of(&run, &trials).unwrap();
        let epoll = of(&summary.scaling, "epoll");
        assert!(epoll.cpu_growth.is_some() && epoll.no_peak.is_none());
        trials.retain(|trial| trial.clients == 100);
        assert!(Summary::of(&run, &trials).unwrap().scaling.is_empty());
    }

    #[test]
    fn intervals_of_negative_numbers_have_no_dash() {
        let estimate = |low, high| Estimate {
            value: 1.0,
            low: Some(low),
            high: Some(high),
        };
        assert_eq!(range(&estimate(0.5, 2.0), power), "0.50–2.00");
        assert_eq!(range(&estimate(-0.5, 0.001), power), "−0.50 to 0.00");
        assert_eq!(range(&estimate(0.5, 0.5), power), "0.50–0.50");
    }
}
