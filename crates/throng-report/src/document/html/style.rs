//! The style of pages and their Content-Security-Policy.

use std::fmt::Write as _;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::SCRIPT;
use crate::palette::{LAP, Rgb, Shade, hex, look};

/// The style of every page, except the colours of data.
const PLAIN: &str = include_str!("../page.css");

/// The style sheet of every page.
pub static STYLE: LazyLock<String> = LazyLock::new(|| [PLAIN, &colours()].concat());

/// What a browser must refuse: to load anything, to send anything anywhere, and to apply any script or style except
/// ours, which it recognises by their hashes.
pub static POLICY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; base-uri 'none'; \
         form-action 'none'",
        hash(SCRIPT),
        hash(&STYLE)
    )
});

fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text))
}

/// A variable and a class for each data colour, light and dark, and classes for the lengths of bars.
fn colours() -> String {
    let servers = (0..LAP).map(|place| {
        let look = look(place);
        (look.class(), look.light, look.dark)
    });
    let shades = Shade::all().map(|shade| {
        let (light, dark) = shade.colours();
        (shade.class(), light, dark)
    });
    let all: Vec<(String, Rgb, Rgb)> = servers.chain(shades).collect();
    let variables = |colour: fn(&(String, Rgb, Rgb)) -> Rgb| -> String {
        let each = all
            .iter()
            .map(|one| format!("--{}:{};", one.0, hex(colour(one))));
        each.collect()
    };
    let (light, dark) = (variables(|one| one.1), variables(|one| one.2));
    let mut text =
        format!(":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}");
    for (class, ..) in &all {
        let _ = write!(text, ".{class}{{--c:var(--{class})}}");
    }
    // The length of a bar, in percent: the policy refuses inline styles.
    for percent in 0..=100 {
        let _ = write!(text, ".w{percent}{{--w:{percent}%}}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance((red, green, blue): Rgb) -> f64 {
        let linear = |channel: u8| {
            let share = f64::from(channel) / 255.0;
            if share <= 0.040_45 {
                share / 12.92
            } else {
                ((share + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    }

    fn contrast(a: Rgb, b: Rgb) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// The colours of the plain style by name: on a light page, on a dark page and on paper.
    fn themes() -> [Vec<(String, Rgb)>; 3] {
        let blocks: Vec<&str> = PLAIN.split(":root{").skip(1).collect();
        assert_eq!(blocks.len(), 3, "light, dark and paper");
        let channel = |text: &str, at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        let colour = |text: &str| {
            let text = text.trim_start_matches('#');
            let long: String = match text.len() {
                3 => text.chars().flat_map(|c| [c, c]).collect(),
                _ => text.to_owned(),
            };
            (channel(&long, 0), channel(&long, 2), channel(&long, 4))
        };
        [0, 1, 2].map(|theme| {
            let (block, _) = blocks[theme].split_once('}').unwrap();
            block
                .split(';')
                .filter_map(|one| one.trim().split_once(":#"))
                .map(|(name, value)| (name.trim().to_owned(), colour(value)))
                .collect()
        })
    }

    /// Text and background colours, as the style sheet pairs them.
    const WORDS: [(&str, &str); 19] = [
        ("--ink", "--page"),
        ("--ink", "--card"),
        ("--ink", "--faint"),
        ("--ink", "--warn"),
        ("--ink", "--band"),
        ("--quiet", "--page"),
        ("--quiet", "--card"),
        ("--quiet", "--faint"),
        ("--quiet", "--warn"),
        ("--quiet", "--band"),
        ("--accent", "--page"),
        ("--accent", "--card"),
        ("--best-ink", "--best"),
        ("--best-ink", "--card"),
        ("--best-ink", "--page"),
        ("--bad", "--page"),
        ("--bad", "--card"),
        ("--bad", "--faint"),
        ("--tip-ink", "--tip"),
    ];

    #[test]
    fn words_have_contrast_with_what_lies_behind_them() {
        for (number, theme) in themes().iter().enumerate() {
            let of = |name: &str| {
                let found = theme.iter().find(|(own, _)| own == name);
                found
                    .unwrap_or_else(|| panic!("theme {number} has no {name}"))
                    .1
            };
            for (words, behind) in WORDS {
                let contrast = contrast(of(words), of(behind));
                assert!(
                    contrast >= 4.5,
                    "theme {number}: {words} on {behind}: {contrast:.2}"
                );
            }
        }
    }

    #[test]
    fn data_have_contrast_with_what_lies_behind_them() {
        let themes = themes();
        for (number, theme) in themes.iter().enumerate() {
            let of = |name: &str| theme.iter().find(|(own, _)| own == name).unwrap().1;
            for place in 0..LAP {
                let look = look(place);
                let colour = if number == 1 { look.dark } else { look.light };
                for behind in ["--card", "--page", "--band"] {
                    let contrast = contrast(colour, of(behind));
                    assert!(
                        contrast >= 3.0,
                        "theme {number}: {place} on {behind}: {contrast:.2}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_policy_allows_nothing_inline_but_what_is_ours() {
        assert!(!POLICY.contains("unsafe"));
        assert_eq!(POLICY.matches("sha256-").count(), 2);
        // It would refuse an inline style or event handler.
        for page in [PLAIN, SCRIPT] {
            assert!(!page.contains("style=\"") && !page.contains("</"));
        }
    }
}
