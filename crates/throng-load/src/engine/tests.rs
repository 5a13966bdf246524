//! Every engine against servers on real sockets: the same load gives the same results.

mod http;
mod slices;
mod tls;
mod unix;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, sockopt};

use super::super::arrival::{Rate, Spacing, Think};
use super::super::fixture::{self, protocol};
use super::super::phase::Progress;
use super::super::{Close, Engine, LoadResult, Plan, Until, Watcher, run};
use throng_record::Load;
use throng_record::Phase;
use throng_spec::Endpoint;
use throng_sys::ring;

/// Time limit for a load of these tests.
const LIMIT: Duration = Duration::from_mins(2);

/// Every engine that works here.
fn engines() -> Vec<Engine> {
    let mut engines = vec![Engine::Epoll];
    match ring::supported() {
        Ok(()) => engines.push(Engine::IoUring),
        Err(_unsupported) => {} // as `throng list` explains
    }
    engines
}

/// Ends a load that hangs.
struct Limit(Instant);

impl Watcher for Limit {
    fn enter(&mut self, _: Phase, _: &Progress) -> anyhow::Result<()> {
        Ok(())
    }

    fn watch(&mut self, _: Phase, _: &Progress, _: f64) {}

    fn interrupted(&self) -> bool {
        self.0.elapsed() > LIMIT
    }
}

/// A server with a thread per connection, and the number of its connections.
struct Server {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
}

/// Serves each connection with `serve` while the tests run.
fn server(serve: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let accepted = Arc::new(AtomicUsize::new(0));
    let (serve, count) = (Arc::new(serve), Arc::clone(&accepted));
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let number = count.fetch_add(1, Relaxed);
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || serve(stream, number));
        }
    });
    Server { address, accepted }
}

fn echo(mut stream: TcpStream) {
    let mut bytes = vec![0; 100_000];
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        if stream.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}

/// Reads `count` bytes, or fewer if the connection ends.
fn swallow(stream: &mut TcpStream, mut count: u64) {
    let mut bytes = vec![0; 100_000];
    while count > 0 {
        let most = bytes.len().min(usize::try_from(count).unwrap());
        match stream.read(&mut bytes[..most]) {
            Ok(taken @ 1..) => count -= taken as u64,
            _ => return,
        }
    }
}

fn reset(stream: &TcpStream) {
    sockopt::set_socket_linger(stream, Some(Duration::ZERO)).unwrap();
}

fn plan(address: impl Into<Endpoint>, name: &str, size: usize, clients: u32, until: Until) -> Plan {
    Plan {
        first_reply_timeout: Duration::from_secs(2),
        grace: Duration::from_secs(1),
        ..fixture::plan(address, name, size, clients, until)
    }
}

/// Runs the load on one engine.
fn on(engine: Engine, plan: &Plan) -> LoadResult {
    let plan = Plan {
        engine,
        ..plan.clone()
    };
    run(&plan, &mut Limit(Instant::now())).unwrap()
}

/// Runs the same load on each engine.
fn on_each(plan: &Plan, check: impl Fn(Engine, &Load)) {
    for engine in engines() {
        let began = Instant::now();
        let result = on(engine, plan);
        assert!(began.elapsed() < LIMIT, "{}", engine.name());
        check(engine, &result.stats.summary());
    }
}

fn all_verified(total: u64) -> impl Fn(Engine, &Load) {
    move |engine, load| {
        let name = engine.name();
        assert_eq!(load.errors, [].into(), "{name}");
        assert_eq!(load.verified, total, "{name}");
        assert_eq!(load.requests, total, "{name}");
        assert_eq!(load.stopped_by, "requests", "{name}");
    }
}

#[test]
fn every_echo_is_verified() {
    let server = server(|stream, _| echo(stream));
    for (size, total) in [(1, 2000), (1000, 2000), (64 * 1024, 100), (3_000_000, 12)] {
        let plan = plan(server.address, "echo", size, 5, Until::Requests(total));
        on_each(&plan, |engine, load| {
            all_verified(total)(engine, load);
            assert_eq!(load.window.bytes_received, total * size as u64);
            assert_eq!(load.connections, 5);
        });
    }
}

#[test]
fn pipelines_are_echoed() {
    let server = server(|stream, _| echo(stream));
    for (size, total) in [(100, 10_000), (100_000, 200)] {
        let plan = Plan {
            pipeline: 16,
            ..plan(server.address, "echo", size, 3, Until::Requests(total))
        };
        on_each(&plan, all_verified(total));
    }
}

/// Sends the reply of an `upload` server that has received `taken` bytes.
fn answer(stream: &mut TcpStream, status: u8, taken: u64) {
    let mut reply = vec![status];
    reply.extend_from_slice(&taken.to_be_bytes());
    let _ = stream.write_all(&reply);
}

