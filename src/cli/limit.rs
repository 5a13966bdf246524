//! `throng limit SERVER`: the most clients, or the highest rate, that a server can handle, and what limits it.

use std::time::Duration;

use super::exit::codes;
use super::load_flags::LoadFlags;
use super::measuring::MeasureFlags;
use super::runner;
use super::running;
use super::search_flags::{NEEDED, SearchFlags, to_search};
use super::servers::Kind;
use super::servers_under_test::{self, LifecycleFlags, Servers};
use super::values;
use super::{Exit, Usage};
use crate::measure::cluster::Origin;
use crate::measure::{RunSpec, host, probes};
use crate::record::format::list;
use crate::record::{Find, Settings, StudyInfo};
use crate::spec::LoadSpec;

const NOTES: &str = "\
Examples:
  throng limit epoll
  throng limit thread poll epoll -o capacity
  throng limit 'node server.js {port}' --p99 50ms
  throng limit http://127.0.0.1:8080/ --server-log /var/log/nginx/error.log
  throng limit epoll --server-limit nofile=300
  throng limit 'python3 app.py {port}' --find rate --clients 20
  throng limit epoll --find rate --until 'response_p99.9 > 10ms' --within 5%
  throng limit 'sh -c \"echo $$ > /sys/fs/cgroup/small/cgroup.procs; exec ./server {port}\"' --max 5000

Servers are named as for `throng compare`. The number of clients, or the rate with --find rate, grows by \
--factor until a trial fails. The search then narrows down to --within, and repeats both sides of the limit. A \
trial fails if a client has an error or no reply, if the server exits, or on a condition of --until. With \
--find rate, it also fails if replies fall behind the rate. The cause comes from the server's own messages, \
its limits of descriptors, threads and memory, the accept queue, and the CPU of both sides. Last, the server \
is measured at 50 % and 80 % of its limit. The probes cpu, accept-queue and limits always run.

Conditions of --until are those of --fail-if in `throng compare`: METRIC OPERATOR VALUE.";

#[derive(Debug, clap::Args)]
#[command(after_help = [NOTES, &codes(&[0, 1, 2, 130])].join("\n\n"))]
pub(super) struct Arguments {
    #[command(flatten)]
    servers: Servers,
    #[command(flatten)]
    search: SearchFlags,
    /// Connection timeout.
    #[arg(long, value_name = "TIME", default_value = "10s",
          value_parser = values::positive_duration)]
    connect_timeout: Duration,
    /// Stop waiting for first replies when none arrives for this long. Clients without one count as never served.
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = values::positive_duration)]
    first_reply_timeout: Duration,
    #[command(flatten)]
    measuring: MeasureFlags,
    #[command(flatten)]
    care: LifecycleFlags,
    #[command(flatten)]
    load: LoadFlags,
}

pub(super) fn run(arguments: &Arguments, origin: &mut Origin) -> anyhow::Result<Exit> {
    if let Some(resumed) = arguments.measuring.resumed(origin) {
        return resumed;
    }
    let plan = resolve(arguments, origin)?;
    let measuring = &arguments.measuring;
    let directory = measuring.directory("limit")?;
    measuring.exporting(&directory, |accepted| {
        runner::runner(&plan, origin, runner::create(&directory)?, accepted)
    })
}

/// Turns the command line into a run specification.
fn resolve(arguments: &Arguments, origin: &Origin) -> anyhow::Result<RunSpec> {
    let kinds = arguments.care.kinds(&arguments.servers.servers)?;
    host::raise_descriptor_limit();
    let measuring = &arguments.measuring;
    let mut names = measuring.probes_or_default();
    names.extend(NEEDED.map(str::to_owned));
    let probes = probes::choose(&names)?;
    let load = LoadSpec {
        connect_timeout: arguments.connect_timeout,
        first_reply_timeout: arguments.first_reply_timeout,
        ..measuring.load()
    };
    let common = servers_under_test::settings(
        load,
        &arguments.load,
        &kinds,
        &arguments.care,
        measuring.cpus(kinds.iter().any(Kind::is_started)),
        &probes,
    )?;
    let threads = common.load_threads as usize;
    let mut limit =
        arguments
            .search
            .limit(threads, origin.hosts().len(), &host::load_resources())?;
    if limit.find.is_rate() && common.load.has_flow() {
        limit.find = Find::Sessions;
    }
    let mut settings = Settings {
        server_address: measuring
            .lab
            .server_address(origin, running::some(&kinds) || arguments.care.has_ready())?,
        ..common
    };
    to_search(&mut settings, &limit).map_err(Usage::from)?;
    settings.dialogue = runner::dialogue(&settings)?;
    let program = runner::program()?;
    let servers = servers_under_test::take_part(
        &arguments.servers,
        &kinds,
        &arguments.care,
        &settings,
        (&program, measuring.lab.allow_remote),
    )?;
    Ok(RunSpec {
        study: StudyInfo {
            name: "limit".to_owned(),
            question: question(
                &servers.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(),
                limit.find,
            ),
        },
        limit: Some(limit),
        servers,
        probes,
        seed: arguments
            .load
            .traffic
            .seed()
            .unwrap_or_else(|| fastrand::u64(..1 << 32)),
        settings,
        ..runner::from_here(origin)?
    })
}

fn question(servers: &[&str], find: Find) -> String {
    let verb = if servers.len() == 1 { "does" } else { "do" };
    let what = match find {
        Find::Clients => "How many clients",
        Find::Rate => "How many requests per second",
        Find::Sessions => "How many sessions per second",
    };
    format!("{what} {verb} {} hold, and what limits it?", list(servers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_names_all() {
        assert_eq!(
            question(&["thread", "poll"], Find::Clients),
            "How many clients do thread and poll hold, and what limits it?"
        );
        assert!(
            question(&["epoll"], Find::Rate).starts_with("How many requests per second does epoll")
        );
    }
}
