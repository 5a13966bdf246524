//! `throng reproduce DIR`: repeats the run of a record, and checks whether its verdicts hold.

use std::fs;
use std::path::{Path, PathBuf};

use super::exit::{OutputOptions, codes};
use super::report::{Print, show};
use super::study::{self, Ready};
use super::{Exit, Usage, lab, output, runner};
use crate::measure::cluster::Origin;
use crate::measure::{self, RunSpec, host, provenance};
use crate::record::format::list;
use crate::record::{self, Run, ServerInfo, Store, Study};
use crate::report::between::Between;
use crate::report::{self, sections};

const NOTES: &str = "\
Examples:
  throng reproduce throng-results/20260101T120000Z-compare
  throng reproduce results/overview -o again --json

Reproduce runs the record's servers with the same load, settings and order, into a new record. The record \
may be a run, a comparison, a search for a limit, or a study. The same rules judge both. A verdict fails if \
the new run contradicts it; if the new run is inconclusive, the verdict is neither confirmed nor contradicted. \
The result lists what changed: programs, scripts, throng, kernel, CPU and machine settings. It is printed, and \
written to the new record as reproduction.html, .md and .json.

The record contains the commands to run: reproduce only records that you trust.";

#[derive(Debug, clap::Args)]
#[command(after_help = [NOTES, &codes(&[0, 1, 2, 3, 4, 130])].join("\n\n"))]
pub(super) struct Arguments {
    /// Directory of the earlier record.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Directory for the new record [default: DIR-again, next to DIR].
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    /// Exit with 0 even if the data is unusable, or trials failed or were invalid.
    #[arg(long)]
    allow_rough: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let earlier = &arguments.directory;
    let accepted = OutputOptions {
        json: arguments.json,
        rough: arguments.allow_rough,
        print: Print::Nothing,
    };
    let (exit, again) = if Study::is_in(earlier) {
        study_again(earlier, arguments.output.as_deref(), accepted)?
    } else {
        run_again(earlier, arguments.output.as_deref(), accepted)?
    };
    if exit == Exit::Interrupted {
        return Ok(exit);
    }
    let reproduction = Between::reproduction(earlier, &again)?;
    let written = report::write_between(&reproduction, &again)?;
    if arguments.json {
        output::json(&reproduction)?;
    } else {
        show(&sections::of_between(&reproduction), "Page", &written)?;
    }
    let missed = reproduction.has_failed();
    Ok(if missed { Exit::Missed } else { exit })
}

/// Repeats a run, and returns the directory of the new record.
fn run_again(
    earlier: &Path,
    output: Option<&Path>,
    accepted: OutputOptions,
) -> anyhow::Result<(Exit, PathBuf)> {
    let plan = plan(earlier)?;
    let again = directory(earlier, output)?;
    let store = create(earlier, &again)?;
    let exit = runner::runner(&plan, &mut Origin::Here, store, accepted)?;
    Ok((exit, again))
}

