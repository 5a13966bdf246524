//! Options of every subcommand that measures servers and writes a record: CPUs, duration, probes and output.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;

use super::exit::OutputOptions;
use super::export::{Exports, OpenExports};
use super::lab::Lab;
use super::report::Print;
use super::values::{self, CpuList};
use super::{Exit, browser, output, runner, study};
use crate::measure::cluster::Origin;
use crate::measure::{host, runner::plan};
use crate::record;
use crate::spec::LoadSpec;

/// Default durations of a measurement and of its warm-up, unless a study sets its own.
const DURATION: Duration = Duration::from_secs(1);
const WARM_UP: Duration = Duration::from_millis(300);

#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[derive(Debug, clap::Args)]
pub(super) struct MeasureFlags {
    /// Measurement duration per trial [default: 1s].
    #[arg(short, short_alias = 'z', long, value_name = "TIME", value_parser = values::positive_duration)]
    pub(super) duration: Option<Duration>,
    /// Warm-up, after every client has its first reply [default: 300ms].
    #[arg(long, alias = "warmup", value_name = "TIME", value_parser = values::duration)]
    pub(super) warm_up: Option<Duration>,
    /// CPUs for the servers [default: the first half].
    #[arg(long, value_name = "LIST", requires = "client_cpus")]
    server_cpus: Option<CpuList>,
    /// CPUs for the clients [default: the second half].
    #[arg(long, value_name = "LIST", requires = "server_cpus")]
    client_cpus: Option<CpuList>,
    /// Probes (`throng list probes`), `default`, `all` or `none` [default: `default`].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(super) probes: Option<Vec<String>>,
    /// Directory for record and report [default: throng-results/TIME-NAME].
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Continue the unfinished run in this directory.
    #[arg(long, value_name = "DIR")] // and nothing else, see `super::resumes_alone`
    resume: Option<PathBuf>,
    /// Print the summary as JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// Maximum repeats of an invalid trial: the load generator stalled, clients were not served, or other processes
    /// took the CPUs.
    #[arg(long, value_name = "N", default_value = "3")]
    pub(super) retries: u32,
    /// Repeat invalid trials, with --resume.
    #[arg(long, requires = "resume")]
    retry_invalid: bool,
    /// Open the live page of the run in a browser, and its report at the end.
    #[arg(long)]
    open: bool,
    /// Exit with 0 even if the data is unusable, or trials failed or were invalid.
    #[arg(long)]
    allow_rough: bool,
    #[command(flatten)]
    exports: Exports,
    #[command(flatten)]
    pub(super) lab: Lab,
}

/// The price of what is measured, for commands that measure at given numbers of clients.
#[derive(Debug, clap::Args)]
pub(super) struct PriceFlag {
    /// Price of an hour of one CPU, to show what a million requests cost.
    #[arg(long, value_name = "PRICE/vcpu-hour", value_parser = values::price)]
    pub(super) price: Option<f64>,
}

impl MeasureFlags {
    /// Continues an earlier run, if `--resume` is given.
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

    /// Runs what creates the record in `directory`, then writes the exports, even if the result is rough.
    pub(super) fn exporting(
        &self,
        directory: &Path,
        run: impl FnOnce(OutputOptions) -> anyhow::Result<Exit>,
    ) -> anyhow::Result<Exit> {
        let live = self.open.then(|| LivePage::open(directory)).transpose()?;
        let run = || {
            let exports: OpenExports = self.exports.open()?;
            let ended = run(self.accepted());
            match (exports.of_record(directory), ended) {
                (Err(why), Ok(_)) => Err(why),
                (_, ended) => ended,
            }
        };
        let ended = run();
        if ended.is_err() && self.output.is_none() {
            // If the directory is empty, nothing was recorded; otherwise this fails.
            let _ = fs::remove_dir(directory);
        }
        drop(live);
        let report = directory.join("report.html");
        if self.open && report.exists() {
            browser::open(&browser::address(&report));
        }
        ended
    }

    /// How to show a run, and which results to accept.
    fn accepted(&self) -> OutputOptions {
        OutputOptions {
            json: self.json,
            rough: self.allow_rough,
            print: if self.exports.fill_stdout() {
                Print::Nothing
            } else {
                Print::of(self.json)
            },
        }
    }

    /// The directory for the record and report of a run of this name.
    pub(super) fn directory(&self, name: &str) -> anyhow::Result<PathBuf> {
        match &self.output {
            Some(named) => Ok(named.clone()),
            None => Ok(runner::fresh_directory(name)?),
        }
    }

    /// The CPUs of the servers and of the clients. Servers that throng did not start are not bound to CPUs, unless
    /// --server-cpus names them.
    pub(super) fn cpus(&self, starts_servers: bool) -> (Vec<u32>, Vec<u32>) {
        if let (Some(CpuList(servers)), Some(CpuList(clients))) =
            (&self.server_cpus, &self.client_cpus)
        {
            return (servers.clone(), clients.clone());
        }
        let (servers, clients) = plan::divide_cpus(&host::usable_cpus());
        let each = servers.into_iter().filter(|_| starts_servers);
        (each.collect(), clients)
    }

    /// Whether the command line names CPUs.
    pub(super) fn names_cpus(&self) -> bool {
        self.server_cpus.is_some()
    }

    /// The names of the probes, unless a study sets its own.
    pub(super) fn probes_or_default(&self) -> Vec<String> {
        let usual = || vec!["default".to_owned()];
        self.probes.clone().unwrap_or_else(usual)
    }

    /// Whether the command line sets a duration or a warm-up.
    pub(super) fn says_times(&self) -> bool {
        self.duration.is_some() || self.warm_up.is_some()
    }

    /// A load with these times, or the defaults.
    pub(super) fn load(&self) -> LoadSpec {
        LoadSpec {
            duration: Some(self.duration.unwrap_or(DURATION)),
            warm_up: self.warm_up.unwrap_or(WARM_UP),
            ..LoadSpec::default()
        }
    }
}

/// The server of a run's live page, while it runs.
struct LivePage(Child);

impl LivePage {
    /// Starts it; the page opens once the record exists.
    fn open(directory: &Path) -> anyhow::Result<Self> {
        if !browser::exists() {
            output::note("no browser was found; open the live page with `throng view`");
        }
        let name = directory.file_name().unwrap_or_default();
        let parent = directory
            .parent()
            .filter(|parent| *parent != Path::new(""))
            .unwrap_or(Path::new("."));
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        let mut command = Command::new(runner::program()?);
        command.arg("view").arg(parent).arg("--open-run").arg(name);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().context("cannot start the live page")?;
        Ok(Self(child))
    }
}

impl Drop for LivePage {
    fn drop(&mut self) {
        // It is ours, and has not been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
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
            ("limit --resume x --max 5", false),
            ("limit --resume x --output y", false),
        ] {
            let words = ["throng"].into_iter().chain(line.split(' '));
            let read = command().try_get_matches_from(words);
            assert_eq!(read.is_ok(), is_right, "{line}: {:?}", read.err());
        }
    }
}
