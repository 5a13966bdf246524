//! What this program was made of, as far as `build.rs` could find it out.

use crate::record::ThrongProgram;

/// All of it, except for the hash of its file, which is taken when it measures.
pub(super) fn built() -> ThrongProgram {
    let known = |value: Option<&str>| value.map(str::to_owned);
    ThrongProgram {
        sha256: None,
        commit: known(option_env!("THRONG_COMMIT")),
        modified: option_env!("THRONG_MODIFIED").and_then(|modified| modified.parse().ok()),
        compiler: known(option_env!("THRONG_COMPILER")),
        flags: known(option_env!("THRONG_FLAGS")),
    }
}
