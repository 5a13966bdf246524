//! The throughput of the same clients against a minimal server.

use std::time::Duration;

use anyhow::Context as _;

use super::super::Usage;
use super::watch::Unseen;
use crate::load::arrival::Think;
use crate::load::route::Routes;
use crate::load::{self, Engine, Plan, Until};
use crate::measure::host;
use crate::measure::servers::own_server::OwnServer;
use crate::record::{Ceiling, Load};
use crate::registry::{self, Entry as _};
use crate::serve::models::MODELS;
use crate::spec::LoadSpec;
use crate::sys::signal::Stop;

/// Measurement duration. It is short, since it adds to the duration of the load.
const DURATION: Duration = Duration::from_secs(1);
const WARM_UP: Duration = Duration::from_millis(200);

/// The models that cost their clients the least, best first.
const CHEAPEST: [&str; 2] = ["io-uring", "epoll-et"];

/// The options of `throng serve` for serving the requests of a load.
///
/// # Errors
/// If built-in servers do not support the load.
pub(super) fn options(load: &LoadSpec) -> Result<Vec<String>, Usage> {
    let (Some(protocol), None) = (&load.protocol, load.only_for_others()) else {
        let key = load.only_for_others().unwrap_or("send");
        let why = format!(
            "--calibrate cannot be used with --{key}, which built-in servers do not support; leave one out"
        );
        return Err(Usage(why));
    };
    let options = [
        ("--protocol", protocol.clone()),
        ("--size", load.size.largest().to_string()),
        ("--max-upload", u64::MAX.to_string()),
    ];
    let words = options.map(|(name, value)| [name.to_owned(), value]);
    Ok(words.into_iter().flatten().collect())
}

/// Starts such a server with `options`, and loads it with the clients of `plan` in a closed loop.
///
/// # Errors
/// If the server cannot be started, or serves no client.
pub(super) fn ceiling(plan: &Plan, options: &[String], stop: Stop) -> anyhow::Result<Ceiling> {
    let model = cheapest(plan.engine);
    let free: Vec<u32> = host::usable_cpus()
        .into_iter()
        .filter(|cpu| !plan.cpus.is_empty() && !plan.cpus.contains(cpu))
        .collect();
    let server = OwnServer::start("the server for --calibrate", model, options, &free, stop)?;
    let ports = host::load_resources().ports;
    let clients = plan.at_once.unwrap_or(plan.clients);
    let plan = Plan {
        routes: Routes::new(&[server.address().into()], &[], clients, ports)?,
        clients,
        at_once: None,
        rate: None,
        think: Think::None,
        until: Until::Duration(DURATION),
        warm_up: WARM_UP,
        longest_warm_up: WARM_UP,
        connects_per_s: None,
        requests_per_connection: None,
        lifetime: None,
        probes: None,
        ..plan.clone()
    };
    let result = load::run(&plan, &mut Unseen(stop))?;
    let load = result.stats.summary();
    let replies = load.window.replies;
    let rate = load.window.replies_per_s.filter(|rate| *rate > 0.0);
    let replies_per_s =
        rate.with_context(|| format!("the server for --calibrate ({model}) served no client"))?;
    Ok(Ceiling {
        model: model.to_owned(),
        replies_per_s,
        cpu_us_per_reply: load.cpu_s.unwrap_or_default() * 1e6 / replies as f64,
        share: 0.0,
    })
}

/// Adds the share of the ceiling that a load reached, if it had a rate.
pub(super) fn reached(ceiling: Ceiling, load: &Load) -> Option<Ceiling> {
    Some(Ceiling {
        share: load.window.replies_per_s? / ceiling.replies_per_s,
        ..ceiling
    })
}

/// The supported model that costs the clients of `engine` the least.
pub(in crate::cli) fn cheapest(engine: Engine) -> &'static str {
    let is_there = |name: &&str| {
        let model = registry::find("model", MODELS, name);
        model.is_ok_and(|model| model.supported().is_ok())
    };
    // io_uring pays off only if both ends use it.
    let skipped = usize::from(engine == Engine::Epoll);
    let best = CHEAPEST.into_iter().skip(skipped).find(is_there);
    best.unwrap_or("poll")
}
