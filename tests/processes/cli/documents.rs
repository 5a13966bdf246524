//! Every command of the README and of the documents is run, with fewer clients and for less time, against servers in
//! place of the reader's own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use throng::protocol::{Offer, PROTOCOLS};
use throng::registry::Entry as _;
use throng::study::STUDIES;
use throng::sys::process::usable_cpus;
use throng::tls::fixture::{
    Authority, Server as TlsServer, TlsServerSettings, Valid, server_config,
};

use super::views::View;
use crate::support::program::THRONG;
use crate::support::server::Server;

/// Other commands in the documents, and why they are not run here.
const OTHERS: &[(&str, &str)] = &[
    ("apt-get", "nothing is installed by a test"),
    ("cargo", "this runs under it"),
    ("lab/lab", "tests/privileged has networks of their own"),
    ("lab/slurm", "needs Slurm"),
    ("lab/mpirun", "crates/throng-mpi has tests under mpirun"),
    ("mdbook", "it is no part of throng"),
    ("docker", "needs a container runtime"),
    ("install", "nothing is installed by a test"),
    ("kubectl", "needs a cluster"),
    ("mpirun", "crates/throng-mpi has tests under mpirun"),
    ("packaging/image", "tests/processes/images.rs runs it"),
    ("packaging/package", "builds everything"),
    ("scp", "copies to another machine"),
    ("ssh", "crates/throng-mpi/tests/mpi/over_ssh.rs runs sshd"),
    (
        "ssh-copy-id",
        "crates/throng-mpi/tests/mpi/over_ssh.rs has keys",
    ),
    (
        "ssh-keygen",
        "crates/throng-mpi/tests/mpi/over_ssh.rs makes keys",
    ),
    ("srun", "needs Slurm"),
    ("tcpdump", "tests/privileged/flows.rs runs it"),
    ("throng-mpi", "crates/throng-mpi has tests under mpirun"),
];

/// Whole lines to be typed, without the content of host files and scripts.
fn commands(page: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut fence = None;
    let mut whole = String::new();
    for line in page.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            fence = fence.is_none().then(|| language.to_owned());
            continue;
        }
        let typed = match fence.as_deref() {
            Some("sh") => line,
            Some("console") => line.strip_prefix("$ ").unwrap_or_default(),
            _ => continue,
        };
        whole += typed.strip_suffix('\\').unwrap_or(typed);
        whole.push(' ');
        let is_whole = !typed.ends_with('\\') && shlex::split(&whole).is_some();
        if is_whole && !whole.trim().is_empty() {
            all.push(std::mem::take(&mut whole));
        }
    }
    all
}

/// Replaces the value of an option, or adds it.
fn set(words: &mut Vec<String>, names: &[&str], value: &str) {
    match words.iter().position(|word| names.contains(&word.as_str())) {
        Some(place) => value.clone_into(&mut words[place + 1]),
        None => words.extend([names[0].to_owned(), value.to_owned()]),
    }
}

fn has(words: &[String], names: &[&str]) -> bool {
    words.iter().any(|word| names.contains(&word.as_str()))
}

/// Options that end a load before its duration.
const ENDS: [&str; 4] = ["--each", "-n", "--requests", "--bytes"];

/// As many numbers of clients as two, and each small; as many models as two.
fn fewer(words: &mut [String]) {
    let value = |words: &[String], names: &[&str]| {
        let place = words.iter().position(|word| names.contains(&word.as_str()));
        place.map(|place| place + 1)
    };
    if let Some(place) = value(words, &["--clients", "-c"]) {
        let has_several = words[place].contains(',');
        (if has_several { "1,2" } else { "2" }).clone_into(&mut words[place]);
    }
    if let Some(place) = value(words, &["--models"]) {
        let models: Vec<&str> = words[place].split(',').take(2).collect();
        words[place] = models.join(",");
    }
}

