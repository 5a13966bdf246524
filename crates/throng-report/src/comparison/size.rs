//! The size of a difference, in words: "3.4x faster (3.1–3.7x)", "2.1 % slower (1.3–2.9 %)".

use throng_record::format::whole;
use throng_record::metrics::{Metric, Quantity};
use throng_stats::Verdict;

/// A ratio of at least this, or of at most its inverse, is written as a factor; a smaller difference in percent.
const AS_FACTOR: f64 = 1.5;
/// Larger factors are not given.
const MOST_TIMES: f64 = 1000.0;
/// Fewer decimals than this distinguish the ends of an interval.
const MOST_DECIMALS: usize = 3;

/// The size of a difference, without its direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Size {
    /// "3.4x", "2.1 %".
    pub(crate) estimate: String,
    /// " (3.1–3.7x)", " (1.3–2.9 %)"; empty if there is no interval.
    pub(crate) range: String,
    /// Whether it is a factor, instead of a share in percent.
    pub(crate) is_factor: bool,
}

impl Size {
    /// How far a ratio is from 1.
    pub(crate) fn of(ratio: Quantity) -> Self {
        let is_factor = !(1.0 / AS_FACTOR..AS_FACTOR).contains(&ratio.value);
        let (unit, apart): (_, fn(f64, bool) -> f64) = if is_factor {
            (
                "x",
                |factor, above| if above { factor } else { 1.0 / factor },
            )
        } else {
            (" %", |factor, above| {
                100.0 * if above { factor - 1.0 } else { 1.0 - factor }
            })
        };
        let above = ratio.value >= 1.0;
        let estimate = apart(ratio.value, above);
        if is_factor && estimate > MOST_TIMES {
            // One of both is nearly 0.
            return Self {
                estimate: format!("over {}x", whole(MOST_TIMES)),
                range: String::new(),
                is_factor,
            };
        }
        let first = match estimate {
            ..0.1 => 2,
            ..10.0 => 1,
            _ => 0,
        };
        if ratio.is_bound {
            // Rounded towards 1, since the true one is at least as far from it.
            let decimals = first + 1;
            let power = 10_f64.powi(decimals as i32);
            let least = (estimate * power).floor() / power;
            return Self {
                estimate: format!("at least {least:.decimals$}{unit}"),
                range: String::new(),
                is_factor,
            };
        }
        let Some((low, high)) = ratio.low.zip(ratio.high) else {
            return Self {
                estimate: format!("{estimate:.first$}{unit}"),
                range: String::new(),
                is_factor,
            };
        };
        let (near, far) = if above { (low, high) } else { (high, low) };
        let (near, far) = (apart(near, above), apart(far, above));
        let text =
            |decimals: usize| [near, estimate, far].map(|value| format!("{value:.decimals$}"));
        let all = || first..MOST_DECIMALS;
        let all_differ = |decimals: &usize| {
            let [near_text, estimate_text, far_text] = text(*decimals);
            near_text != estimate_text && estimate_text != far_text
        };
        let ends_differ = |decimals: &usize| {
            let [near_text, _, far_text] = text(*decimals);
            near_text != far_text
        };
        let decimals = all()
            .find(all_differ)
            .or_else(|| all().find(ends_differ))
            .unwrap_or(first);
        let [near_text, estimate_text, far_text] = text(decimals);
        Self {
            estimate: format!("{estimate_text}{unit}"),
            range: if near_text == far_text {
                String::new()
            } else {
                let range = if ratio.is_range { "range " } else { "" };
                format!(" ({range}{near_text}–{far_text}{unit})")
            },
            is_factor,
        }
    }

    /// "3.4x faster (3.1–3.7x)".
    pub(crate) fn with(&self, word: &str) -> String {
        format!("{} {word}{}", self.estimate, self.range)
    }
}

