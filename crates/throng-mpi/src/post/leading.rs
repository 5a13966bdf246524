//! The post of the leading rank, which tracks all ranks.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use throng::load;

use super::clocks::{Comparison, Pong};
use super::exchange::{Kind, Message};
use super::presence::{BEATS_A_SILENCE, Presence};
use super::{End, Post, Role};
use crate::frame::{ControlMessage, Frame};

/// Time limit of a clock comparison; with missing replies, those that arrived count.
const COMPARE_LIMIT: Duration = Duration::from_secs(2);
/// Time limit for ranks to reply when the launcher ends the job. Open MPI kills all ranks a second after its stop
/// request.
const ANSWER_LIMIT: Duration = Duration::from_millis(500);
/// The silence limit of the worker, as a multiple of that of ranks: a user may suspend it.
const WORKER_SILENCES: u32 = 10;

pub(super) struct Leader {
    presence: Presence,
    /// The comparison in progress, and its deadline.
    comparison: Option<(Comparison, Instant)>,
    /// When the next heartbeat is due.
    beat_at: Instant,
    worker_seen: Instant,
    /// Set once the launcher requests a stop.
    asked: Option<StopRequest>,
    /// Whether all ranks can call `MPI_Finalize`.
    clean: bool,
}

/// A stop request of the launcher: from the user, or since a rank has died.
struct StopRequest {
    at: Instant,
    /// Ranks without a message since then.
    missing: BTreeSet<usize>,
    judged: bool,
}

impl Leader {
    pub(super) fn of(ranks: usize, silence: Duration) -> Self {
        let now = Instant::now();
        let mut presence = Presence::of(ranks, silence, now);
        presence.forget(0);
        Self {
            presence,
            comparison: None,
            beat_at: now,
            worker_seen: now,
            asked: None,
            clean: true,
        }
    }

    fn others(&self, post: &Post) -> Vec<usize> {
        let expected = |rank: &usize| self.presence.expects(*rank);
        (1..post.ranks).filter(expected).collect()
    }

    /// Handles the loss of a rank.
    fn lose(&mut self, post: &mut Post, rank: usize, reason: String) {
        self.presence.forget(rank);
        post.exchange.forget(rank);
        if let Some((comparison, _)) = &mut self.comparison {
            comparison.forget(rank);
        }
        self.clean = false;
        post.worker.word(ControlMessage::Lost { rank, reason });
    }

    fn compare(&mut self, post: &mut Post) {
        let mut comparison = Comparison::of(post.ranks);
        for rank in self.others(post) {
            ask(&mut comparison, post, rank);
        }
        let until = Instant::now() + COMPARE_LIMIT;
        post.quick_until = until;
        self.comparison = Some((comparison, until));
    }

    fn compared(&mut self, post: &mut Post, now: Instant) {
        let over =
            |(comparison, until): &mut (Comparison, Instant)| comparison.is_done() || now >= *until;
        if let Some((comparison, _)) = self.comparison.take_if(over) {
            post.quick_until = now;
            post.worker.word(ControlMessage::Clocks(comparison.found()));
        }
    }

    fn beat(&mut self, post: &mut Post, now: Instant) {
        if now < self.beat_at {
            return;
        }
        self.beat_at = now + post.silence / BEATS_A_SILENCE;
        let silence_ms = (post.silence.as_millis() as u64).to_le_bytes().to_vec();
        for rank in self.others(post) {
            post.send(rank, Kind::Beat, silence_ms.clone());
        }
        post.worker.word(ControlMessage::Beat);
    }

    /// Finds out why the launcher ends the job: a rank that has died cannot answer.
    fn judge(&mut self, post: &mut Post, now: Instant) {
        if !post.stop.requested() {
            return;
        }
        let Some(asked) = &mut self.asked else {
            let others = self.others(post);
            for &rank in &others {
                // Without a comparison.
                post.send(rank, Kind::Ping, 0_u32.to_le_bytes().to_vec());
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
            post.worker.terminate();
        }
        for rank in std::mem::take(&mut asked.missing) {
            let reason = "it no longer answered when the launcher ended the job".to_owned();
            self.lose(post, rank, reason);
        }
    }
}

fn ask(comparison: &mut Comparison, post: &mut Post, rank: usize) {
    let round = comparison.ask(rank, load::now());
    post.send(rank, Kind::Ping, round.to_le_bytes().to_vec());
}

impl Role for Leader {
    fn on_worker_frame(&mut self, post: &mut Post, frame: Frame) {
        self.worker_seen = Instant::now();
        match frame {
            Frame::Mail { rank, body } => {
                // A message to a lost rank is dropped: its loss is reported already.
                if rank < post.ranks && self.presence.expects(rank) {
                    post.exchange.send(rank, Kind::Mail, body);
                }
            }
            Frame::Control(ControlMessage::Compare) => self.compare(post),
            Frame::Control(_) => {}
        }
    }

    fn on_rank_message(&mut self, post: &mut Post, message: Message) {
        let Message { from, kind, body } = message;
        if !self.presence.expects(from) {
            return; // already lost
        }
        self.presence.seen(from, Instant::now());
        if let Some(asked) = &mut self.asked {
            asked.missing.remove(&from);
        }
        match kind {
            Kind::Mail => post.worker.send(&Frame::Mail { rank: from, body }),
            Kind::Pong => {
                let Some((comparison, _)) = &mut self.comparison else {
                    return;
                };
                let answered = Pong::decode(&body)
                    .is_some_and(|pong| comparison.answered(from, pong, load::now()));
                if answered {
                    ask(comparison, post, from);
                }
            }
            // Its post still runs, and ends with all others.
            Kind::Lost => post.worker.word(ControlMessage::Lost {
                rank: from,
                reason: String::from_utf8_lossy(&body).into_owned(),
            }),
            Kind::Beat | Kind::Ping | Kind::Reported | Kind::Home => {}
        }
    }

    fn tick(&mut self, post: &mut Post, now: Instant) -> Option<End> {
        self.compared(post, now);
        self.beat(post, now);
        self.judge(post, now);
        // While the worker's queue is full, nothing is received.
        if post.worker.has_room() {
            for rank in self.presence.silent(now) {
                let seconds = post.silence.as_secs_f64();
                self.lose(post, rank, format!("it was silent for {seconds} s"));
            }
        }
        let status = if post.worker.is_closed() {
            post.worker.end()
        } else if now.saturating_duration_since(self.worker_seen) > post.silence * WORKER_SILENCES {
            self.clean = false;
            post.worker.kill()
        } else {
            return None;
        };
        for rank in self.others(post) {
            post.send(rank, Kind::Home, vec![u8::from(self.clean)]);
        }
        let code = status.and_then(|status| status.code()).unwrap_or(1);
        Some(End {
            clean: self.clean,
            code: code as u8,
        })
    }
}
