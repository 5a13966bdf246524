//! The duration of warm-ups, and servers whose rate never levelled off.

use crate::summary::Summary;
use throng_record::Run;
use throng_record::format::time;

/// A server is named if its warm-up took more than this many times as long as the shortest one.
const LONGER: f64 = 1.2;

/// "0.30 s, for node 4.20 s": the shortest warm-up, and servers that took longer; `None` without such a warm-up.
pub(crate) fn reported(summary: &Summary) -> Option<String> {
    let of_server = |server: &String| {
        let rows = summary.rows.iter().filter(|row| row.server == *server);
        let took = rows.filter_map(|row| row.value("warm_up_s"));
        took.max_by(f64::total_cmp)
    };
    let servers = summary.servers.iter();
    let took: Vec<(&String, f64)> = servers
        .filter_map(|server| Some((server, of_server(server)?)))
        .collect();
    let least = took.iter().map(|(_, took)| *took).min_by(f64::total_cmp)?;
    let longer = took
        .iter()
        .filter(|(_, took)| *took > LONGER * least)
        .map(|(server, took)| format!(", for {server} {}", time(took * 1e6)));
    Some(time(least * 1e6) + &longer.collect::<String>())
}

/// Why there was no such warm-up, if the load would have allowed one.
pub(crate) fn why_not(run: &Run) -> Option<String> {
    let load = &run.settings.load;
    let is_asked = load.longest_warm_up() > load.warm_up;
    (is_asked && run.client_hosts.len() > 1)
        .then(|| "no: with several client hosts, warm-up has the requested length".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Report;
    use crate::exporters::{EXPORTERS, Exporter};
    use crate::fixture;
    use throng_record::findings::replies::NOT_LEVEL;
    use throng_record::{Settling, Trial, Unsettled, WarmUp};

    fn warmed_up(trial: &mut Trial) {
        let is_slow = trial.server == "thread";
        if let Some(load) = &mut trial.load {
            load.warm_up = Some(WarmUp {
                took_s: if is_slow { 4.2 } else { 0.3 },
                unsettled: None,
            });
        }
    }

    fn rendered(exporter: &Exporter, report: &Report<'_>) -> String {
        let mut text = Vec::new();
        (exporter.render)(report, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn how_long_it_took_is_in_every_report() {
        let (run, mut trials) = fixture::record();
        assert_eq!(reported(&Summary::of(&run, &trials).unwrap()), None);
        let mut of_hosts = run.clone();
        assert_eq!(why_not(&of_hosts), None);
        let host = throng_record::ClientHost::default();
        of_hosts.client_hosts = vec![host.clone(), host];
        of_hosts.settings.load.duration = Some(std::time::Duration::from_secs(1));
        assert!(why_not(&of_hosts).is_some());
        trials.iter_mut().for_each(warmed_up);
        let report = Report::of(&run, &trials, &crate::Logs::default()).unwrap();
        assert_eq!(
            reported(&report.summary).unwrap(),
            "300 ms, for thread 4.20 s"
        );
        let notes = report.answer.notes.join("\n");
        assert!(
            notes.contains("Warm-up took 300 ms, for thread 4.20 s."),
            "{notes}"
        );
        for name in ["html", "markdown"] {
            let exporter = EXPORTERS.iter().find(|one| one.info.name == name);
            let text = rendered(exporter.unwrap(), &report);
            assert!(text.contains("300 ms, for thread 4.20 s"), "{name}");
        }
    }

    #[test]
    fn a_server_that_was_never_level_is_named_and_not_ranked() {
        let (run, mut trials) = fixture::record();
        trials.retain(|trial| trial.clients == 100);
        let unsettled = Some(Unsettled {
            what: Settling::Rate,
            change: 0.2,
        });
        let cut_off = |trial: &mut Trial| {
            if let Some(load) = &mut trial.load {
                let took_s = 30.0;
                load.warm_up = Some(WarmUp { took_s, unsettled });
                let fault = load.warm_up.unwrap().fault().unwrap();
                trial.findings = vec![NOT_LEVEL.found(fault)];
            }
        };
        let of_epoll = |trial: &&mut Trial| trial.server == "epoll";
        trials.iter_mut().filter(of_epoll).for_each(cut_off);
        let mut run = run;
        let answer = |run: &throng_record::Run, trials: &[Trial]| {
            let report = Report::of(run, trials, &crate::Logs::default()).unwrap();
            let sentences: Vec<&str> = report.answer.sentences().collect();
            (sentences.join("\n"), report.rough())
        };
        let fault = "its rate was still rising after 30.0 s of warm-up";
        let (text, _) = answer(&run, &trials);
        assert!(
            text.contains(&format!("epoll is not ranked: {fault}.")),
            "{text}"
        );
        assert!(!text.contains("epoll is fastest"), "{text}");
        run.comparison = Some(throng_record::Comparison {
            reference: "thread".to_owned(),
            ..throng_record::Comparison::default()
        });
        let (text, _) = answer(&run, &trials);
        let pair = format!("epoll and thread are not comparable: epoll: {fault}.");
        assert!(text.contains(&pair), "{text}");
        // Its figures come from the trials in which it was level; the other trials are set aside.
        let first = trials
            .iter_mut()
            .find(|trial| trial.server == "epoll")
            .unwrap();
        first.findings.clear();
        first.load.as_mut().unwrap().warm_up = None;
        let (text, _) = answer(&run, &trials);
        assert!(!text.contains("are not comparable: epoll"), "{text}");
    }
}
