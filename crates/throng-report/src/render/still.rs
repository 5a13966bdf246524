//! A figure as a still picture, SVG or PNG, 1000 × 600. plotters gives the canvas and the text;
//! axes are laid out here, because both kinds may be logarithmic and marks sit where the data are.

mod heat;
mod stacked;

use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context as _, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::register_font;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::ticks::{self, Tick};
use crate::figures::{Axis, Figure, Kind, Point, Series, Trace};
use crate::palette::look;

/// Width and height in pixels.
pub const SIZE: (u32, u32) = (1000, 600);

const LEFT: i32 = 92;
const RIGHT: i32 = 800;
const TOP: i32 = 62;
const BOTTOM: i32 = 532;
/// Length of a dash, and of the gap after it.
const DASH: f64 = 6.0;
const FONT: &str = "DejaVu Sans";
const INK: RGBColor = RGBColor(31, 35, 40);
const QUIET: RGBColor = RGBColor(89, 96, 105);
const GRID: RGBColor = RGBColor(228, 231, 235);

/// Draws `figure` as SVG to `path`.
///
/// # Errors
/// When the file cannot be written, naming it.
pub fn svg(figure: &Figure, path: &Path) -> anyhow::Result<()> {
    let mut text = String::new();
    draw(
        figure,
        SVGBackend::with_string(&mut text, SIZE).into_drawing_area(),
    )?;
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Draws `figure` as PNG to `path`.
///
/// # Errors
/// When the file cannot be written, naming it.
pub fn png(figure: &Figure, path: &Path) -> anyhow::Result<()> {
    draw(figure, BitMapBackend::new(path, SIZE).into_drawing_area())
        .with_context(|| format!("cannot write {}", path.display()))
}

type Area<B> = DrawingArea<B, Shift>;

fn draw<B: DrawingBackend>(figure: &Figure, area: Area<B>) -> anyhow::Result<()> {
    static FONTS: OnceLock<bool> = OnceLock::new();
    let registered = FONTS.get_or_init(|| {
        register_font(FONT, FontStyle::Normal, dejavu::sans::regular()).is_ok()
            && register_font(FONT, FontStyle::Bold, dejavu::sans::bold()).is_ok()
    });
    if !registered {
        return Err(anyhow!("the built-in font cannot be read"));
    }
    let canvas = Canvas {
        area,
        x: Scale::across(figure),
        y: Scale::upwards(figure),
    };
    let drawn = match figure.kind {
        Kind::Stacked => canvas.stacked(figure),
        Kind::Heat => canvas.heat(figure),
        Kind::Lines | Kind::Points | Kind::Course | Kind::Bars => canvas.upright(figure),
    };
    let drawn = drawn.and_then(|()| canvas.area.present());
    drawn.map_err(|error| anyhow!("cannot draw {}: {error}", figure.id))
}

/// From values to pixels along one axis.
struct Scale {
    log: bool,
    low: f64,
    high: f64,
    from: i32,
    to: i32,
    ticks: Vec<Tick>,
}

impl Scale {
    fn across(figure: &Figure) -> Self {
        let mut values: Vec<f64> = points(figure).map(|point| point.x).collect();
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        if figure.kind == Kind::Bars {
            values = (0..figure.series.len()).map(|place| place as f64).collect();
        }
        let log = figure.x.log && figure.kind != Kind::Bars;
        let axis = Axis {
            log,
            ..figure.x.clone()
        };
        let mut scale = Self::of(&axis, &values, LEFT, RIGHT);
        let marked = figure.marked();
        match figure.kind {
            Kind::Bars => {
                (scale.low, scale.high) = (-0.6, figure.series.len() as f64 - 0.4);
                scale.ticks = Vec::new();
            }
            Kind::Lines if marked.len() <= 10 => {
                scale.ticks = ticks::at_values(&marked, figure.x.log);
            }
            Kind::Lines | Kind::Points | Kind::Stacked | Kind::Heat | Kind::Course => {}
        }
        scale
    }

    fn upwards(figure: &Figure) -> Self {
        let values: Vec<f64> = points(figure)
            .flat_map(|point| [Some(point.y), point.low, point.high])
            .flatten()
            .collect();
        Self::of(&figure.y, &values, BOTTOM, TOP)
    }

    fn of(axis: &Axis, values: &[f64], from: i32, to: i32) -> Self {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        let (low, high) = if axis.log {
            let margin = (high / low).powf(0.06).max(1.1);
            (low / margin, high * margin)
        } else {
            let low = if axis.from_zero { low.min(0.0) } else { low };
            let margin = ((high - low) * 0.06).max(high.abs() * 0.005).max(1e-9);
            (
                if axis.from_zero { low } else { low - margin },
                high + margin,
            )
        };
        let ticks = if axis.log {
            ticks::logarithmic(low, high)
        } else {
            ticks::linear(low, high, 6)
        };
        Self {
            log: axis.log,
            low,
            high,
            from,
            to,
            ticks,
        }
    }

    fn pixel(&self, value: f64) -> i32 {
        let share = if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + (share.clamp(0.0, 1.0) * f64::from(self.to - self.from)).round() as i32
    }
}

fn points(figure: &Figure) -> impl Iterator<Item = &Point> {
    figure.series.iter().flat_map(|series| &series.points)
}

struct Canvas<B: DrawingBackend> {
    area: Area<B>,
    x: Scale,
    y: Scale,
}

type Drawn<B> = Result<(), DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;

impl<B: DrawingBackend> Canvas<B> {
    fn line(&self, ends: [(i32, i32); 2], style: ShapeStyle) -> Drawn<B> {
        self.area.draw(&PathElement::new(ends.to_vec(), style))
    }

    fn text(
        &self,
        text: &str,
        at: (i32, i32),
        size: u32,
        colour: RGBColor,
        anchor: (HPos, VPos),
    ) -> Drawn<B> {
        let style = (FONT, size)
            .into_font()
            .color(&colour)
            .pos(Pos::new(anchor.0, anchor.1));
        self.area.draw(&Text::new(text.to_owned(), at, style))
    }

    /// The whole picture of all kinds that have values upwards.
    fn upright(&self, figure: &Figure) -> Drawn<B> {
        self.frame(figure)?;
        for (place, series) in figure.series.iter().enumerate() {
            self.series(figure.kind, place, series)?;
        }
        self.legend(figure)
    }

    fn title(&self, figure: &Figure) -> Drawn<B> {
        self.area.fill(&WHITE)?;
        let title = (FONT, 22).into_font().style(FontStyle::Bold).color(&INK);
        self.area
            .draw(&Text::new(figure.title.clone(), (LEFT - 60, 20), title))
    }

    /// Title, grid, marks and axis titles.
    fn frame(&self, figure: &Figure) -> Drawn<B> {
        self.title(figure)?;
        for tick in &self.y.ticks {
            let y = self.y.pixel(tick.at);
            self.line([(LEFT, y), (RIGHT, y)], GRID.stroke_width(1))?;
            self.text(
                &tick.text,
                (LEFT - 9, y),
                15,
                QUIET,
                (HPos::Right, VPos::Center),
            )?;
        }
        for tick in &self.x.ticks {
            let x = self.x.pixel(tick.at);
            self.line([(x, TOP), (x, BOTTOM)], GRID.stroke_width(1))?;
            self.text(
                &tick.text,
                (x, BOTTOM + 9),
                15,
                QUIET,
                (HPos::Center, VPos::Top),
            )?;
        }
        self.line([(LEFT, BOTTOM), (RIGHT, BOTTOM)], QUIET.stroke_width(1))?;
        let middle = i32::midpoint(LEFT, RIGHT);
        let across = match figure.kind {
            Kind::Bars => figure
                .series
                .first()
                .and_then(|series| series.points.first())
                .map_or_else(String::new, |point| {
                    format!("{} {}", point.x, figure.x.label)
                }),
            Kind::Lines | Kind::Points | Kind::Stacked | Kind::Heat | Kind::Course => {
                figure.x.title()
            }
        };
        self.text(
            &across,
            (middle, BOTTOM + 36),
            16,
            INK,
            (HPos::Center, VPos::Top),
        )?;
        let upwards = (FONT, 16)
            .into_font()
            .transform(FontTransform::Rotate270)
            .color(&INK)
            .pos(Pos::new(HPos::Center, VPos::Top));
        let centre = (12, i32::midpoint(TOP, BOTTOM));
        self.area
            .draw(&Text::new(figure.y.title(), centre, upwards))
    }

    fn series(&self, kind: Kind, place: usize, series: &Series) -> Drawn<B> {
        let colour = colour(series.place);
        match kind {
            Kind::Bars if series.trace == Trace::Level => Ok(()),
            Kind::Bars => self.bar(place, series, colour),
            // Drawn as a whole.
            Kind::Stacked | Kind::Heat => Ok(()),
            Kind::Points => series.points.iter().try_for_each(|point| {
                let at = (self.x.pixel(point.x), self.y.pixel(point.y));
                self.dot(at, 2, series.place, true)
            }),
            Kind::Course if series.trace == Trace::Dotted => {
                let thin = colour.mix(0.6).stroke_width(1);
                self.ends(series)
                    .windows(2)
                    .try_for_each(|pair| self.line([pair[0], pair[1]], thin))
            }
            Kind::Course => self.stroke(&self.ends(series), series.place),
            Kind::Lines => {
                let ends = self.ends(series);
                if series.trace != Trace::Markers {
                    self.stroke(&ends, series.place)?;
                }
                if series.trace.is_drawn_in() {
                    return Ok(());
                }
                for (point, at) in series.points.iter().zip(ends) {
                    self.interval(point, at.0, colour)?;
                    self.marker(at, series.place, point.partial)?;
                }
                Ok(())
            }
        }
    }

    /// Where its points lie.
    fn ends(&self, series: &Series) -> Vec<(i32, i32)> {
        let points = series.points.iter();
        points
            .map(|point| (self.x.pixel(point.x), self.y.pixel(point.y)))
            .collect()
    }

    /// A round dot: full, or with `rings` a ring for a server whose lines are dashed.
    fn dot(&self, at: (i32, i32), radius: i32, place: usize, rings: bool) -> Drawn<B> {
        let colour = colour(place).mix(if radius > 2 { 1.0 } else { 0.55 });
        let style = if rings && look(place).dashed {
            colour.stroke_width(1)
        } else {
            colour.filled()
        };
        self.area.draw(&Circle::new(at, radius, style))
    }

    fn bar(&self, place: usize, series: &Series, colour: RGBColor) -> Drawn<B> {
        let Some(point) = series.points.first() else {
            return Ok(());
        };
        let (left, right) = (
            self.x.pixel(place as f64 - 0.36),
            self.x.pixel(place as f64 + 0.36),
        );
        let middle = i32::midpoint(left, right);
        let top = self.y.pixel(point.y);
        if self.y.log {
            self.marker((middle, top), series.place, point.partial)?;
        } else {
            self.block([(left, top), (right, BOTTOM)], point, colour)?;
        }
        let most = ((right - left) / 5).max(3) as usize;
        let name: String = series.name.chars().take(most).collect();
        self.text(
            &name,
            (middle, BOTTOM + 9),
            13,
            QUIET,
            (HPos::Center, VPos::Top),
        )?;
        self.interval(point, middle, INK)
    }

    /// A bar by itself.
    fn block(&self, corners: [(i32, i32); 2], point: &Point, colour: RGBColor) -> Drawn<B> {
        let fill = if point.partial {
            colour.mix(0.25).filled()
        } else {
            colour.mix(0.85).filled()
        };
        self.area.draw(&Rectangle::new(corners, fill))?;
        self.area
            .draw(&Rectangle::new(corners, colour.stroke_width(1)))
    }

    /// A line in the look of a server: whole or dashed.
    fn stroke(&self, path: &[(i32, i32)], place: usize) -> Drawn<B> {
        let style = colour(place).stroke_width(2);
        if !look(place).dashed {
            return self.area.draw(&PathElement::new(path.to_vec(), style));
        }
        dashes(path)
            .into_iter()
            .try_for_each(|dash| self.line(dash, style))
    }

    fn interval(&self, point: &Point, x: i32, colour: RGBColor) -> Drawn<B> {
        let (Some(low), Some(high)) = (point.low, point.high) else {
            return Ok(());
        };
        let (low, high) = (self.y.pixel(low), self.y.pixel(high));
        let style = colour.stroke_width(1);
        self.line([(x, low), (x, high)], style)?;
        self.line([(x - 4, low), (x + 4, low)], style)?;
        self.line([(x - 4, high), (x + 4, high)], style)
    }

    fn marker(&self, (x, y): (i32, i32), place: usize, hollow: bool) -> Drawn<B> {
        let corner = |(right, down): (f64, f64)| {
            (
                x + (right * 5.0).round() as i32,
                y + (down * 5.0).round() as i32,
            )
        };
        let mut corners: Vec<(i32, i32)> = look(place)
            .marker
            .corners()
            .into_iter()
            .map(corner)
            .collect();
        let fill = if hollow {
            WHITE.filled()
        } else {
            colour(place).filled()
        };
        self.area.draw(&Polygon::new(corners.clone(), fill))?;
        corners.extend(corners.first().copied());
        let rim = if hollow { colour(place) } else { WHITE };
        self.area
            .draw(&PathElement::new(corners, rim.stroke_width(1)))
    }

    fn legend(&self, figure: &Figure) -> Drawn<B> {
        let named: Vec<&Series> = figure
            .series
            .iter()
            .filter(|series| !series.trace.is_drawn_in() && series.trace != Trace::Dotted)
            .collect();
        let rows = i32::try_from(named.len().max(1)).unwrap_or(i32::MAX);
        let step = (480 / rows).clamp(14, 26);
        for (row, series) in (0..).zip(named) {
            let y = TOP + 10 + row * step;
            let (left, right) = (RIGHT + 18, RIGHT + 46);
            if matches!(figure.kind, Kind::Lines | Kind::Course) {
                self.stroke(&[(left, y), (right, y)], series.place)?;
            }
            if figure.kind == Kind::Lines {
                self.marker((i32::midpoint(left, right), y), series.place, false)?;
            } else if figure.kind != Kind::Course {
                let hollow = figure.kind == Kind::Points;
                self.dot((right - 9, y), 6, series.place, hollow)?;
            }
            let name: String = series.name.chars().take(18).collect();
            self.text(&name, (right + 8, y), 15, INK, (HPos::Left, VPos::Center))?;
        }
        Ok(())
    }
}

/// A path cut into dashes, as long as the gaps between them, whatever the length of its pieces.
fn dashes(path: &[(i32, i32)]) -> Vec<[(i32, i32); 2]> {
    let mut marks = Vec::new();
    let (mut travelled, mut next) = (0.0, 0.0);
    for pair in path.windows(2) {
        let [from, to] = [pair[0], pair[1]].map(|(x, y)| (f64::from(x), f64::from(y)));
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        while next <= travelled + length && length > 0.0 {
            let share = (next - travelled) / length;
            marks.push((
                (from.0 + (to.0 - from.0) * share).round() as i32,
                (from.1 + (to.1 - from.1) * share).round() as i32,
            ));
            next += DASH;
        }
        travelled += length;
    }
    marks
        .chunks(2)
        .filter(|ends| ends.len() == 2)
        .map(|ends| [ends[0], ends[1]])
        .collect()
}

fn colour(place: usize) -> RGBColor {
    let (red, green, blue) = look(place).light;
    RGBColor(red, green, blue)
}
