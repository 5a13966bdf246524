//! `throng view` serves only this user, and only runs.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::throng;
use super::{View, archive, record, word, write};

/// A secret outside the directory; no page contains it otherwise.
const SECRET: &str = "what lies outside of it";

#[test]
fn only_this_machine_is_listened_to() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = word(directory.path());
    for address in ["0.0.0.0:0", "192.0.2.1:80", "[::]:0"] {
        throng(&["view", here, "--listen", address]).is_usage_error(&[
            "loopback",
            "not encrypted",
            "ssh -L",
        ]);
    }
    let view = View::start(directory.path());
    assert!(view.address.ip().is_loopback() && view.address.port() > 0);
    write(
        &directory.path().join("run"),
        &record(0, "2026-01-01T00:00:00Z"),
    );
    let run = directory.path().join("run");
    throng(&["view", word(&run)]).is_usage_error(&["is a record; write the directory"]);
}

#[test]
fn only_reads_of_this_host_are_answered() {
    let directory = tempfile::tempdir().expect("a directory");
    write(
        &directory.path().join("run"),
        &record(0, "2026-01-01T00:00:00Z"),
    );
    let view = View::start(directory.path());
    let port = view.address.port();
    let ask = |line: &str, hosts: &[&str]| {
        let hosts: String = hosts
            .iter()
            .map(|host| format!("Host: {host}\r\n"))
            .collect();
        view.answer(&format!("{line}\r\n{hosts}Connection: close\r\n\r\n"))
    };
    let ours = format!("localhost:{port}");
    assert_eq!(ask("GET / HTTP/1.1", &[&ours]).status, 200);
    let evil = format!("evil.example:{port}");
    for hosts in [
        &[evil.as_str()][..],
        &["evil.example"],
        &["localhost"],
        &["127.0.0.1:1"],
        &[""],
        &[],
        &[&ours, &evil],
    ] {
        let answer = ask("GET /runs.json HTTP/1.1", hosts);
        assert!([400, 421].contains(&answer.status), "{hosts:?}: {answer:?}");
        assert!(!answer.body.contains("fairness"), "{hosts:?}: {answer:?}");
    }
    assert_eq!(ask("GET / HTTP/1.0", &[]).status, 421);
    assert_eq!(
        ask(&format!("GET http://{evil}/ HTTP/1.1"), &[&ours]).status,
        421
    );
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
        for path in ["/", "/run/run/report.html", "/nowhere"] {
            let answer = view.ask(method, path);
            assert_eq!(answer.status, 405, "{method} {path}");
            assert!(answer.head.contains("allow: get, head"), "{}", answer.head);
        }
    }
    let head = view.ask("HEAD", "/");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    for path in ["/", "/runs.json", "/nowhere", "/compare", "/page.js"] {
        let answer = view.get(path);
        for header in [
            "x-content-type-options: nosniff",
            "content-security-policy: default-src 'none'; script-src 'self'",
            "frame-ancestors 'none'",
            "cross-origin-resource-policy: same-origin",
            "referrer-policy: no-referrer",
        ] {
            assert!(
                answer.head.contains(header),
                "{path}: no {header} in {}",
                answer.head
            );
        }
        assert!(!answer.head.contains("access-control"), "{}", answer.head);
    }
}

#[test]
fn other_users_of_this_machine_read_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    write(
        &directory.path().join("run"),
        &record(0, "2026-01-01T00:00:00Z"),
    );
    let [view, other] = [0, 1].map(|_| View::start(directory.path()));
    assert_ne!(view.token, other.token);
    let (host, port) = (view.address, view.address.port());
    let ask = |path: &str, header: &str| {
        view.answer_to_anyone(&format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\n{header}Connection: close\r\n\r\n"
        ))
    };
    let of_other = format!("Cookie: throng-{port}={}\r\n", other.token);
    for path in ["/", "/runs.json", "/run/run/report.html", "/nowhere"] {
        for (query, header) in [
            ("", ""),
            ("?token=", ""),
            (&format!("?token={}", other.token), ""),
            ("", of_other.as_str()),
        ] {
            let answer = ask(&format!("{path}{query}"), header);
            answer.assert_contains(403, &["the whole URL"]);
            assert!(!answer.head.contains("set-cookie"), "{}", answer.head);
        }
    }
    let opened = ask(&format!("/?token={}", view.token), "");
    opened.assert_contains(200, &["1 run"]);
    let cookie = format!("set-cookie: throng-{port}={}; path=/; httponly", view.token);
    assert!(opened.head.contains(&cookie), "{}", opened.head);
    assert_eq!(view.get("/runs.json").status, 200);
}

