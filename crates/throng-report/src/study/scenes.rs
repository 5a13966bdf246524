//! The result of each scene of a study: the best servers by the deciding metric, ties, and how far the other servers
//! are behind.

use serde::Serialize;

use super::PartReport;
use crate::comparison::ranking::{AS_FAST, Place, Standing};
use crate::comparison::size::times;
use crate::summary::Row;
use throng_record::Scene;
use throng_record::format::{counted, list};
use throng_record::metrics::{Better, Metric, named};

/// Servers that are worse than the best by at most this factor are close to it.
pub(crate) const CLOSE: f64 = 1.1;
/// Servers that are worse by at least this factor are far behind.
pub(crate) const FAR: f64 = 2.0;
/// The most servers named in a sentence.
const MOST_NAMED: usize = 4;

/// The result of a scene.
#[derive(Debug, Clone, Serialize)]
pub struct SceneResult<'a> {
    #[serde(skip)]
    pub scene: &'a Scene,
    /// The part that it belongs to.
    #[serde(skip)]
    pub part: &'a PartReport<'a>,
    name: &'a str,
    metric: &'static str,
    /// The number of clients.
    pub clients: u32,
    /// The result in one sentence.
    pub sentence: String,
    /// Why servers that are not ranked are not.
    #[serde(skip)]
    pub why_unranked: String,
    /// Servers that served all their clients, best first.
    pub places: &'a [Place],
    /// Whether each server has only one trial.
    pub is_one_trial: bool,
}

impl<'a> SceneResult<'a> {
    /// All scenes of `parts` that have anything to show.
    pub(super) fn all(parts: &'a [PartReport<'a>]) -> Vec<Self> {
        let scenes = parts.iter().flat_map(|part| {
            let scenes = part.record.scenes.iter();
            scenes.filter_map(move |scene| Self::of(part, scene))
        });
        scenes.collect()
    }

    fn of(part: &'a PartReport<'a>, scene: &'a Scene) -> Option<Self> {
        let report = part.report.as_ref()?;
        let metric = named(&scene.metric)?;
        let summary = &report.summary;
        let wanted = scene.clients.filter(|own| summary.clients.contains(own));
        let clients = wanted.or(summary.clients.last().copied())?;
        let ranking = report.comparison.ranking(clients, metric.name)?;
        let mut shown = Self {
            scene,
            part,
            name: &scene.name,
            metric: metric.name,
            clients,
            sentence: String::new(),
            why_unranked: ranking.why_unranked(),
            places: &ranking.places,
            is_one_trial: ranking.is_one_trial,
        };
        shown.sentence = shown.in_words();
        Some(shown)
    }

    /// The metric that decides.
    pub fn metric(&self) -> &'static Metric {
        named(self.metric).expect("it was found before")
    }

    /// The place of a server, if it served all its clients.
    pub fn place_of(&self, server: &str) -> Option<&'a Place> {
        self.places.iter().find(|place| place.server == server)
    }

    /// The results of a server under this load, if it ran.
    pub fn row_of(&self, server: &str) -> Option<&'a Row> {
        let mut rows = self.part.report.as_ref()?.summary.rows_at(self.clients);
        rows.find(|row| row.server == server)
    }

    /// The names of the servers for which `is_in` holds, best first.
    pub fn names(&self, is_in: impl Fn(&Place) -> bool) -> Vec<&'a str> {
        let places = self.places.iter().filter(|place| is_in(place));
        places.map(|place| place.server.as_str()).collect()
    }

    /// The servers that are best or tie with it.
    pub fn best(&self) -> Vec<&'a str> {
        self.names(|place| place.standing == Standing::Best)
    }

    /// The server that is shown to be worse by the largest factor, with its cost relative to the best.
    pub fn spread(&self) -> Option<(&'a Place, f64)> {
        let worse = |place: &&Place| place.standing == Standing::Worse;
        let last = self.places.iter().rfind(worse)?;
        Some((last, last.times.value))
    }

    /// The mean cost of a server picked at random, relative to the best; `None` if no server is worse.
    pub fn mean_times(&self) -> Option<f64> {
        self.spread()?;
        let logs = self.places.iter().map(|place| match place.standing {
            Standing::Worse => place.times.value.ln(),
            Standing::Best | Standing::Unclear | Standing::Unknown => 0.0,
        });
        Some((logs.sum::<f64>() / self.places.len() as f64).exp())
    }

    /// "With 10,000 clients, epoll and 5 others tie for the least CPU per request (7.6 µs); select takes 13x."
    fn in_words(&self) -> String {
        let with = format!("With {}", counted(self.clients, "client"));
        let first = &self.places[0];
        let noun = self.metric().noun();
        let value = self.metric().text(first.value);
        let superlative = match self.metric().better {
            Better::Higher => "most",
            _ => "least",
        };
        if first.standing == Standing::Unknown {
            let (name, why) = (&first.server, &self.why_unranked);
            return format!(
                "{with}, not ranked ({why}); {name} has the {superlative} {noun}: {value}."
            );
        }
        let best = self.best();
        let who = named_or_counted(&best);
        let text = match best.len() {
            1 => format!("{with}, {who} has the {superlative} {noun}: {value}"),
            _ if first.is_limited => format!("{with}, {who} are {AS_FAST}: {value}"),
            _ => format!("{with}, {who} tie for the {superlative} {noun}: {value}"),
        };
        let worse: Vec<&Place> = self
            .places
            .iter()
            .filter(|place| place.standing == Standing::Worse)
            .collect();
        let next = worse.first().filter(|_| worse.len() > 1);
        let ends: Vec<String> = next
            .into_iter()
            .chain(worse.last())
            .map(|place| format!("{} {}", place.server, times(place.times.value)))
            .collect();
        if ends.is_empty() {
            return text + ".";
        }
        format!("{text}; {}.", ends.join(", "))
    }
}

