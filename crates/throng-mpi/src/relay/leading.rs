//! The relay of the leading rank, which tracks all ranks.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use throng::load;

use super::clocks::{Comparison, Pong};
use super::exchange::{Kind, Message};
use super::presence::{HEARTBEATS_PER_SILENCE, Presence};
use super::{End, Relay, Role};
use crate::frame::{ControlMessage, Frame};

/// Time limit for a clock comparison. If replies are missing by then, those that have arrived count.
const COMPARE_LIMIT: Duration = Duration::from_secs(2);
/// Time limit for ranks to reply when the launcher ends the job. Open MPI kills all ranks a second after its stop
/// request.
const ANSWER_LIMIT: Duration = Duration::from_millis(500);
/// The worker's silence limit, as a multiple of the ranks' limit: a user may suspend the worker.
const WORKER_SILENCES: u32 = 10;

pub(super) struct Leader {
    presence: Presence,
    /// The comparison in progress, and its deadline.
    comparison: Option<(Comparison, Instant)>,
    /// When the next heartbeat is due.
    heartbeat_at: Instant,
    worker_seen: Instant,
    /// Set once the launcher requests a stop.
    asked: Option<StopRequest>,
    /// Whether all ranks can call `MPI_Finalize`.
    clean: bool,
}

/// A stop request from the launcher, made by the user or because a rank has died.
struct StopRequest {
    at: Instant,
    /// Ranks that have sent no message since then.
    missing: BTreeSet<usize>,
    judged: bool,
}

impl Leader {
    pub(super) fn of(ranks: usize, silence: Duration) -> Self {
        let now = Instant::now();
        let mut presence = Presence::of(ranks, silence, now);
        presence.remove(0);
        Self {
            presence,
            comparison: None,
            heartbeat_at: now,
            worker_seen: now,
            asked: None,
            clean: true,
        }
    }

    fn others(&self, relay: &Relay) -> Vec<usize> {
        let expected = |rank: &usize| self.presence.expects(*rank);
        (1..relay.ranks).filter(expected).collect()
    }

    /// Handles the loss of a rank.
    fn lose(&mut self, relay: &mut Relay, rank: usize, reason: String) {
        self.presence.remove(rank);
        relay.exchange.remove(rank);
        if let Some((comparison, _)) = &mut self.comparison {
            comparison.remove(rank);
        }
        self.clean = false;
        relay
            .worker
            .send_control(ControlMessage::Lost { rank, reason });
    }

    fn compare(&mut self, relay: &mut Relay) {
        let mut comparison = Comparison::of(relay.ranks);
        for rank in self.others(relay) {
            ask(&mut comparison, relay, rank);
        }
        let until = Instant::now() + COMPARE_LIMIT;
        relay.quick_until = until;
        self.comparison = Some((comparison, until));
    }

    fn compared(&mut self, relay: &mut Relay, now: Instant) {
        let over =
            |(comparison, until): &mut (Comparison, Instant)| comparison.is_done() || now >= *until;
        if let Some((comparison, _)) = self.comparison.take_if(over) {
            relay.quick_until = now;
            relay
                .worker
                .send_control(ControlMessage::Clocks(comparison.found()));
        }
    }

    fn send_heartbeats(&mut self, relay: &mut Relay, now: Instant) {
        if now < self.heartbeat_at {
            return;
        }
        self.heartbeat_at = now + relay.silence / HEARTBEATS_PER_SILENCE;
        let silence_ms = (relay.silence.as_millis() as u64).to_le_bytes().to_vec();
        for rank in self.others(relay) {
            relay.send(rank, Kind::Heartbeat, silence_ms.clone());
        }
        relay.worker.send_control(ControlMessage::Heartbeat);
    }

    /// Finds out why the launcher ends the job: a rank that has died cannot answer.
    fn check_hosts(&mut self, relay: &mut Relay, now: Instant) {
        if !relay.stop.requested() {
            return;
        }
        let Some(asked) = &mut self.asked else {
            let others = self.others(relay);
            for &rank in &others {
                // This request is not part of a comparison.
                relay.send(rank, Kind::Ping, 0_u32.to_le_bytes().to_vec());
            }
            self.asked = Some(StopRequest {
                at: now,
                missing: others.into_iter().collect(),
                judged: false,
            });
            return;
        };
        if asked.judged || (now < asked.at + ANSWER_LIMIT && !asked.missing.is_empty()) {
            return;
        }
        asked.judged = true;
        if asked.missing.is_empty() {
            relay.worker.terminate();
        }
        for rank in std::mem::take(&mut asked.missing) {
            let reason = "it no longer answered when the launcher ended the job".to_owned();
            self.lose(relay, rank, reason);
        }
    }
}

fn ask(comparison: &mut Comparison, relay: &mut Relay, rank: usize) {
    let round = comparison.ask(rank, load::now());
    relay.send(rank, Kind::Ping, round.to_le_bytes().to_vec());
}

impl Role for Leader {
    fn on_worker_frame(&mut self, relay: &mut Relay, frame: Frame) {
        self.worker_seen = Instant::now();
        match frame {
            Frame::Worker { rank, body } => {
                // A message to a lost rank is dropped: the loss has already been reported.
                if rank < relay.ranks && self.presence.expects(rank) {
                    relay.exchange.send(rank, Kind::Worker, body);
                }
            }
            Frame::Control(ControlMessage::Compare) => self.compare(relay),
            Frame::Control(_) => {}
        }
    }

    fn on_rank_message(&mut self, relay: &mut Relay, message: Message) {
        let Message { from, kind, body } = message;
        if !self.presence.expects(from) {
            return; // already lost
        }
        self.presence.seen(from, Instant::now());
        if let Some(asked) = &mut self.asked {
            asked.missing.remove(&from);
        }
        match kind {
            Kind::Worker => relay.worker.send(&Frame::Worker { rank: from, body }),
            Kind::Pong => {
                let Some((comparison, _)) = &mut self.comparison else {
                    return;
                };
                let answered = Pong::decode(&body)
                    .is_some_and(|pong| comparison.answered(from, pong, load::now()));
                if answered {
                    ask(comparison, relay, from);
                }
            }
            // The rank's relay still runs, and ends when all others do.
            Kind::Lost => relay.worker.send_control(ControlMessage::Lost {
                rank: from,
                reason: String::from_utf8_lossy(&body).into_owned(),
            }),
            Kind::Heartbeat | Kind::Ping | Kind::Reported | Kind::Exit => {}
        }
    }

    fn tick(&mut self, relay: &mut Relay, now: Instant) -> Option<End> {
        self.compared(relay, now);
        self.send_heartbeats(relay, now);
        self.check_hosts(relay, now);
        // While the worker's queue is full, nothing is received.
        if relay.worker.has_room() {
            for rank in self.presence.silent(now) {
                let seconds = relay.silence.as_secs_f64();
                self.lose(relay, rank, format!("it was silent for {seconds} s"));
            }
        }
        let status = if relay.worker.is_closed() {
            relay.worker.end()
        } else if now.saturating_duration_since(self.worker_seen) > relay.silence * WORKER_SILENCES
        {
            self.clean = false;
            relay.worker.kill()
        } else {
            return None;
        };
        for rank in self.others(relay) {
            relay.send(rank, Kind::Exit, vec![u8::from(self.clean)]);
        }
        let code = status.and_then(|status| status.code()).unwrap_or(1);
        Some(End {
            clean: self.clean,
            code: code as u8,
        })
    }
}
