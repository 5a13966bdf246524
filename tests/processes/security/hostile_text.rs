//! Text from servers and files is shown and never obeyed: not by a browser, a terminal, or a reader of
//! Markdown, SVG or CSV.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Deserialize as _;
use serde_json::Value;
use throng::record::{Run, Trial};

use super::{Finished, finished, word};
use crate::support::program::THRONG;

/// Closes any enclosing syntax, and begins something else.
const EVIL: &str = "</script><script>alert(1)</script><img src=x onerror=alert(1)>'\"--> %{x} | `a` \
                    [l](http://192.0.2.1)\u{1b}[2J\u{1b}]0;gone\u{7}\u{9b}5m\u{202e}\r=1+1";

/// Some whole records: `run` and `trials` of each.
pub(super) fn records() -> Vec<Value> {
    let text = include_str!("../../../fuzz/corpus/records.json");
    serde_json::from_str(text).expect("the corpus is JSON")
}

/// Adds hostile text to every text of a value for which it remains valid by `is_fine`: to all texts of one name at
/// once, since they are all arbitrary or none.
fn poison(whole: &mut Value, is_fine: impl Fn(&Value) -> bool) -> usize {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for place in texts(whole, "") {
        let is_number = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit());
        let words: Vec<&str> = place.split('/').filter(|word| !is_number(word)).collect();
        groups.entry(words.join("/")).or_default().push(place);
    }
    // A damaged one is refused as a whole.
    groups.retain(|name, _| !name.ends_with("/histogram"));
    let mut poisoned = 0;
    for places in groups.values() {
        let mut other = whole.clone();
        for place in places {
            let text = other.pointer_mut(place).expect("it was there");
            *text = format!("{}{EVIL}", text.as_str().unwrap_or_default()).into();
        }
        if is_fine(&other) {
            *whole = other;
            poisoned += places.len();
        }
    }
    poisoned
}

/// Where a value has texts, as JSON pointers.
fn texts(value: &Value, at: &str) -> Vec<String> {
    match value {
        Value::String(_) => vec![at.to_owned()],
        Value::Array(members) => {
            let of = |(place, one): (usize, &Value)| texts(one, &format!("{at}/{place}"));
            members.iter().enumerate().flat_map(of).collect()
        }
        Value::Object(members) => {
            let of = |(name, one): (&String, &Value)| {
                let name = name.replace('~', "~0").replace('/', "~1");
                texts(one, &format!("{at}/{name}"))
            };
            members.iter().flat_map(of).collect()
        }
        _ => Vec::new(),
    }
}

/// Writes a record with hostile text everywhere, and returns the number of texts.
fn write(directory: &Path, mut record: Value) -> usize {
    let run = &mut record["run"];
    let mut poisoned = poison(run, |run| Run::deserialize(run).is_ok());
    fs::write(directory.join("run.json"), run.to_string()).expect("there is room");
    let mut lines = String::new();
    for trial in record["trials"].as_array_mut().expect("there are trials") {
        poisoned += poison(trial, |trial| Trial::deserialize(trial).is_ok());
        lines += &format!("{trial}\n");
    }
    fs::write(directory.join("trials.jsonl"), lines).expect("there is room");
    poisoned
}

fn report(directory: &Path, more: &[&str]) -> Finished {
    let mut command = Command::new(THRONG);
    command.arg("report").arg(directory).args(more);
    // As on a terminal that has colours.
    command.env("CLICOLOR_FORCE", "1").env("COLUMNS", "120");
    finished(command)
}

/// The terminal's control sequences that remain when throng's own colours are removed.
fn obeyed(text: &str) -> Vec<String> {
    let mut pieces = text.split('\u{1b}');
    let first = pieces.next().unwrap_or_default().to_owned();
    let after = pieces.map(|piece| {
        let (codes, rest) = piece
            .strip_prefix('[')
            .and_then(|piece| piece.split_once('m'))
            .unwrap_or(("?", piece));
        let is_colour = codes
            .split(';')
            .all(|code| ["0", "1", "2", "31", "32", "33", "36"].contains(&code));
        if is_colour {
            rest.to_owned()
        } else {
            format!("\u{1b}{piece}")
        }
    });
    let control = |c: char| (c.is_control() && !"\n\t".contains(c)) || c == '\u{202e}';
    std::iter::once(first)
        .chain(after)
        .filter(|piece| piece.contains(control))
        .collect()
}

/// Markdown without its code blocks, whose content is literal.
fn outside_of_code(markdown: &str) -> String {
    let mut fence = None;
    let outside = markdown.lines().filter(|line| {
        let ticks = line.len() - line.trim_start_matches('`').len();
        match fence {
            None if ticks >= 3 => fence = Some(ticks),
            Some(open) if ticks == open && line.len() == ticks => fence = None,
            None => return true,
            Some(_) => {}
        }
        false
    });
    let text = outside.map(|line| format!("{line}\n")).collect();
    assert_eq!(fence, None, "each block ends");
    text
}

