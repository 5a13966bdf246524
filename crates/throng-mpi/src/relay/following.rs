//! The relay of a client host.

use std::time::{Duration, Instant};

use throng::load;

use super::clocks::{Pong, ROUNDS};
use super::exchange::{Kind, Message};
use super::presence::{HEARTBEATS_PER_SILENCE, Presence};
use super::{End, Relay, Role};
use crate::frame::{ControlMessage, Frame};

/// The next time request is expected within this time of the previous one: the longest round trip on Earth.
const QUICK_FOR: Duration = Duration::from_millis(300);
/// Time limit for the worker to end its load and exit.
const EXIT_LIMIT: Duration = Duration::from_secs(6);
/// The leading rank's silence limit, as a multiple of the other ranks' limit, so that the leading rank reports lost
/// ranks first.
const SILENCES: u32 = 2;

pub(super) struct Following {
    /// The leading rank's presence.
    presence: Presence,
    /// The worker's silence limit. The leading rank may set another limit for ranks.
    timeout: Duration,
    worker_seen: Instant,
    /// Whether the worker's loss was reported.
    worker_lost: bool,
    /// Whether the launcher's stop request was forwarded.
    notified: bool,
    /// When the worker was asked to exit.
    leaving: Option<Exiting>,
    heartbeat_at: Instant,
}

struct Exiting {
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
            worker_lost: false,
            notified: false,
            leaving: None,
            heartbeat_at: now,
        }
    }

    /// Ends the worker, then this process.
    fn begin_exit(&mut self, relay: &mut Relay, end: End) {
        if self.leaving.is_none() {
            relay.worker.send_control(ControlMessage::Exit);
            let now = Instant::now();
            // A stopped process must be killed.
            let until = if self.worker_lost {
                now
            } else {
                now + EXIT_LIMIT
            };
            self.leaving = Some(Exiting { until, end });
        }
    }

    fn send_heartbeats(&mut self, relay: &mut Relay, now: Instant) {
        if now >= self.heartbeat_at {
            self.heartbeat_at = now + relay.silence.min(self.timeout) / HEARTBEATS_PER_SILENCE;
            relay.send(0, Kind::Heartbeat, Vec::new());
            relay.worker.send_control(ControlMessage::Heartbeat);
        }
    }

    /// Handles a worker that exits too early. The relay keeps running, since MPI would otherwise end the whole job.
    fn check_worker(&mut self, relay: &mut Relay, now: Instant) {
        if self.worker_lost {
            return;
        }
        let reason = if relay.worker.is_closed() {
            let status = relay.worker.end();
            let how = status.map_or("somehow".to_owned(), |status| format!("with {status}"));
            format!("its process ended {how}")
        } else if now.saturating_duration_since(self.worker_seen) > self.timeout {
            let seconds = self.timeout.as_secs_f64();
            format!("its process did nothing for {seconds} s")
        } else {
            return;
        };
        self.worker_lost = true;
        relay.send(0, Kind::Lost, reason.into_bytes());
    }
}

impl Role for Following {
    fn on_worker_frame(&mut self, relay: &mut Relay, frame: Frame) {
        self.worker_seen = Instant::now();
        if let Frame::Worker { body, .. } = frame {
            relay.exchange.send(0, Kind::Worker, body);
        }
    }

    fn on_rank_message(&mut self, relay: &mut Relay, message: Message) {
        let came_ns = load::now();
        let now = Instant::now();
        self.presence.seen(0, now);
        match message.kind {
            Kind::Worker => relay.worker.send(&Frame::Worker {
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
                relay.send(0, Kind::Pong, pong.encode());
                let is_last = round == 0 || round == ROUNDS;
                relay.quick_until = if is_last { now } else { now + QUICK_FOR };
            }
            Kind::Heartbeat => {
                if let Some(silence_ms) = message.body.first_chunk() {
                    relay.silence = Duration::from_millis(u64::from_le_bytes(*silence_ms));
                    self.presence.permit(relay.silence * SILENCES);
                    self.heartbeat_at = self
                        .heartbeat_at
                        .min(now + relay.silence / HEARTBEATS_PER_SILENCE);
                }
            }
            Kind::Exit => {
                let clean = message.body.first() == Some(&1);
                self.begin_exit(relay, End { clean, code: 0 });
            }
            Kind::Pong | Kind::Lost | Kind::Reported => {}
        }
    }

    fn tick(&mut self, relay: &mut Relay, now: Instant) -> Option<End> {
        self.send_heartbeats(relay, now);
        if relay.stop.requested() && !self.notified {
            self.notified = true;
            relay.send(0, Kind::Reported, Vec::new());
        }
        if !self.presence.silent(now).is_empty() {
            let end = End {
                clean: false,
                code: 1,
            };
            self.begin_exit(relay, end);
        }
        let Some(leaving) = &self.leaving else {
            self.check_worker(relay, now);
            return None;
        };
        if relay.worker.is_closed() {
            relay.worker.end();
        } else if now < leaving.until {
            return None;
        } else {
            relay.worker.kill();
        }
        Some(leaving.end)
    }
}
