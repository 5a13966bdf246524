//! Packets that are lost on purpose, since loopback loses none: of those to and from one port, each by chance.
//!
//! The firewall drops them where they arrive (nft(8), a chain of the family `netdev`), so both sides take them for lost on
//! the way. Nothing but the server's port is touched, and the rules go with the trial.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use throng_registry::Unsupported;

/// Shares are told apart down to a thousandth of a percent.
const OF: f64 = 100_000.0;

/// Rules that lose packets; they end with it.
#[derive(Debug)]
pub struct Loss {
    table: String,
}

impl Loss {
    /// Whether packets can be lost here.
    ///
    /// # Errors
    /// What lacks.
    pub fn supported() -> Result<(), Unsupported> {
        let lacks = |reason: &str, remedy: &str| {
            Err(Unsupported {
                reason: reason.to_owned(),
                remedy: remedy.to_owned(),
            })
        };
        let places = std::env::var_os("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&places);
        if !places.any(|place| place.join("nft").exists()) && !Path::new("/usr/sbin/nft").exists() {
            return lacks(
                "packets cannot be lost without the program nft",
                "install nftables",
            );
        }
        if !rustix::process::geteuid().is_root() {
            return lacks("losing packets takes root", "run as root");
        }
        match nft("add table netdev throng-try; delete table netdev throng-try") {
            Ok(()) => Ok(()),
            Err(error) => lacks(
                &format!("packets cannot be lost: {error}"),
                "run a kernel with nftables (CONFIG_NF_TABLES_NETDEV)",
            ),
        }
    }

    /// Loses so many percent of the packets to and from a server on loopback, each way, if any are to be lost.
    ///
    /// # Errors
    /// What nft says.
    pub(super) fn wanted(
        percent: Option<f64>,
        server: Option<SocketAddr>,
    ) -> io::Result<Option<Self>> {
        let (Some(percent), Some(server)) = (percent, server) else {
            return Ok(None);
        };
        let loss = Self {
            table: format!("throng-{}", std::process::id()),
        };
        nft(&rules(&loss.table, server.port(), percent))
            .map_err(|error| io::Error::other(format!("packets cannot be lost: {error}")))?;
        Ok(Some(loss))
    }
}

impl Drop for Loss {
    fn drop(&mut self) {
        let _ = nft(&format!("delete table netdev {}", self.table));
    }
}

fn rules(table: &str, port: u16, percent: f64) -> String {
    let share = (percent / 100.0 * OF).round();
    let lose = |side: &str| {
        format!(
            "add rule netdev {table} arriving tcp {side} {port} numgen random mod {OF} < {share} drop\n"
        )
    };
    let chain = "type filter hook ingress device lo priority 0;";
    format!(
        "add table netdev {table}\nadd chain netdev {table} arriving {{ {chain} }}\n{}{}",
        lose("dport"),
        lose("sport")
    )
}

fn nft(script: &str) -> io::Result<()> {
    let mut command = Command::new("nft");
    command.args(["-f", "-"]).stdin(Stdio::piped());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(script.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().next().unwrap_or("nft failed");
    Err(io::Error::other(first.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_about_one_port_and_both_ways() {
        let expected = "add table netdev t\n\
            add chain netdev t arriving { type filter hook ingress device lo priority 0; }\n\
            add rule netdev t arriving tcp dport 7 numgen random mod 100000 < 100 drop\n\
            add rule netdev t arriving tcp sport 7 numgen random mod 100000 < 100 drop\n";
        assert_eq!(rules("t", 7, 0.1), expected);
    }
}
