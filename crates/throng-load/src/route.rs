//! The target of each client, and its source address.
//!
//! A connection is identified by both addresses and both ports, so one source address has one range of ports for each
//! target: 28,232 by default. More clients need more targets or more source addresses. Clients use the targets in
//! turn, and the clients of one target use its sources in turn.
//!
//! connect(2) searches the even ports first, one by one from a random start, and the odd ones only when all even ports
//! are taken. Past half of the range, each client examines thousands of ports.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use throng_spec::{Endpoint, Network};

/// First and last ephemeral port if the system does not report them.
const USUAL_PORTS: (u16, u16) = (32_768, 60_999);

/// Sources in 127.0.0.0/8 if the user names none: 127.1.0.1 and up, away from the addresses that servers listen on.
const LOOPBACK_SOURCES: Row = Row {
    first: 0x7f01_0001,
    count: (1 << 24) - (1 << 16) - 2,
    is_ipv4: true,
};

/// Consecutive addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    first: u128,
    count: u64,
    is_ipv4: bool,
}

impl Row {
    fn address(&self, number: u64) -> IpAddr {
        let bits = self.first + u128::from(number);
        if self.is_ipv4 {
            IpAddr::V4(Ipv4Addr::from_bits(bits as u32))
        } else {
            IpAddr::V6(Ipv6Addr::from_bits(bits))
        }
    }

    /// The host addresses of a network. In IPv4, without the first (the network) and the last (broadcast).
    fn of_hosts(network: Network) -> Self {
        let (base, host_bits) = (network.base(), network.host_bits());
        let bits: u128 = match base {
            IpAddr::V4(address) => address.to_bits().into(),
            IpAddr::V6(address) => address.to_bits(),
        };
        let rest = 1_u128
            .checked_shl(host_bits)
            .map_or(u128::MAX, |all| all - 1);
        let (skipped, count) = match (base, host_bits) {
            (_, 0 | 1) => (0, rest + 1),
            (IpAddr::V4(_), _) => (1, rest - 1),
            (IpAddr::V6(_), _) => (1, rest),
        };
        Self {
            first: bits + skipped,
            count: u64::try_from(count).unwrap_or(u64::MAX),
            is_ipv4: base.is_ipv4(),
        }
    }
}

/// The route of one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route<'a> {
    /// Target.
    pub target: &'a Endpoint,
    /// Source; `None` if the kernel chooses.
    pub source: Option<IpAddr>,
}

/// The routes of all clients of a load.
#[derive(Debug, Clone)]
pub struct Routes {
    targets: Vec<Target>,
}

#[derive(Debug, Clone)]
struct Target {
    endpoint: Endpoint,
    /// Sources; empty if the kernel chooses.
    sources: Vec<Row>,
    /// Number of these addresses in use.
    used: u64,
    /// Number of clients that share a source address, and its ports, to this target; 0 if it needs no ports.
    clients_on_a_source: u64,
}

/// A target that none of the given sources can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoSource(SocketAddr);

impl fmt::Display for NoSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = if self.0.is_ipv4() { 4 } else { 6 };
        let target = self.0;
        write!(
            f,
            "{target} needs a source address of IPv{version}; name one with --source"
        )
    }
}

impl std::error::Error for NoSource {}

impl Routes {
    /// The routes of `clients` clients to these targets (at least one). A target named twice gets twice as many
    /// clients. `sources` are the sources that the user named. If there are none, IPv4 loopback targets get as many
    /// sources as are needed to connect fast, and the kernel chooses for other targets. `ports` are the first and the
    /// last ephemeral port, if known.
    ///
    /// # Errors
    /// If a target has no source of its address family.
    pub fn new(
        targets: &[Endpoint],
        sources: &[Network],
        clients: u32,
        ports: Option<(u16, u16)>,
    ) -> Result<Self, NoSource> {
        let quick = quick_ports(ports);
        let share = u64::from(clients).div_ceil(targets.len() as u64);
        let mut named = HashMap::new();
        for target in targets {
            *named.entry(target).or_insert(0) += 1;
        }
        let route = |endpoint: &Endpoint| {
            let here = share * named[endpoint];
            let target = Target {
                endpoint: endpoint.clone(),
                sources: Vec::new(),
                used: 1,
                clients_on_a_source: here,
            };
            let Some(address) = endpoint.tcp() else {
                return Ok(Target {
                    clients_on_a_source: 0,
                    ..target
                });
            };
            if sources.is_empty() {
                return Ok(target.with_loopback_sources(address, quick));
            }
            let rows = sources.iter().map(|network| Row::of_hosts(*network));
            let fitting: Vec<Row> = rows
                .filter(|row| row.is_ipv4 == address.is_ipv4())
                .collect();
            let count: u64 = fitting
                .iter()
                .map(|row| u128::from(row.count))
                .sum::<u128>()
                .try_into()
                .unwrap_or(u64::MAX);
            if count == 0 {
                return Err(NoSource(address));
            }
            Ok(target.with_sources(fitting, count.min(share.max(1))))
        };
        let routes = targets.iter().map(route).collect::<Result<_, _>>()?;
        Ok(Self { targets: routes })
    }

