//! Draws a [`super::figures::Figure`]: as pictures within a page, and as files.
//!
//! `panels` makes the layout, the same for both: shapes with inks that have a meaning. [`page`] writes them as SVG that
//! the page's style colours, [`still`] as an SVG or PNG file.

pub mod page;
mod panels;
mod scale;
mod scene;
pub mod still;
pub mod strip;
mod svg;
mod ticks;
