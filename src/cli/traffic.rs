//! Flags for how clients come, when they ask, and how long connections last.

use std::time::Duration;

use super::values;
use crate::record::Find;
use crate::record::spec::{
    Close, DEEPEST_PIPELINE, LoadSpec, RateRange, Spacing, SpecError, Think, Until, per_second,
};

#[derive(Debug, clap::Args)]
pub(super) struct TrafficFlags {
    /// An open loop: requests that come due a second over all clients, whatever the server does;
    /// FROM..TO rises evenly over the duration.
    #[arg(
        long,
        value_name = "N|FROM..TO",
        help_heading = "When requests come due"
    )]
    rate: Option<RateRange>,
    /// How requests lie about that rate: `constant`, `poisson` (as many independent users send
    /// them), or `burst:N` at once [default: constant].
    #[arg(long, value_name = "HOW", help_heading = "When requests come due")]
    arrival: Option<Spacing>,
    /// A closed loop with time to think between a reply and the next request: always so long,
    /// MIN..MAX at random, or exp:MEAN. Where each client has a job, it also thinks when it has connected,
    /// before its first request.
    #[arg(
        long,
        value_name = "TIME|MIN..MAX|exp:MEAN",
        conflicts_with = "rate",
        help_heading = "When requests come due"
    )]
    think: Option<Think>,
    /// Requests that a client may have out at once [default: 1].
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=i64::from(DEEPEST_PIPELINE)),
          help_heading = "When requests come due")]
    pipeline: Option<u16>,
    /// Clients beside the crowd that ask seldom, to see what response time the crowd leaves.
    #[arg(long, value_name = "N", value_parser = values::at_least_one, help_heading = "When requests come due")]
    probe_clients: Option<u32>,
    /// Requests a second of each of them, at random times [default: 10].
    #[arg(long, value_name = "N", requires = "probe_clients",
          value_parser = per_second, help_heading = "When requests come due")]
    probe_rate: Option<f64>,
    /// Give each client a job: to connect, make N requests, close and be done. The load ends when all are
    /// done or have failed; all of it counts, without rest and warm-up.
    #[arg(long, visible_alias = "each", value_name = "N", conflicts_with = "rate",
          value_parser = values::at_least_one, help_heading = "Clients with a job each")]
    requests_per_client: Option<u32>,
    /// Most of these clients that are there at the same time; the next one comes when one has gone
    /// [default: all, or as many as there are descriptors for].
    #[arg(long, value_name = "N", requires = "requests_per_client",
          value_parser = values::at_least_one, help_heading = "Clients with a job each")]
    at_once: Option<u32>,
    /// How long all of it may take; who is not done by then counts as such [default: no limit].
    #[arg(long, value_name = "TIME", requires = "requests_per_client",
          value_parser = values::positive_duration, help_heading = "Clients with a job each")]
    time_limit: Option<Duration>,

    /// Where everything random begins; the same seed gives the same times [default: 1].
    #[arg(long, value_name = "N", help_heading = "When requests come due")]
    seed: Option<u64>,

    /// The time over which clients come, evenly.
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration,
          conflicts_with = "connect_rate", help_heading = "Connections")]
    ramp: Option<Duration>,
    /// Or how many of them come in a second [default: as many as can].
    #[arg(long, value_name = "N", value_parser = per_second, help_heading = "Connections")]
    connect_rate: Option<f64>,
    /// How often a SYN is sent again before connecting fails, from 1 to 127 [default: as the system
    /// has it].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=127),
          help_heading = "Connections")]
    syn_retries: Option<u8>,
    /// Close a connection after so many requests and make another one.
    #[arg(long, value_name = "N", value_parser = values::at_least_one, help_heading = "Connections")]
    requests_per_connection: Option<u32>,
    /// Make a connection for each request: the same as --requests-per-connection 1.
    #[arg(
        long,
        visible_alias = "disable-keepalive",
        conflicts_with = "requests_per_connection",
        help_heading = "Connections"
    )]
    no_keepalive: bool,
    /// Close a connection after this time and make another one.
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration, help_heading = "Connections")]
    lifetime: Option<Duration>,
    /// How it is closed then: `orderly`, or by a `reset`, which leaves no TIME_WAIT [default: orderly].
    #[arg(long, value_name = "HOW", value_parser = values::one_of(&Close::NAMED), help_heading = "Connections")]
    close: Option<Close>,
    /// Have clients whose connection failed make another one, after 10 ms and then ever longer.
    #[arg(long, help_heading = "Connections")]
    reconnect: bool,
    /// How long a reply may take; after that its connection counts as failed [default: no limit].
    #[arg(long, visible_alias = "timeout", value_name = "TIME", value_parser = values::positive_duration,
          help_heading = "Connections")]
    request_timeout: Option<Duration>,
}

impl TrafficFlags {
    /// Gives a load what was typed.
    pub(super) fn apply(&self, load: &mut LoadSpec) {
        if let Some(requests) = self.requests_per_client {
            let limit = load.time_limit;
            *load = std::mem::take(load).ending(Until::Each { requests, limit });
        }
        load.rate = self.rate.or(load.rate);
        load.arrival = self.arrival.or(load.arrival);
        load.think = self.think.unwrap_or(load.think);
        load.pipeline = self.pipeline.unwrap_or(load.pipeline);
        load.probe_clients = self.probe_clients.or(load.probe_clients);
        load.probe_rate = self.probe_rate.unwrap_or(load.probe_rate);
        load.at_once = self.at_once.or(load.at_once);
        load.time_limit = self.time_limit.or(load.time_limit);
        load.seed = self.seed.unwrap_or(load.seed);
        load.ramp = self.ramp.or(load.ramp);
        load.connect_rate = self.connect_rate.or(load.connect_rate);
        load.syn_retries = self.syn_retries.or(load.syn_retries);
        load.requests_per_connection = self
            .requests_per_connection
            .or(self.no_keepalive.then_some(1))
            .or(load.requests_per_connection);
        load.lifetime = self.lifetime.or(load.lifetime);
        load.close = self.close.unwrap_or(load.close);
        load.reconnect |= self.reconnect;
        load.request_timeout = self.request_timeout.or(load.request_timeout);
    }

    /// The seed, if one was given.
    pub(super) fn seed(&self) -> Option<u64> {
        self.seed
    }
}

/// Refuses what a search decides by itself.
pub(super) fn check_for_search(load: &LoadSpec, find: Find) -> Result<(), SpecError> {
    match find {
        Find::Clients => load.check_arrival(),
        Find::Rate if load.rate.is_some() => {
            let why = "`rate` is what is searched for; say --from or --most";
            Err(SpecError::key("rate", why))
        }
        Find::Rate if load.think != Think::None => {
            let why = "a rate has no time to `think`; leave it out, or search for --find clients";
            Err(SpecError::key("think", why))
        }
        Find::Rate => Ok(()),
    }
}