    /// The route of client `number`.
    pub fn route(&self, number: u64) -> Route<'_> {
        let count = self.targets.len() as u64;
        let target = &self.targets[(number % count) as usize];
        Route {
            target: &target.endpoint,
            source: target.source(number / count % target.used),
        }
    }

    /// The targets, as named.
    pub fn targets(&self) -> impl Iterator<Item = &Endpoint> {
        self.targets.iter().map(|target| &target.endpoint)
    }

    /// Every source address in use that we chose.
    pub fn sources(&self) -> impl Iterator<Item = IpAddr> {
        let of_target = |target: &Target| {
            let target = target.clone();
            (0..target.used).filter_map(move |number| target.source(number))
        };
        self.targets.iter().flat_map(of_target)
    }

    /// Number of clients on the fullest pair of source and target.
    pub fn most_on_a_pair(&self) -> u64 {
        let clients = self.targets.iter().map(|target| target.clients_on_a_source);
        clients.max().unwrap_or(0)
    }

    /// Number of pairs of source and target that have ports.
    pub fn pairs(&self) -> u64 {
        let with_ports = self.targets.iter().filter_map(|target| {
            let address = target.endpoint.tcp()?;
            Some((address, target.used))
        });
        let pairs: HashMap<_, _> = with_ports.collect();
        pairs.values().sum()
    }

    /// Whether all targets are on this machine, judging by their addresses.
    pub fn are_local(&self) -> bool {
        self.targets().all(Endpoint::is_local)
    }
}

impl Target {
    fn with_loopback_sources(self, address: SocketAddr, quick: u64) -> Self {
        let is_local = address.is_ipv4() && address.ip().is_loopback();
        let clients = self.clients_on_a_source;
        if !is_local || clients <= quick {
            return self;
        }
        // Half of the fast ports: the last ports of a source are found more slowly than the first.
        let wanted = clients.div_ceil((quick / 2).max(1));
        self.with_sources(
            vec![LOOPBACK_SOURCES],
            wanted.clamp(1, LOOPBACK_SOURCES.count),
        )
    }

    fn with_sources(self, sources: Vec<Row>, used: u64) -> Self {
        Self {
            sources,
            used,
            clients_on_a_source: self.clients_on_a_source.div_ceil(used),
            ..self
        }
    }

    fn source(&self, mut number: u64) -> Option<IpAddr> {
        for row in &self.sources {
            if number < row.count {
                return Some(row.address(number));
            }
            number -= row.count;
        }
        None
    }
}

/// Number of ephemeral ports in the range from the first to the last.
pub fn port_count(range: (u16, u16)) -> u64 {
    u64::from(range.1.saturating_sub(range.0)) + 1
}