#[test]
fn uploads_are_taken_whole() {
    let server = server(|mut stream, _| {
        let mut length = [0; 8];
        if stream.read_exact(&mut length).is_ok() {
            let length = u64::from_be_bytes(length);
            swallow(&mut stream, length);
            answer(&mut stream, 0, length);
        }
    });
    for (size, total) in [(1000, 300), (5_000_000, 12)] {
        let plan = plan(server.address, "upload", size, 4, Until::Requests(total));
        on_each(&plan, |engine, load| {
            all_verified(total)(engine, load);
            let bytes = total * (size as u64 + 8);
            assert_eq!(load.window.bytes_sent, bytes, "{}", engine.name());
        });
    }
}

#[test]
fn a_reply_may_come_before_all_is_sent() {
    for (reads_on, resets) in [(true, false), (false, false), (false, true)] {
        let server = server(move |mut stream, _| {
            let mut length = [0; 8];
            if stream.read_exact(&mut length).is_err() {
                return;
            }
            swallow(&mut stream, 100_000);
            answer(&mut stream, 1, 0);
            if reads_on {
                // Closes its side first, then waits for the client.
                let _ = stream.shutdown(std::net::Shutdown::Write);
                swallow(&mut stream, u64::MAX >> 1);
            } else {
                // The reply is on its way before the reset that unread bytes cause.
                std::thread::sleep(Duration::from_millis(20));
                if resets {
                    reset(&stream);
                }
            }
        });
        let plan = plan(server.address, "upload", 8_000_000, 3, Until::Requests(9));
        on_each(&plan, |engine, load| {
            all_verified(9)(engine, load);
            assert_eq!(load.rejected.get("over-limit"), Some(&9));
        });
    }
}

