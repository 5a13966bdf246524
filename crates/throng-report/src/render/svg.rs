//! Shapes as SVG, coloured by CSS classes or directly.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::scene::{Anchor, At, Item, Scene, Shape};
use crate::palette::{Marker, hex};
use throng_record::format::shown;

/// Where colours come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colours {
    /// The style of a page.
    Page,
    /// The picture itself, on a background of its own.
    Own,
}

/// Half the size of a marker.
const MARKER: f64 = 4.0;

/// Escapes text, so that it can neither end the surrounding element or attribute nor act as markup.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\r' | '\t' => escaped.push(' '),
            _ => escaped.push(shown(c)),
        }
    }
    escaped
}

/// The background of a picture that stands alone, light and dark.
const BACKGROUNDS: [&str; 2] = ["#ffffff", "#161b22"];

/// A style that gives such a picture the colours of a dark page where the reader prefers those.
pub(super) fn dark<'a>(items: impl Iterator<Item = &'a Item>) -> String {
    let inks = items.map(|item| (hex(item.ink.light()), hex(item.ink.dark())));
    let [white, black] = BACKGROUNDS.map(str::to_owned);
    let colours: BTreeMap<String, String> = inks.chain([(white, black)]).collect();
    let rule = |(light, dark): (&String, &String)| {
        format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}")
    };
    let rules: String = colours.iter().map(rule).collect();
    format!("<style>@media (prefers-color-scheme:dark){{{rules}}}</style>")
}

/// A number with at most one decimal, as tenths of a pixel suffice: "12.3", "-0.4", "7".
pub(super) fn short(value: f64) -> String {
    let tenths = (value * 10.0).round() as i64;
    let (sign, tenths) = (if tenths < 0 { "-" } else { "" }, tenths.unsigned_abs());
    match tenths % 10 {
        0 => format!("{sign}{}", tenths / 10),
        rest => format!("{sign}{}.{rest}", tenths / 10),
    }
}

fn path(points: &[At], closed: bool) -> String {
    let mut text = String::new();
    for (place, (x, y)) in points.iter().enumerate() {
        let _ = match place {
            0 => write!(text, "M{} {}", short(*x), short(*y)),
            1 => write!(text, "L{} {}", short(*x), short(*y)),
            _ => write!(text, " {} {}", short(*x), short(*y)),
        };
    }
    if closed {
        text.push('Z');
    }
    text
}

/// Definitions of all markers, which a page refers to by ID. They appear once, before the pictures.
pub fn markers() -> String {
    let symbol = |marker: &Marker| {
        format!(
            "<path id=\"{}\" d=\"{}\"/>",
            marker.id(),
            outlined(*marker, (0.0, 0.0))
        )
    };
    let symbols: String = Marker::ALL.iter().map(symbol).collect();
    format!("<svg class=\"hidden\" aria-hidden=\"true\"><defs>{symbols}</defs></svg>")
}