/// The scene in which the choice matters most: the one with the highest mean cost of a server picked at random, rather
/// than the one with the single worst server.
pub(crate) fn widest<'a, 'b>(scenes: &'b [SceneResult<'a>]) -> Option<&'b SceneResult<'a>> {
    // Ratios of CPU and ratios of memory cannot be compared.
    let first = scenes.first()?.scene.metric.as_str();
    let comparable = scenes
        .iter()
        .filter(|shown| shown.scene.metric == first)
        .filter_map(|shown| Some((shown.mean_times()?, shown)));
    let widest = comparable.max_by(|(one, _), (other, _)| one.total_cmp(other));
    widest.map(|(_, shown)| shown)
}

/// "epoll, poll and select", or "epoll and 5 others".
pub(crate) fn named_or_counted(names: &[&str]) -> String {
    match names {
        [first, others @ ..] if names.len() > MOST_NAMED => {
            format!("{first} and {} others", others.len())
        }
        _ => list(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::ranking::MARGIN_OF_TIES;
    use crate::study::{LoadedStudy, fixture};
    use throng_stats::Verdict;

    /// Regression: the verdicts of a scene and those of its part's answer were corrected for different numbers of
    /// comparisons, so one ratio could be worse in one place and not in the other.
    #[test]
    fn a_scene_and_the_answer_of_its_part_have_the_same_verdicts() {
        let mut random = fastrand::Rng::with_seed(42);
        let mut differences = 0;
        for _ in 0..12 {
            let (study, mut parts) = fixture::scenes();
            for trial in parts.iter_mut().flatten().flat_map(|part| &mut part.trials) {
                let noise = 1.0 + 0.2 * (random.f64() - 0.5);
                if let Some(side) = &mut trial.server_side
                    && let Some(cpu_ms) = side.metrics.get_mut("cpu_ms")
                {
                    *cpu_ms *= noise;
                }
            }
            let loaded = LoadedStudy { study, parts };
            let report = loaded.report().unwrap();
            for shown in report.scenes() {
                let comparison = &shown.part.report.as_ref().unwrap().comparison;
                let ranking = comparison.ranking(shown.clients, shown.metric).unwrap();
                let mut is_beyond = false;
                for place in shown.places {
                    let expected = match ranking.verdict(&place.server) {
                        Some(Verdict::Worse) => Standing::Worse,
                        Some(Verdict::NotComparable) => Standing::Unknown,
                        Some(_) if ranking.too_few().contains(&place.server.as_str()) => {
                            Standing::Unknown
                        }
                        Some(_) if is_beyond || place.times.value > 1.0 + MARGIN_OF_TIES => {
                            Standing::Unclear
                        }
                        _ => Standing::Best,
                    };
                    assert_eq!(place.standing, expected, "{}", place.server);
                    is_beyond |= expected == Standing::Worse;
                    differences += usize::from(expected == Standing::Worse);
                }
            }
        }
        assert!(differences > 0);
    }
}
