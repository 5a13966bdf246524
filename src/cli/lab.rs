//! Clients on several hosts: the servers' address, and its requirements.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU16, Ordering};

use super::Usage;
use crate::measure::check_addresses;
use crate::measure::cluster::Origin;
use crate::record::format::list;
use crate::record::{ClientHost, Run, Settings};

/// The port of the first server at a simulated link. All of them are below those of clients.
const FIRST_PORT_AT_A_LINK: u16 = 10_000;

/// Servers that have a port at a simulated link.
static SERVERS_AT_A_LINK: AtomicU16 = AtomicU16::new(0);

/// Options of subcommands that measure with clients on several hosts.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Other hosts")]
pub(super) struct Lab {
    /// Address of this host on which servers listen, reachable from the client hosts [default: 127.0.0.1, if all
    /// client hosts are this host].
    #[arg(long, value_name = "ADDRESS", hide = true)]
    server_address: Option<IpAddr>,
    /// Allow addresses beyond this machine's loopback: of running servers, of --ready, or for servers to listen on.
    /// Anyone who reaches such an address can connect.
    #[arg(long)]
    pub(super) allow_remote: bool,
}

/// The options above, by their names in clap.
const OPTIONS: [&str; 2] = ["server_address", "allow_remote"];

/// Shows these options in the help of a subcommand.
pub(super) fn shown(command: clap::Command) -> clap::Command {
    OPTIONS.into_iter().fold(command, |command, name| {
        command.mut_arg(name, |option| option.hide(false))
    })
}

impl Lab {
    /// The servers' address, if given. Rejects an unusable one.
    ///
    /// `--allow-remote` also applies to the addresses of running servers and to URLs of --ready, if there are any.
    pub(super) fn server_address(
        &self,
        origin: &Origin,
        has_addresses: bool,
    ) -> Result<Option<IpAddr>, Usage> {
        let cluster = match origin {
            Origin::Cluster(cluster) => cluster,
            Origin::Here if self.server_address.is_some() => {
                return Err(Usage(
                    "--server-address is for clients on several hosts; start them with throng-mpi, or leave it out"
                        .to_owned(),
                ));
            }
            Origin::Here if self.allow_remote && !has_addresses => {
                return Err(Usage(
                    "--allow-remote is for running servers, for --ready and for clients on several hosts; leave it out"
                        .to_owned(),
                ));
            }
            Origin::Here => return Ok(None),
        };
        check(self.server_address, self.allow_remote, cluster.hosts())?;
        Ok(self.server_address)
    }
}

fn check(address: Option<IpAddr>, allowed: bool, hosts: &[ClientHost]) -> Result<(), Usage> {
    if hosts.is_empty() {
        let what = "no client hosts: this host runs the servers; start at least 2 ranks";
        return Err(Usage(what.to_owned()));
    }
    let system = rustix::system::uname();
    let here = system.nodename().to_string_lossy();
    let mut away: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    away.retain(|name| *name != here);
    away.dedup();
    match address {
        Some(address) if address.is_unspecified() => Err(Usage(format!(
            "--server-address {address} means every address of this host; write the one that the client hosts \
             connect to"
        ))),
        Some(address) if !address.is_loopback() && !allowed => Err(Usage(format!(
            "{address} is not on this machine's loopback: anyone who reaches it could connect, and the load can \
             harm the network; add --allow-remote if the network is yours"
        ))),
        Some(address) if !address.is_loopback() => Ok(()),
        _ if away.is_empty() => Ok(()),
        _ => Err(Usage(format!(
            "{} cannot reach servers on the loopback of {here}; set --server-address",
            list(&away[..away.len().min(5)])
        ))),
    }
}

/// Checks that an earlier run can continue with these clients.
pub(super) fn check_resumed(run: &Run, origin: &Origin) -> Result<(), Usage> {
    for server in &run.servers {
        // The record does not show whether another host belongs to the user.
        check_addresses(server, false).map_err(|why| {
            let name = &server.name;
            Usage(format!("the record names another host, for {name}: {why}"))
        })?;
    }
    let had = run.client_hosts.len();
    match origin {
        Origin::Here if had > 0 => Err(Usage(format!(
            "the record has {had} client hosts; continue with as many, using throng-mpi"
        ))),
        Origin::Here => match run.settings.server_address {
            Some(address) if !address.is_loopback() => Err(Usage(format!(
                "the record has its servers on {address}, which is not on this machine's loopback, but no client \
                 hosts; it cannot be continued"
            ))),
            _ => Ok(()),
        },
        Origin::Cluster(cluster) if cluster.hosts().len() == had => {
            check(run.settings.server_address, true, cluster.hosts())
        }
        Origin::Cluster(cluster) => Err(Usage(format!(
            "the record has {had} client hosts, and this job has {}; continue with as many",
            cluster.hosts().len()
        ))),
    }
}

/// The address for a built-in server to listen on. At a simulated link, the port says in which direction a packet goes, so
/// each server has one of its own; nothing else uses ports there.
pub(super) fn listen(settings: &Settings) -> String {
    let address = settings
        .server_address
        .unwrap_or(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));
    let is_shaped = settings.link.is_some_and(|link| link.is_shaped());
    let port = if is_shaped {
        FIRST_PORT_AT_A_LINK
            + SERVERS_AT_A_LINK.fetch_add(1, Ordering::Relaxed) % FIRST_PORT_AT_A_LINK
    } else {
        0
    };
    std::net::SocketAddr::new(address, port).to_string()
}

/// Lets a built-in server listen beyond loopback, for clients on other hosts. Records older than that option lack it.
pub(super) fn allow_remote(command: &mut Vec<String>, settings: &Settings) {
    const OPTION: &str = "--allow-remote";
    let is_remote = settings
        .server_address
        .is_some_and(|address| !address.is_loopback());
    if is_remote && !command.iter().any(|word| word == OPTION) {
        command.push(OPTION.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For a bug: when such a record was resumed, all further trials failed.
    #[test]
    fn a_server_of_an_older_record_gets_the_option() {
        let at = |address: &str| Settings {
            server_address: Some(address.parse().unwrap()),
            ..Settings::default()
        };
        let reported = |settings: &Settings| {
            let mut command = ["throng", "serve", "epoll"].map(str::to_owned).to_vec();
            allow_remote(&mut command, settings);
            let once = command.clone();
            allow_remote(&mut command, settings);
            assert_eq!(command, once);
            command.len() == 4
        };
        assert!(reported(&at("10.0.0.1")));
        assert!(!reported(&at("127.0.0.2")));
        assert!(!reported(&Settings::default()));
    }
}
