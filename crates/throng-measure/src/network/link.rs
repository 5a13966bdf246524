//! A link that is slow on purpose, between the servers and the clients of a run.
//!
//! Both get a network namespace with a loopback device of their own, so nothing else on this machine is slowed down.
//! htb limits each direction by itself, as a full-duplex cable does, and netem delays packets (tc(8)). The direction
//! follows from the ports: servers listen below 32,768, and clients connect from above.

use std::io::{self, Write as _};
use std::process::{Command, Stdio};

use throng_record::Link;
use throng_spec::registry::Unsupported;
use throng_sys::network_namespace::OwnNetwork;

/// The first port from which clients connect by default (ip(7), `ip_local_port_range`).
const FIRST_OF_CLIENTS: u16 = 0x8000;

/// The packet size of Ethernet.
const MTU: u32 = 1500;

/// What a packet takes on a cable besides its Ethernet frame as the kernel counts it: check sum, preamble and gap.
const OVERHEAD: u32 = 24;

/// Packets that may wait in each direction. None is lost there.
const QUEUE: u32 = 1_000_000;

/// Time for which a direction may exceed its rate, in seconds.
const BURST_S: f64 = 0.0005;

/// While it exists, the calling thread and what it starts are at this link.
#[derive(Debug)]
pub(crate) struct SlowLink {
    _network: OwnNetwork,
}

impl SlowLink {
    /// Enters the network of a link, if it needs one.
    ///
    /// # Errors
    /// The error of the kernel, or the first line that `ip` or `tc` prints.
    pub(crate) fn wanted(link: Option<&Link>) -> io::Result<Option<Self>> {
        let Some(link) = link.filter(|link| link.is_shaped()) else {
            return Ok(None);
        };
        let network = OwnNetwork::enter()?;
        run("ip", &format!("link set lo mtu {MTU} up\n"))?;
        run("tc", &rules(link))?;
        Ok(Some(Self { _network: network }))
    }
}

/// Checks whether such a link can be made here.
///
/// # Errors
/// Names the missing part, and the remedy.
pub fn supported(link: &Link) -> Result<(), Unsupported> {
    let link = *link;
    // In a thread of its own, since this one may have started others.
    let trying = std::thread::spawn(move || SlowLink::wanted(Some(&link)).map(|_| ()));
    let made = trying.join().expect("it does not panic");
    made.map_err(|error| Unsupported {
        reason: format!("a link of {} cannot be made: {error}", link.words()),
        remedy: if !rustix::process::geteuid().is_root() {
            "run as root"
        } else if error.kind() == io::ErrorKind::NotFound {
            "install iproute2"
        } else if link.delay_s.is_some() {
            "use a kernel with the packet schedulers htb and netem, or leave out the delay"
        } else {
            "use a kernel with the packet scheduler htb (CONFIG_NET_SCH_HTB)"
        }
        .to_owned(),
    })
}

/// Commands of tc, one per line.
fn rules(link: &Link) -> String {
    let mut rules = "qdisc add dev lo root handle 1: htb default 2\n".to_owned();
    // A link that only delays has a rate that no loopback device reaches.
    let rate = link.rate_bits_per_s.unwrap_or(1_000_000_000_000);
    let burst = ((rate as f64 * BURST_S / 8.0) as u64).max(u64::from(2 * MTU));
    for class in [1, 2] {
        rules += &format!(
            "class add dev lo parent 1: classid 1:{class} htb rate {rate}bit overhead {OVERHEAD} burst {burst} cburst {burst} quantum {MTU}\n"
        );
        rules += &match link.delay_s {
            Some(s) => format!(
                "qdisc add dev lo parent 1:{class} netem limit {QUEUE} delay {}us\n",
                (s * 1e6).round()
            ),
            None => format!("qdisc add dev lo parent 1:{class} pfifo limit {QUEUE}\n"),
        };
    }
    // To a server.
    let mask = FIRST_OF_CLIENTS;
    rules
        + &format!(
            "filter add dev lo parent 1: protocol ip u32 match ip dport 0 {mask:#x} flowid 1:1\n"
        )
}

/// Runs `ip` or `tc` with commands from its standard input.
fn run(program: &str, commands: &str) -> io::Result<()> {
    let mut child = Command::new(program)
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(commands.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let printed = String::from_utf8_lossy(&output.stderr);
    let first = printed.lines().find(|line| !line.trim().is_empty());
    Err(io::Error::other(format!(
        "{program}: {}",
        first.unwrap_or("it failed")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn each_direction_has_the_whole_rate() {
        let link = Link {
            rate_bits_per_s: Some(1_000_000_000),
            ..Link::default()
        };
        let commands = rules(&link);
        let rate = "rate 1000000000bit overhead 24";
        assert_eq!(commands.matches(rate).count(), 2);
        assert!(commands.contains("dport 0 0x8000 flowid 1:1"), "{commands}");
        assert!(!commands.contains("netem"), "{commands}");
    }

    #[test]
    fn only_its_own_thread_is_at_a_link() {
        let link = Link {
            rate_bits_per_s: Some(8_000_000),
            ..Link::default()
        };
        if let Err(why) = supported(&link) {
            return println!("skipped: {why}");
        }
        let here = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = here.local_addr().unwrap();
        std::thread::spawn(move || {
            let _link = SlowLink::wanted(Some(&link)).unwrap().expect("it is slow");
            assert!(TcpStream::connect(address).is_err(), "another loopback");
        })
        .join()
        .unwrap();
        TcpStream::connect(address).unwrap();
    }

    #[test]
    fn what_is_missing_has_a_remedy() {
        let link = Link {
            rate_bits_per_s: Some(1),
            ..Link::default()
        };
        // Less than tc can express, or not permitted.
        if let Err(why) = supported(&link) {
            assert!(why.to_string().contains("1 bit/s"), "{why}");
        }
    }
}
