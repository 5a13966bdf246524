//! What produced the figures: the throng that measured, the programs under test, and who else was at work.

use serde::{Deserialize, Serialize};

/// The program that measured. What is not known is absent: without git there is no commit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThrongProgram {
    /// SHA-256 of its file, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The commit of its source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Whether its source had changes that are not in that commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<bool>,
    /// The compiler: "rustc 1.95.0 (59807616e 2026-04-14)".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiler: Option<String>,
    /// Its profile and flags: "release, opt-level 3, -C target-cpu=native".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flags: Option<String>,
}

impl ThrongProgram {
    /// Whether nothing is known of it.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// What is behind the command line of a server that is not one of throng's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForeignProgram {
    /// The program that the first word names.
    pub file: UsedFile,
    /// What it answers when it is asked for its version, one line; only programs whose answer is known to be
    /// harmless are asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Files among the other words: scripts, configurations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<UsedFile>,
}

impl ForeignProgram {
    /// All files of it.
    pub fn files(&self) -> impl Iterator<Item = &UsedFile> {
        std::iter::once(&self.file).chain(&self.scripts)
    }
}

/// A file that a command line names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsedFile {
    /// As the command line names it.
    pub word: String,
    /// Where it is, without symbolic links.
    pub path: String,
    /// SHA-256 of what is in it, in hexadecimal digits; absent where it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// A process that used CPU time while measuring began, and is none of throng's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OtherProcess {
    /// Its name, without its arguments.
    pub name: String,
    /// Of one CPU.
    pub cpu_percent: f64,
}
