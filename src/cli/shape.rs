//! What shape a load has: how clients come, when they ask, how long connections last.

use std::time::Duration;

use super::arrival;
use super::{Usage, values};
use crate::load::arrival::{Rate, Spacing, Think};
use crate::load::{Close, Plan, Probes, Until};
use crate::measure::plan::Jobs;
use crate::record::Find;

/// Requests that a client may have out at once, at most.
const DEEPEST_PIPELINE: u16 = 1024;

#[derive(Debug, clap::Args)]
pub(super) struct Shape {
    /// An open loop: requests that come due a second over all clients, whatever the server does;
    /// FROM..TO rises evenly over the duration.
    #[arg(long, value_name = "N|FROM..TO", value_parser = arrival::rate, help_heading = "When requests come due")]
    rate: Option<arrival::RateRange>,
    /// How requests lie about that rate: `constant`, `poisson` (as many independent users send
    /// them), or `burst:N` at once [default: constant].
    #[arg(long, value_name = "HOW", value_parser = arrival::spacing,
          help_heading = "When requests come due")]
    arrival: Option<Spacing>,
    /// A closed loop with time to think between a reply and the next request: always so long,
    /// MIN..MAX at random, or exp:MEAN. Where each client has a job, it also thinks when it has connected,
    /// before its first request.
    #[arg(long, value_name = "TIME|MIN..MAX|exp:MEAN", conflicts_with = "rate",
          value_parser = arrival::think, help_heading = "When requests come due")]
    think: Option<Think>,
    /// Requests that a client may have out at once.
    #[arg(long, value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u16).range(1..=i64::from(DEEPEST_PIPELINE)),
          help_heading = "When requests come due")]
    pipeline: u16,
    /// Clients beside the crowd that ask seldom, to see what response time the crowd leaves.
    #[arg(long, value_name = "N", value_parser = values::at_least_one, help_heading = "When requests come due")]
    probe_clients: Option<u32>,
    /// Requests a second of each of them, at random times.
    #[arg(long, value_name = "N", default_value = "10", requires = "probe_clients",
          value_parser = per_second, help_heading = "When requests come due")]
    probe_rate: f64,
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
    /// Close a connection after this time and make another one.
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration, help_heading = "Connections")]
    lifetime: Option<Duration>,
    /// How it is closed then: `orderly`, or by a `reset`, which leaves no TIME_WAIT.
    #[arg(
        long,
        value_name = "HOW",
        default_value = "orderly",
        help_heading = "Connections"
    )]
    close: HowToClose,
    /// Have clients whose connection failed make another one, after 10 ms and then ever longer.
    #[arg(long, help_heading = "Connections")]
    reconnect: bool,
    /// How long a reply may take; after that its connection counts as failed [default: no limit].
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration, help_heading = "Connections")]
    request_timeout: Option<Duration>,
}

/// [`Close`] on the command line.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum HowToClose {
    /// With FIN.
    Orderly,
    /// With RST.
    Reset,
}

/// So many a second.
fn per_second(text: &str) -> Result<f64, String> {
    let range = arrival::rate(text)?;
    if range.from_per_s < range.to_per_s {
        return Err("it stays the same; write one number".to_owned());
    }
    Ok(range.to_per_s)
}

impl Shape {
    /// Gives a plan this shape.
    pub(super) fn apply(&self, plan: &mut Plan) {
        plan.rate = self.rate.map(|range| Rate {
            from_per_s: range.from_per_s,
            to_per_s: range.to_per_s,
            rise: match plan.until {
                Until::Duration(duration) => duration + plan.warm_up,
                Until::Requests(_) | Until::Bytes(_) | Until::Each { .. } => Duration::ZERO,
            },
            spacing: self.arrival.unwrap_or(Spacing::Constant),
        });
        plan.think = self.think.unwrap_or(Think::None);
        plan.pipeline = self.pipeline;
        plan.probes = self.probe_clients.map(|clients| Probes {
            clients,
            rate_per_s: self.probe_rate,
        });
        plan.seed = self.seed.unwrap_or(1);
        plan.connects_per_s = self
            .ramp
            .map(|ramp| f64::from(plan.clients) / ramp.as_secs_f64())
            .or(self.connect_rate);
        plan.socket.syn_retries = self.syn_retries;
        plan.requests_per_connection = self.requests_per_connection;
        plan.lifetime = self.lifetime;
        plan.close = match self.close {
            HowToClose::Orderly => Close::Orderly,
            HowToClose::Reset => Close::Reset,
        };
        plan.reconnect = self.reconnect;
        plan.request_timeout = self.request_timeout;
    }

    /// Refuses arrivals where nothing says how many there are.
    pub(super) fn check(&self) -> Result<(), Usage> {
        if self.arrival.is_some() && self.rate.is_none() {
            return Err(Usage("--arrival needs a --rate".to_owned()));
        }
        Ok(())
    }

    /// Refuses what a search decides by itself.
    pub(super) fn for_a_search(&self, find: Find) -> Result<(), Usage> {
        match find {
            Find::Clients => self.check(),
            Find::Rate if self.rate.is_some() => {
                let what = "--rate is what is searched for; say --from or --most";
                Err(Usage(what.to_owned()))
            }
            Find::Rate if self.think.is_some() => Err(Usage(
                "a rate has no time to --think; leave it out, or search for --find clients"
                    .to_owned(),
            )),
            Find::Rate => Ok(()),
        }
    }

    /// Whether it was said how requests come due.
    pub(super) fn says_arrival(&self) -> bool {
        self.arrival.is_some()
    }

    /// When a load is enough in which each client has a job.
    pub(super) fn until(&self) -> Option<Until> {
        let requests = self.requests_per_client?;
        Some(Until::Each {
            requests,
            limit: self.time_limit,
        })
    }

    /// The same for whoever waits for such a load, of which a request has so many bytes.
    pub(super) fn jobs(&self, request_bytes: u64) -> Option<Jobs> {
        Some(Jobs {
            requests: self.requests_per_client?,
            think: self.think.unwrap_or(Think::None).longest(),
            request_bytes,
            limit: self.time_limit,
        })
    }

    /// Most clients that are to be there at the same time, if that was said.
    pub(super) fn at_once(&self) -> Option<u32> {
        self.at_once
    }

    /// Connections that a client makes one after the other where each has a job, `closes` telling
    /// whether the server ends each after a reply.
    pub(super) fn connections_each(&self, closes: bool) -> u32 {
        let requests = self.requests_per_client.unwrap_or(1);
        let on_one = if closes {
            1
        } else {
            self.requests_per_connection.unwrap_or(requests)
        };
        requests.div_ceil(on_one)
    }

    /// The option by which the clients, and not the server, say how many requests come a second.
    pub(super) fn sets_the_rate(&self) -> Option<&'static str> {
        let thinks = |think: Think| think != Think::None;
        if self.rate.is_some() {
            Some("--rate")
        } else if self.requests_per_client.is_some() {
            Some("--requests-per-client")
        } else {
            self.think.is_some_and(thinks).then_some("--think")
        }
    }

    /// The seed, if one was given.
    pub(super) fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// The time over which so many clients come, where that is slow on purpose.
    pub(super) fn coming(&self, clients: u32) -> Duration {
        let by_rate = self
            .connect_rate
            .map(|per_s| Duration::try_from_secs_f64(f64::from(clients) / per_s));
        let by_rate = by_rate.map(|time| time.unwrap_or(Duration::MAX));
        self.ramp.or(by_rate).unwrap_or_default()
    }
}
