//! Figures within a page: captions, pictures and numbers.

use std::collections::VecDeque;

use maud::{Markup, PreEscaped, html};

use super::{Scope, heading, swatch};
use crate::document::Figures;
use crate::figures::{FAILED, Figure, Kind, Point, Rank, Series, Trace};
use crate::render::page::{Pictures, pictures};
use throng_record::format::{ABSENT, hundredths, number, valued};

/// Maximum number of columns in a table of numbers.
const MOST_COLUMNS: usize = 24;
/// Two pictures may share a row if the lower one has more than this share of the height of the taller one.
const LEVEL: f64 = 0.6;

/// All figures of a section, with their key.
pub(super) fn of_section(scope: Scope<'_>, figures: &Figures, level: u8) -> Markup {
    let all = side_by_side(&figures.figures, |one| DrawnFigure::of(scope, one));
    html! {
        (key(scope, figures))
        div.figures { @for one in all { (figure(&one, level)) } }
    }
}

/// One button per server, which hides the server, shows it again or shows it alone.
fn key(scope: Scope<'_>, figures: &Figures) -> Markup {
    let places = |places: &[usize]| {
        let places: Vec<String> = places.iter().map(usize::to_string).collect();
        places.join(" ")
    };
    html! {
        @if figures.key.len() > 1 {
            div.key role="group" aria-label=(scope.named("Servers shown in the figures")) hidden {
                @for (at, name) in &figures.key {
                    button type="button" aria-pressed="true" data-server=(places(at)) title="Click to hide or show; double-click or Shift+Enter to show only this one." {
                        @for place in at.iter().take(1) { (swatch(*place)) }
                        (name)
                    }
                }
                button.all type="button" hidden { "Show all" }
            }
        }
    }
}

/// A figure drawn for a page.
struct DrawnFigure<'a> {
    figure: &'a Figure,
    id: String,
    pictures: Pictures,
}

impl<'a> DrawnFigure<'a> {
    fn of(scope: Scope<'_>, figure: &'a Figure) -> Self {
        let id = format!("{}figure-{}", scope.prefix(), figure.id);
        let pictures = pictures(figure, &id);
        Self {
            figure,
            id,
            pictures,
        }
    }

    /// Whether it leaves no empty space next to `other` on a page with two columns.
    fn fits(&self, other: &Self) -> bool {
        let (one, other) = (self.pictures.height, other.pictures.height);
        !self.pictures.many && one.min(other) > LEVEL * one.max(other)
    }
}

/// The figures in order, except that each figure of half the page's width is followed by one of about the same height,
/// if there is one later.
fn side_by_side<'a>(
    figures: &'a [Figure],
    drawn: impl Fn(&'a Figure) -> DrawnFigure<'a>,
) -> Vec<DrawnFigure<'a>> {
    let mut rest: VecDeque<DrawnFigure<'a>> = figures.iter().map(drawn).collect();
    let mut all = Vec::new();
    while let Some(one) = rest.pop_front() {
        let next = (!one.pictures.many)
            .then(|| rest.iter().position(|other| other.fits(&one)))
            .flatten();
        all.push(one);
        all.extend(next.and_then(|next| rest.remove(next)));
    }
    all
}

fn figure(drawn: &DrawnFigure<'_>, level: u8) -> Markup {
    html! {
        figure.wide[drawn.pictures.many] id=(drawn.id) {
            (heading(level + 1, None, &drawn.figure.title.as_str().into()))
            (inner(drawn.figure, &drawn.pictures))
        }
    }
}

/// A figure of the answer, without a heading.
pub(super) fn picture(scope: Scope<'_>, figure: &Figure) -> Markup {
    let id = format!("{}figure-{}", scope.prefix(), figure.id);
    let drawn = pictures(figure, &id);
    html! {
        figure.first id=(id) {
            @if figure.kind != Kind::Ranked { b { (figure.title) } }
            (inner(figure, &drawn))
        }
    }
}

fn inner(figure: &Figure, drawn: &Pictures) -> Markup {
    let arranged = if drawn.many { "many" } else { "few" };
    html! {
        figcaption {
            (figure.full_caption())
            @if !drawn.axes.is_empty() { " " span.axes { (drawn.axes) } }
        }
        div.pictures.(arranged) role="group" aria-label=(figure.alternative) { (PreEscaped(&drawn.svg)) }
        (numbers(figure))
    }
}

