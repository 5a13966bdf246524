//! A flame graph as a picture: frames as nested pictures, which cut their names off. The script makes it searchable and
//! zooms.

use maud::{Markup, html};

use super::Scope;
use crate::flame::{FlameGraph, Frame, Tone};

/// Height of a frame, and of its room.
const HEIGHT: f64 = 16.0;
const STEP: f64 = 17.0;

pub(super) fn graph(scope: Scope<'_>, graph: &FlameGraph, level: u8) -> Markup {
    let height = STEP * graph.depth as f64;
    let name = scope.named(&format!("Flame graph: {}", graph.title));
    let id = format!("{}flame-{}", scope.prefix(), slug(&graph.title));
    html! {
        figure.flame.wide {
            (super::heading(level + 1, None, &graph.title.as_str().into()))
            figcaption { (graph.caption) " Click or Enter: closer; Escape: back; arrows: from frame to frame." }
            p.find hidden {
                label for=(id) { "Find a function " }
                input type="search" id=(id) autocomplete="off" spellcheck="false";
                output for=(id) {}
            }
            svg.flames width="100%" height=(height) role="img" tabindex="0" aria-label=(name) {
                @for frame in &graph.frames { (drawn(frame)) }
            }
        }
    }
}

fn drawn(frame: &Frame) -> Markup {
    let percent = |share: f64| format!("{:.3}%", 100.0 * share);
    let (x, width) = (percent(frame.from), percent(frame.width));
    html! {
        svg class=(class(frame.tone)) x=(x) width=(width) y=(STEP * frame.depth as f64) height=(HEIGHT) {
            title { (frame.name) ": " (frame.text) }
            rect width="100%" height="100%" {}
            text x="3" y="12" { (frame.name) }
        }
    }
}

fn class(tone: Tone) -> String {
    match tone {
        Tone::Kernel => "fk".to_owned(),
        Tone::Program => "fp".to_owned(),
        Tone::Change(0) => "f0".to_owned(),
        Tone::Change(step) if step > 0 => format!("fm{}", step.min(4)),
        Tone::Change(step) => format!("fl{}", step.unsigned_abs().min(4)),
    }
}

fn slug(title: &str) -> String {
    let kept = title
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    kept.collect()
}