/// A picture within a page. It refers to the lines behind it by their ID.
pub(super) fn picture(text: &mut String, scene: &Scene, shared: Option<&str>) {
    let (wide, tall) = (short(scene.width), short(scene.height));
    let _ = write!(
        text,
        "<svg class=\"p\" viewBox=\"0 0 {wide} {tall}\" role=\"img\""
    );
    if scene.items.iter().any(|item| !item.tip.is_empty()) {
        text.push_str(" tabindex=\"0\"");
    }
    let _ = write!(text, " aria-label=\"{}\"", escaped(&scene.name));
    if let Some(place) = scene.server {
        let _ = write!(text, " data-s=\"{place}\"");
    }
    let has_values = scene.items.iter().any(|item| !item.values.is_empty());
    if let Some(across) = scene.across.as_ref().filter(|_| has_values) {
        let (before, after) = &scene.words;
        let _ = write!(
            text,
            " data-x=\"{} {} {} {} {}\" data-before=\"{}\" data-after=\"{}\"",
            across.low,
            across.high,
            short(across.from),
            short(across.to),
            u8::from(across.log),
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
    text.push_str(&items(&own.collect::<Vec<_>>(), Colours::Page));
    text.push_str("</svg>");
}

/// Shapes in order; adjacent ones of the same server form a group.
pub(super) fn items(all: &[Item], colours: Colours) -> String {
    let mut text = String::new();
    let mut within = None;
    for item in all {
        if colours == Colours::Page && item.server != within {
            if within.is_some() {
                text.push_str("</g>");
            }
            if let Some(place) = item.server {
                let _ = write!(text, "<g data-s=\"{place}\">");
            }
            within = item.server;
        }
        one(&mut text, item, colours);
    }
    if within.is_some() {
        text.push_str("</g>");
    }
    text
}

fn one(text: &mut String, item: &Item, colours: Colours) {
    let known = known(item, colours);
    let look = |kind, property| look(item, colours, kind, property);
    let _ = match &item.shape {
        Shape::Line {
            points,
            width,
            dashed,
        } => {
            let (width, d) = (short(*width), path(points, false));
            let dashes = if *dashed {
                " stroke-dasharray=\"5 3\""
            } else {
                ""
            };
            let attributes = look("l ", "stroke");
            write!(
                text,
                "<path{attributes} fill=\"none\" stroke-width=\"{width}\"{dashes} d=\"{d}\"{known}/>"
            )
        }
        Shape::Dots(places) => {
            let dot = |(x, y): &At| format!("M{} {}h0", short(*x), short(*y));
            let d: String = places.iter().map(dot).collect();
            let attributes = look("l ", "stroke");
            write!(
                text,
                "<path{attributes} fill=\"none\" stroke-width=\"1.8\" stroke-linecap=\"round\" d=\"{d}\"{known}/>"
            )
        }
        Shape::Boxes(all) => {
            let outline = |((left, top), (right, bottom)): &(At, At)| {
                let (x, y) = (short(*left), short(*top));
                let (wide, tall) = (short(right - left), short(bottom - top));
                format!("M{x} {y}h{wide}v{tall}H{x}z")
            };
            let filled = look("f ", "fill");
            let d: String = all.iter().map(outline).collect();
            write!(text, "<path{filled} d=\"{d}\"{known}/>")
        }
        Shape::Text {
            at: (x, y),
            text: words,
            size,
            anchor,
            bold,
        } => {
            let anchor = match anchor {
                Anchor::Start => "",
                Anchor::Middle => " text-anchor=\"middle\"",
                Anchor::End => " text-anchor=\"end\"",
            };
            let weight = if *bold { " font-weight=\"600\"" } else { "" };
            let (look, words) = (look("f ", "fill"), escaped(words));
            let (x, y, size) = (short(*x), short(*y), short(*size));
            write!(
                text,
                "<text{look} x=\"{x}\" y=\"{y}\" font-size=\"{size}\"{anchor}{weight}{known}>{words}</text>"
            )
        }
        Shape::Marker { at: (x, y), marker } => {
            let attributes = look("m ", "fill");
            let (d, x, y) = (outlined(*marker, (*x, *y)), short(*x), short(*y));
            let extra = match colours {
                Colours::Page => format!(" data-at=\"{x} {y}\"{known}"),
                Colours::Own => " stroke=\"#ffffff\"".to_owned(),
            };
            write!(text, "<path{attributes} d=\"{d}\"{extra}/>")
        }
    };
}

/// The data attributes of a shape.
fn known(item: &Item, colours: Colours) -> String {
    let mut known = String::new();
    if item.opacity < 1.0 {
        // Opacity of only the paint: a browser needs an extra layer for a transparent group.
        let what = match item.shape {
            Shape::Line { .. } | Shape::Dots(_) => "stroke",
            _ => "fill",
        };
        let _ = write!(known, " {what}-opacity=\"{}\"", short(item.opacity));
    }
    if colours == Colours::Page && !item.tip.is_empty() {
        let _ = write!(known, " data-t=\"{}\"", escaped(&item.tip));
    }
    if colours == Colours::Page && !item.values.is_empty() {
        let _ = write!(known, " data-y=\"{}\"", escaped(&item.values.join("|")));
    }
    known
}

/// The colour of an item: a class of this kind on a page, otherwise an attribute.
fn look(item: &Item, colours: Colours, kind: &str, property: &str) -> String {
    match colours {
        Colours::Page => format!(" class=\"{kind}{}\"", item.ink.class()),
        Colours::Own => format!(" {property}=\"{}\"", hex(item.ink.light())),
    }
}

/// A marker at a position. Not with `<use>`, as a browser needs an extra layer for each.
fn outlined(marker: Marker, (x, y): At) -> String {
    if marker == Marker::Circle {
        let (from, radius, across) = (short(x - MARKER), short(MARKER), short(2.0 * MARKER));
        let half = format!("a{radius} {radius} 0 1 0");
        return format!("M{from} {}{half} {across} 0{half} -{across} 0z", short(y));
    }
    let corners = marker
        .corners()
        .into_iter()
        .map(|(right, down)| (x + right * MARKER, y + down * MARKER));
    path(&corners.collect::<Vec<_>>(), true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::scene::Ink;

    #[test]
    fn a_dark_picture_has_the_colours_of_a_dark_page() {
        let (_, page) = include_str!("../document/page.css")
            .split_once("prefers-color-scheme:dark){:root{")
            .unwrap();
        let (page, _) = page.split_once('}').unwrap();
        for (ink, name) in [
            (Ink::Text, "--ink"),
            (Ink::Quiet, "--quiet"),
            (Ink::Grid, "--line"),
            (Ink::Axis, "--axis"),
            (Ink::Others, "--others"),
            (Ink::Band, "--band"),
            (Ink::Good, "--best-ink"),
            (Ink::Bad, "--bad"),
        ] {
            let rule = format!("{name}:{};", hex(ink.dark()));
            assert!(page.contains(&rule), "{rule}");
        }
        assert!(page.contains(&format!("--card:{};", BACKGROUNDS[1])));
    }

    #[test]
    fn numbers_are_as_short_as_they_can_be() {
        let shorts = [12.34, -0.44, 7.0, 0.04, -0.04, 100.0].map(short);
        assert_eq!(shorts, ["12.3", "-0.4", "7", "0", "0", "100"]);
    }

    #[test]
    fn nothing_ends_what_it_stands_in() {
        assert_eq!(
            escaped("<a b=\"c\">&\n\u{1b}"),
            "&lt;a b=&quot;c&quot;&gt;&amp; \u{fffd}"
        );
    }
}
