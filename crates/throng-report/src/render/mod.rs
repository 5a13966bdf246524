//! Draws a [`super::figures::Figure`] as pictures within a page and as files.
//!
//! `panels` makes the layout, which is the same for both: shapes whose inks have a meaning. [`page`] writes them as
//! SVG coloured by the style of the page, [`still`] as an SVG file.

pub mod page;
mod panels;
mod scale;
mod scene;
pub mod still;
mod svg;
mod ticks;
