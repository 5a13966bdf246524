//! The rules of measuring, on real servers, and the pages that say which tests keep what:
//! `docs/measuring.md` for these rules, `docs/upload-cases.md` for bulk uploads, `docs/faults.md` for faults.

mod documented;
mod situations;
