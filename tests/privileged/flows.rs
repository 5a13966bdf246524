//! `throng flows` agrees with `tshark` on a capture of a real load that loses packets.

#![cfg(target_os = "linux")]

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::program::THRONG;

/// Programs that the test needs besides throng.
const TOOLS: [&str; 4] = ["ip", "nft", "tcpdump", "tshark"];

/// Why the test cannot be done here.
fn obstacle() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root, to make network namespaces".to_owned());
    }
    for tool in TOOLS {
        let flag = if tool == "ip" { "-V" } else { "--version" };
        if Command::new(tool).arg(flag).output().is_err() {
            return Some(format!("needs `{tool}`: apt-get install {}", package(tool)));
        }
    }
    let probe = format!("thp{}", std::process::id());
    let made = Command::new("ip").args(["netns", "add", &probe]).output();
    if !made.is_ok_and(|made| made.status.success()) {
        return Some("network namespaces cannot be made here".to_owned());
    }
    let _ = Command::new("ip").args(["netns", "del", &probe]).output();
    None
}

fn package(tool: &str) -> &str {
    match tool {
        "ip" => "iproute2",
        "nft" => "nftables",
        other => other,
    }
}

fn done(command: &mut Command) -> Output {
    let output = command.output().expect("it starts");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {printed}");
    output
}

fn ip(arguments: &str) {
    done(Command::new("ip").args(arguments.split(' ')));
}

/// Two network namespaces with a cable between them, which drops some of what arrives.
struct Network {
    server: String,
    client: String,
}

impl Network {
    fn new() -> Self {
        let id = std::process::id();
        let network = Self {
            server: format!("ths{id}"),
            client: format!("thc{id}"),
        };
        let Self { server, client } = &network;
        ip(&format!("netns add {server}"));
        ip(&format!("netns add {client}"));
        ip(&format!(
            "link add s{id} netns {server} type veth peer name c{id} netns {client}"
        ));
        for (namespace, device, address) in [
            (server, format!("s{id}"), "10.213.0.1/24"),
            (client, format!("c{id}"), "10.213.0.2/24"),
        ] {
            ip(&format!("-n {namespace} addr add {address} dev {device}"));
            ip(&format!("-n {namespace} link set {device} up"));
            ip(&format!("-n {namespace} link set lo up"));
            let loses = "add table ip loss; \
                 add chain ip loss arriving { type filter hook input priority 0; }; \
                 add rule ip loss arriving meta l4proto tcp numgen random mod 100 < 5 drop";
            done(inside(namespace, "nft").arg(loses));
        }
        network
    }

    fn device(&self) -> String {
        format!("c{}", &self.client[3..])
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for namespace in [&self.server, &self.client] {
            let _ = Command::new("ip")
                .args(["netns", "del", namespace])
                .output();
        }
    }
}

fn inside(namespace: &str, program: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, program]);
    command
}

/// A process that is ended with the test.
struct Running(Child);

impl Running {
    fn stop(&mut self) {
        if let (Ok(None), Some(pid)) = (
            self.0.try_wait(),
            rustix::process::Pid::from_raw(self.0.id() as i32),
        ) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Starts a program and waits for its line that it listens.
fn listening(mut command: Command) -> Running {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let stdout = child.stdout.take().expect("it is piped");
    let stderr = child.stderr.take().expect("it is piped");
    let (reported, received) = std::sync::mpsc::channel();
    for stream in [
        Box::new(stdout) as Box<dyn std::io::Read + Send>,
        Box::new(stderr),
    ] {
        let reported = reported.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                let _ = reported.send(line);
            }
        });
    }
    drop(reported);
    let running = Running(child);
    let mut printed = Vec::new();
    while let Ok(line) = received.recv_timeout(Duration::from_mins(2)) {
        let ready = line.contains("listening on");
        printed.push(line);
        if ready {
            // The streams are read on, so that it never waits for us.
            std::thread::spawn(move || received.iter().count());
            return running;
        }
    }
    panic!("{command:?} does not listen: {printed:?}");
}

