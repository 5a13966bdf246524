//! The counters of a network namespace: parsers of `/proc/net/{snmp,netstat,sockstat,sockstat6}` and `/proc/slabinfo`;
//! pure. They count the activity of every process in the namespace, so only differences over a trial are meaningful, on
//! a machine without other traffic. Names that this kernel lacks are absent.

use super::proc_file::ProcFile;

/// One counter: its group ("`TcpExt`", "`TCP`"), its name, its value.
pub(crate) type Counter<'a> = (&'a str, &'a str, i64);

/// The counters of `/proc/net/snmp` and `/proc/net/netstat`: a line of names, then one of values.
pub(crate) fn paired(text: &str) -> impl Iterator<Item = Counter<'_>> {
    let mut lines = text.lines();
    std::iter::from_fn(move || {
        let (names, values) = (lines.next()?, lines.next()?);
        Some((names.split_once(": ")?, values.split_once(": ")?))
    })
    .filter(|((group, _), (again, _))| group == again)
    .flat_map(|((group, names), (_, values))| {
        let words = values.split_ascii_whitespace();
        names
            .split_ascii_whitespace()
            .zip(words)
            .filter_map(move |(name, value)| Some((group, name, value.parse().ok()?)))
    })
}

/// The counters of `/proc/net/sockstat` and `/proc/net/sockstat6`: each name is followed by its value.
pub(crate) fn named(text: &str) -> impl Iterator<Item = Counter<'_>> {
    text.lines()
        .filter_map(|line| line.split_once(": "))
        .flat_map(|(group, rest)| {
            let mut words = rest.split_ascii_whitespace();
            std::iter::from_fn(move || Some((words.next()?, words.next()?)))
                .filter_map(move |(name, value)| Some((group, name, value.parse().ok()?)))
        })
}

/// The value of one counter.
pub(crate) fn value<'a>(
    mut counters: impl Iterator<Item = Counter<'a>>,
    group: &str,
    name: &str,
) -> Option<i64> {
    let found = counters.find(|(its_group, its_name, _)| (*its_group, *its_name) == (group, name));
    found.map(|(_, _, value)| value)
}

/// Slabs of TCP sockets, their files and short-lived connections.
const SLABS: [&str; 8] = [
    "TCP",
    "TCPv6",
    "sock_inode_cache",
    "request_sock_TCP",
    "request_sock_TCPv6",
    "tw_sock_TCP",
    "tw_sock_TCPv6",
    "tcp_bind_bucket",
];

/// The kernel's other memory per connection of a process: its open file, its name, its entry in an epoll set. A kernel
/// that merges slabs of the same size has some of them under other names.
const MORE_SLABS: [&str; 4] = ["filp", "dentry", "eventpoll_epi", "eventpoll_pwq"];

/// Pages that the slabs of TCP sockets take, from `/proc/slabinfo` (`slabinfo(5)`).
pub(crate) fn socket_slab_pages(text: &str) -> Option<u64> {
    slab_pages(text, &SLABS)
}

/// The same, including other memory per connection.
pub(crate) fn connection_slab_pages(text: &str) -> Option<u64> {
    Some(slab_pages(text, &SLABS)? + slab_pages(text, &MORE_SLABS)?)
}

fn slab_pages(text: &str, names: &[&str]) -> Option<u64> {
    let mut sum = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if !words.first().is_some_and(|name| names.contains(name)) {
            continue;
        }
        let after = |mark: &str, place: usize| -> Option<u64> {
            let at = words.iter().position(|word| *word == mark)?;
            words.get(at + place)?.parse().ok()
        };
        let pages_a_slab: u64 = words.get(5)?.parse().ok()?;
        *sum.get_or_insert(0) += after("slabdata", 2)? * pages_a_slab;
    }
    sum
}

/// A counter of `TcpExt` or `Tcp`, and the metric that its difference becomes.
pub(crate) struct KernelCounter(
    /// "Tcp" or "`TcpExt`".
    pub(crate) &'static str,
    /// The kernel's name for it.
    pub(crate) &'static str,
    /// Ours.
    pub(crate) &'static str,
);

/// Reads some counters repeatedly, to compute their differences.
#[derive(Debug)]
pub(crate) struct Counters {
    snmp: ProcFile,
    netstat: ProcFile,
}

/// The values of some counters, in their order, at one time.
pub(crate) type Values = Vec<Option<i64>>;

