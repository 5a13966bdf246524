use proptest::prelude::*;

use super::*;

fn target(text: &str) -> Target {
    text.parse().unwrap_or_else(|why| panic!("{why}"))
}

fn refused(text: &str) -> String {
    text.parse::<Target>().unwrap_err()
}

#[test]
fn targets_are_read_however_they_are_written() {
    for (text, written, host, path) in [
        ("127.0.0.1:80", "127.0.0.1:80", "127.0.0.1:80", ""),
        ("localhost:7777", "localhost:7777", "localhost:7777", ""),
        (":7777", "localhost:7777", "localhost:7777", ""),
        ("[::1]:8080", "[::1]:8080", "[::1]:8080", ""),
        ("[0:0::1]:8080", "[::1]:8080", "[::1]:8080", ""),
        (
            "[fe80::1%eth0]:80",
            "[fe80::1%eth0]:80",
            "[fe80::1%eth0]:80",
            "",
        ),
        ("tcp://h:1", "h:1", "h:1", ""),
        ("TCP://h:1/", "h:1", "h:1", ""),
        (
            "http://localhost:8080",
            "http://localhost:8080/",
            "localhost:8080",
            "/",
        ),
        ("HTTP://h", "http://h/", "h", "/"),
        ("http://h:/a", "http://h/a", "h", "/a"),
        ("http://h:80/a/b?c=d#e", "http://h/a/b?c=d", "h", "/a/b?c=d"),
        ("http://h:443", "http://h:443/", "h:443", "/"),
        ("https://h", "https://h/", "h", "/"),
        ("https://h:443/x", "https://h/x", "h", "/x"),
        ("https://h:80", "https://h:80/", "h:80", "/"),
        ("http://[::1]", "http://[::1]/", "[::1]", "/"),
        ("http://[::1]:81?x", "http://[::1]:81/?x", "[::1]:81", "/?x"),
        (
            "http://[fe80::1%25eth0]",
            "http://[fe80::1%eth0]/",
            "[fe80::1%eth0]",
            "/",
        ),
        ("ws://h/chat", "ws://h/chat", "h", "/chat"),
        ("wss://h:9443", "wss://h:9443/", "h:9443", "/"),
        ("http://me:s%40cret@h/", "http://me:s%40cret@h/", "h", "/"),
        ("http://me@h", "http://me:@h/", "h", "/"),
        ("unix:/run/a b.sock", "unix:/run/a b.sock", "localhost", ""),
        (
            "unix:///run/app.sock",
            "unix:/run/app.sock",
            "localhost",
            "",
        ),
        ("UNIX:app.sock", "unix:app.sock", "localhost", ""),
        ("unix:@name", "unix:@name", "localhost", ""),
        (
            "http+unix://%2Frun%2Fapp.sock/v1?x",
            "http+unix://%2Frun%2Fapp.sock/v1?x",
            "localhost",
            "/v1?x",
        ),
        ("ws+unix://%40name", "ws+unix://%40name/", "localhost", "/"),
    ] {
        let read = target(text);
        assert_eq!(read.to_string(), written, "{text}");
        assert_eq!(target(written), read, "{written} says the same");
        assert_eq!(read.host(), host, "{text}");
        assert_eq!(read.path, path, "{text}");
    }
    assert_eq!(
        target("http://me:s%40cret@h").user.as_deref(),
        Some("me:s@cret")
    );
    assert!(target("http://me:s%40cret@h").asks_the_same(&target("http://me:s%40cret@g")));
    let other = ["http://h", "http://h/a", "https://h", "h:80", "http://me@h"];
    for (at, one) in other.iter().enumerate() {
        for (place, another) in other.iter().enumerate() {
            let alike = target(one).asks_the_same(&target(another));
            assert_eq!(alike, at == place, "{one} {another}");
        }
    }
}

