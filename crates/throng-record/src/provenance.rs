//! Provenance of the results: the throng that measured, the programs under test, and other active processes.

use serde::{Deserialize, Serialize};

/// The program that measured. Unknown values are absent: without git there is no commit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThrongProgram {
    /// SHA-256 of its file, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The commit of its source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Whether its source had uncommitted changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<bool>,
    /// The compiler: "rustc 1.95.0 (59807616e 2026-04-14)".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiler: Option<String>,
    /// Its profile and flags: "release, -C target-cpu=native".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flags: Option<String>,
}

impl ThrongProgram {
    /// Whether nothing is known about it.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// The files of a foreign server's command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForeignProgram {
    /// The program that the first word names.
    pub file: UsedFile,
    /// Its version on one line; only for programs that are known to print it without side effects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Files among the other words: scripts, configurations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<UsedFile>,
}

impl ForeignProgram {
    /// All files.
    pub fn files(&self) -> impl Iterator<Item = &UsedFile> {
        std::iter::once(&self.file).chain(&self.scripts)
    }
}

/// A file of a command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UsedFile {
    /// As written on the command line.
    pub word: String,
    /// Its path, without symbolic links.
    pub path: String,
    /// SHA-256 of its content, in hexadecimal digits; absent if it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// Another process that used CPU time at the start of the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OtherProcess {
    /// Its name, without its arguments.
    pub name: String,
    /// Percent of one CPU.
    pub cpu_percent: f64,
}
