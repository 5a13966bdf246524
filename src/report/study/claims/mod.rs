//! Claims: what was said about servers, checked by statements about results.

pub mod language;
mod token;

pub use language::Check;
pub use token::Wrong;