#[test]
fn wrong_addresses_are_named_with_a_remedy() {
    for (text, why) in [
        ("", "the host is missing; write localhost:7777"),
        (":", "the host is missing"),
        (
            "localhost",
            "the port is missing; write localhost:PORT, or http://localhost",
        ),
        ("localhost:", "the port is missing"),
        ("localhost:0", "cannot connect to port 0"),
        (
            "localhost:99999",
            "port 99999 is too large; expected a port from 1 to 65535",
        ),
        ("localhost:http", "http is not a port"),
        ("localhost:-1", "-1 is not a port"),
        (
            "http:localhost",
            "two slashes are missing; write http://localhost",
        ),
        (
            "localhost:80/x",
            "HOST:PORT has no path; write http://localhost:80/x",
        ),
        (
            "http:/localhost/x",
            "a scheme ends with ://; write http://localhost/x",
        ),
        (
            "HTTPS//localhost:80/",
            "a scheme ends with ://; write https://localhost:80/",
        ),
        ("me@localhost:80", "has no user name"),
        ("::1", "an IPv6 address needs brackets; write [::1]:PORT"),
        ("::1:80", "write [::1]:80"),
        ("::1:8080", "needs brackets"),
        ("a:b:c", "has more than one colon"),
        ("[::1", "not closed"),
        (
            "[::1]",
            "the port is missing; write [::1]:PORT, or http://[::1]",
        ),
        ("[::1]8080", "only :PORT may follow"),
        ("[localhost]:80", "localhost is not an IPv6 address"),
        (
            "http://",
            "the host is missing; write http://localhost:8080",
        ),
        ("http:///path", "the host is missing"),
        ("http://:8080", "the host is missing"),
        ("http://h:0", "port 0"),
        ("http://h/a b", "must be written as %XX"),
        ("http://h/ä", "must be written as %XX"),
        ("h\u{e4}:80", "xn--"),
        ("http://a<b", "'<' cannot be part of a host name"),
        ("http://%zz@h", "is not followed by two digits"),
        ("http://%ff@h", "is not UTF-8"),
        ("http://%0a@h", "control character"),
        (
            "ftp://h",
            "unknown scheme ftp; expected one of: tcp, http, https, h2c, ws, wss, unix",
        ),
        ("tcp+unix://h", "unknown scheme tcp+unix"),
        ("://h", "unknown scheme "),
        ("tcp://h", "the port is missing"),
        ("tcp://h:1/x", "tcp:// has no path"),
        ("unix:", "the path of the unix socket is missing"),
        ("unix:@", "the path of the unix socket is missing"),
        (
            "http+unix:///run/x",
            "the path of the unix socket is missing; write http+unix://%2F",
        ),
        ("http+unix://a%00b", "a zero byte"),
    ] {
        let error = refused(text);
        assert!(error.contains(why), "{text}: {error}");
    }
    let long = "x".repeat(108);
    assert!(refused(&format!("unix:{long}")).contains("at most 107 bytes, not 108"));
    target(&format!("unix:@{}", &long[1..]));
}

#[test]
fn only_this_machine_is_reached_unless_others_are_allowed() {
    let endpoint = |text: &str, allow| target(text).endpoint(allow).map(|found| found.to_string());
    assert_eq!(endpoint("127.0.0.1:80", false).unwrap(), "127.0.0.1:80");
    assert_eq!(endpoint("[::1]:80", false).unwrap(), "[::1]:80");
    assert_eq!(endpoint("unix:@a", false).unwrap(), "unix:@a");
    for remote in [
        "192.0.2.1:80",
        "http://192.0.2.1",
        "[2001:db8::1]:80",
        "0.0.0.0:80",
    ] {
        let why = endpoint(remote, false).unwrap_err();
        assert!(why.contains("--allow-remote"), "{why}");
        assert!(endpoint(remote, true).is_ok());
    }
    let why = endpoint("no-such-host.invalid:80", true).unwrap_err();
    assert!(
        why.starts_with("cannot look up no-such-host.invalid: "),
        "{why}"
    );
    let local = target("localhost:80").endpoints(false).unwrap();
    assert!(!local.is_empty() && local.iter().all(Endpoint::is_local));
}

#[test]
fn of_several_addresses_the_one_that_takes_connections_is_used() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let chosen = target(&format!("localhost:{}", address.port()));
    assert_eq!(chosen.endpoint(false).unwrap(), Endpoint::Tcp(address));
}

