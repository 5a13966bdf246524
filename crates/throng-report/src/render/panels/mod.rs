//! A figure as one picture or as small multiples that the page arranges.
//!
//! A few servers share a picture, with names at the ends of their lines. More would overlap, so each server gets a
//! small picture of its own, with the other servers in grey.

mod lines;
mod rows;
mod stacked;

use super::scene::Scene;
use crate::figures::{FAILED, Figure, Kind, Series, Trace};
use throng_record::format::valued;

/// Maximum number of servers per picture.
const TOGETHER: usize = 5;
/// Width of a picture that stands by itself.
pub(super) const WIDE: f64 = 480.0;
/// Width of one of many small pictures.
pub(super) const NARROW: f64 = 224.0;

/// The pictures of a figure.
#[derive(Debug)]
pub(super) struct Panels {
    /// Whether there is one small picture per server rather than shared pictures.
    pub(super) many: bool,
    pub(super) scenes: Vec<Scene>,
    /// Lines to draw behind each scene.
    pub(super) behind: Option<Scene>,
    /// Titles of the axes that have no title in the drawing.
    pub(super) axes: String,
}

impl Panels {
    /// Pictures that stand by themselves.
    fn of(scenes: Vec<Scene>) -> Self {
        Self {
            many: false,
            scenes,
            behind: None,
            axes: String::new(),
        }
    }
}

/// The pictures of a figure.
pub(super) fn panels(figure: &Figure) -> Panels {
    match figure.kind {
        Kind::Stacked => Panels::of(vec![stacked::panel(figure)]),
        Kind::Ranked => Panels::of(figure.ranked.iter().map(rows::panel).collect()),
        Kind::Bars => Panels::of(vec![rows::of_bars(figure)]),
        Kind::Lines | Kind::Course => {
            let groups = groups(figure);
            if groups.len() <= TOGETHER {
                return Panels::of(vec![lines::together(figure, &groups)]);
            }
            Panels {
                many: true,
                behind: Some(lines::behind(figure, &groups)),
                scenes: lines::each(figure, &groups),
                axes: axes(figure),
            }
        }
    }
}

/// "Vertical: p99 (ms), log; horizontal: clients, log."
fn axes(figure: &Figure) -> String {
    let log = |log| if log { ", log" } else { "" };
    let (x, y) = (&figure.x, &figure.y);
    format!(
        "Vertical: {}{}; horizontal: {}{}.",
        y.title(),
        log(y.log),
        x.title(),
        log(x.log)
    )
}

/// The drawing of one server.
pub(super) struct Group<'a> {
    pub(super) name: &'a str,
    pub(super) place: usize,
    pub(super) series: Vec<&'a Series>,
}

impl Group<'_> {
    /// Its name, with the mark of a failure if it failed as a whole.
    pub(super) fn title(&self, figure: &Figure) -> String {
        let mut points = self.series.iter().flat_map(|series| &series.points);
        let failed = figure.kind == Kind::Course && points.any(|point| point.failed);
        titled(self.name, failed)
    }

    /// Its measurements rather than lines drawn in addition, if there are any.
    pub(super) fn measured(&self) -> Option<&Series> {
        let mut series = self.series.iter();
        let measured = series.find(|one| !one.trace.is_drawn_in());
        measured.or(self.series.first()).copied()
    }
}

/// The series of each server. A dotted series, which is another view, belongs to the group before it.
pub(super) fn groups(figure: &Figure) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for series in &figure.series {
        let known = match series.trace {
            Trace::Level => continue,
            Trace::Dotted => groups.last_mut(),
            _ => groups.iter_mut().find(|group| group.place == series.place),
        };
        match known {
            Some(group) => group.series.push(series),
            None => groups.push(Group {
                name: &series.name,
                place: series.place,
                series: vec![series],
            }),
        }
    }
    groups
}

/// A name with the mark of a failure, if it failed.
pub(super) fn titled(name: &str, failed: bool) -> String {
    if failed {
        format!("{FAILED} {name}")
    } else {
        name.to_owned()
    }
}
