//! A [`Strip`] as SVG: small, without text, in the colours of a page.

use super::panels;
use super::scale::Scale;
use super::scene::{Ink, Scene, Shape};
use super::svg::{self, Colours};
use crate::figures::{Axis, Grouped, Point, Rank, Ranked, Standing};
use crate::glance::{Mark, Strip};
use crate::palette::look;

/// Width of the drawing; pages show it at half this size.
const WIDE: f64 = 340.0;
/// Distance from one mark to the next: with few marks, and with many.
const STEP: (f64, f64) = (13.0, 9.0);
const FEW: usize = 8;
/// Margin on the left and right of the marks.
const MARGIN: f64 = 8.0;
/// Side length of the box of a verdict.
const BOX: f64 = 18.0;

/// The picture, as an element of a page.
pub fn strip(strip: &Strip) -> String {
    let scene = if strip.is_of_verdicts() {
        of_verdicts(strip)
    } else {
        of_values(strip)
    };
    format!(
        "<svg class=\"p small\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">{}</svg>",
        svg::short(scene.width),
        svg::short(scene.height),
        svg::escaped(&strip.words()),
        svg::items(&scene.items, Colours::Page)
    )
}

/// A strip of values as large as the pictures of a report, with names and values.
pub fn named(strip: &Strip) -> String {
    let rank = |mark: &Mark| Rank {
        name: mark.name.clone(),
        place: mark.place,
        point: Some(Point {
            low: mark.low,
            high: mark.high,
            ..Point::new(0.0, mark.value)
        }),
        text: mark.text.clone(),
        failed: false,
        better: mark.good,
    };
    let group = |tied: bool| Grouped {
        title: String::new(),
        standing: if tied {
            Standing::Tied
        } else {
            Standing::Apart
        },
        rows: strip
            .marks
            .iter()
            .filter(|mark| mark.tied == tied)
            .map(rank)
            .collect(),
    };
    let scene = panels::ranked(&Ranked {
        title: strip.title.clone(),
        axis: Axis::logarithmic("", None),
        level: strip.level,
        band: None,
        groups: vec![group(true), group(false)],
    });
    let mut text = String::new();
    super::page::picture(&mut text, &scene, None);
    text
}

fn of_verdicts(strip: &Strip) -> Scene {
    let mut scene = Scene::new(WIDE, BOX + 4.0);
    for (place, mark) in (0_u32..).zip(&strip.marks) {
        let left = f64::from(place) * (BOX + 3.0) + 1.0;
        let corners = ((left, 2.0), (left + BOX, 2.0 + BOX));
        scene.draw(Shape::Boxes(vec![corners]), ink(mark, Ink::Others));
    }
    scene
}

fn of_values(strip: &Strip) -> Scene {
    let few = strip.marks.len() <= FEW;
    let step = if few { STEP.0 } else { STEP.1 };
    let mut scene = Scene::new(WIDE, step * strip.marks.len() as f64 + 2.0);
    let ends = |mark: &Mark| [Some(mark.value), mark.low, mark.high];
    let mut seen: Vec<f64> = strip.marks.iter().flat_map(ends).flatten().collect();
    seen.extend(strip.level);
    let axis = Axis::logarithmic("", None);
    let scale = Scale::of(&axis, &seen, (MARGIN, WIDE - MARGIN));
    let tied = strip.marks.iter().filter(|mark| mark.tied).count();
    if tied > 0 {
        let band = ((0.0, 0.0), (WIDE, step * tied as f64 + 1.0));
        scene.draw(Shape::Boxes(vec![band]), Ink::Band);
    }
    if let Some(level) = strip.level {
        let x = scale.place(level);
        scene.line(vec![(x, 0.0), (x, scene.height)], 1.6, Ink::Axis);
    }
    for (place, mark) in (0_u32..).zip(&strip.marks) {
        let y = step * (f64::from(place) + 0.5) + 1.0;
        let plain = match mark.place {
            Some(place) if strip.level.is_none() => Ink::Server(place),
            _ => Ink::Quiet,
        };
        let ink = ink(mark, plain);
        if let (Some(low), Some(high)) = (mark.low, mark.high) {
            let line = vec![(scale.place(low), y), (scale.place(high), y)];
            scene.line(line, 2.4, ink);
        }
        let marker = mark
            .place
            .map_or(look(0).marker, |place| look(place).marker);
        let at = (scale.place(mark.value), y);
        scene.draw(Shape::Marker { at, marker }, ink);
    }
    scene
}

fn ink(mark: &Mark, plain: Ink) -> Ink {
    match mark.good {
        Some(true) => Ink::Good,
        Some(false) => Ink::Bad,
        None => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strip_has_a_mark_for_each_and_its_words() {
        let mark = |name: &str, value: f64, good| Mark {
            name: name.to_owned(),
            place: Some(0),
            value,
            low: Some(value / 1.1),
            high: Some(value * 1.1),
            text: format!("{value}"),
            good,
            tied: good.is_none(),
        };
        let drawn = strip(&Strip {
            title: "Ratio".to_owned(),
            level: Some(1.0),
            marks: vec![mark("a <b>", 1.0, None), mark("c", 2.0, Some(true))],
            left_out: 3,
        });
        assert!(
            drawn.contains("aria-label=\"Ratio: a &lt;b&gt; 1, c 2, 3 more\""),
            "{drawn}"
        );
        assert_eq!(drawn.matches("class=\"m ").count(), 2, "{drawn}");
        let large = named(&Strip {
            marks: vec![mark("a <b>", 1.0, None)],
            ..Strip::default()
        });
        assert!(large.contains("a &lt;b&gt;</text>"), "{large}");
        let nothing = Mark {
            good: None,
            ..Mark::default()
        };
        let claims = Strip {
            marks: vec![nothing],
            ..Strip::default()
        };
        assert!(!strip(&claims).contains("class=\"m "));
    }
}