/// The number of bytes that clients have sent, by their own count.
fn bytes_sent(result: &LoadResult) -> u64 {
    let mut csv = Vec::new();
    result.write_clients(&mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let column = |line: &str, slot: usize| line.split(',').nth(slot).unwrap().to_owned();
    let header = csv.lines().next().unwrap();
    let slot = header.split(',').position(|name| name == "bytes_sent");
    let sent = csv.lines().skip(1).map(|line| column(line, slot.unwrap()));
    sent.map(|sent| sent.parse::<u64>().unwrap()).sum()
}

/// Waits until a server's threads have counted to `count`, and returns their count.
fn until_counted(counter: &AtomicUsize, count: u64) -> u64 {
    let until = Instant::now() + LIMIT;
    let so_far = || counter.load(Relaxed) as u64;
    while so_far() != count && Instant::now() < until {
        std::thread::yield_now();
    }
    so_far()
}

/// Regression test: the last piece of an upload counted as sent when it was begun, but the server had rejected it
/// meanwhile, so that it never left.
#[test]
fn rejected_sends_do_not_count_as_sent() {
    const PIECES: usize = 2 * 1024 * 1024 + 30_000;
    let taken_in = Arc::new(AtomicUsize::new(0));
    let of_server = Arc::clone(&taken_in);
    let server = server(move |mut stream, _| {
        let mut bytes = vec![0; 300_000];
        let (mut count, mut answered) = (0, false);
        while let Ok(taken @ 1..) = stream.read(&mut bytes) {
            count += taken;
            if !answered && count > 1_000_000 {
                answered = true;
                answer(&mut stream, 1, 0);
                let _ = stream.shutdown(std::net::Shutdown::Write);
            }
        }
        of_server.fetch_add(count, Relaxed);
    });
    let plan = plan(server.address, "upload", PIECES, 4, Until::Requests(120));
    let mut sent = 0;
    for engine in engines() {
        let result = on(engine, &plan);
        assert_eq!(result.stats.rejected.get("over-limit"), Some(&120));
        sent += bytes_sent(&result);
        assert_eq!(until_counted(&taken_in, sent), sent, "{}", engine.name());
    }
}

/// Ends a load once a server has noticed a given number of clients.
struct Noticed(Arc<AtomicUsize>, usize);

impl Watcher for Noticed {
    fn enter(&mut self, _: Phase, _: &Progress) -> anyhow::Result<()> {
        Ok(())
    }

    fn watch(&mut self, _: Phase, _: &Progress, _: f64) {}

    fn interrupted(&self) -> bool {
        self.0.load(Relaxed) >= self.1
    }
}

/// Regression test: a request that was still being sent when the load ended did not count at all.
#[test]
fn bytes_sent_when_the_load_ends_count_as_sent() {
    let (noticed, taken_in) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let is_over = Arc::new(AtomicBool::new(false));
    let (saw, of_server, over) = (
        Arc::clone(&noticed),
        Arc::clone(&taken_in),
        Arc::clone(&is_over),
    );
    let server = server(move |mut stream, _| {
        let mut bytes = vec![0; 1_000_000];
        stream.peek(&mut bytes).unwrap();
        saw.fetch_add(1, Relaxed);
        while !is_over.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        while let Ok(taken @ 1..) = stream.read(&mut bytes) {
            of_server.fetch_add(taken, Relaxed);
        }
    });
    let seconds = Until::Duration(LIMIT);
    let (mut sent, mut clients) = (0, 0);
    for engine in engines() {
        over.store(false, Relaxed);
        let plan = Plan {
            engine,
            ..plan(server.address, "echo", 20_000_000, 3, seconds)
        };
        clients += 3;
        let mut watcher = Noticed(Arc::clone(&noticed), clients);
        let result = run(&plan, &mut watcher).unwrap();
        over.store(true, Relaxed);
        let of_this = bytes_sent(&result);
        assert!(of_this > 0, "{}", engine.name());
        sent += of_this;
        assert_eq!(until_counted(&taken_in, sent), sent, "{}", engine.name());
    }
}

#[test]
fn connections_are_closed_with_a_reset_or_orderly() {
    for close in [Close::Reset, Close::Orderly] {
        for pipeline in [1, 4] {
            let ends = Arc::new([const { AtomicUsize::new(0) }; 2]);
            let seen = Arc::clone(&ends);
            let server = server(move |mut stream, _| {
                let mut bytes = [0; 1000];
                let end = loop {
                    match stream.read(&mut bytes) {
                        Ok(0) => break 0,
                        Ok(count) => stream.write_all(&bytes[..count]).unwrap(),
                        Err(_) => break 1,
                    }
                };
                seen[end].fetch_add(1, Relaxed);
            });
            let plan = Plan {
                requests_per_connection: Some(5),
                close,
                pipeline,
                ..plan(server.address, "echo", 100, 4, Until::Requests(400))
            };
            let engines = engines().len();
            on_each(&plan, |engine, load| {
                all_verified(400)(engine, load);
                assert_eq!(load.connections, 80, "{}", engine.name());
            });
            assert_eq!(server.accepted.load(Relaxed), engines * 80);
            let until = Instant::now() + LIMIT;
            while ends.iter().map(|end| end.load(Relaxed)).sum::<usize>() < engines * 80
                && Instant::now() < until
            {
                std::thread::yield_now();
            }
            // The last connection of a client ends in order, with the client.
            let resets = if close == Close::Reset { 76 } else { 0 };
            assert_eq!(ends[1].load(Relaxed), engines * resets);
        }
    }
}

/// Regression test: a connection that failed with much of a request unsent counted as two failures.
#[test]
fn a_reset_is_one_failure_also_with_much_to_send() {
    for (size, pipeline) in [(100, 1), (4_000_000, 1), (4_000_000, 4), (100, 16)] {
        let server = server(move |mut stream, _| {
            swallow(&mut stream, 50.min(size as u64));
            reset(&stream);
        });
        let plan = Plan {
            pipeline,
            ..plan(server.address, "echo", size, 6, Until::Requests(600))
        };
        on_each(&plan, |engine, load| {
            let name = engine.name();
            assert_eq!(load.errors, [("reset".to_owned(), 6)].into(), "{name}");
            assert_eq!((load.verified, load.requests), (0, 6), "{name}");
            assert_eq!(load.stopped_by, "no-clients-left", "{name}");
        });
    }
}

#[test]
fn clients_come_back_after_resets() {
    for size in [100, 1_000_000] {
        let server = server(move |mut stream, number| {
            if number % 3 == 2 {
                echo(stream);
            } else {
                swallow(&mut stream, size as u64 / 2);
                reset(&stream);
            }
        });
        let plan = Plan {
            reconnect: true,
            pipeline: 2,
            ..plan(server.address, "echo", size, 3, Until::Requests(60))
        };
        on_each(&plan, |engine, load| {
            let resets = load.errors.values().sum::<u64>();
            let name = engine.name();
            assert!(resets > 0, "{name}");
            let kinds: Vec<&String> = load.errors.keys().collect();
            assert_eq!(kinds, ["reset"], "{name}");
            assert!(
                (1..60).contains(&load.verified),
                "{name}: {}, {resets} resets",
                load.verified
            );
            assert_eq!(load.requests, 60, "{name}");
            assert_eq!(load.stopped_by, "requests", "{name}");
        });
    }
}

#[test]
fn nobody_listens() {
    // Bound but not listening, so no other test can get its port.
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = rustix::net::getsockname(&socket).unwrap();
    let address = SocketAddr::try_from(address).unwrap();
    on_each(
        &plan(address, "echo", 100, 7, Until::Requests(700)),
        |engine, load| {
            let refused = [("refused".to_owned(), 7)].into();
            assert_eq!(load.errors, refused, "{}", engine.name());
            assert_eq!(load.stopped_by, "no-clients-left");
        },
    );
}

#[test]
fn an_open_loop_balances() {
    let server = server(|stream, _| echo(stream));
    let per_s = 2000.0;
    let until = Until::Duration(Duration::from_millis(500));
    let plan = Plan {
        rate: Some(Rate {
            from_per_s: per_s,
            to_per_s: per_s,
            rise: Duration::ZERO,
            spacing: Spacing::Constant,
        }),
        ..plan(server.address, "echo", 200, 20, until)
    };
    on_each(&plan, |engine, load| {
        let name = engine.name();
        let open = load.open_loop.as_ref().unwrap();
        assert!((999..=1001).contains(&open.due), "{name}: {}", open.due);
        assert_eq!((open.unanswered, open.lost), (0, 0), "{name}");
        let answered = load.service_time.as_ref().unwrap().count;
        assert_eq!(open.due, answered + open.never_sent, "{name}");
        assert!(load.errors.is_empty(), "{name}");
    });
}
