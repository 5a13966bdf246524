//! Servers ranked by one metric: each compared with the best.

use serde::Serialize;

use super::pair::{PairMetric, Pairing, Side, Source};
use super::size::inverse;
use crate::summary::Row;
use throng_record::metrics::{Better, Metric, Quantity, ranked};
use throng_stats::Verdict;

/// Values that are worse by more than this share do not tie with the best, even if noise hides the difference. If each
/// server has only one trial, and thus no interval, values within it tie.
pub(crate) const MARGIN_OF_TIES: f64 = 0.25;

/// In place of a tie, of servers for which the load generator was the limit.
pub(crate) const AS_FAST: &str = "as fast as the load generator";

/// The servers that served all their clients, ranked by one metric with one number of clients.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ranking {
    pub(crate) clients: u32,
    pub(crate) metric: &'static Metric,
    /// The best first.
    pub(crate) places: Vec<Place>,
    /// Whether each server has only one trial.
    pub(crate) is_one_trial: bool,
}

/// A server in a ranking.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Place {
    pub server: String,
    pub standing: Standing,
    pub value: f64,
    /// Its cost relative to the best: 1 or more, except for noise.
    pub times: Quantity,
    /// Whether the load generator was the limit: the server may be better than its value.
    #[serde(skip)]
    pub(crate) is_limited: bool,
    /// It compared with the best; `None` for the best itself.
    #[serde(skip)]
    cell: Option<PairMetric>,
}

/// The comparison of a server with the best one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// The best, or tied with it: not shown to be worse.
    Best,
    /// Not shown to be worse, but its value is far from the best, or worse than that of a server that is; or the load
    /// generator was the limit for it, so that it may be better than the best.
    Unclear,
    Worse,
    /// Too few rounds, or unfit for a ranking.
    Unknown,
}

impl Ranking {
    /// All rankings of a run, without verdicts: every metric that ranks servers, with each number of clients.
    pub(super) fn all(now: Source<'_>) -> Vec<Self> {
        let numbers = now.summary.clients.iter();
        let of_clients = numbers.flat_map(|&clients| {
            let rows: Vec<&Row> = now
                .summary
                .rows_at(clients)
                .filter(|row| row.is_ranked())
                .collect();
            ranked().filter_map(move |metric| Self::of(&rows, clients, metric))
        });
        of_clients.collect()
    }

    fn of(rows: &[&Row], clients: u32, metric: &'static Metric) -> Option<Self> {
        let sorted = from_best(rows, metric);
        let best = *sorted.first()?;
        let side = |row| Side::of(row);
        let places: Vec<Place> = sorted
            .iter()
            .enumerate()
            .map(|(place, row)| {
                let cell = (place > 0)
                    .then(|| PairMetric::of(metric, &side(row), &side(best), Pairing::Interleaved));
                Place {
                    server: row.server.clone(),
                    standing: Standing::Unknown,
                    value: row.value(metric.name).unwrap_or_default(),
                    times: Quantity::bare(1.0),
                    is_limited: row.is_bound(metric),
                    cell,
                }
            })
            .collect();
        let trials = |row: &&Row| {
            let sample = row.metrics.sample(metric.name);
            sample.map_or(0, |sample| sample.by_round().len())
        };
        Some(Self {
            clients,
            metric,
            places,
            is_one_trial: sorted.len() > 1 && sorted.iter().all(|row| trials(row) <= 1),
        })
    }

    pub(super) fn cells(&mut self) -> impl Iterator<Item = &mut PairMetric> {
        self.places
            .iter_mut()
            .filter_map(|place| place.cell.as_mut())
    }

    /// Sets the standing of each server, from the verdicts.
    pub(super) fn conclude(&mut self) {
        let Some(best) = self.places.first().map(|best| best.value) else {
            return;
        };
        let is_best_limited = self.best().is_limited;
        let mut is_beyond = false;
        let mut is_known = self.places.len() == 1;
        for place in &mut self.places {
            let Some(cell) = &place.cell else {
                continue;
            };
            let ratio = cell.ratio.unwrap_or(Quantity::bare(place.value / best));
            place.times = match self.metric.better {
                Better::Higher => inverse(ratio),
                _ => ratio,
            };
            let near = place.times.value <= 1.0 + MARGIN_OF_TIES;
            place.standing = match cell.verdict {
                Verdict::NotComparable if place.is_limited && !is_best_limited => Standing::Unclear,
                // Without a reason, slices measured it only once, as a single trial does.
                Verdict::NotComparable if cell.why.is_some() => Standing::Unknown,
                _ if self.is_one_trial && near => Standing::Best,
                _ if self.is_one_trial => Standing::Worse,
                _ if cell.smallest_difference.is_none() => Standing::Unknown,
                Verdict::Worse => Standing::Worse,
                // Few trials of a noisy server do not make it as good as the best.
                _ if is_beyond || !near => Standing::Unclear,
                _ => Standing::Best,
            };
            is_beyond |= place.standing == Standing::Worse;
            is_known |= place.standing != Standing::Unknown;
        }
        if is_known {
            self.places[0].standing = Standing::Best;
        }
        // As fast as the load generator, if that is known to be faster than another server.
        if self.is_decided() && self.best().is_limited {
            for place in self.places.iter_mut().filter(|place| place.is_limited) {
                let near = place.times.value <= 1.0 + MARGIN_OF_TIES;
                if near && place.standing == Standing::Unknown {
                    place.standing = Standing::Best;
                }
            }
        }
    }

