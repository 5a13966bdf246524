//! A load divided among hosts; pure.

use std::net::SocketAddr;
use std::time::Duration;

use super::HostAssignment;
use throng_record::{ClientHost, Purpose};
use throng_spec::{Assignment, Endpoint, LoadSpec, Network, Share};

/// Maximum clients of a load whose rows are collected.
pub const MOST_ROWS: u32 = 100_000;

/// A load to be divided.
pub(in super::super) struct WholeLoad<'a> {
    pub(in super::super) load: &'a LoadSpec,
    /// Interval of each part's live values, if any.
    pub(in super::super) figures_every: Option<Duration>,
    pub(in super::super) server: Endpoint,
    pub(in super::super) probes: &'a [String],
    pub(in super::super) purpose: Purpose,
    /// CPUs for clients on the leading machine, which is named `leader`; empty for any.
    pub(in super::super) cpus: &'a [u32],
    pub(in super::super) leader: &'a str,
}

/// One assignment per host, or for as many hosts as there are clients. Every host has an equal share of the clients,
/// of all requests and of any rate, up to a remainder of one.
pub(in super::super) fn divide(load: &WholeLoad<'_>, hosts: &[ClientHost]) -> Vec<HostAssignment> {
    let clients = load.load.clients;
    let most = clients.min(load.load.at_once.unwrap_or(u32::MAX));
    let parts = hosts.len().min(most as usize);
    let at_leader = hosts[..parts]
        .iter()
        .filter(|host| host.name == load.leader)
        .count();
    let order = |(number, host): (usize, &ClientHost)| {
        let (cpus, threads) = if host.name == load.leader && !load.cpus.is_empty() {
            (load.cpus.to_vec(), load.cpus.len() / at_leader.max(1))
        } else {
            (Vec::new(), host.cpus as usize)
        };
        let share = Share::new(number as u32, parts as u32);
        let mut own = load.load.clone();
        let is_loopback = |address: SocketAddr| address.is_ipv4() && address.ip().is_loopback();
        if load.server.tcp().is_some_and(is_loopback) && parts > 1 {
            // Hosts on one machine would compete for the ports of one address.
            own.source = vec![loopback(number)];
        }
        HostAssignment {
            host: number,
            load: Assignment {
                servers: vec![load.server.clone().into()],
                allow_remote: !load.server.is_local(),
                share,
                figures_every: load.figures_every,
                ..Assignment::new(own, threads.max(1) as u32)
            },
            cpus,
            clients: share.unwrap_or(Share::WHOLE).of_clients(clients),
            server: load.server.clone(),
            probes: load.probes.to_vec(),
            purpose: load.purpose,
            rows: clients <= MOST_ROWS,
        }
    };
    hosts[..parts].iter().enumerate().map(order).collect()
}

/// Loopback addresses that only this host uses.
fn loopback(host: usize) -> Network {
    let (high, low) = (1 + host / 250 % 250, host % 250);
    let network = format!("127.{high}.{low}.0/28").parse();
    network.expect("its parts are below 256")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(names: &[&str]) -> Vec<ClientHost> {
        let host = |(rank, name): (usize, &&str)| ClientHost {
            name: (*name).to_owned(),
            rank: rank as u32 + 1,
            cpus: 8,
            ..ClientHost::default()
        };
        names.iter().enumerate().map(host).collect()
    }

    fn load_of(clients: u32) -> LoadSpec {
        LoadSpec {
            clients,
            ..LoadSpec::default()
        }
    }

    fn load<'a>(load: &'a LoadSpec, server: &str) -> WholeLoad<'a> {
        WholeLoad {
            load,
            figures_every: None,
            server: server.parse().unwrap(),
            probes: &[],
            purpose: Purpose::Timed,
            cpus: &[2, 3],
            leader: "here",
        }
    }

    #[test]
    fn every_host_has_its_share() {
        let eleven = load_of(11);
        let orders = divide(&load(&eleven, "10.0.0.1:80"), &hosts(&["a", "b", "a"]));
        let clients: Vec<u32> = orders.iter().map(|order| order.clients).collect();
        assert_eq!(clients, [4, 4, 3]);
        let second = Assignment {
            servers: vec!["10.0.0.1:80".parse().unwrap()],
            allow_remote: true,
            share: Share::new(1, 3),
            ..Assignment::new(eleven.clone(), 8)
        };
        assert_eq!(orders[1].load, second);
        assert!(
            orders
                .iter()
                .all(|order| order.rows && order.cpus.is_empty())
        );
    }

    #[test]
    fn no_host_is_without_a_client() {
        assert_eq!(
            divide(&load(&load_of(2), "127.0.0.1:80"), &hosts(&["a", "b", "c"])).len(),
            2
        );
        let one_at_once = LoadSpec {
            at_once: Some(1),
            ..load_of(9)
        };
        assert_eq!(
            divide(&load(&one_at_once, "127.0.0.1:80"), &hosts(&["a", "b"])).len(),
            1
        );
    }

    #[test]
    fn hosts_on_the_leading_machine_share_the_cpus_for_clients() {
        let orders = divide(
            &load(&load_of(10), "127.0.0.1:80"),
            &hosts(&["here", "here", "there"]),
        );
        assert_eq!(orders[0].cpus, [2, 3]);
        assert_eq!((orders[0].load.threads, orders[2].load.threads), (1, 8));
        assert_eq!(orders[0].load.servers, ["127.0.0.1:80".parse().unwrap()]);
        assert_eq!(
            orders[1].load.load.source,
            ["127.1.1.0/28".parse().unwrap()]
        );
    }

    #[test]
    fn rows_of_very_many_clients_are_not_brought_together() {
        let orders = divide(
            &load(&load_of(MOST_ROWS + 1), "127.0.0.1:80"),
            &hosts(&["a", "b"]),
        );
        assert!(orders.iter().all(|order| !order.rows));
    }
}
