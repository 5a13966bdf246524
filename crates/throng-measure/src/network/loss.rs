//! Deliberate packet loss, since loopback loses nothing: packets to and from one port are lost, each with a given
//! probability.
//!
//! nftables drops them on arrival (nft(8), a chain of the family `netdev`), so both sides see them as lost in transit.
//! Only the server's port is affected. The table belongs to an nft process (flag `owner`, Linux 5.12): the kernel
//! removes it when that process ends. That process ends with throng, even if throng is killed, because its standard
//! input is closed.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::processes::process::{OutputCapture, Process};
use throng_spec::registry::Unsupported;

/// Resolution of a share: a thousandth of a percent.
const OF: f64 = 100_000.0;

/// Time limit for nft to answer.
const LIMIT: Duration = Duration::from_secs(10);

/// Rules that drop packets, until this value is dropped.
#[derive(Debug)]
pub struct Loss {
    _owner: Process,
}

impl Loss {
    /// Checks whether packets can be dropped here.
    ///
    /// # Errors
    /// Names the missing part, and the remedy.
    pub fn supported() -> Result<(), Unsupported> {
        let lacks = |reason: &str, remedy: &str| {
            Err(Unsupported {
                reason: reason.to_owned(),
                remedy: remedy.to_owned(),
            })
        };
        let path_variable = std::env::var_os("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&path_variable);
        if !places.any(|place| place.join("nft").exists()) && !Path::new("/usr/sbin/nft").exists() {
            return lacks("packet loss needs the program nft", "install nftables");
        }
        if !rustix::process::geteuid().is_root() {
            return lacks("packet loss needs root", "run as root");
        }
        match Self::start("throng-try", &rules("throng-try", 1, 0.1)) {
            Ok(_) => Ok(()),
            Err(error) => lacks(
                &format!("nft cannot drop packets: {error}"),
                "use Linux 5.12 or later with nftables (CONFIG_NF_TABLES_NETDEV)",
            ),
        }
    }

    /// Drops this percentage of the packets to and from a server on loopback, in each direction.
    ///
    /// # Errors
    /// The first line that nft prints.
    pub(crate) fn wanted(
        percent: Option<f64>,
        server: Option<SocketAddr>,
    ) -> io::Result<Option<Self>> {
        let (Some(percent), Some(server)) = (percent, server) else {
            return Ok(None);
        };
        let table = format!("throng-{}", std::process::id());
        let loss = Self::start(&table, &rules(&table, server.port(), percent))
            .map_err(|error| io::Error::other(format!("cannot drop packets: {error}")));
        loss.map(Some)
    }

    /// Starts an nft that owns the table, and waits until the table exists.
    fn start(table: &str, rules: &str) -> io::Result<Self> {
        let mut command = Command::new("nft");
        // Without HOME, so that it writes no history there.
        command.arg("-i").env("HOME", "/dev/null");
        let mut owner = Process::start("nft", command, &[], OutputCapture::Both)
            .map_err(|error| io::Error::other(format!("{error:#}")))?;
        owner.send(&format!("{rules}\nlist table netdev {table}\n"));
        let answer = owner.line(Instant::now() + LIMIT).unwrap_or_default();
        if answer.starts_with("table ") {
            return Ok(Self { _owner: owner });
        }
        let why = Some(answer.trim()).filter(|why| !why.is_empty());
        Err(io::Error::other(why.unwrap_or("nft failed").to_owned()))
    }
}

/// The command that creates the table, in one line and so in one transaction.
fn rules(table: &str, port: u16, percent: f64) -> String {
    let share = (percent / 100.0 * OF).round();
    let some = if share < OF {
        format!("numgen random mod {OF} < {share} ")
    } else {
        String::new()
    };
    let lose = |side: &str| format!("tcp {side} {port} {some}drop;");
    format!(
        "add table netdev {table} {{ flags owner; chain arriving {{ \
         type filter hook ingress device lo priority 0; {} {} }}; }}",
        lose("dport"),
        lose("sport")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_affect_one_port_in_both_directions() {
        let expected = "add table netdev t { flags owner; chain arriving { \
            type filter hook ingress device lo priority 0; \
            tcp dport 7 numgen random mod 100000 < 100 drop; \
            tcp sport 7 numgen random mod 100000 < 100 drop; }; }";
        assert_eq!(rules("t", 7, 0.1), expected);
        assert!(rules("t", 7, 100.0).contains("tcp dport 7 drop; "));
    }

    #[test]
    fn a_table_goes_with_its_owner() {
        if let Err(why) = Loss::supported() {
            return println!("skipped: {why}");
        }
        let table = format!("throng-unit-{}", std::process::id());
        let exists = || {
            let listed = Command::new("nft")
                .args(["list", "table", "netdev", &table])
                .output();
            listed.unwrap().status.success()
        };
        let loss = Loss::start(&table, &rules(&table, 1, 0.1)).unwrap();
        assert!(exists());
        drop(loss);
        assert!(!exists());
        let wrong = Loss::start(&table, "add rule netdev nowhere x drop").unwrap_err();
        assert!(wrong.to_string().contains("Error"), "{wrong}");
    }
}
