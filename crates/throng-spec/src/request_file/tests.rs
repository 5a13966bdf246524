use proptest::prelude::*;
use throng_protocol::{PROTOCOLS, Requester, Settings};

use super::*;

/// A file with this text, in its own directory.
fn file(text: impl AsRef<[u8]>) -> (tempfile::TempDir, RequestFile) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("requests.jsonl");
    std::fs::write(&path, text).unwrap();
    (place, RequestFile::new(path))
}

fn why(text: impl AsRef<[u8]>) -> String {
    let (_place, file) = file(text);
    let read = file
        .read()
        .and_then(|file| file.requests(&[], (true, &[]), &Hashes::new()));
    read.map(|_| ()).unwrap_err().why
}

/// The first `count` requests of a client.
fn asked(requests: Mix<&'static HttpRequest>, count: usize) -> String {
    let settings = Settings {
        requests,
        ..Settings::default()
    };
    let http = PROTOCOLS.iter().find(|known| known.name() == "http");
    let mut requester: Box<dyn Requester> = http.unwrap().requester(&settings, 0);
    let mut wire = Vec::new();
    (0..count).for_each(|_| requester.request(&mut wire));
    String::from_utf8(wire).unwrap()
}

#[test]
fn a_line_is_a_request() {
    let text = r#"
{"path": "/a", "weight": 3, "headers": {"A": "b", "C": "d"}}

{"method": "PUT", "path": "/b", "headers": ["a: x", "A: y"], "body": "{\"n\": 1}"}
{"body": {"file": "body.bin"}, "expect": 404, "weight": 2}
"#;
    let (place, file) = file(text);
    std::fs::write(place.path().join("body.bin"), b"from a file").unwrap();
    let read = file.read().unwrap();
    let headers = ["A: all".to_owned(), "E: all".to_owned()];
    let requests = read
        .requests(&headers, (false, &[]), &Hashes::new())
        .unwrap();
    let weights: Vec<u32> = requests.parts().map(|(_, weight)| weight).collect();
    assert_eq!(weights, [3, 1, 2]);
    let asked = asked(requests, 1026);
    let count = |part: &str| asked.matches(part).count();
    assert_eq!(count("GET /a HTTP/1.1\r\n"), 513);
    assert_eq!(
        count("E: all\r\nA: b\r\nC: d\r\n"),
        513,
        "its own headers before those of all"
    );
    assert_eq!(count("PUT /b HTTP/1.1\r\n"), 171);
    assert_eq!(
        count(
            "E: all\r\na: x\r\nA: y\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n{\"n\": 1}"
        ),
        171
    );
    assert_eq!(count("POST / HTTP/1.1\r\n"), 342);
    assert_eq!(
        count(
            "A: all\r\nE: all\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 11\r\n\r\nfrom a file"
        ),
        342
    );
    // The file is no longer needed.
    std::fs::remove_file(file.path()).unwrap();
    assert!(read.requests(&[], (false, &[]), &Hashes::new()).is_ok());
    assert!(file.read().is_err());
}

#[test]
fn wrong_requests_are_named_with_line_and_column() {
    for (text, place, what) in [
        ("", ":1:1: ", "the file has no requests"),
        ("\n \n", ":1:1: ", "the file has no requests"),
        ("{}\n{", ":2:1: ", "EOF while parsing an object"),
        ("{}\n\nGET /a", ":3:1: ", "expected value"),
        (
            "{\"metod\": \"GET\"}",
            ":1:8: ",
            "unknown field 'metod', expected one of 'method', 'path'",
        ),
        (
            "{\"path\": 5}",
            ":1:10: ",
            "invalid type: integer '5', expected a string",
        ),
        (
            "{\"headers\": 5}",
            ":1:13: ",
            "expected headers, like {\"Accept\"",
        ),
        (
            "{\"body\": {\"a\": \"b\"}}",
            ":1:",
            "a body is a text, or {\"file\": \"NAME\"}",
        ),
        ("{\"weight\": 0}", ":1:2: ", "a weight must be at least 1"),
        ("{\"weight\": -1}", ":1:13: ", "invalid value"),
        (
            "{\"weight\": 1000001}",
            ":1:2: ",
            "the sum of all weights exceeds 1000000",
        ),
        ("{\"expect\": \"2x\"}", ":1:15: ", "'2x' is not a status"),
        ("{} {}", ":1:4: ", "trailing characters"),
        ("{\"path\": \"a\"}", ":1:2: ", "must begin with a slash"),
        (
            "{\"path\": \"/\", \"method\": \"G T\"}",
            ":1:15: ",
            "`G T` is not a method",
        ),
        (
            "{\"headers\": {\"Content-Length\": \"5\"}}",
            ":1:2: ",
            "the body determines it",
        ),
        (
            "{\"body\": \"{who}\"}",
            ":1:2: ",
            "unknown variable `{who}`; expected {number}",
        ),
        ("{\"body\": {\"file\": \"none\"}}", ":1:2: ", "cannot read"),
    ] {
        let why = why(text);
        let (_, found) = why.split_once("requests.jsonl").unwrap();
        assert!(found.starts_with(place), "{text}: {why}");
        assert!(found.contains(what), "{text}: {why}");
        assert!(
            found.contains("each line is a request, like {\"method\""),
            "{why}"
        );
    }
    assert!(why(b"{}\n\xff{}").contains(":2:1: it is not UTF-8"));
    let error = RequestFile::new("/nowhere/at.all").read().unwrap_err();
    assert!(error.why.contains("cannot read /nowhere/at.all"), "{error}");
}

