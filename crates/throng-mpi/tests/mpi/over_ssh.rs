//! The two machines of docs/how-to/two-machines.md: the host file and the command of the page, with a network namespace
//! for each machine and a real sshd in the second one.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::job::{Job, LAB, Lab, THRONG_MPI, run, trials};

const PAGE: &str = include_str!("../../../../docs/how-to/two-machines.md");
const SSHD: &str = "/usr/sbin/sshd";
/// Names of the page's machines in the test.
const SECOND: &str = "10.213.0.11";
/// Time limit for the first login by sshd.
const LIMIT: Duration = Duration::from_mins(1);

/// Text of the page, with the addresses of the test.
fn here(text: &str) -> String {
    text.replace("10.0.0.2", SECOND)
        .replace("10.0.0.", "10.213.0.")
}

/// The code block of the page with this line, with continuation lines joined.
fn block(line: &str) -> String {
    let mut blocks = PAGE.split("```").skip(1).step_by(2);
    let block = blocks.find(|block| block.contains(line));
    let block = block.unwrap_or_else(|| panic!("no code block of the page has `{line}`"));
    let (_language, lines) = block.split_once('\n').expect("it has lines");
    here(&lines.replace("\\\n", " "))
}

/// sshd on a host of a lab, and its client configuration.
struct Sshd(Child);

impl Sshd {
    /// Starts it with new keys; prints the reason and returns `None` if that is impossible.
    fn start(lab: &Lab, directory: &Path) -> Option<Self> {
        if !Path::new(SSHD).exists() {
            println!("not tried: {SSHD} is missing: apt-get install openssh-server");
            return None;
        }
        let file = |name: &str| directory.join(name).display().to_string();
        for key in ["host", "id"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", &file(key)])
                .output();
            if !made.is_ok_and(|made| made.status.success()) {
                println!("not tried: ssh-keygen makes no key");
                return None;
            }
        }
        let config = format!(
            "ListenAddress {SECOND}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\n\
             StrictModes no\nPasswordAuthentication no\n",
            file("host"),
            file("id.pub")
        );
        fs::write(file("sshd_config"), config).expect("it can be written");
        let config = format!(
            "Host *\nIdentityFile {}\nUserKnownHostsFile {}\nStrictHostKeyChecking accept-new\nBatchMode yes\n",
            file("id"),
            file("known_hosts")
        );
        fs::write(file("ssh_config"), config).expect("it can be written");
        let line = format!(
            "mkdir -p /run/sshd && hostname client1 && exec {SSHD} -D -e -f {} 2> {}",
            file("sshd_config"),
            file("log")
        );
        let mut command = lab.script("exec");
        command.args(["client1", "unshare", "--uts", "--", "sh", "-c", &line]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let sshd = Self(command.spawn().expect("bash is there"));
        let lets_in = format!(
            "ssh -F {} {SECOND} true || exit 0; echo in",
            file("ssh_config")
        );
        let deadline = Instant::now() + LIMIT;
        while lab.run("server", &lets_in).trim() != "in" {
            if Instant::now() > deadline {
                let log = fs::read_to_string(file("log")).unwrap_or_default();
                println!("not tried: sshd lets nobody in: {log}");
                return None;
            }
            // It does not report when it listens.
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(sshd)
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_two_machines_of_the_page_reach_each_other_over_ssh() {
    let Some(lab) = Lab::up(1) else { return };
    let directory = tempfile::tempdir().expect("it can be made");
    let Some(_sshd) = Sshd::start(&lab, directory.path()) else {
        return;
    };
    let hosts = directory.path().join("hosts");
    fs::write(&hosts, block("slots=1")).expect("it can be written");
    let line = block("mpirun --hostfile");
    let words: Vec<&str> = line.split_whitespace().collect();
    let of_mpirun = words.iter().position(|word| *word == "throng-mpi");
    let (of_mpirun, of_throng) = words.split_at(of_mpirun.expect("it is launched"));
    let hosts = hosts.display().to_string();
    let of_mpirun = of_mpirun.iter().map(|word| match *word {
        "hosts" => &hosts,
        other => other,
    });
    let mut command = Command::new("bash");
    command.arg(format!("{LAB}/agent")).arg("server");
    command.args(of_mpirun).arg(THRONG_MPI);
    command.env("THRONG_LAB", &lab.name);
    let ssh_config = directory.path().join("ssh_config");
    command.env(
        "OMPI_MCA_plm_rsh_args",
        format!("-F {}", ssh_config.display()),
    );
    // The page's command, except its output directory and with fewer clients.
    let of_throng: Vec<&str> = of_throng[1..]
        .iter()
        .take_while(|word| **word != "-o")
        .copied()
        .collect();
    let arguments = of_throng
        .join(" ")
        .replace("--clients 1000", "--clients 10");
    let short = "--runs 1 --duration 100ms --warm-up 0s --control none --no-ceiling --probes cpu --latency-at none";
    let Some(job) = Job::spawn(command, directory.path(), &format!("{arguments} {short}")) else {
        return;
    };
    let record = job.succeed();
    let run = run(&record);
    assert_eq!(run["ending"], "complete", "{run:#}");
    assert_eq!(run["client_hosts"][0]["name"], "client1", "{run:#}");
    let trials = trials(&record);
    assert_eq!(trials.len(), 2, "{trials:#?}");
    for trial in &trials {
        assert!(trial["failure"].is_null(), "{trial:#}");
        assert_eq!(trial["load"]["served"], 10, "{trial:#}");
    }
}
