//! The book: its pages about models are those that the program makes, its figures those of the reference run,
//! and the system calls in it those that servers make here too.
//!
//! `UPDATE_BOOK=1 cargo test --test readme` writes pages and figures anew. With the path of a program instead of 1, what
//! is carried along is first traced anew with that program, which should be one that users have: without debug
//! assertions. Pages made of what was traced or counted anew need a second time, by the program that carries it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use throng::learn::figures::{Figures, Row};
use throng::learn::traced::{About, Traced};
use throng::learn::{self, Lesson, book};
use throng::serve::Model;
use throng::serve::models::MODELS;

const THRONG: &str = env!("CARGO_BIN_EXE_throng");
/// The reference run of all models.
const RUN: &str = "results/2026-11-22-vm/models";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn updates() -> bool {
    std::env::var_os("UPDATE_BOOK").is_some()
}

/// Demands that a file has this content, or gives it to it.
fn demand_content(path: &Path, content: &str) {
    if updates() {
        std::fs::write(path, content).expect("the file can be written");
        return;
    }
    let text = std::fs::read_to_string(path);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let path = path.display();
    assert!(
        text == content,
        "{path}: run UPDATE_BOOK=1 cargo test --test readme, and read the change"
    );
}

fn models() -> Vec<&'static dyn Model> {
    MODELS.to_vec()
}

#[test]
fn the_pages_about_models_are_current() {
    let directory = root().join("docs/models");
    let mut pages = BTreeSet::from(["README.md".to_owned()]);
    demand_content(&directory.join("README.md"), &book::contents(MODELS));
    for model in models() {
        let lesson = Lesson::about(model).expect("every model has a lesson");
        let name = book::file_name(model);
        demand_content(&directory.join(&name), &book::page(model, lesson));
        pages.insert(name);
    }
    let entries = std::fs::read_dir(directory).expect("the pages are there");
    for entry in entries {
        let name = entry.expect("it can be read").file_name();
        assert!(
            pages.contains(&*name.to_string_lossy()),
            "{name:?} is about no model"
        );
    }
}

#[test]
fn markdown_is_printed_as_it_stands_in_the_book() {
    if updates() {
        return; // the page is being written
    }
    let page = std::fs::read_to_string(root().join("docs/models/poll.md")).expect("it is there");
    let told = assert_cmd::Command::new(THRONG)
        .args(["explain", "poll", "--markdown"])
        .output()
        .expect("the program can be started");
    assert_eq!(
        String::from_utf8_lossy(&told.stdout).trim_end(),
        page.trim_end()
    );
}

/// The program to trace anew with, if that is wished.
fn other_program() -> Option<String> {
    let told = std::env::var("UPDATE_BOOK").ok();
    told.filter(|path| path.contains('/'))
}

/// What a server does for one client, traced now; none where that is not possible here.
fn trace(model: &str) -> Option<Traced> {
    let told = assert_cmd::Command::new(other_program().as_deref().unwrap_or(THRONG))
        .args(["explain", model, "--json"])
        .output()
        .expect("the program can be started");
    let error = String::from_utf8_lossy(&told.stderr);
    if error.contains("does not let system calls be traced") || error.contains("io_uring") {
        println!("not tried: {model}: {error}");
        return None;
    }
    assert!(told.status.success(), "{model}: {error}");
    Some(serde_json::from_slice(&told.stdout).expect("what was traced is JSON"))
}

/// The calls that tell models apart, each with the names it has on one machine or another. What is left out is
/// the C library's and the runtime's, or chance's: memory, who finds a lock taken, how a thread is made ready.
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

/// Whether a model may make a call in a step, or not, as it happens.
fn is_chance(model: &str, about: About, call: &str) -> bool {
    match model {
        // Its runtime wakes threads, or does not, as they happen to sleep.
        "tokio" => ["read", "write", "epoll_wait"].contains(&call),
        // From time to time it counts its threads, in a file.
        "aio" => about != About::Leaves && call == "close",
        // It goes round and round, and may be anywhere when the client leaves.
        "polling" => about == About::Leaves && call == "accept",
        // An idle child may come too late to see that there was a client.
        "prefork" => about == About::Comes && call == "poll",
        _ => false,
    }
}

