use proptest::prelude::*;

use super::*;

fn from_toml(text: &str) -> Result<LoadSpec, String> {
    let load: LoadSpec = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    load.checked().map_err(|error| error.to_string())
}

#[test]
fn loads_are_equal_by_what_they_say() {
    for (one, other) in [
        ("think = \"10ms\"", "think = \"10000us\""),
        ("pipeline = 1", ""),
        ("duration = \"10s\"", ""),
        ("duration = \"1m30s\"", "duration = \"90s\""),
        ("size = 1000", "size = \"1kB\""),
        ("size = \"5:2,6:4\"", "size = \"5,6:2\""),
        ("path = \"/\"", "path = [\"/:7\"]"),
        ("rate = 5", "rate = \"5..5\"\narrival = \"constant\""),
        ("clients = \"1k\"", "clients = 1000"),
        ("requests = 1e6", "requests = \"1M\""),
        ("rate = \"1.5k\"", "rate = 1500"),
        ("connect-rate = \"2k\"", "connect-rate = 2000"),
        ("each = 1", "requests-per-client = 1\nwarm-up = \"9s\""),
        (
            "protocol = \"factorial\"",
            "protocol = \"factorial\"\nsize = 9",
        ),
        (
            "send = \"\\\\x41\"\nexpect = \"close\"",
            "send = \"A\"\nexpect = \"close\"",
        ),
        ("source = [\"127.0.1.9/24\"]", "source = [\"127.0.1.0/24\"]"),
    ] {
        assert_eq!(from_toml(one).unwrap(), from_toml(other).unwrap(), "{one}");
    }
}

#[test]
fn invalid_settings_are_named_with_their_key() {
    for (text, why) in [
        ("pipeline = 0", "`pipeline` must be from 1 to 1024, not 0"),
        ("pipeline = 1025", "not 1025"),
        ("clients = 0", "`clients` must be from 1"),
        ("size = 0", "from 1B to"),
        ("size = true", "bytes in a request, like"),
        ("duration = \"0s\"", "`duration` must be longer than 0"),
        ("duration = 5", "expected a time, like \"10s\""),
        ("think = \"soon\"", "`soon` is not a time"),
        ("rate = 0", "from 0.001 to"),
        ("rate = -1.5", "`-1.5` is not a rate; write it like 1000"),
        ("probe-rate = 5.0", "`probe-rate` needs `probe-clients`"),
        ("connect-rate = 0.0", "`connect-rate` is 0: a rate must"),
        (
            "rate = 5\nthink = \"1s\"",
            "`rate` and `think` cannot be used together",
        ),
        ("rate = 5\neach = 1", "`rate` and `requests-per-client`"),
        ("at-once = 5", "`at-once` needs `requests-per-client`"),
        (
            "requests = 5",
            "`requests` (5) must be at least `clients` (50)",
        ),
        ("send = \"a\"", "`send` needs `expect`"),
        (
            "send = \"a\"\nexpect = \"nothing\"",
            "`nothing` is not an expectation",
        ),
        ("protocol = \"ecko\"", "did you mean `echo`"),
        (
            "protocol = \"echo\"\npath = \"/a\"",
            "`path` is for http, not for echo",
        ),
        ("path = []", "it is empty"),
        ("close = \"slowly\"", "expected `orderly` or `reset`"),
        ("syn-retries = 128", "must be from 1 to 127, not 128"),
        ("thnk = \"1s\"", "unknown field `thnk`"),
    ] {
        let error = from_toml(text).unwrap_err();
        assert!(error.contains(why), "{text}: {error}");
    }
    let error = SpecError {
        key: "at-once",
        is_value: false,
        why: "`at-once` needs `requests-per-client`".to_owned(),
    };
    assert_eq!(error.of_flags(), "--at-once needs --requests-per-client");
}

#[test]
fn differences_are_named_by_their_keys() {
    let one = from_toml("think = \"10ms\"\npipeline = 2").unwrap();
    let other = from_toml("rate = 5").unwrap();
    let keys: Vec<String> = one
        .differing(&other)
        .into_iter()
        .map(|(key, ..)| key)
        .collect();
    assert_eq!(keys, ["arrival", "pipeline", "rate", "think"]);
    assert_eq!(one.differing(&one), []);
    assert_eq!(one.flags(), ["--pipeline=2", "--think=10ms"]);
}

#[test]
fn files_of_requests_differ_by_what_is_in_them() {
    let load = |text: &str| LoadSpec {
        protocol: Some("http".to_owned()),
        request_file: Some(RequestFile::holding("a.jsonl", text).unwrap()),
        ..LoadSpec::default()
    };
    let (one, other) = (load("{}"), load("{}\n{}"));
    let differing = one.differing(&other);
    assert_eq!(differing.len(), 1, "{differing:?}");
    assert!(differing[0].1.starts_with("SHA-256 "), "{differing:?}");
    assert_eq!(
        one.differing(&load("{}\n")),
        [],
        "an end of line makes no difference"
    );
    assert_eq!(one.flags(), ["--protocol=http", "--request-file=a.jsonl"]);
    let error = LoadSpec {
        protocol: Some("echo".to_owned()),
        ..one
    }
    .checked();
    assert!(
        error
            .unwrap_err()
            .why
            .contains("`request-file` is for http")
    );
}

#[test]
fn the_only_request_of_a_connection_tells_the_server_to_close() {
    let wire = |load: LoadSpec| {
        let load = LoadSpec {
            protocol: Some("http".to_owned()),
            ..load
        };
        let (dialogue, settings) = load.dialogue("h").unwrap();
        let mut wire = Vec::new();
        dialogue.requester(&settings, 0).request(&mut wire);
        String::from_utf8(wire).unwrap()
    };
    let one_each = LoadSpec {
        requests_per_connection: Some(1),
        ..LoadSpec::default()
    };
    let close = "\r\nConnection: close\r\n";
    assert_eq!(wire(one_each.clone()).matches(close).count(), 1);
    for other in [
        LoadSpec::default(),
        LoadSpec {
            requests_per_connection: Some(2),
            ..LoadSpec::default()
        },
        LoadSpec {
            close: Close::Reset,
            ..one_each.clone()
        },
        LoadSpec {
            header: vec!["connection: keep-alive".to_owned()],
            ..one_each.clone()
        },
    ] {
        assert!(!wire(other.clone()).contains(close), "{other:?}");
    }
    let from_file = LoadSpec {
        request_file: Some(RequestFile::holding("a", "{}").unwrap()),
        ..one_each
    };
    assert_eq!(wire(from_file).matches(close).count(), 1);
}

proptest! {
    #[test]
    fn json_and_toml_give_the_same_load_back(seed in any::<u64>()) {
        let load = made_up(seed);
        let json = serde_json::to_string(&load).unwrap();
        prop_assert_eq!(&serde_json::from_str::<LoadSpec>(&json).unwrap(), &load, "{}", json);
        let text = toml::to_string(&load).unwrap();
        prop_assert_eq!(&toml::from_str::<LoadSpec>(&text).unwrap(), &load, "{}", text);
        prop_assert_eq!(load.clone().checked().unwrap(), load, "it has one form");
    }
}
