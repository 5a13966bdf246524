//! The client hosts as the leading rank's program sees them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use throng::load::now;
use throng::measure::cluster::{Cluster, HostAssignment, HostMessage, Report};
use throng::record::ClientHost;

use super::line::{Line, Place, WorkerMessage};
use super::message::{FromHost, ToHost};
use crate::frame::ControlMessage;

/// Time limit for all hosts to report once MPI has started.
const ARRIVE_LIMIT: Duration = Duration::from_secs(30);
/// Time limit for a clock comparison, longer than the relay's own.
const COMPARE_LIMIT: Duration = Duration::from_secs(4);
/// How early the message to continue is sent, in addition to its transit time: the two relays poll every 5 and 10 ms,
/// the worker every 2 ms, and a busy machine may be late.
const LEAD: Duration = Duration::from_millis(30);
/// Allowed transit time, in multiples of the largest clock error, which is half a round trip.
const TRIPS: u32 = 8;

/// The ranks except the leading one. The index of a host is its rank - 1.
pub(super) struct Ranks {
    line: Line,
    hosts: Vec<ClientHost>,
    states: Vec<State>,
    /// Lost hosts that had an order in the current trial and whose loss has not been reported yet.
    unreported: VecDeque<usize>,
    /// Number of the current orders.
    number: u32,
    /// The error that ended all communication.
    gone: Option<String>,
}

/// The state of a host.
#[derive(Debug, Clone, Default)]
struct State {
    /// Whether it has an unfinished order of the current trial.
    works: bool,
    lost: Option<String>,
}

impl Ranks {
    /// Waits until all hosts have reported.
    pub(super) fn gather(place: Place, line: Line) -> anyhow::Result<Self> {
        let mut found: Vec<Option<(ClientHost, Vec<u32>)>> = vec![None; place.ranks - 1];
        let deadline = Instant::now() + ARRIVE_LIMIT;
        while let Some(missing) = found.iter().position(Option::is_none) {
            let rank = missing + 1;
            let seconds = ARRIVE_LIMIT.as_secs();
            match line.next(deadline) {
                Some(WorkerMessage::Worker { rank: sender, body }) => {
                    let host = found
                        .get_mut(sender.wrapping_sub(1))
                        .context("a message came from a rank that does not exist")?;
                    let message: FromHost = serde_json::from_slice(&body).with_context(|| {
                        format!(
                            "rank {sender} sent invalid data; all ranks must run the same throng-mpi"
                        )
                    })?;
                    if let FromHost::Here {
                        host: described,
                        usable_cpus,
                    } = message
                    {
                        *host = Some((described, usable_cpus));
                    }
                }
                Some(WorkerMessage::Control(ControlMessage::Lost { rank: lost, reason })) => {
                    bail!("rank {lost} is lost: {reason}")
                }
                Some(WorkerMessage::Gone(reason)) => bail!("{reason}"),
                Some(WorkerMessage::Control(_)) => {}
                None => bail!("rank {rank} has not described its host within {seconds} s"),
            }
        }
        let mut ranks = Self {
            line,
            states: vec![State::default(); found.len()],
            hosts: share_cpus(&found.into_iter().flatten().collect::<Vec<_>>()),
            unreported: VecDeque::new(),
            number: 0,
            gone: None,
        };
        ranks.compare_clocks();
        Ok(ranks)
    }

    fn send(&mut self, host: usize, message: &ToHost) -> anyhow::Result<()> {
        let body = serde_json::to_vec(message)?;
        if let Err(error) = self.line.send(host + 1, body) {
            self.part(format!("{error:#}"));
        }
        Ok(())
    }

    /// Handles the loss of all hosts.
    fn part(&mut self, reason: String) {
        for host in 0..self.hosts.len() {
            self.lose(host, &reason);
        }
        self.gone.get_or_insert(reason);
    }

    /// Compares all clocks.
    fn compare_clocks(&mut self) {
        if self.gone.is_some() {
            return;
        }
        // If sending fails, no reply arrives.
        let _ = self.line.send_control(ControlMessage::Compare);
        let deadline = Instant::now() + COMPARE_LIMIT;
        while let Some(news) = self.line.next(deadline) {
            if let WorkerMessage::Control(ControlMessage::Clocks(clocks)) = news {
                for host in &mut self.hosts {
                    host.clock = None;
                }
                for (rank, clock) in clocks {
                    if let Some(host) = self.hosts.get_mut(rank.wrapping_sub(1)) {
                        host.clock = Some(clock);
                    }
                }
                return;
            }
            // Replies to earlier orders are ignored.
            self.handle(news);
        }
        self.part(
            "the MPI process of the leading rank does not compare clocks any more".to_owned(),
        );
    }

    /// Updates the state of its host, and returns the event, if the message belongs to the current trial.
    fn handle(&mut self, news: WorkerMessage) -> Option<HostMessage> {
        match news {
            WorkerMessage::Worker { rank, body } => {
                let host = rank.wrapping_sub(1);
                self.states.get(host)?;
                match serde_json::from_slice(&body) {
                    Ok(FromHost::Report { number, report }) if number == self.number => {
                        self.states[host].works &= matches!(report, Report::Event(_));
                        Some(HostMessage::From { host, report })
                    }
                    Ok(FromHost::Halted { number }) if number == self.number => {
                        self.states[host].works = false;
                        None
                    }
                    Ok(_) => None,
                    Err(error) => {
                        self.lose(host, &format!("its report is invalid: {error}"));
                        None
                    }
                }
            }
            WorkerMessage::Control(ControlMessage::Lost { rank, reason }) => {
                self.lose(rank.wrapping_sub(1), &reason);
                None
            }
            WorkerMessage::Gone(reason) => {
                self.part(reason);
                None
            }
            WorkerMessage::Control(_) => None,
        }
    }

