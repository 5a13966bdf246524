//! Resolves a part of a study: into a run on this machine, or into the reason why it cannot be one.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use super::mistakes::{at_option, wrong_load};
use super::search;
use crate::cli::built::built;
use crate::cli::load::calibrate::cheapest;
use crate::cli::load_flags::default_protocol;
use crate::cli::runner;
use crate::cli::search_flags::NEEDED;
use crate::cli::servers::{self, ChosenServer, Kind};
use crate::cli::{Usage, WrongOption};
use crate::load::Engine;
use crate::load::preflight::{self, Shortage};
use crate::load::route::Routes;
use crate::measure::network::link;
use crate::measure::network::loss::Loss;
use crate::measure::{RunSpec, host, probes};
use crate::record::{
    ClientHost, Host, LeftOut, Method, Resources, Scene, ServerInfo, Settings, StudyInfo,
    StudyPart, Why,
};
use crate::registry::{self, Entry as _, Unsupported};
use crate::serve::models::MODELS;
use crate::spec::{LoadSpec, SpecError};
use crate::study::{Options, Part, ServerKind, ServerSpec, Study, StudyError};

/// Settings shared by all parts.
pub(in crate::cli) struct Common {
    pub(super) cpus: (Vec<u32>, Vec<u32>),
    /// Whether the command line names them.
    pub(in crate::cli) names_cpus: bool,
    pub(super) control: Option<String>,
    pub(super) seed: Option<u64>,
    /// Whether the command line sets a duration or a warm-up.
    timed: bool,
    pub(super) program: PathBuf,
    host: Host,
    /// The servers' address, if given, and the client hosts, if any.
    pub(in crate::cli) server_address: Option<IpAddr>,
    pub(in crate::cli) client_hosts: Vec<ClientHost>,
    /// Maximum repeats of an invalid trial.
    pub(in crate::cli) retries: u32,
    /// The price of an hour of one CPU.
    pub(in crate::cli) price: Option<f64>,
    /// Conditions under which the run counts as failed.
    pub(in crate::cli) fail_if: Vec<String>,
    pub(super) resources: Resources,
}

impl Common {
    /// Examines this machine.
    pub(in crate::cli) fn new(
        cpus: (Vec<u32>, Vec<u32>),
        control: Option<String>,
        seed: Option<u64>,
        timed: bool,
    ) -> anyhow::Result<Self> {
        host::raise_descriptor_limit();
        Ok(Self {
            cpus,
            names_cpus: false,
            control,
            seed,
            timed,
            program: runner::program()?,
            host: host::examine(),
            server_address: None,
            client_hosts: Vec::new(),
            retries: 0,
            price: None,
            fail_if: Vec::new(),
            resources: host::load_resources(),
        })
    }
}

/// A part, resolved on this machine.
pub(in crate::cli) struct Resolved {
    /// The part as it appears in the study's record.
    pub(in crate::cli) record: StudyPart,
    /// The run specification, or why there is none.
    pub(in crate::cli) plan: Result<Box<RunSpec>, anyhow::Error>,
}

/// Turns a part into a run.
///
/// # Errors
/// If the file has an error. Limits of this machine are in the result instead.
pub(in crate::cli) fn resolve(
    study: &Study,
    part: &Part,
    common: &Common,
) -> anyhow::Result<Resolved> {
    let filled = |scene: &Scene| Scene {
        title: part.filled(&scene.title, scene.clients),
        question: part.filled(&scene.question, scene.clients),
        when: part.filled(&scene.when, scene.clients),
        ..scene.clone()
    };
    let mut record = StudyPart {
        name: part.name().to_owned(),
        title: part.heading(),
        question: part
            .question
            .clone()
            .unwrap_or_else(|| study.question.clone()),
        answer: part.answer.as_ref().map(|name| name.get_ref().clone()),
        clients: part.written_clients.clone(),
        skipped: None,
        left_out: Vec::new(),
        scaled: part.scaled.clone(),
        published: part.figures.clone(),
        scenes: part.scenes.iter().map(filled).collect(),
        expected: part.expected(),
    };
    let plan = match plan_of(study, part, common, &mut record) {
        Ok(plan) => Ok(Box::new(plan)),
        Err(error) => {
            let why = cannot_here(&error).ok_or(error)?;
            record.skipped = Some(why.to_string());
            Err(why)
        }
    };
    Ok(Resolved { record, plan })
}

/// The error, if it is due to this machine rather than to the file.
fn cannot_here(error: &anyhow::Error) -> Option<anyhow::Error> {
    let shortage = error.downcast_ref::<Shortage>().cloned();
    let unsupported = error.downcast_ref::<Unsupported>().cloned();
    shortage.map(Into::into).or(unsupported.map(Into::into))
}

