//! A run, from its specification to its report, for every subcommand that measures.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::built::built;
use super::exit::OutputOptions;
use super::progress::RunProgress;
use super::report::{Print, ReportOutcome};
use super::{Exit, Usage, lab, output, report};
use crate::load::preflight;
use crate::measure::cluster::Origin;
use crate::measure::processes::watchdog::Watchdog;
use crate::measure::{self, RunSpec, SetupFailed, host, probes, processes::orphans, provenance};
use crate::record::format;
use crate::record::{
    self, Draft, Ending, FailedStage, Run, SearchEnding, ServerInfo, Settings, Store, StoreError,
    Trial,
};
use crate::report::exporters::EXPORTERS;
use crate::spec::LoadSpec;
use crate::sys::signal::Stop;

/// Runs a specification, makes the report, and returns the exit status.
pub(super) fn runner(
    plan: &RunSpec,
    origin: &mut Origin,
    mut store: Store,
    accepted: OutputOptions,
) -> anyhow::Result<Exit> {
    let directory = store.directory().to_owned();
    let (stop, _watchdog) = prepare()?;
    let mut shown = RunProgress::new(&directory, accepted.json, [0.0; 2]);
    let measured = measure::run(plan, origin, &mut store, &mut shown, stop);
    let (run, trials) = measured.map_err(|error| ended_by(error, &store))?;
    drop(shown);
    let there = || store.check();
    if run.ending == Ending::ServerFailed {
        report::make(&directory, Print::Nothing)
            .map_err(|error| there().err().map_or(error, Into::into))?;
        return Err(server_failed(&run, &trials, &directory));
    }
    let made = report::make(&directory, accepted.print)
        .map_err(|error| there().err().map_or(error, Into::into))?;
    if stop.requested() {
        let invalid = trials
            .iter()
            .filter(|trial| trial.invalid().is_some())
            .count();
        let and_invalid = match invalid {
            0 => String::new(),
            1 => ", and an invalid one,".to_owned(),
            _ => format!(", and {invalid} invalid ones,"),
        };
        output::note(&format!(
            "{}: {} of {} trials{and_invalid} are in {}{}",
            interrupted(),
            trials.len() - invalid,
            run.trials_planned,
            directory.display(),
            continues(&run, &directory)
        ));
        return Ok(Exit::Interrupted);
    }
    if run.ending == Ending::HostLost {
        output::error(&host_lost(&trials, &directory));
        return Ok(Exit::Rough);
    }
    refuse_failures(&run, &trials)?;
    Ok(exit(&made, accepted))
}

/// What ended a run early, to begin a message.
pub(super) fn interrupted() -> &'static str {
    if Stop::is_cpu_limit() {
        "interrupted by the limit of CPU time (ulimit -t)"
    } else {
        "interrupted"
    }
}

/// A hint with the command that continues an incomplete run, to append to the directory of its trials.
fn continues(run: &Run, directory: &Path) -> String {
    if run.ending == Ending::Complete {
        return String::new();
    }
    let subcommand = match (&run.limit, &run.comparison) {
        (Some(_), _) => "limit",
        (None, Some(_)) => "compare",
        (None, None) => "run",
    };
    to_resume(subcommand, directory)
}

/// A hint with the command that continues the run in a directory, to append to a message.
pub(super) fn to_resume(subcommand: &str, directory: &Path) -> String {
    // A name that is not valid text cannot be typed as displayed.
    let word = directory
        .to_str()
        .and_then(|path| shlex::try_quote(path).ok());
    word.map_or_else(String::new, |word| {
        format!("; to continue: throng {subcommand} --resume {word}")
    })
}

/// The exit status for a report.
pub(super) fn exit(made: &ReportOutcome, accepted: OutputOptions) -> Exit {
    if made.missed {
        return Exit::Missed;
    }
    match &made.rough {
        Some(why) if !accepted.rough => {
            output::note(&format!("exit code 4: {why}; --allow-rough accepts this"));
            Exit::Rough
        }
        _ => Exit::Done,
    }
}

/// The error for a lost client host that ended the run.
pub(super) fn host_lost(trials: &[Trial], directory: &Path) -> anyhow::Error {
    let last = trials.iter().rev().find_map(|trial| trial.failure.as_ref());
    let why = last.map_or("a client host was lost", |failure| &failure.reason);
    let shown = directory.display();
    anyhow::anyhow!(
        "{why}; the trials before are in {shown}, and --resume continues with as many hosts"
    )
}

