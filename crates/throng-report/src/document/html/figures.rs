//! Figures within a page: captions, pictures and numbers.

use std::collections::VecDeque;

use maud::{Markup, PreEscaped, html};

use super::{Scope, heading, swatch};
use crate::document::{Cell, Column, Figures, Row, Style, Table, Text};
use crate::figures::{FAILED, Figure, Kind, Point, Rank, Series, Trace};
use crate::render::Panels;
use throng_record::format::{ABSENT, hundredths, number, valued};

/// Maximum number of columns in a table of numbers.
const MOST_COLUMNS: usize = 24;
/// Two pictures may share a row if the lower one has more than this share of the height of the taller one.
const LEVEL: f64 = 0.6;

/// All figures of a section, with their key.
pub(super) fn of_section(scope: Scope<'_>, figures: &Figures, level: u8) -> Markup {
    html! {
        (key(scope, figures))
        div.figures {
            @for (figure, drawn) in side_by_side(&figures.figures) {
                figure.wide[is_wide(&drawn)] id=(id(scope, figure)) {
                    (heading(level + 1, None, &figure.title.as_str().into()))
                    (inner(scope, figure, &drawn))
                }
            }
        }
    }
}

/// A figure of the answer, without a heading.
pub(super) fn picture(scope: Scope<'_>, figure: &Figure) -> Markup {
    html! {
        figure.first id=(id(scope, figure)) {
            @if figure.kind != Kind::Ranked { b { (figure.title) } }
            (inner(scope, figure, &Panels::of(figure)))
        }
    }
}

/// Its ID on the page.
fn id(scope: Scope<'_>, figure: &Figure) -> String {
    format!("{}figure-{}", scope.prefix(), figure.id)
}

/// One button per server, which hides the server, shows it again or shows it alone.
fn key(scope: Scope<'_>, figures: &Figures) -> Markup {
    let joined = |places: &[usize]| {
        let numbers: Vec<String> = places.iter().map(usize::to_string).collect();
        numbers.join(" ")
    };
    html! {
        @if figures.key.len() > 1 {
            div.key role="group" aria-label=(scope.named("Servers shown in the figures")) hidden {
                @for (at, name) in &figures.key {
                    button type="button" aria-pressed="true" data-server=(joined(at)) title="Click to hide or show; double-click or Shift+Enter to show only this one." {
                        @for place in at.iter().take(1) { (swatch(*place)) }
                        (name)
                    }
                }
                button.all type="button" hidden { "Show all" }
            }
        }
    }
}

/// The figures in order, except that each figure of half the page's width is followed by one of about the same height,
/// if there is one later: it leaves no empty space on a page with two columns.
fn side_by_side(figures: &[Figure]) -> Vec<(&Figure, Panels)> {
    let drawn = figures.iter().map(|figure| (figure, Panels::of(figure)));
    let mut rest: VecDeque<(&Figure, Panels)> = drawn.collect();
    let mut all = Vec::new();
    while let Some((figure, one)) = rest.pop_front() {
        let fits = |(_, other): &(&Figure, Panels)| {
            let (low, high) = (one.height(), other.height());
            !is_wide(other) && low.min(high) > LEVEL * low.max(high)
        };
        let next = rest.iter().position(fits).filter(|_| !is_wide(&one));
        all.push((figure, one));
        all.extend(next.and_then(|next| rest.remove(next)));
    }
    all
}

/// Whether a figure takes the whole width of a page.
fn is_wide(drawn: &Panels) -> bool {
    drawn.are_many() || drawn.are_full()
}

fn inner(scope: Scope<'_>, figure: &Figure, drawn: &Panels) -> Markup {
    let arranged = match (drawn.are_many(), drawn.are_full()) {
        (true, _) => "many",
        (_, true) => "full",
        _ => "few",
    };
    let numbers = numbers(figure);
    html! {
        figcaption {
            (figure.full_caption())
            @if let Some(axes) = &drawn.axes { " " span.axes { (axes) } }
        }
        div.pictures.(arranged) role="group" aria-label=(figure.alternative) {
            (PreEscaped(drawn.svg(&id(scope, figure))))
        }
        @if numbers.rows().next().is_some() {
            details.numbers {
                summary { "Numbers" span.hidden { " of: " (figure.title) } }
                (scope.table(&numbers))
            }
        }
    }
}

/// The plotted values as a table.
fn numbers(figure: &Figure) -> Table {
    let (heads, rows) = match figure.kind {
        Kind::Lines | Kind::Bars => of_points(figure),
        Kind::Course | Kind::Dots | Kind::Heat => of_course(figure),
        Kind::Stacked => of_parts(figure),
        Kind::Ranked => of_ranked(figure),
    };
    let columns = heads.into_iter().map(Column::number).collect();
    Table::of(format!("Numbers of: {}", figure.title), columns, rows)
}

/// A row of numbers of a server.
fn line(name: &str, place: Option<usize>, cells: impl IntoIterator<Item = String>) -> Row {
    let style = place.map_or(Style::Plain, Style::Server);
    let plain = cells.into_iter().map(Cell::plain);
    Row::of(Text::default().then(name, style), plain.collect())
}

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
fn of_points(figure: &Figure) -> (Vec<String>, Vec<Row>) {
    let mut places = figure.marked();
    places.truncate(MOST_COLUMNS);
    let mut heads = vec![figure.y.title()];
    heads.extend(
        places
            .iter()
            .map(|x| valued(*x, Some(figure.x.unit.unwrap_or(figure.x.label)))),
    );
    let row = |series: &Series| {
        let cells = places.iter().map(|x| {
            let mut points = series.points.iter();
            let found = points.find(|point| point.x.total_cmp(x).is_eq());
            found.map_or_else(|| ABSENT.to_owned(), |point| value(figure, point))
        });
        line(&series.name, Some(series.place), cells)
    };
    let rows = measured(figure).map(row);
    (heads, rows.collect())
}

/// The metrics of the tables: the points of a curve are no sample of them.
fn of_course(figure: &Figure) -> (Vec<String>, Vec<Row>) {
    let numbers = &figure.numbers;
    let titles = numbers.heads.iter().map(|head| (*head).to_owned());
    let heads = ["Server".to_owned()].into_iter().chain(titles).collect();
    let rows = numbers
        .rows
        .iter()
        .map(|(name, place, cells)| line(name, Some(*place), cells.clone()));
    (heads, rows.collect())
}

fn of_parts(figure: &Figure) -> (Vec<String>, Vec<Row>) {
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
        line(&one.name, Some(one.place), cells)
    });
    (heads, rows.collect())
}

/// One column per ranking.
fn of_ranked(figure: &Figure) -> (Vec<String>, Vec<Row>) {
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
        line(&row.name, row.place, cells)
    });
    (heads, rows.collect())
}
