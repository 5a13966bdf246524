//! Statistics: pure functions of numbers, each with its reference.

pub mod fairness;
pub mod steadiness;
