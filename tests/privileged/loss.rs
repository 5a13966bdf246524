//! Packets lost on purpose (`loss` of a study).

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::program::THRONG;

const STUDY: &str = r#"
name = "lossy"
question = "What does loss cost?"
protocol = "echo"
clients = [2]
servers = [{ model = "epoll" }]
link = { loss = "1%" }
duration = "60s"
runs = 1
control = "none"
ceiling = false
probes = ["cpu"]
"#;
/// Long enough for a busy machine.
const LIMIT: Duration = Duration::from_mins(2);

fn has_table(name: &str) -> bool {
    let mut list = Command::new("nft");
    list.args(["list", "table", "netdev", name])
        .stderr(Stdio::null());
    list.output().is_ok_and(|listed| listed.status.success())
}

/// SIGKILL leaves no time to remove rules that would affect the next user of the port.
#[test]
fn rules_that_lose_packets_go_with_a_killed_run() {
    let directory = tempfile::tempdir().unwrap();
    let study = directory.path().join("lossy.toml");
    std::fs::write(&study, STUDY).unwrap();
    let mut run = Command::new(THRONG);
    run.arg("run")
        .arg(&study)
        .arg("-o")
        .arg(directory.path().join("record"));
    let mut run = run
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let table = format!("throng-{}", run.id());
    let deadline = Instant::now() + LIMIT;
    while !has_table(&table) {
        if run.try_wait().unwrap().is_some() {
            let printed = run.wait_with_output().unwrap().stderr;
            let printed = String::from_utf8_lossy(&printed);
            assert!(
                ["needs", "cannot drop"]
                    .iter()
                    .any(|why| printed.contains(why)),
                "{printed}"
            );
            return println!("skipped: {printed}");
        }
        assert!(Instant::now() < deadline, "no table {table}");
        std::thread::sleep(Duration::from_millis(5));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    while has_table(&table) {
        assert!(Instant::now() < deadline, "{table} is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Each direction of a simulated link has its whole rate, and no more.
#[test]
fn a_link_has_its_rate_in_each_direction() {
    let directory = tempfile::tempdir().unwrap();
    let study = directory.path().join("link.toml");
    let slow = STUDY
        .replace("loss = \"1%\"", "rate = \"20Mbit\"")
        .replace("clients = [2]", "clients = [20]")
        .replace("60s", "1s");
    std::fs::write(&study, slow).unwrap();
    let record = directory.path().join("record");
    let mut run = Command::new(THRONG);
    run.args(["run", "--json", "--allow-rough"]).arg(&study);
    let output = run.arg("-o").arg(&record).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    if printed.contains("cannot be made") {
        return println!("skipped: {printed}");
    }
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let rate = summary["rows"][0]["metrics"]["requests_per_s"]["value"]
        .as_f64()
        .unwrap_or_else(|| panic!("{printed}: {summary}"));
    // A packet with 1,000 bytes takes 1,090 on a cable: 2,294 per second. If both directions shared the rate, it would
    // be half of that.
    let whole = 20e6 / 8.0 / 1090.0;
    assert!((0.6 * whole..1.1 * whole).contains(&rate), "{rate}");
}
