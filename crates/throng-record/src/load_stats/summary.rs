//! Figures computed from the clients' results.

use super::{Bias, EarlyBias, JobStats, LoadStats, TENTHS};
use crate::{
    Completion, Fairness, FirstFailure, LifeFairness, Load, OpenLoop, ProbeClients, Window,
    measurable,
};

impl LoadStats {
    /// The figures of the whole load, as recorded.
    pub fn summary(&self) -> Load {
        Load {
            clients: self.clients,
            connected: self.connected,
            served: self.served,
            never_served: self.never_served,
            connections: self.connections,
            reconnects: self.connections.saturating_sub(self.connected.into()),
            requests: self.requests,
            without_reply: self.without_reply,
            left: self.left,
            verified: self.verified,
            rejected: self.rejected.clone(),
            statuses: self.statuses.clone(),
            unexpected: self.unexpected.clone(),
            redirect: self.redirect.clone(),
            server_limits: self.server_limits.clone(),
            reply_bytes: self.reply_bytes.summary(),
            warm_up: self.warm_up,
            window: self.window(),
            service_time: self.service_time.latency(),
            open_loop: self.open.as_ref().map(|open| OpenLoop {
                due: open.due(),
                waited: open.waited,
                never_sent: open.never_sent,
                unanswered: open.unanswered,
                lost: open.lost,
                response_time: open.response_time.latency(),
            }),
            lateness: self.lateness.rough_latency(),
            connect_time: self.connect_time.rough_latency(),
            first_reply: self.first_reply.rough_latency(),
            fairness: self.fairness(),
            errors: self
                .errors
                .iter()
                .map(|(kind, errors)| (kind.clone(), errors.count))
                .collect(),
            errors_first_s: self
                .errors
                .iter()
                .map(|(kind, errors)| (kind.clone(), self.since_began_s(errors.first_ns)))
                .collect(),
            error_details: self
                .errors
                .iter()
                .filter_map(|(kind, errors)| Some((kind.clone(), errors.detail.clone()?)))
                .collect(),
            completion: self
                .jobs
                .as_ref()
                .map(|jobs| Box::new(self.completion(jobs))),
            sessions: self
                .sessions
                .as_ref()
                .map(|sessions| Box::new(sessions.figures(self))),
            probe: self.probe.as_ref().map(|probe| {
                let seen = probe.stats.summary();
                let open = seen.open_loop.unwrap_or_default();
                ProbeClients {
                    clients: seen.clients,
                    rate_per_s: probe.rate_per_s,
                    due: open.due,
                    response_time: open.response_time,
                    service_time: seen.service_time,
                    errors: seen.errors,
                }
            }),
            tls: self.tls.as_ref().map(|tls| Box::new(tls.figures(self))),
            ceiling: None,
            cpu_s: self.cpu_s(),
            stopped_by: self
                .stopped_by
                .map(|ending| ending.name().to_owned())
                .unwrap_or_default(),
            longest_gap_s: self.longest_gap_ns.map(|gap| gap as f64 / 1e9),
            silent_threads: self.silent_threads,
            threads: self.threads,
            engine: self.engine.clone(),
        }
    }

    /// Replies in each interval of the window.
    pub fn intervals(&self) -> Vec<u64> {
        let mut intervals = vec![0_u64; self.replies_by_tenth[0].len()];
        for tenth in &self.replies_by_tenth {
            for (sum, replies) in intervals.iter_mut().zip(tenth) {
                *sum = sum.saturating_add(*replies);
            }
        }
        intervals
    }

    /// Replies per second in the window, if it was long enough to measure.
    pub fn replies_per_s(&self) -> Option<f64> {
        measurable(self.span.duration_s()).map(|length_s| self.window_replies as f64 / length_s)
    }

    /// CPU time of all processes in the window; `None` if any of them is unknown.
    pub fn cpu_s(&self) -> Option<f64> {
        let is_known = self.cpu.count == self.processes;
        is_known.then_some(self.cpu.total as f64 / 1e9)
    }

    fn since_began_s(&self, at_ns: i64) -> f64 {
        let began = self.span.began_ns.unwrap_or_default();
        at_ns.saturating_sub(began) as f64 / 1e9
    }

    fn window(&self) -> Window {
        // Parts of a window are comparable only if its length was fixed.
        let has_intervals = self.span.fixed_ns.is_some_and(|fixed| fixed > 0);
        // Each process has an order of its own.
        let has_tenths = has_intervals && self.clients as usize >= TENTHS && self.processes == 1;
        Window {
            duration_s: self.span.duration_s(),
            replies: self.window_replies,
            replies_per_s: self.replies_per_s(),
            bytes_sent: self.window_bytes_sent,
            bytes_received: self.window_bytes_received,
            intervals: if has_intervals {
                self.intervals()
            } else {
                Vec::new()
            },
            intervals_by_tenth: if has_tenths {
                self.replies_by_tenth.map(Vec::from).to_vec()
            } else {
                Vec::new()
            },
            times: has_intervals
                .then(|| self.times_by_part.recorded())
                .flatten(),
        }
    }

    fn fairness(&self) -> Option<Fairness> {
        let fairness = self.replies.fairness()?;
        let (bias, bias_life, bias_absent) = match self.early_bias.finished() {
            EarlyBias::Known { window, life } => (window, life, None),
            EarlyBias::Unknown | EarlyBias::Clients(_) => (
                Bias::default(),
                Bias::default(),
                Some(format!(
                    "{} clients on several hosts are too many to sort by their connection times",
                    self.clients
                )),
            ),
        };
        let life = self.life.fairness().map(|life| LifeFairness {
            mean: life.mean,
            min: life.min,
            max: life.max,
            jain: life.jain,
            early_over_late: bias_life.early_over_late,
        });
        Some(Fairness {
            mean: fairness.mean,
            min: fairness.min,
            max: fairness.max,
            jain: fairness.jain,
            slowest_decile_share: fairness.slowest_decile_share,
            starved: fairness.starved,
            early_bias: bias.correlation,
            early_bias_life: bias_life.correlation,
            early_over_late: bias.early_over_late,
            bias_absent,
            life,
        })
    }

    fn completion(&self, jobs: &JobStats) -> Completion {
        let ended = jobs.done.saturating_add(jobs.failed);
        let mut completion = Completion {
            requests_each: jobs.requests_each,
            at_once: jobs.at_once,
            clients_done: jobs.done,
            failed: jobs.failed,
            unfinished: self.clients.saturating_sub(ended),
            last_done_s: jobs.last_done_ns.map(|at| self.since_began_s(at)),
            clients_per_s: None,
            think_s_mean: jobs.think.mean_s(),
            job_time: jobs.time.latency(),
            connect_failures: jobs.connect_failures.clone(),
            first_failure: jobs.first_failure.as_ref().map(|first| FirstFailure {
                client: first.client,
                at_s: self.since_began_s(first.at_ns),
                kind: first.kind.clone(),
                connected: first.connected,
            }),
        };
        completion.set_rate();
        completion
    }
}