    fn lose(&mut self, host: usize, reason: &str) {
        let Some(state) = self.states.get_mut(host) else {
            return;
        };
        if state.lost.is_none() {
            state.lost = Some(reason.to_owned());
            if std::mem::take(&mut state.works) {
                self.unreported.push_back(host);
            }
        }
    }

    fn next_lost(&mut self) -> Option<HostMessage> {
        let host = self.unreported.pop_front()?;
        let reason = self.states[host].lost.clone()?;
        Some(HostMessage::Lost { host, reason })
    }

    /// Hosts with unfinished orders.
    fn working(&self) -> Vec<usize> {
        let works = |host: &usize| self.states[*host].works;
        (0..self.hosts.len()).filter(works).collect()
    }
}

/// Divides the CPUs of a machine among its ranks. Ranks that the launcher has bound to different CPUs keep theirs.
fn share_cpus(found: &[(ClientHost, Vec<u32>)]) -> Vec<ClientHost> {
    let shared = |(host, cpus): &(ClientHost, Vec<u32>)| {
        let shares = |(other, theirs): &&(ClientHost, Vec<u32>)| {
            other.name == host.name && theirs.iter().any(|cpu| cpus.contains(cpu))
        };
        let ranks = found.iter().filter(shares).count().max(1);
        ClientHost {
            cpus: (cpus.len() as u32 / ranks as u32).max(1),
            ..host.clone()
        }
    };
    found.iter().map(shared).collect()
}

impl Cluster for Ranks {
    fn hosts(&self) -> &[ClientHost] {
        &self.hosts
    }

    fn start(&mut self, orders: &[HostAssignment]) -> anyhow::Result<()> {
        self.number += 1;
        self.unreported.clear();
        for state in &mut self.states {
            state.works = false;
        }
        self.compare_clocks();
        for order in orders {
            let host = order.host;
            let state = self
                .states
                .get(host)
                .context("an assignment names a host that does not exist")?;
            if state.lost.is_some() {
                self.unreported.push_back(host);
                continue;
            }
            self.states[host].works = true;
            let (number, order) = (self.number, Box::new(order.clone()));
            self.send(host, &ToHost::HostAssignment { number, order })?;
        }
        Ok(())
    }

    fn receive(&mut self, deadline: Instant) -> HostMessage {
        loop {
            if let Some(lost) = self.next_lost() {
                return lost;
            }
            if self.gone.is_some() {
                std::thread::sleep(deadline.saturating_duration_since(Instant::now()));
                return HostMessage::Late;
            }
            let Some(news) = self.line.next(deadline) else {
                return HostMessage::Late;
            };
            if let Some(receive) = self.handle(news) {
                return receive;
            }
        }
    }

    fn proceed(&mut self) -> anyhow::Result<()> {
        let working = self.working();
        let clocks = working.iter().filter_map(|host| self.hosts[*host].clock);
        let error = clocks.map(|clock| clock.error_ns).max().unwrap_or(0);
        let moment = now() + LEAD.as_nanos() as u64 + error * u64::from(TRIPS);
        for host in working {
            // Without a clock comparison, the host continues on arrival.
            let at_ns = match self.hosts[host].clock {
                Some(clock) => moment.saturating_add_signed(clock.offset_ns),
                None => 0,
            };
            let number = self.number;
            self.send(host, &ToHost::GoOn { number, at_ns })?;
        }
        Ok(())
    }

    fn stop(&mut self, limit: Duration) {
        let deadline = Instant::now() + limit;
        let (number, limit_ms) = (self.number, limit.as_millis() as u64);
        for host in self.working() {
            if self.send(host, &ToHost::Halt { number, limit_ms }).is_err() {
                return;
            }
        }
        while !self.working().is_empty()
            && let Some(news) = self.line.next(deadline)
        {
            self.handle(news);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_divide_the_cpus_that_they_share() {
        let rank = |name: &str, cpus: std::ops::Range<u32>| {
            let host = ClientHost {
                name: name.to_owned(),
                ..throng::measure::cluster::this_host(1, 1)
            };
            (host, cpus.collect())
        };
        let cpus = |found: &[_]| -> Vec<u32> {
            let hosts = share_cpus(found);
            hosts.iter().map(|host| host.cpus).collect()
        };
        let of_two_machines = [rank("a", 0..8), rank("a", 0..8), rank("b", 0..8)];
        assert_eq!(cpus(&of_two_machines), [4, 4, 8]);
        let bound = [rank("a", 0..4), rank("a", 4..8)];
        assert_eq!(cpus(&bound), [4, 4]);
        let on_one_cpu = [rank("a", 0..1), rank("a", 0..1)];
        assert_eq!(cpus(&on_one_cpu), [1, 1]);
    }
}
