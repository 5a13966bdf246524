//! Plans for tests.

use std::net::SocketAddr;
use std::time::Duration;

use super::arrival::{Rate, Spacing};
use super::route::Routes;
use super::{Plan, Until};
use throng_protocol::{PROTOCOLS, Protocol, Settings};
use throng_spec::{Endpoint, LoadSpec};

/// An address that no test connects to.
pub(super) const NOWHERE: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);

pub(super) fn protocol(name: &str) -> &'static dyn Protocol {
    let mut found = PROTOCOLS.iter().filter(|one| one.name() == name);
    *found.next().unwrap()
}

/// A plan for clients that all speak the protocol `name`, without a warm-up.
pub(super) fn plan(
    address: impl Into<Endpoint>,
    name: &str,
    size: usize,
    clients: u32,
    until: Until,
) -> Plan {
    let routes = Routes::new(&[address.into()], &[], clients, None).unwrap();
    let load = LoadSpec {
        clients,
        ..LoadSpec::default()
    };
    Plan {
        warm_up: Duration::ZERO,
        longest_warm_up: Duration::ZERO,
        ..Plan::new(
            &load.ending(until),
            routes,
            protocol(name),
            Settings::of_size(size),
        )
    }
}

/// Requests at a constant rate.
pub(super) fn rate(per_s: f64, spacing: Spacing) -> Rate {
    Rate {
        from_per_s: per_s,
        to_per_s: per_s,
        rise: Duration::ZERO,
        spacing,
    }
}