fn plan_of(
    study: &Study,
    part: &Part,
    common: &Common,
    record: &mut StudyPart,
) -> anyhow::Result<RunSpec> {
    let mut settings = settings(study, part, common)?;
    let limit = search::limit(
        study,
        part,
        common.client_hosts.len(),
        &common.resources,
        &mut settings,
    )?;
    settings.dialogue = runner::dialogue(&settings)?;
    if let Some(link) = &part.link {
        if link.loss_percent.is_some() {
            Loss::supported()?;
        }
        if link.is_shaped() {
            if !common.client_hosts.is_empty() {
                let what = format!(
                    "part `{}` simulates a link, which clients on other hosts have already; leave out the part, or the hosts",
                    part.name()
                );
                return Err(Usage(what).into());
            }
            link::supported(link)?;
        }
    }
    if limit.is_none() {
        settings.clients = possible(part, common, &mut record.left_out)?;
        runner::fit(&mut settings)?;
    }
    let servers = take_part(study, part, &mut settings, common, &mut record.left_out)?;
    let control = control(study, part, &servers, common)?;
    settings.control = control.map(|index| servers[index].name.clone());
    let answers = settings.load.only_for_others().is_none();
    let null_server = (part.ceiling && answers && limit.is_none())
        .then(|| servers::own(cheapest(Engine::Epoll), &[], &settings, &common.program))
        .transpose()?;
    let (name, question) = if study.flat {
        (study.name.clone(), study.question.clone())
    } else {
        (
            format!("{}: {}", study.name, record.title),
            record.question.clone(),
        )
    };
    Ok(RunSpec {
        study: StudyInfo { name, question },
        limit,
        servers,
        control,
        null_server,
        probes: probes::choose(&probe_names(part))?,
        program: common.program.clone(),
        built: built(),
        seed: common.seed.unwrap_or_else(|| fastrand::u64(..1 << 32)),
        arguments: crate::cli::runner::arguments(),
        host: common.host.clone(),
        client_hosts: common.client_hosts.clone(),
        settings,
        ..RunSpec::default()
    })
}

/// The CPUs of the servers and of the clients: as the command line says, else as the part says.
fn cpus(part: &Part, common: &Common) -> Result<(Vec<u32>, Vec<u32>), Unsupported> {
    let (servers, clients) = (&part.server_cpus, &part.client_cpus);
    if common.names_cpus || servers.is_empty() && clients.is_empty() {
        return Ok(common.cpus.clone());
    }
    let usable = host::usable_cpus();
    let or_rest = |own: &[u32], others: &[u32]| -> Vec<u32> {
        let rest = usable.iter().filter(|cpu| !others.contains(cpu));
        if own.is_empty() {
            rest.copied().collect()
        } else {
            own.to_vec()
        }
    };
    let both = (or_rest(servers, clients), or_rest(clients, servers));
    let absent = both
        .0
        .iter()
        .chain(&both.1)
        .find(|cpu| !usable.contains(cpu));
    let reason = match absent {
        Some(cpu) => format!("there is no CPU {cpu} for this process"),
        None if both.0.is_empty() || both.1.is_empty() => "no CPU is left for one side".to_owned(),
        None => return Ok(both),
    };
    Err(Unsupported {
        reason,
        remedy: "name other CPUs with --server-cpus and --client-cpus".to_owned(),
    })
}

/// The settings that do not depend on the machine.
fn settings(study: &Study, part: &Part, common: &Common) -> anyhow::Result<Settings> {
    let wrong_probe =
        |error: registry::UnknownName| study.file.wrong(&part.probes.span(), &error.to_string());
    let probes = probes::choose(&probe_names(part)).map_err(wrong_probe)?;
    let (server_cpus, client_cpus) = cpus(part, common)?;
    let load_threads = client_cpus.len().max(1) as u32;
    let bound = |cpus: Vec<u32>| if part.pinned { cpus } else { Vec::new() };
    Ok(Settings {
        method: method(part, common),
        why: Why::Off,
        load: load(part, common).map_err(|error| match error {
            NoLoad::Wrong(error) => wrong_load(study, part, &error),
            NoLoad::Usage(usage) => usage.into(),
        })?,
        dialogue: String::new(),
        clients: part.clients.clone(),
        max_clients: BTreeMap::new(),
        runs: part.runs,
        ready_timeout_s: part.ready_timeout.as_secs_f64(),
        stop_timeout_s: part.stop_timeout.as_secs_f64(),
        // A study measures as much as possible.
        keep_going: true,
        hook_timeout_s: part.hook_timeout.as_secs_f64(),
        backlog: part.backlog,
        link: part.link,
        server_address: common.server_address,
        load_threads,
        server_cpus: bound(server_cpus),
        client_cpus: bound(client_cpus),
        latency_at_percent: part.latency_at.clone(),
        unserved_counts: part.unserved_counts,
        probes: probes
            .iter()
            .map(|kind| kind.info.name.to_owned())
            .collect(),
        control: None,
        profiled_runs: part.profiled_runs,
        fail_if: common.fail_if.clone(),
        retries: common.retries,
        price_per_cpu_hour: common.price,
    })
}

