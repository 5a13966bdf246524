//! `throng limit SERVER`: the most that a server holds, and what gives way first.

use std::time::Duration;

use super::built::built;
use super::exit::codes;
use super::load_flags::LoadFlags;
use super::measuring::Measuring;
use super::runner;
use super::running;
use super::search_flags::{NEEDED, SearchFlags, to_search};
use super::servers::Kind;
use super::servers_under_test::{self, Care};
use super::values;
use super::{Exit, Usage};
use crate::measure::cluster::Origin;
use crate::measure::{RunSpec, host, probes};
use crate::record::format::list;
use crate::record::spec::LoadSpec;
use crate::record::{Find, Settings, StudyInfo};

const NOTES: &str = "\
Examples:
  throng limit epoll
  throng limit thread poll epoll -o capacity
  throng limit 'node server.js {port}' --p99 50ms
  throng limit http://127.0.0.1:8080/ --server-log /var/log/nginx/error.log
  throng limit epoll --server-limit nofile=300
  throng limit 'python3 app.py {port}' --find rate --clients 20
  throng limit epoll --find rate --until 'response_p99.9 > 10ms' --within 5%
  throng limit 'sh -c \"echo $$ > /sys/fs/cgroup/small/cgroup.procs; exec ./server {port}\"' --most 5000

A server is named as for `throng compare`. The number of clients, or the rate with --find rate, rises by
a factor until a trial breaks; then the limit is closed in on, and both what held and what broke are
tried again. A trial breaks when a client has an error, is not served, the server ends, or a condition of
--until is so; at a rate also when replies fall behind what comes due. What gave way first is told from
what the server says, its limits of descriptors, threads and memory, the accept queue, and the CPU of
both sides. Then the server is looked at again at half and at 80 % of its limit. The probes `cpu`,
`accept-queue` and `limits` measure always.

Conditions of --until are those of --fail-if of `throng compare`: METRIC OPERATOR VALUE.";

#[derive(Debug, clap::Args)]
#[command(after_help = [NOTES, &codes(&[0, 1, 2, 130])].join("\n\n"))]
pub(super) struct Arguments {
    /// Servers: models, commands, or addresses of running servers (HOST:PORT, http://HOST:PORT/PATH). Quote those with
    /// spaces.
    #[arg(value_name = "SERVER", required_unless_present = "resume")]
    servers: Vec<String>,
    /// Name of a server; repeat it in the servers' order.
    #[arg(short, long = "name", value_name = "NAME", value_parser = servers_under_test::name)]
    names: Vec<String>,
    #[command(flatten)]
    search: SearchFlags,
    /// Timeout of connecting.
    #[arg(long, value_name = "TIME", default_value = "10s",
          value_parser = values::positive_duration)]
    connect_timeout: Duration,
    /// If no client gets its first reply for this long, those still waiting count as never served.
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = values::positive_duration)]
    patience: Duration,
    #[command(flatten)]
    measuring: Measuring,
    #[command(flatten)]
    care: Care,
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

/// Turns the command line into what is searched for; refuses what cannot be.
fn resolve(arguments: &Arguments, origin: &Origin) -> anyhow::Result<RunSpec> {
    let kinds = arguments.care.kinds(&arguments.servers)?;
    host::raise_descriptor_limit();
    let measuring = &arguments.measuring;
    let mut names = measuring.probes_or_default();
    names.extend(NEEDED.map(str::to_owned));
    let probes = probes::choose(&names)?;
    let load = LoadSpec {
        connect_timeout: arguments.connect_timeout,
        patience: arguments.patience,
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
    let limit = arguments
        .search
        .limit(threads, origin.hosts().len(), &host::load_resources())?;
    let mut settings = Settings {
        server_address: measuring
            .lab
            .server_address(origin, running::some(&kinds))?,
        ..common
    };
    to_search(&mut settings, &limit).map_err(Usage::from)?;
    settings.dialogue = runner::said(&settings)?;
    let program = runner::program()?;
    let servers = servers_under_test::take_part(
        &arguments.servers,
        &arguments.names,
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
        comparison: None,
        limit: Some(limit),
        servers,
        control: None,
        null_server: None,
        probes,
        program,
        built: built(),
        seed: arguments
            .load
            .traffic
            .seed()
            .unwrap_or_else(|| fastrand::u64(..1 << 32)),
        arguments: runner::arguments(),
        host: host::look(),
        client_hosts: origin.hosts().to_vec(),
        settings,
        done: Vec::new(),
        retry_invalid: false,
    })
}

fn question(servers: &[&str], find: Find) -> String {
    let verb = if servers.len() == 1 { "does" } else { "do" };
    let what = match find {
        Find::Clients => "How many clients",
        Find::Rate => "How many requests a second",
    };
    format!(
        "{what} {verb} {} hold, and what gives way first?",
        list(servers)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_names_all() {
        assert_eq!(
            question(&["thread", "poll"], Find::Clients),
            "How many clients do thread and poll hold, and what gives way first?"
        );
        assert!(
            question(&["epoll"], Find::Rate).starts_with("How many requests a second does epoll")
        );
    }
}