/// Repeats the measured parts of a study.
fn study_again(
    earlier: &Path,
    output: Option<&Path>,
    accepted: OutputOptions,
) -> anyhow::Result<(Exit, PathBuf)> {
    let mut whole = Study::read(earlier).map_err(Usage::from)?;
    whole.started_at = measure::utc_now();
    env!("CARGO_PKG_VERSION").clone_into(&mut whole.throng_version);
    whole.arguments = runner::arguments();
    let measured = whole.parts.iter().filter(|part| part.skipped.is_none());
    let parts = measured
        .map(|part| {
            let found = record::directory(earlier, &part.name).map_err(Usage::from)?;
            let directory = found.unwrap_or_else(|| earlier.join(&part.name));
            Ok((part.name.clone(), part.title.clone(), plan(&directory)?))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let again = directory(earlier, output)?;
    runner::refuse_others_files(&again)?;
    let lock = whole.create(&again).map_err(Usage::from)?;
    let ready = parts
        .into_iter()
        .map(|(name, title, plan)| {
            Ok(Ready {
                store: create(&earlier.join(&name), &again.join(&name))?,
                name,
                title,
                plan,
            })
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let exit = study::begin(ready, &mut Origin::Here, &again, (&whole, lock), accepted)?;
    Ok((exit, again))
}

/// The run specification of a record, adapted to this machine.
fn plan(earlier: &Path) -> anyhow::Result<RunSpec> {
    let run = record::read(earlier).map_err(Usage::from)?;
    let cannot = |why: String| Usage(format!("cannot reproduce {}: {why}", earlier.display()));
    check(&run).map_err(cannot)?;
    for server in run.servers.iter().filter(|server| server.foreign.is_some()) {
        print_commands(server);
    }
    let mut plan = runner::rebuild(run, &Origin::Here)?;
    for foreign in plan
        .servers
        .iter_mut()
        .filter_map(|server| server.foreign.as_mut())
    {
        // Measuring checks the program on this machine again.
        foreign.program = None;
    }
    let program = plan.program.to_string_lossy().into_owned();
    let all = plan.servers.iter_mut().chain(&mut plan.null_server);
    for server in all.filter(|server| server.foreign.is_none()) {
        program.clone_into(&mut server.command[0]);
    }
    if let Some(limit) = &mut plan.limit {
        limit.found.clear();
    }
    plan.arguments = runner::arguments();
    Ok(plan)
}

/// Checks that a run can be repeated here.
fn check(run: &Run) -> Result<(), String> {
    if !run.client_hosts.is_empty() {
        let hosts = run.client_hosts.len();
        return Err(format!(
            "its clients were on {hosts} client hosts, which reproduce does not support; run it again with \
             throng-mpi, and compare both records with `throng report --diff`"
        ));
    }
    lab::check_resumed(run, &Origin::Here).map_err(|Usage(why)| why)?;
    let usable = host::usable_cpus();
    let bound = [&run.settings.server_cpus, &run.settings.client_cpus];
    let missing: Vec<String> = bound
        .into_iter()
        .flatten()
        .filter(|cpu| !usable.contains(cpu))
        .map(u32::to_string)
        .collect();
    if !missing.is_empty() {
        return Err(format!(
            "its servers or clients were bound to CPU {}, which this process may not use",
            list(&missing)
        ));
    }
    for server in run.servers.iter().chain(&run.null_server) {
        can_start(server).map_err(|why| format!("{}: {why}", server.name))?;
    }
    Ok(())
}

/// Checks that a server can still be started.
fn can_start(server: &ServerInfo) -> Result<(), String> {
    let Some(foreign) = &server.foreign else {
        let ours = server.command.get(1).is_some_and(|word| word == "serve");
        let why = "its command is not `throng serve`".to_owned();
        return ours.then_some(()).ok_or(why);
    };
    if foreign.running.is_some() {
        // Whether the server runs is checked when it is measured.
        return Ok(());
    }
    let path = server.environment.get("PATH").map(String::as_str);
    let cwd = server.cwd.as_deref().map(Path::new);
    let word = server.command.first().map_or("", String::as_str);
    if provenance::executable(word, path, cwd).is_none() {
        let then = foreign
            .program
            .as_ref()
            .map(|program| &program.file.path)
            .map_or_else(String::new, |then| format!(" (it was {then})"));
        return Err(format!("program `{word}` no longer exists{then}"));
    }
    let gone = provenance::changed_files(server);
    match gone.iter().find(|file| file.now.is_none()) {
        Some(file) => Err(format!(
            "file `{}` no longer exists (it was {}); relative names start from the current directory",
            file.then.word, file.then.path
        )),
        None => Ok(()),
    }
}

/// Prints the commands of a record that are about to run.
fn print_commands(server: &ServerInfo) {
    if let Some(running) = server.running() {
        output::note(&format!(
            "{} is already running at {}",
            server.name, running.address
        ));
    }
    let commands = [
        ("setup", &server.setup),
        ("command", &server.command),
        ("prepare", &server.prepare),
        ("conclude", &server.conclude),
        ("cleanup", &server.cleanup),
    ];
    for (what, command) in commands {
        if let Ok(line) = shlex::try_join(command.iter().map(String::as_str))
            && !command.is_empty()
        {
            output::note(&format!("{}: {what}: {line}", server.name));
        }
    }
}

/// The directory for the new record.
fn directory(earlier: &Path, output: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(output) = output {
        return Ok(output.to_owned());
    }
    // "." has no name to append a suffix to.
    let earlier = fs::canonicalize(earlier)?;
    let mut name = earlier.file_name().unwrap_or_default().to_owned();
    name.push("-again");
    Ok(runner::first_free(&earlier.with_file_name(name))?)
}

/// Creates a new record, with a copy of the earlier one's baseline.
fn create(earlier: &Path, again: &Path) -> anyhow::Result<Store> {
    let store = runner::create(again)?;
    if let Some(baseline) = record::directory(earlier, record::BASELINE)? {
        runner::copy_baseline(&baseline, &store)?;
    }
    Ok(store)
}
