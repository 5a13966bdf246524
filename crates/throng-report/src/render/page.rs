//! Figures within a page, as scalable SVG in the colours of the page.

use std::fmt::Write as _;

use super::panels::{self, Panels};
use super::scene::{AxisScale, Scene};
use super::svg::{self, Colours, escaped, short};
use crate::figures::Figure;

/// The pictures of a figure.
#[derive(Debug)]
pub struct Pictures {
    /// The SVG elements.
    pub svg: String,
    /// Whether there is one small picture per server.
    pub many: bool,
    /// Titles of the axes that have no title in the drawing.
    pub axes: String,
    /// The height of all pictures stacked vertically, in SVG user units.
    pub height: f64,
}

/// Definitions shared by all pictures of a page. They appear once, before the pictures.
pub fn markers() -> String {
    format!(
        "<svg class=\"hidden\" aria-hidden=\"true\"><defs>{}</defs></svg>",
        svg::markers()
    )
}

/// Draws a figure; `id` is its ID on the page.
pub fn pictures(figure: &Figure, id: &str) -> Pictures {
    let Panels {
        many,
        scenes,
        behind,
        axes,
    } = panels::panels(figure);
    let mut text = String::new();
    let shared = behind.map(|behind| {
        let shared = format!("{id}-all");
        let lines = svg::items(&behind.items, Colours::Page);
        let _ = write!(
            text,
            "<svg class=\"hidden\" aria-hidden=\"true\"><defs><g id=\"{shared}\">{lines}</g></defs></svg>"
        );
        shared
    });
    for scene in &scenes {
        picture(&mut text, scene, shared.as_deref());
    }
    Pictures {
        svg: text,
        many,
        axes,
        height: scenes.iter().map(|scene| scene.height).sum(),
    }
}

pub(super) fn picture(text: &mut String, scene: &Scene, shared: Option<&str>) {
    let (wide, tall) = (short(scene.width), short(scene.height));
    let _ = write!(
        text,
        "<svg class=\"p\" viewBox=\"0 0 {wide} {tall}\" role=\"img\""
    );
    let pointed = |item: &super::scene::Item| !item.tip.is_empty();
    if scene.items.iter().any(pointed) {
        text.push_str(" tabindex=\"0\"");
    }
    let _ = write!(text, " aria-label=\"{}\"", escaped(&scene.name));
    if let Some(place) = scene.server {
        let _ = write!(text, " data-s=\"{place}\"");
    }
    if let Some(across) = scene.across.filter(|_| has_values(scene)) {
        let AxisScale {
            values,
            places,
            log,
        } = across;
        let (before, after) = &scene.words;
        let _ = write!(
            text,
            " data-x=\"{} {} {} {} {}\" data-before=\"{}\" data-after=\"{}\"",
            values.0,
            values.1,
            short(places.0),
            short(places.1),
            u8::from(log),
            escaped(before),
            escaped(after)
        );
    }
    text.push('>');
    if let Some(shared) = shared {
        let _ = write!(text, "<use href=\"#{shared}\"/>");
    }
    // Items of the server that the whole picture is about need no group of their own.
    let own = scene.items.iter().cloned().map(|mut item| {
        item.server = item.server.filter(|place| Some(*place) != scene.server);
        item
    });
    text.push_str(&svg::items(&own.collect::<Vec<_>>(), Colours::Page));
    text.push_str("</svg>");
}

fn has_values(scene: &Scene) -> bool {
    scene.items.iter().any(|item| !item.values.is_empty())
}