#[test]
fn text_of_a_record_is_shown_and_never_interpreted() {
    for record in records() {
        let directory = tempfile::tempdir().expect("a directory");
        assert!(
            write(directory.path(), record) > 60,
            "nearly all texts can be anything"
        );
        let finished = report(directory.path(), &[]);
        assert_eq!(finished.code, 0, "{}", finished.err);
        assert_eq!(obeyed(&finished.out), [""; 0]);
        let read = |name: &str| fs::read_to_string(directory.path().join(name)).expect(name);
        let page = read("report.html");
        assert!(
            !page.contains("<script>alert") && !page.contains("<img"),
            "the page"
        );
        assert!(page.contains("&lt;script&gt;alert(1)"), "it is shown");
        let exported = report(directory.path(), &["--export", "openmetrics=-"]);
        assert!(exported.out.ends_with("# EOF\n"), "{}", exported.err);
        assert_eq!(obeyed(&exported.out), [""; 0], "OpenMetrics");
        for name in ["report.html", "report.md", "summary.csv"] {
            assert_eq!(obeyed(&read(name)), [""; 0], "{name}");
        }
        let markdown = read("report.md");
        let outside = outside_of_code(&markdown);
        let unescaped = outside.replace("\\]", "");
        assert!(!unescaped.contains("<script") && !unescaped.contains("](http"));
        for figure in fs::read_dir(directory.path().join("figures")).expect("there are figures") {
            let path = figure.expect("it can be read").path();
            if path.extension().is_some_and(|ending| ending == "svg") {
                let picture = fs::read_to_string(&path).expect("it is text");
                assert_eq!(obeyed(&picture), [""; 0], "{path:?}");
                assert!(
                    !picture.contains("<script") && !picture.contains("<img"),
                    "{path:?}"
                );
            }
        }
    }
}

#[test]
fn hostile_text_in_a_record_is_shown_and_never_obeyed() {
    let directory = tempfile::tempdir().expect("a directory");
    let key = serde_json::to_string(EVIL).expect("it is text");
    for run in [
        format!("{{{key}: 1}}"),
        format!("{{\"schema_version\": {key}}}"),
    ] {
        fs::write(directory.path().join("run.json"), run).expect("there is room");
        let finished = report(directory.path(), &[]);
        finished.is_refused(&["run.json, line 1, column "]);
        assert_eq!(obeyed(&finished.err), [""; 0]);
    }
}

/// A page loads nothing, and a policy makes browsers enforce that.
#[test]
fn a_page_needs_no_network() {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), records().swap_remove(0));
    assert_eq!(report(directory.path(), &[]).code, 0);
    let page = fs::read_to_string(directory.path().join("report.html")).expect("there is a page");
    let (head, _) = page.split_once("</head>").expect("it has a head");
    assert!(
        head.contains("Content-Security-Policy") && head.contains("default-src 'none'"),
        "{head}"
    );
    for loads in [
        "<link rel=\"stylesheet",
        "<script src",
        "<iframe",
        "<object",
        "<embed",
        "<base",
    ] {
        assert!(!page.contains(loads), "{loads}");
    }
}

/// A server's last output is in the record unchanged, and is displayed without its escape sequences.
#[test]
fn a_server_that_writes_sequences_moves_no_cursor() {
    let directory = tempfile::tempdir().expect("a directory");
    let script = directory.path().join("server.sh");
    fs::write(
        &script,
        "printf '\\033[2J\\033]0;gone\\007<script>alert(1)</script>\\n'; exit 3\n",
    )
    .expect("there is room");
    let mut command = Command::new(THRONG);
    let server = format!("sh {}", word(&script));
    // Whichever starts first.
    command.args(["compare", &server, "false", "-r", "1", "--keep-going", "-o"]);
    command
        .arg(directory.path().join("record"))
        .env("CLICOLOR_FORCE", "1");
    let finished = finished(command);
    assert_eq!(finished.code, 1, "{}", finished.err);
    assert_eq!(obeyed(&finished.out), [""; 0]);
    assert_eq!(obeyed(&finished.err), [""; 0]);
    let page =
        fs::read_to_string(directory.path().join("record/report.html")).expect("there is a page");
    assert!(
        page.contains("&lt;script&gt;alert(1)") && !page.contains("<script>alert"),
        "the page"
    );
}

/// No foreign text gets into a CSV file, so that none is a formula there: neither what a client receives nor what a
/// server does.
#[test]
fn files_of_clients_have_no_text_from_outside() {
    let directory = tempfile::tempdir().expect("a directory");
    let record = directory.path().join("record");
    let mut command = Command::new(THRONG);
    command.args(
        "run --allow-rough --retries 0 --models epoll --clients 3 --runs 1 --no-ceiling".split(' '),
    );
    command.args("--control none --duration 100ms --warm-up 0s -o".split(' '));
    command.arg(&record);
    let finished = finished(command);
    assert_eq!(finished.code, 0, "{}", finished.err);
    let mut files = 0;
    for part in ["clients", "server", "samples"] {
        for file in fs::read_dir(record.join(part)).expect("there are files") {
            let text =
                fs::read_to_string(file.expect("it can be read").path()).expect("it is text");
            let plain = |c: char| c.is_ascii_alphanumeric() || "._-:[]".contains(c);
            for field in text.lines().flat_map(|line| line.split(',')) {
                let is_number = field.parse::<f64>().is_ok();
                assert!(field.chars().all(plain), "{field}");
                assert!(
                    is_number || !field.starts_with(['=', '+', '-', '@']),
                    "{field}"
                );
            }
            files += 1;
        }
    }
    assert!(files >= 3, "{files}");
}
