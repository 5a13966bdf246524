//! The rules of measuring, on real servers. `docs/measuring.md` says each rule and which tests keep it.

mod documented;
mod situations;
