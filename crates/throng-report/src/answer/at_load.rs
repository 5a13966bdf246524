//! Response times below the maximum rate, in sentences.

use crate::at_load::Share;
use crate::summary::{Row, Summary};
use throng_record::format::{counted, list, number, time};

/// The sentences about the largest number of clients, at the greatest share of the maximum rate that was tried. Empty
/// if none was tried.
pub(super) fn sentences(summary: &Summary) -> Vec<String> {
    let Some(clients) = summary.clients.last() else {
        return Vec::new();
    };
    let rows: Vec<&Row> = summary.rows_at(*clients).collect();
    let shares = rows.iter().flat_map(|row| &row.at_load);
    let Some(percent) = shares.map(|share| share.percent).max() else {
        return Vec::new();
    };
    [
        waiting(&rows, percent, *clients),
        not_compared(&rows, percent, *clients),
        not_kept(&rows, *clients),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// "At 80 % of their own maximum rates with 1,000 clients (one trial each), ...".
fn waiting(rows: &[&Row], percent: u32, clients: u32) -> Option<String> {
    let of_row = |row: &&Row| {
        row.at_load
            .iter()
            .find(|share| share.percent == percent)
            .cloned()
    };
    let mut kept: Vec<(&Row, Share, f64)> = rows
        .iter()
        .filter(|row| row.is_ranked() && !row.client_limited())
        .filter_map(|row| {
            let share = of_row(row)?;
            let p99_us = share.p99_us()?;
            Some((*row, share, p99_us))
        })
        .collect();
    kept.sort_by(|a, b| a.2.total_cmp(&b.2));
    let (clients, reported) = (
        counted(clients, "client"),
        |(row, share, p99_us): &(&Row, Share, f64)| {
            let rate = share
                .rate_reached_per_s()
                .map_or_else(String::new, |rate| format!(" at {}/s", number(rate)));
            let full = row
                .value("latency_p99_us")
                .map_or_else(String::new, |full| {
                    format!(" (p99 latency at full speed: {})", time(full))
                });
            format!("{}{rate}{full}", time(*p99_us))
        },
    );
    match kept.as_slice() {
        [] => None,
        [only] => Some(format!(
            "At {percent} % of its maximum rate with {clients} (one trial), {} has a p99 response time of {}.",
            only.0.server,
            reported(only)
        )),
        [shortest, .., longest] => Some(format!(
            "At {percent} % of their own maximum rates with {clients} (one trial each), {} has the lowest p99 \
             response time: {}; {} has the highest: {}.",
            shortest.0.server,
            reported(shortest),
            longest.0.server,
            reported(longest)
        )),
    }
}

/// Servers whose maximum rate was the load generator's.
fn not_compared(rows: &[&Row], percent: u32, clients: u32) -> Option<String> {
    let tried = |row: &&&Row| {
        row.at_load
            .iter()
            .any(|share| share.percent == percent && share.kept)
    };
    let limited: Vec<&str> = rows
        .iter()
        .filter(|row| row.client_limited())
        .filter(tried)
        .map(|row| row.server.as_str())
        .collect();
    (!limited.is_empty()).then(|| {
        format!(
            "With {}, the load generator was the limit for {}: response times at {percent} % of the maximum rate \
             include queueing in the generator and are not compared.",
            counted(clients, "client"),
            list(&limited)
        )
    })
}

/// Servers that did not sustain a share of their own maximum rate.
fn not_kept(rows: &[&Row], clients: u32) -> Option<String> {
    let all = rows.iter().flat_map(|row| {
        let shares = row.at_load.iter();
        shares.map(move |share| (&row.server, share))
    });
    let short: Vec<String> = all
        .filter(|(_, share)| !share.kept)
        .filter_map(|(server, share)| {
            Some(format!(
                "{server} at {} % ({} of {}/s)",
                share.percent,
                number(share.rate_reached_per_s()?),
                number(share.rate_asked_per_s?)
            ))
        })
        .collect();
    (!short.is_empty()).then(|| {
        format!(
            "With {}, a share of the server's own maximum rate was not sustained: {}.",
            counted(clients, "client"),
            list(&short)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use throng_record::{Purpose, Trial};

    fn text_of(change: impl Fn(&mut Trial)) -> String {
        let (run, mut trials) = fixture::at_load();
        trials.iter_mut().for_each(change);
        fixture::examine(&run, &mut trials);
        sentences(&Summary::of(&run, &trials).unwrap()).join("\n")
    }

    #[test]
    fn the_shortest_and_longest_waits_are_reported() {
        insta::assert_snapshot!(text_of(|_| ()));
    }

    #[test]
    fn servers_that_miss_the_rate_are_named_and_not_ranked() {
        let text = text_of(|trial| {
            let at_load = trial.purpose == Purpose::AtLoad && trial.server == "io-uring";
            if let Some(load) = trial.load.as_mut().filter(|_| at_load) {
                load.window.replies /= 2;
                load.window
                    .replies_per_s
                    .iter_mut()
                    .for_each(|rate| *rate /= 2.0);
            }
        });
        assert!(!text.contains("io-uring has the lowest"), "{text}");
        assert!(text.contains("sustained: io-uring at 50 % ("), "{text}");
    }

    #[test]
    fn parts_of_what_the_clients_reached_are_not_compared() {
        let text = text_of(|trial| {
            if trial.server == "io-uring" {
                fixture::limit_by_clients(trial);
            }
        });
        assert!(!text.contains("io-uring has the lowest"), "{text}");
        assert!(
            text.contains("the limit for io-uring: response times at 80 %"),
            "{text}"
        );
    }

    #[test]
    fn nothing_is_said_of_a_run_without() {
        let (run, trials) = fixture::record();
        let summary = Summary::of(&run, &trials).unwrap();
        assert_eq!(sentences(&summary), [""; 0]);
    }
}
