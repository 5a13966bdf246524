//! Bad input and the answers to it: standard error and exit code of each command line, in one snapshot.
//!
//! `INSTA_UPDATE=always cargo test --test processes messages` writes the snapshot anew.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::program::THRONG;

/// Command lines as a shell reads them, in a directory with the [files](write_files). TAKEN is a port in use.
const LINES: &[&str] = &[
    // Addresses.
    "load",
    "load ''",
    "load localhost",
    "load :",
    "load localhost:",
    "load localhost:0",
    "load localhost:99999",
    "load localhost:http",
    "load ::1:80",
    "load [::1",
    "load a:b:c",
    "load localhost:80/x",
    "load me@localhost:80",
    "load http:localhost",
    "load http:/localhost/",
    "load http://",
    "load http://:8080",
    "load 'http://localhost/a b'",
    "load gopher://localhost",
    "load tcp://localhost:80/x",
    "load unix:",
    "load http+unix:///run/app.sock/",
    "load 192.0.2.1:80",
    "load http://a/ http://b/ --unix-socket s",
    "load http://127.0.0.1:1/a http://127.0.0.1:1/b",
    "load 127.0.0.1:1 -c 2 -n 2",
    "serve epoll --listen 7777",
    "serve epoll --listen localhost:99999",
    "serve epoll --listen 192.0.2.1:0",
    "serve epoll --listen 192.0.2.1:0 --allow-remote",
    "serve epoll --listen 127.0.0.1:TAKEN",
    "serve epoll --listen unix:nowhere/s",
    "serve epoll --listen unix:s --reuse-port",
    "view . --listen 127.0.0.1:TAKEN",
    "view . --listen 0.0.0.0:0",
    "view . --listen unix:s",
    // Numbers, times and sizes.
    "load a:1 -c 0",
    "load a:1 -c -5",
    "load a:1 -c many",
    "load a:1 -c 5G",
    "load a:1 -c 1.5",
    "load a:1 -n 1m",
    "load a:1 -c 10 -n 9",
    "load a:1 -d 10",
    "load a:1 -d 0s",
    "load a:1 -d soon",
    "load a:1 -d=-1s",
    "load a:1 -d 88000h",
    "load a:1 --rate fast",
    "load a:1 --rate 0",
    "load a:1 --rate 10..5",
    "load a:1 --arrival sometimes --rate 5",
    "load a:1 --arrival poisson",
    "load a:1 --think 10",
    "load a:1 --think 2s..1s",
    "load a:1 --size 64K",
    "load a:1 --size 5x",
    "load a:1 --size 65MiB",
    "load a:1 --size 1kB:0,2kB",
    "load a:1 --size 1kB,1kB",
    "load a:1 --pipeline 2000",
    "load a:1 --syn-retries 0",
    "load a:1 --cpus one",
    "load a:1 --source 127.0.0.0/33",
    "run --size -1",
    "run --latency-at 120",
    "run --scale 2",
    "compare epoll poll --fail-if-slower 0.05",
    "compare epoll poll --fail-if-slower fast",
    "limit epoll --factor 1",
    "limit epoll --from 9 --max 8",
    "serve select --fd-setsize 64",
    // Names.
    "serve epol",
    "serve quux",
    "serve epoll --protocol ecko",
    "serve epoll --fd-setsize 4096",
    "load a:1 --engine uring",
    "load a:1 --protocol ecko",
    "run overviev",
    "run --models epoll,tread",
    "run --models epoll,epoll",
    "run --probes cpuu",
    "run overview --part nobody",
    "run fairness --control nobody",
    "list modells",
    "list models epol",
    "list metrics p98",
    "list figures nothing",
    "list --toml",
    "explain epol",
    "completions csh",
    "compare epol thread",
    "compare ./nowhere",
    "compare ./text",
    "compare ''",
    "compare 'sleep 1 | cat'",
    "compare 'sleep $PORT'",
    "compare \"sleep '1\"",
    "compare epoll poll --reference thread",
    "compare epoll poll --control thread",
    "compare epoll poll -n a -n a",
    "compare epoll -n a -n b",
    "compare epoll 'poll --listen 127.0.0.1:1'",
    "compare epoll 'poll --nonsense'",
    "compare epoll 'poll --fd-setsize 2000'",
    // Options that do not exist, or not together.
    "lod a:1",
    "load a:1 --duratoin 5s",
    "load a:1 --xyzzy",
    "load http://a/ -t 2 -c 10",
    "load http://a/ -rate 50",
    "load http://a/ -n 100 -q 50",
    "load http://a/ -d '{\"a\": 1}'",
    "load http://a/ --requests wrong.jsonl",
    "load http://a/ --http3",
    "serve epoll --port 80",
    "http://localhost/",
    "attack http://localhost/",
    "run --header 'A: b'",
    "serve epoll --fail-if 'p99 > 1s'",
    "load a:1 -d 1s -n 5",
    "load a:1 --each 1 --duration 1s",
    "load a:1 --at-once 5",
    "load a:1 --rate 5 --think 1s",
    "load a:1 --send a",
    "load a:1 --send a --expect close --protocol echo",
    "load a:1 --quiet --verbose",
    "run --each 1 --duration 1s",
    "run --protocol factorial --size 100",
    "load a:1 --protocol factorial --size 100",
    "run --server-address 127.0.0.1",
    "run --allow-remote",
    "compare epoll poll --rate 100 --latency-at 80",
    "compare epoll --method slices",
    "compare epoll --budget 5s",
    "compare epoll --fail-if-slower 5%",
    "compare epoll poll --ceiling --send a --expect close",
    "compare epoll --setup 'touch {port}'",
    "compare epoll poll thread --prepare true --prepare true",
    "compare epoll --env A",
    "compare epoll --server-limit stack=5",
    "compare epoll --stop-signal STOP",
    "compare epoll --pid 1",
    "compare 127.0.0.1:1 --ready tcp",
    "compare http://192.0.2.1/",
    "compare 127.0.0.1:1",
    "limit epoll --clients 5",
    "limit epoll --find rate --rate 5",
    "limit epoll --find nothing",
    "report record --diff",
    "report a b --diff c",
    // Requests and what is expected of replies.
    "load a:1 --path /",
    "load http://a/ --path a",
    "load http://a/ --path / --path /",
    "load http://a/b --path /",
    "load http://a/ --protocol echo",
    "load http://a/ -X 'A B'",
    "load http://a/ -H no",
    "load http://a/ -H 'Content-Length: 3'",
    "load http://a/ -u me",
    "load http://a/ --data @nowhere",
    "load http://a/ --content-type text/plain",
    "load http://a/ --expect-status 700",
    "load http://a/ --expect-body good",
    "load http://a/{nr} --variables",
    "load http://a/ --request-file nowhere",
    "load http://a/ --request-file wrong.jsonl",
    "load a:1 --send '' --expect close",
    "load a:1 --send a --expect bytes:0",
    "load a:1 --send a --expect 'regex:('",
    "load a:1 --send a --expect soon",
    "load ws://a/ --cookies",
    "load a:1 --text",
    // TLS.
    "load http://a/ -k",
    "load https://a/ -k --cacert ca.pem",
    "load https://127.0.0.1:1/ --cacert nowhere",
    "load https://127.0.0.1:1/ --cert a.pem",
    "compare epoll poll --tls",
    // Conditions.
    "load a:1 --fail-if p99",
    "load a:1 --fail-if 'p99 => 10ms'",
    "load a:1 --fail-if 'p99 > 10'",
    "load a:1 --fail-if 'p99 > 10 days'",
    "load a:1 --fail-if 'latency > 10ms'",
    "load a:1 --fail-if 'errors > 1ms'",
    "load a:1 --fail-if 'memory > 1MB'",
    "load a:1 --fail-if 'a: p99 > 1s'",
    "compare epoll poll --fail-if 'thread: p99 > 1s'",
    "limit epoll --until 'epoll: errors > 0'",
    // Files and directories.
    "run nowhere.toml",
    "run empty",
    "run key.toml",
    "run value.toml",
    "run -o text/x",
    "run -o others",
    "run --resume empty",
    "run --resume nowhere",
    "run --resume record -c 5",
    "compare epoll --baseline empty",
    "compare epoll --cwd nowhere",
    "load 127.0.0.1:1 --clients-csv text/x",
    "load 127.0.0.1:1 --export-json text/x",
    "serve epoll --listen 127.0.0.1:0 --log text/x",
    "report empty",
    "report .",
    "report nowhere",
    "report damaged",
    "report empty --diff nowhere",
    "reproduce empty",
    "view nowhere",
    "flows nowhere",
    "flows text",
    "man text",
];

