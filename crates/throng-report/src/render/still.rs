//! A figure as an SVG or PNG file, on white: its pictures in a grid below the title. plotters provides the PNG canvas
//! and renders its text.

use std::fmt::Write as _;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context as _, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::register_font;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::panels;
use super::scene::{Anchor, At, Ink, Item, Scene, Shape};
use super::svg::{self, Colours, escaped, short};
use crate::figures::Figure;

/// Width in pixels.
const WIDTH: f64 = 1000.0;
const MARGIN: f64 = 24.0;
/// The top of the pictures, below the title.
const TOP: f64 = 56.0;
/// Small pictures per row.
const COLUMNS: usize = 4;
const GAP: f64 = 12.0;
/// Maximum scale of a picture.
const ALONE: f64 = 1.7;
/// Length of a dash, and of the gap after it.
const DASH: f64 = 6.0;
const FONT: &str = "DejaVu Sans";

/// Draws `figure` as SVG to `path`.
///
/// # Errors
/// When the file cannot be written, naming it.
pub fn svg(figure: &Figure, path: &Path) -> anyhow::Result<()> {
    let sheet = sheet(figure);
    let (wide, tall) = (short(sheet.width), short(sheet.height));
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide}\" height=\"{tall}\" viewBox=\"0 0 {wide} {tall}\" \
         font-family=\"'DejaVu Sans', Verdana, sans-serif\">\n<title>{}</title>\n<rect width=\"{wide}\" \
         height=\"{tall}\" fill=\"#ffffff\"/>\n",
        escaped(&figure.alternative)
    );
    let _ = writeln!(text, "{}\n</svg>", svg::items(&sheet.items, Colours::Own));
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Draws `figure` as PNG to `path`.
///
/// # Errors
/// When the file cannot be written, naming it.
pub fn png(figure: &Figure, path: &Path) -> anyhow::Result<()> {
    static FONTS: OnceLock<bool> = OnceLock::new();
    let registered = FONTS.get_or_init(|| {
        register_font(FONT, FontStyle::Normal, dejavu::sans::regular()).is_ok()
            && register_font(FONT, FontStyle::Bold, dejavu::sans::bold()).is_ok()
    });
    if !registered {
        return Err(anyhow!("the built-in font cannot be read"));
    }
    let sheet = sheet(figure);
    let size @ (width, height) = (sheet.width.ceil() as u32, sheet.height.ceil() as u32);
    let mut pixels = vec![u8::MAX; (3 * width * height) as usize];
    let area = BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area();
    let mut items = sheet.items.iter();
    items
        .try_for_each(|item| draw(&area, item))
        .with_context(|| format!("cannot draw {}", path.display()))?;
    drop(area);
    write_png(path, size, &pixels).with_context(|| format!("cannot write {}", path.display()))
}

/// Drawings have large areas of one colour, which compress well without a filter.
fn write_png(path: &Path, (width, height): (u32, u32), pixels: &[u8]) -> anyhow::Result<()> {
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(path)?), width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_deflate_compression(png::DeflateCompression::Level(1));
    encoder.set_filter(png::Filter::NoFilter);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    Ok(writer.finish()?)
}

/// The whole sheet: title, description of the axes, and pictures.
fn sheet(figure: &Figure) -> Scene {
    let pictures = panels::panels(figure);
    let mut sheet = Scene::new(WIDTH, TOP);
    sheet.bold(&figure.title, (MARGIN, 34.0), 20.0);
    if !pictures.axes.is_empty() {
        let at = (MARGIN, 56.0);
        sheet.text(&pictures.axes, at, 14.0, Anchor::Start, Ink::Quiet);
    }
    let (columns, top) = if pictures.many {
        (COLUMNS, TOP + 16.0)
    } else {
        (pictures.scenes.len().clamp(1, 2), TOP)
    };
    let room = (WIDTH - 2.0 * MARGIN - GAP * (columns - 1) as f64) / columns as f64;
    let mut down = top;
    for row in pictures.scenes.chunks(columns) {
        let mut tallest = 0.0_f64;
        for (place, scene) in row.iter().enumerate() {
            let scale = (room / scene.width).min(ALONE);
            let right = MARGIN + (room + GAP) * place as f64;
            // Centre a picture that does not fill its column.
            let spare = room - scale * scene.width;
            let at = (right + spare / 2.0, down);
            if let Some(behind) = &pictures.behind {
                sheet.put(behind, at, scale);
            }
            sheet.put(scene, at, scale);
            tallest = tallest.max(scale * scene.height);
        }
        down += tallest + GAP;
    }
    sheet.height = down + MARGIN / 2.0;
    sheet
}

