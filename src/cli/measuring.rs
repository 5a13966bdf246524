//! Options of every subcommand that measures servers and leaves a record: on which CPUs, for how long, with
//! which probes, and where to.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::exit::Accepted;
use super::export::{Exports, Opened};
use super::lab::Lab;
use super::report::Print;
use super::values::{self, CpuList};
use super::{Exit, runner, study};
use crate::measure::cluster::Origin;
use crate::measure::{host, plan};
use crate::record;
use crate::record::spec::LoadSpec;

/// How long replies count, and how long to load before, where no study says it.
const DURATION: Duration = Duration::from_secs(1);
const WARM_UP: Duration = Duration::from_millis(300);

#[derive(Debug, clap::Args)]
pub(super) struct Measuring {
    /// Measurement duration of a trial [default: 1s, or the study's].
    #[arg(short, long, value_name = "TIME", value_parser = values::positive_duration)]
    pub(super) duration: Option<Duration>,
    /// Warm-up, once every client has had its first reply [default: 300ms, or the study's].
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(super) warm_up: Option<Duration>,
    /// CPUs for the servers [default: the first half].
    #[arg(long, value_name = "LIST", requires = "client_cpus")]
    server_cpus: Option<CpuList>,
    /// CPUs for the clients [default: the second half].
    #[arg(long, value_name = "LIST", requires = "server_cpus")]
    client_cpus: Option<CpuList>,
    /// Probes (`throng list probes`), `default`, `all` or `none` [default: `default`, or the study's].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(super) probes: Option<Vec<String>>,
    /// Directory for record and report [default: throng-results/TIME-NAME].
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Continue an unfinished run.
    #[arg(long, value_name = "DIR")] // and nothing else, see `super::resumes_alone`
    resume: Option<PathBuf>,
    /// Print the summary as JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// Repeats of an invalid trial: the load generator stalled, clients were not served, or other work took the CPUs.
    #[arg(long, value_name = "N", default_value = "3")]
    pub(super) retries: u32,
    /// With --resume: repeat invalid trials.
    #[arg(long, requires = "resume")]
    retry_invalid: bool,
    /// Exit with 0 even if trials failed or were invalid, or the data is unusable.
    #[arg(long)]
    allow_rough: bool,
    #[command(flatten)]
    exports: Exports,
    #[command(flatten)]
    pub(super) lab: Lab,
}

impl Measuring {
    /// Goes on with an earlier run, if that is what is wanted.
    pub(super) fn resumed(&self, origin: &mut Origin) -> Option<anyhow::Result<Exit>> {
        let directory = self.resume.as_ref()?;
        Some(self.exporting(directory, |accepted| {
            if record::Study::is_in(directory) {
                return study::resume(directory, origin, self.retry_invalid, accepted);
            }
            let (store, plan) = runner::resume(directory, origin, self.retry_invalid)?;
            runner::runner(&plan, origin, store, accepted)
        }))
    }

    /// Does what makes a record in a directory, and writes what is to be exported of it, also where it says that the
    /// result is not good enough.
    pub(super) fn exporting(
        &self,
        directory: &Path,
        run: impl FnOnce(Accepted) -> anyhow::Result<Exit>,
    ) -> anyhow::Result<Exit> {
        let exports: Opened = self.exports.open()?;
        let ended = run(self.accepted());
        match (exports.of_record(directory), ended) {
            (Err(why), Ok(_)) => Err(why),
            (_, ended) => ended,
        }
    }

    /// How a run is shown, and which results are accepted.
    fn accepted(&self) -> Accepted {
        Accepted {
            json: self.json,
            rough: self.allow_rough,
            print: if self.exports.fill_stdout() {
                Print::Nothing
            } else {
                Print::of(self.json)
            },
        }
    }

    /// Where the record and the report of a run of this name go.
    pub(super) fn directory(&self, name: &str) -> anyhow::Result<PathBuf> {
        match &self.output {
            Some(named) => Ok(named.clone()),
            None => runner::fresh_directory(name),
        }
    }

    /// The CPUs of the servers and of the clients. Where throng starts no server, none is bound to any, unless it is
    /// said where they run.
    pub(super) fn cpus(&self, starts_servers: bool) -> (Vec<u32>, Vec<u32>) {
        if let (Some(CpuList(servers)), Some(CpuList(clients))) =
            (&self.server_cpus, &self.client_cpus)
        {
            return (servers.clone(), clients.clone());
        }
        let (servers, clients) = plan::divide_cpus(&host::usable_cpus());
        let servers = servers.into_iter().filter(|_| starts_servers);
        (servers.collect(), clients)
    }

    /// The names of probes where no study says them.
    pub(super) fn probes_or_default(&self) -> Vec<String> {
        let usual = || vec!["default".to_owned()];
        self.probes.clone().unwrap_or_else(usual)
    }

    /// Whether it is said how long replies count.
    pub(super) fn says_times(&self) -> bool {
        self.duration.is_some() || self.warm_up.is_some()
    }

    /// A load with the times that are said, or those that are usual where no study says them.
    pub(super) fn load(&self) -> LoadSpec {
        LoadSpec {
            duration: Some(self.duration.unwrap_or(DURATION)),
            warm_up: self.warm_up.unwrap_or(WARM_UP),
            ..LoadSpec::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::command;

    #[test]
    fn a_resumed_run_takes_no_other_options() {
        command().debug_assert();
        for (line, is_right) in [
            ("run --resume x --json --allow-rough", true),
            ("run --resume x --export-csv y", true),
            ("run --resume x --retry-invalid", true),
            ("run --retry-invalid", false),
            ("run --resume x --retries 5", false),
            ("run --resume x overview", false),
            ("run --resume x --clients 5", false),
            ("run --resume x --think 1s", false),
            ("compare --resume x", true),
            ("compare --resume x epoll", false),
            ("compare --resume x --duration 1s", false),
            ("compare --resume x --shell", false),
            ("limit --resume x --json", true),
            ("limit --resume x --most 5", false),
            ("limit --resume x --output y", false),
        ] {
            let words = ["throng"].into_iter().chain(line.split(' '));
            let read = command().try_get_matches_from(words);
            assert_eq!(read.is_ok(), is_right, "{line}: {:?}", read.err());
        }
    }
}
