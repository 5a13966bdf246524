//! Shortages that a load would run into, checked before it starts.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};

use super::route::{Routes, port_count, quick_ports};
use throng_record::Resources;

/// Number of descriptors that a load generator needs in each table, in addition to one per client.
pub const OWN_DESCRIPTORS: u64 = 32;
/// Kernel memory per end of an established connection: the socket, its file, name and inode, its port, and its entry
/// in an epoll set. Measured on Linux 6.18 without data in flight.
const KERNEL_BYTES: u64 = 4000;
/// Memory per client in our process, and in a frugal server.
const USER_BYTES: u64 = 400;

/// Additional memory per end of a TLS connection, with rustls. Measured with 3000 idle clients.
const TLS_BYTES: u64 = 7000;

/// The number of a load's threads, and whether each has its own descriptor table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workers {
    /// Threads.
    pub threads: usize,
    /// Whether each thread has its own table.
    pub own_tables: bool,
}

/// The workers for `clients` concurrent clients: `threads`, or as many as needed to have a descriptor for each client
/// if a table holds `descriptors`.
pub fn workers(clients: u32, threads: usize, descriptors: Option<u64>) -> Workers {
    let count = u64::from(clients);
    let a_table = descriptors.map_or(u64::MAX, |limit| limit.saturating_sub(OWN_DESCRIPTORS));
    Workers {
        threads: threads.max(count.div_ceil(a_table.max(1)) as usize),
        own_tables: count > a_table,
    }
}

/// A thread per client, with a table that holds its socket and its epoll set.
pub fn one_each(clients: u32) -> Workers {
    Workers {
        threads: clients.max(1) as usize,
        own_tables: true,
    }
}

/// More clients than this machine supports in one load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    clients: u32,
    /// The number of clients that it does support.
    at_most: u64,
    of: ScarceResource,
}

/// The scarce resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScarceResource {
    /// Descriptors in one table.
    Descriptors { limit: u64 },
    /// Threads with their own tables.
    Threads { needed: u64, left: u64, limit: u64 },
    /// Local ports.
    Ports { range: (u16, u16), pairs: u64 },
    /// Files of the whole machine.
    Files { left: u64, ends: u64 },
    /// Entries in epoll sets.
    Watches { limit: u64 },
    /// Memory.
    Memory { needed: u64, left: u64, ends: u64 },
}

impl Shortage {
    /// The possible number of clients.
    pub fn at_most(&self) -> u32 {
        u32::try_from(self.at_most).unwrap_or(u32::MAX)
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clients = self.clients;
        match self.of {
            ScarceResource::Descriptors { limit } => write!(
                f,
                "{clients} clients need {} descriptors, but a process is limited to {limit}; raise the hard \
                 limit (ulimit -Hn)",
                u64::from(clients) + OWN_DESCRIPTORS,
            ),
            ScarceResource::Threads {
                needed,
                left,
                limit,
            } => write!(
                f,
                "{clients} clients need {needed} threads with {limit} descriptors each, but only {left} more \
                 threads can be started; raise the hard limit of descriptors (ulimit -Hn) or of \
                 threads (kernel.pid_max, pids.max)",
            ),
            ScarceResource::Ports { range, pairs } => write!(
                f,
                "{clients} clients need a local port each, but only {} ({} to {}) are available for each of \
                 {pairs} pairs of source and target address; add --source addresses or targets, widen \
                 net.ipv4.ip_local_port_range",
                port_count(range),
                range.0,
                range.1,
            ),
            ScarceResource::Files { left, ends } => write!(
                f,
                "{clients} clients need {} files{}, but this machine can open only {left} more; \
                 raise fs.file-max",
                u64::from(clients) * ends,
                with_server(ends),
            ),
            ScarceResource::Watches { limit } => write!(
                f,
                "{clients} clients need an epoll entry each, but a user is limited to {limit}; \
                 raise fs.epoll.max_user_watches",
            ),
            ScarceResource::Memory { needed, left, ends } => write!(
                f,
                "{clients} idle clients need about {} MB of memory{}, but only {} MB are available; \
                 use a larger machine",
                needed / 1_000_000,
                with_server(ends),
                left / 1_000_000,
            ),
        }?;
        match self.at_most {
            0 => write!(f, ", since not a single client fits"),
            at_most => write!(f, ", or use at most {at_most} clients"),
        }
    }
}

fn with_server(ends: u64) -> &'static str {
    if ends > 1 {
        " (including the server's)"
    } else {
        ""
    }
}

impl std::error::Error for Shortage {}

/// A load that is possible, but with poor performance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScarcePorts {
    clients: u64,
    ports: u64,
}

impl fmt::Display for ScarcePorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} clients share a source and a target address with {} ports; beyond half of the ports, \
             connecting is slow, since the kernel searches for a free one; add --source addresses or targets",
            self.clients, self.ports
        )
    }
}

