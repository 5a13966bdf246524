use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use throng_protocol::{Initial, Part};

use super::*;

fn read_as(format: Format, text: &str, rows: Option<&Rows>) -> Result<super::Read, Wrong> {
    let variables = BTreeMap::from([("host".to_owned(), "http://h:1".to_owned())]);
    let read = |path: &Path| match path.to_str() {
        Some("a.txt") => Ok(b"from a file".to_vec()),
        _ => Err(format!("cannot read {}", path.display())),
    };
    super::read(
        format,
        text,
        &Context {
            variables: &variables,
            rows,
            order: Order::InTurn,
            keeps_delays: true,
            recorded_host: None,
            headers: &["Accept: */*".to_owned()],
            read: &read,
        },
    )
}

fn hurl(text: &str) -> Result<super::Read, Wrong> {
    read_as(Format::Hurl, text, None)
}

/// A text with variables by their place.
fn shown(parts: &[Part]) -> String {
    let text = |part: &Part| match part {
        Part::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Part::Variable(place, encoding) => format!("<{place} {encoding:?}>"),
        Part::Uuid => "<uuid>".to_owned(),
    };
    parts.iter().map(text).collect()
}

const LOGIN: &str = r#"
# A shop.

# login
POST {{host}}/api/login?from=test   # to the shop
Content-Type: application/json
X-Id: {{newUuid}}
{
  "name": "{{name}}",
  "age": {{age}}, "list": [1, {"a": "}"}]
}
HTTP 200
Content-Type: application/json
[Captures]
token: jsonpath "$.token"
csrf: header "X-Csrf"
id: regex /id=(\d+)\//
[Asserts]
duration < 500
jsonpath "$.list" count == 2
header "Location" not exists
body contains "{{name}}"
status < 300

POST {{host}}/orders/{{id}}
Authorization: Bearer {{token}}
[Query]
q: a b&{{token}}
[Form]
csrf: {{csrf}}
x y: ä
[Cookies]
theme: dark
lang: {{name}}
[Options]
delay: 2s
HTTP 201

GET {{host}}/hidden
[Options]
skip: true

PUT {{host}}/orders
file,a.txt;
HTTP *

GET {{host}}
"#;

#[test]
fn a_file_of_hurl_becomes_steps() {
    let rows = Rows::read(
        Path::new("a.csv"),
        "name,age\nann,30\n\"b, \"\"c\"\"\",31\n",
    )
    .unwrap();
    let found = read_as(Format::Hurl, LOGIN, Some(&rows)).unwrap();
    assert_eq!(found.origin.as_deref(), Some("http://h:1"));
    let flow = found.flow;
    let names: Vec<&str> = flow.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["login", "orders", "orders-2", "get"]);
    let initial = [
        Initial::Column(0),
        Initial::Column(1),
        Initial::Given((*b"http://h:1").into()),
        Initial::Captured,
        Initial::Captured,
        Initial::Captured,
    ];
    assert_eq!(flow.feed.variables, initial);
    assert_eq!(flow.feed.rows[1], [(*b"b, \"c\"").into(), (*b"31").into()]);
    let [login, orders, file, root] = &flow.steps[..] else {
        panic!("{names:?}");
    };
    assert_eq!(shown(&login.path), "/api/login?from=test");
    let body =
        "{\n  \"name\": \"<0 Json>\",\n  \"age\": <1 Plain>, \"list\": [1, {\"a\": \"}\"}]\n}";
    assert_eq!(shown(login.body.as_ref().unwrap()), body);
    let headers = |step: &FlowStep| -> Vec<String> {
        let headers = step.headers.iter();
        headers
            .map(|(name, value)| format!("{name}: {}", shown(value)))
            .collect()
    };
    assert_eq!(
        headers(login),
        [
            "Content-Type: application/json",
            "X-Id: <uuid>",
            "Accept: */*"
        ]
    );
    assert_eq!(login.limit, Some(Duration::from_millis(500)));
    assert_eq!((login.captures.len(), login.asserts.len()), (3, 5));
    assert_eq!(shown(&orders.path), "/orders/<5 Path>?q=a%20b%26<3 Form>");
    assert_eq!(
        shown(orders.body.as_ref().unwrap()),
        "csrf=<4 Form>&x%20y=%C3%A4"
    );
    assert_eq!(shown(&orders.cookies), "theme=dark; lang=<0 Header>");
    assert_eq!(orders.delay, Duration::from_secs(2));
    assert_eq!(headers(orders)[0], "Authorization: Bearer <3 Header>");
    assert_eq!(shown(file.body.as_ref().unwrap()), "from a file");
    assert_eq!(file.expected.unwrap().to_string(), "1xx,2xx,3xx,4xx,5xx");
    assert_eq!(shown(&root.path), "/");
}

