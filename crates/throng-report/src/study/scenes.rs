//! The result of each scene of a study: the best servers by the deciding metric, ties, and how far the other servers
//! are behind.

use serde::Serialize;

use super::PartReport;
use crate::answer::ranking::{Rankings, from_best};
use crate::comparison::size::inverse;
use crate::summary::{Row, Summary};
use throng_record::Scene;
use throng_record::format::{counted, list, whole};
use throng_record::metrics::{Better, Metric, Quantity, named};
use throng_stats::Verdict;

/// If each server has only one trial, and thus no interval, values within this share tie.
pub(crate) const MARGIN_OF_ONE_TRIAL: f64 = 0.25;
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
    /// Servers that served all their clients, best first.
    pub places: Vec<Place<'a>>,
    /// Whether each server has only one trial.
    pub is_one_trial: bool,
}

/// A server in a scene.
#[derive(Debug, Clone, Serialize)]
pub struct Place<'a> {
    pub server: &'a str,
    pub standing: Standing,
    pub value: f64,
    /// Its cost relative to the best: 1 or more, except for noise.
    pub times: Quantity,
    #[serde(skip)]
    pub row: &'a Row,
}

/// The comparison of a server with the best one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// The best, or tied with it: not shown to be worse.
    Best,
    /// Not shown to be worse, but its value is worse than that of a server that is.
    Unclear,
    Worse,
    /// Too few rounds, or the run is unfit for a ranking.
    Unknown,
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
        let is_usable = report.grade.is_usable();
        let places = places(summary, clients, metric, is_usable);
        let mut others = places.iter().skip(1);
        let is_one_trial =
            others.all(|place| place.times.low.is_none() && place.standing != Standing::Unknown);
        let mut shown = Self {
            scene,
            part,
            name: &scene.name,
            metric: metric.name,
            clients,
            sentence: String::new(),
            places,
            is_one_trial,
        };
        shown.sentence = shown.sentence();
        (!shown.places.is_empty()).then_some(shown)
    }

    /// The metric that decides.
    pub fn metric(&self) -> &'static Metric {
        named(self.metric).expect("it was found before")
    }

    /// The place of a server, if it served all its clients.
    pub fn place_of(&self, server: &str) -> Option<&Place<'a>> {
        self.places.iter().find(|place| place.server == server)
    }

    /// The names of the servers for which `is_in` holds, best first.
    pub fn names(&self, is_in: impl Fn(&Place<'_>) -> bool) -> Vec<&'a str> {
        let places = self.places.iter().filter(|place| is_in(place));
        places.map(|place| place.server).collect()
    }

    /// The servers that are best or tie with it.
    pub fn best(&self) -> Vec<&'a str> {
        self.names(|place| place.standing == Standing::Best)
    }

    /// The server that is shown to be worse by the largest factor, with its cost relative to the best.
    pub fn spread(&self) -> Option<(&Place<'a>, f64)> {
        let worse = |place: &&Place<'_>| place.standing == Standing::Worse;
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
    fn sentence(&self) -> String {
        let with = format!("With {}", counted(self.clients, "client"));
        let Some(first) = self.places.first() else {
            return format!("{with}, no server served all of them.");
        };
        let noun = self.metric().noun();
        let value = self.metric().text(first.value);
        let superlative = match self.metric().better {
            Better::Higher => "most",
            _ => "least",
        };
        if first.standing == Standing::Unknown {
            let first = first.server;
            return format!(
                "{with}, too few trials to rank; {first} has the {superlative} {noun}: {value}."
            );
        }
        let best = self.best();
        let who = named_or_counted(&best);
        let text = match best.len() {
            1 => format!("{with}, {who} has the {superlative} {noun}: {value}"),
            _ => format!("{with}, {who} tie for the {superlative} {noun}: {value}"),
        };
        let worse: Vec<&Place<'_>> = self
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

/// Rows as places, best first, without servers that did not serve all clients. The verdicts are those of the part.
fn places<'a>(
    summary: &'a Summary,
    clients: u32,
    metric: &'static Metric,
    is_usable: bool,
) -> Vec<Place<'a>> {
    let value = |row: &Row| row.value(metric.name).unwrap_or_default();
    let ranked: Vec<&Row> = summary
        .rows_at(clients)
        .filter(|row| row.is_ranked())
        .collect();
    let rows = from_best(&ranked, metric);
    let Some(best) = rows.first().copied() else {
        return Vec::new();
    };
    let rankings = Rankings::of(summary);
    let compared = rankings.get(clients, metric.name);
    let compared = compared.map_or(&[][..], |ranking| &ranking.others);
    // A few rounds are not enough for a decision; single trials are compared by value.
    let trials = |row: &&Row| {
        row.metrics
            .sample(metric.name)
            .map_or(0, |sample| sample.by_round().len())
    };
    let has_none = rows.iter().all(|row| trials(row) <= 1);
    let first = Place {
        server: &best.server,
        standing: if is_usable {
            Standing::Best
        } else {
            Standing::Unknown
        },
        value: value(best),
        times: Quantity::bare(1.0),
        row: best,
    };
    let others = compared.iter().map(|one| {
        let row = one.row;
        let own = value(row);
        let of_values = Quantity::bare(own / first.value);
        let times = one.ratio.map_or(of_values, Quantity::of_ratio);
        let times = match metric.better {
            Better::Higher => inverse(times),
            _ => times,
        };
        let standing = match (one.ratio, one.verdict) {
            _ if !is_usable => Standing::Unknown,
            (None, _) if has_none && times.value <= 1.0 + MARGIN_OF_ONE_TRIAL => Standing::Best,
            (None, _) if has_none => Standing::Worse,
            (None, _) => Standing::Unknown,
            (Some(_), Verdict::Worse) => Standing::Worse,
            // If a server with a better value is shown to be worse, this changes below.
            (Some(_), _) => Standing::Best,
        };
        Place {
            server: &row.server,
            standing,
            value: own,
            times,
            row,
        }
    });
    let mut all = vec![first.clone()];
    all.extend(others);
    mark_unclear(all.iter_mut().map(|place| &mut place.standing));
    all
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

/// Marks ties that come after a worse server as unclear. Standings are sorted, best first.
fn mark_unclear<'s>(standings: impl Iterator<Item = &'s mut Standing>) {
    let mut is_beyond = false;
    for standing in standings {
        match standing {
            Standing::Worse => is_beyond = true,
            Standing::Best if is_beyond => *standing = Standing::Unclear,
            Standing::Best | Standing::Unclear | Standing::Unknown => {}
        }
    }
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

/// "13x", "1.4x", "+4 %".
pub(crate) fn times(ratio: f64) -> String {
    match ratio {
        ..1.1 => match 100.0 * (ratio - 1.0) {
            percent @ ..2.0 => format!("+{percent:.1} %"),
            percent => format!("+{percent:.0} %"),
        },
        ..9.95 => format!("{ratio:.1}x"),
        _ => format!("{}x", whole(ratio.round())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{LoadedStudy, fixture};

    #[test]
    fn a_wide_interval_beyond_a_server_that_is_worse_makes_no_tie() {
        let mut standings = [
            Standing::Best,
            Standing::Best,
            Standing::Worse,
            Standing::Best,
            Standing::Worse,
        ];
        mark_unclear(standings.iter_mut());
        let expected = [
            Standing::Best,
            Standing::Best,
            Standing::Worse,
            Standing::Unclear,
            Standing::Worse,
        ];
        assert_eq!(standings, expected);
    }

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
                let part = shown.part.report.as_ref().unwrap();
                let rankings = Rankings::of(&part.summary);
                let ranking = rankings.get(shown.clients, shown.metric).unwrap();
                let behind: Vec<&str> = ranking
                    .behind()
                    .iter()
                    .map(|(row, _)| row.server.as_str())
                    .collect();
                assert_eq!(
                    shown.names(|place| place.standing == Standing::Worse),
                    behind
                );
                differences += behind.len();
            }
        }
        assert!(differences > 0);
    }
}
