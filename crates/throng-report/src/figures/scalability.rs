//! Rates against the number of clients with the Universal Scalability Law put through them, and how
//! far they lie off it.

use super::{Axis, Figure, FigureKind, Kind, Point, Series, Source, Trace};
use crate::summary::Row;
use crate::summary::scalability::Scaling;
use throng_record::format::list;
use throng_registry::{Entry, Info};
use throng_stats::scalability::{FARTHEST, Law};

/// Points that a curve is drawn from.
const STEPS: u32 = 96;

/// The measurements and the curves.
pub(super) struct Scalability;

/// How far the measurements lie off the curves.
pub(super) struct Residuals;

impl Entry for Scalability {
    fn info(&self) -> Info {
        Info {
            name: "scalability",
            summary: "Scalability: requests per second and the law through them",
        }
    }
}

impl Entry for Residuals {
    fn info(&self) -> Info {
        Info {
            name: "scalability-residuals",
            summary: "How far rates lie off the law",
        }
    }
}

impl FigureKind for Scalability {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        let mut series = of_laws(source, Trace::Curve, |_, law| curve(law));
        let rows = &source.summary.rows;
        series.extend(of_laws(source, Trace::Markers, |scaling, _| {
            let rows = rows.iter().filter(|row| row.server == scaling.server);
            rows.filter_map(|row| measured(row, scaling)).collect()
        }));
        let hollow = series.iter().flat_map(|one| &one.points).any(|p| p.partial);
        let mut caption = format!(
            "Markers are what was measured, the median over trials with its 95 % interval; lines are the \
             Universal Scalability Law X(n) = λn / (1 + σ(n−1) + κn(n−1)) fitted to them, drawn to {} \
             the most clients measured and never farther.",
            if FARTHEST == 2 {
                "twice"
            } else {
                "a few times"
            }
        );
        if hollow {
            caption.push_str(" Hollow: left out of the fit; the table says why.");
        }
        let Info { name, summary } = self.info();
        let axes = (
            Axis::logarithmic("clients", None),
            Axis::linear("Requests/s", None),
        );
        Some(Figure {
            caption,
            alternative: format!(
                "{summary}, against the number of clients, for {}. The table of scalability has the parameters.",
                list(&names(&source.summary.scaling)),
            ),
            ..Figure::new(name, summary, Kind::Lines, axes, series)?
        })
    }
}

impl FigureKind for Residuals {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        let series = of_laws(source, Trace::Joined, |_, law| {
            let points = law
                .residuals
                .iter()
                .map(|residual| Point::new(f64::from(residual.clients), 100.0 * residual.relative));
            points.collect()
        });
        let Info { name, summary } = self.info();
        let axes = (
            Axis::logarithmic("clients", None),
            Axis::linear("off the curve", Some("%")),
        );
        Some(Figure {
            caption:
                "Near 0 is better. Measured over fitted rate, less 1. Scatter is noise; a bow \
                      that several servers share is something that the law does not know."
                    .to_owned(),
            alternative: format!(
                "{summary} in percent, against the number of clients, for {}.",
                list(&names(&source.summary.scaling)),
            ),
            ..Figure::new(name, summary, Kind::Lines, axes, series)?
        })
    }
}

/// One series for each server that has a law.
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

fn names(scaling: &[Scaling]) -> Vec<&str> {
    let fitted = scaling.iter().filter(|one| one.law.is_some());
    fitted.map(|one| one.server.as_str()).collect()
}

fn measured(row: &Row, scaling: &Scaling) -> Option<Point> {
    let rate = row.quantity("requests_per_s")?;
    Some(Point {
        low: rate.low,
        high: rate.high,
        partial: scaling.leaves_out(row.clients),
        ..Point::new(f64::from(row.clients), rate.value)
    })
}

/// The curve at places evenly spaced on the logarithmic axis.
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
    use crate::render::still;
    use crate::summary::Summary;

    #[test]
    fn a_curve_and_markers_for_each_server_with_a_law_up_to_twice_the_most_clients() {
        let (run, trials) = fixture::growing();
        let summary = Summary::of(&run, &trials).unwrap();
        let source = Source::of(&summary);
        let figure = Scalability.build(&source).unwrap();
        let of = |trace| figure.series.iter().filter(move |one| one.trace == trace);
        let fitted = names(&summary.scaling).len();
        assert_eq!(
            (of(Trace::Curve).count(), of(Trace::Markers).count()),
            (fitted, fitted)
        );
        for curve in of(Trace::Curve) {
            let last = curve.points.last().unwrap();
            assert!((last.x - 1800.0).abs() < 0.5 && last.y > 0.0);
        }
        assert!(of(Trace::Markers).all(|one| one.points.len() == 7));
        let dir = tempfile::tempdir().unwrap();
        for figure in [figure.clone(), Residuals.build(&source).unwrap()] {
            still::svg(&figure, &dir.path().join("one.svg")).unwrap();
            still::png(&figure, &dir.path().join("one.png")).unwrap();
        }
    }

    #[test]
    fn three_numbers_of_clients_have_no_curve() {
        let (run, trials) = fixture::record();
        let summary = Summary::of(&run, &trials).unwrap();
        let source = Source::of(&summary);
        assert_eq!(Scalability.build(&source), None);
        assert_eq!(Residuals.build(&source), None);
    }
}