/// As few trials as a command of a page allows, each short.
fn few_trials(command: &str, words: &mut Vec<String>) {
    if !has(words, &["--clients", "-c"]) {
        words.extend(["--clients".to_owned(), "2".to_owned()]);
    }
    if command == "run" && !has(words, &["--models"]) {
        words.extend(["--models".to_owned(), "poll,epoll".to_owned()]);
    }
    if !has(words, &ENDS[..1]) {
        if !has(words, &["--profile"]) {
            set(words, &["--duration", "-d"], "200ms");
        }
        set(words, &["--warm-up"], "0s");
        set(words, &["--warm-up-limit"], "1ms");
    }
    set(words, &["--runs", "-r"], "1");
    // Trials that a page does not request.
    for (name, value) in [
        ("--probes", "cpu"),
        ("--control", "none"),
        ("--retries", "0"),
    ] {
        if !has(words, &[name]) {
            set(words, &[name], value);
        }
    }
    if command == "run" && !has(words, &["--no-ceiling"]) {
        words.push("--no-ceiling".to_owned());
    }
    if command == "run" && !has(words, &["--latency-at"]) {
        set(words, &["--latency-at"], "none");
    }
}

/// The same command, but short.
fn smaller(mut words: Vec<String>) -> Vec<String> {
    let command = words[0].clone();
    fewer(&mut words);
    for word in words.iter_mut().skip(1) {
        if word.contains("{port}") || word.contains("{socket}") {
            "./mine {port}".clone_into(word);
        }
    }
    // Times of others are in seconds too.
    for (names, value) in [
        (["--think"], "1ms"),
        (["--ramp"], "10ms"),
        (["--rate"], "200"),
    ] {
        if has(&words, &names) {
            set(&mut words, &names, value);
        }
    }
    for side in ["--server-cpus", "--client-cpus"] {
        if has(&words, &[side]) {
            // Number 0 may be none of those that this test may use.
            set(&mut words, &[side], &usable_cpus()[0].to_string());
        }
    }
    if has(&words, &["--at-once"]) {
        set(&mut words, &["--at-once"], "1");
    }
    let study = words
        .get(1)
        .filter(|word| {
            Path::new(word)
                .extension()
                .is_some_and(|extension| extension == "toml")
                || STUDIES.iter().any(|study| study.info().name == **word)
        })
        .cloned();
    match command.as_str() {
        // Minutes long; that they can be read and what they would do is what is left.
        "run" if study.is_some() => {
            words = vec!["list".to_owned(), "studies".to_owned()];
            words.extend(study);
        }
        "run" | "compare" | "measure" => few_trials(&command, &mut words),
        "limit" => {
            for (name, value) in [
                ("--tries", "3"),
                ("--confirm", "1"),
                ("--max", "2"),
                ("--from", "2"),
            ] {
                set(&mut words, &[name], value);
            }
            if !has(&words, &["--probes"]) {
                set(&mut words, &["--probes"], "cpu");
            }
            set(&mut words, &["--duration", "-d"], "200ms");
            set(&mut words, &["--warm-up"], "0s");
        }
        "load" if !has(&words, &ENDS) => {
            // While other tests run, connecting more of them may take longer than the load.
            if !has(&words, &["--clients", "-c"]) {
                set(&mut words, &["--clients"], "2");
            }
            // On a busy machine neither side may run for some hundred milliseconds.
            set(&mut words, &["--duration", "-d"], "1s");
            set(&mut words, &["--warm-up"], "0s");
        }
        _ => {}
    }
    words
}

/// Answers PING, as a well-known server does.
fn pong() -> std::io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            std::thread::spawn(move || {
                let mut request = [0; 6];
                while stream.read_exact(&mut request).is_ok() {
                    if stream.write_all(b"+PONG\r\n").is_err() {
                        return;
                    }
                }
            });
        }
    });
    Ok(address)
}

/// Whether a word names a file of steps.
fn has_steps(word: &str) -> bool {
    [".hurl", ".har"]
        .iter()
        .any(|ending| word.ends_with(ending))
}

