//! The comparisons of a page: servers ranked by each metric, compared with a reference and with a baseline.
//!
//! All of them have ratios with intervals from one function (`pair`) and verdicts from one family of tests
//! (`judge`), so the same ratio has the same verdict in every place.

mod baseline;
mod pair;
pub(crate) mod ranking;
pub mod size;
mod words;

use serde::Serialize;

use super::summary::Summary;
pub use baseline::Baseline;
pub(super) use baseline::apart;
pub use pair::{LongerRun, Pair, PairMetric};
pub(super) use pair::{Pairing, Source, compared_by, judge, others, pair};
use ranking::Ranking;
use throng_record::metrics::{Better, ConditionResult, Metric};
use throng_record::{Run, Trial};
use throng_stats::Verdict;

/// The comparisons of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// The server that the others are compared with, if the run names one.
    pub reference: Option<String>,
    /// Every other server compared with the reference, the largest number of clients first.
    pub pairs: Vec<Pair>,
    /// Servers compared with an earlier run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// Thresholds on ratios, and whether they were missed.
    pub demands: Vec<ConditionResult>,
    /// The servers by each metric that ranks them, with each number of clients.
    #[serde(skip)]
    rankings: Vec<Ranking>,
}

impl Comparison {
    /// Compares the servers of a run. The verdicts follow in `judge`.
    ///
    /// # Errors
    /// When the baseline's histograms cannot be read.
    pub fn of(
        run: &Run,
        summary: &Summary,
        baseline: Option<&(Run, Vec<Trial>)>,
    ) -> anyhow::Result<Self> {
        let now = Source { run, summary };
        let rankings = Ranking::all(now);
        let Some(asked) = &run.comparison else {
            return Ok(Self {
                rankings,
                ..Self::default()
            });
        };
        let pairs = against_reference(now, |_| Some(&asked.reference));
        let earlier = match baseline {
            Some((then, then_trials)) => Some(Baseline::of(now, then, then_trials)?),
            None => None,
        };
        let mut demands = Vec::new();
        if let Some(percent) = asked.slower_percent {
            let against = earlier
                .as_ref()
                .map_or(&pairs, |of_baseline| &of_baseline.pairs);
            demands.extend(against.iter().map(|pair| pair.not_slower(percent)));
        }
        Ok(Self {
            reference: Some(asked.reference.clone()),
            pairs,
            baseline: earlier,
            demands,
            rankings,
        })
    }

    /// It, if the run names a reference.
    pub fn requested(&self) -> Option<&Self> {
        self.reference.as_ref().map(|_| self)
    }

    /// Withholds all verdicts, since the run is not fit for any.
    pub(super) fn withhold(&mut self, why: &str) {
        for pair in of_both(&mut self.pairs, &mut self.baseline) {
            pair.withhold(why);
        }
        for cell in self.rankings.iter_mut().flat_map(Ranking::cells) {
            cell.withhold(why);
        }
    }

    /// Gives all its comparisons their verdicts, in one family of tests, and what follows from them: the standing of
    /// each server, and sentences.
    pub(super) fn judge(&mut self) {
        let pairs = of_both(&mut self.pairs, &mut self.baseline);
        let of_pairs = pairs.flat_map(|pair| &mut pair.measures);
        judge(of_pairs.chain(self.rankings.iter_mut().flat_map(Ranking::cells)));
        self.rankings.iter_mut().for_each(Ranking::conclude);
        for pair in of_both(&mut self.pairs, &mut self.baseline) {
            pair.sentence = words::sentence(pair);
        }
    }

    /// The servers by a metric with `clients` clients, if any has a value.
    pub(crate) fn ranking(&self, clients: u32, metric: &str) -> Option<&Ranking> {
        let mut all = self.rankings.iter();
        all.find(|one| one.clients == clients && one.metric.name == metric)
    }

    /// Whether a server has more of a metric than another, if the run compares them by it: 1 for more, -1 for less, 0
    /// if neither is shown.
    pub(crate) fn direction(
        &self,
        clients: u32,
        metric: &Metric,
        servers: [&str; 2],
    ) -> Option<i8> {
        let pairs = self.pairs.iter().filter(|pair| pair.clients == clients);
        let of_pairs = pairs.filter_map(|pair| {
            let names = [pair.server.as_str(), &pair.reference];
            Some((names, pair.by(metric.name)?.verdict))
        });
        let ranking = self.ranking(clients, metric.name);
        let of_ranking = ranking.into_iter().flat_map(Ranking::verdicts);
        let mut compared = of_pairs.chain(of_ranking);
        let (names, verdict) = compared.find(|([server, reference], _)| {
            let names = [*server, *reference];
            names == servers || names == [servers[1], servers[0]]
        })?;
        let better = match metric.better {
            Better::Higher => 1,
            _ => -1,
        };
        let of_server = match verdict {
            Verdict::Better => better,
            Verdict::Worse => -better,
            Verdict::Equivalent | Verdict::Inconclusive => 0,
            Verdict::NotComparable => return None,
        };
        Some(if names == servers {
            of_server
        } else {
            -of_server
        })
    }