    pub(crate) fn best(&self) -> &Place {
        &self.places[0]
    }

    fn others(&self) -> impl Iterator<Item = (&Place, &PairMetric)> {
        let places = self.places.iter();
        places.filter_map(|place| Some((place, place.cell.as_ref()?)))
    }

    fn with(&self, verdict: Verdict) -> impl Iterator<Item = (&Place, &PairMetric)> {
        self.others()
            .filter(move |(_, cell)| cell.verdict == verdict)
    }

    /// The best servers, if the load generator was the limit for them.
    pub(crate) fn limited(&self) -> Vec<&str> {
        if !self.best().is_limited {
            return Vec::new();
        }
        let places = self.places.iter();
        let best = places.filter(|place| place.standing == Standing::Best);
        best.map(|place| place.server.as_str()).collect()
    }

    /// Servers that are equivalent to the best.
    pub(crate) fn equivalent(&self) -> Vec<&str> {
        let equivalent = self.with(Verdict::Equivalent);
        equivalent.map(|(place, _)| place.server.as_str()).collect()
    }

    /// Servers with too much noise to decide, and the smallest difference that would have shown.
    pub(crate) fn inconclusive(&self) -> Vec<(&str, f64)> {
        // Noise can make the best by its median seem worse.
        let open = self
            .with(Verdict::Inconclusive)
            .chain(self.with(Verdict::Better));
        open.filter_map(|(place, cell)| Some((place.server.as_str(), cell.smallest_difference?)))
            .collect()
    }

    /// Servers with too few rounds to decide.
    pub(crate) fn too_few(&self) -> Vec<&str> {
        let open = self.with(Verdict::Inconclusive);
        open.filter(|(_, cell)| cell.smallest_difference.is_none())
            .map(|(place, _)| place.server.as_str())
            .collect()
    }

    /// Why no server is ranked, if none is: "too few trials", or why they do not compare.
    pub(crate) fn why_unranked(&self) -> String {
        let mut apart = self.with(Verdict::NotComparable);
        match apart.find_map(|(_, cell)| cell.why.as_deref()) {
            Some(why) if self.too_few().is_empty() => why.to_owned(),
            _ => "too few trials".to_owned(),
        }
    }

    /// Servers worse than the best, the smallest difference first, with their value over the best's.
    pub(crate) fn behind(&self) -> Vec<(&Place, Quantity)> {
        let worse = self.with(Verdict::Worse);
        worse
            .filter_map(|(place, cell)| Some((place, cell.ratio?)))
            .collect()
    }

    /// Whether a server is the best or ties with it, and another is worse. None is if one that is faster than the load
    /// generator may be better.
    pub(crate) fn sets_apart(&self, server: &str) -> bool {
        let is_worse = |place: &Place| place.standing == Standing::Worse;
        let may_be_better = |place: &Place| place.standing == Standing::Unclear && place.is_limited;
        if self.places.iter().any(may_be_better) {
            return false;
        }
        let mut best = self
            .places
            .iter()
            .filter(|place| place.standing == Standing::Best);
        best.any(|place| place.server == server) && self.places.iter().any(is_worse)
    }

    /// Whether the best is better than at least one other server.
    pub(crate) fn is_decided(&self) -> bool {
        self.with(Verdict::Worse).next().is_some()
    }

    /// The verdict on every other server, compared with the best.
    pub(super) fn verdicts(&self) -> impl Iterator<Item = ([&str; 2], Verdict)> {
        let best = self.best().server.as_str();
        self.others()
            .map(move |(place, cell)| ([place.server.as_str(), best], cell.verdict))
    }

    /// The verdict on a server, compared with the best.
    #[cfg(test)]
    pub(crate) fn verdict(&self, server: &str) -> Option<Verdict> {
        let mut others = self.others();
        let (_, cell) = others.find(|(place, _)| place.server == server)?;
        Some(cell.verdict)
    }
}

/// Rows with a value, the best first. Fairness that the load set is not ranked; the answer names the servers that kept
/// the pace.
pub(crate) fn from_best<'a>(rows: &[&'a Row], metric: &Metric) -> Vec<&'a Row> {
    let own = rows
        .iter()
        .filter(|row| !metric.is_of_fairness() || row.is_own(metric));
    let value = |row: &Row| row.value(metric.name).filter(|value| *value > 0.0);
    let mut valued: Vec<(&Row, f64)> = own.filter_map(|row| Some((*row, value(row)?))).collect();
    valued.sort_by(|one, other| match metric.better {
        Better::Higher => other.1.total_cmp(&one.1),
        _ => one.1.total_cmp(&other.1),
    });
    valued.into_iter().map(|(row, _)| row).collect()
}
