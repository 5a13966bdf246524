//! One process per client.

use std::collections::HashSet;
use std::os::fd::AsFd as _;

use anyhow::Context as _;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait as wait_for_child};

use crate::close_reason::Refusal;
use crate::conn::{Conn, WorkerBuffers};
use crate::lifecycle::{WaitEnd, wait};
use crate::listen::{Client, Mode};
use crate::worker::Worker;
use crate::{Card, Model, Server, WorkerLayout};
use throng_spec::registry::Info;
use throng_sys::fork::SingleThreaded;
use throng_sys::signal::Children;

/// The model `fork`.
pub(super) const MODEL: Model = Model {
    info: Info {
        name: "fork",
        summary: "a child process per client",
    },
    card: Card {
        idea: "The parent accepts and forks; the child serves that one client with blocking calls \
               and exits. The parent reaps it on SIGCHLD.",
        waits_in: "recv() in each child; poll() and accept() in the parent",
        system_calls: "recv, send, and a context switch",
        processes: "1 parent and 1 child per client",
        good_at: "isolation: a crash or leak costs one client; long sessions of few clients",
        breaks_when: "clients connect often (a fork each) or are many: page tables, pid limit, \
                      scheduler",
        source: "Stevens, UNP vol. 1, 3rd ed., sections 5.9 and 30.5 (one child per client); fork(2)",
        limit: "",
        waits: false,
        page: page!("fork"),
    },
    worker_layout: WorkerLayout::AsNeeded,
    knobs: &[],
    supported: || Ok(()),
    run,
};

fn run(server: Server) -> anyhow::Result<()> {
    let single = SingleThreaded::check()?;
    let news = Children::watch().context("cannot watch for children that end")?;
    let mut family = Family::default();
    loop {
        match wait(server.stop, &[news.fd(), server.listener.as_fd()])? {
            WaitEnd::Stop => break,
            WaitEnd::Ready(0) => {
                news.clear();
                family.reap(&server);
            }
            WaitEnd::Ready(_) => {
                for client in server.listener.arrivals(server.stats, Mode::Blocking) {
                    let id = client.id;
                    match single.fork(|| serve_in_child(client, server)) {
                        Ok(pid) => {
                            server.stats.hand_to(id, Worker::process(pid));
                            family.add(pid);
                        }
                        Err(_) => server.stats.give_up(id, Refusal::Processes),
                    }
                }
            }
        }
    }
    family.shut_down(&server);
    Ok(())
}

fn serve_in_child(client: Client, server: Server) -> i32 {
    if server.stop.renew_in_child().is_err() {
        return 1;
    }
    let server = server.for_worker(Worker::this_process());
    let conn = Conn::open(client, &server);
    conn.serve_until_stopped(&server, &mut WorkerBuffers::for_one());
    0
}

/// The children of this process.
#[derive(Debug, Default)]
pub(super) struct Family {
    children: HashSet<Pid>,
}

impl Family {
    pub(super) fn add(&mut self, child: Pid) {
        self.children.insert(child);
    }

    /// Reaps every child that has ended, and returns how many there were.
    pub(super) fn reap(&mut self, server: &Server) -> usize {
        let before = self.children.len();
        while let Ok(Some((pid, status))) = wait_for_child(WaitOptions::NOHANG) {
            self.child_ended(pid, status, server);
        }
        before - self.children.len()
    }

    /// Forgets a child. A killed child did not end its client's row, so this does.
    fn child_ended(&mut self, pid: Pid, status: WaitStatus, server: &Server) {
        self.children.remove(&pid);
        if status.exit_status() != Some(0) {
            server.stats.lost(Worker::process(pid));
        }
    }

    /// Signals all children to stop, stops listening, gives the children time to drain, and kills the rest.
    pub(super) fn shut_down(mut self, server: &Server) {
        let drain = server.begin_drain();
        self.signal(Signal::TERM);
        // Only after the signal: idle children wait on this socket, and would wake to find it shut down.
        server.listener.close();
        while !self.children.is_empty() && !drain.over() {
            if self.reap(server) == 0 {
                std::thread::sleep(std::time::Duration::from_millis(2).min(drain.left()));
            }
        }
        self.signal(Signal::KILL);
        while !self.children.is_empty() {
            match wait_for_child(WaitOptions::empty()) {
                Ok(Some((pid, status))) => self.child_ended(pid, status, server),
                Err(rustix::io::Errno::INTR) => {}
                Ok(None) | Err(_) => break,
            }
        }
    }

    fn signal(&self, signal: Signal) {
        for &child in &self.children {
            let _ = kill_process(child, signal);
        }
    }
}
