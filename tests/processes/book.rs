//! The system calls in the pages about models are those that servers make here too.
//!
//! `UPDATE_CALLS=PROGRAM cargo test --test processes book` traces them anew, with a program that should be one that users
//! have: without debug assertions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use throng::learn::calls;
use throng::learn::generated::{parts, renewed};
use throng::record::traced::Traced;
use throng::serve::models::MODELS;

use crate::support::program::THRONG;

fn page(model: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/models/{model}.md"))
}

/// What a server does for one client, traced now; none where that is not possible here.
fn trace(program: &str, model: &str) -> Option<String> {
    let reported = assert_cmd::Command::new(program)
        .args(["explain", model, "--json"])
        .output()
        .expect("the program can be started");
    let error = String::from_utf8_lossy(&reported.stderr);
    if error.contains("system calls cannot be traced") || error.contains("io_uring") {
        println!("not tried: {model}: {error}");
        return None;
    }
    assert!(reported.status.success(), "{model}: {error}");
    let traced: Traced = serde_json::from_slice(&reported.stdout).expect("what was traced is JSON");
    Some(calls::markdown(&traced, "Traced", 76))
}

/// The calls that distinguish models, each with its names on different machines. The rest belongs to the C library and
/// the runtime, or is random: memory, contended locks, how a thread is set up.
const COMPARED: [(&str, &[&str]); 17] = [
    ("recv", &["recvfrom"]),
    ("send", &["sendto"]),
    ("read", &["read"]),
    ("write", &["write"]),
    ("pread", &["pread64"]),
    ("pwrite", &["pwrite64"]),
    ("accept", &["accept", "accept4"]),
    ("poll", &["poll", "ppoll"]),
    ("select", &["select", "pselect6"]),
    ("epoll_wait", &["epoll_wait", "epoll_pwait", "epoll_pwait2"]),
    ("epoll_ctl", &["epoll_ctl"]),
    ("io_uring_enter", &["io_uring_enter"]),
    ("clone", &["clone", "clone3", "fork", "vfork"]),
    ("wait", &["wait4", "waitid"]),
    ("exit", &["exit", "exit_group"]),
    ("signal", &["rt_sigqueueinfo", "rt_tgsigqueueinfo"]),
    ("close", &["close"]),
];

/// The steps of a client, as in the headings of calls.
const STEPS: [&str; 3] = ["A client comes", "It asks", "It leaves"];

/// Whether a model may make a call in a step, or not, as it happens.
fn is_chance(model: &str, step: &str, call: &str) -> bool {
    match model {
        // Its runtime wakes threads, or does not, as they happen to sleep.
        "tokio" => ["read", "write", "epoll_wait"].contains(&call),
        // From time to time it counts its threads, in a file.
        "aio" => step != "It leaves" && call == "close",
        // It goes round and round, and may be anywhere when the client leaves.
        "polling" => step == "It leaves" && call == "accept",
        // An idle child may come too late to see that there was a client.
        "prefork" => step == "A client comes" && call == "poll",
        _ => false,
    }
}

/// The calls of a step that do not depend on chance.
fn names(calls: &str, step: &str, model: &str) -> BTreeSet<&'static str> {
    let (_, step_on) = calls.split_once(&format!("**{step}")).expect("a step");
    let made: BTreeSet<&str> = step_on
        .split("```")
        .nth(1)
        .expect("it has a block of calls")
        .lines()
        .filter_map(|line| line.split_once('(')?.0.split(' ').next_back())
        .collect();
    let is_made = |names: &[&str]| names.iter().any(|name| made.contains(name));
    let found = COMPARED
        .iter()
        .filter(|(_, names)| is_made(names))
        .map(|(name, _)| *name);
    found.filter(|name| !is_chance(model, step, name)).collect()
}

#[test]
fn servers_make_the_calls_on_their_pages() {
    let other = std::env::var("UPDATE_CALLS").ok();
    let program = other.as_deref().unwrap_or(THRONG);
    let models: Vec<&str> = MODELS.iter().map(|model| model.info.name).collect();
    let traced: BTreeMap<&str, String> = std::thread::scope(|scope| {
        let threads: Vec<_> = models
            .chunks(models.len().div_ceil(2))
            .map(|models| {
                scope.spawn(|| {
                    let traced = models
                        .iter()
                        .map(|model| Some((*model, trace(program, model)?)));
                    traced.flatten().collect::<Vec<_>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("all were traced"))
            .collect()
    });
    for (model, traced) in traced {
        let path = page(model);
        let page = std::fs::read_to_string(&path).expect("every model has a page");
        if other.is_some() {
            let page = renewed(&page, |part| match part.name {
                "calls" => {
                    format!("{traced}\n`throng explain {model}` traces them on your machine.\n")
                }
                _ => part.text.to_owned(),
            });
            std::fs::write(path, page).expect("it can be written");
            continue;
        }
        let reported = parts(&page)
            .into_iter()
            .find(|part| part.name == "calls")
            .expect("every page has the calls of a request")
            .text;
        for step in STEPS {
            let (now, reported) = (names(&traced, step, model), names(reported, step, model));
            assert_eq!(now, reported, "{model}, {step}: {traced}");
        }
    }
}