/// Checks that `clients` clients can be connected at the same time on these routes, with or without TLS. Earlier
/// clients may have left ports in `TIME_WAIT`.
///
/// # Errors
/// The first scarce resource.
pub fn check(
    clients: u32,
    workers: Workers,
    routes: &Routes,
    is_tls: bool,
    resources: &Resources,
) -> Result<Option<ScarcePorts>, Shortage> {
    let short = |at_most: u64, of: ScarceResource| {
        Err(Shortage {
            clients,
            at_most,
            of,
        })
    };
    let wanted = u64::from(clients);
    if let Some(limit) = resources.descriptors
        && workers.own_tables
    {
        let needed = workers.threads as u64;
        let a_table = limit.saturating_sub(OWN_DESCRIPTORS);
        if a_table == 0 {
            return short(0, ScarceResource::Descriptors { limit });
        }
        if let Some(left) = resources.threads.filter(|&left| left < needed) {
            let of = ScarceResource::Threads {
                needed,
                left,
                limit,
            };
            return short(left * a_table, of);
        }
    }
    let mut scarce_ports = None;
    if let Some(range) = resources.ports {
        let (ports, pairs) = (port_count(range), routes.pairs());
        let fullest = routes.most_on_a_pair();
        if fullest.min(wanted) > ports {
            return short(ports * pairs, ScarceResource::Ports { range, pairs });
        }
        if fullest > quick_ports(Some(range)) {
            scarce_ports = Some(ScarcePorts {
                clients: fullest,
                ports,
            });
        }
    }
    let ends = if routes.are_local() { 2 } else { 1 };
    if let Some(left) = resources.files.filter(|&left| left < wanted * ends) {
        return short(left / ends, ScarceResource::Files { left, ends });
    }
    if let Some(limit) = resources.watches.filter(|&limit| limit < wanted) {
        return short(limit, ScarceResource::Watches { limit });
    }
    let tls_bytes = if is_tls { TLS_BYTES } else { 0 };
    let bytes = ends * (KERNEL_BYTES + USER_BYTES + tls_bytes);
    if let Some(left) = resources.memory_bytes.filter(|&left| left < wanted * bytes) {
        let needed = wanted * bytes;
        return short(left / bytes, ScarceResource::Memory { needed, left, ends });
    }
    Ok(scarce_ports)
}

/// The largest number of clients, up to `wanted`, of one load with a server on this machine, and the reason.
pub fn most(wanted: u32, threads: usize, resources: &Resources) -> (u32, Option<Shortage>) {
    let target = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let (mut most, mut shortage) = (wanted, None);
    // Each pass finds fewer clients than the one before, because of another resource. There are six resources.
    for _ in 0..6 {
        let workers = workers(most, threads, resources.descriptors);
        let Ok(routes) = Routes::new(&[target.into()], &[], most, resources.ports) else {
            break;
        };
        match check(most, workers, &routes, false, resources) {
            Ok(_) => break,
            Err(found) => {
                most = u32::try_from(found.at_most).map_or(most, |at_most| most.min(at_most));
                shortage = Some(found);
            }
        }
    }
    (most, shortage)
}

/// Maximum number of concurrent clients for a server with one descriptor table, if a new client replaces each one that
/// leaves. A quarter stays free: a busy server accepts new clients before it closes the connections of old ones.
pub fn at_once_in_one_table(resources: &Resources) -> Option<u32> {
    let clients = resources.descriptors?.saturating_sub(OWN_DESCRIPTORS) / 4 * 3;
    Some(u32::try_from(clients).unwrap_or(u32::MAX).max(1))
}