/// The calls of a step that do not depend on chance.
fn names(traced: &Traced, about: About, model: &str) -> BTreeSet<&'static str> {
    let made = traced.step(about);
    let is_made = |names: &[&str]| made.iter().any(|call| names.contains(&call.name.as_str()));
    let found = COMPARED.iter().filter(|(_, names)| is_made(names));
    let found = found.map(|(name, _)| *name);
    found
        .filter(|name| !is_chance(model, about, name))
        .collect()
}

#[test]
fn servers_make_the_calls_that_the_book_says() {
    let models: Vec<&str> = models().iter().map(|model| model.info().name).collect();
    let traced: BTreeMap<&str, Traced> = std::thread::scope(|scope| {
        let threads = models.chunks(models.len().div_ceil(2)).map(|models| {
            scope.spawn(|| {
                let traced = models.iter().map(|model| Some((*model, trace(model)?)));
                traced.flatten().collect::<Vec<_>>()
            })
        });
        let threads: Vec<_> = threads.collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("all were traced"))
            .collect()
    });
    if other_program().is_some() {
        let text = serde_json::to_string_pretty(&traced).expect("it is plain data") + "\n";
        std::fs::write(root().join("src/learn/reference/traced.json"), text)
            .expect("it can be written");
        return;
    }
    for (model, traced) in traced {
        let told = learn::traced().get(model);
        let told = told.unwrap_or_else(|| panic!("{model} has never been traced"));
        for about in [About::Comes, About::Asks, About::Leaves] {
            let (now, told) = (names(&traced, about, model), names(told, about, model));
            assert_eq!(now, told, "{model}, {about:?}: {traced:#?}");
        }
    }
}

/// The figures of the reference run, from its summary.
fn figures() -> Figures {
    let read = |file: &str| -> Value {
        let path: PathBuf = root().join(RUN).join(file);
        let text = std::fs::read_to_string(&path);
        let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_json::from_str(&text).expect("it is JSON")
    };
    let (summary, run) = (read("summary.json"), read("run.json"));
    let rows = summary["rows"].as_array().expect("a summary has rows");
    let name = |row: &Value| {
        row["server"]
            .as_str()
            .expect("a row has its server")
            .to_owned()
    };
    let memory = |row: &Value| row["server_side"]["pss_bytes"].as_f64();
    let alone = |model: &str| {
        let alone = rows
            .iter()
            .find(|row| row["clients"] == 1 && name(row) == model);
        alone.and_then(memory)
    };
    let row = |row: &Value| {
        let (model, clients) = (
            name(row),
            row["clients"].as_u64().expect("and its crowd") as u32,
        );
        // What the first one costs cannot be told from what the server has anyway, and what few pages come to
        // not from chance.
        let more = memory(row)
            .zip(alone(&model))
            .map(|(all, alone)| all - alone);
        let more = more.filter(|more| clients > 1 && *more >= 64.0 * 1024.0);
        let bytes_per_client = more.map(|more| more / f64::from(clients - 1));
        Row {
            clients,
            served: row["served"]
                .as_f64()
                .expect("and how many were served")
                .round() as u32,
            replies_per_s: row["replies_per_s"]["median"].as_f64(),
            cpu_us_per_reply: row["server_side"]["cpu_us_per_reply"]["median"].as_f64(),
            bytes_per_client,
            fairness: row["fairness"]["jain"]["median"].as_f64(),
            syscalls_per_reply: row["counted"]["server"]["per_reply"]["syscalls"].as_f64(),
            model,
        }
    };
    let host = &run["host"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kernel = text(&host["kernel"]);
    let kernel: Vec<&str> = kernel.split('.').take(2).collect();
    let day = text(&run["started_at"]);
    Figures {
        run: RUN.to_owned(),
        host: format!(
            "{}, {} CPUs, {}",
            text(&host["cpu_model"]),
            host["cpus"],
            kernel.join(".")
        ),
        made_at: day.split('T').next().unwrap_or_default().to_owned(),
        rows: rows.iter().map(row).collect(),
    }
}

#[test]
fn the_figures_are_those_of_the_reference_run() {
    let text = serde_json::to_string_pretty(&figures()).expect("it is plain data") + "\n";
    demand_content(&root().join("src/learn/reference/figures.json"), &text);
}