/// The error for a server that ended the run because it did not start or gave wrong replies, with its last output.
pub(super) fn server_failed(run: &Run, trials: &[Trial], directory: &Path) -> anyhow::Error {
    let failed = trials
        .iter()
        .rev()
        .filter_map(|trial| Some((trial, trial.failure.as_ref()?)));
    let Some((trial, failure)) = failed.max_by_key(|(trial, _)| trial.index) else {
        return anyhow::anyhow!("a server did not start");
    };
    let (server, reason) = (&trial.server, &failure.reason);
    let what = match failure.stage {
        FailedStage::Verify => "gave a wrong reply",
        FailedStage::Prepare => "was not started, since --prepare or --setup failed",
        _ => "did not start",
    };
    let output = indented(&failure.output);
    let others = if run.servers.len() > 1 {
        "; --keep-going measures the other servers"
    } else {
        ""
    };
    let shown = directory.display();
    anyhow::anyhow!("{server} {what}: {reason}{output}\nthe record is in {shown}{others}")
}

/// The last lines of a server's output, indented.
fn indented(output: &str) -> String {
    let lines = output.lines().map(format::printable);
    lines.map(|line| format!("\n  {line}")).collect()
}

/// The error that ended a run, with the location of its trials.
pub(super) fn ended_by(error: anyhow::Error, store: &Store) -> anyhow::Error {
    if error.is::<SetupFailed>() {
        return error;
    }
    // If the record is gone, that is why something could not be written.
    if let Err(gone) = store.check() {
        return gone.into();
    }
    let directory = store.directory().display();
    anyhow::anyhow!(
        "{error:#}; the finished trials are in {directory}, and --resume {directory} continues"
    )
}

/// Prepares this process to start other processes, and to be stopped or killed.
pub(super) fn prepare() -> anyhow::Result<(Stop, Watchdog)> {
    let stop = Stop::install().context("cannot handle signals")?;
    orphans::adopt().context("cannot adopt orphaned processes")?;
    let started = Watchdog::start(&program()?);
    let watchdog = started.context("cannot start the watchdog process")?;
    Ok((stop, watchdog))
}

/// Returns an error if all trials failed, or all trials of a server to compare.
fn refuse_failures(run: &Run, trials: &[Trial]) -> anyhow::Result<()> {
    let failed = |trial: &Trial| trial.failure.is_some();
    if trials.iter().all(failed) {
        anyhow::bail!("every trial failed; see the report for the reasons");
    }
    let mut found = run.limit.iter().flat_map(|limit| &limit.found);
    if let Some(found) = found.find(|found| found.ending == SearchEnding::Failed) {
        let (server, why) = (&found.server, &found.failure);
        anyhow::bail!("the search for the limit of {server} failed: {why}");
    }
    let compared = run.servers.iter().filter(|_| run.comparison.is_some());
    for server in compared {
        let mut of_server = trials.iter().filter(|trial| trial.server == server.name);
        if of_server.all(failed) {
            let name = &server.name;
            anyhow::bail!("every trial of {name} failed; see the report for the reasons");
        }
    }
    Ok(())
}

/// Opens an earlier run, with its trials.
pub(super) fn resume(
    directory: &Path,
    origin: &Origin,
    retry_invalid: bool,
) -> anyhow::Result<(Store, RunSpec)> {
    let (store, run, done) = Store::resume(directory).map_err(Usage::from)?;
    lab::check_resumed(&run, origin)?;
    if retry_invalid && done.len() + run.trials_planned as usize > run.most_trials() {
        let why = format!(
            "--retry-invalid: the record already has {} trials, and {} were planned; start a new run",
            done.len(),
            run.trials_planned
        );
        return Err(Usage(why).into());
    }
    let plan = RunSpec {
        done,
        retry_invalid,
        ..rebuild(run, origin)?
    };
    Ok((store, plan))
}

