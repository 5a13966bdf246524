//! Tests with study files, valid and invalid.

use std::time::Duration;

use super::*;

mod claims;
mod servers;

const HEAD: &str = "name = \"x\"\nquestion = \"y\"\n";

fn study(text: &str) -> Study {
    Study::parse(Path::new("x.toml"), &format!("{HEAD}{text}")).unwrap()
}

/// The keys of a part's load, except for durations.
fn flags(part: &Part) -> Vec<String> {
    let times = [
        "duration",
        "warm-up",
        "connect-timeout",
        "first-reply-timeout",
    ];
    part.load.flags_without(&times)
}

fn error(text: &str) -> String {
    let text = format!("{HEAD}{text}");
    Study::parse(Path::new("x.toml"), &text)
        .unwrap_err()
        .to_string()
}

/// A cause is a text with a counter or an ablation that shows it.
#[test]
fn every_claim_of_a_built_in_study_has_a_cause_that_is_checked() {
    for built_in in STUDIES {
        let study = Study::find(built_in.info.name).unwrap();
        for claim in &study.claims {
            let cause = claim.mechanism.as_ref();
            let has_text = cause.is_some_and(|cause| cause.text.is_some());
            let is_checked = cause.is_some_and(|cause| !cause.expect.is_empty());
            assert!(has_text && is_checked, "{}: {}", study.name, claim.text);
        }
    }
}

#[test]
fn built_in_studies_are_right_and_named_as_listed() {
    for built_in in STUDIES {
        let study = Study::find(built_in.info().name).unwrap();
        assert_eq!(study.name, built_in.info().name);
        assert!(study.describe().contains(&study.question));
        let quick = study
            .scaled(Scale::Quick)
            .about(std::time::Duration::from_millis(250));
        // A minute, and what counting system calls adds where the kernel lets throng.
        assert!(quick.as_secs() < 65, "{} takes {quick:?}", study.name);
    }
}

#[test]
fn titles_of_built_in_studies_have_the_numbers_of_their_run() {
    for built_in in STUDIES {
        let whole = Study::find(built_in.info().name).unwrap();
        let quick = whole.scaled(Scale::Quick);
        for (written, part) in whole.parts.iter().zip(&quick.parts) {
            let heading = part.heading();
            assert!(!heading.contains('{'), "{heading}");
            let numbers = |part: &Part| -> Vec<String> {
                let clients = part.clients.iter().map(|clients| f64::from(*clients));
                let times = [
                    part.load.duration.unwrap_or_default(),
                    part.load.think.named(),
                ]
                .map(|time| time.as_secs_f64());
                clients
                    .chain(times)
                    .filter(|number| *number > 0.0)
                    .map(whole_number)
                    .collect()
            };
            let ran = numbers(part);
            for number in numbers(written)
                .iter()
                .filter(|number| !ran.contains(number))
            {
                let words: Vec<&str> = heading.split([' ', '.']).collect();
                let names_it = words.iter().enumerate().any(|(place, word)| {
                    // A size is no number of clients, and no time.
                    let next = words.get(place + 1).copied().unwrap_or_default();
                    let is_size = ["kB", "kB,", "KiB", "KiB,"].contains(&next);
                    word == number && !is_size
                });
                assert!(!names_it, "{heading}: {number}");
            }
        }
    }
}

fn whole_number(number: f64) -> String {
    crate::record::format::whole(number)
}

#[test]
fn a_title_names_the_clients_sizes_and_times_of_its_part() {
    let study = study(
        "[[part]]\nname = \"a\"\ntitle = \"{clients} uploads of {size}, {think} apart\"\nclients = [10, 2000]\n\
         size = \"100kB,1MB,10MB\"\nload = { think = \"9s\" }\n",
    );
    let heading = study.parts[0].heading();
    assert_eq!(
        heading,
        "2,000 uploads of 100 kB, 1 MB or 10 MB, 9 seconds apart"
    );
    let smaller = study.scaled(Scale::By(0.1)).parts[0].heading();
    assert_eq!(
        smaller,
        "200 uploads of 10 kB, 100 kB or 1 MB, 900 ms apart"
    );
}

#[test]
fn a_study_without_parts_is_one() {
    let study = study("clients = [100, 10, 10]\nload = { think = \"9s\" }\n");
    assert!(study.flat);
    assert_eq!(study.parts.len(), 1);
    let part = &study.parts[0];
    assert_eq!(
        (part.name(), part.clients.as_slice()),
        ("x", [10, 100].as_slice())
    );
    assert_eq!(flags(part), ["--think=9s"]);
}