#[test]
fn servers_listen_on_addresses_names_and_sockets() {
    for (text, read) in [
        ("127.0.0.1:0", "127.0.0.1:0"),
        ("[::1]:7777", "[::1]:7777"),
        (":7777", "127.0.0.1:7777"),
        ("localhost:7777", "127.0.0.1:7777"),
        ("unix:/run/a", "unix:/run/a"),
        ("unix:@a", "unix:@a"),
    ] {
        assert_eq!(
            Endpoint::to_listen_on(text).map(|found| found.to_string()),
            Ok(read.to_owned())
        );
    }
    for (text, why) in [
        ("", "is not an address; write it like"),
        ("7777", "is not an address; write it like"),
        ("::1:7777:x", "is not an address; write it like"),
        ("localhost:99999", "99999 is not a port"),
        ("localhost:x", "x is not a port"),
        ("unix:", "the path of the unix socket is missing"),
        ("no-such-host.invalid:1", "cannot look up"),
    ] {
        let error = Endpoint::to_listen_on(text).unwrap_err();
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[test]
fn a_load_asks_for_what_a_target_names() {
    let asked = |text: &str, load: LoadSpec| {
        let mut load = load;
        load.ask_for(&target(text)).map(|()| load)
    };
    let load = LoadSpec::default;
    let of = |text: &str| asked(text, load()).unwrap();
    assert_eq!(of("h:1").protocol.as_deref(), Some("echo"));
    assert_eq!(of("http://h/a").protocol.as_deref(), Some("http"));
    assert_eq!(of("http://h/a").path, Some(Paths::one("/a".to_owned())));
    assert_eq!(
        of("ws+unix://%2Fs/a").protocol.as_deref(),
        Some("websocket")
    );
    assert_eq!(
        of("http://Aladdin:open%20sesame@h").header,
        ["Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="]
    );
    let refused = |text: &str, load| asked(text, load).unwrap_err().of_flags();
    let echo = LoadSpec {
        protocol: Some("echo".to_owned()),
        ..load()
    };
    assert!(refused("http://h", echo).contains("http:// is for http, not for echo"));
    let paths = LoadSpec {
        path: Some(Paths::one("/b".to_owned())),
        ..load()
    };
    assert!(asked("http://h", paths.clone()).is_ok());
    assert!(refused("http://h/a", paths).contains("already has the path /a"));
    let sent = LoadSpec {
        send: Some(super::super::Payload::Text(b"x".to_vec())),
        ..load()
    };
    assert!(refused("http://h", sent.clone()).contains("leave out http://"));
    assert_eq!(asked("h:1", sent).unwrap().protocol, None);
    let authorized = LoadSpec {
        header: vec!["authorization: x".to_owned()],
        ..load()
    };
    assert!(refused("http://me@h", authorized).contains("header Authorization"));
}

proptest! {
    #[test]
    fn addresses_are_written_as_they_are_read(text in "[a-z0-9:/@%\\[\\].?#+ A-Z]{0,40}") {
        if let Ok(read) = text.parse::<Target>() {
            let written = read.to_string();
            prop_assert_eq!(written.parse::<Target>(), Ok(read), "{}", written);
        }
    }

    #[test]
    fn urls_keep_what_they_say(
        scheme in prop::sample::select(vec!["http", "https", "ws", "wss"]),
        user in prop::option::of("[a-z]{0,5}:[ -~]{0,9}"),
        socket in prop::option::of("/[ -~]{1,20}"),
        port in 1_u16..,
        path in "(/[a-z0-9?=&%]{0,9}){1,3}",
    ) {
        let place = match socket {
            Some(socket) => Place::Unix(UnixPath::new(&socket).unwrap()),
            None => Place::Host { name: "::1".to_owned(), port },
        };
        let scheme = Scheme::NAMED.iter().find(|(name, _)| *name == scheme).unwrap().1;
        let built = Target { scheme, place, user, path };
        prop_assert_eq!(built.to_string().parse::<Target>(), Ok(built));
    }
}
