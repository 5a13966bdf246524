//! Throughput against the number of clients, with fits of the Universal Scalability Law.

use super::{Figure, FigureKind, MetricFigure, Point, Series, Source, Trace};
use crate::summary::scalability::Scaling;
use throng_registry::{Entry, Info};
use throng_stats::scalability::{FARTHEST, Law};

/// Steps between the points from which a curve is drawn.
const STEPS: u32 = 48;

/// The measurements and the fitted curves.
pub(super) struct Throughput;

impl Entry for Throughput {
    fn info(&self) -> Info {
        MetricFigure::REQUESTS.info()
    }
}

impl FigureKind for Throughput {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        let mut figure = MetricFigure::REQUESTS.build(source)?;
        let curves = of_laws(source, Trace::Curve, |_, law| curve(law));
        if !curves.is_empty() {
            let fitted = "Thin: the fitted scalability law, up to twice the most clients.";
            figure.caption = figure
                .caption
                .replace(MetricFigure::REQUESTS.of_lines, fitted);
        }
        figure.series.extend(curves);
        Some(figure)
    }
}

/// One series per server that has a fitted law.
fn of_laws(
    source: &Source<'_>,
    trace: Trace,
    points: impl Fn(&Scaling, &Law) -> Vec<Point>,
) -> Vec<Series> {
    let all = source.summary.scaling.iter().enumerate();
    all.filter_map(|(place, scaling)| {
        Some(Series {
            name: scaling.server.clone(),
            place,
            points: points(scaling, scaling.law.as_ref()?),
            trace,
        })
    })
    .collect()
}

/// The curve at positions evenly spaced on the logarithmic axis.
fn curve(law: &Law) -> Vec<Point> {
    let (fewest, most) = law.range();
    let (first, last) = (f64::from(fewest), f64::from(most) * f64::from(FARTHEST));
    (0..=STEPS)
        .map(|step| f64::from(step) / f64::from(STEPS))
        .map(|share| (first * (last / first).powf(share)).min(last))
        .filter_map(|clients| Some(Point::new(clients, law.rate(clients).ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::summary::Summary;

    #[test]
    fn a_curve_for_each_server_with_a_law_up_to_twice_the_most_clients() {
        let (run, trials) = fixture::growing();
        let summary = Summary::of(&run, &trials).unwrap();
        let figure = Throughput.build(&Source::of(&summary)).unwrap();
        let of = |trace| figure.series.iter().filter(move |one| one.trace == trace);
        let fitted = summary.scaling.iter().filter(|one| one.law.is_some());
        assert_eq!(of(Trace::Curve).count(), fitted.count());
        assert_eq!(FARTHEST, 2, "the caption says so");
        for curve in of(Trace::Curve) {
            let last = curve.points.last().unwrap();
            assert!((last.x - 1800.0).abs() < 0.5 && last.y > 0.0);
        }
        assert!(of(Trace::Joined).all(|one| one.points.len() == 7));
    }

    #[test]
    fn three_numbers_of_clients_have_no_curve() {
        let (run, trials) = fixture::record();
        let summary = Summary::of(&run, &trials).unwrap();
        let figure = Throughput.build(&Source::of(&summary)).unwrap();
        assert!(figure.series.iter().all(|one| one.trace == Trace::Joined));
        assert!(!figure.caption.contains("law"));
    }
}
