//! The goal and bounds of `throng limit`; in a study, the table `limit`.

use std::time::Duration;

use super::WrongOption;
use super::traffic::check_for_search;
use super::{servers_under_test, values};
use crate::load::preflight;
use crate::record::format::whole;
use crate::record::metrics::Condition;
use crate::record::{Find, Limit, Resources, Settings};
use crate::spec::{Spacing, SpecError};

/// Probes that most causes of a limit need.
pub(super) const NEEDED: [&str; 3] = ["cpu", "accept-queue", "limits"];
/// Default upper bound of the clients, or of the requests per second.
const MOST: u64 = 1 << 20;

/// Flags of a search, which are also the keys of the table `limit`.
#[derive(Debug, clap::Args)]
pub(super) struct SearchFlags {
    /// Search for the most clients or the highest rate.
    #[arg(
        long,
        value_name = "clients|rate",
        default_value = "clients",
        hide_possible_values = true
    )]
    find: FindFlag,
    /// Concurrent clients with --find rate [default: 50].
    #[arg(short, long, visible_aliases = ["connections", "concurrency"], alias = "vus", value_name = "N",
          value_parser = values::at_least_one)]
    clients: Option<u32>,
    /// Fail a trial on this condition, like `p99 > 50ms`.
    ///
    /// Repeat for more. Errors always fail a trial.
    #[arg(long, value_name = "CONDITION", value_parser = condition)]
    until: Vec<String>,
    /// Maximum p99 latency, short for --until 'p99 > TIME'. With --find rate, it is the response time
    /// [default: any].
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    p99: Option<Duration>,
    /// Lower bound, where the search starts [default: 16 clients, or 100 requests/s].
    #[arg(long, value_name = "N", value_parser = values::at_least_one)]
    from: Option<u32>,
    /// Upper bound [default: what this machine supports].
    #[arg(long, value_name = "N", value_parser = values::at_least_one)]
    max: Option<u32>,
    /// Growth per step, until a trial fails.
    #[arg(long, value_name = "X", default_value = "2", value_parser = factor)]
    factor: f64,
    /// Precision of the limit. 0% finds it exactly.
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = servers_under_test::percent)]
    within: f64,
    /// Trials that confirm each side of the limit.
    #[arg(long, value_name = "N", default_value = "3", value_parser = values::at_least_one)]
    confirm: u32,
    /// Maximum trials per server.
    #[arg(long, value_name = "N", default_value = "60", value_parser = values::at_least_one)]
    tries: u32,
    /// Time limit per server.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = values::positive_duration)]
    search_time: Duration,
}

/// [`Find`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FindFlag {
    /// The most clients.
    Clients,
    /// The highest rate of requests, in an open loop.
    Rate,
}

/// Applies the search to the settings. By default, a rate has random arrivals.
pub(super) fn to_search(settings: &mut Settings, limit: &Limit) -> Result<(), SpecError> {
    let load = &mut settings.load;
    check_for_search(load, limit.find)?;
    let most = u32::try_from(limit.max).unwrap_or(u32::MAX);
    load.clients = limit.clients.unwrap_or(most);
    settings.clients = limit.clients.into_iter().collect();
    settings.runs = limit.confirm;
    if limit.find.is_rate() {
        load.arrival.get_or_insert(Spacing::Poisson);
    }
    Ok(())
}

impl SearchFlags {
    /// Parses words like those of a command line.
    pub(super) fn read(words: &[String]) -> Result<Self, clap::Error> {
        #[derive(clap::Parser)]
        #[command(no_binary_name = true)]
        struct Line {
            #[command(flatten)]
            search: SearchFlags,
        }
        <Line as clap::Parser>::try_parse_from(words).map(|line| line.search)
    }

    /// The goal and bounds of the search, with `threads` threads on each of `hosts` client hosts. These, if there are
    /// any, are assumed to be like this host.
    pub(super) fn limit(
        &self,
        threads: usize,
        hosts: usize,
        resources: &Resources,
    ) -> anyhow::Result<Limit> {
        let find = match self.find {
            FindFlag::Clients => Find::Clients,
            FindFlag::Rate => Find::Rate,
        };
        if find == Find::Clients && self.clients.is_some() {
            let what = "--clients cannot be set, since the search varies it; bound it with --from and --max, or use --find rate";
            return Err(WrongOption::new("clients", what.to_owned()).into());
        }
        let clients = find.is_rate().then(|| self.clients.unwrap_or(50));
        let (most, max_reason) = self.bound(find, clients, threads, hosts, resources)?;
        let usual = if find.is_rate() { 100 } else { 16 };
        if let Some(from) = self.from.filter(|from| u64::from(*from) > most) {
            let why = format!(
                "--from {from} is above the upper bound of {most} ({max_reason}); lower it"
            );
            return Err(WrongOption::new("from", why).into());
        }
        let mut until = self.until.clone();
        until.extend(self.p99.map(|time| {
            let metric = match find {
                Find::Clients => "p99",
                Find::Rate | Find::Sessions => "response_p99",
            };
            match time.as_micros() {
                us if us % 1000 == 0 => format!("{metric} > {}ms", us / 1000),
                us => format!("{metric} > {us}us"),
            }
        }));
        Ok(Limit {
            find,
            from: self.from.map_or(usual.min(most), u64::from),
            max: most,
            max_reason,
            factor: self.factor,
            within_percent: self.within,
            tries: self.tries,
            time_limit_s: self.search_time.as_secs_f64(),
            confirm: self.confirm,
            until,
            clients,
            found: Vec::new(),
        })
    }

    /// The upper bound, and its reason.
    fn bound(
        &self,
        find: Find,
        clients: Option<u32>,
        threads: usize,
        hosts: usize,
        resources: &Resources,
    ) -> anyhow::Result<(u64, String)> {
        let wanted = self.max.map_or(MOST, u64::from);
        let because = match self.max {
            Some(most) => format!("--max is {}", whole(f64::from(most))),
            None => "the default of --max".to_owned(),
        };
        let connected = clients.unwrap_or(wanted as u32);
        let count = hosts.max(1) as u32;
        let (fits, shortage) = preflight::most(connected.div_ceil(count), threads, resources);
        let fits = fits.saturating_mul(count);
        match (find, shortage) {
            (Find::Rate | Find::Sessions, Some(shortage)) => Err(shortage.into()),
            (Find::Clients, Some(shortage)) if fits == 0 => Err(shortage.into()),
            (Find::Clients, Some(shortage)) => Ok((u64::from(fits), shortage.to_string())),
            (_, None) => Ok((wanted, because)),
        }
    }
}

/// Parses a condition, and keeps it as written. A metric without an operator must stay 0.
fn condition(text: &str) -> Result<String, String> {
    let has_operator = text.contains(['<', '>', '=', '!']);
    let text = if has_operator {
        text.to_owned()
    } else {
        format!("{} > 0", text.trim())
    };
    match Condition::parse(&text)? {
        Condition { name: Some(_), .. } => {
            Err("--until applies to every server; leave the name out".to_owned())
        }
        _ => Ok(text),
    }
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(factor) if (1.1..=100.0).contains(&factor) => Ok(factor),
        _ => Err("expected a number from 1.1 to 100".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_may_be_a_metric_that_must_stay_0() {
        assert_eq!(condition("errors").unwrap(), "errors > 0");
        assert_eq!(condition("p99 > 5ms").unwrap(), "p99 > 5ms");
        assert!(
            condition("a: p99 > 5ms")
                .unwrap_err()
                .contains("leave the name out")
        );
        assert!(condition("weight").unwrap_err().contains("unknown metric"));
    }
}