/// Number of ports that connect(2) finds fast for one pair of addresses.
pub fn quick_ports(range: Option<(u16, u16)>) -> u64 {
    port_count(range.unwrap_or(USUAL_PORTS)) / 2
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const PORTS: Option<(u16, u16)> = Some((32_768, 60_999));

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    fn targets(names: &[&str]) -> Vec<Endpoint> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    fn source(routes: &Routes, number: u64) -> String {
        let source = routes.route(number).source;
        source.map_or(String::new(), |source| source.to_string())
    }

    #[test]
    fn networks_are_the_addresses_of_hosts() {
        for (text, first, count) in [
            ("10.0.0.7", "10.0.0.7", 1),
            ("10.0.0.7/32", "10.0.0.7", 1),
            ("10.0.0.7/31", "10.0.0.6", 2),
            ("127.0.1.0/24", "127.0.1.1", 254),
            ("127.0.1.9/24", "127.0.1.1", 254),
            ("0.0.0.0/0", "0.0.0.1", (1 << 32) - 2),
            ("::1", "::1", 1),
            ("fd00::/120", "fd00::1", 255),
            ("::/0", "::1", u64::MAX),
        ] {
            let row = Row::of_hosts(network(text));
            assert_eq!(row.address(0).to_string(), first, "{text}");
            assert_eq!(row.count, count, "{text}");
        }
        for wrong in [
            "",
            "10.0.0",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/",
            "10.0.0.0/x",
            "a/8",
        ] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn few_clients_leave_the_source_to_the_kernel() {
        let routes = Routes::new(&targets(&["127.0.0.1:7"]), &[], 14_116, PORTS).unwrap();
        assert_eq!(source(&routes, 0), "");
        assert_eq!(routes.sources().count(), 0);
        assert_eq!((routes.pairs(), routes.most_on_a_pair()), (1, 14_116));
    }

    #[test]
    fn many_clients_on_loopback_have_many_addresses() {
        let routes = Routes::new(&targets(&["127.0.0.1:7"]), &[], 1_000_000, PORTS).unwrap();
        assert_eq!(source(&routes, 0), "127.1.0.1");
        assert_eq!(source(&routes, 141), "127.1.0.142");
        assert_eq!(source(&routes, 142), "127.1.0.1");
        assert_eq!((routes.pairs(), routes.most_on_a_pair()), (142, 7043));
        assert_eq!(routes.sources().count(), 142);
    }

    #[test]
    fn only_loopback_of_ipv4_has_addresses_that_nobody_named() {
        for target in ["[::1]:7", "192.0.2.1:7"] {
            let routes = Routes::new(&targets(&[target]), &[], 1_000_000, PORTS).unwrap();
            assert_eq!(source(&routes, 5), "");
            assert_eq!((routes.pairs(), routes.most_on_a_pair()), (1, 1_000_000));
        }
    }

    #[test]
    fn every_pair_is_used_evenly() {
        let targets = targets(&["127.0.0.1:7", "127.0.0.1:8", "127.0.0.2:7"]);
        let sources = [network("127.0.1.0/30"), network("127.0.2.7")];
        let routes = Routes::new(&targets, &sources, 900, PORTS).unwrap();
        let mut clients = HashMap::new();
        for number in 0..900 {
            let route = routes.route(number);
            *clients.entry((route.target, route.source)).or_insert(0) += 1;
        }
        assert_eq!(clients.len() as u64, routes.pairs());
        assert!(clients.values().all(|&count| count == 100), "{clients:?}");
        assert_eq!((routes.pairs(), routes.most_on_a_pair()), (9, 100));
        let sources: HashSet<_> = routes.sources().collect();
        let named = ["127.0.1.1", "127.0.1.2", "127.0.2.7"].map(|name| name.parse().unwrap());
        assert_eq!(sources, HashSet::from(named));
    }

    #[test]
    fn a_target_named_twice_has_no_more_ports() {
        let targets = targets(&["127.0.0.1:7", "127.0.0.1:7"]);
        let sources = [network("127.0.0.1")];
        let routes = Routes::new(&targets, &sources, 1000, PORTS).unwrap();
        assert_eq!((routes.pairs(), routes.most_on_a_pair()), (1, 1000));
        let routes = Routes::new(&targets, &[], 28_000, PORTS).unwrap();
        assert_eq!((routes.pairs(), routes.most_on_a_pair()), (4, 7000));
    }

    #[test]
    fn unix_sockets_take_no_ports() {
        let targets = targets(&["unix:@one", "127.0.0.1:7"]);
        let sources = [network("127.0.1.0/30")];
        let routes = Routes::new(&targets, &sources, 100_000, PORTS).unwrap();
        assert_eq!(source(&routes, 0), "");
        assert_eq!(source(&routes, 1), "127.0.1.1");
        assert_eq!((routes.pairs(), routes.most_on_a_pair()), (2, 25_000));
        assert!(routes.are_local());
        let routes = Routes::new(&targets[..1], &[], 1_000_000, PORTS).unwrap();
        assert_eq!((routes.pairs(), routes.most_on_a_pair()), (0, 0));
    }

    #[test]
    fn sources_are_of_the_kind_of_the_target() {
        let sources = [network("127.0.1.0/24"), network("::1")];
        let both = targets(&["127.0.0.1:7", "[::1]:7"]);
        let routes = Routes::new(&both, &sources, 10, PORTS).unwrap();
        assert_eq!(source(&routes, 0), "127.0.1.1");
        assert_eq!(source(&routes, 1), "::1");
        let refused = Routes::new(&both, &sources[..1], 10, PORTS).unwrap_err();
        assert!(refused.to_string().contains("source address of IPv6"));
    }
}
