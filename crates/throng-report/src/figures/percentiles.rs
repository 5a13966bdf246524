//! All latency percentiles at the largest number of clients, on the axis of HdrHistogram: rarer latencies are further
//! to the right.

use hdrhistogram::Histogram;

use super::{Axis, Figure, Kind, OfSection, Point, Series, Source, Trace};
use throng_record::format::{counted, list, time};
use throng_record::load_stats::Times;
use throng_record::metrics::Better;
use throng_record::{Latency, Purpose, Trial};
use throng_spec::registry::Info;
use throng_stats::median;

/// The metrics that the curve passes through.
const METRICS: [&str; 4] = [
    "latency_p50_us",
    "latency_p90_us",
    "latency_p99_us",
    "latency_p999_us",
];
/// Percentiles by name: one request in this many took longer.
const NAMED: [(f64, &str); 8] = [
    (2.0, "p50"),
    (10.0, "p90"),
    (100.0, "p99"),
    (1e3, "p99.9"),
    (1e4, "p99.99"),
    (1e5, "p99.999"),
    (1e6, "p99.9999"),
    (1e7, "p99.99999"),
];
/// Points per doubling of rarity.
const STEPS: i32 = 4;
/// A percentile is drawn only if at least this many values lie beyond it.
const BEYOND: f64 = 10.0;
/// The rarest percentile that is drawn: one request in this many.
const RAREST: f64 = 1e7;

/// For each N, the time that one in N requests of a trial exceeded, as the median over trials; `None` if a trial has too
/// few requests.
fn curve<'a>(times: impl Iterator<Item = &'a Latency>) -> Option<Vec<Point>> {
    // The summary has already reported unreadable histograms.
    let read = times.map(|times| Times::merged(std::iter::once(times)).ok()?);
    let trials: Vec<_> = read.collect::<Option<_>>()?;
    let fewest = trials.iter().map(Histogram::len).min()?;
    let rarest = (fewest as f64 / BEYOND).min(RAREST);
    let rare = (0..).map(|step| 2_f64.powf(f64::from(step) / f64::from(STEPS)));
    let points: Vec<Point> = rare
        .skip(1)
        .take_while(|one_in| *one_in <= rarest)
        .filter_map(|one_in| {
            let longest = trials
                .iter()
                .map(|trial| trial.value_at_quantile(1.0 - 1.0 / one_in) as f64);
            let longest_ns = median(&longest.collect::<Vec<_>>())?;
            Some(Point::new(one_in, longest_ns / 1e6))
        })
        .filter(|point| point.y > 0.0)
        .collect();
    (points.len() > 1).then_some(points)
}

fn axes() -> (Axis, Axis) {
    (
        Axis {
            named: NAMED.map(|(at, name)| (at, name.to_owned())).into(),
            ..Axis::logarithmic("percentile", None)
        },
        Axis::logarithmic("latency", Some("ms")),
    )
}

/// The rarest time of a server, in words.
fn rarest(series: &Series) -> Option<String> {
    let point = series.points.last()?;
    let (name, longer) = (&series.name, time(point.y * 1e3));
    Some(format!("{name} one in {:.0} longer than {longer}", point.x))
}

pub(super) fn figure(info: Info, source: &Source<'_>) -> Option<Figure> {
    let clients = *source.summary.clients.last()?;
    let is_timed = |trial: &&Trial| {
        trial.purpose == Purpose::Timed && trial.clients == clients && trial.failure.is_none()
    };
    let timed: Vec<&Trial> = source.trials.iter().filter(is_timed).collect();
    let servers = || source.summary.servers.iter().map(String::as_str);
    let of_server = |name| {
        let own = timed.iter().filter(|trial| trial.server == name);
        let loads = own.filter_map(|trial| trial.load.as_ref());
        let points = curve(loads.filter_map(|load| load.service_time.as_ref()))?;
        source.curve(name, clients, points)
    };
    let series: Vec<Series> = servers().filter_map(of_server).collect();
    let words: Vec<String> = series.iter().filter_map(rarest).collect();
    Some(Figure {
        caption: format!(
            "{}, median over trials: at p99.9, one request in 1,000 took longer.",
            counted(clients, "client")
        ),
        better: Better::Lower,
        section: if source.is_of_one() {
            OfSection::Answer
        } else {
            OfSection::Figures
        },
        alternative: format!("{}: {}.", info.summary, list(&words)),
        numbers: source.numbers(&METRICS, servers().map(|name| (name, clients))),
        ..Figure::new(info.name, info.summary, Kind::Course, axes(), series)?
    })
}

