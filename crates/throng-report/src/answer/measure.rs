//! The words for the metrics that an answer ranks servers by.

use crate::comparison::ranking::{Place, Ranking};
use crate::comparison::size::Size;
use crate::summary::Row;
use throng_record::format::{ABSENT, index, list};
use throng_record::metrics::{Metric, Quantity, named};
use throng_stats::paired::FEWEST_PAIRS;

/// A metric that ranks servers.
pub(super) struct Measure {
    /// "uses the least CPU per request".
    pub(super) superlative: &'static str,
    /// "uses", before "40 % more".
    pub(super) verb: &'static str,
    /// "more": how a worse server differs.
    pub(super) worse: &'static str,
    /// "throughput".
    pub(super) noun: &'static str,
    pub(super) metric: &'static str,
    /// The word after a factor, if it is another one: "2.3x as long".
    by_factor: Option<&'static str>,
    /// The text of a value in a sentence, with `{}` in place of the value.
    text: &'static str,
    /// How to write the other servers: by their own value in this format, or, if `None`, as a difference from the
    /// best. A multiple of an index means nothing.
    pub(super) own: Option<fn(f64) -> String>,
    /// The noun for its values, and which bound they are if the load generator was the limit.
    pub(super) limited: (&'static str, &'static str),
}

pub(super) const RATE: Measure = Measure {
    superlative: "is fastest",
    verb: "is",
    worse: "slower",
    by_factor: None,
    noun: "throughput",
    metric: "requests_per_s",
    text: "{} requests per second",
    own: None,
    limited: ("rates", "lower"),
};

pub(super) const COMPLETION: Measure = Measure {
    superlative: "finishes first",
    verb: "takes",
    worse: "longer",
    by_factor: Some("as long"),
    noun: "completion time",
    metric: "completion_s",
    text: "{}",
    own: None,
    limited: ("completion times", "upper"),
};

pub(super) const COST: Measure = Measure {
    superlative: "uses the least CPU per request",
    verb: "uses",
    worse: "more",
    by_factor: Some("as much"),
    noun: "CPU per request",
    metric: "server_cpu_us_per_request",
    text: "{}",
    own: None,
    limited: ("costs", "upper"),
};

pub(super) const FAIRNESS: Measure = Measure {
    superlative: "is fairest",
    verb: "has",
    worse: "",
    by_factor: None,
    noun: "fairness",
    metric: "fairness_jain",
    text: "Jain's index {}",
    own: Some(index),
    limited: ("indices", "lower"),
};

impl Measure {
    pub(super) fn metric(&self) -> &'static Metric {
        named(self.metric).expect("measures are metrics of the catalogue")
    }

    /// A value in a sentence.
    pub(super) fn words(&self, value: f64) -> String {
        self.text.replace("{}", &self.metric().text(value))
    }

    pub(super) fn of(&self, row: &Row) -> Option<f64> {
        row.value(self.metric)
    }
}

/// " Not ranked (fewer than 6 trials): fork."
pub(super) fn too_few(ranking: &Ranking) -> Option<String> {
    let names = list(&ranking.too_few());
    (!names.is_empty()).then(|| format!(" Not ranked (fewer than {FEWEST_PAIRS} trials): {names}."))
}

/// The row's value in a sentence.
pub(super) fn value(row: &Row, measure: &Measure) -> String {
    let value = measure.of(row);
    value.map_or_else(|| ABSENT.to_owned(), |value| measure.words(value))
}

/// "poll is 3.4x slower (3.1–3.7x), select 5.1x slower (4.9–5.3x)".
pub(super) fn all_behind(places: &[(&Place, Quantity)], measure: &Measure) -> String {
    let each = places.iter().enumerate().map(|(number, (place, ratio))| {
        let how = behind(place, *ratio, measure);
        match number {
            0 => format!("{} {} {how}", place.server, measure.verb),
            _ => format!("{} {how}", place.server),
        }
    });
    each.collect::<Vec<_>>().join(", ")
}

/// "3.4x slower (3.1–3.7x)", or the server's own value, for a measure whose multiples mean nothing.
fn behind(place: &Place, ratio: Quantity, measure: &Measure) -> String {
    if let Some(text) = measure.own {
        return text(place.value);
    }
    let size = Size::of(ratio);
    size.with(match (size.is_factor, measure.by_factor) {
        (true, Some(word)) => word,
        _ => measure.worse,
    })
}
