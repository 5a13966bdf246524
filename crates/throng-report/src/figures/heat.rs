//! Latency over the time of one trial per server, at the largest number of clients.

use super::{Axis, Figure, FigureKind, HeatMap, Kind, Part, Source};
use crate::series::Times;
use throng_record::format::{self, counted};
use throng_record::metrics::Better;
use throng_spec::registry::{Entry, Info};

pub(super) struct Heat;

impl Entry for Heat {
    fn info(&self) -> Info {
        Info {
            name: "times-over-time",
            summary: "Latency over time",
        }
    }
}

impl FigureKind for Heat {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        let maps: Vec<HeatMap> = source
            .series
            .iter()
            .filter_map(|log| {
                let drawn = map(&log.server, source.place(&log.server), log.times.as_ref()?);
                Some(HeatMap {
                    failed: source.failed(&log.server, log.clients),
                    ..drawn
                })
            })
            .collect();
        let first = source.series.first()?;
        let times = source.series.iter().find_map(|log| log.times.as_ref())?;
        let what = if times.response {
            "response time"
        } else {
            "latency"
        };
        let modes: Vec<String> = maps.iter().filter_map(mode).collect();
        Some(Figure {
            caption: "The stronger the colour, the more replies took that long. A rising band is a growing queue."
                .to_owned(),
            alternative: format!(
                "Latency during one trial per server, {}. Most frequent: {}.",
                counted(first.clients, "client"),
                modes.join(", ")
            ),
            x: Axis::OF_A_TRIAL,
            y: Axis::logarithmic(what, Some("ms")),
            kind: Kind::Heat,
            maps,
            better: Better::Lower,
            part: Part::Detail,
            ..Figure::empty(self.info().name, self.info().summary.to_owned())
        })
    }
}

fn map(name: &str, place: usize, times: &Times) -> HeatMap {
    let parts = &times.counted.counts;
    let rows = times.counted.from_ns.len().saturating_sub(1);
    let shares = |part: &Vec<u64>| {
        let all: f64 = part.iter().take(rows).map(|count| *count as f64).sum();
        let share = |range| part.get(range).map_or(0.0, |count| *count as f64 / all);
        if all > 0.0 {
            (0..rows).map(share).collect()
        } else {
            Vec::new()
        }
    };
    HeatMap {
        name: name.to_owned(),
        place,
        failed: false,
        columns: (0..=parts.len())
            .map(|part| part as f64 * times.part_s)
            .collect(),
        rows: times
            .counted
            .from_ns
            .iter()
            // A logarithmic axis has no 0.
            .map(|from| (*from as f64 / 1e6).max(1e-5))
            .collect(),
        shares: parts.iter().map(shares).collect(),
    }
}

/// "epoll 1.02 ms": the server with its most frequent latency.
fn mode(map: &HeatMap) -> Option<String> {
    let sum = |row: usize| -> f64 {
        let shares = map.shares.iter().filter_map(|column| column.get(row));
        shares.sum()
    };
    let rows = 0..map.rows.len().saturating_sub(1);
    let most = rows.max_by(|one, other| sum(*one).total_cmp(&sum(*other)))?;
    let from = format::time(map.rows.get(most)? * 1e3);
    Some(format!("{} {from}", map.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_record::TimesOverWindow;

    #[test]
    fn a_column_has_the_shares_of_its_own_moment() {
        let times = Times {
            part_s: 0.5,
            response: false,
            counted: TimesOverWindow {
                from_ns: vec![0, 1_000_000, 2_000_000],
                // A moment without replies, and one with more counts than ranges.
                counts: vec![vec![3, 1], vec![0, 0], vec![0, 5, 9]],
            },
        };
        let map = map("epoll", 2, &times);
        assert_eq!(map.columns, [0.0, 0.5, 1.0, 1.5]);
        assert_eq!(map.rows, [1e-5, 1.0, 2.0]);
        assert_eq!(map.shares, [vec![0.75, 0.25], vec![], vec![0.0, 1.0]]);
        assert_eq!(mode(&map).unwrap(), "epoll 1.00 ms");
    }
}
