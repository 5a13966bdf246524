use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use super::queues::{SUBMISSIONS, set_up};
use super::*;

/// A ring, if supported.
fn ring() -> Option<Ring> {
    supported().ok().map(|()| Ring::new().unwrap())
}

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (ours, listener.accept().unwrap().0)
}

/// A send that returns its buffer.
fn lent(name: Name, when_full: WhenFull) -> Send {
    Send {
        name,
        turn: 3,
        when_full,
        notify: Notify::Always,
    }
}

/// Waits until `take` returns something for an event.
fn until<T>(ring: &mut Ring, mut take: impl FnMut(Event<'_>) -> Option<T>) -> T {
    loop {
        while let Some(event) = ring.take_event() {
            if let Some(taken) = take(event) {
                return taken;
            }
        }
        ring.wait(WakeOn::Event, None).unwrap();
    }
}

#[test]
fn accepts_receives_and_sends() {
    let Some(mut ring) = ring() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap(); // as the servers' are
    ring.accept(&listener).unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let socket = until(&mut ring, |event| match event {
        Event::Accepted { socket, .. } => socket.ok(),
        _ => None,
    });
    ring.receive(&socket, 7).unwrap();
    for word in ["first", "second"] {
        client.write_all(word.as_bytes()).unwrap();
        let received = until(&mut ring, |event| match event {
            Event::Received {
                name: 7,
                bytes,
                goes_on: true,
            } => Some(bytes.unwrap().to_vec()),
            _ => None,
        });
        assert_eq!(received, word.as_bytes());
        ring.send(&socket, lent(7, WhenFull::Fail), received, 0)
            .unwrap();
        let sent = until(&mut ring, |event| match event {
            Event::Sent { name: 7, sent, .. } => sent.ok(),
            _ => None,
        });
        assert_eq!(sent, word.len());
        let mut echo = vec![0; word.len()];
        client.read_exact(&mut echo).unwrap();
        assert_eq!(echo, word.as_bytes());
    }
    drop(client);
    let end = until(&mut ring, |event| match event {
        Event::Received {
            bytes,
            goes_on: false,
            ..
        } => Some(bytes.unwrap().len()),
        _ => None,
    });
    assert_eq!(end, 0);
}

#[test]
fn shared_buffers_are_reused() {
    if let Some(ring) = ring() {
        receive_much(ring);
    }
}

/// As on kernels without shared buffers.
#[test]
fn whole_buffers_are_reused() {
    if supported().is_ok() {
        let queue = set_up().unwrap();
        let buffers = Buffers::with_shape(&queue, buffers::WHOLE).unwrap();
        receive_much(Ring::over(queue, buffers));
    }
}

/// Far more bytes than all buffers hold, so that each is used several times.
fn receive_much(mut ring: Ring) {
    const BYTES: usize = 20_000_000;
    let (mut client, socket) = pair();
    let sender = std::thread::spawn(move || {
        let pattern: Vec<u8> = (0..BYTES).map(|n| (n % 251) as u8).collect();
        client.write_all(&pattern).unwrap();
    });
    let mut count = 0;
    let mut receiving = false;
    while count < BYTES {
        if !receiving {
            ring.receive(&socket, 0).unwrap();
            ring.wait(WakeOn::Event, None).unwrap();
        }
        receiving = until(&mut ring, |event| match event {
            Event::Received { bytes, goes_on, .. } => {
                match bytes {
                    Ok(bytes) => {
                        assert!(!bytes.is_empty(), "{count} of {BYTES} bytes");
                        for byte in bytes {
                            assert_eq!(*byte, (count % 251) as u8, "byte {count}");
                            count += 1;
                        }
                    }
                    Err(error) => assert_eq!(error, Errno::NOBUFS),
                }
                Some(goes_on)
            }
            _ => None,
        });
    }
    sender.join().unwrap();
}

#[test]
fn receiving_can_be_cancelled() {
    let Some(mut ring) = ring() else { return };
    let (mut client, socket) = pair();
    ring.receive(&socket, 3).unwrap();
    ring.stop_receiving(3).unwrap();
    client.write_all(b"unheard").unwrap();
    let error = until(&mut ring, |event| match event {
        Event::Received {
            name: 3,
            bytes,
            goes_on: false,
        } => bytes.err(),
        _ => None,
    });
    assert_eq!(error, Errno::CANCELED);
}

#[test]
fn drops_with_operations_in_progress() {
    let Some(mut ring) = ring() else { return };
    let (client, socket) = pair();
    ring.receive(&socket, 0).unwrap();
    ring.send(&socket, lent(0, WhenFull::Fail), vec![1; 50_000_000], 0)
        .unwrap(); // more than fits into the socket buffer
    let (buffer, sent) = until(&mut ring, |event| match event {
        Event::Sent { buffer, sent, .. } => Some((buffer, sent.unwrap())),
        _ => None,
    });
    ring.send(&socket, lent(0, WhenFull::Wait), buffer, sent)
        .unwrap();
    ring.wait(WakeOn::Event, Some(Duration::ZERO)).unwrap();
    drop(ring);
    drop(client);
}

/// Static bytes, far more than a socket's buffers have room for.
fn much() -> &'static [u8] {
    (0..30_000_000)
        .map(|n| (n % 251) as u8)
        .collect::<Vec<u8>>()
        .leak()
}

