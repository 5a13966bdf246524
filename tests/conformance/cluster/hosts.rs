//! A cluster of threads.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use throng::measure::cluster::{Agent, Cluster, HostAssignment, HostMessage, Report, this_host};
use throng::record::{ClientHost, ClockOffset};

use crate::support::program::THRONG;

/// The fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    None,
    /// The last host's load cannot be started, so often.
    FailsFirst(u32),
    /// The first host is lost from this trial on, counted from 0.
    LostIn(u32),
}

/// Client hosts that are threads of this process.
pub(crate) struct Threads {
    hosts: Vec<ClientHost>,
    words: Vec<Sender<Message>>,
    receive: Receiver<(u32, usize, Vec<u8>)>,
    trial: u32,
    trouble: Trouble,
    lost_told: bool,
    ordered: Vec<usize>,
}

/// A message to a host.
enum Message {
    Start(u32, Vec<u8>),
    GoOn,
    Stop(Duration, Sender<()>),
}

impl Threads {
    pub(crate) fn new(count: u32, trouble: Trouble) -> Self {
        let (sender, receive) = channel();
        let words = (0..count as usize).map(|place| {
            let (words, reported) = channel();
            let sender = sender.clone();
            std::thread::spawn(move || serve(place, &reported, &sender));
            words
        });
        let host = |rank| ClientHost {
            clock: Some(ClockOffset {
                offset_ns: 0,
                error_ns: 100,
            }),
            cpus: 1,
            ..this_host(rank, count)
        };
        Self {
            words: words.collect(),
            hosts: (1..=count).map(host).collect(),
            receive,
            trial: 0,
            trouble,
            lost_told: false,
            ordered: Vec::new(),
        }
    }

    fn broadcast(&self, word: impl Fn() -> Message) {
        for &host in &self.ordered {
            let _ = self.words[host].send(word());
        }
    }

    fn is_lost(&self, host: usize) -> bool {
        matches!(self.trouble, Trouble::LostIn(trial) if host == 0 && self.trial > trial)
    }
}

impl Cluster for Threads {
    fn hosts(&self) -> &[ClientHost] {
        &self.hosts
    }

    fn start(&mut self, orders: &[HostAssignment]) -> anyhow::Result<()> {
        self.trial += 1;
        self.ordered = orders.iter().map(|order| order.host).collect();
        for order in orders {
            let mut order = order.clone();
            let is_last = order.host + 1 == self.hosts.len();
            if matches!(self.trouble, Trouble::FailsFirst(times) if is_last && self.trial <= times)
            {
                order.load.servers.clear();
            }
            let bytes = serde_json::to_vec(&order)?;
            self.words[order.host].send(Message::Start(self.trial, bytes))?;
        }
        Ok(())
    }

    fn receive(&mut self, deadline: Instant) -> HostMessage {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let (trial, host, bytes) = match self.receive.recv_timeout(left) {
                Ok(receive) => receive,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return HostMessage::Late;
                }
            };
            if trial < self.trial {
                continue;
            }
            if self.is_lost(host) {
                if std::mem::replace(&mut self.lost_told, true) {
                    continue;
                }
                let reason = "no sign of life".to_owned();
                return HostMessage::Lost { host, reason };
            }
            let report: Report = serde_json::from_slice(&bytes).expect("a report");
            return HostMessage::From { host, report };
        }
    }

    fn proceed(&mut self) -> anyhow::Result<()> {
        self.broadcast(|| Message::GoOn);
        Ok(())
    }

    fn stop(&mut self, limit: Duration) {
        let (done, all_done) = channel();
        self.broadcast(|| Message::Stop(limit, done.clone()));
        drop(done);
        // Nothing is ever sent: it ends when all have dropped theirs.
        let _ = all_done.recv_timeout(limit + Duration::from_secs(10));
    }
}

/// The behaviour of a client host.
fn serve(place: usize, reported: &Receiver<Message>, sender: &Sender<(u32, usize, Vec<u8>)>) {
    let mut agent: Option<(u32, Agent)> = None;
    loop {
        let word = match &mut agent {
            None => reported.recv().map_err(|_| ()),
            Some((trial, at_work)) => {
                let report = at_work.next(Instant::now() + Duration::from_millis(5));
                let over = at_work.is_over();
                if let Some(report) = report {
                    let bytes = serde_json::to_vec(&report).expect("a report is JSON");
                    if sender.send((*trial, place, bytes)).is_err() {
                        return;
                    }
                }
                if over {
                    agent = None;
                    continue;
                }
                match reported.try_recv() {
                    Ok(word) => Ok(word),
                    Err(std::sync::mpsc::TryRecvError::Empty) => continue,
                    Err(std::sync::mpsc::TryRecvError::Disconnected) => Err(()),
                }
            }
        };
        match word {
            Err(()) => return,
            Ok(Message::Start(trial, order)) => {
                let order: HostAssignment = serde_json::from_slice(&order).expect("an order");
                agent = Some((trial, Agent::start(&order, Path::new(THRONG)).unwrap()));
            }
            Ok(Message::GoOn) => {
                if let Some((_, agent)) = &mut agent {
                    agent.proceed();
                }
            }
            Ok(Message::Stop(limit, done)) => {
                if let Some((_, mut agent)) = agent.take() {
                    agent.stop(limit);
                }
                drop(done);
            }
        }
    }
}
