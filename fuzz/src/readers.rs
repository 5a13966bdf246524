//! Readers of foreign data: studies, records, captures, and messages of hosts in a cluster.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str;
use std::sync::OnceLock;

use serde_json::Value;
use throng::flows::{Report as Flows, Settings, analyse};
use throng::measure::cluster::{HostAssignment, HostResult, Report};
use throng::measure::fuzzing;
use throng::protocol::{Expectation, Pattern, unescape};
use throng::record::load_stats::{LoadStats, synthetic};
use throng::record::{self, Run, Trial};
use throng::report::document::terminal;
use throng::report::exporters::EXPORTERS;
use throng::report::study::LoadedStudy;
use throng::report::{self, LoadedRun, Logs, sections};
use throng::serve::processes;
use throng::study::{Scale, Study};

use super::bytes::{Choices, Cuts};
use super::frame::{Frame, Reader, Writer, write};
use super::values;

/// A user's expectation of a reply, with its escapes and expressions.
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

/// A study file.
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
            study.describe();
            for scale in [Scale::Quick, Scale::By(0.01)] {
                study.scaled(scale).describe();
            }
        }
    }
}

/// Separates the files of a record in one input: no text contains this byte.
const BETWEEN: u8 = 0xff;

/// A directory of this process, in memory if `TMPDIR` says so, until it is dropped.
struct Directory(PathBuf);