#[test]
fn parts_take_what_they_do_not_say() {
    let study = study(
        "clients = [5]\nruns = 2\nprotocol = \"echo\"\nload = { think = \"9s\", eager = true }\n\
         [quick]\nruns = 1\n\
         [[part]]\nname = \"a\"\nload = { think = \"1s\" }\n\
         [[part]]\nname = \"b\"\nclients = [7]\nquick = { clients = [1], load = { think = \"1ms\" } }\n",
    );
    let [a, b] = study.parts.as_slice() else {
        panic!("{:?}", study.parts)
    };
    assert_eq!((a.clients[0], a.runs, b.clients[0], b.runs), (5, 2, 7, 2));
    assert_eq!(flags(a), ["--eager", "--protocol=echo", "--think=1s"]);
    assert_eq!(flags(b), ["--eager", "--protocol=echo", "--think=9s"]);
    let quick = study.scaled(Scale::Quick);
    let [a, b] = quick.parts.as_slice() else {
        panic!("{:?}", quick.parts)
    };
    assert_eq!((a.runs, b.runs, b.clients[0]), (1, 1, 1));
    assert!(flags(b).contains(&"--think=1ms".to_owned()), "{b:?}");
    assert!(b.scaled["clients"] == "1 instead of 7", "{:?}", b.scaled);
}

#[test]
fn for_publication_a_part_is_as_it_says_for_that_and_a_custom_load_has_one_part() {
    let study = study(
        "custom-load = \"a\"\nclients = [5]\n\
         [[part]]\nname = \"a\"\nslices = \"2s\"\nwithout = [{ model = \"fork\", why = \"x\" }]\n\
         options = { select = { fd-setsize = 2000 } }\nfull = { clients = [7, 9], slices = \"1m\" }\n\
         scene = [{ name = \"s\", title = \"S\", question = \"?\", when = \"w\", metric = \"p99\" }]\n\
         [[part]]\nname = \"b\"\n",
    );
    let full = study.scaled(Scale::Full);
    assert_eq!(full.parts[0].clients, [7, 9]);
    assert_eq!(full.parts[0].slices, Some(Duration::from_mins(1)));
    assert_eq!(
        (&full.parts[1], full.parts[0].scaled.len()),
        (&study.parts[1], 0)
    );
    let a = &study.parts[0];
    assert!(!a.server_names().contains(&"fork".to_owned()));
    assert_eq!(a.excludes(&a.server_of("fork")), Some("x"));
    assert_eq!(a.server_of("select").info.name, "select");
    assert_eq!(a.scenes[0].metric, "latency_p99_us");
    let mut custom = study.clone();
    custom.for_custom_load();
    let [part] = custom.parts.as_slice() else {
        panic!("{:?}", custom.parts)
    };
    assert!(custom.flat && part.scenes.is_empty() && part.without.is_empty());
}

#[test]
fn claims_hold_at_quick_scale() {
    let study = study(
        "clients = [5]\n[[part]]\nname = \"a\"\nload = { think = \"4s\" }\nquick = { load = { think = \"4s\" } }\n",
    );
    let quick = study.scaled(Scale::Quick);
    assert_eq!(flags(&quick.parts[0]), ["--think=4s"]);
}

#[test]
fn a_factor_makes_all_of_it_smaller() {
    let study = study(
        "clients = [100, 2000]\nruns = 10\nduration = \"20s\"\nsize = \"10MB\"\n\
         load = { think = \"9s\", ramp = \"1s\" }\n",
    );
    let small = study.scaled(Scale::By(0.1));
    let part = &small.parts[0];
    assert_eq!(
        (part.clients.as_slice(), part.runs),
        ([10, 200].as_slice(), 2)
    );
    assert_eq!(part.load.duration, Some(Duration::from_secs(2)));
    assert_eq!(
        flags(part),
        ["--ramp=100ms", "--size=1000000", "--think=900ms"]
    );
    assert_eq!(part.written_clients, [100, 2000]);
    assert_eq!(study.scaled(Scale::By(0.1)), small, "the same each time");
}

