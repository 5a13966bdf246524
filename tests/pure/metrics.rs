//! The catalogue of metrics and the table of probes fit together.

use throng::measure::probes::{PROBES, Subject};
use throng::record::metrics::{METRICS, Subject as Whom};
use throng::registry::find;

#[test]
fn every_metric_of_a_probe_is_in_its_lines() {
    for metric in METRICS {
        let Some(probe) = metric.probe else {
            continue;
        };
        let (kind, name) = (find("probe", PROBES, probe).unwrap(), metric.name);
        assert!(kind.purpose == metric.purpose, "{name}");
        let of_network = kind.subject == Subject::Network;
        assert_eq!(metric.subject == Whom::Network, of_network, "{name}");
        assert!(kind.metrics.iter().any(|one| one.name == name), "{name}");
    }
}