/// Text, and the place and part of its error.
const REFUSED: &[(&str, usize, usize, &str)] = &[
    ("", 1, 1, "the file has no steps"),
    ("get http://h/", 1, 1, "begins with a method"),
    ("GET /path", 1, 5, "begins with http://"),
    ("GET http://h/ x", 1, 15, "nothing may follow the URL"),
    (
        "GET http://h/\nGET http://g/",
        2,
        5,
        "goes to http://g, the first one to http://h",
    ),
    (
        "GET http://h/{{id}}",
        1,
        14,
        "no earlier step captures `id`",
    ),
    ("GET http://h/{{id", 1, 14, "a variable ends with"),
    ("GET http://h/{{getEnv \"A\"}}", 1, 14, "is not supported"),
    ("GET http://h/\nA b", 2, 1, "expected `name: value`"),
    ("GET http://h/\nA b: c", 2, 1, "`A b` is not a name"),
    (
        "GET http://h/\n[Multipart]\nfile: file,a.txt;",
        2,
        1,
        "[Multipart] is not supported",
    ),
    ("GET http://h/\n[BasicAuth]\na: b", 2, 1, "Authorization"),
    (
        "GET http://h/\n[Options]\nretry: 3",
        3,
        1,
        "the option `retry` is not supported",
    ),
    (
        "GET http://h/\n[Options]\ndelay: soon",
        3,
        8,
        "a delay is a number",
    ),
    (
        "GET http://h/\n[Captures]\na: body",
        2,
        1,
        "after the line `HTTP`",
    ),
    ("POST http://h/\n{\"a\": }", 2, 7, "the JSON is wrong"),
    ("POST http://h/\n{\"a\": 1", 2, 1, "the JSON has no end"),
    ("POST http://h/\n```\nabc", 2, 1, "no closing line"),
    (
        "POST http://h/\n```graphql\n```",
        2,
        4,
        "`graphql` is not supported",
    ),
    ("POST http://h/\n<a/>", 2, 1, "XML is not supported"),
    ("POST http://h/\nfile,b.txt;", 2, 6, "cannot read b.txt"),
    ("GET http://h/\nHTTP/2 200", 2, 1, "clients speak HTTP/1.1"),
    ("GET http://h/\nHTTP 99", 2, 6, "`99` is not a status"),
];

/// The same for what follows a request and its status.
const REFUSED_OF_REPLIES: &[(&str, usize, usize, &str)] = &[
    (
        "[Captures]\na: xpath \"//a\"",
        4,
        4,
        "the query `xpath` is not supported",
    ),
    (
        "[Captures]\na: body toInt",
        4,
        9,
        "the filter `toInt` is not supported",
    ),
    (
        "[Captures]\na: jsonpath \"$.[\"",
        4,
        1,
        "the JSONPath is wrong",
    ),
    (
        "[Captures]\na: regex /a(/",
        4,
        10,
        "the regular expression is wrong",
    ),
    ("[Captures]\na: regex /a/", 4, 10, "has no group"),
    (
        "[Asserts]\nbody isInteger",
        4,
        6,
        "`isInteger` is not supported",
    ),
    ("[Asserts]\nstatus < x", 4, 10, "`x` is not a number"),
    ("[Asserts]\nbody == abc", 4, 9, "write a text in quotes"),
    ("[Asserts]\nbody == \"abc", 4, 9, "no closing quote"),
    ("[Asserts]\nduration > 5", 4, 10, "duration < N"),
    (
        "[Asserts]\ncertificate \"Subject\" == \"a\"",
        4,
        1,
        "`certificate`",
    ),
    ("{\"a\": 1}", 3, 1, "a whole body as a condition"),
];