#[test]
fn how_long_a_job_takes_is_not_promised() {
    let part = |load: &str| {
        study(&format!(
            "clients = [10]\nruns = 1\nservers = [{{ model = \"epoll\" }}]\ncontrol = \"none\"\n\
             ceiling = false\nprobes = [\"none\"]\nload = {{ {load} }}\n"
        ))
    };
    let plain = part("").describe();
    assert!(
        plain.contains("replies count for 5 s after 0.5 s"),
        "{plain}"
    );
    assert!(plain.ends_with("It takes about 5 seconds."), "{plain}");
    for (load, least) in [
        ("requests-per-client = 3, think = \"9s\"", "27 seconds"),
        ("each = 1", "1 second"),
        ("each = 700, size = \"60MB\"", "2 minutes"),
    ] {
        let reported = part(load).describe();
        assert!(!reported.contains("replies count"), "{reported}");
        let trials = format!("until every client is done; at least about {least}\n");
        assert!(reported.contains(&trials), "{reported}");
        assert!(reported.contains("may take longer."), "{reported}");
    }
    let smaller = part("requests-per-client = 20").scaled(Scale::By(0.1));
    assert_eq!(smaller.parts[0].load.requests_per_client, Some(2));
}

#[test]
fn published_values_are_aligned_to_clients() {
    let study = study(
        "[[part]]\nname = \"a\"\nclients = [5, 9]\nservers = [{ model = \"epoll\" }, { model = \"select\" }]\n\
         [[part.published]]\nmetric = \"p99\"\nunit = \"ms\"\n\
         values = { epoll = [1, 2.5], select = [3, \"it stops\"] }\n\
         [[part.published]]\nmetric = \"first_failure\"\nunit = \"count\"\nvalues = { epoll = 900 }\n",
    );
    let [first, second] = study.parts[0].figures.as_slice() else {
        panic!()
    };
    assert_eq!(first.clients, [5, 9]);
    let number = record::PublishedValue::Number;
    assert_eq!(first.values["epoll"], [number(1.0), number(2.5)]);
    assert_eq!(
        first.values["select"][1],
        record::PublishedValue::Absent("it stops".to_owned())
    );
    assert!(second.clients.is_empty());
}

const SEARCH: &str =
    "[[part]]\nname = \"a\"\nkind = \"limit\"\nservers = [{ model = \"epoll\" }]\n";

#[test]
fn a_part_may_search_for_limits() {
    let study = study(&format!(
        "clients = [5, 9]\nruns = 2\nlimit = {{ confirm = 2, max = 5000 }}\n[quick]\nclients = [1]\n\
         {SEARCH}limit = {{ from = 500, max = 4000 }}\n\
         [[part.published]]\nmetric = \"limit\"\nunit = \"count\"\nvalues = {{ epoll = 900 }}\n\
         [[part]]\nname = \"b\"\n\
         [[claim]]\ntext = \"t\"\n\
         [[claim.expect]]\nparts = [\"a\"]\nmetric = \"limit\"\nrelation = \"greater\"\nbaseline = 10\n",
    ));
    let [search, trials] = study.parts.as_slice() else {
        panic!("{:?}", study.parts)
    };
    assert!(search.is_search() && search.clients.is_empty());
    let words = search.limit.words();
    assert_eq!(words, ["--confirm=2", "--from=500", "--max=4000"]);
    let usual = Some(Duration::from_secs(1));
    assert_eq!(search.load.duration, usual, "as throng limit has it");
    assert!(!trials.is_search() && trials.limit.words().is_empty());
    assert_eq!(
        (trials.clients.as_slice(), trials.runs),
        ([5, 9].as_slice(), 2)
    );
    assert!(
        study
            .describe()
            .contains("throng limit --confirm=2 --from=500")
    );
    let quick = study.scaled(Scale::Quick);
    let words = quick.parts[0].limit.words();
    for word in ["--from=8", "--max=50", "--confirm=1", "--search-time=8s"] {
        assert!(words.contains(&word.to_owned()), "{words:?}");
    }
    assert!(quick.parts[0].clients.is_empty());
    let scaled = &quick.parts[0].scaled;
    assert!(scaled["max"] == "50 instead of 4000", "{scaled:?}");
    let half = study.scaled(Scale::By(0.5));
    assert!(
        half.parts[0]
            .limit
            .words()
            .contains(&"--max=2000".to_owned())
    );
}

