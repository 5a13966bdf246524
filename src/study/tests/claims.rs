//! Tests with claims in study files, valid and invalid.

use super::*;

/// Keys of an expectation, the part of them that the error marks, and the error.
const WRONG: &str = r#"
metrc = "p99" | metrc | unknown key `metrc`; did you mean `metric`?
metric = "latency_p99_us" | { metric = "latency_p99_us" } | missing field `relation`
metric = "p98", relation = "flat" | "p98" | did you mean `p9
metric = "limit", relation = "flat" | "flat" | a single value
metric = "limit", relation = "alike" | "limit" | has no metric `limit`
metric = "limit", relation = "alike", clients = [5] | [5] | a single value
metric = "latency_p99_us", relation = "ended-by", causes = ["threads"] | "latency_p99_us" | needs the metric `limit`
metric = "latency_p99_us", relation = "ended-by" | "ended-by" | needs `causes`
metric = "latency_p99_us", relation = "flat", causes = ["threads"] | ["threads"] | need the relation `ended-by`
metric = "latency_p99_us", relation = "les" | "les" | expected one of `less`
metric = "latency_p99_us", relation = "less" | "less" | needs a `baseline`
metric = "latency_p99_us", relation = "highest" | "highest" | needs `servers`
metric = "latency_p99_us", relation = "grows" | "grows" | needs two numbers of clients
metric = "latency_p99_us", relation = "grows", baseline = 5 | 5 | has no baseline
metric = "latency_p99_us", relation = "alike", servers = ["epoll"] | ["epoll"] | nothing to be equal to
metric = "latency_p99_us", relation = "alike", margin = -1 | -1 | at least 0
metric = "latency_p99_us", relation = "less", baseline = "1s", margin = 5 | 5 | a margin is for
metric = "latency_p99_us", relation = "less", baseline = "1s", servers = ["epoll", "poll"] | "poll" | expected one of: epoll
metric = "latency_p99_us", relation = "less", baseline = "1s", parts = ["a", "b"] | "b" | unknown part `b`
metric = "latency_p99_us", relation = "less", baseline = "1s", clients = [5, 7] | 7 | has no 7 clients
metric = "latency_p99_us", relation = "less", baseline = "1s", clients = { min = 6 } | { min = 6 } | has none of these
metric = "latency_p99_us", relation = "less", baseline = "1s", clients = { mn = 6 } | { mn = 6 } | or bounds, like { min
metric = "latency_p99_us", relation = "less", baseline = "1MB" | "1MB" | `MB` is not a unit
metric = "latency_p99_us", relation = "less", baseline = 1 | 1 | needs a unit
metric = "latency_p99_us", relation = "less", baseline = true | true | `baseline` is a number
metric = "latency_p99_us", relation = "less", baseline = { sever = "a" } | { sever = "a" } | like { server =
metric = "latency_p99_us", relation = "less", baseline = { factor = 2 } | { factor = 2 } | the baseline is the value itself
metric = "latency_p99_us", relation = "less", baseline = { server = "poll" } | "poll" | expected one of: epoll
metric = "latency_p99_us", relation = "less", baseline = { part = "b" } | "b" | unknown part `b`
metric = "latency_p99_us", relation = "less", baseline = { clients = 7 } | 7 | has no 7 clients
metric = "latency_p99_us", relation = "less", baseline = { clients = 5, factor = 0 } | 0 | must be above 0
"#;

/// The part of the file that the error marks.
fn marked(shown: &str) -> &str {
    let [.., line, marks] = shown.lines().collect::<Vec<_>>()[..] else {
        panic!("{shown}")
    };
    &line[marks.find('^').unwrap()..marks.len()]
}

#[test]
fn wrong_claims_are_shown_with_their_place() {
    let mut wrong = Vec::new();
    for row in WRONG.trim().lines() {
        let [keys, place, why] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let shown = error(&claim(keys));
        if !shown.contains(why) || marked(&shown) != place {
            wrong.push(format!("{place}: {why}\n{shown}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    all_refused(&[
        (
            part("[[claim]]\ntext = \"t\"\nexpect = []\n"),
            "line 9, column 10",
            "at least one [[claim.expect]]",
        ),
        (
            part(&format!(
                "{}\n[claim.mechanism]\ntext = \"why\"\n",
                claimed(r#"metric = "latency_p99_us", relation = "less", baseline = "1s""#)
            )),
            "line 12, column 8",
            "a cause needs at least one [[claim.mechanism.expect]]",
        ),
        (
            part(&format!(
                "{}\n[claim.mechanism]\nmetrics = [\"p98\"]\n",
                claimed(r#"metric = "latency_p99_us", relation = "less", baseline = "1s""#)
            )),
            "line 12, column 12",
            "did you mean `p9",
        ),
        (
            part(&format!(
                "[[part]]\nname = \"b\"\nclients = [1]\n{}",
                claimed(r#"metric = "latency_p99_us", relation = "flat""#)
            )),
            "line 12, column 11",
            "choose some, like `parts = [\"a\"]`, of: a, b",
        ),
        (
            part(
                "[[claim]]\ntext = \"t\"\n[[claim.expect]]\nmetric = \"p99\"\nrelation = \"lowest\"\nservers = [\n\"poll\"]\n",
            ),
            "line 13, column 1",
            "the part `a` has no server `poll`",
        ),
    ]);
}

/// Any expectation is either parsed, or rejected with a position. A parsed one stays the same in a record.
#[test]
fn expectations_are_read_or_refused() {
    let values = [
        "\"epoll\"",
        "[\"epoll\"]",
        "[5]",
        "5",
        "-1.5",
        "inf",
        "nan",
        "{ min = 5 }",
        "{ server = \"epoll\" }",
        "{ clients = 5, factor = 2 }",
        "\"p99\"",
        "\"less\"",
        "\"alike\"",
        "\"limit\"",
        "[]",
        "{}",
        "true",
        "\"1 ms\"",
    ];
    let mut random = fastrand::Rng::with_seed(1);
    let mut read = 0;
    for _ in 0..20_000 {
        let keys = [
            "metric", "relation", "servers", "parts", "clients", "baseline", "margin",
        ];
        let mut written = Vec::new();
        for (place, key) in keys.iter().enumerate() {
            if place < 2 || random.bool() {
                let value = match (place, random.u8(0..4)) {
                    (0, 1..) => "\"p99\"",
                    (1, 1..) => random
                        .choice(["\"less\"", "\"alike\"", "\"highest\""])
                        .unwrap(),
                    _ => random.choice(values).unwrap(),
                };
                written.push(format!("{key} = {value}"));
            }
        }
        let text = format!("{HEAD}{}", claim(&written.join(", ")));
        match Study::parse(Path::new("x.toml"), &text) {
            Err(error) => {
                let reported = error.to_string();
                assert!(reported.contains("line 9, column "), "{text}\n{reported}");
            }
            Ok(study) => {
                read += 1;
                let json = serde_json::to_string(&study.claims).unwrap();
                let again: Vec<record::Claim> = serde_json::from_str(&json).unwrap();
                assert_eq!(again, study.claims, "{json}");
            }
        }
    }
    assert!(read > 100, "{read}");
}
