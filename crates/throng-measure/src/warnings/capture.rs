//! Warnings from a packet capture: failed connections, and missing packets.

use super::warning;
use throng_record::format::{list, whole};
use throng_record::{Settings, Trial, Warning};
use throng_spec::Close;

/// Warnings about the packets of one trial, if they were captured.
pub(super) fn of_trial(trial: &Trial, settings: &Settings) -> Vec<Warning> {
    let figure = |name: &str| {
        let value = trial.network.as_ref()?.metrics.get(name);
        value.copied().filter(|value| *value > 0.0)
    };
    [
        failed(figure, settings.load.close == Close::Reset),
        dropped(figure),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Connections that failed, or ended badly.
fn failed(figure: impl Fn(&str) -> Option<f64>, clients_reset: bool) -> Option<Warning> {
    let ways = [
        ("refused_flows", "refused by the server"),
        ("unanswered_flows", "without a reply to their SYN"),
        ("flows_reset_by_server", "reset by the server"),
        ("flows_reset_by_client", "reset by the client"),
    ];
    let on_purpose = |name: &str| clients_reset && name == "flows_reset_by_client";
    let parts: Vec<String> = ways
        .iter()
        .filter(|(name, _)| !on_purpose(name))
        .filter_map(|(name, how)| Some(format!("{} {how}", whole(figure(name)?))))
        .collect();
    (!parts.is_empty()).then(|| {
        let of = figure("flows").map_or_else(String::new, |flows| {
            format!(" of {} captured connections", whole(flows))
        });
        warning(
            "failed-flows",
            format!("some{of} failed: {}", list(&parts)),
            "run `throng flows` on the file in captures/, and see the errors of the clients",
        )
    })
}

/// Packets missing from the capture, so that its counts are too low.
fn dropped(figure: impl Fn(&str) -> Option<f64>) -> Option<Warning> {
    let dropped = figure("capture_dropped")?;
    let captured = figure("packets").map_or_else(String::new, |packets| {
        format!(" ({} were captured)", whole(packets))
    });
    Some(warning(
        "dropped-packets",
        format!(
            "the kernel dropped {} packets before tcpdump saw them{captured}: bytes, retransmissions and \
             complete connections are undercounted",
            whole(dropped)
        ),
        "use fewer --clients, a shorter --duration or more CPUs",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_record::{Purpose, Side};
    use throng_spec::LoadSpec;

    fn parts(metrics: &[(&str, f64)], close: Close) -> Vec<(String, String)> {
        let metrics = metrics
            .iter()
            .map(|&(name, value)| (name.to_owned(), value));
        let trial = Trial {
            purpose: Purpose::Captured,
            network: Some(Side {
                metrics: metrics.collect(),
                ..Side::default()
            }),
            ..Trial::default()
        };
        let settings = Settings {
            load: LoadSpec {
                close,
                ..LoadSpec::default()
            },
            ..Settings::default()
        };
        of_trial(&trial, &settings)
            .into_iter()
            .map(|warning| (warning.kind, warning.message))
            .collect()
    }

    #[test]
    fn connections_that_failed_are_reported_with_how_they_ended() {
        let flows = [
            ("flows", 1000.0),
            ("complete_flows", 1000.0),
            ("refused_flows", 0.0),
            ("unanswered_flows", 2.0),
            ("flows_reset_by_server", 11.0),
            ("capture_dropped", 0.0),
        ];
        let parts = parts(&flows, Close::Orderly);
        let message = "some of 1,000 captured connections failed: 2 without a reply to their SYN and 11 reset \
                       by the server";
        assert_eq!(parts, [("failed-flows".to_owned(), message.to_owned())]);
    }

    #[test]
    fn a_client_that_is_to_reset_has_not_failed() {
        let flows = [("flows", 5.0), ("flows_reset_by_client", 5.0)];
        assert_eq!(parts(&flows, Close::Orderly).len(), 1);
        assert_eq!(parts(&flows, Close::Reset), []);
    }

    #[test]
    fn packets_that_the_kernel_dropped_are_reported() {
        let flows = [
            ("flows", 5.0),
            ("packets", 90_000.0),
            ("capture_dropped", 1200.0),
        ];
        let parts = parts(&flows, Close::Orderly);
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].0, "dropped-packets");
        assert!(parts[0].1.contains("1,200 packets"), "{parts:?}");
        assert!(parts[0].1.contains("(90,000 were captured)"), "{parts:?}");
    }

    #[test]
    fn whole_captures_and_none_at_all_are_not_worth_a_word() {
        let flows = [("flows", 5.0), ("complete_flows", 5.0), ("packets", 90.0)];
        assert_eq!(parts(&flows, Close::Orderly), []);
        assert_eq!(parts(&[], Close::Orderly), []);
    }
}
