//! The kernel's view of the connections, and the warnings about it, on servers that cause them.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use throng::measure::probes;
use throng::record::{Finding, ServerInfo, Trial};

use super::{carry_out, plan};
use crate::support::program::THRONG;
use crate::support::tries::once;

/// Runs one trial of this server, with this backlog.
fn trial(command: Vec<String>, clients: u32, backlog: u32) -> Trial {
    let server = ServerInfo {
        name: "server".to_owned(),
        command,
        ..ServerInfo::default()
    };
    let mut plan = plan(vec![server], clients);
    let names = ["cpu", "established", "accept-queue", "tcp"].map(str::to_owned);
    plan.probes = probes::choose(&names).expect("they are there");
    plan.settings.backlog = backlog;
    plan.settings.load.duration = Some(Duration::from_secs(1));
    // Who is turned away tries again after a second and more.
    plan.settings.load.connect_timeout = Duration::from_secs(30);
    plan.settings.load.first_reply_timeout = Duration::from_secs(3);
    let (_, mut trials) = carry_out(&plan);
    assert_eq!(trials.len(), 1);
    let trial = trials.remove(0);
    assert_eq!(trial.failure, None);
    trial
}

fn figure(trial: &Trial, name: &str) -> u64 {
    let network = trial.network.as_ref().expect("the network was measured");
    let value = network.metrics.get(name);
    *value.unwrap_or_else(|| panic!("no {name} in {network:?}")) as u64
}

fn warning<'a>(trial: &'a Trial, kind: &str) -> Option<&'a Finding> {
    let mut findings = trial.findings.iter();
    findings.find(|finding| finding.kind.name == kind)
}

fn serve(model: &str, more: &[&str]) -> Vec<String> {
    let start = [THRONG, "serve", model, "--listen", "127.0.0.1:0"];
    let words = start.iter().chain(more);
    words.map(ToString::to_string).collect()
}

#[test]
fn clients_rejected_by_a_short_queue_are_reported_with_it() {
    // A fast server rejects no client.
    let trial = once(|| {
        let trial = trial(serve("thread", &["--backlog", "1", "--json"]), 60, 1);
        match figure(&trial, "listen_overflows") {
            0 => Err("the queue never overflowed".to_owned()),
            _ => Ok(trial),
        }
    });
    let load = trial.load.as_ref().unwrap();
    assert_eq!(load.connected, 60, "{load:?}");
    assert_eq!(figure(&trial, "accept_backlog"), 1);
    let overflows = figure(&trial, "listen_overflows");
    assert!(figure(&trial, "listen_drops") >= overflows);
    let times = load.connect_time.as_ref().unwrap().times().unwrap();
    let late = times.count_between(950_000_000, u64::MAX);
    let reported = &warning(&trial, "late-connections").unwrap().text;
    let queue = format!("the accept queue of 1 (--backlog 1) overflowed {overflows} times");
    assert!(reported.contains(&queue), "{reported}");
    if late > 0 {
        assert!(
            reported.starts_with(&format!("{late} of 60 clients connected")),
            "{reported}"
        );
        assert!(reported.contains("1 s"), "{reported}");
        assert!(figure(&trial, "syn_retransmits") > 0);
    } else {
        println!("nobody came late: the queue was full for the last part of handshakes only");
    }
}

#[test]
fn a_queue_with_room_for_all_has_no_warning() {
    let trial = trial(serve("epoll", &["--json"]), 60, 4096);
    let network = trial.network.as_ref().unwrap();
    // Only root may read slabs.
    let mut missing = network.unavailable.keys();
    assert!(missing.all(|name| name.contains("slab")), "{network:?}");
    assert_eq!(figure(&trial, "established_max"), 60);
    assert_eq!(figure(&trial, "established_end"), 60);
    assert_eq!(figure(&trial, "close_wait_max"), 0);
    assert_eq!(figure(&trial, "listeners"), 1);
    assert_eq!(figure(&trial, "sampled_sockets"), 60);
    assert_eq!(figure(&trial, "socket_retransmits"), 0);
    assert!(figure(&trial, "segments_sent") >= trial.load.as_ref().unwrap().window.replies);
    assert_eq!(warning(&trial, "delayed-ack"), None);
}

/// An echo that writes each answer in two pieces, with Nagle's algorithm or without.
fn write_twice(mut stream: TcpStream, nodelay: bool) -> std::io::Result<()> {
    stream.set_nodelay(nodelay)?;
    let mut input = [0; 4096];
    loop {
        let count = stream.read(&mut input)?;
        if count == 0 {
            return Ok(());
        }
        let (first, second) = input[..count].split_at(count / 2);
        stream.write_all(first)?;
        stream.write_all(second)?;
    }
}

/// Starts it in this process; ends with it.
fn start_writing_twice(nodelay: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it has an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || write_twice(stream, nodelay));
        }
    });
    address
}

/// A process in place of a server that runs elsewhere, until it is stopped as throng's own servers are.
fn stand_in(address: SocketAddr) -> Vec<String> {
    let script = format!(
        "echo listening on {address}; exec 3<&0; cat <&3 > /dev/null & trap 'kill $!; exit 0' TERM; wait"
    );
    ["sh", "-c", &script].map(str::to_owned).to_vec()
}

#[test]
fn an_answer_in_two_pieces_waits_for_the_acknowledgement_of_the_first() {
    // On a busy machine the times do not lie close enough together for a plateau.
    let reported = once(|| {
        let trial = trial(stand_in(start_writing_twice(false)), 4, 4096);
        let times = trial.load.as_ref().unwrap().service_time.as_ref().unwrap();
        assert!(times.p50_us > 30_000.0, "{times:?}");
        let reported = warning(&trial, "delayed-ack").cloned();
        reported.ok_or_else(|| format!("{times:?} {:?}", trial.network))
    });
    assert!(reported.text.contains("about 40 ms"), "{reported:?}");
    assert!(reported.remedy.contains("TCP_NODELAY"), "{reported:?}");
}

#[test]
fn an_answer_in_two_pieces_does_not_wait_without_nagles_algorithm() {
    once(|| {
        let trial = trial(stand_in(start_writing_twice(true)), 4, 4096);
        assert_eq!(warning(&trial, "delayed-ack"), None);
        let times = trial.load.unwrap().service_time.unwrap();
        if times.p50_us < 30_000.0 {
            Ok(())
        } else {
            Err(format!("{times:?}"))
        }
    });
}
