//! A chart of one or a few lines, drawn like the charts of reports.

use maud::{Markup, PreEscaped, html};

use throng_report::figures::{Axis, Figure, Kind, Point, Series, Trace};
use throng_report::render::page::pictures;

/// Values over time, or over another quantity.
pub(super) struct Chart {
    /// Stable name.
    pub(super) id: &'static str,
    pub(super) title: String,
    /// Its caption.
    pub(super) caption: String,
    pub(super) kind: Kind,
    pub(super) x: (&'static str, Option<&'static str>),
    pub(super) y: (&'static str, Option<&'static str>),
    /// Whether the vertical axis starts at 0.
    pub(super) from_zero: bool,
    /// The lines, with their names.
    pub(super) lines: Vec<(String, Trace, Vec<Point>)>,
}

impl Chart {
    /// Lines over a quantity such as time.
    pub(super) fn course(
        id: &'static str,
        title: &str,
        x: (&'static str, Option<&'static str>),
        y: (&'static str, Option<&'static str>),
        lines: Vec<(&str, Vec<Point>)>,
    ) -> Self {
        let lines = lines.into_iter();
        Self {
            id,
            title: title.to_owned(),
            caption: String::new(),
            kind: Kind::Course,
            x,
            y,
            from_zero: true,
            lines: lines
                .map(|(name, points)| (name.to_owned(), Trace::Joined, points))
                .collect(),
        }
    }

    /// The picture; empty if there are too few points for a line.
    pub(super) fn draw(self) -> Markup {
        let is_drawn = |(_, trace, points): &(String, Trace, Vec<Point>)| {
            !points.is_empty() && (points.len() > 1 || *trace == Trace::Markers)
        };
        if !self.lines.iter().any(is_drawn) {
            return html! {};
        }
        let alternative = format!("{}. {}", self.title, self.last());
        let axis = |(label, unit), from_zero| Axis {
            label,
            unit,
            log: false,
            from_zero,
        };
        let lines = self.lines.into_iter().enumerate();
        let series = lines.map(|(place, (name, trace, points))| Series {
            name,
            place,
            points,
            trace,
        });
        let figure = Figure {
            caption: self.caption,
            alternative,
            x: axis(self.x, self.kind == Kind::Course),
            y: axis(self.y, self.from_zero),
            kind: self.kind,
            series: series.collect(),
            ..Figure::empty(self.id, self.title)
        };
        let drawn = pictures(&figure, self.id);
        html! {
            figure id=(self.id) {
                h3 { (figure.title) }
                figcaption { (figure.caption) }
                div.pictures.few role="group" aria-label=(figure.alternative) { (PreEscaped(&drawn.svg)) }
            }
        }
    }

    /// The last value of each line: the alternative text of the picture.
    fn last(&self) -> String {
        let lines = self.lines.iter();
        let last = lines.filter_map(|(name, _, points)| {
            let value = throng_record::format::number(points.last()?.y);
            let unit = self.y.1.unwrap_or_default();
            Some(format!("{name}: last {value} {unit}").trim_end().to_owned())
        });
        last.collect::<Vec<_>>().join("; ")
    }
}
