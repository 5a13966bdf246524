use proptest::prelude::*;

use super::super::super::{Mix, Offer, Protocol as _};
use super::super::frame::{self, write, write_head};
use super::super::{Websocket, opening};
use super::*;

const BINARY: Kind = Kind::Message { is_text: false };

/// A client with an open connection that has sent `messages` messages, and their frames as they come back.
fn opened(settings: &Settings, messages: usize) -> (WebsocketRequester, Vec<u8>) {
    let mut requester = WebsocketRequester::new(settings, 3);
    let mut wire = Vec::new();
    requester.request(&mut wire);
    let (reply, _) = opening::answer(&wire).unwrap().unwrap();
    assert_eq!(requester.receive(reply.as_bytes()), Ok(Replies::default()));
    let mut place = requester.oldest;
    wire.clear();
    requester.append_pending(&mut wire);
    (1..messages).for_each(|_| requester.request(&mut wire));
    let (mut sent, mut replies) = (Vec::new(), Vec::new());
    for _ in 0..messages {
        sent.extend_from_slice(place.request(requester.set));
        replies.extend_from_slice(place.reply(requester.set));
        place = place.following(requester.set);
    }
    assert!(wire == sent);
    (requester, replies)
}

/// The result of receiving `wire`, in two pieces, for a client that has sent `messages` messages.
fn receive_all(
    messages: usize,
    wire: &[u8],
    cut: usize,
) -> Result<u32, (String, Option<&'static str>)> {
    let (mut requester, _) = opened(&Settings::of_size(100), messages);
    let mut completed = 0;
    for piece in [&wire[..cut], &wire[cut..]] {
        let received = requester.receive(piece);
        completed += received
            .map_err(|error| (error.what, requester.fault()))?
            .completed;
    }
    Ok(completed)
}

#[test]
fn nothing_leaves_before_the_connection_is_open() {
    let settings = Settings::of_size(10);
    for cut in [0, 1, 50] {
        let mut requester = WebsocketRequester::new(&settings, 0);
        let mut wire = requester.begin().to_vec();
        requester.begin();
        requester.advance(wire.len());
        assert_eq!(requester.pending(), b"");
        let (reply, _) = opening::answer(&wire).unwrap().unwrap();
        assert_eq!(
            requester.receive(&reply.as_bytes()[..cut]),
            Ok(Replies::default())
        );
        assert_eq!(requester.pending(), b"");
        assert_eq!(
            requester.receive(&reply.as_bytes()[cut..]),
            Ok(Replies::default())
        );
        wire.clear();
        requester.append_pending(&mut wire);
        assert_eq!(wire.len(), 2 * (10 + 6), "both messages");
    }
}

#[test]
fn every_connection_has_a_key_of_its_own_and_frames_are_masked() {
    let mut requester = WebsocketRequester::new(&Settings::of_size(10), 7);
    let mut heads = std::collections::HashSet::new();
    for _ in 0..20 {
        let mut wire = Vec::new();
        requester.request(&mut wire);
        assert!(heads.insert(wire), "a key was used again");
        requester.drop_requests();
    }
    let frames = requester.set.order[0];
    let masks: std::collections::HashSet<&[u8]> = (0..frames.count)
        .map(|number| &frames.request(number)[2..6])
        .collect();
    assert_eq!(masks.len(), frames.count);
}

#[test]
fn messages_come_back_in_one_piece_or_in_fragments() {
    let (_, replies) = opened(&Settings::of_size(100), 3);
    for cut in 0..=replies.len() {
        assert_eq!(receive_all(3, &replies, cut), Ok(3), "cut at {cut}");
        assert!(receive_all(2, &replies, cut).is_err(), "one too many");
    }
    // The same message in three frames, with a ping between them.
    let content = &replies[2..102];
    let mut fragments = Vec::new();
    for (kind, is_final, part) in [
        (BINARY, false, &content[..40]),
        (Kind::More, false, &content[40..40]),
        (Kind::More, true, &content[40..]),
    ] {
        write_head(&mut fragments, kind, is_final, None, part.len() as u64);
        fragments.extend_from_slice(part);
        write(&mut fragments, Kind::Ping, None, b"x");
    }
    fragments.extend_from_slice(&replies[102..]);
    for cut in 0..=fragments.len() {
        assert_eq!(receive_all(3, &fragments, cut), Ok(3), "cut at {cut}");
    }
}

#[test]
fn pings_and_closing_are_answered_between_messages() {
    let (mut requester, replies) = opened(&Settings::of_size(100), 1);
    let mut wire = Vec::new();
    for ping in [&b"one"[..], b"two", b""] {
        let mut frame = Vec::new();
        write(&mut frame, Kind::Ping, None, ping);
        assert_eq!(requester.receive(&frame), Ok(Replies::default()));
        let pong = requester.pending().to_vec();
        assert_eq!(pong[..2], [0x8a, 0x80 | ping.len() as u8]);
        let mut content = pong[6..].to_vec();
        frame::apply_mask(pong[2..6].try_into().unwrap(), 0, &mut content);
        assert_eq!(content, ping);
        // Part of the pong was sent: nothing may come in between.
        requester.advance(1);
        requester.begin();
        assert_eq!(requester.pending(), &pong[1..]);
        requester.append_pending(&mut wire);
    }
    assert_eq!(requester.receive(&replies).unwrap().completed, 1);
    let mut close = Vec::new();
    write(&mut close, Kind::Close, None, b"\x03\xe9going away");
    close.extend_from_slice(b"whatever");
    assert!(requester.receive(&close).unwrap().close);
    assert_eq!(requester.pending()[..2], [0x88, 0x82]);
    wire.clear();
    requester.append_pending(&mut wire);
    assert_eq!(wire.len(), 8);
    requester.begin();
    assert_eq!(requester.pending(), b"", "nothing leaves any more");
    assert_eq!(requester.closing_message(), b"");
    let (mut requester, _) = opened(&Settings::of_size(100), 1);
    assert_eq!(requester.closing_message()[..2], [0x88, 0x82]);
    assert_eq!(requester.closing_message(), b"", "it is sent once");
    requester.drop_requests();
    assert_eq!(
        requester.closing_message(),
        b"",
        "the server closes already"
    );
}