#[test]
fn what_is_not_supported_is_named_with_its_place() {
    let plain = REFUSED
        .iter()
        .map(|(text, line, column, why)| ((*text).to_owned(), line, column, why));
    let replies = REFUSED_OF_REPLIES.iter().map(|(text, line, column, why)| {
        (
            format!("GET http://h/\nHTTP 200\n{text}"),
            line,
            column,
            why,
        )
    });
    for (text, line, column, why) in plain.chain(replies) {
        let Err(wrong) = hurl(&text) else {
            panic!("accepted: {text}");
        };
        assert!(wrong.why.contains(why), "{text}\n{wrong:?}");
        assert_eq!(wrong.line, *line, "{text}\n{wrong:?}");
        // Of the others, the place is that of a library.
        if *column > 1 {
            assert_eq!(wrong.column, *column, "{text}\n{wrong:?}");
        }
    }
}

#[test]
fn a_server_may_be_named_by_variables() {
    let origin = |text: &str| hurl(text).unwrap().origin;
    assert_eq!(origin("GET {{host}}/a").as_deref(), Some("http://h:1"));
    assert_eq!(
        origin("GET {{ host }}:2/a").as_deref(),
        Some("http://h:1:2")
    );
    assert_eq!(origin("GET http://{{name}}:8080/a"), None);
    assert_eq!(origin("GET https://h/a").as_deref(), Some("https://h"));
}

#[test]
fn a_flow_of_one_plain_request_is_the_load_of_its_url() {
    use super::super::{LoadSpec, Paths, RequestFile};
    let load = LoadSpec {
        protocol: Some("http".to_owned()),
        ..LoadSpec::default()
    };
    let settings = |load: &LoadSpec| load.dialogue("h:1").unwrap().1;
    let of_url = settings(&LoadSpec {
        path: Some(Paths::one("/a?b=c".to_owned())),
        ..load.clone()
    });
    let of_file = |text: &str| {
        let file = RequestFile::holding("a.hurl", text).unwrap();
        settings(&LoadSpec {
            request_file: Some(file),
            ..load.clone()
        })
    };
    let plain = of_file("GET http://h:1/a?b=c\n");
    assert!(plain.flow.is_none());
    let requests =
        |settings: &throng_protocol::Settings| settings.requests.parts().collect::<Vec<_>>();
    assert_eq!(requests(&plain), requests(&of_url));
    let session = of_file("GET http://h:1/a?b=c\nHTTP 200\n[Asserts]\nbody exists\n");
    assert!(session.flow.is_some());
}

#[test]
fn rows_are_checked_before_a_load() {
    for (name, text, line, column, why) in [
        ("a.csv", "", 1, 1, "has no rows"),
        ("a.csv", "a,b\n", 1, 1, "has no rows"),
        ("a.csv", "a,b\n1,2\n3\n", 3, 2, "1 of 2 values"),
        ("a.csv", "a,b\n1,2,3\n", 2, 6, "3 of 2 values"),
        ("a.csv", "a,a\n1,2\n", 1, 1, "two columns are named `a`"),
        ("a.csv", "a b,c\n1,2\n", 1, 1, "`a b` is no name"),
        ("a.csv", "a,b\n1,x\"y\"\n", 2, 4, "a quote within a value"),
        (
            "a.csv",
            "a,b\n\"1\"2,3\n",
            2,
            4,
            "text after a closing quote",
        ),
        ("a.csv", "a,b\n1,\"2\n", 2, 3, "the quote has no end"),
        (
            "a.jsonl",
            "{\"a\": 1}\n{\"b\": 1}\n",
            2,
            3,
            "the first row has no `b`",
        ),
        (
            "a.jsonl",
            "{\"a\": 1, \"b\": 2}\n{\"a\": 1}\n",
            2,
            1,
            "the row has no `b`",
        ),
        (
            "a.jsonl",
            "{\"a\": [1]}\n",
            1,
            1,
            "neither text nor a number",
        ),
        ("a.jsonl", "{\"a\": 1}\n{\"a\": }\n", 2, 7, "expected value"),
    ] {
        let wrong = Rows::read(Path::new(name), text).unwrap_err();
        assert!(wrong.why.contains(why), "{text}\n{wrong:?}");
        assert_eq!(
            (wrong.line, wrong.column),
            (line, column),
            "{text}\n{wrong:?}"
        );
    }
    let rows = Rows::read(
        Path::new("a.jsonl"),
        "{\"a\": 1, \"b\": \"x\"}\n\n{\"b\": true, \"a\": 2}\n",
    );
    let rows = rows.unwrap();
    assert_eq!(rows.columns, ["a", "b"]);
    assert_eq!(rows.values()[1], [(*b"2").into(), (*b"true").into()]);
}

