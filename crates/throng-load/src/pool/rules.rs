//! The part of a load's plan that every request needs.

use super::super::Plan;

/// Copied from the plan to be close together in memory.
#[expect(clippy::struct_excessive_bools, reason = "rules are these")]
#[derive(Debug)]
pub(super) struct Rules {
    /// Maximum open requests per client.
    pub(super) pipeline: u16,
    /// Whether each request is built for one client.
    pub(super) makes: bool,
    /// Whether requests are the steps of a flow.
    pub(super) has_flow: bool,
    /// Whether requests are scheduled.
    pub(super) has_dues: bool,
    /// Whether clients think before their first request too.
    pub(super) thinks_first: bool,
    /// Number of requests after which a client reconnects.
    pub(super) requests_per_connection: u64,
    /// Time after which a client reconnects, in nanoseconds.
    pub(super) lifetime: u64,
    /// Time after which a short-lived client ends, in nanoseconds.
    pub(super) life: u64,
    /// Whether there is any of these limits.
    pub(super) expires: bool,
    /// Whether messages from the server may need a reaction.
    pub(super) has_handshake: bool,
    /// Whether a reply is nearly always followed by the next request immediately.
    pub(super) exchanges: bool,
}

impl Rules {
    pub(super) fn of(plan: &Plan) -> Self {
        let nanoseconds = |time: std::time::Duration| time.as_nanos() as u64;
        let (makes, has_dues) = (
            plan.dialogue.generates_requests(&plan.settings),
            plan.has_due_times(),
        );
        let (life, has_jobs) = (plan.life(), plan.has_jobs());
        let expires =
            plan.requests_per_connection.is_some() || plan.lifetime.is_some() || life.is_some();
        let has_handshake = plan.dialogue.has_handshake();
        let is_special = makes || has_dues || expires || has_handshake || has_jobs;
        Self {
            pipeline: plan.pipeline,
            makes,
            has_flow: plan.settings.flow.is_some(),
            has_dues,
            thinks_first: has_dues && has_jobs,
            requests_per_connection: plan.requests_per_connection.map_or(u64::MAX, u64::from),
            lifetime: plan.lifetime.map_or(u64::MAX, nanoseconds),
            life: life.map_or(u64::MAX, nanoseconds),
            expires,
            has_handshake,
            exchanges: plan.pipeline == 1 && !is_special,
        }
    }
}
