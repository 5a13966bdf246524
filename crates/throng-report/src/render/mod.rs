//! Draws a [`super::figures::Figure`] as pictures within a page and as files.
//!
//! [`Panels`] are the layout, which is the same for both: shapes whose inks have a meaning. A page colours them by its
//! style; [`still`] makes an SVG file.

mod card;
mod panels;
mod scale;
mod scene;
pub mod still;
mod svg;

pub use card::Card;
pub use panels::Panels;
pub use svg::markers;