#[test]
fn wrong_searches_are_shown_with_their_place() {
    all_refused(&[
        (
            format!("{SEARCH}clients = [5]"),
            "line 7, column 1",
            "a part that searches for a limit has no `clients`",
        ),
        (
            format!("{SEARCH}quick = {{ runs = 5 }}"),
            "line 7, column 11",
            "has no `runs`",
        ),
        (
            part("limit = { from = 5 }"),
            "line 7, column 1",
            "only a part of `kind = \"limit\"` has a `limit`",
        ),
        (
            SEARCH.replace("\"limit\"", "\"limt\""),
            "line 5, column 8",
            "unknown variant `limt`",
        ),
        (
            format!(
                "{SEARCH}{}",
                claimed("metric = \"p99\", relation = \"less\", baseline = \"1s\"")
            ),
            "line 9, column 22",
            "expected one of: first_failure, limit, established_at_limit",
        ),
        (
            claim("metric = \"limit\", relation = \"greater\", baseline = 5"),
            "line 9, column 22",
            "needs `kind = \"limit\"`",
        ),
        (
            part(
                "[[part.published]]\nmetric = \"limit\"\nunit = \"count\"\nvalues = { epoll = 1 }",
            ),
            "line 8, column 10",
            "has no metric `limit`",
        ),
    ]);
}

