use clap::Parser;
use proptest::prelude::*;

use super::*;
use crate::spec::made_up;

#[derive(Parser)]
#[command(no_binary_name = true)]
struct Line {
    #[command(flatten)]
    load: Arguments,
}

/// The load that a command line describes.
fn typed(flags: &[String]) -> Result<LoadSpec, String> {
    let words = flags.iter().map(String::as_str).chain(["127.0.0.1:1"]);
    let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
    let (load, _) = load_and_servers(&line.load).map_err(|error| error.to_string())?;
    Ok(load)
}

#[test]
fn loads_are_equal_by_their_meaning() {
    let load = |line: &str| {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        typed(&words).unwrap()
    };
    for (one, other) in [
        ("--think 10ms", "--think 10000us"),
        ("--pipeline 1", ""),
        ("--size 1kB --protocol echo", "--size=1000"),
        ("--each 2", "--requests-per-client 2"),
        ("--rate 5..5", "--rate 5 --arrival constant"),
        ("--duration 10s", ""),
    ] {
        assert_eq!(load(one), load(other), "{one}");
    }
    assert_ne!(load("--pipeline 2"), load(""));
}

proptest! {
    #[test]
    fn flags_describe_a_load_and_come_back_from_it(seed in any::<u64>()) {
        let mut load = made_up(seed);
        if load.send.is_none() {
            load.protocol.get_or_insert_with(|| "echo".to_owned());
        }
        if load.rate.is_none() {
            load.arrival = None;
        }
        let flags = load.flags();
        let again = typed(&flags);
        prop_assert_eq!(again.as_ref(), Ok(&load), "{:?}", flags);
        prop_assert_eq!(again.map(|load| load.flags()), Ok(flags));
    }
}