    /// Every pair; pairs within the run come first.
    pub fn all_pairs(&self) -> impl Iterator<Item = &Pair> {
        let then = self.baseline.iter().flat_map(|baseline| &baseline.pairs);
        self.pairs.iter().chain(then)
    }

    /// The pairs that its first sentence is about.
    pub(crate) fn leading_pairs(&self, clients: u32) -> Vec<&Pair> {
        let pairs = self.baseline.as_ref().map_or(&self.pairs, |one| &one.pairs);
        let all = pairs.iter();
        all.filter(|pair| pair.clients == clients).collect()
    }

    /// Caveats about the comparison.
    pub(super) fn notes(&self) -> Vec<String> {
        let caveats = self.baseline.iter();
        caveats.map(|baseline| baseline.caveat.clone()).collect()
    }
}

/// Every pair within the run, then those with an earlier one.
fn of_both<'a>(
    pairs: &'a mut [Pair],
    baseline: &'a mut Option<Baseline>,
) -> impl Iterator<Item = &'a mut Pair> {
    let then = baseline.iter_mut();
    pairs
        .iter_mut()
        .chain(then.flat_map(|of_baseline| &mut of_baseline.pairs))
}

/// Pairs every other server of a run with the server that `reference` names for each number of clients, the largest
/// first. The pairs have no verdicts yet.
pub(crate) fn against_reference<'a>(
    now: Source<'_>,
    reference: impl Fn(u32) -> Option<&'a str>,
) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for &clients in now.summary.clients.iter().rev() {
        let chosen = reference(clients);
        let Some((chosen, side)) =
            chosen.and_then(|name| Some((name, now.side(name, clients, name)?)))
        else {
            continue;
        };
        for server in now.run.servers.iter().filter(|one| one.name != chosen) {
            let other = now.side(&server.name, clients, &server.name);
            pairs.extend(other.map(|other| pair(&other, &side, Pairing::Interleaved)));
        }
    }
    pairs
}