/// The run specification of a record, to be run here from the first trial.
pub(super) fn rebuild(run: Run, origin: &Origin) -> anyhow::Result<RunSpec> {
    host::raise_descriptor_limit();
    dialogue(&run.settings)?;
    let (mut servers, mut null_server) = (run.servers, run.null_server);
    let all = servers.iter_mut().chain(&mut null_server);
    for server in all.filter(|server| server.foreign.is_none()) {
        lab::allow_remote(&mut server.command, &run.settings);
    }
    servers.iter().for_each(warn_of_changes);
    Ok(RunSpec {
        study: run.study,
        comparison: run.comparison,
        limit: run.limit,
        control: servers
            .iter()
            .position(|server| Some(&server.name) == run.settings.control.as_ref()),
        null_server,
        probes: probes::choose(&run.settings.probes)?,
        settings: run.settings,
        servers,
        seed: run.seed,
        arguments: run.arguments,
        ..from_here(origin)?
    })
}

/// A specification for a run of this process, without servers yet.
pub(super) fn from_here(origin: &Origin) -> anyhow::Result<RunSpec> {
    Ok(RunSpec {
        program: program()?,
        built: built(),
        arguments: arguments(),
        host: host::examine(),
        client_hosts: origin.hosts().to_vec(),
        ..RunSpec::default()
    })
}

/// Warns about files of a server that have changed.
fn warn_of_changes(server: &ServerInfo) {
    for file in provenance::changed_files(server) {
        let (name, then) = (&server.name, &file.then);
        let (word, path) = (&then.word, &then.path);
        output::warning(&match file.now {
            None => format!("{name}: `{word}` no longer exists; it was {path}"),
            Some(now) if now == *path => format!("{name}: {path} has changed since the record"),
            Some(now) => {
                format!("{name}: `{word}` is now {now}, with other contents; it was {path}")
            }
        });
    }
}

/// Minimum number of short-lived clients that connect at once, regardless of how short the accept queue is. Fewer
/// would hide its effect.
const FEWEST_AT_ONCE: u32 = 1000;

/// The dialogue of a run as text, provided that the settings are possible.
pub(super) fn dialogue(settings: &Settings) -> Result<String, Usage> {
    let load = settings.load.clone().checked()?;
    if !settings.latency_at_percent.is_empty()
        && let Some(key) = load.sets_the_rate()
    {
        return Err(Usage(format!(
            "--latency-at cannot be used with --{key}, which sets the rate itself; leave out one of them"
        )));
    }
    let (dialogue, of_dialogue) = load.dialogue("localhost")?;
    Ok(dialogue.describe(&of_dialogue))
}

/// Adapts settings to a server with a single descriptor table, which is what most servers have. Others can serve more
/// clients, so long-lived ones only lead to a warning.
///
/// # Errors
/// If short-lived clients do not fit.
pub(super) fn fit(settings: &mut Settings) -> anyhow::Result<()> {
    let most = settings.clients.last().copied().unwrap_or(0);
    settings.load.clients = most;
    host::raise_descriptor_limit();
    let resources = host::load_resources();
    let load = &mut settings.load;
    let fits = preflight::check_one_table(load.at_once.unwrap_or(most).min(most), &resources);
    if !load.has_jobs() {
        if let Err(shortage) = fits {
            output::warning(&format!("a server in one process: {shortage}"));
        }
        return Ok(());
    }
    match (fits, preflight::at_once_in_one_table(&resources)) {
        (Err(shortage), Some(room)) if load.at_once.is_none() => {
            // Clients beyond the accept queue would mostly wait for SYN retries.
            let room = room.min(settings.backlog.max(FEWEST_AT_ONCE));
            output::warning(&format!(
                "{shortage}; running {room} clients at once, which fit one process and its accept queue \
                 (--at-once)"
            ));
            load.at_once = Some(room);
            Ok(())
        }
        (fits, _) => Ok(fits?),
    }
}

/// Rejects a duration for short-lived clients.
pub(super) fn check_times(load: &LoadSpec, says_times: bool) -> Result<(), Usage> {
    if says_times && load.has_jobs() {
        let what = "--requests-per-client (--each) and --live end when all clients are done, without --duration or --warm-up; \
                    use --time-limit to bound it";
        return Err(Usage(what.to_owned()));
    }
    Ok(())
}

/// The message of a command-line error, without usage and tips.
pub(super) fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

/// Everything that a run writes apart from its record and the files of its report.
const ALSO_WRITTEN: [&str; 6] = [
    "figures",
    "samples",
    "clients",
    "server",
    "captures",
    record::BASELINE,
];

/// Maximum number of directories with the same name and different numbers.
const MOST_OF_A_NAME: u32 = 1000;

