use std::time::Duration;

use super::super::super::{Dialogue, ReplyCounts, Requesters, Settings};
use super::super::Http;
use super::super::feed::Initial;
use super::*;

fn text(text: &str) -> Vec<Part> {
    vec![Part::Text(text.as_bytes().to_vec())]
}

fn step(name: &str, method: &str, path: Vec<Part>) -> Step {
    Step {
        name: name.to_owned(),
        request: HttpRequest::new(Some(method), "/", &[], None).unwrap(),
        path,
        headers: Vec::new(),
        cookies: Vec::new(),
        body: None,
        expected: None,
        delay: Duration::ZERO,
        limit: None,
        captures: Vec::new(),
        asserts: Vec::new(),
    }
}

fn json_path(path: &str) -> Query {
    Query::JsonPath(Box::new(serde_json_path::JsonPath::parse(path).unwrap()))
}

/// Clients that log in with a row's name, and use the token that they were given.
fn login() -> Flow {
    let mut login = step("login", "POST", text("/login"));
    login.body = Some(vec![
        Part::Text(b"{\"name\": \"".to_vec()),
        Part::Variable(0, Encoding::Json),
        Part::Text(b"\"}".to_vec()),
    ]);
    login.captures.push(Capture {
        variable: 1,
        name: "token".to_owned(),
        query: json_path("$.token"),
        failure: "login: no token",
    });
    let mut path = text("/me?t=");
    path.push(Part::Variable(1, Encoding::Path));
    let mut me = step("me", "GET", path);
    me.asserts.push(Assert {
        query: json_path("$.name"),
        predicate: Predicate::EqualsText(vec![Part::Variable(0, Encoding::Plain)]),
        is_negated: false,
        failure: "me: another name",
    });
    Flow {
        steps: vec![login, me],
        feed: Feed {
            variables: vec![Initial::Column(0), Initial::Captured],
            rows: ["a \"b\"", "c#d"]
                .map(|name| vec![name.as_bytes().into()])
                .into(),
            is_random: false,
        },
    }
}

fn clients(flow: Flow, clients: u64) -> Box<dyn Requesters> {
    let flow: &'static Flow = Box::leak(Box::new(flow));
    let settings = Settings {
        flow: Some(flow),
        feed: Some(&flow.feed),
        clients,
        ..Settings::default()
    };
    Http.requesters(&settings, &mut (0..clients))
}

fn sent(requesters: &mut dyn Requesters, client: usize) -> String {
    requesters.begin(client);
    let bytes = requesters.generated(client).to_vec();
    requesters.advance(client, bytes.len());
    String::from_utf8(bytes).unwrap()
}

