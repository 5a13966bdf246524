//! The input of a load process, in one line of JSON.

use std::io::BufRead;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::{LoadSpec, Share, Target, optional_time};

/// A load, or a process's part of it, and its servers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    /// The whole load.
    pub load: LoadSpec,
    /// The servers; clients take them in turn.
    pub servers: Vec<Target>,
    /// Whether they may be beyond this machine's loopback.
    pub allow_remote: bool,
    /// Load-generating threads.
    pub threads: u32,
    /// The part of this process, if there are several. The result then contains what is needed to merge their clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// The file that gets a row per client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients_csv: Option<PathBuf>,
    /// Interval between reports; absent if there are none.
    #[serde(
        default,
        with = "optional_time",
        skip_serializing_if = "Option::is_none"
    )]
    pub figures_every: Option<Duration>,
    /// Whether it comes in slices that its runner starts, and rests in between.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_slices: bool,
}

impl Assignment {
    /// A load of one process, without servers yet.
    pub fn new(load: LoadSpec, threads: u32) -> Self {
        Self {
            load,
            servers: Vec::new(),
            allow_remote: false,
            threads,
            share: None,
            clients_csv: None,
            figures_every: None,
            in_slices: false,
        }
    }

    /// Parses the first line.
    ///
    /// # Errors
    /// When it is not an assignment.
    pub fn read(input: &mut impl BufRead) -> anyhow::Result<Self> {
        let mut line = String::new();
        input
            .read_line(&mut line)
            .context("cannot read the assignment from standard input")?;
        let assignment: Self =
            serde_json::from_str(&line).context("the assignment is not valid")?;
        anyhow::ensure!(
            !assignment.servers.is_empty(),
            "the assignment has no server"
        );
        Ok(assignment)
    }

    /// The line.
    ///
    /// # Errors
    /// When one of its paths is not text.
    pub fn line(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::made_up;

    proptest! {
        #[test]
        fn a_process_has_what_it_was_given(seed in any::<u64>(), part in any::<bool>()) {
            let assignment = Assignment {
                share: Share::new(1, 3).filter(|_| part),
                clients_csv: Some("a b/c\n.csv".into()),
                figures_every: Some(Duration::from_micros(seed % 1_000_000)),
                servers: vec!["[::1]:5".parse().unwrap(), "unix:@a b".parse().unwrap()],
                ..Assignment::new(made_up(seed), 2)
            };
            let line = assignment.line().unwrap();
            prop_assert_eq!(line.matches('\n').count(), 1);
            prop_assert_eq!(Assignment::read(&mut line.as_bytes()).unwrap(), assignment);
        }
    }

    #[test]
    fn other_lines_are_refused() {
        for line in ["", "\n", "{}", "5\n", "{\"load\": {\"clients\": \"many\"}}"] {
            let error = Assignment::read(&mut line.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), "the assignment is not valid");
        }
    }
}
