//! What of a load's plan every request looks at.

use super::super::Plan;

/// Copied from the plan, so that it lies together.
#[expect(clippy::struct_excessive_bools, reason = "rules are these")]
#[derive(Debug)]
pub(super) struct Rules {
    /// Requests that a client may have open at once.
    pub(super) pipeline: u16,
    /// Whether each request is put together for one client.
    pub(super) makes: bool,
    /// Whether requests come due by themselves.
    pub(super) has_dues: bool,
    /// Whether clients think before their first request too.
    pub(super) thinks_first: bool,
    /// Requests after which a connection is closed.
    pub(super) requests_per_connection: u64,
    /// And the time, in nanoseconds.
    pub(super) lifetime: u64,
    /// Whether there is such a limit at all.
    pub(super) wears_out: bool,
    /// Whether what the server says may call for an answer.
    pub(super) has_handshake: bool,
    /// Whether nearly every reply is followed by the next request at once, and by nothing else.
    pub(super) exchanges: bool,
}

impl Rules {
    pub(super) fn of(plan: &Plan) -> Self {
        let nanoseconds = |time: std::time::Duration| time.as_nanos() as u64;
        let (makes, has_dues) = (plan.dialogue.makes(&plan.settings), plan.has_dues());
        let wears_out = plan.requests_per_connection.is_some() || plan.lifetime.is_some();
        let has_handshake = plan.dialogue.has_handshake();
        let is_special = makes || has_dues || wears_out || has_handshake || plan.job().is_some();
        Self {
            pipeline: plan.pipeline,
            makes,
            has_dues,
            thinks_first: has_dues && plan.job().is_some(),
            requests_per_connection: plan.requests_per_connection.map_or(u64::MAX, u64::from),
            lifetime: plan.lifetime.map_or(u64::MAX, nanoseconds),
            wears_out,
            has_handshake,
            exchanges: plan.pipeline == 1 && !is_special,
        }
    }
}