#[test]
fn a_report_is_in_a_box_of_its_own() {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, time) in [("a", "2026-01-01T00:00:00Z"), ("b", "2026-01-02T00:00:00Z")] {
        write(&directory.path().join(name), &record(0, time));
    }
    let view = View::start(directory.path());
    for path in ["/run/a/report.html", "/compare?run=a&run=b"] {
        let answer = view.get(path);
        answer.assert_contains(200, &["The answer"]);
        let policy: Vec<&str> = answer
            .head
            .lines()
            .filter(|line| line.starts_with("content-security-policy"))
            .collect();
        assert_eq!(policy.len(), 1, "{policy:?}");
        assert!(
            policy[0].contains("default-src 'none'") && policy[0].contains("sandbox allow-scripts"),
            "{policy:?}"
        );
        assert!(!policy[0].contains("allow-same-origin"), "{policy:?}");
    }
}

#[test]
fn no_address_leaves_the_directory() {
    let whole = tempfile::tempdir().expect("a directory");
    let (outside, inside) = (whole.path().join("outside"), whole.path().join("inside"));
    let mut secret = record(0, "2026-01-01T00:00:00Z");
    secret.0.study.question = SECRET.to_owned();
    write(&outside, &secret);
    fs::write(outside.join("report.html"), SECRET).expect("there is room");
    fs::create_dir(&inside).expect("there is room");
    write(&inside.join("run"), &record(0, "2026-01-01T00:00:00Z"));
    let trial = &secret.1[0];
    for part in ["samples", "clients"] {
        let file = outside.join(part).join(trial.file_stem() + ".csv");
        fs::write(file, SECRET).expect("there is room");
        fs::remove_dir_all(inside.join("run").join(part)).expect("it is there");
    }
    let link = |to: &Path, from: &str| {
        std::os::unix::fs::symlink(to, inside.join(from)).expect("links can be made");
    };
    link(&outside, "link");
    link(&outside, "run/part");
    link(&outside.join("samples"), "run/samples");
    link(&outside.join("clients"), "run/clients");
    link(&outside.join("report.html"), "run/report.html");
    let view = View::start(&inside);
    let long = "x".repeat(300);
    let longer = "y".repeat(100_000);
    for name in [
        "..",
        "%2e%2e",
        "../outside",
        "..%2Foutside",
        "%2e%2e%2foutside",
        "link",
        ".",
        "%00",
        "run%00",
        "%2Fetc",
        "%ff",
        &long,
        &longer,
    ] {
        for path in [
            format!("/run/{name}/"),
            format!("/run/{name}/progress.json"),
            format!("/run/{name}/report.html"),
            format!("/run/run/{name}/report.html"),
            format!("/compare?run=run&run={name}"),
            format!("/{name}/report.html"),
        ] {
            let answer = view.get(&path);
            let refused = [400, 404, 414, 431].contains(&answer.status);
            let cut_off = answer.status == 0 && path.len() > longer.len();
            assert!(
                refused || cut_off,
                "{}: {answer:?}",
                &path[..path.len().min(80)]
            );
            assert!(!answer.body.contains(SECRET), "{answer:?}");
        }
    }
    let part = view.get("/run/run/part/report.html");
    assert_eq!(part.status, 404, "{part:?}");
    for page in ["trial", "samples.csv", "clients.csv"] {
        let answer = view.get(&format!("/run/run/{page}?index={}", trial.index));
        assert!(!answer.body.contains(SECRET), "{answer:?}");
        assert!(answer.body.contains("out of the record"), "{answer:?}");
    }
    let report = view.get("/run/run/report.html");
    assert!(!report.body.contains(SECRET), "a link is not followed");
    assert_eq!(
        view.json("/runs.json")["runs"]
            .as_array()
            .expect("a list")
            .len(),
        1
    );
}