/// The plotted values as a table.
fn numbers(figure: &Figure) -> Markup {
    let (heads, rows) = match figure.kind {
        Kind::Lines | Kind::Bars => of_points(figure),
        Kind::Course => of_course(figure),
        Kind::Stacked => of_parts(figure),
        Kind::Ranked => of_ranked(figure),
    };
    html! {
        @if !rows.is_empty() {
            details.numbers {
                summary { "Numbers" span.hidden { " of: " (figure.title) } }
                div.scroll {
                    table {
                        thead { tr { @for head in &heads {
                            th scope="col" { @if head.is_empty() { span.hidden { "Name" } } @else { (head) } }
                        } } }
                        tbody {
                            @for (name, place, cells) in &rows {
                                tr data-s=[*place] {
                                    th scope="row" { (name) }
                                    @for cell in cells { td { (cell) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A server with its index and its cells.
type Line<'a> = (&'a str, Option<usize>, Vec<String>);
type Numbers<'a> = (Vec<String>, Vec<Line<'a>>);

fn measured(figure: &Figure) -> impl Iterator<Item = &Series> {
    let series = figure.series.iter();
    series.filter(|one| !one.trace.is_drawn_in() && one.trace != Trace::Dotted)
}

/// "1,230 (1,200–1,260)".
fn value(figure: &Figure, point: &Point) -> String {
    if !figure.has_value(point) {
        return FAILED.to_owned();
    }
    let mark = if point.failed { "✖ " } else { "" };
    let value = format!("{mark}{}", number(point.y));
    match (point.low, point.high) {
        (Some(low), Some(high)) => format!("{value} ({}–{})", number(low), number(high)),
        _ => value,
    }
}

/// One column per x position.
fn of_points(figure: &Figure) -> Numbers<'_> {
    let mut places = figure.marked();
    places.truncate(MOST_COLUMNS);
    let mut heads = vec![figure.y.title()];
    heads.extend(
        places
            .iter()
            .map(|x| valued(*x, Some(figure.x.unit.unwrap_or(figure.x.label)))),
    );
    let line = |series: &'_ Series| -> Vec<String> {
        let cell = |x: &f64| {
            let mut points = series.points.iter();
            let found = points.find(|point| point.x.total_cmp(x).is_eq());
            found.map_or_else(|| ABSENT.to_owned(), |point| value(figure, point))
        };
        places.iter().map(cell).collect()
    };
    let rows = measured(figure).map(|one| (one.name.as_str(), Some(one.place), line(one)));
    (heads, rows.collect())
}

/// The metrics of the tables: the points of a curve are no sample of them.
fn of_course(figure: &Figure) -> Numbers<'_> {
    let numbers = &figure.numbers;
    let heads = numbers.heads.iter().map(|head| (*head).to_owned());
    let heads = ["Server".to_owned()].into_iter().chain(heads).collect();
    let rows = numbers.rows.iter();
    let rows = rows.map(|row| (row.name.as_str(), Some(row.place), row.cells.clone()));
    (heads, rows.collect())
}

fn of_parts(figure: &Figure) -> Numbers<'_> {
    let mut heads = vec![figure.y.title(), "total".to_owned()];
    heads.extend(figure.parts.iter().cloned());
    let rows = figure.series.iter().map(|one| {
        let part = |part: usize| {
            let mut points = one.points.iter();
            let found = points.find(|point| point.x as usize == part);
            found.map_or_else(|| "–".to_owned(), |point| hundredths(point.y))
        };
        let mut cells = vec![hundredths(one.total())];
        cells.extend((0..figure.parts.len()).map(part));
        (one.name.as_str(), Some(one.place), cells)
    });
    (heads, rows.collect())
}

/// One column per ranking.
fn of_ranked(figure: &Figure) -> Numbers<'_> {
    let mut heads = vec!["Name".to_owned()];
    heads.extend(figure.ranked.iter().map(|one| one.title.clone()));
    let Some(first) = figure.ranked.first() else {
        return (heads, Vec::new());
    };
    let rows = first.rows().map(|row| {
        let cells = figure.ranked.iter().map(|ranked| {
            let mut rows = ranked.rows();
            let own = rows.find(|one| one.name == row.name);
            match own {
                Some(own) if own.failed => FAILED.to_owned(),
                Some(Rank {
                    point: Some(point), ..
                }) => value(figure, point),
                _ => ABSENT.to_owned(),
            }
        });
        (row.name.as_str(), row.place, cells.collect())
    });
    (heads, rows.collect())
}
