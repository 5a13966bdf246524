//! From a run to its trials, to one of them, to its clients; and a server over runs.

use std::fs;

use super::{View, record, throng, word, write};

const CLIENTS: &str = "client,worker,source,connected_at_us,connect_us,first_reply_us,requests,replies,window_replies,\
                       bytes_sent,bytes_received,error\n";

const SAMPLES: &str = "at_s,side,metric,value\n";

#[test]
fn a_run_leads_to_its_trials_and_these_to_their_clients() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("2026/run");
    let (run, mut trials) = record(0, "2026-01-01T00:00:00Z");
    trials[2].findings.clear();
    write(&place, &(run.clone(), trials.clone()));
    let trial = &trials[2];
    let rows = "0,0,127.0.0.1:1,50,5,70,9,9,8,9,9,\n1,0,127.0.0.1:2,,,,0,0,0,0,0,<refused>\n";
    let clients = place.join(format!("clients/{}.csv", trial.file_stem()));
    fs::write(&clients, format!("{CLIENTS}{rows}")).expect("there is room");
    let samples = place.join(format!("samples/{}.csv", trial.file_stem()));
    let cpu = "at_s,side,metric,value\n0.1,server,cpu_percent,40\n0.2,server,cpu_percent,50\n";
    fs::write(&samples, cpu).expect("there is room");
    let view = View::start(directory.path());
    let page = view.get("/run/2026/run/");
    let of = format!(
        "trials?server={}&amp;clients={}",
        trial.server, trial.clients
    );
    page.assert_contains(200, &["Servers and loads", &of, "Full report"]);
    let index = trial.index;
    let to = format!("/run/2026/run/trial?index={index}");
    view.get(&format!("/run/2026/run/{}", of.replace("&amp;", "&")))
        .assert_contains(200, &[&to.replace('&', "&amp;"), &trial.server]);
    let whole = view.get("/run/2026/run/trials?server=nobody");
    whole.assert_contains(200, &["0 trials of nobody"]);
    let page = view.get(&format!("{to}&order=slowest"));
    page.assert_contains(200, &["clients served"]);
    for assert_contains in [
        "&lt;refused&gt;",
        "70.0 µs",
        "Replies per client",
        "CPU; 100 %",
        "Its samples",
    ] {
        assert!(
            page.body.contains(assert_contains),
            "no {assert_contains} in {}",
            page.body
        );
    }
    let at = |text: &str| page.body.find(text).expect("it is there");
    assert!(at("&lt;refused&gt;") < at("70.0 µs"), "errors first");
    let json = view.json(&to.replace("trial?", "trial.json?"));
    assert_eq!(
        json,
        serde_json::to_value(trial).expect("it can be written")
    );
    for (file, text) in [
        ("clients.csv", format!("{CLIENTS}{rows}")),
        ("samples.csv", cpu.to_owned()),
    ] {
        let answer = view.get(&to.replace("trial?", &format!("{file}?")));
        assert_eq!((answer.status, answer.body), (200, text), "{file}");
    }
    assert_eq!(
        view.json("/run/2026/run/run.json")["study"]["name"],
        run.study.name
    );
    let raw = view.get("/run/2026/run/trials.jsonl").body;
    assert_eq!(raw.lines().count(), trials.len());
    // Missing and unreadable pages have a status.
    for (path, status) in [
        ("trial?index=999", 404),
        ("trial?index=x", 404),
        ("trial", 404),
        ("clients.csv?index=0", 404),
        ("summary.json", 404),
        ("trials.jsonl.gz", 404),
        ("samples", 404),
    ] {
        assert_eq!(
            view.get(&format!("/run/2026/run/{path}")).status,
            status,
            "{path}"
        );
    }
}

#[test]
fn damaged_files_of_a_trial_are_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("run");
    let (run, trials) = record(0, "2026-01-01T00:00:00Z");
    write(&place, &(run, trials.clone()));
    let view = View::start(directory.path());
    let file = trials[2].file_stem() + ".csv";
    for (part, text, why) in [
        ("clients", format!("{CLIENTS}x\n"), "is not a number"),
        (
            "samples",
            format!("{SAMPLES}1,server,x,NaN\n"),
            "line 2, column value",
        ),
        ("samples", format!("{SAMPLES}1,server\n"), "line 2: "),
    ] {
        fs::write(place.join(part).join(&file), text).expect("there is room");
        let page = view.get(&format!("/run/run/trial?index={}", trials[2].index));
        page.assert_contains(200, &[why]);
    }
}

#[test]
fn a_list_matches_summaries_and_a_server_has_a_history() {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, time) in [("a", "2026-01-01T00:00:00Z"), ("b", "2026-01-02T00:00:00Z")] {
        let place = directory.path().join(name);
        write(&place, &record(0, time));
        let finished = throng(&["report", word(&place)]);
        assert_eq!(finished.code, 0, "{finished:?}");
    }
    let view = View::start(directory.path());
    let page = view.get("/");
    page.assert_contains(200, &["2000 clients"]);
    assert!(!page.body.contains("Reading its trials"), "{}", page.body);
    assert!(page.body.contains("With 2,000 clients, "), "{}", page.body);
    let summary = view.json("/run/a/summary.json");
    let server = summary["glance"]["occasions"][0]["courses"][0]["server"].clone();
    let server = server.as_str().expect("somebody served all");
    view.get("/history")
        .assert_contains(200, &["Server history", server]);
    let history = view.get(&format!("/history?server={server}"));
    history.assert_contains(200, &[server, "2 runs"]);
    // Too few rounds for an interval: no change is marked, whatever the values are.
    for assert_contains in [
        "too few trials",
        "compared with run 1",
        "Nothing to compare yet",
    ] {
        assert!(
            history.body.contains(assert_contains),
            "no {assert_contains} in {}",
            history.body
        );
    }
    assert_eq!(view.get("/history?server=nobody").status, 404);
    // Both are the same run again.
    let diff = view.get("/compare?run=a&run=b").body;
    assert!(diff.contains("A/A"), "{diff}");
}
