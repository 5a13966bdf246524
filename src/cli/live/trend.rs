//! The latest values of a figure, as a line of bars (sparkline).

use std::collections::VecDeque;

/// Number of values kept: more than any terminal shows.
const KEPT: usize = 240;

/// Bars by their height in eighths.
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Values at equal intervals. An unknown value is a gap.
#[derive(Debug, Clone, Default)]
pub(super) struct Trend(VecDeque<Option<f64>>);

impl Trend {
    pub(super) fn push(&mut self, value: Option<f64>) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        // Nothing is shown before the first value.
        if value.is_some() || !self.0.is_empty() {
            self.0.push_back(value);
        }
    }

    /// The last `columns` values as bars, relative to the largest of them or to `full`, whichever is greater. Any
    /// value above zero is visible.
    pub(super) fn bars(&self, columns: usize, full: f64) -> String {
        let shown = self.0.iter().skip(self.0.len().saturating_sub(columns));
        let known = shown.clone().flatten().copied();
        let greatest = known.fold(full, f64::max);
        let bar = |value: &Option<f64>| match value {
            Some(value) if *value > 0.0 && greatest > 0.0 => {
                let eighths = (value / greatest * 8.0).round().clamp(1.0, 8.0);
                BARS[eighths as usize]
            }
            _ => BARS[0],
        };
        shown.map(bar).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[Option<f64>]) -> Trend {
        let mut trend = Trend::default();
        for value in values {
            trend.push(*value);
        }
        trend
    }

    #[test]
    fn values_are_bars_of_the_greatest() {
        let trend = of(&[None, Some(0.0), Some(1.0), None, Some(400.0), Some(800.0)]);
        assert_eq!(trend.bars(10, 0.0), " ▁ ▄█");
        assert_eq!(trend.bars(2, 0.0), "▄█");
        assert_eq!(trend.bars(2, 1600.0), "▂▄");
        assert_eq!(trend.bars(0, 0.0), "");
        assert_eq!(of(&[None, None]).bars(10, 1.0), "");
    }

    #[test]
    fn only_the_last_are_kept() {
        let mut trend = Trend::default();
        for value in 0..1000 {
            trend.push(Some(f64::from(value)));
        }
        assert_eq!(trend.bars(10_000, 0.0).chars().count(), KEPT);
    }
}