/// The same for distributions that are no trials of a run.
pub fn of_latencies(id: &'static str, title: &str, named: &[(&str, &Latency)]) -> Option<Figure> {
    let series: Vec<Series> = named
        .iter()
        .enumerate()
        .filter_map(|(place, (name, latency))| {
            Some(Series {
                name: (*name).to_owned(),
                place,
                points: curve(std::iter::once(*latency))?,
                trace: Trace::Joined,
            })
        })
        .collect();
    let words: Vec<String> = series.iter().filter_map(rarest).collect();
    Some(Figure {
        caption: "At p99.9, one request in 1,000 took longer.".to_owned(),
        better: Better::Lower,
        alternative: format!("{title}: {}.", list(&words)),
        ..Figure::new(id, title, Kind::Course, axes(), series)?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, latency};
    use crate::{Logs, Report};

    /// The sections of the figures that are drawn of a record with these servers, of which only the first has times.
    fn section(servers: &[&str]) -> OfSection {
        let (mut run, mut trials) = fixture::record();
        run.servers
            .retain(|server| servers.contains(&server.name.as_str()));
        run.settings.control = None;
        trials.retain(|trial| servers.contains(&trial.server.as_str()));
        for trial in trials.iter_mut().filter(|trial| trial.server != servers[0]) {
            trial.load.as_mut().expect("it has one").service_time = None;
        }
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        let mut figures = report.figures.iter();
        let found = figures.find(|figure| figure.id == "latency-percentiles");
        found.expect("one server has times").section
    }

    #[test]
    fn the_times_of_a_server_alone_are_its_answer_and_of_several_a_figure() {
        assert_eq!(section(&["epoll"]), OfSection::Answer);
        assert_eq!(section(&["epoll", "select"]), OfSection::Figures);
    }

    #[test]
    fn a_percentile_is_drawn_as_far_as_ten_requests_of_a_trial_lie_beyond_it() {
        let mut times = [1_000_000; 1000];
        times[990..].fill(50_000_000);
        let points = curve(std::iter::once(&latency(&times))).unwrap();
        let last = points.last().unwrap();
        assert!(last.x > 80.0 && last.x <= 100.0, "{last:?}");
        assert!((last.y - 1.0).abs() < 0.01, "{last:?}");
        assert!(
            points
                .windows(2)
                .all(|pair| pair[0].x < pair[1].x && pair[0].y <= pair[1].y)
        );
        times[960..].fill(50_000_000);
        let points = curve(std::iter::once(&latency(&times))).unwrap();
        assert!(
            (points.last().unwrap().y - 50.0).abs() < 0.1,
            "more than one in a hundred"
        );
    }

    #[test]
    fn the_curve_is_the_median_over_trials_as_tables_are() {
        let trials = [1, 2, 9].map(|ms| latency(&[ms * 1_000_000; 1000]));
        let points = curve(trials.iter()).unwrap();
        assert!(points.iter().all(|point| (point.y - 2.0).abs() < 0.01));
    }

    #[test]
    fn too_few_requests_make_no_curve() {
        assert!(curve([&latency(&[1000; 9])].into_iter()).is_none());
        assert!(curve(std::iter::empty()).is_none());
    }
}
