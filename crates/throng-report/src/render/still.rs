//! A figure as an SVG file, light or dark as the reader prefers: its pictures in a grid below the title.

use std::fmt::Write as _;

use super::panels::Panels;
use super::scene::{Anchor, Ink, Scene};
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

/// `figure` as SVG: title, description of the axes, pictures, and the meaning of a mark.
pub fn svg(figure: &Figure) -> String {
    let drawn = Panels::of(figure);
    let mut words = Scene::new(WIDTH, TOP);
    words.bold(&figure.title, (MARGIN, 34.0), 20.0);
    let columns = match (drawn.are_many(), drawn.are_full()) {
        (true, _) => COLUMNS,
        (_, true) => 1,
        _ => drawn.scenes.len().clamp(1, 2),
    };
    let mut down = TOP;
    if let Some(axes) = &drawn.axes {
        let at = (MARGIN, 56.0);
        words.text(axes, at, 14.0, Anchor::Start, Ink::Quiet);
        down += 16.0;
    }
    let room = (WIDTH - 2.0 * MARGIN - GAP * (columns - 1) as f64) / columns as f64;
    let mut pictures = String::new();
    for row in drawn.scenes.chunks(columns) {
        let mut tallest = 0.0_f64;
        for (column, scene) in row.iter().enumerate() {
            let scale = (room / scene.width).min(ALONE);
            // Centre a picture that does not fill its column.
            let spare = room - scale * scene.width;
            let right = MARGIN + (room + GAP) * column as f64 + spare / 2.0;
            let (x, y) = (short(right), short(down));
            let _ = write!(
                pictures,
                "<g transform=\"translate({x} {y}) scale({scale:.3})\">"
            );
            for shown in drawn.behind.iter().chain([scene]) {
                pictures += &svg::items(&shown.items, Colours::Own);
            }
            pictures += "</g>";
            tallest = tallest.max(scale * scene.height);
        }
        down += tallest + GAP;
    }
    if let Some(legend) = figure.legend() {
        let at = (MARGIN, down + 14.0);
        words.text(legend, at, 14.0, Anchor::Start, Ink::Quiet);
        down += 14.0;
    }
    let scenes = drawn.scenes.iter().chain(&drawn.behind).chain([&words]);
    let style = svg::dark(scenes.flat_map(|scene| &scene.items));
    let (wide, tall) = (short(WIDTH), short(down + MARGIN / 2.0));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide}\" height=\"{tall}\" viewBox=\"0 0 {wide} {tall}\" \
         font-family=\"'DejaVu Sans', Verdana, sans-serif\">\n<title>{}</title>\n{style}<rect width=\"{wide}\" \
         height=\"{tall}\" fill=\"#ffffff\"/>\n{}{pictures}\n</svg>\n",
        escaped(&figure.alternative),
        svg::items(&words.items, Colours::Own)
    )
}