/// Checks that one descriptor table, which is what most servers have, is enough for `clients` clients.
///
/// # Errors
/// If it is not.
pub fn check_one_table(clients: u32, resources: &Resources) -> Result<(), Shortage> {
    match resources.descriptors {
        Some(limit) if u64::from(clients) + OWN_DESCRIPTORS > limit => Err(Shortage {
            clients,
            at_most: limit.saturating_sub(OWN_DESCRIPTORS),
            of: ScarceResource::Descriptors { limit },
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESOURCES: Resources = Resources {
        descriptors: Some(20_000),
        ports: Some((32_768, 60_999)),
        threads: Some(30_000),
        files: Some(2_466_177),
        watches: Some(5_491_511),
        memory_bytes: Some(24_000_000_000),
    };

    fn checked(
        target: &str,
        clients: u32,
        resources: &Resources,
    ) -> Result<Option<ScarcePorts>, Shortage> {
        let target = target.parse().unwrap();
        let routes = Routes::new(&[target], &[], clients, resources.ports).unwrap();
        let workers = workers(clients, 2, resources.descriptors);
        check(clients, workers, &routes, false, resources)
    }

    fn refused(target: &str, clients: u32, resources: &Resources) -> String {
        checked(target, clients, resources).unwrap_err().to_string()
    }

    fn says(text: &str, parts: &[&str]) {
        for part in parts {
            assert!(text.contains(part), "`{part}` is not in `{text}`");
        }
    }

    #[test]
    fn threads_take_tables_of_their_own_when_one_is_too_small() {
        let workers = |clients, threads| workers(clients, threads, Some(20_000));
        let layout = |threads, own_tables| Workers {
            threads,
            own_tables,
        };
        assert_eq!(workers(19_968, 2), layout(2, false));
        assert_eq!(workers(19_969, 2), layout(2, true));
        assert_eq!(workers(39_937, 2), layout(3, true));
        assert_eq!(workers(1_000_000, 2), layout(51, true));
        assert_eq!(workers(1_000_000, 60), layout(60, true));
        assert_eq!(super::workers(1_000_000, 2, None), layout(2, false));
    }

    #[test]
    fn enough_is_enough() {
        assert_eq!(checked("127.0.0.1:7", 1_000_000, &RESOURCES), Ok(None));
        assert_eq!(
            checked("[::1]:7", 65_536, &Resources::default()),
            Ok(None),
            "where no limit is known, there is none"
        );
    }

    #[test]
    fn half_of_the_ports_is_enough_to_be_reported() {
        let scarce_ports = checked("[::1]:7", 20_000, &RESOURCES).unwrap().unwrap();
        says(&scarce_ports.to_string(), &["20000 clients", "28232 ports"]);
        assert_eq!(checked("[::1]:7", 14_000, &RESOURCES), Ok(None));
        assert_eq!(checked("unix:@a", 1_000_000, &RESOURCES), Ok(None));
    }

    #[test]
    fn names_the_limit_and_the_remedy() {
        let text = refused("[::1]:7", 30_000, &RESOURCES);
        says(
            &text,
            &[
                "28232 (32768 to 60999)",
                "--source",
                "at most 28232 clients",
            ],
        );
        let tight = Resources {
            descriptors: Some(32),
            ..RESOURCES
        };
        let text = refused("127.0.0.1:7", 1, &tight);
        says(
            &text,
            &["1 clients need 33", "limited to 32", "not a single"],
        );
        let tight = Resources {
            descriptors: Some(64),
            threads: Some(10),
            ..RESOURCES
        };
        let text = refused("127.0.0.1:7", 321, &tight);
        says(&text, &["11 threads", "10 more", "at most 320 clients"]);
        let tight = Resources {
            files: Some(1999),
            ..RESOURCES
        };
        let text = refused("127.0.0.1:7", 1000, &tight);
        says(
            &text,
            &[
                "2000 files (including the server's), but",
                "at most 999 clients",
            ],
        );
        assert_eq!(checked("192.0.2.1:7", 1000, &tight), Ok(None));
        let tight = Resources {
            watches: Some(999),
            ..RESOURCES
        };
        says(&refused("127.0.0.1:7", 1000, &tight), &["max_user_watches"]);
    }

    #[test]
    fn a_million_clients_need_memory() {
        let small = Resources {
            memory_bytes: Some(4_400_000_000),
            ..RESOURCES
        };
        let text = refused("127.0.0.1:7", 1_000_000, &small);
        says(&text, &["8800 MB", "4400 MB", "at most 500000 clients"]);
    }

    #[test]
    fn tls_needs_more_memory() {
        let target: SocketAddr = "127.0.0.1:7".parse().unwrap();
        let routes = Routes::new(&[target.into()], &[], 1_000_000, RESOURCES.ports).unwrap();
        let workers = workers(1_000_000, 2, RESOURCES.descriptors);
        let resources = Resources {
            memory_bytes: Some(10_000_000_000),
            ..RESOURCES
        };
        let fits = |is_tls| check(1_000_000, workers, &routes, is_tls, &resources);
        assert_eq!(fits(false), Ok(None));
        says(&fits(true).unwrap_err().to_string(), &["22800 MB"]);
    }

    #[test]
    fn the_most_that_fits_is_worked_out_before() {
        assert_eq!(most(1000, 2, &RESOURCES), (1000, None));
        let small = Resources {
            memory_bytes: Some(4_400_000_000),
            files: Some(800_000),
            ..RESOURCES
        };
        let (fits, why) = most(1_000_000, 2, &small);
        assert_eq!(fits, 400_000);
        says(&why.unwrap().to_string(), &["files"]);
        let (fits, why) = most(
            1_000_000,
            2,
            &Resources {
                files: None,
                ..small
            },
        );
        assert_eq!(fits, 500_000);
        says(&why.unwrap().to_string(), &["4400 MB"]);
    }

    #[test]
    fn a_server_has_one_table() {
        assert_eq!(check_one_table(19_968, &RESOURCES), Ok(()));
        let text = check_one_table(19_969, &RESOURCES).unwrap_err().to_string();
        says(&text, &["limited to 20000", "at most 19968 clients"]);
    }
}
