//! Loads of every kind, for tests.

use std::time::Duration;

use fastrand::Rng;

use super::{
    ClientThreads, Close, Data, Engine, LoadSpec, Network, Order, Paths, Payload, RateRange,
    RequestFile, Sizes, Spacing, Think, TlsSpec, weighted_path,
};

/// A valid load, generated from a seed.
pub fn made_up(seed: u64) -> LoadSpec {
    let random = &mut Rng::with_seed(seed);
    let mut load = LoadSpec {
        clients: random.u32(1..=100_000),
        pipeline: random.u16(1..=1024),
        warm_up: time(random, 0),
        warm_up_limit: maybe(random, |random| time(random, 0)),
        seed: random.u64(..=i64::MAX as u64),
        connect_timeout: time(random, 1),
        syn_retries: maybe(random, |random| random.u8(1..=127)),
        requests_per_connection: maybe(random, |random| random.u32(1..)),
        lifetime: maybe(random, |random| time(random, 1)),
        close: random
            .choice(Close::NAMED)
            .map_or(Close::Reset, |(_, how)| how),
        reconnect: random.bool(),
        request_timeout: maybe(random, |random| time(random, 1)),
        first_reply_timeout: time(random, 1),
        engine: random
            .choice(Engine::NAMED)
            .map_or(Engine::Epoll, |(_, engine)| engine),
        delay: random.bool(),
        source: networks(random),
        tls: maybe(random, tls),
        ..LoadSpec::default()
    };
    say(&mut load, random);
    end(&mut load, random);
    match random.u8(..4) {
        0 => load.ramp = Some(time(random, 1)),
        1 => load.connect_rate = Some(per_s(random)),
        _ => {}
    }
    if random.bool() {
        load.probe_clients = Some(random.u32(1..100));
        load.probe_rate = per_s(random);
    }
    if load.has_flow() {
        // One request after the other.
        let usual = LoadSpec::default();
        (load.pipeline, load.probe_clients, load.probe_rate) = (1, None, usual.probe_rate);
    }
    load.checked().expect("such a load can be")
}

fn say(load: &mut LoadSpec, random: &mut Rng) {
    match random.u8(..5) {
        4 => {
            load.protocol = Some("http".to_owned());
            load.request_file = Some(RequestFile::new("some/flow.hurl"));
            load.variable = vec!["a=b c=\"d\"".to_owned(); random.usize(..3)];
            load.recorded_delays = random.bool();
            load.recorded_host = maybe(random, |_| "h:1".to_owned());
            if random.bool() {
                load.data_file = Some("some/rows.csv".into());
                load.data_order = random
                    .choice(Order::NAMED)
                    .map_or(Order::InTurn, |(_, order)| order);
            }
        }
        0 => {
            let count = random.usize(1..20);
            let bytes = (0..count).map(|_| random.u8(..)).collect();
            load.send = Some(if random.bool() {
                Payload::Text(bytes)
            } else {
                Payload::File("some/file".into())
            });
            let expectations = [
                "close",
                "bytes:5",
                "until:\\r\\n",
                "text:a b",
                "regex:^-?\\d+;",
            ];
            load.expect = random.choice(expectations).map(str::to_owned);
        }
        1 => {
            load.protocol = Some("http".to_owned());
            let texts = ["/", "/a:3", "/b:7:1", "/c?d=e:2", "/f"];
            let count = random.usize(1..=texts.len());
            let parts = texts[..count]
                .iter()
                .map(|text| weighted_path(text).expect("a path"));
            load.header = vec!["X-Of: a, \"b\" {number}".to_owned(); random.usize(..3)];
            (load.variables, load.cookies) = (random.bool(), random.bool());
            if random.u8(..4) == 0 {
                load.request_file = Some(RequestFile::new("some/file.jsonl"));
            } else {
                load.path = Some(Paths::new(parts.collect()).expect("all differ"));
                load.http_method = maybe(random, |_| "PUT".to_owned());
                load.data = match random.u8(..3) {
                    0 => Some(Data::Text("{\"a\": \"b\\n\", \"c\": {uuid}}".to_owned())),
                    1 => Some(Data::File("some/file".into())),
                    _ => None,
                };
            }
            load.expect_length = maybe(random, |random| random.u64(..1 << 40));
            load.expect_body = maybe(random, |_| "contains:\\\\ a:b".to_owned());
            let statuses = ["2xx", "2xx,404", "500", "1xx,200,599"];
            load.expect_status = maybe(random, |random| random.choice(statuses))
                .flatten()
                .map(str::to_owned);
        }
        2 if random.u8(..3) == 0 => {
            load.protocol = Some("grpc".to_owned());
            load.path = Some(Paths::one("/a.B/C".to_owned()));
            load.proto = maybe(random, |_| "some/file.proto".into());
        }
        2 if random.bool() => load.protocol = Some("factorial".to_owned()),
        2 => {
            load.protocol = Some("websocket".to_owned());
            load.path = maybe(random, |_| Paths::one("/chat".to_owned()));
            load.header = vec!["Origin: x".to_owned(); random.usize(..2)];
            load.text = random.bool();
        }
        _ => {
            load.protocol = maybe(random, |_| "echo".to_owned());
            let count = random.usize(1..5);
            let size = |place| (random.usize(1..1 << 20) * 8 + place, random.u32(1..200));
            load.size = Sizes::new((0..count).map(size).collect()).expect("all differ");
        }
    }
}