/// A directory like a reader's, and servers as the page has them running.
struct Reader {
    directory: tempfile::TempDir,
    servers: BTreeMap<String, Server>,
    /// The issuer of the certificate in ca.pem, once servers encrypt.
    authority: Option<Authority>,
}

impl Reader {
    fn new() -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().expect("a directory can be made");
        let script =
            format!("#!/bin/sh\nexec {THRONG} serve epoll --protocol http --listen 127.0.0.1:$1\n");
        for name in ["mine", "old", "new"] {
            let path = directory.path().join(name);
            fs::write(&path, &script).expect("it can be written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        }
        let requests = "{\"path\": \"/\", \"weight\": 3}\n{\"path\": \"/news\"}\n";
        fs::write(directory.path().join("requests.jsonl"), requests).expect("it can be written");
        let service = "syntax = \"proto3\";\npackage helloworld;\n\
                       service Greeter { rpc SayHello (Request) returns (Reply); }\n\
                       message Request { string name = 1; }\nmessage Reply { string text = 1; }\n";
        for (name, content) in [("helloworld.proto", service), ("message.bin", "\n\x03Ada")] {
            fs::write(directory.path().join(name), content).expect("it can be written");
        }
        // A capture of nothing: its head alone.
        let head = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1].map(u32::to_le_bytes);
        fs::write(directory.path().join("load.pcap"), head.concat()).expect("it can be written");
        Self {
            directory,
            servers: BTreeMap::new(),
            authority: None,
        }
    }

    /// The address of a server that encrypts; `None` for one that answers PING.
    fn encrypted(&mut self, protocol: Option<&'static str>) -> String {
        let authority = self.authority.get_or_insert_with(|| {
            let authority = Authority::new();
            let known = self.directory.path().join("ca.pem");
            fs::copy(authority.cacert(), known).expect("it can be written");
            authority
        });
        let certified = authority.issue(&["127.0.0.1"], Valid::Now);
        let protocol = protocol.map(|name| {
            let mut all = PROTOCOLS.iter();
            all.find(|known| known.name() == name).expect("it is one")
        });
        let alpn = protocol.and_then(|protocol| protocol.alpn());
        let settings = TlsServerSettings {
            alpn: alpn.iter().map(|name| name.as_bytes().to_vec()).collect(),
            ..TlsServerSettings::default()
        };
        let config = server_config(&certified, &settings);
        let Some(protocol) = protocol else {
            let server = TlsServer::start(config, |stream| {
                let mut request = [0; 6];
                while stream.read_exact(&mut request).is_ok() {
                    if stream.write_all(b"+PONG\r\n").is_err() {
                        return false;
                    }
                }
                true
            });
            return server.address.to_string();
        };
        let server = TlsServer::start(config, move |stream| {
            let mut session = protocol.session(&Offer::default());
            let (mut bytes, mut out) = (vec![0; 65_536], Vec::new());
            loop {
                let Ok(count) = stream.read(&mut bytes) else {
                    return false;
                };
                let mut rest = &bytes[..count];
                while !rest.is_empty() {
                    let Ok(step) = session.receive(rest, &mut out) else {
                        return false;
                    };
                    out.extend_from_slice(&rest[..step.reflected]);
                    rest = &rest[step.consumed..];
                }
                if count == 0 || stream.write_all(&out).is_err() || stream.flush().is_err() {
                    return count == 0;
                }
                out.clear();
            }
        });
        format!("https://{}/", server.address)
    }