type Area<'a> = DrawingArea<BitMapBackend<'a>, Shift>;
type Drawn<'a> = Result<(), DrawingAreaErrorKind<<BitMapBackend<'a> as DrawingBackend>::ErrorType>>;

fn pixel((x, y): At) -> (i32, i32) {
    (x.round() as i32, y.round() as i32)
}

fn draw<'a>(area: &Area<'a>, item: &Item) -> Drawn<'a> {
    let (red, green, blue) = item.ink.light();
    let colour = RGBColor(red, green, blue).mix(item.opacity);
    match &item.shape {
        Shape::Line {
            points,
            width,
            dashed,
        } => {
            let style = colour.stroke_width(width.round().max(1.0) as u32);
            if !dashed {
                let points: Vec<(i32, i32)> = points.iter().copied().map(pixel).collect();
                return area.draw(&PathElement::new(points, style));
            }
            dashes(points)
                .into_iter()
                .try_for_each(|dash| area.draw(&PathElement::new(dash.map(pixel).to_vec(), style)))
        }
        Shape::Boxes(boxes) => boxes.iter().try_for_each(|(from, to)| {
            let corners = [pixel(*from), pixel(*to)];
            area.draw(&Rectangle::new(corners, colour.filled()))
        }),
        Shape::Text {
            at,
            text,
            size,
            anchor,
            bold,
        } => {
            let place = match anchor {
                Anchor::Start => HPos::Left,
                Anchor::Middle => HPos::Center,
                Anchor::End => HPos::Right,
            };
            let weight = if *bold {
                FontStyle::Bold
            } else {
                FontStyle::Normal
            };
            let style = (FONT, *size).into_font().style(weight).color(&colour);
            let style = style.pos(Pos::new(place, VPos::Center));
            let (x, y) = *at;
            let at = pixel((x, y - 0.36 * size));
            area.draw(&Text::new(text.clone(), at, style))
        }
        Shape::Marker { at, marker, hollow } => {
            let corners = svg::corners(*marker, *at).into_iter();
            let mut corners: Vec<(i32, i32)> = corners.map(pixel).collect();
            let (fill, rim) = if *hollow {
                (WHITE.mix(1.0), colour)
            } else {
                (colour, WHITE.mix(1.0))
            };
            area.draw(&Polygon::new(corners.clone(), fill.filled()))?;
            corners.extend(corners.first().copied());
            area.draw(&PathElement::new(corners, rim.stroke_width(1)))
        }
    }
}

/// A path cut into dashes as long as the gaps between them, regardless of the length of its segments.
fn dashes(path: &[At]) -> Vec<[At; 2]> {
    let mut marks: Vec<At> = Vec::new();
    let (mut travelled, mut next) = (0.0, 0.0);
    for pair in path.windows(2) {
        let [from, to] = [pair[0], pair[1]];
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        while next <= travelled + length && length > 0.0 {
            let share = (next - travelled) / length;
            marks.push((
                from.0 + (to.0 - from.0) * share,
                from.1 + (to.1 - from.1) * share,
            ));
            next += DASH;
        }
        travelled += length;
    }
    let pairs = marks.chunks(2).filter(|ends| ends.len() == 2);
    pairs.map(|ends| [ends[0], ends[1]]).collect()
}
