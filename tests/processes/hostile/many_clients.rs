//! Many clients at once, all of them or half of them treated badly.

use super::servers::{Hostile, echo_on, echo_once, reset, send};
use crate::support::load::{load, one};

/// Descriptors of a load beyond those of its clients.
const OWN_DESCRIPTORS: usize = 50;

#[test]
fn a_reset_ends_each_client_once() {
    let server = Hostile::start(|_, mut stream| {
        for _ in 0..3 {
            echo_once(&mut stream)?;
        }
        reset(stream)
    });
    let ended = load(server.address, "-c 300 -d 45s --warm-up 0s");
    assert_eq!(ended.code, 1, "{ended:?}");
    assert_eq!(ended.errors, one("reset", 300), "{ended:?}");
    assert_eq!(ended.count("served"), 300, "{ended:?}");
    assert_eq!(ended.count("verified"), 900, "{ended:?}");
    assert_eq!(ended.result["stopped_by"], "no-clients-left", "{ended:?}");
    assert!(ended.most_descriptors <= 300 + OWN_DESCRIPTORS, "{ended:?}");
}

#[test]
fn reconnecting_clients_are_reset_repeatedly() {
    let server = Hostile::start(|_, mut stream| {
        for _ in 0..3 {
            echo_once(&mut stream)?;
        }
        reset(stream)
    });
    // Enough for each to come back more than twice.
    let ended = load(server.address, "-c 300 -n 3000 --reconnect");
    assert_eq!(ended.code, 1, "{ended:?}");
    assert_eq!(ended.count("served"), 300, "{ended:?}");
    assert!(ended.ended_by(&["reset"]) > 300, "{ended:?}");
    // At the end a last reply may be due.
    let seen = ended.ended_by(&["reset", "unanswered"]);
    assert_eq!(ended.errors.values().sum::<u64>(), seen, "{ended:?}");
    assert!(ended.count("connections") > 300, "{ended:?}");
    assert!(ended.most_descriptors <= 300 + OWN_DESCRIPTORS, "{ended:?}");
    assert!(ended.most_memory_kib < 100_000, "{ended:?}");
}

/// No client is ever answered, and none gives up: the timeout for first replies ends it.
#[test]
fn a_storm_of_resets_before_any_reply_ends() {
    let server = Hostile::one_by_one(reset);
    let options = "-c 100 -d 500ms --first-reply-timeout 1s --reconnect";
    let ended = load(server.address, options);
    ended.assert_none_served();
    let resets = ended.ended_by(&["reset", "closed-early"]);
    assert!(resets > 100, "{ended:?}");
    assert!(ended.most_descriptors <= 100 + OWN_DESCRIPTORS, "{ended:?}");
}

/// Those who are served well are not lost in those who are not.
#[test]
fn values_of_half_the_clients_are_kept() {
    let server = Hostile::start(|number, mut stream| match number % 4 {
        0 => send(stream, &[0; 1000]),
        1 => {
            echo_once(&mut stream)?;
            reset(stream)
        }
        _ => echo_on(stream),
    });
    let ended = load(server.address, "-c 100 -d 500ms --warm-up 50ms");
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(ended.result["stopped_by"], "duration", "{ended:?}");
    let (wrong, resets) = (ended.ended_by(&["wrong-reply"]), ended.ended_by(&["reset"]));
    assert_eq!(
        (wrong, ended.errors.values().sum()),
        (25, wrong + resets),
        "{ended:?}"
    );
    // A reset while a client rests after its first answer ends it, too; and one that comes before a client has read
    // its answer leaves it without.
    assert!(resets <= 25, "{ended:?}");
    let had_answers = ended.count("served");
    assert!((75 - resets..=75).contains(&had_answers), "{ended:?}");
    let replies = ended.result["window"]["replies"].as_u64().unwrap();
    assert!(replies >= 50, "{ended:?}");
    assert_eq!(
        ended.distribution("service_time").len(),
        replies,
        "{ended:?}"
    );
    // Clients that were reset may have sent again, or not yet.
    let unanswered = ended.count("requests") - ended.count("verified") - wrong;
    assert!(unanswered <= resets, "{ended:?}");
}
