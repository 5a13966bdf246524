//! Trials of several servers measured side by side, in slices.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::measuring::{setup, spin_now, spun, store_result};
use super::observer::Audience;
use super::others::OtherCpu;
use super::plan::TrialSpec;
use super::run_spec::{RunSpec, utc_now};
use super::slices::{self, Member, Plan, ServerSlices};
use super::trial;
use crate::probes::ProbeKind;
use throng_record::{Method, Purpose, Settling, Side, Slice, Store, Trial};
use throng_stats::steadiness;

/// Fewest rounds in which a change of a server's rate can be seen.
const FEWEST_RATIOS: usize = 20;

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
    let (mut seen, others) = slices::run(
        &Plan {
            length: length_s.map(Duration::from_secs_f64),
            rounds,
            budget: Duration::from_secs_f64(budget_s),
            warm_up_limit: Duration::from_secs_f64(warm_up_limit_s),
            half_width,
            why: plan.settings.why,
            reference: reference(plan, &trials),
            seed: plan.seed,
            keep_going: plan.settings.keep_going,
        },
        &members,
        audience,
    );
    settle(&mut seen);
    drop(members);
    drop(setups);
    let spin = spun(before, spin_now(plan));
    let took_s = began.elapsed().as_secs_f64();
    let mut measured = Vec::new();
    for (mut trial, sliced) in trials.drain(..).zip(seen) {
        if sliced.result.interrupted {
            continue;
        }
        trial.spin = Some(spin);
        trial.took_s = took_s;
        let (mut result, slices) = (sliced.result, sliced.slices);
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

/// The place of the server that the others are compared with.
fn reference(plan: &RunSpec, trials: &[Trial]) -> usize {
    let reference = plan.comparison.as_ref().map(|them| &them.reference);
    let is_reference =
        |trial: &Trial| trial.purpose == Purpose::Timed && Some(&trial.server) == reference;
    trials.iter().position(is_reference).unwrap_or(0)
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

/// Takes a warm-up that was cut off as complete if the value that was not level, as a ratio to the other servers of each
/// round, was level in all rounds: the machine may have changed instead of the server.
fn settle(seen: &mut [ServerSlices]) {
    let of_rounds = |value: fn(&Slice) -> Option<f64>| -> Vec<BTreeMap<u32, f64>> {
        let log = |slice: &Slice| Some((slice.round, value(slice)?.ln()));
        seen.iter()
            .map(|one| one.slices.iter().filter_map(log).collect())
            .collect()
    };
    let rates = of_rounds(Slice::requests_per_s);
    let costs = of_rounds(Slice::server_cpu_us_per_request);
    for (index, one) in seen.iter_mut().enumerate() {
        let Some(warm_up) = one
            .result
            .load
            .as_mut()
            .and_then(|load| load.warm_up.as_mut())
        else {
            continue;
        };
        let logs = match warm_up.unsettled.map(|unsettled| unsettled.what) {
            Some(Settling::Rate) => &rates,
            Some(Settling::CpuPerRequest) => &costs,
            None => continue,
        };
        let own = &logs[index];
        // A control runs in few rounds only: with it, the mean would differ from round to round.
        let others = || {
            let others = logs.iter().enumerate();
            others.filter(|(other, rounds)| *other != index && 2 * rounds.len() >= own.len())
        };
        let by_round = ratios(own, others);
        if by_round.len() >= FEWEST_RATIOS && steadiness::shift(&by_round).is_none() {
            warm_up.unsettled = None;
        }
    }
}

/// The ratio of a server to the geometric mean of the others, by round.
fn ratios<'a, Others>(own: &BTreeMap<u32, f64>, others: impl Fn() -> Others) -> Vec<f64>
where
    Others: Iterator<Item = (usize, &'a BTreeMap<u32, f64>)>,
{
    let ratio = |(round, log): (&u32, &f64)| {
        let of_round = others().filter_map(|(_, logs)| logs.get(round));
        let (sum, count) = of_round.fold((0.0, 0), |(sum, count), one| (sum + one, count + 1));
        (count > 0).then(|| (log - sum / f64::from(count)).exp())
    };
    own.iter().filter_map(ratio).collect()
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
    for of_run in ["run_cpu_percent", "parent_cpu_percent"] {
        side.metrics.remove(of_run);
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use throng_record::{Load, Unsettled, WarmUp};

    fn cut_off(rate: impl Fn(u32) -> u64) -> ServerSlices {
        let slice = |round| Slice {
            round,
            took_ns: 1_000_000_000,
            replies: rate(round),
            ..Slice::default()
        };
        let unsettled = Some(Unsettled {
            what: Settling::Rate,
            change: 0.2,
        });
        ServerSlices {
            result: trial::Result {
                load: Some(Load {
                    warm_up: Some(WarmUp {
                        took_s: 30.0,
                        unsettled,
                    }),
                    ..Load::default()
                }),
                ..trial::Result::default()
            },
            slices: (0..60).map(slice).collect(),
        }
    }

    #[test]
    fn a_warm_up_is_complete_if_the_machine_changed_and_not_the_server() {
        let unsettled = |rates: [fn(u32) -> u64; 2]| {
            let mut both = rates.map(cut_off);
            settle(&mut both);
            both.map(|one| {
                one.result
                    .load
                    .unwrap()
                    .warm_up
                    .unwrap()
                    .unsettled
                    .is_some()
            })
        };
        let slower: fn(u32) -> u64 = |round| 10_000 - 100 * u64::from(round);
        let half: fn(u32) -> u64 = |round| 5_000 - 50 * u64::from(round);
        assert_eq!(
            unsettled([slower, half]),
            [false; 2],
            "the machine slowed down"
        );
        assert_eq!(unsettled([slower, |_| 5_000]), [true; 2]);
        // A much faster control in every fifth round hides nothing.
        let mut with_control = [
            cut_off(|round| 10_000 - 20 * u64::from(round)),
            cut_off(|_| 1_000),
            cut_off(|_| 10_000),
        ];
        with_control[2].slices.retain(|slice| slice.round % 5 == 1);
        settle(&mut with_control);
        let first = with_control[0].result.load.as_ref().unwrap();
        assert!(first.warm_up.unwrap().unsettled.is_some());
        let mut alone = [cut_off(|_| 5_000)];
        settle(&mut alone);
        assert!(
            alone[0]
                .result
                .load
                .as_ref()
                .unwrap()
                .warm_up
                .unwrap()
                .unsettled
                .is_some()
        );
    }
}