impl Directory {
    fn create() -> Self {
        let name = format!("throng-fuzz-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        for part in ["clients", "samples", "server"] {
            fs::create_dir_all(directory.join(part)).expect("there is room");
        }
        Self(directory)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A record as it is read from its files: `run.json`, `trials.jsonl`, clients and samples.
pub fn record(data: &[u8]) {
    let created = Directory::create();
    let directory = created.0.as_path();
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
}

/// A few complete records.
fn records() -> &'static [Value] {
    static RECORDS: OnceLock<Vec<Value>> = OnceLock::new();
    RECORDS.get_or_init(|| {
        let text = include_str!("../corpus/records.json");
        let records: Vec<Value> = serde_json::from_str(text).expect("the corpus is JSON");
        let are_read = records.iter().all(|record| loaded(record).is_some());
        assert!(are_read, "records are written in another way now");
        records
    })
}

/// A record of these values, if it is one.
fn loaded(value: &Value) -> Option<LoadedRun> {
    let path = Path::new("a");
    Some(LoadedRun {
        run: record::parse(path, 1, &value["run"].to_string()).ok()?,
        trials: record::parse(path, 1, &value["trials"].to_string()).ok()?,
        logs: Logs::default(),
        baseline: None,
    })
}

/// A complete record with changed values.
pub fn record_values(data: &[u8]) {
    let mut choices = Choices::new(data);
    let mut value = records()[choices.below(records().len())].clone();
    values::change(&mut value, &mut choices);
    if let Some(LoadedRun {
        run, trials, logs, ..
    }) = loaded(&value)
    {
        render(&run, &trials, &logs);
    }
}

/// `study.json` of a study with some parts that were run.
pub fn study_record(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    if let Ok(study) = record::parse::<record::Study>(Path::new("a"), 1, text) {
        render_study(study, records());
    }
}

/// A study and its parts, with changed values.
pub fn study_record_values(data: &[u8]) {
    static STUDY: OnceLock<Value> = OnceLock::new();
    let study = STUDY.get_or_init(|| {
        let text = include_str!("../corpus/study_record/whole");
        let read = record::parse::<record::Study>(Path::new("a"), 1, text);
        // Otherwise nothing would get past the parser, and nobody would notice.
        read.expect("it is a study as it is written now");
        serde_json::from_str(text).expect("the corpus is JSON")
    });
    let mut choices = Choices::new(data);
    let (mut study, mut parts) = (study.clone(), records().to_vec());
    values::change(&mut study, &mut choices);
    let part = choices.below(parts.len());
    if choices.byte() % 2 == 1 {
        values::change(&mut parts[part], &mut choices);
    }
    if let Ok(study) = record::parse(Path::new("a"), 1, &study.to_string()) {
        render_study(study, &parts);
    }
}

/// Renders a study in all text formats; its first parts have these records.
fn render_study(study: record::Study, records: &[Value]) {
    let records = records
        .iter()
        .map(loaded)
        .chain(std::iter::repeat_with(|| None));
    let parts = study
        .parts
        .iter()
        .zip(records)
        .map(|(_, loaded)| loaded)
        .collect();
    let loaded = LoadedStudy { study, parts };
    let Ok(report) = loaded.report() else {
        return;
    };
    for exporter in EXPORTERS.iter().filter(|one| one.info.name != "html") {
        let _ = (exporter.render_study)(&report, &mut Vec::new());
    }
}

/// Renders a record in all text formats.
fn render(run: &Run, trials: &[Trial], logs: &Logs) {
    let Ok(report) = report::Report::of(run, trials, logs) else {
        return;
    };
    for exporter in EXPORTERS.iter().filter(|one| one.info.name != "html") {
        let _ = (exporter.render)(&report, &mut Vec::new());
    }
    terminal::text(&sections::of_run(&report), 80, false);
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
        max_flows: 8,
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

/// Messages between hosts of a cluster: assignments and reports.
pub fn cluster(data: &[u8]) {
    let _ = serde_json::from_slice::<HostAssignment>(data);
    if let Ok(report) = serde_json::from_slice::<Report>(data) {
        put_together([report]);
    }
}

/// Results of hosts, with changed values.
pub fn cluster_values(data: &[u8]) {
    static BASE: OnceLock<Value> = OnceLock::new();
    let base = BASE.get_or_init(|| {
        let result = |number| HostResult {
            seen: synthetic(number, 3),
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
    let mut whole = LoadStats::default();
    for report in reports {
        if let Report::Finished(mut result) = report {
            result.seen.shift(5);
            whole.merge(&result.seen);
        }
    }
    let _ = whole.summary();
}

/// Text from files of the kernel and from a server, passed to the parsers of all of them.
pub fn kernel_text(data: &[u8]) {
    if let Ok(text) = str::from_utf8(data) {
        let values = fuzzing::text(text);
        assert!(values <= text.len() + 5, "{values} values");
    }
    if let Some(used) = processes::parse(1, data) {
        assert!(used.name().len() <= data.len());
        let _ = used.total_ticks();
    }
}

/// The kernel's reply to a query about sockets.
pub fn sockets(data: &[u8]) {
    const SOCKET: usize = 88;
    if let Ok(sockets) = fuzzing::sockets(data) {
        assert!(sockets * SOCKET <= data.len(), "more sockets than fit");
    }
}

/// Messages between the two processes of a rank: they give the same frames at once and in pieces, and are the same
/// when written again.
pub fn mpi_frame(data: &[u8]) {
    let mut choices = Choices::new(data);
    let cuts = Cuts::choose(&mut choices);
    let stream = choices.rest();
    let (whole, is_broken) = frames([stream]);
    let (cut, cut_is_broken) = frames(cuts.pieces(stream));
    assert_eq!((&whole, is_broken), (&cut, cut_is_broken));
    let mut written = Vec::new();
    for frame in &whole {
        write(&mut written, frame).expect("there is room");
    }
    let (mut writer, mut sent) = (Writer::default(), Vec::new());
    for frame in &whole {
        writer.push(frame).expect("there is room");
    }
    assert_eq!(writer.waiting(), written.len());
    writer.flush(&mut sent).expect("there is room");
    assert_eq!(sent, written);
    let (again, _) = frames([&written[..]]);
    assert_eq!(again, whole);
}

/// The frames of a stream, and whether it broke.
fn frames<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Frame>, bool) {
    let (mut reader, mut frames) = (Reader::default(), Vec::new());
    for mut piece in pieces {
        while !piece.is_empty() {
            reader.fill(&mut piece).expect("memory can be read");
            loop {
                match reader.next() {
                    Ok(Some(frame)) => frames.push(frame),
                    Ok(None) => break,
                    Err(_) => return (frames, true),
                }
            }
        }
    }
    (frames, false)
}
