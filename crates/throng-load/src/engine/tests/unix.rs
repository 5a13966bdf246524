//! Loads over unix sockets.

use std::os::unix::net::UnixStream;

use rustix::net::{accept, bind, listen, socket};
use throng_spec::{Endpoint, UnixPath};

use super::*;

/// An abstract socket with this name and a backlog of two.
fn listener(name: &str) -> (std::os::fd::OwnedFd, Endpoint) {
    let name = format!("@throng-test-{name}-{}", std::process::id());
    let path = UnixPath::new(&name).unwrap();
    let listener = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    bind(&listener, &path.address().unwrap()).unwrap();
    listen(&listener, 1).unwrap();
    (listener, Endpoint::Unix(path))
}

#[test]
fn clients_wait_for_room_in_the_accept_queue() {
    let (listener, endpoint) = listener("room");
    std::thread::spawn(move || {
        while let Ok(client) = accept(&listener) {
            std::thread::spawn(move || {
                let mut stream = UnixStream::from(client);
                let mut bytes = [0; 1000];
                while let Ok(count @ 1..) = stream.read(&mut bytes) {
                    if stream.write_all(&bytes[..count]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    for requests_per_connection in [None, Some(2)] {
        let plan = Plan {
            requests_per_connection,
            ..plan(endpoint.clone(), "echo", 100, 60, Until::Requests(600))
        };
        on_each(&plan, all_verified(600));
    }
}

#[test]
fn clients_without_room_in_the_queue_time_out() {
    let (_listener, endpoint) = listener("full");
    let plan = Plan {
        connect_timeout: Duration::from_millis(100),
        ..plan(endpoint, "echo", 100, 5, Until::Requests(5))
    };
    for engine in engines() {
        // Queued connections stay queued, for the next engine too.
        let result = on(engine, &plan);
        let errors = result.stats.summary().errors;
        let late = errors.get("connect-timeout").copied();
        assert!(late >= Some(3), "{}: {errors:?}", engine.name());
    }
}