/// The files in the directory in which the commands run.
fn write_files(directory: &Path) {
    let head = "name = \"mine\"\nquestion = \"Which?\"\n";
    for (name, text) in [
        ("text", "neither a record nor a capture".to_owned()),
        (
            "wrong.jsonl",
            "{\"path\": \"/\"}\n{\"paht\": \"/\"}\n".to_owned(),
        ),
        ("key.toml", format!("{head}clientz = [10]\n")),
        (
            "value.toml",
            format!("{head}clients = [10]\nduration = \"10\"\n"),
        ),
        ("others/report.md", "mine".to_owned()),
        ("damaged/run.json", "{\"schema_version\": ".to_owned()),
        ("empty/.keep", String::new()),
    ] {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().expect("it is in the directory")).expect("it can be made");
        fs::write(path, text).expect("it can be written");
    }
}

/// A command line with its exit code and standard error.
fn answer(line: &str, directory: &Path, port: &str) -> String {
    let words = shlex::split(line).expect("its quotes are closed");
    let mut command = assert_cmd::Command::new(THRONG);
    command.current_dir(directory).env_remove("COLUMNS");
    command.args(words.iter().map(|word| word.replace("TAKEN", port)));
    let finished = super::finish(command);
    let error = finished
        .err
        .replace(port, "TAKEN")
        .replace(&directory.display().to_string(), "DIRECTORY");
    let mut text = format!("$ throng {line}\nexit code {}\n", finished.code);
    for line in error.lines() {
        let _ = writeln!(text, "  {line}");
    }
    text.replace("  \n", "\n")
}

#[test]
fn bad_input_is_answered() {
    let directory = tempfile::tempdir().expect("a directory");
    write_files(directory.path());
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = taken.local_addr().expect("it is bound").port().to_string();
    let answers = Mutex::new(vec![String::new(); LINES.len()]);
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(line) = LINES.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let place = LINES.iter().position(|other| other == line);
                    let answer = answer(line, directory.path(), &port);
                    answers.lock().expect("no thread panicked")[place.expect("it is a line")] =
                        answer;
                }
            });
        }
    });
    let answers = answers.into_inner().expect("no thread panicked");
    insta::assert_snapshot!("messages", answers.join("\n"));
}
