//! `top`: its report is correct, also while processes come and go.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::Context as _;

use super::client::{FULL, LIMIT};
use super::process::eventually;
use super::{Case, SIZE, Subject};
use crate::support::server::Server;

pub(crate) const CASES: &[&Case] = &[
    &Case {
        name: "processes_come_and_go",
        applies: reports_processes,
        run: processes_come_and_go,
    },
    &Case {
        name: "reports_true_times",
        applies: reports_processes,
        run: reports_true_times,
    },
];

fn reports_processes(subject: &Subject) -> bool {
    subject.speaks("top")
}

fn processes_come_and_go(subject: &Subject) -> anyhow::Result<()> {
    const REQUESTS: u32 = 10;
    let server = subject.start(SIZE)?;
    let mut client = subject.client(&server, 0)?;
    let enough = AtomicBool::new(false);
    let received = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !enough.load(Relaxed) {
                let _ = Command::new("true").status();
            }
        });
        let received = (0..REQUESTS).try_for_each(|_| client.converse(1, FULL));
        enough.store(true, Relaxed);
        received
    });
    received?;
    drop(client);
    subject.check(&server.stop()?, 1, REQUESTS.into())
}

/// A process continues to use CPU after the report, or may end.
fn reports_true_times(subject: &Subject) -> anyhow::Result<()> {
    let server = subject.start(SIZE)?;
    eventually("it reports the true times of a process", || {
        let reported = ask(&server)?;
        let line = reported.first().context("there is a process")?;
        let fields: Vec<&str> = line.split(' ').collect();
        let [pid, .., total] = fields[..] else {
            anyhow::bail!("a line with fields, not `{line}`");
        };
        let Ok(stat) = procfs::process::Process::new(pid.parse()?).and_then(|it| it.stat()) else {
            return Ok(false);
        };
        let name = stat.comm.replace(|c: char| c.is_ascii_control(), "?");
        Ok(line.starts_with(&format!("{pid} {name} "))
            && stat.utime + stat.stime >= total.parse()?)
    })?;
    server.stop()?;
    Ok(())
}

fn ask(server: &Server) -> anyhow::Result<Vec<String>> {
    let mut stream = TcpStream::connect(server.address())?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.write_all(b"top\n")?;
    let mut lines = Vec::new();
    for line in BufReader::new(stream).lines() {
        let line = line?;
        if line.is_empty() {
            return Ok(lines);
        }
        lines.push(line);
    }
    anyhow::bail!("the end came before an empty line, after {lines:?}")
}