/// The short form for a cell of a table: "13x", "1.4x", "1.04x".
pub(crate) fn times(ratio: f64) -> String {
    match ratio {
        ..1.1 => format!("{ratio:.2}x"),
        ..9.95 => format!("{ratio:.1}x"),
        _ => format!("{}x", whole(ratio.round())),
    }
}

/// The size and the word: "2.1 % slower (1.3–2.9 %)"; only the word if nothing differs.
pub fn in_words(ratio: Quantity, verdict: Verdict, metric: &Metric) -> String {
    let verdict_word = word(verdict, metric);
    if verdict.is_difference() {
        Size::of(ratio).with(verdict_word)
    } else {
        verdict_word.to_owned()
    }
}

/// The same without the interval: "2.1 % slower".
pub fn briefly(ratio: Quantity, verdict: Verdict, metric: &Metric) -> String {
    let mut size = Size::of(ratio);
    size.range.clear();
    size.with(word(verdict, metric))
}

/// The inverse of a ratio, with its interval.
pub(crate) fn inverse(ratio: Quantity) -> Quantity {
    Quantity {
        value: 1.0 / ratio.value,
        low: ratio.high.map(|high| 1.0 / high),
        high: ratio.low.map(|low| 1.0 / low),
        ..ratio
    }
}

/// A share in percent: "8 %", "0.42 %".
pub(crate) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let text = match percent {
        ..0.995 => format!("{percent:.2}"),
        ..9.95 => format!("{percent:.1}"),
        _ => format!("{percent:.0}"),
    };
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

/// A verdict in one word that suits the metric.
pub(crate) fn word(verdict: Verdict, metric: &Metric) -> &'static str {
    let [better, worse] = metric.words();
    match verdict {
        Verdict::Better => better,
        Verdict::Worse => worse,
        Verdict::Equivalent => "equivalent",
        Verdict::Inconclusive => "inconclusive",
        Verdict::NotComparable => "not comparable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_record::metrics::named;

    fn size(value: f64, low: f64, high: f64) -> String {
        let ratio = Quantity {
            low: Some(low),
            high: Some(high),
            ..Quantity::bare(value)
        };
        Size::of(ratio).with("faster")
    }

    #[test]
    fn large_ones_are_factors_and_small_ones_are_percent() {
        assert_eq!(size(3.4, 3.1, 3.7), "3.4x faster (3.1–3.7x)");
        assert_eq!(size(0.25, 0.2, 0.5), "4.0x faster (2.0–5.0x)");
        assert_eq!(size(0.979, 0.971, 0.987), "2.1 % faster (1.3–2.9 %)");
        assert_eq!(size(1.12, 1.10, 1.14), "12 % faster (10–14 %)");
        assert_eq!(size(172.0, 51.0, 303.0), "172x faster (51–303x)");
        assert_eq!(Size::of(Quantity::bare(1.3)).with("faster"), "30 % faster");
    }

    #[test]
    fn narrow_intervals_get_more_decimals() {
        assert_eq!(size(3.41, 3.39, 3.43), "3.41x faster (3.39–3.43x)");
        assert_eq!(size(1.0041, 1.0035, 1.0047), "0.41 % faster (0.35–0.47 %)");
        assert_eq!(size(1.636, 1.631, 1.638), "1.64x faster (1.63–1.64x)");
        assert_eq!(size(2.0, 2.0, 2.0), "2.0x faster");
    }

    #[test]
    fn each_kind_of_metric_has_its_words() {
        for (name, better) in [
            ("requests_per_s", "faster"),
            ("latency_p99_us", "faster"),
            ("completion_s", "faster"),
            ("server_cpu_us_per_request", "cheaper"),
            ("requests_per_server_cpu_s", "cheaper"),
            ("server_pss_bytes", "smaller"),
            ("fairness_jain", "better"),
        ] {
            assert_eq!(
                word(Verdict::Better, named(name).unwrap()),
                better,
                "{name}"
            );
        }
    }
}