fn end(load: &mut LoadSpec, random: &mut Rng) {
    match random.u8(..5) {
        0 => load.requests = Some(random.u64(u64::from(load.clients)..1_000_000_000)),
        1 => load.bytes = Some(random.u64(1..1_000_000_000_000)),
        2 => {
            load.requests_per_client = maybe(random, |random| random.u32(1..));
            load.live = maybe(random, |random| time(random, 1));
            if !load.has_jobs() {
                load.live = Some(time(random, 1));
            }
            load.at_once = maybe(random, |random| random.u32(1..));
            load.time_limit = maybe(random, |random| time(random, 1));
        }
        _ => load.duration = maybe(random, |random| time(random, 1)),
    }
    load.eager = !load.has_jobs() && random.bool();
    let has_threads = load.engine == Engine::Epoll && random.bool();
    load.client_threads = has_threads.then_some(ClientThreads::OneEach);
    if !load.has_jobs() && random.bool() {
        let (one, other) = (per_s(random), per_s(random));
        load.rate = Some(match random.u8(..3) {
            0 => RateRange::constant(one),
            1 => RateRange {
                from_per_s: 0.0,
                to_per_s: one,
            },
            _ => RateRange {
                from_per_s: one.min(other),
                to_per_s: one.max(other),
            },
        });
        load.arrival = maybe(random, |random| match random.u8(..3) {
            0 => Spacing::Constant,
            1 => Spacing::Poisson,
            _ => Spacing::Burst(random.u32(1..)),
        });
    } else {
        load.think = match random.u8(..4) {
            0 => Think::None,
            1 => Think::Fixed(time(random, 1)),
            2 => Think::Exponential(time(random, 1)),
            _ => {
                let shortest = time(random, 0);
                Think::Uniform(shortest, shortest + time(random, 1))
            }
        };
    }
}

fn networks(random: &mut Rng) -> Vec<Network> {
    let texts = ["10.1.2.3", "127.0.1.0/24", "::1", "fe80::/10", "0.0.0.0/0"];
    let count = random.usize(..texts.len());
    let chosen = texts[..count].iter();
    chosen
        .map(|text| text.parse().expect("a network"))
        .collect()
}

fn tls(random: &mut Rng) -> TlsSpec {
    let insecure = random.bool();
    let certificate = random.bool();
    let protocols = ["h2", "http/1.1", "a b"];
    let count = random.usize(..=protocols.len());
    TlsSpec {
        insecure,
        cacert: (!insecure && random.bool()).then(|| "a dir/ca.pem".into()),
        cert: certificate.then(|| "client.pem".into()),
        key: certificate.then(|| "client.key".into()),
        sni: maybe(random, |_| "a.example".to_owned()),
        alpn: protocols[..count]
            .iter()
            .map(|name| (*name).to_owned())
            .collect(),
        resume: random.bool(),
    }
}

fn maybe<T>(random: &mut Rng, value: impl FnOnce(&mut Rng) -> T) -> Option<T> {
    random.bool().then(|| value(random))
}

/// A time, round or not, of at least `least` nanoseconds.
fn time(random: &mut Rng, least: u64) -> Duration {
    let unit = random
        .choice([1, 1000, 1_000_000, 1_000_000_000])
        .unwrap_or(1);
    Duration::from_nanos(random.u64(least..100_000) * unit)
}

fn per_s(random: &mut Rng) -> f64 {
    f64::from(random.u32(1..1_000_000)) / random.choice([1.0, 8.0, 1000.0]).unwrap_or(1.0)
}