    /// The address of a server with the command's protocol, in place of the page's.
    fn address(&mut self, words: &[String]) -> String {
        let pings = words.iter().any(|word| word.contains("PONG"));
        let scheme = words[1]
            .split_once("://")
            .map(|(scheme, _)| scheme.to_owned());
        let of_scheme = match scheme.as_deref() {
            None => "echo",
            Some(scheme) if scheme.starts_with("ws") => "websocket",
            Some("h2c") => "http2",
            Some(_) => "http",
        };
        let place = |option: &str| words.iter().position(|word| word == option);
        let named = place("--protocol").map(|place| words[place + 1].as_str());
        let protocol = match named.unwrap_or(of_scheme) {
            _ if place("--http2").is_some() => "http2",
            _ if place("--grpc").is_some() => "grpc",
            name => name,
        };
        if words[1].starts_with("https://") || place("--tls").is_some() {
            let mut known = PROTOCOLS.iter().map(|known| known.name());
            let protocol = known.find(|known| *known == protocol && !pings);
            return self.encrypted(protocol);
        }
        if pings {
            return pong().expect("a port is free");
        }
        let server = self.servers.entry(protocol.to_owned()).or_insert_with(|| {
            Server::start(&["epoll", "--protocol", protocol]).expect("a server can be started")
        });
        let address = server.address();
        match scheme {
            Some(_) if of_scheme == "websocket" => format!("ws://{address}/"),
            Some(scheme) if scheme == "h2c" => format!("h2c://{address}/"),
            Some(_) => format!("http://{address}/"),
            None => address.to_string(),
        }
    }

    /// Writes the files of steps that pages name, for a server that runs.
    fn write_steps(&mut self) {
        let host = self.address(&[String::new(), "http://".to_owned()]);
        let host = host.trim_end_matches('/');
        let steps = format!(
            "# login\nGET {host}/login?name={{{{name}}}}\nHTTP 200\n\n# order\nGET {host}/order\nHTTP 200\n"
        );
        let visit = format!(
            "{{\"log\": {{\"entries\": [{{\"request\": {{\"method\": \"GET\", \"url\": \"{host}/\", \"headers\": []}}}}]}}}}"
        );
        for (name, content) in [
            ("login.hurl", steps.as_str()),
            ("visit.har", &visit),
            ("users.csv", "name,password\nann,1\nbob,2\n"),
        ] {
            fs::write(self.directory.path().join(name), content).expect("it can be written");
        }
    }

    /// Runs one command of the page, without the program's name; returns what went wrong.
    fn run(&mut self, words: Vec<String>, to: Option<&str>) -> Result<(), String> {
        let mut words = smaller(words);
        if words.iter().any(|word| has_steps(word)) {
            self.write_steps();
        }
        match words[0].as_str() {
            "serve" => {
                let rest: Vec<&str> = words[1..].iter().map(String::as_str).collect();
                let mut rest = rest;
                if let Some(place) = rest.iter().position(|word| *word == "--listen") {
                    rest.drain(place..place + 2);
                }
                let server = Server::start(&rest).map_err(|error| error.to_string())?;
                return server.stop().map(|_| ()).map_err(|error| error.to_string());
            }
            "view" => {
                let results = self.directory.path().join("throng-results");
                fs::create_dir_all(results).map_err(|error| error.to_string())?;
                return match View::start_in(self.directory.path(), &words[1..]).end() {
                    Some(0) => Ok(()),
                    code => Err(format!("it ended with {code:?}")),
                };
            }
            // The file names the server.
            "load" if has_steps(&words[1]) => {}
            "load" => {
                words[1] = self.address(&words);
                if let Some(place) = words.iter().position(|word| word == "--unix-socket") {
                    words.drain(place..place + 2);
                }
            }
            // Servers that run already.
            "compare" | "measure" | "limit" => {
                let named = |word: &&mut String| word.starts_with("http://127.0.0.1:");
                for word in words.iter_mut().skip(1).filter(named) {
                    *word = self.address(&[String::new(), "http://".to_owned()]);
                }
            }
            _ => {}
        }
        let mut command = Command::new(THRONG);
        command.args(&words).current_dir(self.directory.path());
        // For what `examples/services/start` makes.
        command.env("TMPDIR", self.directory.path());
        let output = command.output().map_err(|error| error.to_string())?;
        if let Some(to) = to {
            fs::write(self.directory.path().join(to), &output.stdout).expect("it can be written");
        }
        // A threshold may be missed, and this machine may be too busy for good results.
        let measures = ["run", "compare", "measure"].contains(&words[0].as_str())
            || words.iter().any(|word| word == "--fail-if");
        let expected = measures && matches!(output.status.code(), Some(3 | 4));
        if output.status.success() || expected {
            return Ok(());
        }
        Err(format!(
            "throng {}\nended with {}: {}{}",
            words.join(" "),
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ))
    }
}

