//! Trials of several servers measured side by side, in slices.

use std::time::{Duration, Instant};

use super::measuring::{setup, spin_now, spun, store_result};
use super::observer::Audience;
use super::others::OtherCpu;
use super::run_spec::{RunSpec, utc_now};
use super::slices::{self, Member, Plan};
use super::trial;
use crate::probes::ProbeKind;
use throng_record::spec::TrialSpec;
use throng_record::{Method, Purpose, Side, Slice, Store, Trial};

/// Runs these trials at the same time; each comes with its index in the order of all trials.
pub(crate) fn run(
    plan: &RunSpec,
    store: &Store,
    planned: &[(usize, &TrialSpec)],
    audience: &mut Audience<'_>,
) -> anyhow::Result<Vec<Trial>> {
    let Method::Slices {
        length_s,
        rounds,
        budget_s,
        warm_up_limit_s,
        half_width,
    } = plan.settings.method
    else {
        return Ok(Vec::new());
    };
    let began = Instant::now();
    let before = spin_now(plan);
    let mut trials: Vec<Trial> = planned
        .iter()
        .map(|(index, planned)| begun(plan, *index, planned))
        .collect();
    let setups: Vec<_> = planned
        .iter()
        .zip(&trials)
        .map(|((_, planned), trial)| {
            let mut setup = setup(plan, store, planned, (trial, &[][..]), None);
            setup.load.in_slices = true;
            setup.probes.retain(|kind| looks_at_one_server(kind));
            setup
        })
        .collect();
    let members: Vec<Member<'_>> = setups
        .iter()
        .map(|setup| Member {
            setup,
            checks: setup.purpose != Purpose::Timed,
        })
        .collect();
    let reference = plan.comparison.as_ref().map(|them| &them.reference);
    let is_reference =
        |trial: &Trial| trial.purpose == Purpose::Timed && Some(&trial.server) == reference;
    let (seen, others) = slices::run(
        &Plan {
            length: length_s.map(Duration::from_secs_f64),
            rounds,
            budget: Duration::from_secs_f64(budget_s),
            warm_up_limit: Duration::from_secs_f64(warm_up_limit_s),
            half_width,
            reference: trials.iter().position(is_reference).unwrap_or(0),
            seed: plan.seed,
            keep_going: plan.settings.keep_going,
        },
        &members,
        audience,
    );
    drop(members);
    drop(setups);
    let spin = spun(before, spin_now(plan));
    let took_s = began.elapsed().as_secs_f64();
    let mut measured = Vec::new();
    for (mut trial, seen) in trials.drain(..).zip(seen) {
        if seen.result.interrupted {
            continue;
        }
        trial.spin = Some(spin);
        trial.took_s = took_s;
        let (mut result, slices) = (seen.result, seen.slices);
        use_cpu_of_slices(&mut result.server_side, &slices, |slice| {
            slice.server_cpu_ns
        });
        use_cpu_of_slices(&mut result.client_side, &slices, |slice| {
            Some(slice.client_cpu_ns)
        });
        add_machine(&mut result, others);
        trial.slices = slices;
        store_result(plan, store, &mut trial, result)?;
        measured.push(trial);
    }
    Ok(measured)
}

/// A trial before anything is measured.
fn begun(plan: &RunSpec, index: usize, planned: &TrialSpec) -> Trial {
    Trial {
        index: index as u32,
        round: planned.round,
        server: plan.server(planned).name.clone(),
        clients: planned.clients,
        purpose: planned.purpose,
        started_at: utc_now(),
        ..Trial::default()
    }
}

/// Whether a probe measures a single server even when several run at once; a probe of the whole machine does not.
fn looks_at_one_server(kind: &'static ProbeKind) -> bool {
    kind.info.name != "machine"
}

/// Restricts CPU use to the slices: most of the whole time belongs to the other servers.
fn use_cpu_of_slices(side: &mut Option<Side>, slices: &[Slice], cpu_ns: fn(&Slice) -> Option<u64>) {
    let Some(side) = side else { return };
    let took_ns: u64 = slices.iter().map(|slice| slice.took_ns).sum();
    let cpu_time: Option<u64> = slices.iter().map(cpu_ns).sum();
    side.metrics.remove("parent_cpu_percent");
    let (Some(cpu_time), Some(before_ms)) = (cpu_time, side.metrics.get("cpu_ms").copied()) else {
        return;
    };
    let share = if before_ms > 0.0 {
        cpu_time as f64 / 1e6 / before_ms
    } else {
        1.0
    };
    for name in ["cpu_ms", "cpu_user_ms", "cpu_system_ms"] {
        if let Some(value) = side.metrics.get_mut(name) {
            *value *= share;
        }
    }
    if let Some(percent) = side.metrics.get_mut("cpu_percent")
        && took_ns > 0
    {
        *percent = cpu_time as f64 / took_ns as f64 * 100.0;
    }
}

/// Adds the machine's activity during the slices of this server: the server, its clients and other processes. The other
/// servers of the run are idle then.
fn add_machine(result: &mut trial::Result, others: Option<OtherCpu>) {
    let percent = |side: &Option<Side>| side.as_ref()?.metrics.get("cpu_percent").copied();
    let own = percent(&result.server_side).zip(percent(&result.client_side));
    let (Some(others), Some((server, client))) = (others, own) else {
        return;
    };
    let of_machine = [
        (
            "machine_busy_percent",
            server + client + others.busy_percent,
        ),
        ("machine_steal_percent", others.steal_percent),
    ];
    let network = result.network.get_or_insert_default();
    let named = of_machine.map(|(name, value)| (name.to_owned(), value));
    network.metrics.extend(named);
}
