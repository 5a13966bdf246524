//! Draws a [`super::figures::Figure`]: as pictures within a page, and as files.
//!
//! `panels` lays it out, once for all: shapes in inks that have a meaning. [`page`] writes them as SVG that the
//! page's style colours, [`still`] as an SVG or PNG file.

pub mod page;
mod panels;
mod scale;
mod scene;
pub mod still;
pub mod strip;
mod svg;
mod ticks;
