//! The post of a client host.

use std::time::{Duration, Instant};

use throng::load;

use super::clocks::{Pong, ROUNDS};
use super::exchange::{Kind, Message};
use super::presence::{BEATS_A_SILENCE, Presence};
use super::{End, Post, Role};
use crate::frame::{ControlMessage, Frame};

/// Time after a time request until which the next one is expected: the longest round trip on Earth.
const QUICK_FOR: Duration = Duration::from_millis(300);
/// Time limit for the worker to end its load and exit.
const HOME_LIMIT: Duration = Duration::from_secs(6);
/// The silence limit of the leading rank, as a multiple of that of others: it reports lost ranks first.
const SILENCES: u32 = 2;

pub(super) struct Following {
    /// The leading rank's.
    presence: Presence,
    /// The silence limit of the worker; the leading rank may have another limit for ranks.
    timeout: Duration,
    worker_seen: Instant,
    /// Whether the worker's loss was reported.
    bereaved: bool,
    /// Whether the launcher's stop request was forwarded.
    notified: bool,
    /// When the worker was asked to exit.
    leaving: Option<Departure>,
    beat_at: Instant,
}

struct Departure {
    until: Instant,
    end: End,
}

impl Following {
    pub(super) fn new(silence: Duration) -> Self {
        let now = Instant::now();
        Self {
            presence: Presence::of(1, silence * SILENCES, now),
            timeout: silence,
            worker_seen: now,
            bereaved: false,
            notified: false,
            leaving: None,
            beat_at: now,
        }
    }

    /// Ends the worker, then this process.
    fn leave(&mut self, post: &mut Post, end: End) {
        if self.leaving.is_none() {
            post.worker.word(ControlMessage::Home);
            let now = Instant::now();
            // A stopped process must be killed.
            let until = if self.bereaved { now } else { now + HOME_LIMIT };
            self.leaving = Some(Departure { until, end });
        }
    }

    fn beat(&mut self, post: &mut Post, now: Instant) {
        if now >= self.beat_at {
            self.beat_at = now + post.silence.min(self.timeout) / BEATS_A_SILENCE;
            post.send(0, Kind::Beat, Vec::new());
            post.worker.word(ControlMessage::Beat);
        }
    }

    /// Handles a worker that exits too early. The post stays, since MPI would end the whole job.
    fn look_after_worker(&mut self, post: &mut Post, now: Instant) {
        if self.bereaved {
            return;
        }
        let reason = if post.worker.is_closed() {
            let status = post.worker.end();
            let how = status.map_or("somehow".to_owned(), |status| format!("with {status}"));
            format!("its process ended {how}")
        } else if now.saturating_duration_since(self.worker_seen) > self.timeout {
            let seconds = self.timeout.as_secs_f64();
            format!("its process did nothing for {seconds} s")
        } else {
            return;
        };
        self.bereaved = true;
        post.send(0, Kind::Lost, reason.into_bytes());
    }
}

impl Role for Following {
    fn on_worker_frame(&mut self, post: &mut Post, frame: Frame) {
        self.worker_seen = Instant::now();
        if let Frame::Mail { body, .. } = frame {
            post.exchange.send(0, Kind::Mail, body);
        }
    }

    fn on_rank_message(&mut self, post: &mut Post, message: Message) {
        let came_ns = load::now();
        let now = Instant::now();
        self.presence.seen(0, now);
        match message.kind {
            Kind::Mail => post.worker.send(&Frame::Mail {
                rank: message.from,
                body: message.body,
            }),
            Kind::Ping => {
                let round = message.body.first_chunk();
                let round = round.map_or(0, |round| u32::from_le_bytes(*round));
                let pong = Pong {
                    round,
                    came_ns,
                    left_ns: load::now(),
                };
                post.send(0, Kind::Pong, pong.encode());
                let is_last = round == 0 || round == ROUNDS;
                post.quick_until = if is_last { now } else { now + QUICK_FOR };
            }
            Kind::Beat => {
                if let Some(silence_ms) = message.body.first_chunk() {
                    post.silence = Duration::from_millis(u64::from_le_bytes(*silence_ms));
                    self.presence.permit(post.silence * SILENCES);
                    self.beat_at = self.beat_at.min(now + post.silence / BEATS_A_SILENCE);
                }
            }
            Kind::Home => {
                let clean = message.body.first() == Some(&1);
                self.leave(post, End { clean, code: 0 });
            }
            Kind::Pong | Kind::Lost | Kind::Reported => {}
        }
    }

    fn tick(&mut self, post: &mut Post, now: Instant) -> Option<End> {
        self.beat(post, now);
        if post.stop.requested() && !self.notified {
            self.notified = true;
            post.send(0, Kind::Reported, Vec::new());
        }
        if !self.presence.silent(now).is_empty() {
            let end = End {
                clean: false,
                code: 1,
            };
            self.leave(post, end);
        }
        let Some(leaving) = &self.leaving else {
            self.look_after_worker(post, now);
            return None;
        };
        if post.worker.is_closed() {
            post.worker.end();
        } else if now < leaving.until {
            return None;
        } else {
            post.worker.kill();
        }
        Some(leaving.end)
    }
}
