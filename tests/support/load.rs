//! A monitored `throng load`: its errors, its output, and its peak memory and descriptors.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Cursor, Read as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use serde_json::Value;
use throng::record::LoadStats;

use super::program::THRONG;

/// A load that has not ended after this time hangs.
const LIMIT: Duration = Duration::from_mins(3);
/// Interval between samples of a load's descriptors and memory.
const LOOK: Duration = Duration::from_millis(5);

/// A running `throng load`.
pub(crate) struct Load {
    child: Child,
    began: Instant,
    lines: Receiver<String>,
    printed: Vec<String>,
    pub(crate) complaints: Option<JoinHandle<String>>,
    pub(crate) most_descriptors: usize,
    pub(crate) most_memory_kib: u64,
}

/// Its result.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) result: Value,
    /// Its errors by kind.
    pub(crate) errors: BTreeMap<String, u64>,
    /// Its standard error.
    pub(crate) complaints: String,
    pub(crate) took: Duration,
    pub(crate) most_descriptors: usize,
    pub(crate) most_memory_kib: u64,
}

/// Runs a load with these options to its end.
pub(crate) fn load(target: SocketAddr, options: &str) -> Ended {
    Load::start(target, options).end()
}

impl Load {
    pub(crate) fn start(target: SocketAddr, options: &str) -> Self {
        Self::spawn(Command::new(THRONG), target, options)
    }

    /// Like [`Load::start`], with a command that ends with throng.
    pub(crate) fn spawn(mut command: Command, target: SocketAddr, options: &str) -> Self {
        let began = Instant::now();
        let mut child = command
            .args(["load", &target.to_string(), "--json"])
            // A fixed number, whatever the number of CPUs: each thread has its own descriptors and memory.
            .args(["--threads", "2"])
            .args(options.split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let out = child.stdout.take().expect("it is piped");
        let mut err = child.stderr.take().expect("it is piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(out).lines().map_while(Result::ok);
            lines
                .take_while(|line| sender.send(line.clone()).is_ok())
                .count()
        });
        let complaints = std::thread::spawn(move || {
            let mut text = String::new();
            err.read_to_string(&mut text).expect("output is UTF-8");
            text
        });
        Self {
            child,
            began,
            lines,
            printed: Vec::new(),
            complaints: Some(complaints),
            most_descriptors: 0,
            most_memory_kib: 0,
        }
    }

    /// Waits for output with this text.
    pub(crate) fn wait_for(&mut self, words: &str) {
        while self.receive() {
            if self.printed.last().is_some_and(|line| line.contains(words)) {
                return;
            }
        }
        panic!("it never printed `{words}`: {:?}", self.printed);
    }

    /// Waits for its next line; `false` after the last.
    fn receive(&mut self) -> bool {
        loop {
            assert!(self.began.elapsed() < LIMIT, "it hangs: {:?}", self.printed);
            self.look();
            match self.lines.recv_timeout(LOOK) {
                Ok(line) => {
                    self.printed.push(line);
                    return true;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// Samples its descriptors and its peak memory.
    fn look(&mut self) {
        let process = format!("/proc/{}", self.child.id());
        let status = fs::read_to_string(format!("{process}/status")).unwrap_or_default();
        if !status.starts_with("Name:\tthrong\n") {
            return; // it still has the memory and the descriptors of what started it
        }
        let descriptors = fs::read_dir(format!("{process}/fd")).map_or(0, Iterator::count);
        self.most_descriptors = self.most_descriptors.max(descriptors);
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse().ok());
        self.most_memory_kib = self.most_memory_kib.max(peak.unwrap_or(0));
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        while self.receive() {}
        let status = self.child.wait().expect("it is our child");
        let took = self.began.elapsed();
        let complaints = self
            .complaints
            .take()
            .expect("nobody took it before")
            .join()
            .expect("output is UTF-8");
        // A load that reports its phases has its result on the last line; others print nothing else.
        let text = match self.printed.last() {
            Some(last) if last.starts_with('{') => last.clone(),
            _ => self.printed.concat(),
        };
        let mut result: Value = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("no result ({error}): {:?} {complaints}", self.printed));
        if let Some(event) = result.get_mut("result") {
            let seen: LoadStats = serde_json::from_value(event.take()).expect("its stats");
            result = serde_json::to_value(seen.summary()).expect("figures are JSON");
        }
        Ended {
            code: status.code().expect("no signal ended it"),
            errors: serde_json::from_value(result["errors"].clone()).expect("errors are counts"),
            result,
            complaints,
            took,
            most_descriptors: self.most_descriptors,
            most_memory_kib: self.most_memory_kib,
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // After `end` it is already reaped, and this does nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// Asserts that no client was served, and that `clients` of them failed in this way and none in another.
    pub(crate) fn only(&self, kind: &str, clients: u64) {
        assert_eq!(self.errors, one(kind, clients), "{self:?}");
        self.assert_none_served();
        assert!(
            self.complaints.contains(&format!("{clients} {kind}")),
            "{self:?}"
        );
    }

    pub(crate) fn assert_none_served(&self) {
        assert_eq!(self.code, 1, "{self:?}");
        assert_eq!(
            (self.count("served"), self.count("verified")),
            (0, 0),
            "{self:?}"
        );
        assert!(self.complaints.contains("served no client"), "{self:?}");
    }

    /// Asserts that no client was served, and that none had an error.
    pub(crate) fn never_served(&self, clients: u64) {
        assert_eq!(self.errors, BTreeMap::new(), "{self:?}");
        assert_eq!(self.count("never_served"), clients, "{self:?}");
        self.assert_none_served();
    }

    /// A part of its result, by path.
    pub(crate) fn at(&self, path: &str) -> &Value {
        path.split('.')
            .fold(&self.result, |value, name| &value[name])
    }

    /// A count in its result, by path.
    pub(crate) fn count(&self, name: &str) -> u64 {
        let value = self.at(name);
        let count = value.as_u64();
        count.unwrap_or_else(|| panic!("{name} is {value}: {self:?}"))
    }

    /// Clients that ended in one of these ways.
    pub(crate) fn ended_by(&self, kinds: &[&str]) -> u64 {
        kinds.iter().filter_map(|kind| self.errors.get(*kind)).sum()
    }

    /// The distribution of a time.
    pub(crate) fn distribution(&self, name: &str) -> Histogram<u64> {
        let text = self.at(name)["histogram"]
            .as_str()
            .unwrap_or_else(|| panic!("no {name}: {self:?}"));
        let bytes = base64::engine::general_purpose::STANDARD.decode(text);
        Deserializer::new()
            .deserialize(&mut Cursor::new(bytes.expect("it is base64")))
            .expect("it is a histogram")
    }

    /// Number of values of a time that are at least this long.
    pub(crate) fn at_least(&self, name: &str, time: Duration) -> u64 {
        let histogram = self.distribution(name);
        // A histogram with 3 digits may be a thousandth lower.
        let least = (time.as_nanos() as u64) / 1000 * 998;
        histogram.count_between(least, histogram.high())
    }
}

pub(crate) fn one(kind: &str, clients: u64) -> BTreeMap<String, u64> {
    BTreeMap::from([(kind.to_owned(), clients)])
}

/// The engines that this machine supports.
pub(crate) fn engines() -> Vec<&'static str> {
    let mut engines = vec!["epoll"];
    match throng::sys::ring::supported() {
        Ok(()) => engines.push("io-uring"),
        Err(reason) => println!("without io-uring: {reason}"),
    }
    engines
}
