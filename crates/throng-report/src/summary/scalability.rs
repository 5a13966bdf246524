//! Throughput and cost of each server against the number of clients: the rows used, and their description. The
//! mathematics are in [`throng_stats::scalability`].

use serde::Serialize;

use super::{Row, has_jobs};
use throng_record::format::whole;
use throng_stats::Sample;
use throng_stats::scalability::{
    self as stats, Estimate, FEWEST_FOR_GROWTH, FEWEST_FOR_LAW, Group, Growth, LEAST_SPAN, Law,
    Weights,
};

/// The scalability of one server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scaling {
    /// Name of the server.
    pub server: String,
    /// The Universal Scalability Law through its rates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub law: Option<Law>,
    /// Why there is no law, if the run has enough numbers of clients for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_law: Option<String>,
    /// The power with which the CPU time per reply grows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_growth: Option<Growth>,
    /// Why there is no such power.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_cpu_growth: Option<String>,
    /// Rows that the law leaves out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// A row that the law leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Number of clients.
    pub clients: u32,
    pub why: LeftOutReason,
}

/// Why a row is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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
        let grows = spans && clients.len() >= FEWEST_FOR_GROWTH;
        let curves = clients.len() >= FEWEST_FOR_LAW;
        // The law does not apply to clients with a job each.
        if has_jobs(rows) || (!grows && !curves) {
            return Vec::new();
        }
        servers
            .iter()
            .map(|server| {
                let rows: Vec<&Row> = rows.iter().filter(|row| row.server == *server).collect();
                Self::of(server, &rows, curves, seed)
            })
            .collect()
    }

    fn of(server: &str, rows: &[&Row], curves: bool, seed: u64) -> Self {
        let points = |usable: fn(Option<LeftOutReason>) -> bool, metric: &str| {
            rows.iter()
                .filter(|row| usable(why(row)))
                .map(|row| Group {
                    clients: row.clients,
                    trials: row
                        .metrics
                        .sample(metric)
                        .map_or_else(Vec::new, Sample::by_round),
                })
                .collect::<Vec<Group>>()
        };
        let law = curves.then(|| {
            let rates = points(|why| why.is_none(), "requests_per_s");
            stats::fit(&rates, Weights::Relative, seed)
        });
        let costs = points(
            |why| {
                matches!(
                    why,
                    None | Some(LeftOutReason::ClientLimited | LeftOutReason::Paced)
                )
            },
            "server_cpu_us_per_request",
        );
        let growth = stats::growth(&costs, seed);
        let (law, no_law) = law.map_or((None, None), found_or_why);
        let (cpu_growth, no_cpu_growth) = found_or_why(growth);
        Self {
            server: server.to_owned(),
            law,
            no_law,
            cpu_growth,
            no_cpu_growth,
            left_out: rows
                .iter()
                .filter_map(|row| {
                    Some(LeftOut {
                        clients: row.clients,
                        why: why(row)?,
                    })
                })
                .collect(),
        }
    }
}

fn found_or_why<T>(found: Result<T, stats::FitError>) -> (Option<T>, Option<String>) {
    match found {
        Ok(found) => (Some(found), None),
        Err(unfit) => (None, Some(unfit.to_string())),
    }
}

/// Why the law leaves a row out, or `None` when it does not.
fn why(row: &Row) -> Option<LeftOutReason> {
    if !row.served_all {
        Some(LeftOutReason::NotServed)
    } else if 2 * row.unsteady >= row.trials_ok {
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
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) if high.is_finite() => {
            let to = if low < 0.0 { " to " } else { "–" };
            format!("{}{to}{}", text(low), text(high))
        }
        (Some(low), Some(_)) => format!("≥{}", text(low)),
        _ => String::new(),
    }
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
        Summary::of(&run, &trials).unwrap().scaling
    }

    fn of<'a>(scaling: &'a [Scaling], server: &str) -> &'a Scaling {
        scaling.iter().find(|one| one.server == server).unwrap()
    }

    #[test]
    fn seven_numbers_of_clients_give_a_law_and_a_growth() {
        let all = scaling(|_| ());
        let (epoll, select) = (of(&all, "epoll"), of(&all, "select"));
        assert!(
            epoll.law.is_some() && epoll.left_out.is_empty(),
            "{epoll:?}"
        );
        let exponent = |one: &Scaling| one.cpu_growth.as_ref().unwrap().exponent;
        assert!((exponent(epoll).value - 1.03_f64.log10()).abs() < 0.01);
        assert!((exponent(select).value - 1.9_f64.log10()).abs() < 0.01);
        assert!(exponent(select).low.unwrap() > exponent(epoll).high.unwrap());
    }

    #[test]
    fn servers_with_unserved_clients_have_no_curve_and_a_reason() {
        let all = scaling(|_| ());
        let prefork = of(&all, "prefork");
        assert!(prefork.law.is_none());
        assert_eq!(
            prefork.no_law.as_deref(),
            Some("3 usable of the 6 different numbers of clients that it needs")
        );
        assert_eq!(
            prefork.left_out[0],
            LeftOut {
                clients: 100,
                why: LeftOutReason::NotServed
            }
        );
        assert!(prefork.cpu_growth.is_some());
    }

    #[test]
    fn rates_of_the_load_generator_and_drifting_ones_are_left_out() {
        let all = scaling(|trial| {
            if trial.clients == 900 {
                let side = trial.client_side.as_mut().unwrap();
                side.metrics.insert("cpu_percent".to_owned(), 99.0);
            }
            if trial.clients == 1 && trial.round > 0 {
                let intervals = &mut trial.load.as_mut().unwrap().window.intervals;
                *intervals = (0..20).map(|place| 100 + 10 * place).collect();
            }
        });
        let epoll = of(&all, "epoll");
        let left_out: Vec<_> = epoll
            .left_out
            .iter()
            .map(|out| (out.clients, out.why))
            .collect();
        assert_eq!(
            left_out,
            [
                (1, LeftOutReason::Unsteady),
                (900, LeftOutReason::ClientLimited)
            ]
        );
        assert!(epoll.law.is_none() && epoll.no_law.is_some());
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
        assert!(epoll.law.is_none() && epoll.no_law.is_none() && epoll.cpu_growth.is_some());
        trials.retain(|trial| trial.clients == 100);
        assert!(Summary::of(&run, &trials).unwrap().scaling.is_empty());
    }

    #[test]
    fn intervals_say_when_they_are_open_or_nothing() {
        let estimate = |low, high| Estimate {
            value: 1.0,
            low: Some(low),
            high: Some(high),
        };
        assert_eq!(range(&estimate(0.5, 2.0), power), "0.50–2.00");
        assert_eq!(range(&estimate(-0.5, 0.001), power), "−0.50 to 0.00");
        assert_eq!(range(&estimate(0.5, f64::INFINITY), power), "≥0.50");
        assert_eq!(range(&estimate(0.5, 0.5), power), "0.50–0.50");
    }
}