/// Checks that each text is rejected at this position, for this reason.
fn all_refused(cases: &[(String, &str, &str)]) {
    let mut wrong = Vec::new();
    for (text, place, why) in cases {
        let shown = error(text);
        if !shown.contains(place) || !shown.contains(why) {
            wrong.push(format!("{place}, {why}\n{shown}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn part(text: &str) -> String {
    format!("[[part]]\nname = \"a\"\nclients = [5]\nservers = [{{ model = \"epoll\" }}]\n{text}")
}

/// A claim with one expectation, which has these keys.
fn claimed(keys: &str) -> String {
    format!("[[claim]]\ntext = \"t\"\nexpect = [{{ {keys} }}]\n")
}

/// The same claim in a study with a part. The keys begin at line 9, column 13.
fn claim(keys: &str) -> String {
    part(&claimed(keys))
}

#[test]
fn wrong_links_expectations_and_cpus_are_shown_with_their_place() {
    let leads = "[[claim]]\ntext = \"t\"\nleads = true\n\
                 expect = [{ metric = \"errors\", relation = \"at-most\", baseline = 0 }]\n\
                 mechanism = { metrics = [\"errors\"] }\n";
    all_refused(&[
        (part("link = {}"), "line 7, column 8", "needs a `rate`"),
        (
            part("link = { rate = \"fast\" }"),
            "line 7, column 8",
            "from 64kbit to 100Gbit",
        ),
        (
            part("link = { loss = \"101%\" }"),
            "line 7, column 8",
            "from 0.001% to 100%",
        ),
        (
            part("expect = [\"errors == 0\"]"),
            "line 7, column 10",
            "`==` is not an operator",
        ),
        (
            part("expect-failure = \"boom\""),
            "line 7, column 18",
            "unknown variant `boom`",
        ),
        (
            part("pinned = false\nserver-cpus = [0]"),
            "line 4, column 8",
            "`pinned = false` excludes",
        ),
        (
            part("answer = \"completon\""),
            "line 7, column 10",
            "unknown figure `completon`; did you mean `completion`?",
        ),
        (
            format!(
                "{}\n{}",
                part("answer = \"completion\""),
                "[[part]]\nname = \"b\"\nclients = [5]\nservers = [{ model = \"epoll\" }]\nanswer = \"overview\""
            ),
            "line 12, column 10",
            "only one part can answer",
        ),
        (
            part(
                "answer = \"completion\"\n\
                 scene = [{ name = \"s\", title = \"S\", question = \"?\", when = \"w\", metric = \"p99\" }]",
            ),
            "line 7, column 10",
            "leave out `answer`",
        ),
        (
            part(&leads.repeat(2)),
            "line 14, column 9",
            "only one claim can lead",
        ),
    ]);
}

#[test]
fn wrong_values_are_shown_with_their_place() {
    all_refused(&[
        (
            "clients = [1]\nclinets = [2]".to_owned(),
            "line 4, column 1",
            "unknown key `clinets`; did you mean `clients`?",
        ),
        (
            "clients = []".to_owned(),
            "line 3, column 11",
            "`clients` must list",
        ),
        (
            "clients = [0]".to_owned(),
            "line 3, column 11",
            "`clients` must list",
        ),
        (
            "clients = [1]\nruns = 0".to_owned(),
            "line 4, column 8",
            "at least 1",
        ),
        (
            "clients = [1]\nduration = \"0s\"".to_owned(),
            "line 4, column 12",
            "longer than 0",
        ),
        (
            "clients = [1]\nduration = \"soon\"".to_owned(),
            "line 4, column 12",
            "`soon` is not a time",
        ),
        (
            "clients = [1]\nprotocol = \"ecko\"".to_owned(),
            "line 4, column 12",
            "did you mean `echo`",
        ),
        (
            "clients = [1]\nload = { think = { a = 1 } }".to_owned(),
            "line 4, column 18",
            "`think`: invalid type: map",
        ),
        (
            "clients = [1]\nservers = [{ model = \"epol\" }]".to_owned(),
            "line 4, column 22",
            "did you mean `epoll`",
        ),
        (
            "clients = [1]\nservers = [{ name = \"a\" }]".to_owned(),
            "line 4, column 12",
            "a `model` or a `command`",
        ),
        (
            "clients = [1]\nservers = [{ command = [\"a\"], ready = \"(\" }]".to_owned(),
            "line 4, column 39",
            "cannot be used as a regular expression",
        ),
        (
            "clients = [1]\nservers = [{ model = \"epoll\" }, { model = \"epoll\" }]".to_owned(),
            "line 4, column 43",
            "two servers have the name `epoll`",
        ),
    ]);
}

#[test]
fn wrong_loads_are_shown_with_their_place() {
    all_refused(&[
        (
            "clients = [1]\ndurration = \"1s\"".to_owned(),
            "line 4, column 1",
            "did you mean `duration`?",
        ),
        (
            "clients = [1]\nfirst-reply-timeout = 3".to_owned(),
            "line 4, column 23",
            "`first-reply-timeout`: invalid type: integer `3`, expected a time, like \"10s\"",
        ),
        (
            "clients = [1]\nload = { thnk = \"1s\" }".to_owned(),
            "line 4, column 10",
            "unknown key `thnk`; did you mean `think`?",
        ),
        (
            "clients = [1]\nload = { pipeline = 2000 }".to_owned(),
            "line 4, column 21",
            "`pipeline` must be from 1 to 1024, not 2000",
        ),
        (
            "clients = [1]\nload = { pipeline = \"two\" }".to_owned(),
            "line 4, column 21",
            "`two` is not a number; write it like 1000, 10k, 1.5M or 1e6",
        ),
        (
            "clients = [1]\nload = { rate = 5, think = \"1s\" }".to_owned(),
            "line 4, column 10",
            "`rate` and `think` cannot be used together",
        ),
        (
            "clients = [1]\nload = { requests = 5 }".to_owned(),
            "line 4, column 10",
            "use the key `duration` of the part",
        ),
    ]);
}

#[test]
fn wrong_parts_and_figures_are_shown_with_their_place() {
    all_refused(&[
        ("part = 3".to_owned(), "line 3, column 8", "[[part]]"),
        (
            "title = \"t\"\nclients = [1]".to_owned(),
            "line 3, column 1",
            "belongs to a [[part]]",
        ),
        (
            "clients = [1]\n[[claim]]\ntext = \"t\"\nexpect = []".to_owned(),
            "line 4, column 1",
            "need a [[part]]",
        ),
        (
            "[[part]]\nname = \"a b\"\nclients = [1]".to_owned(),
            "line 4, column 8",
            "may only contain letters",
        ),
        (
            "[[part]]\nname = \"a\"".to_owned(),
            "line 3, column",
            "missing field `clients`",
        ),
        (
            part("[[part]]\nname = \"a\"\nclients = [1]"),
            "line 8, column 8",
            "two parts have the name `a`",
        ),
        (
            part("[part.quick]\nname = \"b\""),
            "line 8, column 1",
            "cannot differ in `quick`",
        ),
        (
            part("[[part.published]]\nmetric = \"p98\"\nunit = \"ms\"\nvalues = {}"),
            "line 8, column 10",
            "did you mean `p9",
        ),
        (
            part("[[part.published]]\nmetric = \"p99\"\nunit = \"MB\"\nvalues = {}"),
            "line 9, column 8",
            "`MB` is not a unit",
        ),
        (
            part("[[part.published]]\nmetric = \"p99\"\nunit = \"ms\"\nvalues = { poll = 1 }"),
            "line 10, column 12",
            "the part has no server `poll`",
        ),
        (
            part(
                "[[part.published]]\nmetric = \"p99\"\nunit = \"ms\"\nvalues = { epoll = [1, 2] }",
            ),
            "line 10, column 20",
            "expected 1 values",
        ),
    ]);
}
