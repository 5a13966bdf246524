//! Tests with servers in study files.

use super::*;

#[test]
fn servers_are_models_with_options_or_programs() {
    let study = study(
        "clients = [1]\nservers = [\n  { model = \"prefork\", options = { workers = 2, backlog = 5 } },\n  \
         { command = [\"/usr/bin/node\", \"s.js\", \"{port}\"], ready = \"up\", prepare = [\"true\"] },\n]\n",
    );
    let [own, foreign] = study.parts[0].servers.as_slice() else {
        panic!()
    };
    let ServerKind::Own { options, .. } = &own.kind else {
        panic!("{own:?}")
    };
    assert_eq!(options.words(), ["--backlog=5", "--workers=2"]);
    assert_eq!(
        (own.info.name.as_str(), foreign.info.name.as_str()),
        ("prefork", "node")
    );
    assert_eq!(foreign.info.prepare, ["true"]);
}

#[test]
fn how_a_server_starts_and_stops_is_read_as_flags_are() {
    let study = study(
        "clients = [1]\n[[servers]]\ncommand = [\"node\"]\nready = \"https://{address}/\"\nstop-signal = \"sigquit\"\n\
         cwd = \"/tmp\"\nlimits = { nofile = 300, as = \"64MiB\" }\nsetup = [\"true\"]\nlogs = [\"error.log\"]\n",
    );
    let server = &study.parts[0].servers[0];
    let ServerKind::Foreign {
        ready, stop_signal, ..
    } = &server.kind
    else {
        panic!("{server:?}")
    };
    assert_eq!(ready.as_deref(), Some("https://{address}/"));
    assert_eq!(stop_signal.as_deref(), Some("QUIT"));
    let info = &server.info;
    assert_eq!(
        (
            info.cwd.as_deref(),
            info.limits["nofile"],
            info.limits["as"]
        ),
        (Some("/tmp"), 300, 64 << 20)
    );
    assert_eq!(
        (&info.setup[..], &info.logs[..]),
        (&["true".to_owned()][..], &["error.log".to_owned()][..])
    );
    let wrong = |key: &str| error(&format!("clients = [1]\nservers = [{{ {key} }}]\n"));
    for (key, why) in [
        (
            "model = \"epoll\", stop-signal = \"INT\"",
            "`stop-signal` is for a `command`",
        ),
        (
            "model = \"epoll\", ready = \"tcp\"",
            "`ready` is for a `command`",
        ),
        (
            "command = [\"a\"], stop-signal = \"KIL\"",
            "`KIL` is not a signal that stops a server; expected one of: TERM, INT",
        ),
        (
            "command = [\"a\"], ready = \"http://\"",
            "`http://` is not a URL like",
        ),
        (
            "command = [\"a\"], ready = \"(\"",
            "cannot be used as a regular expression",
        ),
        (
            "command = [\"a\"], limits = { files = 3 }",
            "`limits`: `files` is not a resource limit; expected one of: nofile, nproc, as",
        ),
        (
            "command = [\"a\"], limits = { as = \"x\" }",
            "`limits`: `x` is not a number of bytes",
        ),
        (
            "command = [\"a\"], stop-timeout = \"3s\"",
            "unknown key `stop-timeout`",
        ),
    ] {
        let error = wrong(key);
        assert!(error.contains(why), "{key}: {error}");
        assert!(error.contains("line 4, column"), "{error}");
    }
}