/// The method of a part: slices if the part requests them and nothing prevents them.
fn method(part: &Part, common: &Common) -> Method {
    let has_hooks =
        |server: &ServerSpec| !server.info.prepare.is_empty() || !server.info.conclude.is_empty();
    let budget = part.slices.filter(|_| {
        part.load.why_not_in_slices().is_none()
            && common.client_hosts.is_empty()
            && !part.servers.iter().any(has_hooks)
    });
    budget.map_or(Method::Trials, |budget| {
        Method::in_slices(budget, part.load.warm_up_limit)
    })
}

/// The load of a part, including the options of the command line.
fn load(part: &Part, common: &Common) -> Result<LoadSpec, NoLoad> {
    let mut draft = part.load.clone();
    let is_ours = |server: &ServerSpec| matches!(server.kind, ServerKind::Own { .. });
    if let Some(key) = draft.only_for_others()
        && (part.servers.is_empty() || part.servers.iter().any(is_ours))
    {
        let why =
            format!("built-in servers do not support `{key}`; use other servers, or leave it out");
        return Err(NoLoad::Wrong(SpecError::key(key, why)));
    }
    runner::check_times(&draft, common.timed).map_err(NoLoad::Usage)?;
    default_protocol(&mut draft, part.servers.iter().all(is_ours));
    let load = draft
        .checked()
        .and_then(LoadSpec::with_files)
        .map_err(NoLoad::Wrong)?;
    if !part.is_search() {
        load.check_arrival().map_err(NoLoad::Wrong)?;
    }
    Ok(load)
}

/// Why a part has no load.
enum NoLoad {
    /// The load is invalid, by itself or together with the command line.
    Wrong(SpecError),
    /// The command line is wrong.
    Usage(Usage),
}

/// The names of the probes. A search needs some of them to find the cause of a limit.
fn probe_names(part: &Part) -> Vec<String> {
    let mut names = part.probes.get_ref().clone();
    if part.is_search() {
        names.extend(NEEDED.map(str::to_owned));
    }
    names
}

/// The numbers of clients that this machine supports.
fn possible(part: &Part, common: &Common, left_out: &mut Vec<LeftOut>) -> anyhow::Result<Vec<u32>> {
    if part.load.has_jobs() {
        // If there are too many, they connect one after another.
        return Ok(part.clients.clone());
    }
    let mut possible = Vec::new();
    let mut beyond: Option<(Vec<u32>, Shortage)> = None;
    for &clients in &part.clients {
        match fits(clients, part.load.tls.is_some(), common) {
            Ok(()) => possible.push(clients),
            Err(shortage) => {
                let (clients_beyond, _) = beyond.get_or_insert((Vec::new(), shortage));
                clients_beyond.push(clients);
            }
        }
    }
    if let Some((clients, shortage)) = beyond {
        if !part.as_far_as_possible || possible.is_empty() {
            return Err(shortage.into());
        }
        left_out.push(LeftOut {
            clients,
            server: None,
            reason: shortage.to_string(),
        });
    }
    Ok(possible)
}

fn fits(clients: u32, is_tls: bool, common: &Common) -> Result<(), Shortage> {
    preflight::check_one_table(clients, &common.resources)?;
    let target = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
    let clients = clients.div_ceil(common.client_hosts.len().max(1) as u32);
    // Loopback has enough source addresses. If it does not, the load reports it.
    if let Ok(routes) = Routes::new(&[target.into()], &[], clients, common.resources.ports) {
        let threads = common.cpus.1.len().max(1);
        let workers = preflight::workers(clients, threads, common.resources.descriptors);
        preflight::check(clients, workers, &routes, is_tls, &common.resources)?;
    }
    Ok(())
}

