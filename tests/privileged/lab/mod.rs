//! A network of several hosts on this machine, made by `lab/lab` and removed with the test.

mod network;
mod vanishing;

use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::load::{Ended, Load};
use crate::support::program::THRONG;
use crate::support::server::Server;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/lab/lab");

/// With what `lab/lab` ends when the machine lacks something.
const LACKING: i32 = 3;

/// A lab that is up.
pub(super) struct Lab {
    name: String,
}

impl Lab {
    /// Makes one; none, and the reason is printed, where that cannot be.
    pub(super) fn up(options: &str) -> Option<Self> {
        let lab = Self::named();
        let made = lab.does("up", options)?;
        if made.status.code() == Some(LACKING) {
            println!("not tried: {}", String::from_utf8_lossy(&made.stderr));
            return None;
        }
        assert!(made.status.success(), "{made:?}");
        Some(lab)
    }

    /// A name that no other has.
    fn named() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("t{}x{number}", std::process::id());
        Self { name }
    }

    fn script(&self, command: &str) -> Command {
        let mut script = Command::new("bash");
        script.args([SCRIPT, "--name", &self.name, command]);
        script
    }

    /// Runs a command of it to its end; none, and the reason is printed, without a shell to run it.
    fn does(&self, command: &str, options: &str) -> Option<Output> {
        let mut script = self.script(command);
        match script.args(options.split_whitespace()).output() {
            Ok(output) => Some(output),
            Err(error) => {
                println!("not tried: bash: {error}");
                None
            }
        }
    }

    /// Runs a command of the script: `cut server`.
    pub(super) fn run(&self, command: &str, options: &str) {
        let done = self.does(command, options).expect("it was made by bash");
        assert!(done.status.success(), "{command} {options}: {done:?}");
    }

    /// A command that runs a program on a host, as a process that is the program.
    fn on(&self, host: &str, program: &str) -> Command {
        let mut command = self.script("exec");
        command.args([host, program]);
        command
    }

    /// Runs a command on a host to its end, and returns its output.
    pub(super) fn ran(&self, host: &str, program: &str, arguments: &[&str]) -> String {
        let ran = self
            .on(host, program)
            .args(arguments)
            .output()
            .expect("bash is there");
        assert!(ran.status.success(), "{program} {arguments:?}: {ran:?}");
        String::from_utf8(ran.stdout).expect("it is text")
    }

    /// Starts `throng serve` on the server host.
    pub(super) fn server(&self, options: &str) -> Server {
        let mut command = self.on("server", THRONG);
        command.args(["serve", "--allow-remote"]);
        command.args(options.split_whitespace());
        Server::spawn_on("10.213.0.1:0", command).expect("it listens")
    }

    /// As [`Lab::server`], with so many descriptors.
    pub(super) fn server_with_descriptors(&self, descriptors: u32, options: &str) -> Server {
        let limited = format!("ulimit -n {descriptors}; exec \"$@\"");
        let mut command = self.on("server", "sh");
        command.args(["-c", &limited, "sh", THRONG, "serve", "--allow-remote"]);
        command.args(options.split_whitespace());
        Server::spawn_on("10.213.0.1:0", command).expect("it listens")
    }

    /// Starts a load on a client host.
    pub(super) fn load(&self, host: &str, server: &Server, options: &str) -> Load {
        let options = format!("--allow-remote {options}");
        Load::spawn(self.on(host, THRONG), server.address(), &options)
    }

    /// Runs a load on a client host to its end.
    pub(super) fn loaded(&self, host: &str, server: &Server, options: &str) -> Ended {
        self.load(host, server, options).end()
    }

    /// The names of its network namespaces.
    fn namespaces(&self) -> Vec<String> {
        let Ok(names) = std::fs::read_dir("/run/netns") else {
            return Vec::new();
        };
        let names = names.flatten().map(|name| name.file_name());
        let prefix = format!("throng-{}-", self.name);
        names
            .filter_map(|name| name.into_string().ok())
            .filter(|name| name.starts_with(&prefix))
            .collect()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.script("down").output();
    }
}

/// A program that runs on a host until it is ended.
fn waiting(lab: &Lab) -> Child {
    let mut command = lab.on("client2", "sleep");
    command.arg("1000").stdin(Stdio::null());
    command.spawn().expect("bash is there")
}

