use super::*;
use crate::document::{markdown, terminal};
use crate::fixture::{self, faster};
use crate::sections::of_reproduction;
use throng_record::{Comparison as Asked, Find, Foreign, ForeignProgram, Run, Trial, UsedFile};

/// The fixture's run with a few servers, compared with `thread`.
fn compared() -> (Run, Vec<Trial>) {
    let (mut run, mut trials) = fixture::record();
    run.servers
        .retain(|server| ["epoll", "thread", "fork"].contains(&server.name.as_str()));
    trials
        .retain(|trial| trial.clients == 100 && run.servers.iter().any(|s| s.name == trial.server));
    run.comparison = Some(Asked {
        reference: "thread".to_owned(),
        ..Asked::default()
    });
    (run, trials)
}

/// The reproduction of a record by a copy of it changed by `change`, both on disk.
fn reproduced(
    (run, trials): (Run, Vec<Trial>),
    change: impl Fn(&mut Run, &mut Vec<Trial>),
) -> Reproduction {
    let place = tempfile::tempdir().unwrap();
    let write = |name: &str, run: &Run, trials: &[Trial]| {
        let directory = place.path().join(name);
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("run.json"), serde_json::to_vec(run).unwrap()).unwrap();
        let lines: Vec<String> = trials
            .iter()
            .map(|trial| serde_json::to_string(trial).unwrap() + "\n")
            .collect();
        std::fs::write(directory.join("trials.jsonl"), lines.concat()).unwrap();
        directory
    };
    let then = write("then", &run, &trials);
    let (mut run, mut trials) = (run, trials);
    change(&mut run, &mut trials);
    let now = write("now", &run, &trials);
    let mut reproduction = Reproduction::of(&then, &now).unwrap();
    reproduction.earlier = "then".to_owned();
    reproduction.again = "now".to_owned();
    reproduction
}

fn outcome(reproduction: &Reproduction, server: &str, metric: &str) -> Outcome {
    let mut verdicts = reproduction.parts[0].verdicts.iter();
    let found = verdicts.find(|one| one.server == server && one.metric == metric);
    found.expect("it was compared").outcome
}

#[test]
fn the_same_again_holds() {
    let reproduction = reproduced(compared(), |_, _| ());
    let verdicts = &reproduction.parts[0].verdicts;
    assert!(verdicts.len() > 4, "{verdicts:?}");
    assert!(!reproduction.has_failed(), "{reproduction:?}");
    assert_eq!(reproduction.differences, []);
    assert!(
        verdicts
            .iter()
            .all(|one| one.again.as_ref() == Some(&one.earlier))
    );
    assert_eq!(reproduction.headline, "Of 12 verdicts: 12 reproduced.");
}

#[test]
fn each_verdict_has_an_outcome_with_the_differences() {
    let file = |digit: &str| {
        Some(ForeignProgram {
            file: UsedFile {
                word: "thread".to_owned(),
                path: "/bin/thread".to_owned(),
                sha256: Some(digit.repeat(64)),
            },
            ..ForeignProgram::default()
        })
    };
    let foreign = |run: &mut Run, program| {
        run.servers[1].foreign = Some(Foreign {
            program,
            ..Foreign::default()
        });
    };
    let mut record = compared();
    foreign(&mut record.0, file("a"));
    let reproduction = reproduced(record, |run, trials| {
        foreign(run, file("b"));
        run.host.kernel = "Linux 6.19.0".to_owned();
        run.throng_program.commit = Some("fedcba0987654321".to_owned());
        run.host.cpu_mhz = Some(1.0);
        faster(trials, "epoll", 0.2);
        faster(trials, "fork", 0.5);
    });
    assert_eq!(
        outcome(&reproduction, "epoll", "requests_per_s"),
        Outcome::NotHeld
    );
    assert_eq!(
        outcome(&reproduction, "fork", "requests_per_s"),
        Outcome::Held
    );
    assert!(reproduction.has_failed());
    let document = of_reproduction(&reproduction);
    insta::assert_snapshot!(markdown::text(&document));
    insta::assert_snapshot!("terminal", terminal::text(&document, 100, false));
}

#[test]
fn a_run_that_compares_nothing_is_compared_with_its_best() {
    let mut record = compared();
    record.0.comparison = None;
    let reproduction = reproduced(record, |_, trials| faster(trials, "thread", 10.0));
    let verdicts = &reproduction.parts[0].verdicts;
    assert!(
        verdicts.iter().all(|one| one.reference == "epoll"),
        "{verdicts:?}"
    );
    assert_eq!(
        outcome(&reproduction, "thread", "requests_per_s"),
        Outcome::NotHeld
    );
    assert!(
        reproduction.not_held[0]
            .starts_with("throughput of thread compared with epoll, 100 clients: was "),
        "{:?}",
        reproduction.not_held
    );
}

#[test]
fn unusable_runs_are_not_comparable() {
    let reproduction = reproduced(compared(), |_, trials| {
        trials.retain(|trial| trial.server != "fork");
    });
    assert_eq!(
        outcome(&reproduction, "fork", "requests_per_s"),
        Outcome::NotComparable
    );
    assert!(!reproduction.has_failed());
}

#[test]
fn a_limit_holds_unless_what_held_broke() {
    let record = fixture::searched();
    assert_eq!(record.0.limit.as_ref().unwrap().find, Find::Clients);
    let same = reproduced(record.clone(), |_, _| ());
    assert!(
        same.parts[0]
            .limits
            .iter()
            .any(|limit| limit.outcome == Outcome::Held)
    );
    assert!(!same.has_failed());
    let lower = reproduced(record, |run, _| {
        for found in &mut run.limit.as_mut().unwrap().found {
            for tried in [&mut found.passed, &mut found.failed].into_iter().flatten() {
                tried.value = tried.value / 4 + 1;
            }
        }
    });
    assert!(lower.has_failed());
    assert!(
        lower.not_held[0].starts_with("limit of "),
        "{:?}",
        lower.not_held
    );
}