/// Judges all pairs of an answer together, and puts each in words.
pub(super) fn conclude<'a>(pairs: impl IntoIterator<Item = &'a mut Pair>) {
    let mut chosen: Vec<&mut Pair> = pairs.into_iter().collect();
    judge(chosen.iter_mut().flat_map(|pair| &mut pair.measures));
    for pair in chosen {
        pair.sentence = words::sentence(pair);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use throng_record::{Comparison as Asked, Ending, Purpose};

    /// The comparison of the fixture's servers with `thread`, after `change`.
    fn compared(change: impl Fn(&mut Run, &mut Vec<Trial>)) -> Comparison {
        let (mut run, mut trials) = fixture::record();
        run.servers
            .retain(|server| ["epoll", "thread", "fork"].contains(&server.name.as_str()));
        trials.retain(|trial| {
            trial.clients > 10 && run.servers.iter().any(|s| s.name == trial.server)
        });
        run.comparison = Some(Asked {
            reference: "thread".to_owned(),
            slower_percent: Some(5.0),
            ..Asked::default()
        });
        change(&mut run, &mut trials);
        fixture::examine(&run, &mut trials);
        judged(&run, &trials)
    }

    fn judged(run: &Run, trials: &[Trial]) -> Comparison {
        let logs = crate::Logs::default();
        crate::Report::of(run, trials, &logs).unwrap().comparison
    }

    fn sentences(comparison: &Comparison) -> String {
        let sentences: Vec<&str> = comparison
            .all_pairs()
            .map(|pair| pair.sentence.as_str())
            .collect();
        sentences.join("\n")
    }

    #[test]
    fn servers_compared_with_the_reference_in_words() {
        let comparison = compared(|_, _| ());
        insta::assert_snapshot!(sentences(&comparison));
        // fork is slower. It must not pass just because it cannot be judged with 1000 clients.
        let missed = comparison.demands.iter().filter(|judged| judged.missed);
        assert!(missed.count() >= 1);
    }

    #[test]
    fn the_first_sentence_leaves_out_intervals_and_keeps_names() {
        let comparison = compared(|run, trials| {
            let servers = run.servers.iter_mut().map(|one| &mut one.name);
            let names = servers.chain(trials.iter_mut().map(|one| &mut one.server));
            for name in names.filter(|name| *name == "epoll") {
                name.push_str(" (2)");
            }
        });
        let pair = comparison
            .pairs
            .iter()
            .find(|one| one.server == "epoll (2)")
            .unwrap();
        assert_eq!(
            pair.first_sentences(),
            "With 1,000 clients, epoll (2) is 1.63x faster than thread, uses 1.63x less CPU per request and uses 13x less memory. Its latency is 1.64x lower at p50 and 1.6x lower at p99."
        );
        assert!(
            pair.sentence
                .contains("epoll (2) is 1.63x faster than thread (1.63–1.64x)")
        );
    }

    #[test]
    fn client_limited_rates_are_not_compared_but_costs_are() {
        let comparison = compared(|_, trials| {
            trials.iter_mut().for_each(fixture::limit_by_clients);
        });
        let text = sentences(&comparison);
        assert!(
            text.contains("Throughput is not comparable: the load generator was the limit"),
            "{text}"
        );
        assert!(text.contains("CPU per request than thread"), "{text}");
        let mut seen = comparison.demands.iter().map(|judged| judged.seen.as_str());
        assert!(seen.any(|seen| seen.ends_with("requests per CPU-second of thread")));
    }

    /// Regression: a server that was faster than the clients could ask had no verdict against one that was slower.
    #[test]
    fn a_server_that_the_clients_limited_is_at_least_as_good_as_its_value() {
        let limited = |name: &'static str| {
            let comparison = compared(|_, trials| {
                let own = trials.iter_mut().filter(|trial| trial.server == name);
                own.for_each(fixture::limit_by_clients);
            });
            let pair = comparison.pairs.iter().find(|one| one.server == "epoll");
            pair.unwrap().clone()
        };
        // epoll is the faster one.
        let pair = limited("epoll");
        let rate = pair.by("requests_per_s").unwrap();
        assert_eq!(rate.verdict, Verdict::Better);
        assert_eq!(rate.cells()[2..], ["≥1.62", "at least 1.62x faster"]);
        assert!(
            pair.sentence
                .contains("is at least 1.62x faster than thread, uses"),
            "{}",
            pair.sentence
        );
        let pair = limited("thread");
        let rate = pair.by("requests_per_s").unwrap();
        assert_eq!((rate.verdict, rate.ratio), (Verdict::NotComparable, None));
        let why = "the load generator was the limit for thread";
        assert_eq!(rate.why.as_deref(), Some(why));
    }

    /// Regression: a rate that the clients limited, which is a lower bound, made its server miss the threshold.
    #[test]
    fn a_server_that_the_clients_limited_does_not_miss_a_threshold_by_its_rate() {
        let demands = |name: &'static str, factor: f64| {
            let comparison = compared(|_, trials| {
                for trial in trials.iter_mut().filter(|trial| trial.server == name) {
                    fixture::limit_by_clients(trial);
                }
                for trial in trials.iter_mut().filter(|trial| trial.server == "epoll") {
                    let load = trial.load.as_mut().unwrap();
                    load.window.replies_per_s = load.window.replies_per_s.map(|rate| rate * factor);
                }
            });
            let mut all = comparison.demands.into_iter();
            all.find(|judged| judged.server == "epoll").unwrap()
        };
        // Far slower by a rate that is only a bound: the cost decides.
        let judged = demands("epoll", 0.1);
        assert!(
            judged.seen.ends_with("requests per CPU-second of thread"),
            "{}",
            judged.seen
        );
        // Far slower than a bound: slower.
        let judged = demands("thread", 0.1);
        assert!(
            judged.missed && judged.seen.starts_with('≤'),
            "{}",
            judged.seen
        );
        assert!(
            judged.seen.ends_with("requests per second of thread"),
            "{}",
            judged.seen
        );
        // Faster than a bound: the cost decides.
        let judged = demands("thread", 1.0);
        assert!(
            judged.seen.ends_with("requests per CPU-second of thread"),
            "{}",
            judged.seen
        );
    }

    #[test]
    fn throughput_is_not_compared_if_a_server_works_after_its_replies() {
        let late = |share: u64| {
            sentences(&compared(move |_, trials| {
                for trial in trials.iter_mut().filter(|trial| trial.server == "epoll") {
                    trial.slices = vec![throng_record::Slice {
                        server_cpu_ns: Some(100),
                        server_cpu_late_ns: Some(share),
                        ..Default::default()
                    }];
                }
            }))
        };
        let text = late(30);
        let why = "Throughput is not comparable: epoll used 30 % of its CPU time after its replies";
        assert!(text.contains(why), "{text}");
        assert!(text.contains("CPU per request than"), "{text}");
        assert!(!late(4).contains("not comparable: epoll used"));
    }

    #[test]
    fn inconclusive_verdicts_name_the_smallest_detectable_difference() {
        let noisy = |times_too: bool| {
            compared(move |_, trials| {
                for trial in trials.iter_mut().filter(|trial| trial.server == "epoll") {
                    let factor = 0.4 + 0.3 * f64::from(trial.round % 3);
                    let Some(load) = &mut trial.load else {
                        continue;
                    };
                    load.window
                        .replies_per_s
                        .iter_mut()
                        .for_each(|rate| *rate *= factor);
                    if times_too {
                        load.service_time = Some(fixture::latency(&[(factor * 3e7) as u64; 200]));
                    }
                }
            })
        };
        let one = sentences(&noisy(false));
        assert!(
            one.contains("Throughput: no significant difference; "),
            "{one}"
        );
        assert!(one.contains("or more would show; a run "), "{one}");
        let several = sentences(&noisy(true));
        let list = "No significant difference in throughput (";
        assert!(several.contains(list), "{several}");
    }

    #[test]
    fn a_control_that_differs_from_itself_is_no_floor() {
        let again = |run: &mut Run, trials: &mut Vec<Trial>, factor: f64| {
            run.settings.control = Some("thread".to_owned());
            let of_thread = trials.iter().filter(|trial| trial.server == "thread");
            let mut more: Vec<Trial> = of_thread.cloned().collect();
            for trial in &mut more {
                trial.purpose = Purpose::Control;
                trial
                    .load
                    .as_mut()
                    .expect("it was loaded")
                    .window
                    .replies_per_s
                    .iter_mut()
                    .for_each(|rate| *rate *= factor);
            }
            trials.extend(more);
        };
        let verdict = |comparison: &Comparison| {
            let pair = comparison.pairs.iter().find(|pair| pair.server == "epoll");
            pair.expect("epoll is there").measures[0].verdict
        };
        assert_eq!(
            verdict(&compared(|run, trials| again(run, trials, 1.0))),
            Verdict::Better
        );
        let noisy = compared(|run, trials| again(run, trials, 1.05));
        assert_eq!(verdict(&noisy), Verdict::Better);
    }

    #[test]
    fn servers_of_clients_with_jobs_are_compared_by_when_all_were_done() {
        let (mut run, trials) = crate::completion::fixture::record();
        run.comparison = Some(Asked {
            reference: "select".to_owned(),
            slower_percent: Some(5.0),
            ..Asked::default()
        });
        let comparison = judged(&run, &trials);
        let text = sentences(&comparison);
        assert!(text.contains("slower than select"), "{text}");
        for wrong in ["requests a second", "time at completion", "time at clients"] {
            assert!(!text.contains(wrong), "{text}");
        }
        let mut seen = comparison.demands.iter().map(|judged| judged.seen.as_str());
        assert!(seen.any(|seen| seen.ends_with("the clients per second of select")));
    }

    #[test]
    fn a_run_that_compares_nothing_has_no_comparison() {
        let (mut run, trials) = fixture::record();
        run.ending = Ending::Interrupted;
        assert_eq!(judged(&run, &trials).requested(), None);
    }

    #[test]
    fn an_earlier_run_is_never_paired_by_round() {
        let (mut run, trials) = fixture::record();
        run.comparison = Some(Asked {
            reference: "epoll".to_owned(),
            baseline: Some("old".to_owned()),
            ..Asked::default()
        });
        let mut then = run.clone();
        then.host.kernel = "Linux 5.0".to_owned();
        let summary = Summary::of(&run, &trials).unwrap();
        let earlier = (then, trials.clone());
        let comparison = Comparison::of(&run, &summary, Some(&earlier)).unwrap();
        let baseline = comparison.baseline.expect("one");
        assert!(
            baseline
                .caveat
                .contains("Kernel Linux 5.0 in the baseline and Linux 6.18.1 in this run.")
        );
        let measures = baseline.pairs.iter().flat_map(|pair| &pair.measures);
        let ratios: Vec<(f64, f64)> = measures
            .filter_map(|measured| measured.ratio?.low.zip(measured.ratio?.high))
            .collect();
        assert!(ratios.iter().all(|(low, high)| *low <= 1.0 && *high >= 1.0));
        // Pairing the very same rounds would give ratios of exactly 1.
        assert!(ratios.iter().any(|(low, _)| *low < 0.999));
    }
}