/// Whether this is the first time that such a command is to be run. One that measures does the same on each page, and
/// leaves nothing that another needs, unless it names a place for it.
fn is_first(words: &[String], to: Option<&str>) -> bool {
    static RUN: Mutex<BTreeSet<Vec<String>>> = Mutex::new(BTreeSet::new());
    let measures = ["run", "compare", "measure", "limit", "load"].contains(&words[0].as_str());
    let stays = to.is_some()
        || words
            .iter()
            .any(|word| ["-o", "--output"].contains(&word.as_str()) || word.contains(".csv"));
    !measures
        || stays
        || RUN
            .lock()
            .expect("nothing here panics")
            .insert(smaller(words.to_vec()))
}

/// Runs the commands of a page; returns their number, and what went wrong.
fn follow(page: &Path) -> (usize, Vec<String>) {
    let mut reader = Reader::new();
    let (mut run, mut wrong) = (0, Vec::new());
    for line in commands(&fs::read_to_string(page).expect("a page can be read")) {
        // Command substitution occurs in scripts only.
        if line.contains("$(") {
            continue;
        }
        let Some(words) = shlex::split(&line) else {
            wrong.push(format!("{line}: a quote is not closed"));
            continue;
        };
        for words in words.split(|word| word == "&&" || word == "&") {
            let before = words
                .iter()
                .take_while(|word| *word == "sudo" || word.contains('='));
            let words = &words[before.count()..];
            let Some(program) = words.first() else {
                continue;
            };
            let program = program.trim_start_matches("target/release/");
            let is_elsewhere = words.iter().any(|word| {
                // A record of another day, and other machines.
                word.contains('…') || word == "--server-address" || word == "--allow-remote"
            });
            // Servers of a page that encrypt are those of cli/encrypted.rs.
            let is_load = words.get(1).is_some_and(|word| word == "load");
            let encrypts = words.iter().any(|word| word == "--tls");
            let is_elsewhere = is_elsewhere || (encrypts && !is_load);
            if program != "throng" {
                if !OTHERS.iter().any(|(name, _)| *name == program) {
                    wrong.push(format!("{line}: nothing is known of {program}"));
                }
                continue;
            }
            if is_elsewhere {
                continue;
            }
            let (words, to) = match words.iter().position(|word| word == ">") {
                Some(place) => (&words[1..place], words.get(place + 1)),
                None => (&words[1..], None),
            };
            let to = to.map(|to| to.rsplit('/').next().unwrap_or(to));
            if !is_first(words, to) {
                run += 1;
                continue;
            }
            match reader.run(words.to_vec(), to) {
                Ok(()) => run += 1,
                Err(error) => wrong.push(format!("{line}\n{error}")),
            }
        }
    }
    (run, wrong)
}

fn markdown_in(directory: &Path, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("documents are there") {
        let path = entry.expect("documents are there").path();
        if path.is_dir() {
            markdown_in(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}

#[test]
fn every_command_of_the_documents_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![root.join("README.md")];
    markdown_in(&root.join("docs"), &mut pages);
    // The longest come first, so that none of them is left at the end.
    let length = |page: &PathBuf| fs::read_to_string(page).map_or(0, |text| commands(&text).len());
    pages.sort_by_key(|page| std::cmp::Reverse(length(page)));
    let (next, all) = (AtomicUsize::new(0), Mutex::new((0, Vec::new())));
    // Most of the time they wait.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (run, wrong) = follow(page);
                    let mut all = all.lock().unwrap();
                    all.0 += run;
                    let wrong = wrong.into_iter();
                    all.1
                        .extend(wrong.map(|wrong| format!("{}: {wrong}", page.display())));
                }
            });
        }
    });
    let (run, wrong) = all.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(run > 60, "only {run} commands were found");
}
