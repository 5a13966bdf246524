//! How this program was built, as far as `build.rs` could find out.

use crate::record::ThrongProgram;

/// Everything except the hash of the program file, which is only computed when it measures.
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