/// Creates the default directory for a record. It is created here, so that another run in the same second gets a
/// different one.
pub(super) fn fresh_directory(study: &str) -> Result<PathBuf, Usage> {
    let time = measure::utc_now().replace(['-', ':'], "");
    let results = Path::new("throng-results");
    fs::create_dir_all(results).map_err(|error| cannot_create(results, &error))?;
    first_free(&results.join(format!("{time}-{study}")))
}

/// Creates the first of NAME, NAME-2, NAME-3 and so on that does not exist.
pub(super) fn first_free(wanted: &Path) -> Result<PathBuf, Usage> {
    let mut path = wanted.to_owned();
    for number in 2..MOST_OF_A_NAME {
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let mut name = wanted.file_name().unwrap_or_default().to_owned();
                name.push(format!("-{number}"));
                path = wanted.with_file_name(name);
            }
            Err(error) => return Err(cannot_create(&path, &error)),
            Ok(()) => return Ok(path),
        }
    }
    let why = format!("{MOST_OF_A_NAME} directories have that name");
    Err(cannot_create(&path, &why))
}

fn cannot_create(path: &Path, why: &dyn std::fmt::Display) -> Usage {
    let shown = path.display();
    Usage(format!(
        "cannot create {shown}: {why}; choose another directory with --output"
    ))
}

/// Copies what the report needs from an earlier record, so that the new record is complete.
pub(super) fn copy_baseline(from: &Path, store: &Store) -> anyhow::Result<()> {
    let to = store.directory().join(record::BASELINE);
    let copy = || -> anyhow::Result<()> {
        fs::create_dir_all(&to)?;
        for file in ["run.json"].iter().chain(&record::TRIALS) {
            if let Some(mut from) = record::open_if_there(&from.join(file))? {
                let mut draft = Draft::of_record(&to.join(file))?;
                io::copy(&mut from, &mut draft)?;
                draft.finish()?;
            }
        }
        Ok(())
    };
    copy().with_context(|| format!("cannot write {}", to.display()))
}

/// Creates a record in this directory, which must contain neither another record nor files that the report would
/// overwrite.
pub(super) fn create(directory: &Path) -> Result<Store, Usage> {
    refuse_others_files(directory)?;
    Store::create(directory).map_err(Usage::from)
}

/// Rejects a directory with files that a report would overwrite.
pub(super) fn refuse_others_files(directory: &Path) -> Result<(), Usage> {
    // An existing record is rejected later, with its own message.
    if record::Study::is_in(directory) || directory.join("run.json").exists() {
        return Ok(());
    }
    let loses = |name: &&str| {
        let path = directory.join(name);
        match fs::symlink_metadata(&path).map(|found| found.file_type()) {
            Ok(kind) if kind.is_dir() => {
                fs::read_dir(&path).is_ok_and(|mut it| it.next().is_some())
            }
            // A pipe has nothing to overwrite.
            Ok(kind) => !kind.is_fifo(),
            Err(_) => false,
        }
    };
    let mut names = ALSO_WRITTEN
        .into_iter()
        .chain(EXPORTERS.iter().filter_map(|exporter| exporter.file_name));
    match names.find(loses) {
        Some(name) => Err(Usage(format!(
            "{} exists and would be overwritten; choose another directory with --output",
            directory.join(name).display()
        ))),
        None => Ok(()),
    }
}

impl From<StoreError> for Usage {
    /// The message for a record that cannot be read or written, before anything is started.
    fn from(error: StoreError) -> Self {
        Self(chain(&error))
    }
}

/// The path of this program, for starting servers and loads.
pub(super) fn program() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("cannot find this program's file")?;
    let name = program.display();
    if program.to_str().is_none() {
        // The path is stored in records, which are text.
        return Err(Usage(format!(
            "the path of this program, {name}, is not UTF-8; move the program"
        ))
        .into());
    }
    Ok(program)
}

/// The arguments of this program.
pub(super) fn arguments() -> Vec<String> {
    let words = std::env::args_os();
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// Rejects arguments that are not valid text, since records could not store them.
pub(super) fn refuse_other_than_text() -> Result<(), Usage> {
    match std::env::args_os().find(|word| word.to_str().is_none()) {
        Some(word) => Err(Usage(format!(
            "the argument {} is not UTF-8",
            word.display()
        ))),
        None => Ok(()),
    }
}

pub(super) fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
