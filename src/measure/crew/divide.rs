//! A load divided among hosts; pure.

use std::net::{IpAddr, SocketAddr};

use super::Order;
use crate::record::{ClientHost, Purpose};

/// Most clients of a load whose rows are brought together.
pub const MOST_ROWS: u32 = 100_000;

/// A load that is to be divided.
pub(in super::super) struct Whole<'a> {
    /// The words behind `throng load`, but for what each host is told in its own way.
    pub(in super::super) words: &'a [String],
    /// Clients of all hosts.
    pub(in super::super) clients: u32,
    /// Most of them that are there at the same time.
    pub(in super::super) at_once: Option<u32>,
    pub(in super::super) server: SocketAddr,
    pub(in super::super) probes: &'a [String],
    pub(in super::super) purpose: Purpose,
    /// CPUs for clients on the machine of this name, which leads; empty: not bound.
    pub(in super::super) cpus: &'a [u32],
    pub(in super::super) leader: &'a str,
}

/// An order for each host, or for as many of them as there are clients: every host has its part of the
/// clients, of all requests and of any rate, equal but for a remainder of one.
pub(in super::super) fn divide(load: &Whole<'_>, hosts: &[ClientHost]) -> Vec<Order> {
    let most = load.clients.min(load.at_once.unwrap_or(u32::MAX));
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
        let mut words = load.words.to_vec();
        words.push(format!("--threads={}", threads.max(1)));
        words.push(format!("--share={number}/{parts}"));
        match load.server.ip() {
            // Hosts on one machine would compete for the ports of one address.
            IpAddr::V4(address) if address.is_loopback() && parts > 1 => {
                let (high, low) = (1 + number / 250 % 250, number % 250);
                words.push(format!("--source=127.{high}.{low}.0/28"));
            }
            address if address.is_loopback() => {}
            _ => words.push("--allow-remote".to_owned()),
        }
        words.push(load.server.to_string());
        let (clients, parts) = (load.clients as usize, parts);
        Order {
            host: number,
            load: words,
            cpus,
            clients: (clients / parts + usize::from(number < clients % parts)) as u32,
            server: load.server,
            probes: load.probes.to_vec(),
            purpose: load.purpose,
            rows: load.clients <= MOST_ROWS,
        }
    };
    hosts[..parts].iter().enumerate().map(order).collect()
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

    fn load(clients: u32, server: &str) -> Whole<'_> {
        Whole {
            words: &[],
            clients,
            at_once: None,
            server: server.parse().unwrap(),
            probes: &[],
            purpose: Purpose::Timed,
            cpus: &[2, 3],
            leader: "here",
        }
    }

    #[test]
    fn every_host_has_its_share() {
        let orders = divide(&load(11, "10.0.0.1:80"), &hosts(&["a", "b", "a"]));
        let clients: Vec<u32> = orders.iter().map(|order| order.clients).collect();
        assert_eq!(clients, [4, 4, 3]);
        assert_eq!(
            orders[1].load,
            [
                "--threads=8",
                "--share=1/3",
                "--allow-remote",
                "10.0.0.1:80"
            ]
        );
        assert!(
            orders
                .iter()
                .all(|order| order.rows && order.cpus.is_empty())
        );
    }

    #[test]
    fn no_host_is_without_a_client() {
        assert_eq!(
            divide(&load(2, "127.0.0.1:80"), &hosts(&["a", "b", "c"])).len(),
            2
        );
        let few_at_once = Whole {
            at_once: Some(1),
            ..load(9, "127.0.0.1:80")
        };
        assert_eq!(divide(&few_at_once, &hosts(&["a", "b"])).len(), 1);
    }

    #[test]
    fn hosts_on_the_leading_machine_share_the_cpus_for_clients() {
        let orders = divide(
            &load(10, "127.0.0.1:80"),
            &hosts(&["here", "here", "there"]),
        );
        assert_eq!(orders[0].cpus, [2, 3]);
        assert_eq!(orders[0].load[0], "--threads=1");
        assert_eq!(orders[2].load[0], "--threads=8");
        assert_eq!(orders[0].load.last().unwrap(), "127.0.0.1:80");
    }

    #[test]
    fn rows_of_very_many_clients_are_not_brought_together() {
        let orders = divide(&load(MOST_ROWS + 1, "127.0.0.1:80"), &hosts(&["a", "b"]));
        assert!(orders.iter().all(|order| !order.rows));
    }
}
