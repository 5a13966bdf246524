//! Servers that are equal, and servers that are not.

use super::{Ran, compare, python, record_in, server};
use crate::support::program::{THRONG, words};

const NGINX: &str = "
daemon off;
user root;
worker_processes 1;
pid DIRECTORY/nginx.pid;
error_log stderr warn;
events {}
http {
  access_log off;
  client_body_temp_path DIRECTORY/temporary;
  server { listen 127.0.0.1:PORT; location / { return 200 'hello'; } }
}
";

#[test]
fn a_slower_server_is_slower() {
    // It serves at most 400 requests per second, and the other thousands, on any machine.
    let Some(python) = python("slow") else {
        return;
    };
    let measured = || {
        compare(&words(
            "{} epoll -n snake -r 8 --retries 3 -d 150ms --reference epoll --fail-if-slower 5% \
             --fail-if {} --control none",
            &[&python, "epoll: errors > 0"],
        ))
    };
    // While other tests take the CPUs, a run of two seconds may not tell even such servers apart, and says so then.
    let told = (0..4).map(|_| measured()).find(|ran| {
        let right = [
            ("requests_per_s", "slower"),
            ("server_cpu_us_per_request", "costlier"),
        ]
        .map(|(measure, right)| {
            let verdict = ran.verdict("snake", measure);
            let open = ["inconclusive", "not comparable"].contains(&verdict.as_str());
            assert!(
                open || verdict == right,
                "{measure}: {verdict}\n{}",
                ran.out
            );
            verdict == right
        });
        right == [true; 2] && ran.code == 3
    });
    let Some(ran) = told else {
        return;
    };
    let printed = ["CPU per request", "missed snake with 8 clients"];
    for printed in printed {
        assert!(
            ran.out.replace('\n', " ").contains(printed),
            "{printed}: {}",
            ran.out
        );
    }
    assert!(ran.out.contains("met epoll with 8 clients"), "{}", ran.out);
    let page = std::fs::read_to_string(ran.record().join("report.html")).unwrap();
    assert!(page.contains("CPU per request") && page.contains("Thresholds"));
}

#[test]
fn two_of_the_same_are_equal() {
    let ran = compare(&["epoll", "epoll", "-r", "6", "-d", "80ms", "--json"]);
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    // Differences are possible by chance or by a neighbour, of the control too. So their absence is not asserted.
    let summary = ran.summary();
    let pair = &summary["comparison"]["pairs"][0];
    assert_eq!(pair["server"], "epoll (2)");
    let measures = pair["measures"].as_array().expect("measures");
    let alike = measures.iter().filter(|m| {
        ["equivalent", "inconclusive", "not-comparable"]
            .iter()
            .any(|&verdict| m["verdict"] == verdict)
    });
    assert!(alike.count() > 0, "{pair:#}");
    let printed: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON is printed");
    assert_eq!(printed["comparison"], summary["comparison"]);
    assert!(summary["grade"]["level"].is_string(), "{summary:#}");
}

#[test]
fn web_servers_of_all_kinds_take_part() {
    let directory = tempfile::tempdir().unwrap();
    let configuration = directory.path().join("nginx.conf");
    let template = NGINX.replace("DIRECTORY", &directory.path().display().to_string());
    std::fs::write(directory.path().join("template"), template).unwrap();
    let mut servers = vec!["epoll".to_owned()];
    servers.extend(python(""));
    servers.extend(server("node", "server.js", ""));
    if server("nginx", "", "").is_some() || std::path::Path::new("/usr/sbin/nginx").exists() {
        servers.push(format!("nginx -c {}", configuration.display()));
    }
    let prepare = format!(
        "sed s/PORT/$PORT/ {0}/template > {0}/nginx.conf",
        directory.path().display()
    );
    let mut arguments: Vec<&str> = servers.iter().map(String::as_str).collect();
    arguments.extend(["--shell", "--prepare", &prepare, "-r", "1", "-d", "100ms"]);
    arguments.extend([
        "--fail-if",
        "failed_trials > 0",
        "--fail-if",
        "clients_never_served > 0",
    ]);
    let ran = compare(&arguments);
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    for trial in ran.trials() {
        assert_eq!(trial.failure, None, "{}", trial.server);
        let side = trial.server_side.expect("it was measured");
        // How much it was is the machine's doing: a server that was not let run in the window used none.
        assert!(side.metrics.contains_key("cpu_ms"), "{}", trial.server);
    }
}

#[test]
fn an_open_loop_has_response_times_and_no_verdict_on_the_rate_it_set() {
    let ran = compare(&words(
        "epoll thread --rate 1000 -r 2 -d 300ms --control none",
        &[],
    ));
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    let verdict = ran.verdict("thread", "response_p50_us");
    assert_ne!(verdict, "not comparable", "{}", ran.out);
    let kept_up = ran.trials().iter().all(|trial| {
        let load = trial.load.as_ref().expect("it was loaded");
        let due = load.open_loop.as_ref().expect("an open loop").due;
        load.window.replies as f64 > 0.995 * due as f64
    });
    if kept_up {
        assert_eq!(
            ran.verdict("thread", "requests_per_s"),
            "not comparable",
            "{}",
            ran.out
        );
    }
}

/// Runs it again from the first trial on.
fn resumed(ran: &Ran) -> std::process::Output {
    let path = ran.record().join("trials.jsonl");
    let text = std::fs::read_to_string(&path).expect("a record");
    let first = text.lines().next().expect("a trial").to_owned() + "\n";
    std::fs::write(&path, first).expect("it can be written");
    let mut command = assert_cmd::Command::new(THRONG);
    command
        .args(["compare", "--allow-rough", "--resume"])
        .arg(record_in(&ran.directory));
    command.output().expect("it can be started")
}

#[test]
fn any_dialogue_is_compared_and_resumed() {
    let Some(python) = python("") else {
        return;
    };
    let ran = compare(&words(
        "{} {} -r 2 -d 100ms --control none --send {} --expect {}",
        &[
            &python,
            &python,
            r"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            "regex:\\r\\n\\r\\nx{1000}",
        ],
    ));
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    let before = ran.trials();
    assert!(
        before.iter().all(|trial| trial.failure.is_none()),
        "{before:#?}"
    );
    let page = std::fs::read_to_string(ran.record().join("report.html")).unwrap();
    assert!(page.contains("answered by regex:"), "the rule is shown");
    let output = resumed(&ran);
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    let after = ran.trials();
    assert_eq!(after.len(), before.len());
    assert_eq!(after[0], before[0], "what was finished is not done again");
    assert!(
        after.iter().all(|trial| trial.failure.is_none()),
        "{after:#?}"
    );
}

/// Regression test: `--pipeline 1`, written out, had a server prove that it takes several requests at once.
#[test]
fn a_server_of_one_request_at_a_time_is_asked_for_no_more() {
    let Some(server) = server("python3", "one_at_a_time.py", "") else {
        return;
    };
    let with = |pipeline: &str| {
        compare(&words(
            "{} --protocol echo --pipeline {} --fail-if {} -r 1 -d 300ms --control none",
            &[&server, pipeline, "errors > 0"],
        ))
    };
    let one = with("1");
    assert_eq!(one.code, 0, "{} {}", one.out, one.err);
    let two = with("2");
    assert_eq!(two.code, 1, "{} {}", two.out, two.err);
    let why = "several requests at once";
    assert!(two.err.contains(why), "{}", two.err);
}