impl Counters {
    /// Opens the files.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(crate) fn open() -> Result<Self, throng_spec::registry::Unsupported> {
        Ok(Self {
            snmp: ProcFile::open("/proc/net/snmp")?,
            netstat: ProcFile::open("/proc/net/netstat")?,
        })
    }

    /// The current values.
    ///
    /// # Errors
    /// When the files can no longer be read.
    pub(crate) fn read(&mut self, counters: &[KernelCounter]) -> std::io::Result<Values> {
        let mut values = vec![None; counters.len()];
        for file in [&mut self.snmp, &mut self.netstat] {
            for (group, name, value) in paired(file.read()?) {
                let place = counters
                    .iter()
                    .position(|counter| (counter.0, counter.1) == (group, name));
                if let Some(place) = place {
                    values[place] = Some(value);
                }
            }
        }
        Ok(values)
    }
}

/// Passes the growth of each counter to `out`, if the kernel has it.
pub(crate) fn differences(
    counters: &'static [KernelCounter],
    before: &Values,
    after: &Values,
    out: &mut dyn FnMut(&'static str, f64),
) {
    for (KernelCounter(_, _, metric), (old, new)) in counters.iter().zip(before.iter().zip(after)) {
        if let (Some(old), Some(new)) = (old, new) {
            out(metric, new.saturating_sub(*old).max(0) as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SNMP: &str = include_str!("fixtures/snmp");
    const NETSTAT: &str = include_str!("fixtures/netstat");
    const SOCKSTAT: &str = include_str!("fixtures/sockstat");
    const SOCKSTAT6: &str = include_str!("fixtures/sockstat6");
    const SLABINFO: &str = include_str!("fixtures/slabinfo");

    #[test]
    fn snmp_and_netstat_are_lines_in_pairs() {
        assert_eq!(value(paired(SNMP), "Tcp", "CurrEstab"), Some(4));
        assert_eq!(value(paired(SNMP), "Tcp", "MaxConn"), Some(-1));
        assert_eq!(value(paired(SNMP), "Tcp", "RetransSegs"), Some(63));
        assert_eq!(value(paired(SNMP), "Udp", "CurrEstab"), None);
        assert_eq!(
            value(paired(NETSTAT), "TcpExt", "ListenOverflows"),
            Some(311)
        );
        assert_eq!(value(paired(NETSTAT), "TcpExt", "ListenDrops"), Some(312));
        assert_eq!(value(paired(NETSTAT), "TcpExt", "TCPSynRetrans"), Some(60));
        assert_eq!(value(paired(NETSTAT), "IpExt", "InOctets"), Some(1_234_567));
    }

    #[test]
    fn sockstat_is_names_with_their_values() {
        let of = |name| value(named(SOCKSTAT), "TCP", name);
        assert_eq!(
            ["inuse", "orphan", "tw", "alloc", "mem"].map(of),
            [Some(7), Some(1), Some(28), Some(11), Some(3)]
        );
        assert_eq!(value(named(SOCKSTAT), "sockets", "used"), Some(120));
        assert_eq!(value(named(SOCKSTAT6), "TCP6", "inuse"), Some(2));
    }

    #[test]
    fn slabs_of_sockets_are_added_up_in_pages() {
        // 3 slabs of 8 pages for TCP, 4 of 4 for sock_inode_cache; others do not count.
        assert_eq!(socket_slab_pages(SLABINFO), Some(3 * 8 + 4 * 4));
        assert_eq!(socket_slab_pages("slabinfo - version: 2.1\n"), None);
    }

    #[test]
    fn the_files_of_this_machine_are_understood() {
        const KERNEL_COUNTERS: &[KernelCounter] = &[
            KernelCounter("Tcp", "OutSegs", "segments_sent"),
            KernelCounter("TcpExt", "ListenOverflows", "listen_overflows"),
            KernelCounter("TcpExt", "NoSuchCounter", "nothing"),
        ];
        let mut counters = Counters::open().unwrap();
        let before = counters.read(KERNEL_COUNTERS).unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let _client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let after = counters.read(KERNEL_COUNTERS).unwrap();
        let mut seen = Vec::new();
        differences(KERNEL_COUNTERS, &before, &after, &mut |metric, grown| {
            seen.push((metric, grown));
        });
        assert_eq!(seen.len(), 2, "{seen:?}");
        assert!(seen[0].0 == "segments_sent" && seen[0].1 >= 2.0, "{seen:?}");
    }

    proptest! {
        #[test]
        fn arbitrary_files_do_not_panic(text in "[A-Za-z0-9: \n-]{0,400}") {
            prop_assert!(paired(&text).count() + named(&text).count() <= text.len());
            socket_slab_pages(&text);
        }
    }
}
