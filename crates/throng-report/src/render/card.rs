//! A picture to share: the answer, the figure that shows it, the grade and the machine, in the size that sites show
//! beside a link.

use std::fmt::Write as _;

use super::panels::Panels;
use super::scene::{Anchor, Ink, Scene};
use super::svg::{self, Colours, escaped, short};
use crate::figures::Figure;

/// Size in pixels.
const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 630.0;
const MARGIN: f64 = 48.0;
/// Size of the answer, and its width per character.
const ANSWER: f64 = 36.0;
const PER_CHARACTER: f64 = 0.56;
const MOST_LINES: usize = 3;
/// The line below the picture.
const FOOT: f64 = 20.0;
/// Maximum scale of a picture.
const LARGEST: f64 = 2.4;

/// What a card shows.
#[derive(Debug, Clone)]
pub struct Card<'a> {
    pub answer: String,
    pub figure: Option<&'a Figure>,
    /// The line below the picture: how, where and when it was measured.
    pub foot: String,
}

impl Card<'_> {
    /// The card as SVG.
    pub fn svg(&self) -> String {
        let mut words = Scene::new(WIDTH, HEIGHT);
        let mut down = MARGIN;
        let per_line = (WIDTH - 2.0 * MARGIN) / (ANSWER * PER_CHARACTER);
        for line in wrapped(&self.answer, per_line) {
            down += ANSWER;
            words.bold(line, (MARGIN, down), ANSWER);
            down += 0.25 * ANSWER;
        }
        let bottom = HEIGHT - MARGIN;
        words.text(
            &self.foot,
            (MARGIN, bottom),
            FOOT,
            Anchor::Start,
            Ink::Quiet,
        );
        let at = (WIDTH - MARGIN, bottom);
        words.text("throng", at, FOOT, Anchor::End, Ink::Quiet);
        let gap = MARGIN / 3.0;
        let room = (WIDTH - 2.0 * MARGIN, bottom - FOOT - 2.0 * gap - down);
        let place = (MARGIN, down + gap);
        let pictures = self.figure.map(|figure| placed(figure, place, room));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} \
             {HEIGHT}\" font-family=\"'DejaVu Sans', Verdana, sans-serif\">\n<title>{}</title>\n<rect \
             width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n{}{}\n</svg>\n",
            escaped(&self.answer),
            svg::items(&words.items, Colours::Own),
            pictures.unwrap_or_default()
        )
    }
}

/// The pictures of a figure side by side, as large as there is room for them.
fn placed(figure: &Figure, (left, top): (f64, f64), (wide, tall): (f64, f64)) -> String {
    let drawn = Panels::of(figure);
    let scenes: Vec<&Scene> = drawn.scenes.iter().take(2).collect();
    let across: f64 = scenes.iter().map(|scene| scene.width).sum();
    let highest = scenes.iter().map(|scene| scene.height).fold(1.0, f64::max);
    let scale = (wide / across).min(tall / highest).min(LARGEST);
    let mut right = left + (wide - across * scale) / 2.0;
    let mut text = String::new();
    for scene in scenes {
        let (x, y) = (short(right), short(top + (tall - highest * scale) / 2.0));
        let _ = write!(
            text,
            "<g transform=\"translate({x} {y}) scale({scale:.3})\">"
        );
        for layer in drawn.behind.iter().chain([scene]) {
            text += &svg::items(&layer.items, Colours::Own);
        }
        text += "</g>";
        right += scene.width * scale;
    }
    text
}

/// Lines of at most this many characters; the last one is cut.
fn wrapped(text: &str, most: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if !line.is_empty() && (line.chars().count() + 1 + word.chars().count()) as f64 > most {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    if lines.len() > MOST_LINES {
        lines.truncate(MOST_LINES);
        lines[MOST_LINES - 1].push('…');
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_answer_is_cut() {
        let text = "word ".repeat(60);
        let lines = wrapped(&text, 20.0);
        assert_eq!(lines.len(), MOST_LINES);
        assert!(lines[MOST_LINES - 1].ends_with('…'));
        assert!(lines.iter().all(|line| line.chars().count() <= 21));
        assert_eq!(wrapped("short", 20.0), ["short"]);
    }
}
