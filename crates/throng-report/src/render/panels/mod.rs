//! A figure as one picture or as small multiples that the page arranges.
//!
//! A few servers share a picture, with names at the ends of their lines. More would overlap, so each server gets a
//! small picture of its own, with the other servers in grey.

mod lines;
mod rows;
mod stacked;

use std::fmt::Write as _;

use super::scene::Scene;
use super::svg::{self, Colours};
use crate::figures::{FAILED, Figure, Kind, Series, Trace};
use throng_record::format::valued;

/// Maximum number of servers per picture.
const TOGETHER: usize = 5;
/// Width of a picture that stands by itself.
pub(super) const WIDE: f64 = 480.0;
/// Width of one of many small pictures.
pub(super) const NARROW: f64 = 224.0;
/// Width of a picture that takes the whole width of a page.
pub(super) const FULL: f64 = 960.0;

/// The pictures of a figure.
#[derive(Debug)]
pub struct Panels {
    pub(super) scenes: Vec<Scene>,
    /// If there is one small picture per server rather than shared pictures: lines to draw behind each of them.
    pub(super) behind: Option<Scene>,
    /// Titles of the axes, if the pictures have none.
    pub axes: Option<String>,
}

impl Panels {
    /// Draws a figure.
    pub fn of(figure: &Figure) -> Self {
        let grouped = groups(figure);
        let (scenes, behind) = match figure.kind {
            Kind::Stacked => (vec![stacked::panel(figure)], None),
            Kind::Ranked => (figure.ranked.iter().map(rows::panel).collect(), None),
            Kind::Bars => (vec![rows::of_bars(figure)], None),
            Kind::Dots | Kind::Heat if grouped.len() > 1 => (lines::each(figure, &grouped), None),
            Kind::Lines | Kind::Course if grouped.len() > TOGETHER => {
                let behind = lines::behind(figure, &grouped);
                (lines::each(figure, &grouped), Some(behind))
            }
            Kind::Lines | Kind::Course | Kind::Dots | Kind::Heat => {
                (vec![lines::together(figure, &grouped)], None)
            }
        };
        let is_apart = scenes.len() > 1 && figure.kind != Kind::Ranked;
        Self {
            scenes,
            behind,
            axes: is_apart.then(|| axes(figure)),
        }
    }

    /// Whether there are small pictures, one per server.
    pub fn are_many(&self) -> bool {
        self.widest() <= NARROW
    }

    /// Whether each picture takes the whole width of a page.
    pub fn are_full(&self) -> bool {
        self.widest() >= FULL
    }

    fn widest(&self) -> f64 {
        let widths = self.scenes.iter().map(|scene| scene.width);
        widths.fold(0.0, f64::max)
    }

    /// The height of all pictures stacked vertically, in SVG user units.
    pub fn height(&self) -> f64 {
        self.scenes.iter().map(|scene| scene.height).sum()
    }

    /// The pictures as SVG elements within a page, where the figure has this ID.
    pub fn svg(&self, id: &str) -> String {
        let mut text = String::new();
        let shared = self.behind.as_ref().map(|behind| {
            let lines = svg::items(&behind.items, Colours::Page);
            let _ = write!(
                text,
                "<svg class=\"hidden\" aria-hidden=\"true\"><defs><g id=\"{id}-all\">{lines}</g></defs></svg>"
            );
            format!("{id}-all")
        });
        for scene in &self.scenes {
            svg::picture(&mut text, scene, shared.as_deref());
        }
        text
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
        let failed = figure.kind.has_many() && points.any(|point| point.failed);
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