#[test]
fn a_recording_becomes_steps_of_its_first_server() {
    let text = r#"{"log": {"entries": [
        {"startedDateTime": "2026-01-01T00:00:00.000Z", "time": 100,
         "request": {"method": "GET", "url": "http://h:1/?a=b#c", "headers": [
            {"name": "Host", "value": "h:1"}, {"name": ":path", "value": "/"}, {"name": "X", "value": "y"}]}},
        {"startedDateTime": "2026-01-01T00:00:01.000Z", "time": 5,
         "request": {"method": "GET", "url": "http://cdn/x.js", "headers": []}},
        {"startedDateTime": "2026-01-01T00:00:02.000Z", "time": 5,
         "request": {"method": "POST", "url": "http://h:1/login", "headers": [],
            "postData": {"mimeType": "text/plain", "text": "a{{b}}"}}}]}}"#;
    let found = read_as(Format::Har, text, None).unwrap();
    assert_eq!(found.origin.as_deref(), Some("http://h:1"));
    let [first, login] = &found.flow.steps[..] else {
        panic!("{:?}", found.flow);
    };
    assert_eq!(shown(&first.path), "/?a=b");
    assert_eq!(first.headers[0].0, "X");
    assert_eq!(
        (&*login.name, login.delay),
        ("login", Duration::from_millis(1900))
    );
    assert_eq!(shown(login.body.as_ref().unwrap()), "a{{b}}");
    for (text, why) in [("{}", "missing field `log`"), ("[", "EOF")] {
        let wrong = read_as(Format::Har, text, None).err().unwrap();
        assert!(wrong.why.contains(why), "{wrong:?}");
    }
}

proptest! {
    /// Whatever is cut, doubled or put into a file, it is read or refused with a place in it.
    #[test]
    fn no_file_breaks_a_reader(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..40, 0_u8..4, any::<prop::sample::Index>()), 1..6),
    ) {
        const PIECES: [&str; 24] = [
            "{{", "}}", "{", "}", "\"", "`", "```", "\\", "\\u{", "#", "[", "]", "/", "\n", "HTTP", "ä", "€", ":", "GET ", "file,",
            "[Asserts]\n", "jsonpath \"$", "regex /", "not ",
        ];
        for original in [LOGIN, "name,age\n\"a\",1\nb,2\n", "{\"a\": 1}\n{\"a\": \"ä\"}\n"] {
            let mut letters: Vec<char> = original.chars().collect();
            for (at, count, kind, piece) in &changes {
                let at = at.index(letters.len() + 1);
                let end = (at + count).min(letters.len());
                match kind {
                    0 => drop(letters.drain(at..end)),
                    1 => {
                        let copy = letters[at..end].to_vec();
                        letters.splice(at..at, copy);
                    }
                    _ => drop(letters.splice(at..at, piece.get(&PIECES).chars())),
                }
            }
            let text: String = letters.into_iter().collect();
            let rows = Rows::read(Path::new("a.csv"), "name,age\nann,30\n").unwrap();
            let lines = text.lines().count().max(1);
            for wrong in [
                read_as(Format::Hurl, &text, Some(&rows)).err(),
                Rows::read(Path::new("a.csv"), &text).err(),
                Rows::read(Path::new("a.jsonl"), &text).err(),
            ]
            .into_iter()
            .flatten()
            {
                prop_assert!(wrong.line >= 1 && wrong.line <= lines + 1, "{wrong:?} of {lines}\n{text}");
                prop_assert!(wrong.column >= 1);
            }
        }
    }
}