#[test]
fn a_lab_is_taken_down_with_all_that_runs_in_it() {
    let Some(lab) = Lab::up("--clients 2 --delay 1ms") else {
        return;
    };
    let mut sleeping = waiting(&lab);
    let held = lab.namespaces();
    assert_eq!(held.len(), 4, "a switch, a server, two clients: {held:?}");
    let again = lab.does("up", "").expect("bash is there");
    let printed = String::from_utf8_lossy(&again.stderr);
    assert!(printed.contains("is there already"), "{printed}");
    assert_eq!(lab.namespaces().len(), 4, "it was left alone");
    lab.run("down", "");
    assert_eq!(lab.namespaces(), Vec::<String>::new());
    assert!(!sleeping.wait().expect("it is ours").success());
}

/// Interrupted at any point, it removes what exists by then.
#[test]
fn an_interrupted_lab_leaves_nothing() {
    let lab = Lab::named();
    // So large that it is still being made when its beginning is noticed.
    let script = lab
        .script("up")
        .args(["--clients", "50"])
        .stderr(Stdio::piped())
        .spawn();
    let Ok(child) = script else {
        println!("not tried: there is no bash");
        return;
    };
    let pid = Pid::from_child(&child);
    let deadline = Instant::now() + Duration::from_mins(2);
    while lab.namespaces().len() < 3 && Instant::now() < deadline {
        if !std::path::Path::new(&format!("/proc/{pid}/root")).exists() || is_zombie(pid) {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let _ = kill_process(pid, Signal::TERM);
    let ended = child.wait_with_output().expect("it is ours");
    if ended.status.code() == Some(LACKING) {
        println!("not tried: {}", String::from_utf8_lossy(&ended.stderr));
        return;
    }
    assert_eq!(ended.status.code(), Some(143), "{ended:?}");
    assert_eq!(lab.namespaces(), Vec::<String>::new());
}

fn is_zombie(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.contains(") Z ")
}

#[test]
fn a_lab_used_wrongly_prints_usage() {
    let lab = Lab::named();
    for (command, options, says) in [
        ("up", "--rate fast", "--rate takes a value like 100mbit"),
        ("up", "--rate 0bit", "--rate takes a value like 100mbit"),
        ("up", "--delay 20", "--delay takes a value like 20ms"),
        ("up", "--loss 100", "--loss takes a value like 5"),
        ("up", "--clients 51", "--clients takes a value like 5"),
        ("up", "--loss", "--loss takes a value"),
        ("up", "--speed 3", "up has no option --speed"),
        ("exec", "server", "exec takes a host and a command"),
        ("cut", "", "cut takes a host"),
        ("begin", "", "there is no command begin"),
    ] {
        let Some(reported) = lab.does(command, options) else {
            return;
        };
        let printed = String::from_utf8_lossy(&reported.stderr);
        let code = reported.status.code();
        if code == Some(LACKING) {
            println!("not tried: {printed}");
            return;
        }
        assert_eq!(code, Some(2), "{command} {options}: {printed}");
        assert!(printed.contains(says), "{command} {options}: {printed}");
    }
    let reported = lab.does("exec", "server true").expect("bash is there");
    let printed = String::from_utf8_lossy(&reported.stderr);
    assert!(printed.contains("is not up"), "{printed}");
}

/// Without root it is refused, before anything else is tried.
#[test]
fn a_lab_without_root_is_refused() {
    let mut command = Command::new("bash");
    if rustix::process::geteuid().is_root() {
        command = Command::new("setpriv");
        command.args("--reuid 65534 --regid 65534 --clear-groups bash".split(' '));
    }
    // Other users may not be allowed to read the file.
    let script = std::fs::File::open(SCRIPT).expect("it is there");
    let reported = command.args(["-s", "--", "up"]).stdin(script).output();
    let Ok(reported) = reported else {
        println!("not tried: there is no bash, or no setpriv");
        return;
    };
    let printed = String::from_utf8_lossy(&reported.stderr);
    assert_eq!(reported.status.code(), Some(LACKING), "{printed}");
    assert!(printed.contains("needs root"), "{printed}");
}
