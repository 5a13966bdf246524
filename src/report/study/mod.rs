//! A study of several parts made into one report: claims first, what was published beside what was
//! measured, then each part.

pub mod claims;
pub mod metric;