#[test]
fn wrong_frames_are_named_with_their_kind() {
    let (_, right) = opened(&Settings::of_size(100), 1);
    let mut other = right.clone();
    other[50] ^= 1;
    let frame = |kind, content: &[u8]| {
        let mut wire = Vec::new();
        write(&mut wire, kind, None, content);
        wire
    };
    let mut masked = Vec::new();
    write(&mut masked, BINARY, Some([1; 4]), b"x");
    for (wire, kind, why) in [
        (other, None, "byte 48 of the echoed message is 0x"),
        (
            frame(BINARY, &right[2..90]),
            None,
            "88 of the 100 bytes of a message came back",
        ),
        (
            frame(BINARY, &[&right[2..], b"x"].concat()),
            None,
            "longer than 100 bytes",
        ),
        (
            frame(Kind::Message { is_text: true }, &right[2..]),
            None,
            "the echoed message is text, not binary",
        ),
        (masked, Some("bad-frame"), "a frame of the server is masked"),
        (vec![0xa2, 0], Some("bad-frame"), "reserved bits"),
        (vec![0x85, 0], Some("bad-frame"), "reserved opcode"),
        (
            vec![0x89, 126, 0, 126],
            Some("bad-frame"),
            "more than 125 bytes",
        ),
        (
            frame(Kind::More, b"x"),
            Some("bad-frame"),
            "outside a message",
        ),
        (
            frame(Kind::Close, b"\x03\xf1too big\xff"),
            Some("bad-frame"),
            "close frame",
        ),
        (
            frame(Kind::Close, b"\x03\xf1too big"),
            Some("closed-with-status"),
            "status 1009 too big",
        ),
    ] {
        for cut in 0..=wire.len() {
            let (what, fault) = receive_all(1, &wire, cut).unwrap_err();
            assert!(what.contains(why), "{what}");
            assert_eq!(fault, kind, "{what}");
        }
    }
    let (what, _) = receive_all(1, &[&right[..], &frame(BINARY, b"push")].concat(), 0).unwrap_err();
    assert!(what.contains("that the client did not send"), "{what}");
}

#[test]
fn refused_connections_are_named() {
    for (reply, kind, why) in [
        (
            "HTTP/1.1 403 Forbidden\r\n\r\n",
            "upgrade-refused",
            "403 Forbidden",
        ),
        ("HTTP/1.1 101 X\r\n\r\n", "bad-upgrade", "lacks"),
        ("+OK redis\r\n", "bad-upgrade", "is not HTTP"),
    ] {
        let mut requester = WebsocketRequester::new(&Settings::of_size(100), 3);
        requester.request(&mut Vec::new());
        let error = requester.receive(reply.as_bytes()).unwrap_err();
        assert!(error.what.contains(why), "{error}");
        assert_eq!(requester.fault(), Some(kind));
    }
    let mut requester = WebsocketRequester::new(&Settings::of_size(100), 3);
    requester.request(&mut Vec::new());
    let endless = [b"HTTP/1.1 101 X\r\nX: ", &vec![b'a'; 9000][..]].concat();
    let error = endless
        .chunks(1000)
        .find_map(|piece| requester.receive(piece).err());
    assert!(error.unwrap().what.contains("more than 8192 bytes"));
}

proptest! {
    #[test]
    fn both_halves_talk_however_bytes_are_cut(
        size in prop::sample::select(vec![1_usize, 7, 125, 126, 3000, 70_000]),
        other in 1_usize..300,
        text in any::<bool>(),
        messages in 1_u32..9,
        piece in prop::sample::select(vec![1_usize, 3, 14, 1000, 1 << 20]),
    ) {
        let settings = Settings {
            size: Mix::new(&[(size, 1), (size + other, 2)]).unwrap(),
            text,
            ..Settings::default()
        };
        let mut requester = WebsocketRequester::new(&settings, 5);
        let mut session = Websocket.session(&Offer::default());
        (0..messages).for_each(|_| { requester.begin(); });
        let (mut completed, mut counted) = (0, 0);
        while !requester.pending().is_empty() {
            let mut wire = Vec::new();
            requester.append_pending(&mut wire);
            for mut rest in wire.chunks(piece) {
                while !rest.is_empty() {
                    let mut out = Vec::new();
                    let step = session.receive(rest, &mut out).unwrap();
                    rest = &rest[step.consumed..];
                    counted += step.requests;
                    for piece in out.chunks(piece) {
                        completed += requester.receive(piece).unwrap().completed;
                    }
                }
            }
        }
        prop_assert_eq!((completed, counted), (messages, u64::from(messages)));
    }
}
