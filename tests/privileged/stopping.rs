//! Servers and commands that throng may not signal, because they run as another user.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Command, Output};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::program::THRONG;

/// A user without rights.
const NOBODY: u32 = 65534;

/// What is killed at the end, by a word of its command line.
struct Leftovers(String);

impl Drop for Leftovers {
    fn drop(&mut self) {
        for process in fs::read_dir("/proc").expect("root may do this").flatten() {
            let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
            let name = process.file_name();
            let pid = name.to_str().and_then(|name| name.parse().ok());
            if String::from_utf8_lossy(&line).contains(&self.0)
                && let Some(pid) = pid.and_then(Pid::from_raw)
            {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// Measures as an ordinary user. `{root}` is a program that runs its arguments as root, as sudo does.
fn measure_as_nobody(directory: &Path, arguments: &[&str]) -> Option<Output> {
    let setpriv = Path::new("/usr/bin/setpriv");
    if !rustix::process::geteuid().is_root() || !setpriv.exists() {
        println!("skipped: it needs root and setpriv");
        return None;
    }
    let root = directory.join("root");
    fs::copy(setpriv, &root).expect("root may do this");
    fs::set_permissions(&root, fs::Permissions::from_mode(0o4755)).expect("root may do this");
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).expect("root may do this");
    let home = directory.join("home");
    fs::create_dir(&home).expect("root may do this");
    chown(&home, Some(NOBODY), Some(NOBODY)).expect("root may do this");
    let mut command = Command::new(setpriv);
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", THRONG]);
    let root = format!("{} --reuid=0 --clear-groups", root.display());
    let arguments = arguments.iter().map(|word| word.replace("{root}", &root));
    command.args(["measure", "--allow-rough", "--retries", "0"]);
    command
        .args(arguments)
        .args("-r 1 -d 50ms -c 2 -o record".split(' '));
    let output = command
        .current_dir(&home)
        .output()
        .expect("root may do this");
    let printed = String::from_utf8_lossy(&output.stderr);
    if printed.contains("cannot start") {
        println!("skipped: no setuid programs here: {printed}");
        return None;
    }
    Some(output)
}

#[test]
fn a_server_of_root_that_an_ordinary_user_cannot_stop_is_named_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().display().to_string();
    let _leftovers = Leftovers(name.clone());
    let server =
        format!("{{root}} {THRONG} serve epoll --listen 127.0.0.1:{{port}} --log {name}/log");
    let arguments = [&*server, "--protocol", "echo", "--stop-timeout", "500ms"];
    let Some(output) = measure_as_nobody(directory.path(), &arguments) else {
        return;
    };
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("cannot stop throng "), "{printed}");
    assert!(printed.contains("it runs as root"), "{printed}");
}

#[test]
fn a_command_of_root_keeps_its_time_limit_and_is_named() {
    for stage in ["setup", "prepare", "conclude", "cleanup"] {
        let directory = tempfile::tempdir().unwrap();
        let name = directory.path().display().to_string();
        let _leftovers = Leftovers(name.clone());
        let option = format!("--{stage}");
        let command = format!("{{root}} sh -c 'sleep 3600; echo {name}'");
        let arguments = ["epoll", &option, &command, "--hook-timeout", "500ms"];
        let Some(output) = measure_as_nobody(directory.path(), &arguments) else {
            return;
        };
        let printed =
            String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
        // What happens after all trials is a warning in the record.
        let run = fs::read_to_string(directory.path().join("home/record/run.json")).unwrap();
        let all = format!("{printed}{run}");
        for part in [
            "did not finish within 500ms",
            "cannot stop sh ",
            "it runs as root",
        ] {
            assert!(all.contains(part), "{stage}, {part}: {all}");
        }
    }
}