/// A directory in a directory.
fn within(directory: &Path, name: &str) -> PathBuf {
    let path = directory.join(name);
    fs::create_dir_all(&path).expect("there is room");
    path
}

/// Unreadable records, by name with a word of the reason.
fn write_broken(directory: &Path) -> Vec<(&'static str, &'static str)> {
    let deep = "[".repeat(100_000);
    let texts: [(&str, &str, &[u8], &str); 7] = [
        ("no json", "run.json", b"{\n \"a\"", "line 2, column"),
        ("deep", "run.json", deep.as_bytes(), "line 1, column"),
        ("no text", "run.json", b"\xff\xfe", "not UTF-8"),
        (
            "newer",
            "run.json",
            b"{\"schema_version\": 99}",
            "version 99",
        ),
        ("empty", "run.json", b"", "line 1"),
        ("bad study", "study.json", b"[]", "line 1"),
        (
            "evil",
            "run.json",
            b"{\"<script>alert(1)</script>\": 1}",
            "unknown field",
        ),
    ];
    let mut broken = Vec::new();
    for (name, file, text, why) in texts {
        fs::write(within(directory, name).join(file), text).expect("there is room");
        broken.push((name, why));
    }
    fs::create_dir(within(directory, "directory").join("run.json")).expect("there is room");
    let large = within(directory, "large").join("run.json");
    let large = fs::File::create(large).expect("there is room");
    large.set_len(10 << 30).expect("it takes no room");
    let pipe = within(directory, "pipe").join("run.json");
    rustix::fs::mkfifoat(rustix::fs::CWD, pipe, rustix::fs::Mode::RWXU).expect("pipes can be made");
    broken.extend([
        ("directory", "not a regular file"),
        ("large", "bytes"),
        ("pipe", "not a regular file"),
    ]);
    broken
}

#[test]
fn broken_records_are_shown_and_the_server_stays_up() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    write(&here.join("good"), &record(0, "2026-01-01T00:00:00Z"));
    write(&here.join("bad trials"), &record(0, "2026-01-01T00:00:00Z"));
    fs::write(here.join("bad trials/trials.jsonl"), "no trial\n").expect("there is room");
    write(
        &here.join("good archive"),
        &record(0, "2026-01-01T00:00:00Z"),
    );
    let broken = write_broken(here);
    let view = View::start(here);
    let run = |name: &str| {
        let list = view.json("/runs.json");
        let mut runs = list["runs"].as_array().expect("a list").iter();
        let found = runs.find(|run| run["name"] == name);
        found.expect("it is listed").clone()
    };
    for (name, why) in broken {
        let run = run(name);
        assert_eq!(run["state"], "broken", "{run}");
        let problem = run["problem"].as_str().unwrap_or_default();
        assert!(problem.contains(why), "{run}");
        let path = name.replace(' ', "%20");
        for (page, status) in [
            (format!("/run/{path}/"), 200),
            (format!("/run/{path}/report.html"), 422),
            (format!("/compare?run=good&run={path}"), 422),
        ] {
            assert_eq!(view.get(&page).status, status, "{page}");
        }
    }
    let page = view.get("/");
    page.assert_contains(200, &["broken", "&lt;script&gt;"]);
    assert!(!page.body.contains("<script>alert"), "{}", page.body);
    let trials = view.get("/run/bad%20trials/report.html");
    trials.assert_contains(422, &["trials.jsonl, line 1, column"]);
    let archived = here.join("good archive/trials.jsonl.gz");
    archive(&here.join("good archive"));
    let page = "/run/good%20archive/report.html";
    view.get(page).assert_contains(200, &["The answer"]);
    let whole = fs::read(&archived).expect("it is there");
    fs::write(&archived, &whole[..whole.len() / 2]).expect("there is room");
    view.get(page)
        .assert_contains(422, &["trials.jsonl.gz", "the gzip file is truncated"]);
    let progress = view.get("/run/bad%20trials/");
    progress.assert_contains(200, &["trials.jsonl, line 1, column"]);
    view.get("/run/good/report.html")
        .assert_contains(200, &["The answer"]);
    // One that is mended is a run again.
    fs::copy(here.join("good/run.json"), here.join("no json/run.json")).expect("there is room");
    assert_eq!(run("no json")["state"], "finished");
}