#[test]
fn many_lines_are_kept_by_their_hash() {
    let line = format!("{{\"path\": \"/{}\"}}\n", "x".repeat(100));
    let (_place, file) = file(line.repeat(1000));
    let read = file.read().unwrap();
    let json = serde_json::to_value(&read).unwrap();
    assert!(
        json["lines"].is_null() && json["sha256"].as_str().unwrap().len() == 64,
        "{json}"
    );
    assert_eq!(
        read.requests(&[], (false, &[]), &Hashes::new())
            .unwrap()
            .parts()
            .count(),
        1000
    );
    std::fs::write(file.path(), line.repeat(1001)).unwrap();
    let error = read
        .requests(&[], (false, &[]), &Hashes::new())
        .unwrap_err();
    assert!(error.why.contains("has changed since"), "{error}");
}

#[test]
fn a_body_that_has_changed_is_noticed() {
    let (place, file) = file("{\"body\": {\"file\": \"b\"}}\n{}\n{\"body\": {\"file\": \"b\"}}");
    let body = place.path().join("b");
    std::fs::write(&body, "as it was").unwrap();
    let load = super::super::LoadSpec {
        request_file: Some(file),
        ..super::super::LoadSpec::default()
    }
    .with_files()
    .unwrap();
    assert_eq!(load.files.len(), 1);
    assert_eq!(load.files[&body.display().to_string()].len(), 64);
    let read = load.request_file.as_ref().unwrap();
    assert!(read.requests(&[], (false, &[]), &load.files).is_ok());
    std::fs::write(&body, "as it is").unwrap();
    let error = read.requests(&[], (false, &[]), &load.files).unwrap_err();
    assert!(error.why.contains(":1:2: "), "{error}");
    assert!(
        error
            .why
            .contains("b has changed since it was recorded (SHA-256 "),
        "{error}"
    );
    // A resumed load has the old hash; a new one is a different load.
    let same = load.clone().with_files().unwrap();
    assert_eq!(same.files, load.files);
    let mut other = load.clone();
    other.files.clear();
    let other = other.with_files().unwrap();
    let differing = load.differing(&other);
    assert_eq!(differing.len(), 1, "{differing:?}");
    assert!(differing[0].1.starts_with("SHA-256 "), "{differing:?}");
    assert_eq!(load.flags().len(), 1, "{:?}", load.flags());
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>(), pieces in prop::collection::vec(
        prop::sample::select(vec!["{", "}", "\"path\"", ":", "\"/\"", ",", "\"headers\"", "[", "]", "\"weight\"", "7", "\n", "\"body\""]), 0..20,
    )) {
        let file = RequestFile::new("f");
        let _ = file.lines(&text);
        let _ = file.lines(&pieces.concat());
    }

    #[test]
    fn request_files_are_written_as_they_were_read(paths in prop::collection::vec("[a-z\"\\\\\u{e4}]{0,5}", 1..5)) {
        let line = |path: &String| serde_json::json!({"body": path}).to_string();
        let (_place, file) = file(paths.iter().map(line).collect::<Vec<_>>().join("\n"));
        for file in [file.read().unwrap(), file] {
            let json = serde_json::to_string(&file).unwrap();
            prop_assert_eq!(&serde_json::from_str::<RequestFile>(&json).unwrap(), &file);
        }
    }
}
