//! Flags for when clients connect, when they send, and how long connections last.

use std::time::Duration;

use super::values;
use crate::record::Find;
use crate::spec::{
    ClientThreads, Close, DEEPEST_PIPELINE, LoadSpec, RateRange, Spacing, SpecError, Think, Until,
    per_second,
};

#[derive(Debug, clap::Args)]
pub(super) struct TrafficFlags {
    /// Open loop: send N requests per second.
    ///
    /// N is the total of all clients, regardless of server speed. FROM..TO rises over the duration.
    #[arg(long, alias = "qps", value_name = "N", help_heading = "Arrivals")]
    rate: Option<RateRange>,
    /// Inter-arrival distribution with --rate: `constant`, `poisson` (independent users) or `burst:N`
    /// [default: constant].
    #[arg(long, value_name = "DISTRIBUTION", help_heading = "Arrivals")]
    arrival: Option<Spacing>,
    /// Closed loop: pause between a reply and the next request. Write a time, MIN..MAX (uniform) or exp:MEAN.
    /// With --requests-per-client, clients also pause before their first request [default: none].
    #[arg(long, value_name = "TIME|MIN..MAX|exp:MEAN", help_heading = "Arrivals")]
    think: Option<Think>,
    /// Requests in flight per client [default: 1].
    #[arg(long, visible_alias = "streams", value_name = "N",
          value_parser = values::number::<u16>(1, DEEPEST_PIPELINE.into()),
          help_heading = "Arrivals")]
    pipeline: Option<u16>,
    /// Extra clients that send few requests, to measure response time under this load [default: none].
    #[arg(long, value_name = "N", value_parser = values::at_least_one, help_heading = "Arrivals")]
    probe_clients: Option<u32>,
    /// Requests per second of each probe client, at random times [default: 10].
    #[arg(long, value_name = "N", value_parser = per_second, help_heading = "Arrivals")]
    probe_rate: Option<f64>,
    /// Short-lived clients: connect, send N requests, disconnect. The load ends when all are done. There is no
    /// warm-up.
    #[arg(long, visible_alias = "each", value_name = "N",
          value_parser = values::at_least_one, help_heading = "Short-lived clients")]
    requests_per_client: Option<u32>,
    /// Short-lived clients: connect, send requests for this time, disconnect. The load ends when all are done. There
    /// is no warm-up.
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration,
          help_heading = "Short-lived clients")]
    live: Option<Duration>,
    /// Maximum concurrent clients. The next one connects when one disconnects [default: all, or as many as
    /// descriptors allow].
    #[arg(long, value_name = "N",
          value_parser = values::at_least_one, help_heading = "Short-lived clients")]
    at_once: Option<u32>,
    /// Time limit for all clients. Those not done by then count as failed [default: none].
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration,
          help_heading = "Short-lived clients")]
    time_limit: Option<Duration>,

    /// Give each client its own thread with `one-each` [default: one thread per CPU].
    #[arg(long, value_name = "one-each", hide_possible_values = true,
          value_parser = values::one_of(&ClientThreads::NAMED), help_heading = "Connections")]
    client_threads: Option<ClientThreads>,
    /// Seed of all random choices. The same seed gives the same arrival times [default: 1].
    #[arg(long, value_name = "N", help_heading = "Arrivals")]
    seed: Option<u64>,

    /// Connect clients evenly over this time.
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration,
          help_heading = "Connections")]
    ramp: Option<Duration>,
    /// Connect N clients per second [default: as fast as possible].
    #[arg(long, value_name = "N", value_parser = per_second, help_heading = "Connections")]
    connect_rate: Option<f64>,
    /// SYN retries before connecting fails, 1 to 127 [default: the system's].
    #[arg(long, value_name = "N", value_parser = values::number::<u8>(1, 127),
          help_heading = "Connections")]
    syn_retries: Option<u8>,
    /// Reconnect after N requests [default: never].
    #[arg(long, value_name = "N", value_parser = values::at_least_one, help_heading = "Connections")]
    requests_per_connection: Option<u32>,
    /// Open a new connection for each request, like --requests-per-connection 1. HTTP requests then carry
    /// `Connection: close`, unless --close is reset.
    #[arg(
        long,
        visible_alias = "disable-keepalive",
        conflicts_with = "requests_per_connection",
        help_heading = "Connections"
    )]
    no_keepalive: bool,
    /// Reconnect after this time [default: never].
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration, help_heading = "Connections")]
    lifetime: Option<Duration>,
    /// How to close connections: `orderly` (FIN), or `reset` (RST), which leaves no TIME_WAIT [default: orderly].
    #[arg(long, value_name = "orderly|reset", hide_possible_values = true,
          value_parser = values::one_of(&Close::NAMED), help_heading = "Connections")]
    close: Option<Close>,
    /// Reconnect after a failure, with exponential backoff from 10 ms.
    #[arg(long, help_heading = "Connections")]
    reconnect: bool,
    /// Request timeout. The connection then counts as failed [default: none].
    #[arg(long, visible_alias = "timeout", value_name = "TIME", value_parser = values::positive_duration,
          help_heading = "Connections")]
    request_timeout: Option<Duration>,
}

impl TrafficFlags {
    /// Applies the given flags to a load.
    pub(super) fn apply(&self, load: &mut LoadSpec) {
        if self.requests_per_client.is_some() || self.live.is_some() {
            *load = std::mem::take(load).ending(Until::Each {
                requests: self.requests_per_client,
                live: self.live,
                limit: load.time_limit,
            });
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
        load.client_threads = self.client_threads.or(load.client_threads);
        load.close = self.close.unwrap_or(load.close);
        load.reconnect |= self.reconnect;
        load.request_timeout = self.request_timeout.or(load.request_timeout);
    }

    /// The seed, if one was given.
    pub(super) fn seed(&self) -> Option<u64> {
        self.seed
    }
}

/// Rejects settings that a search controls itself.
pub(super) fn check_for_search(load: &LoadSpec, find: Find) -> Result<(), SpecError> {
    match find {
        Find::Clients => load.check_arrival(),
        Find::Rate | Find::Sessions if load.rate.is_some() => {
            let why =
                "`rate` cannot be set, since the search varies it; bound it with --from and --max";
            Err(SpecError::key("rate", why))
        }
        Find::Rate | Find::Sessions if load.think != Think::None => {
            let why =
                "`think` cannot be used with --find rate; leave it out, or use --find clients";
            Err(SpecError::key("think", why))
        }
        Find::Rate | Find::Sessions => Ok(()),
    }
}