/// The servers to measure: the listed ones, or every model that this machine supports.
fn take_part(
    study: &Study,
    part: &Part,
    settings: &mut Settings,
    common: &Common,
    left_out: &mut Vec<LeftOut>,
) -> anyhow::Result<Vec<ServerInfo>> {
    let all = || -> Vec<ServerSpec> {
        let supported = MODELS.iter().filter(|model| model.supported().is_ok());
        supported
            .map(|model| part.server_of(model.info.name))
            .collect()
    };
    let wanted_here = match part.servers.as_slice() {
        [] => all(),
        listed => listed.to_vec(),
    };
    let mut servers = Vec::new();
    let mut last = None;
    for spec in &wanted_here {
        if let Some(why) = part.excludes(spec) {
            left_out.push(LeftOut {
                clients: Vec::new(),
                server: Some(spec.info.name.clone()),
                reason: why.to_owned(),
            });
            last = Some(anyhow::Error::from(Unsupported {
                reason: format!("{}: {why}", spec.info.name),
                remedy: "use other servers, or another part".to_owned(),
            }));
            continue;
        }
        match wanted(study, spec)?.info(settings, &common.program) {
            Ok(info) => {
                if let Some((most, why)) = part.max_clients(spec) {
                    left_out.extend(beyond(spec, most, why, &settings.clients));
                    settings.max_clients.insert(info.name.clone(), most);
                }
                servers.push(info);
            }
            Err(error) => match cannot_here(&error) {
                Some(why) if part.as_far_as_possible => {
                    left_out.push(LeftOut {
                        clients: Vec::new(),
                        server: Some(spec.info.name.clone()),
                        reason: why.to_string(),
                    });
                    last = Some(why);
                }
                Some(why) => return Err(why),
                None => return Err(wrong_server(study, spec, error).into()),
            },
        }
    }
    match (servers.is_empty(), last) {
        (true, Some(why)) => Err(why),
        _ => Ok(servers),
    }
}

/// The numbers of clients that are skipped for a server, if there are any.
fn beyond(spec: &ServerSpec, most: u32, why: &str, clients: &[u32]) -> Option<LeftOut> {
    let clients: Vec<u32> = clients.iter().copied().filter(|own| *own > most).collect();
    (!clients.is_empty()).then(|| LeftOut {
        clients,
        server: Some(spec.info.name.clone()),
        reason: why.to_owned(),
    })
}

/// The error of a server, at the option that caused it.
fn wrong_server(study: &Study, spec: &ServerSpec, error: anyhow::Error) -> StudyError {
    let none = Options::default();
    let options = match &spec.kind {
        ServerKind::Own { options, .. } => options,
        ServerKind::Foreign { .. } => &none,
    };
    at_option(study, options, &WrongOption::about(error), spec.place())
}

/// A server to measure, with absolute paths.
fn wanted(study: &Study, spec: &ServerSpec) -> Result<ChosenServer, StudyError> {
    let wrong = |why: String| study.file.wrong(&spec.place(), &why);
    let mut info = spec.info.clone();
    if let Some(cwd) = &mut info.cwd {
        *cwd = servers::directory(cwd).map_err(|why| wrong(format!("`cwd`: {why}")))?;
    }
    for log in &mut info.logs {
        let path = std::path::absolute(&*log).map_err(|error| wrong(format!("`logs`: {error}")))?;
        *log = path.to_string_lossy().into_owned();
    }
    let (kind, ready, stop_signal) = match &spec.kind {
        ServerKind::Own { model, options } => {
            (Kind::Own(model.clone(), options.words()), None, None)
        }
        ServerKind::Foreign {
            command,
            ready,
            stop_signal,
        } => (
            Kind::Foreign(command.clone()),
            ready.clone(),
            stop_signal.clone(),
        ),
    };
    Ok(ChosenServer {
        kind,
        ready,
        stop_signal,
        named_by: None,
        allow_remote: false,
        info,
    })
}

/// The server that runs twice as a control, from the command line, the part, or the default.
fn control(
    study: &Study,
    part: &Part,
    servers: &[ServerInfo],
    common: &Common,
) -> anyhow::Result<Option<usize>> {
    if part.is_search() {
        return Ok(None);
    }
    let called = |name: &str| servers.iter().position(|server| server.name == name);
    let usual = called("epoll").or_else(|| {
        let unlimited = |server: &ServerInfo| server.structural_limit.is_none();
        servers.iter().position(unlimited)
    });
    if common.control.is_some() {
        return Ok(servers::control(servers, common.control.as_deref(), usual)?);
    }
    let Some(named) = &part.control else {
        return Ok(usual);
    };
    servers::control(servers, Some(named.get_ref()), usual)
        .map_err(|Usage(why)| study.file.wrong(&named.span(), &why).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{STUDIES, Scale};

    #[test]
    fn loads_of_built_in_studies_can_be_asked_for_at_any_scale() {
        for built_in in STUDIES {
            let whole = Study::find(built_in.info().name).unwrap();
            let scales = [Scale::Quick, Scale::By(0.1), Scale::By(0.001)];
            let smaller = scales.map(|scale| whole.scaled(scale));
            for study in smaller.iter().chain([&whole]) {
                for part in &study.parts {
                    let load = part.load.clone();
                    let limits = part.is_search();
                    assert_eq!(load.clone().checked(), Ok(load), "{} {limits}", part.name());
                }
            }
        }
    }
}
