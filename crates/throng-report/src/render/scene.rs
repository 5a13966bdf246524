//! A drawing before it becomes SVG: shapes whose inks have a meaning, so that a page can show it on light and
//! dark backgrounds.

use std::collections::BTreeSet;

use super::scale::Scale;
use crate::palette::{Marker, Rgb, Shade, look};

/// A position: x to the right, y down.
pub(super) type At = (f64, f64);

/// Half the width of a cross.
const CROSS: f64 = 5.0;

/// The ink of a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ink {
    /// Main text.
    Text,
    /// Text on axes.
    Quiet,
    /// Lines behind the data.
    Grid,
    /// Lines that enclose the data.
    Axis,
    /// The other servers, behind the server that a panel shows.
    Others,
    /// The server with this index.
    Server(usize),
    /// A part of a stacked bar.
    Part(Shade),
    /// Values that do not differ significantly, behind the data.
    Band,
    /// Better.
    Good,
    /// Worse.
    Bad,
}

impl Ink {
    /// The CSS class that colours it on a page.
    pub(super) fn class(self) -> String {
        match self {
            Self::Text => "it".to_owned(),
            Self::Quiet => "iq".to_owned(),
            Self::Grid => "ig".to_owned(),
            Self::Axis => "ia".to_owned(),
            Self::Others => "io".to_owned(),
            Self::Server(place) => look(place).class(),
            Self::Part(shade) => shade.class(),
            Self::Band => "ib".to_owned(),
            Self::Good => "ok".to_owned(),
            Self::Bad => "no".to_owned(),
        }
    }

    /// Its colour on a white background.
    pub(super) fn light(self) -> Rgb {
        match self {
            Self::Text => (28, 33, 40),
            Self::Quiet => (87, 96, 106),
            Self::Grid => (228, 231, 235),
            Self::Axis => (139, 148, 158),
            Self::Others => (208, 214, 220),
            Self::Server(place) => look(place).light,
            Self::Part(shade) => shade.colours().0,
            Self::Band => (232, 239, 247),
            Self::Good => (13, 110, 55),
            Self::Bad => (163, 38, 27),
        }
    }

    /// Its colour on a dark background, as the style of pages has it.
    pub(super) fn dark(self) -> Rgb {
        match self {
            Self::Text => (230, 234, 240),
            Self::Quiet => (154, 165, 177),
            Self::Grid => (44, 52, 62),
            Self::Axis => (107, 118, 130),
            Self::Others => (58, 67, 78),
            Self::Server(place) => look(place).dark,
            Self::Part(shade) => shade.colours().1,
            Self::Band => (22, 38, 58),
            Self::Good => (142, 230, 174),
            Self::Bad => (255, 154, 143),
        }
    }
}

/// The alignment of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A shape.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    /// A line through points.
    Line {
        points: Vec<At>,
        width: f64,
        dashed: bool,
    },
    /// Small dots.
    Dots(Vec<At>),
    /// Filled boxes, each given by its upper left and lower right corner.
    Boxes(Vec<(At, At)>),
    /// Text; `at` is on its baseline.
    Text {
        at: At,
        text: String,
        size: f64,
        anchor: Anchor,
        bold: bool,
    },
    Marker {
        at: At,
        marker: Marker,
    },
}

/// A shape with its attributes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    pub(super) shape: Shape,
    pub(super) ink: Ink,
    pub(super) opacity: f64,
    /// Index of the server that it belongs to.
    pub(super) server: Option<usize>,
    /// The text of its tooltip.
    pub(super) tip: String,
    /// For a line with many points: the displayed value at each point.
    pub(super) values: Vec<String>,
}

/// A picture.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scene {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) items: Vec<Item>,
    /// Index of the server that the whole picture is about.
    pub(super) server: Option<usize>,
    /// Alternative text.
    pub(super) name: String,
    /// Its x axis, for lines with many points.
    pub(super) across: Option<Scale>,
    /// For a line with many points: the texts before and after the x value of a position.
    pub(super) words: (String, String),
}

impl Scene {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self {
            width,
            height,
            items: Vec::new(),
            server: None,
            name: String::new(),
            across: None,
            words: Default::default(),
        }
    }

    /// Draws a shape; the caller may add attributes.
    fn draw(&mut self, shape: Shape, ink: Ink) -> &mut Item {
        self.items.push(Item {
            shape,
            ink,
            opacity: 1.0,
            server: None,
            tip: String::new(),
            values: Vec::new(),
        });
        let last = self.items.len() - 1;
        &mut self.items[last]
    }

    pub(super) fn line(&mut self, points: Vec<At>, width: f64, ink: Ink) -> &mut Item {
        self.lines(points, width, ink, false)
    }

    pub(super) fn lines(
        &mut self,
        points: Vec<At>,
        width: f64,
        ink: Ink,
        dashed: bool,
    ) -> &mut Item {
        let shape = Shape::Line {
            points,
            width,
            dashed,
        };
        self.draw(shape, ink)
    }

    /// Dots at these places. Those that would cover each other are drawn once.
    pub(super) fn dots(&mut self, places: impl Iterator<Item = At>, ink: Ink) -> &mut Item {
        let half = |value: f64| (value * 2.0).round() as i64;
        let halves: BTreeSet<(i64, i64)> = places.map(|(x, y)| (half(x), half(y))).collect();
        let whole = |value: i64| value as f64 / 2.0;
        let apart = halves.into_iter().map(|(x, y)| (whole(x), whole(y)));
        self.draw(Shape::Dots(apart.collect()), ink)
    }

    pub(super) fn boxed(&mut self, from: At, to: At, ink: Ink) -> &mut Item {
        self.boxes(vec![(from, to)], ink)
    }

    pub(super) fn boxes(&mut self, all: Vec<(At, At)>, ink: Ink) -> &mut Item {
        self.draw(Shape::Boxes(all), ink)
    }

    /// A cross of two thin lines.
    pub(super) fn cross(&mut self, (x, y): At, ink: Ink) -> &mut [Item] {
        let first = self.items.len();
        self.line(vec![(x - CROSS, y), (x + CROSS, y)], 1.4, ink);
        self.line(vec![(x, y - CROSS), (x, y + CROSS)], 1.4, ink);
        &mut self.items[first..]
    }

    pub(super) fn marker(&mut self, at: At, marker: Marker, ink: Ink) -> &mut Item {
        self.draw(Shape::Marker { at, marker }, ink)
    }

    pub(super) fn text(
        &mut self,
        text: impl Into<String>,
        at: At,
        size: f64,
        anchor: Anchor,
        ink: Ink,
    ) -> &mut Item {
        let shape = Shape::Text {
            at,
            text: text.into(),
            size,
            anchor,
            bold: false,
        };
        self.draw(shape, ink)
    }

    pub(super) fn bold(&mut self, text: impl Into<String>, at: At, size: f64) {
        let drawn = self.text(text, at, size, Anchor::Start, Ink::Text);
        if let Shape::Text { bold, .. } = &mut drawn.shape {
            *bold = true;
        }
    }
}