/// A capture of short-lived clients for two seconds.
fn capture(network: &Network, file: &Path) {
    let mut serve = inside(&network.server, THRONG);
    serve.args("serve epoll --listen 10.213.0.1:7777 --allow-remote".split(' '));
    let _server = listening(serve);
    let mut tcpdump = inside(&network.client, "tcpdump");
    tcpdump
        .args(["-i", &network.device(), "--immediate-mode", "-Z", "root"])
        .args(["-s", "128", "-B", "16384", "-w"])
        .arg(file)
        .args(["tcp", "port", "7777"]);
    let mut tcpdump = listening(tcpdump);
    let load = "load 10.213.0.1:7777 --allow-remote --clients 10 --warm-up 100ms --duration 2s \
                --size 20000 --requests-per-connection 20 --json";
    let mut child = inside(&network.client, "timeout")
        .args(["20", THRONG])
        .args(load.split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut result = String::new();
    let mut stdout = child.stdout.take().expect("it is piped");
    stdout.read_to_string(&mut result).expect("it is text");
    child.wait().expect("it ends");
    assert!(result.contains("replies"), "the load ran: {result}");
    tcpdump.stop();
}

/// Values of one flow that both tools report.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
struct Flow {
    packets: u64,
    wire_bytes: u64,
    payload_bytes: u64,
    retransmissions: u64,
    out_of_order: u64,
}

fn by_tshark(file: &Path) -> HashMap<u64, Flow> {
    let fields = "tcp.stream frame.len tcp.len tcp.analysis.retransmission \
                  tcp.analysis.out_of_order";
    let mut command = Command::new("tshark");
    command
        .arg("-r")
        .arg(file)
        .args(["-T", "fields", "-E", "separator=,"]);
    for field in fields.split_whitespace() {
        command.args(["-e", field]);
    }
    let mut flows: HashMap<u64, Flow> = HashMap::new();
    let text = String::from_utf8(done(&mut command).stdout).expect("it is text");
    for line in text.lines() {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |at: usize| cells[at].parse::<u64>().unwrap_or(0);
        let flow = flows.entry(number(0) + 1).or_default();
        flow.packets += 1;
        flow.wire_bytes += number(1);
        flow.payload_bytes += number(2);
        flow.retransmissions += u64::from(!cells[3].is_empty());
        flow.out_of_order += u64::from(!cells[4].is_empty());
    }
    flows
}

fn by_throng(file: &Path) -> HashMap<u64, Flow> {
    let output = done(Command::new(THRONG).args(["flows", "--json"]).arg(file));
    let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let rows = report["flows"].as_array().expect("it has flows");
    rows.iter()
        .map(|row| {
            let both = |name: &str| {
                let of = |side| row[format!("{name}_by_{side}")].as_u64().expect("a number");
                of("client") + of("server")
            };
            let flow = Flow {
                packets: both("packets"),
                wire_bytes: both("wire_bytes"),
                payload_bytes: both("payload_bytes"),
                retransmissions: both("retransmissions"),
                out_of_order: both("out_of_order"),
            };
            (row["flow"].as_u64().expect("a number"), flow)
        })
        .collect()
}

#[test]
fn every_flow_of_a_lossy_network_is_as_tshark_sees_it() {
    if let Some(obstacle) = obstacle() {
        println!("skipped: {obstacle}");
        return;
    }
    let directory = tempfile::tempdir().expect("there is room");
    let file = directory.path().join("lossy.pcap");
    capture(&Network::new(), &file);
    let (theirs, ours) = (by_tshark(&file), by_throng(&file));
    let again: u64 = theirs.values().map(|flow| flow.retransmissions).sum();
    assert!(again > 0, "nothing was lost");
    let printed = done(Command::new("tshark").arg("--version")).stdout;
    let exactly = String::from_utf8_lossy(&printed).starts_with("TShark (Wireshark) 4.0.");
    if !exactly {
        println!("another tshark than 4.0 may classify late and repeated segments differently");
    }
    let comparable = |flow: &Flow| {
        if exactly {
            *flow
        } else {
            Flow {
                retransmissions: flow.retransmissions + flow.out_of_order,
                out_of_order: 0,
                ..*flow
            }
        }
    };
    assert_eq!(ours.len(), theirs.len());
    for (number, flow) in &theirs {
        let ours = ours.get(number).map(comparable);
        assert_eq!(ours, Some(comparable(flow)), "flow {number}");
    }
}

#[test]
fn a_damaged_file_is_shown_up_to_its_damage() {
    let directory = tempfile::tempdir().expect("there is room");
    let file = directory.path().join("cut.pcap");
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    bytes.extend([0; 12]);
    bytes.extend([101, 0, 0, 0]);
    bytes.extend([0_u32, 0, 0, 0].map(u32::to_le_bytes).concat());
    bytes.extend([1_u32, 0, 60, 60].map(u32::to_le_bytes).concat());
    bytes.extend([0; 5]);
    std::fs::write(&file, &bytes).expect("it can be written");
    let output = Command::new(THRONG)
        .arg("flows")
        .arg(&file)
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr);
    let place = "packet 2, byte 40: the file ends after 5 of the 60 bytes of the packet";
    assert!(
        error.contains("cut.pcap") && error.contains(place),
        "{error}"
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("of 1 in the file"));
    std::fs::write(&file, "nothing of the kind").expect("it can be written");
    let output = Command::new(THRONG)
        .arg("flows")
        .arg(&file)
        .output()
        .expect("it starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("cut.pcap: not a packet capture"), "{error}");
}
