//! Draws a [`super::figures::Figure`]: [`interactive`] for the page, [`still`] for SVG and PNG.

pub mod interactive;
pub mod still;
mod ticks;