/// The result of a send; `None` if no event arrives in time.
fn left(ring: &mut Ring, limit: Duration) -> Option<(Name, Turn, Result<usize, Errno>)> {
    let until = Instant::now() + limit;
    while Instant::now() < until {
        while let Some(event) = ring.take_event() {
            if let Event::Left { name, turn, sent } = event {
                return Some((name, turn, sent));
            }
        }
        ring.wait(WakeOn::Event, Some(Duration::from_millis(5)))
            .unwrap();
    }
    None
}

const SOON: Duration = Duration::from_millis(100);
const LATE: Duration = Duration::from_secs(20);

#[test]
fn static_bytes_are_sent_completely() {
    let Some(mut ring) = ring() else { return };
    let (mut client, socket) = pair();
    socket.set_nonblocking(true).unwrap(); // like a load's sockets
    let bytes = much();
    let reader = std::thread::spawn(move || {
        let mut received = vec![0; 30_000_000];
        client.read_exact(&mut received).unwrap();
        received
    });
    ring.send_static(&socket, 9, 77, bytes, Notify::Always)
        .unwrap();
    assert!(!ring.has_handed_over());
    assert_eq!(left(&mut ring, LATE), Some((9, 77, Ok(bytes.len()))));
    assert!(ring.has_handed_over());
    assert!(reader.join().unwrap() == bytes, "not as sent");
}

#[test]
fn only_failures_are_reported_on_request() {
    let Some(mut ring) = ring() else { return };
    let (mut client, socket) = pair();
    ring.send_static(&socket, 1, 2, b"well", Notify::Trouble)
        .unwrap();
    assert_eq!(left(&mut ring, SOON), None);
    let mut word = [0; 4];
    client.read_exact(&mut word).unwrap();
    assert_eq!(&word, b"well");
    socket.shutdown(std::net::Shutdown::Write).unwrap();
    ring.send_static(&socket, 1, 3, b"badly", Notify::Trouble)
        .unwrap();
    assert_eq!(left(&mut ring, LATE), Some((1, 3, Err(Errno::PIPE))));
}

#[test]
fn only_failures_return_buffers_on_request() {
    let Some(mut ring) = ring() else { return };
    let (mut client, socket) = pair();
    let quiet = |name, turn| Send {
        name,
        turn,
        when_full: WhenFull::Fail,
        notify: Notify::Trouble,
    };
    // Indices and buffers are reused, and nothing is sent twice or lost.
    for round in 0..100_u8 {
        for part in 0..3 {
            let mut buffer = ring.buffer();
            assert!(buffer.is_empty());
            buffer.extend([round, part]);
            ring.send(&socket, quiet(1, 2), buffer, 0).unwrap();
        }
        ring.wait(WakeOn::Event, Some(Duration::ZERO)).unwrap();
        assert!(ring.take_event().is_none(), "all went well");
        let mut received = [0; 6];
        client.read_exact(&mut received).unwrap();
        assert_eq!(received, [round, 0, round, 1, round, 2]);
    }
    assert!(ring.buffer().capacity() > 0, "it was kept");
    // More than fits into the socket buffer: a part is sent, and the rest is returned.
    let all = much();
    ring.send(&socket, quiet(4, 5), all.to_vec(), 10).unwrap();
    let (buffer, from, sent) = until(&mut ring, |event| match event {
        Event::Sent {
            name: 4,
            turn: 5,
            buffer,
            from,
            sent,
        } => Some((buffer, from, sent.unwrap())),
        _ => None,
    });
    assert!(from == 10 && sent > 0 && from + sent < all.len());
    assert!(buffer == all, "it is the same");
    // Nothing is sent once the socket buffer is full; acknowledgements may make room before that.
    let mut from = from + sent;
    let error = loop {
        let rest = buffer.clone();
        ring.send(&socket, quiet(6, 7), rest, from).unwrap();
        let sent = until(&mut ring, |event| match event {
            Event::Sent {
                name: 6,
                turn: 7,
                sent,
                ..
            } => Some(sent),
            _ => None,
        });
        match sent {
            Ok(sent) => from += sent,
            Err(error) => break error,
        }
    };
    assert_eq!(error, Errno::AGAIN);
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        client.read_to_end(&mut bytes).unwrap();
        bytes
    });
    while from < all.len() {
        let rest = lent(4, WhenFull::Wait);
        ring.send(&socket, rest, buffer.clone(), from).unwrap();
        from += until(&mut ring, |event| match event {
            Event::Sent { sent, .. } => Some(sent.unwrap()),
            _ => None,
        });
    }
    drop(socket);
    assert!(reader.join().unwrap() == all[10..], "not as sent");
}

