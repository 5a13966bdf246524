//! A figure as an SVG file, on white: its pictures in a grid below the title.

use std::fmt::Write as _;

use super::panels;
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

/// `figure` as SVG.
pub fn svg(figure: &Figure) -> String {
    let sheet = sheet(figure);
    let (wide, tall) = (short(sheet.width), short(sheet.height));
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide}\" height=\"{tall}\" viewBox=\"0 0 {wide} {tall}\" \
         font-family=\"'DejaVu Sans', Verdana, sans-serif\">\n<title>{}</title>\n<rect width=\"{wide}\" \
         height=\"{tall}\" fill=\"#ffffff\"/>\n",
        escaped(&figure.alternative)
    );
    let _ = writeln!(text, "{}\n</svg>", svg::items(&sheet.items, Colours::Own));
    text
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
    if let Some(legend) = figure.legend() {
        let at = (MARGIN, down + 14.0);
        sheet.text(legend, at, 14.0, Anchor::Start, Ink::Quiet);
        down += 14.0;
    }
    sheet.height = down + MARGIN / 2.0;
    sheet
}
