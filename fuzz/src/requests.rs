//! Requests as users write them: files with one per line, and variables in them.

use std::str;
use std::sync::atomic::{AtomicU32, Ordering};

use throng::protocol::{HttpRequest, has_variables};
use throng::spec::{LoadSpec, RequestFile};

use super::bytes::Choices;

/// Maximum files from which one process makes requests: the requests are kept as long as it lives.
const MOST_KEPT: u32 = 50;
/// A weight with this many digits makes an order of requests that takes long to lay out.
const LONG_WEIGHT: usize = 3;

/// A file of requests is read and comes back unchanged from a record, or is rejected with line and column.
pub fn request_file(data: &[u8]) {
    static KEPT: AtomicU32 = AtomicU32::new(0);
    let mut choices = Choices::new(data);
    let how = choices.byte();
    let Ok(text) = str::from_utf8(choices.rest()) else {
        return;
    };
    let file = match RequestFile::holding("a.jsonl", text) {
        Err(error) => {
            assert!(error.why.contains("a.jsonl:"), "{}", error.why);
            return;
        }
        Ok(file) => file,
    };
    let written = serde_json::to_value(&file).expect("it is JSON");
    let again: RequestFile = serde_json::from_value(written).expect("it was written so");
    assert_eq!(again, file);
    let mut digits = text.as_bytes().windows(LONG_WEIGHT);
    let is_heavy = digits.any(|some| some.iter().all(u8::is_ascii_digit));
    if !is_heavy && KEPT.fetch_add(1, Ordering::Relaxed) < MOST_KEPT {
        asked_alike(file, how);
    }
}

/// The requests of a client from such a file: the same each time, with a head of whole lines.
fn asked_alike(file: RequestFile, how: u8) {
    let load = LoadSpec {
        protocol: Some("http".to_owned()),
        request_file: Some(file),
        variables: how & 1 == 1,
        cookies: how & 2 == 2,
        ..LoadSpec::default()
    };
    let (dialogue, settings) = match load.dialogue("localhost:80") {
        Ok(asked) => asked,
        Err(error) => {
            assert!(!error.why.is_empty());
            return;
        }
    };
    let ask = || {
        let mut wire = Vec::new();
        let mut requester = dialogue.requester(&settings, 3);
        for _ in 0..3 {
            requester.request(&mut wire);
        }
        wire
    };
    let wire = ask();
    assert!(wire == ask(), "the same client asks something else");
    let end = wire.windows(4).position(|four| four == b"\r\n\r\n");
    let head = str::from_utf8(&wire[..end.expect("it has a head")]).expect("it is text");
    for (place, line) in head.split("\r\n").enumerate() {
        assert!(!line.contains(['\r', '\n']), "a line is cut: {line:?}");
        assert!(place > 0 || line.ends_with(" HTTP/1.1"), "{line:?}");
    }
}

/// Variables in path, header and body are understood, or the error names them; a doubled brace begins no variable.
pub fn variables(data: &[u8]) {
    let mut choices = Choices::new(data);
    let [path, header] = [choices.byte(), choices.byte()].map(usize::from);
    let (path, header) = (choices.take(path), choices.take(header));
    let body = choices.rest();
    let (Ok(path), Ok(header)) = (str::from_utf8(path), str::from_utf8(header)) else {
        return;
    };
    let request = |path: &str, header: &str, body: Vec<u8>| {
        HttpRequest::new(None, path, &[header.to_owned()], Some(body))
    };
    let made = match request(path, header, body.to_vec()) {
        Ok(made) => made,
        Err((_, why)) => {
            assert!(!why.is_empty());
            return;
        }
    };
    if let Err((_, why)) = made.with_variables_if(true, &[]) {
        assert!(why.contains("`{"), "{why}");
    }
    has_variables(body);
    let twice = |text: &str| text.replace('{', "{{");
    let mut plain = Vec::new();
    for &byte in body {
        plain.extend(std::iter::repeat_n(byte, if byte == b'{' { 2 } else { 1 }));
    }
    let doubled = request(&twice(path), &twice(header), plain)
        .expect("braces change nothing")
        .with_variables_if(true, &[]);
    assert!(
        doubled.is_ok(),
        "a brace does not stand for itself: {doubled:?}"
    );
}