fn reply(head: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {head}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[test]
fn each_client_uses_what_it_was_given() {
    let mut all = clients(login(), 3);
    for round in 0..3 {
        let mut tokens = Vec::new();
        for client in 0..3 {
            let request = sent(&mut *all, client);
            // Rows in turn: client 2 of 3 begins with the first of two rows again.
            let name = ["a \\\"b\\\"", "c#d"][(client + 3 * round) % 2];
            assert!(
                request.ends_with(&format!("\r\n\r\n{{\"name\": \"{name}\"}}")),
                "{request}"
            );
            assert!(
                !request.contains("Cookie"),
                "each session begins without: {request}"
            );
            tokens.push(format!("t {client}/{round}"));
        }
        for client in (0..3).rev() {
            let head = format!("200 OK\r\nSet-Cookie: sid={client}{round}\r\n");
            let body = format!("{{\"token\": \"{}\"}}", tokens[client]);
            let found = all.receive(client, &reply(&head, &body)).unwrap();
            assert_eq!(found.completed, 1);
            let done = all.step_done(client);
            assert_eq!(
                (done.step, done.has_failed, done.is_last),
                (0, false, false)
            );
        }
        for client in 0..3 {
            let request = sent(&mut *all, client);
            let token = tokens[client].replace(' ', "%20");
            assert!(
                request.starts_with(&format!("GET /me?t={token} HTTP/1.1\r\n")),
                "{request}"
            );
            assert!(
                request.contains(&format!("Cookie: sid={client}{round}\r\n")),
                "{request}"
            );
            let name = ["a \\\"b\\\"", "c#d"][(client + 3 * round) % 2];
            all.receive(
                client,
                &reply("200 OK\r\n", &format!("{{\"name\": \"{name}\"}}")),
            )
            .unwrap();
            assert_eq!(
                all.step_done(client),
                StepDone {
                    step: 1,
                    has_failed: false,
                    is_last: true
                }
            );
        }
    }
    let mut counts = ReplyCounts::default();
    all.counts(&mut counts);
    assert!(counts.failed.is_empty());
}

#[test]
fn a_step_that_fails_ends_its_session() {
    let mut one = clients(login(), 1);
    let long = format!("{{\"token\": \"{}\"}}", "x".repeat(MOST_CAPTURED + 1));
    let endless = "x".repeat(MOST_BODY + 1);
    let cases = [
        ("404 Not Found\r\n", "{\"token\": \"t\"}"),
        ("200 OK\r\n", "{\"tokens\": 1}"),
        ("200 OK\r\n", "no json"),
        ("200 OK\r\n", &*long),
        ("200 OK\r\n", &*endless),
    ];
    for (head, body) in cases {
        assert!(sent(&mut *one, 0).starts_with("POST /login"));
        one.receive(0, &reply(head, body)).unwrap();
        let done = one.step_done(0);
        assert!(
            done.has_failed && done.is_last,
            "{head}{}",
            &body[..10.min(body.len())]
        );
    }
    // The connection ends within a step.
    sent(&mut *one, 0);
    one.receive(0, &reply("200 OK\r\n", "{\"token\": \"t\"}"))
        .unwrap();
    assert!(sent(&mut *one, 0).starts_with("GET /me"));
    one.drop_requests(0);
    assert!(sent(&mut *one, 0).starts_with("POST /login"));
    let mut counts = ReplyCounts::default();
    one.counts(&mut counts);
    let expected = [
        ("login: no token", 2),
        (session::TOO_MUCH, 1),
        (session::TOO_LONG, 1),
    ];
    assert_eq!(counts.failed, expected.into());
    assert_eq!(counts.unexpected, [(404, 1)].into());
}

#[test]
fn predicates_as_written() {
    use std::cmp::Ordering::{Equal, Less};
    let head = b"HTTP/1.1 201 Created\r\nLocation: /items/7\r\nSet-Cookie: a=b; Path=/\r\n\r\n";
    let body = br#"{"n": 7, "list": [1, 2], "none": null, "text": "abc", "ok": true}"#;
    let seen = query::Seen::new(201, head, body);
    let json = |value: serde_json::Value| Predicate::Equals(Value::Json(value));
    let cases: Vec<(Query, Predicate, bool)> = vec![
        (Query::Status, json(201.into()), true),
        (
            Query::Status,
            Predicate::Compares(&[Less, Equal], 201.0),
            true,
        ),
        (Query::Status, Predicate::Compares(&[Less], 201.0), false),
        (
            Query::Header("location".into()),
            Predicate::StartsWith(text("/items")),
            true,
        ),
        (Query::Header("nothing".into()), Predicate::Exists, false),
        (
            Query::Cookie("a".into()),
            Predicate::EqualsText(text("b")),
            true,
        ),
        (Query::Body, Predicate::Contains(text("\"n\": 7")), true),
        (json_path("$.n"), json(7.into()), true),
        (json_path("$.n"), json(7.0.into()), true),
        (json_path("$.n"), Predicate::EqualsText(text("7")), true),
        (json_path("$.list"), Predicate::Counts(2), true),
        (json_path("$.list[*]"), Predicate::Counts(2), true),
        (json_path("$.none"), json(serde_json::Value::Null), true),
        (json_path("$.none"), Predicate::Exists, true),
        (json_path("$.nothing"), Predicate::Exists, false),
        (json_path("$.ok"), json(true.into()), true),
        (json_path("$.text"), Predicate::EndsWith(text("c")), true),
        (json_path("$.text"), Predicate::IsEmpty, false),
        (
            json_path("$.text"),
            Predicate::Matches(Expression::new("^a.c$").unwrap()),
            true,
        ),
        (
            Query::Regex(Expression::new("\"n\": (\\d)").unwrap()),
            Predicate::EqualsText(text("7")),
            true,
        ),
    ];
    for (query, predicate, expected) in cases {
        let value = query.find(&seen);
        let holds = predicate.holds(value.as_ref(), &[]);
        assert_eq!(holds, expected, "{query:?} {predicate:?}: {value:?}");
    }
}

/// What one client was given is never sent by another, in whatever order thousands of them go on.
#[test]
fn nothing_is_mixed_between_clients() {
    const CLIENTS: usize = 10_000;
    let mut all = clients(login(), CLIENTS as u64);
    let mut random = 7_u64;
    // What each client was given last: its token and its cookie.
    let mut given: Vec<Option<u64>> = vec![None; CLIENTS];
    let mut number = 0_u64;
    for _ in 0..6 * CLIENTS {
        random = super::super::super::mix::scrambled(random);
        let client = (random % CLIENTS as u64) as usize;
        let request = sent(&mut *all, client);
        number += 1;
        let answer = match given[client].take() {
            None => {
                assert!(request.starts_with("POST /login"), "{request}");
                assert!(!request.contains("Cookie"), "{request}");
                given[client] = Some(number);
                let head = format!("200 OK\r\nSet-Cookie: sid=s{number}\r\n");
                reply(&head, &format!("{{\"token\": \"t{number}\"}}"))
            }
            Some(given) => {
                assert!(
                    request.starts_with(&format!("GET /me?t=t{given} ")),
                    "{request}"
                );
                assert!(
                    request.contains(&format!("Cookie: sid=s{given}\r\n")),
                    "{request}"
                );
                reply("200 OK\r\n", "{}")
            }
        };
        all.receive(client, &answer).unwrap();
    }
}
