//! Servers that are slow at times, as was planned: each slow reply must be found at its true place.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::servers::{ECHO, Hostile, listening};
use crate::support::load::{Ended, load};
use crate::support::tries::once;

const SLOW: Duration = Duration::from_millis(200);

/// Answers all, one in so many slowly; counts these.
fn slow_once_in(many: u64) -> (Hostile, Arc<AtomicU64>) {
    let slow = Arc::new(AtomicU64::new(0));
    let (counted, requests) = (Arc::clone(&slow), AtomicU64::new(0));
    let server = Hostile::start(move |_, mut stream| {
        let mut request = [0; ECHO];
        loop {
            stream.read_exact(&mut request)?;
            if (requests.fetch_add(1, Relaxed) + 1).is_multiple_of(many) {
                counted.fetch_add(1, Relaxed);
                std::thread::sleep(SLOW);
            }
            stream.write_all(&request)?;
        }
    });
    (server, slow)
}

fn percentile_us(ended: &Ended, time: &str, percentile: &str) -> f64 {
    let value = ended.result[time][percentile].as_f64();
    value.unwrap_or_else(|| panic!("no {percentile} of {time}: {ended:?}"))
}

#[test]
fn every_slow_reply_is_in_the_service_time() {
    let ended = once(|| {
        let (server, slow) = slow_once_in(900);
        let ended = load(server.address, "-c 8 -n 18000");
        assert_eq!((ended.code, ended.errors.len()), (0, 0), "{ended:?}");
        assert_eq!(slow.load(Relaxed), 20);
        let found = ended.at_least("service_time", SLOW);
        assert!(found >= 20, "{found} slow ones: {ended:?}");
        // Others have to wait so long only where the machine is far too busy.
        if found < 40 {
            Ok(ended)
        } else {
            Err(format!("{found} slow ones: {ended:?}"))
        }
    });
    let slow_us = SLOW.as_secs_f64() * 0.998e6;
    assert!(
        percentile_us(&ended, "service_time", "p99_us") < slow_us,
        "{ended:?}"
    );
    assert!(
        percentile_us(&ended, "service_time", "p999_us") >= slow_us,
        "{ended:?}"
    );
    assert!(
        percentile_us(&ended, "service_time", "max_us") >= slow_us,
        "{ended:?}"
    );
    assert!(
        ended.result["open_loop"].is_null(),
        "a closed loop has none: {ended:?}"
    );
}

/// With a client free for each request, what is slow is slow in both times.
#[test]
fn every_slow_reply_is_in_the_response_time() {
    let (server, slow) = slow_once_in(100);
    let ended = load(server.address, "-c 50 --rate 500 -n 1000 --warm-up 0s");
    assert_eq!(ended.code, 0, "{ended:?}");
    let slow = slow.load(Relaxed);
    assert_eq!(slow, 10, "{ended:?}");
    for time in ["service_time", "open_loop.response_time"] {
        let found = ended.at_least(time, SLOW);
        assert!(found >= slow, "{found} of {slow} in {time}: {ended:?}");
    }
}

/// A server of one thread, which sleeps after a number of replies and then serves no client.
struct Stalling {
    over: Arc<AtomicBool>,
    serving: Option<JoinHandle<u64>>,
}

impl Stalling {
    /// Its address too.
    fn start(replies: u64) -> (Self, std::net::SocketAddr) {
        let (listener, address) = listening(100);
        let over = Arc::new(AtomicBool::new(false));
        let reported = Arc::clone(&over);
        let serving = std::thread::spawn(move || {
            let listener = std::net::TcpListener::from(listener);
            listener.set_nonblocking(true).expect("it is a socket");
            let (mut streams, mut answered, mut stalls) = (Vec::new(), 0, 0);
            while !reported.load(Relaxed) {
                wait(&listener, &streams);
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true).expect("it is a socket");
                    stream.set_nodelay(true).expect("it is TCP");
                    streams.push((stream, Vec::with_capacity(ECHO)));
                }
                streams.retain_mut(|(stream, part)| match turn(stream, part) {
                    None => false,
                    Some(whole) => {
                        answered += u64::from(whole);
                        if whole && answered.is_multiple_of(replies) {
                            stalls += 1;
                            std::thread::sleep(SLOW);
                        }
                        true
                    }
                });
            }
            stalls
        });
        let server = Self {
            over,
            serving: Some(serving),
        };
        (server, address)
    }

    /// Ends it; how often it slept.
    fn stalls(mut self) -> u64 {
        self.over.store(true, Relaxed);
        let serving = self.serving.take().expect("it is taken once");
        serving.join().expect("it does not panic")
    }
}

