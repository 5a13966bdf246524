//! A client host's post: it answers the leading one.

use std::time::{Duration, Instant};

use throng::load;

use super::clocks::Pong;
use super::exchange::{Kind, Message};
use super::presence::{BEATS_A_SILENCE, Presence};
use super::{End, Post, Role};
use crate::frame::{Frame, Word};

/// For so long after a question about the time the next one is expected at once.
const QUICK_FOR: Duration = Duration::from_millis(20);
/// How long the worker may take to end its load and itself.
const HOME_LIMIT: Duration = Duration::from_secs(6);
/// The leading rank may be silent so much longer than others: it tells us when it gives somebody up.
const SILENCES: u32 = 2;

pub(super) struct Following {
    /// The leading rank's.
    presence: Presence,
    /// Whether the launcher's wish to stop was passed on.
    told: bool,
    /// Since when the worker is gone, or is to go.
    leaving: Option<Leaving>,
    beat_at: Instant,
}

struct Leaving {
    until: Instant,
    end: End,
}

impl Following {
    pub(super) fn new(silence: Duration) -> Self {
        let now = Instant::now();
        Self {
            presence: Presence::of(1, silence * SILENCES, now),
            told: false,
            leaving: None,
            beat_at: now,
        }
    }

    /// Ends the worker, and then this.
    fn leave(&mut self, post: &mut Post, end: End) {
        if self.leaving.is_none() {
            post.worker.word(Word::Home);
            let until = Instant::now() + HOME_LIMIT;
            self.leaving = Some(Leaving { until, end });
        }
    }

    /// The worker is gone although nobody sent it home: we stay, or MPI would take all down.
    fn bereaved(&mut self, post: &mut Post, now: Instant) {
        if now < self.beat_at {
            return;
        }
        if let Some(status) = post.worker.end() {
            let reason = format!("its process ended with {status}");
            post.say(0, Kind::Lost, reason.into_bytes());
        }
        self.beat_at = now + post.silence / BEATS_A_SILENCE;
        post.say(0, Kind::Beat, Vec::new());
    }
}

impl Role for Following {
    fn worker_says(&mut self, post: &mut Post, frame: Frame) {
        match frame {
            Frame::Mail { body, .. } => post.exchange.send(0, Kind::Mail, body),
            Frame::Word(Word::Beat) => post.say(0, Kind::Beat, Vec::new()),
            Frame::Word(_) => {}
        }
    }

    fn rank_says(&mut self, post: &mut Post, message: Message) {
        let came_ns = load::now();
        let now = Instant::now();
        self.presence.heard(0, now);
        match message.kind {
            Kind::Mail => post.worker.tell(&Frame::Mail {
                rank: message.from,
                body: message.body,
            }),
            Kind::Ping => {
                let round = message
                    .body
                    .first_chunk()
                    .map_or(0, |round| u32::from_le_bytes(*round));
                let pong = Pong {
                    round,
                    came_ns,
                    left_ns: load::now(),
                };
                post.say(0, Kind::Pong, pong.encode());
                post.quick_until = now + QUICK_FOR;
            }
            Kind::Beat => {
                // The worker expects to hear of us as well.
                post.worker.word(Word::Beat);
                if let Some(silence_ms) = message.body.first_chunk() {
                    post.silence = Duration::from_millis(u64::from_le_bytes(*silence_ms));
                    self.presence.permit(post.silence * SILENCES);
                }
            }
            Kind::Home => {
                let clean = message.body.first() == Some(&1);
                self.leave(post, End { clean, code: 0 });
            }
            Kind::Pong | Kind::Lost | Kind::Told => {}
        }
    }

    fn tick(&mut self, post: &mut Post, now: Instant) -> Option<End> {
        if post.stop.requested() && !self.told {
            self.told = true;
            post.say(0, Kind::Told, Vec::new());
        }
        if !self.presence.silent(now).is_empty() {
            let end = End {
                clean: false,
                code: 1,
            };
            self.leave(post, end);
        }
        let Some(leaving) = &self.leaving else {
            if post.worker.is_closed() {
                self.bereaved(post, now);
            }
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