#[test]
fn a_reset_ends_a_send_that_waits_for_room() {
    let Some(mut ring) = ring() else { return };
    for notify in [Notify::Always, Notify::Trouble] {
        let (client, socket) = pair();
        ring.send_static(&socket, 4, 5, much(), notify).unwrap();
        assert_eq!(left(&mut ring, SOON), None, "nobody reads");
        rustix::net::sockopt::set_socket_linger(&client, Some(Duration::ZERO)).unwrap();
        drop(client);
        let (name, turn, sent) = left(&mut ring, LATE).unwrap();
        assert_eq!((name, turn), (4, 5));
        // The number of bytes sent, or the error.
        assert_ne!(sent, Ok(much().len()));
    }
}

#[test]
fn a_shutdown_ends_a_send_that_waits_for_room() {
    let Some(mut ring) = ring() else { return };
    let (_client, socket) = pair();
    ring.send_static(&socket, 4, 6, much(), Notify::Always)
        .unwrap();
    assert_eq!(left(&mut ring, SOON), None);
    socket.shutdown(std::net::Shutdown::Both).unwrap();
    let (name, turn, sent) = left(&mut ring, LATE).unwrap();
    assert_eq!((name, turn), (4, 6));
    assert_ne!(sent, Ok(much().len()));
}

#[test]
fn an_established_or_failed_connection_is_writable() {
    let Some(mut ring) = ring() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let connect = |ring: &mut Ring, name| {
        use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket =
            net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
        let _in_progress = net::connect(&socket, &address);
        ring.watch_writable(&socket, name).unwrap();
        let writable = until(ring, |event| match event {
            Event::Writable(name) => Some(name),
            _ => None,
        });
        assert_eq!(writable, name);
        net::sockopt::socket_error(&socket).unwrap().is_ok() && net::getpeername(&socket).is_ok()
    };
    assert!(connect(&mut ring, 11));
    drop(listener);
    assert!(!connect(&mut ring, 12));
}

#[test]
fn a_registered_socket_stays_open_until_it_is_released() {
    let Some(mut ring) = ring() else { return };
    // Each slot is reused.
    for round in 0..3 {
        let pairs: Vec<_> = (0..50).map(|_| pair()).collect();
        let mut targets = Vec::new();
        for (number, (client, socket)) in (0..).zip(&pairs) {
            let target = ring.adopt(socket).unwrap();
            ring.receive(target, u32::from(number)).unwrap();
            (&*client).write_all(&[number, round]).unwrap();
            targets.push(target);
        }
        let mut sent = 0;
        while sent < pairs.len() {
            let received = until(&mut ring, |event| match event {
                Event::Received { name, bytes, .. } => Some(Some((name, bytes.unwrap().to_vec()))),
                Event::Sent { .. } => Some(None),
                _ => None,
            });
            if let Some((name, bytes)) = received {
                let target = targets[name as usize];
                ring.send(target, lent(name, WhenFull::Fail), bytes, 0)
                    .unwrap();
            } else {
                sent += 1;
            }
        }
        for (number, (mut client, socket)) in (0..).zip(pairs) {
            let mut echo = [0; 2];
            client.read_exact(&mut echo).unwrap();
            assert_eq!(echo, [number, round]);
            ring.stop_receiving(number.into()).unwrap();
            until(&mut ring, |event| match event {
                Event::Received { goes_on: false, .. } => Some(()),
                _ => None,
            });
            ring.release(targets[usize::from(number)]).unwrap();
            drop(socket);
            ring.wait(WakeOn::Event, Some(Duration::ZERO)).unwrap();
            assert_eq!(client.read(&mut echo).unwrap(), 0, "it is closed");
        }
    }
    // More updates than the ring has room for, without a wait.
    let (mut client, socket) = pair();
    for _ in 0..SUBMISSIONS {
        let target = ring.adopt(&socket).unwrap();
        ring.release(target).unwrap();
    }
    let target = ring.adopt(&socket).unwrap();
    ring.send_static(target, 0, 0, b"x", Notify::Trouble)
        .unwrap();
    ring.wait(WakeOn::Event, Some(Duration::ZERO)).unwrap();
    drop((ring, socket));
    let mut all = Vec::new();
    client.read_to_end(&mut all).unwrap();
    assert_eq!(all, b"x", "then the ring ended");
}
