//! A synthetic study with scenes.

use crate::{LoadedRun, Logs, fixture};
use throng_record::{LeftOut, SCHEMA_VERSION, Scene, Study, StudyPart};

/// A study whose only part is the synthetic run, with one scene about costs and one about memory.
pub(crate) fn scenes() -> (Study, Vec<Option<LoadedRun>>) {
    let (run, trials) = fixture::record();
    let scene = |name: &str, metric: &str, beside: &str| Scene {
        name: name.to_owned(),
        title: format!("Scene {name}"),
        question: format!("What of {name}?"),
        when: format!("Many are {name}"),
        metric: metric.to_owned(),
        clients: None,
        beside: vec![beside.to_owned()],
    };
    let part = StudyPart {
        name: "crowd".to_owned(),
        title: "Many clients".to_owned(),
        question: "How?".to_owned(),
        clients: run.settings.clients.clone(),
        left_out: vec![LeftOut {
            server: Some("prefork".to_owned()),
            reason: "it has too few children".to_owned(),
            ..LeftOut::default()
        }],
        scenes: vec![
            scene("busy", "server_cpu_us_per_request", "requests_per_s"),
            scene("silent", "server_pss_bytes", "server_threads"),
        ],
        ..StudyPart::default()
    };
    let study = Study {
        schema_version: SCHEMA_VERSION,
        throng_version: run.throng_version.clone(),
        name: "scenes".to_owned(),
        question: "Which when?".to_owned(),
        summary: None,
        changed: Vec::new(),
        source: None,
        scale: None,
        started_at: run.started_at.clone(),
        arguments: run.arguments.clone(),
        parts: vec![part],
        claims: Vec::new(),
    };
    let loaded = LoadedRun {
        run,
        trials,
        logs: Logs::default(),
        baseline: None,
    };
    (study, vec![Some(loaded)])
}