impl Drop for Stalling {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
    }
}

/// Until something can be read, or it is time to look whether all is over.
fn wait(listener: &std::net::TcpListener, streams: &[(TcpStream, Vec<u8>)]) {
    let mut set = vec![PollFd::new(listener, PollFlags::IN)];
    set.extend(
        streams
            .iter()
            .map(|(stream, _)| PollFd::new(stream, PollFlags::IN)),
    );
    let limit = Timespec {
        tv_sec: 0,
        tv_nsec: 20_000_000,
    };
    let _ = poll(&mut set, Some(&limit));
}

/// Reads what has arrived of one request; whether it was whole and is answered. None: the client has gone.
fn turn(stream: &mut TcpStream, part: &mut Vec<u8>) -> Option<bool> {
    let mut bytes = [0; ECHO];
    match stream.read(&mut bytes[part.len()..]) {
        Ok(0) => None,
        Ok(count) => {
            part.extend_from_slice(&bytes[part.len()..][..count]);
            if part.len() < ECHO {
                return Some(false);
            }
            let sent = stream.write(part).ok()?;
            part.clear();
            (sent == ECHO).then_some(true)
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Some(false),
        Err(_) => None,
    }
}

/// While the server sleeps no client is answered, and soon all 20 clients have a request pending. Requests that come
/// due then wait for a client, which shows only in their response time.
#[test]
fn requests_due_in_a_stall_count_from_their_due_time() {
    let (server, address) = Stalling::start(1000);
    let ended = load(address, "-c 20 --rate 1000 -n 3500 --warm-up 0s");
    let stalls = server.stalls();
    assert_eq!((ended.code, stalls), (0, 3), "{ended:?}");
    // 100 come due in the first half of each; fewer in one that begins late, when all have come due already.
    let half = SLOW / 2;
    let whole = stalls - 1;
    let late = ended.at_least("open_loop.response_time", half);
    assert!(late >= whole * 95, "{late} in {stalls} stalls: {ended:?}");
    let slow = ended.at_least("service_time", half);
    assert!(slow >= whole, "{slow} in {stalls} stalls: {ended:?}");
    assert!(
        slow < late / 2,
        "clients ask once in a stall, {slow} of {late}: {ended:?}"
    );
    assert!(
        ended.at_least("open_loop.response_time", SLOW / 10 * 9) >= whole,
        "{ended:?}"
    );
    assert!(ended.at_least("lateness", half) >= whole * 60, "{ended:?}");
    assert!(ended.count("open_loop.waited") >= whole * 100, "{ended:?}");
}

/// The same server and clients in a closed loop: the requests that were not made are not there.
#[test]
fn a_closed_loop_leaves_out_what_it_did_not_ask() {
    once(|| {
        let (server, address) = Stalling::start(1000);
        let ended = load(address, "-c 20 -n 4500");
        assert_eq!((ended.code, server.stalls()), (0, 4), "{ended:?}");
        let slow = ended.at_least("service_time", SLOW);
        assert!(slow >= 4, "{slow}: {ended:?}");
        assert!(ended.result["open_loop"].is_null(), "{ended:?}");
        if slow <= 160 {
            Ok(())
        } else {
            Err(format!("{slow}: {ended:?}"))
        }
    });
}
