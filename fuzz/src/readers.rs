//! Whatever reads what others wrote: studies, records, captures, and what hosts of a crew say.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str;
use std::sync::OnceLock;

use serde_json::Value;
use throng::flows::{Report as Flows, Settings, analyse};
use throng::load::merge::{Whole, synthetic};
use throng::measure::crew::{HostResult, Order, Report};
use throng::protocol::{Expectation, Pattern, unescape};
use throng::record::{self, Run, Trial};
use throng::report::exporters::EXPORTERS;
use throng::report::{self, Logs, terminal};
use throng::study::{Scale, Study};

use super::bytes::{Choices, Cuts};
use super::values;

/// What a user expects of a reply, and escapes and expressions in it.
pub fn expectation(data: &[u8]) {
    let mut choices = Choices::new(data);
    let count = usize::from(choices.byte()) % 64;
    let Ok(text) = str::from_utf8(choices.take(count)) else {
        return;
    };
    let _ = unescape(text);
    let _ = Expectation::parse(text);
    if let Ok(pattern) = Pattern::new(text) {
        pattern.matches(choices.rest());
    }
}

/// The file of a study.
pub fn study(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    match Study::parse(Path::new("a.toml"), text) {
        Err(error) => {
            let words = error.to_string();
            assert!(
                words.contains("line ") && words.contains("column "),
                "{words}"
            );
        }
        Ok(study) => {
            study.claims();
            study.describe();
            for scale in [Scale::Quick, Scale::By(0.01)] {
                study.scaled(scale).describe();
            }
        }
    }
}

/// Between the files of a record that come in one input: no text has this byte.
const BETWEEN: u8 = 0xff;

/// A directory of this process, in memory where `TMPDIR` says so.
fn directory() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let name = format!("throng-fuzz-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        for part in ["clients", "samples", "server"] {
            fs::create_dir_all(directory.join(part)).expect("there is room");
        }
        directory
    })
}

/// A record as it is read from its files: `run.json`, `trials.jsonl`, clients and samples.
pub fn record(data: &[u8]) {
    let directory = directory();
    let mut files = data.split(|&byte| byte == BETWEEN);
    let mut file = || files.next().unwrap_or_default();
    let write = |path: &Path, bytes: &[u8]| fs::write(path, bytes).expect("there is room");
    write(&directory.join("run.json"), file());
    write(&directory.join("trials.jsonl"), file());
    let (clients, samples) = (file(), file());
    let Ok(trials) = record::read_trials(directory) else {
        return;
    };
    let of_first = |part: &str| {
        let stem = trials.first().map(Trial::file_stem);
        directory.join(part).join(stem.unwrap_or_default() + ".csv")
    };
    let logs = [
        (of_first("clients"), clients),
        (of_first("samples"), samples),
    ];
    for (path, bytes) in &logs {
        write(path, bytes);
    }
    if let Ok(loaded) = report::load(directory)
        && loaded.trials.len() < 200
    {
        render(&loaded.run, &loaded.trials, &loaded.logs);
    }
    for (path, _) in &logs {
        let _ = fs::remove_file(path);
    }
}

/// One of some whole records, whose values are changed.
pub fn record_values(data: &[u8]) {
    static BASE: OnceLock<Vec<Value>> = OnceLock::new();
    let base = BASE.get_or_init(|| {
        let text = include_str!("../corpus/records.json");
        serde_json::from_str(text).expect("the corpus is JSON")
    });
    let mut choices = Choices::new(data);
    let mut value = base[choices.below(base.len())].clone();
    values::change(&mut value, &mut choices);
    let path = Path::new("a");
    let run = record::parse::<Run>(path, 1, &value["run"].to_string());
    let trials = record::parse::<Vec<Trial>>(path, 1, &value["trials"].to_string());
    if let (Ok(run), Ok(trials)) = (run, trials) {
        render(&run, &trials, &Logs::default());
    }
}

/// Makes everything of a record that is text.
fn render(run: &Run, trials: &[Trial], logs: &Logs) {
    let Ok(report) = report::Report::of(run, trials, logs) else {
        return;
    };
    for exporter in EXPORTERS.iter().filter(|one| one.info().name != "html") {
        let _ = exporter.render(&report, &mut Vec::new());
    }
    terminal::table(&report.summary, 80, false);
    if let Some(limits) = &report.limits {
        terminal::limits(&report.answer, limits, 80, false);
    }
    if let Some(comparison) = &report.comparison {
        terminal::comparison(&report.summary, &report.answer, comparison, 80, false);
    }
}

/// Reads no more than the next piece at once.
struct Dribble<'a, I: Iterator<Item = &'a [u8]>> {
    pieces: I,
    piece: &'a [u8],
}

impl<'a, I: Iterator<Item = &'a [u8]>> Read for Dribble<'a, I> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        if self.piece.is_empty() {
            self.piece = self.pieces.next().unwrap_or_default();
        }
        self.piece.read(to)
    }
}

/// A packet capture, read at once and in pieces.
pub fn capture(data: &[u8]) {
    let mut choices = Choices::new(data);
    let port = choices.byte();
    let settings = Settings {
        port: (port < 128).then_some(u16::from(port)),
        most_flows: 8,
    };
    let cuts = Cuts::choose(&mut choices);
    let file = choices.rest();
    let whole = analyse(file, settings);
    let dribble = Dribble {
        pieces: cuts.pieces(file),
        piece: &[],
    };
    match (whole, analyse(dribble, settings)) {
        (Ok(whole), Ok(cut)) => assert_alike(&whole, &cut, file.len()),
        (Err(whole), Err(cut)) => assert_eq!(whole, cut),
        (whole, cut) => panic!("at once {:?}, cut {:?}", whole.is_ok(), cut.is_ok()),
    }
}

fn assert_alike(whole: &Flows, cut: &Flows, bytes: usize) {
    assert_eq!(whole.contents, cut.contents);
    assert!(
        whole.contents.packets as usize <= bytes / 8,
        "more packets than fit"
    );
    assert!(whole.rows().count() <= 8, "more flows than are kept");
    assert_eq!(whole.summary, cut.summary);
    assert!(whole.rows().eq(cut.rows()), "flows depend on the cuts");
}

/// What hosts of a crew send each other: orders and reports.
pub fn crew(data: &[u8]) {
    let _ = serde_json::from_slice::<Order>(data);
    if let Ok(report) = serde_json::from_slice::<Report>(data) {
        put_together([report]);
    }
}

/// Results of hosts whose values are changed.
pub fn crew_values(data: &[u8]) {
    static BASE: OnceLock<Value> = OnceLock::new();
    let base = BASE.get_or_init(|| {
        let result = |number| HostResult {
            seen: synthetic(number, 2, 3),
            side: None,
            rows: Some("client,replies\n0,1\n".to_owned()),
        };
        let report = |number| Report::Finished(Box::new(result(number)));
        serde_json::to_value([report(0), report(1)]).expect("reports are JSON")
    });
    let mut value = base.clone();
    values::change(&mut value, &mut Choices::new(data));
    if let Ok(reports) = serde_json::from_value::<[Report; 2]>(value) {
        put_together(reports);
    }
}

fn put_together(reports: impl IntoIterator<Item = Report>) {
    let mut whole = Whole::default();
    for (number, report) in reports.into_iter().enumerate() {
        if let Report::Finished(result) = report
            && whole.add(result.seen, (number > 0).then_some(-5)).is_err()
        {
            return;
        }
    }
    let _ = whole.load();
}
