//! `throng load ws://` against servers of others, and clients of others against ours.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::throng;
use crate::support::program::words;
use crate::support::server::Server;

/// The result of a load.
fn load(url: &str, options: &[&str]) -> (i32, Value) {
    let usual = ["load", url, "--json", "-c", "4", "-n", "200"];
    let finished = throng(&[&usual, options].concat());
    (finished.code, finished.json())
}

#[test]
fn both_sides_count_the_same_with_every_engine() {
    for (model, engine) in [
        ("epoll", "epoll"),
        ("io-uring", "io-uring"),
        ("thread", "epoll"),
    ] {
        let server = Server::start(&[model, "--protocol", "websocket"]).unwrap();
        let url = format!("ws://{}/chat?room=1", server.address());
        let mut requests = 0;
        for options in [
            &["--text"][..],
            &["--pipeline", "8", "--size", "100:3,70kB:1"],
            &["--requests-per-connection", "7", "-H", "Origin: http://x"],
            &["--think", "1ms", "--size", "1"],
        ] {
            let (code, result) = load(&url, &[&["--engine", engine], options].concat());
            assert_eq!(code, 0, "{model}: {result}");
            assert_eq!(result["verified"], 200, "{model}: {result}");
            assert_eq!(result["errors"], json!({}), "{model}: {result}");
            requests += 200;
        }
        assert_eq!(server.stop().unwrap()["requests"], requests, "{model}");
    }
}

#[test]
fn a_rejected_websocket_is_named() {
    let server = Server::start(&["epoll", "--protocol", "http"]).unwrap();
    let (code, result) = load(&format!("ws://{}", server.address()), &[]);
    assert_eq!(
        (code, &result["errors"]),
        (1, &json!({"upgrade-refused": 4})),
        "{result}"
    );
    let detail = result["error_details"]["upgrade-refused"].as_str().unwrap();
    assert!(detail.contains("refused the websocket: 200 OK"), "{detail}");
    let server = Server::start(&["epoll", "--protocol", "websocket"]).unwrap();
    let url = format!("http://{}", server.address());
    let finished = throng(&["load", &url, "-c", "4", "-n", "200", "--json"]);
    let statuses = &finished.json()["statuses"];
    assert!(statuses["426"].as_u64() >= Some(1), "{statuses}");
    for (options, says) in [
        (
            &["http://h", "--text"][..],
            "--text needs the protocol websocket",
        ),
        (
            &["ws://h", "--data", "x"],
            "--data is for http, not for websocket",
        ),
        (
            &["ws://h", "--protocol", "echo"],
            "ws:// is for websocket, not for echo",
        ),
    ] {
        throng(&[&["load"], options].concat()).is_usage_error(&[says]);
    }
}

/// A node program, if node and its modules are installed.
fn node(arguments: &[&str], script: &str) -> Option<Command> {
    let mut asked = Command::new("node");
    asked.args(arguments).args(["-e", "0"]);
    let there = asked.stderr(Stdio::null()).status();
    if !there.is_ok_and(|status| status.success()) {
        println!("skipped: node {} is not installed", arguments.join(" "));
        return None;
    }
    let mut command = Command::new("node");
    command.args(arguments).args(["-e", script]);
    Some(command)
}

/// Connects to a server and reports how it went.
const NODE_CLIENT: &str = "
const socket = new WebSocket(process.argv[1]);
socket.binaryType = 'arraybuffer';
const sent = ['', 'Grüße', 'x'.repeat(70000), new Uint8Array([1, 2, 255]).buffer];
const seen = [];
socket.onopen = () => sent.forEach(one => socket.send(one));
socket.onmessage = ({ data }) => {
  const sentOne = sent[seen.length];
  seen.push(typeof data === 'string' ? data === sentOne
    : Buffer.from(data).equals(Buffer.from(sentOne)));
  if (seen.length === sent.length) socket.close(1000, 'done');
};
socket.onclose = ({ code, wasClean }) => console.log(JSON.stringify({ seen, code, wasClean }));
";

#[test]
fn a_client_of_node_is_served() {
    let Some(mut command) = node(&["--experimental-websocket"], NODE_CLIENT) else {
        return;
    };
    let server = Server::start(&["epoll", "--protocol", "websocket"]).unwrap();
    command.arg(format!("ws://{}/", server.address()));
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let printed: Value = serde_json::from_str(&printed).unwrap_or_else(|_| panic!("{output:?}"));
    let right = json!({"seen": [true, true, true, true], "code": 1000, "wasClean": true});
    assert_eq!(printed, right);
    assert_eq!(server.stop().unwrap()["requests"], 4);
}

/// An echo by hand, which pings each client, answers in two frames, and closes after 20 messages each.
const NODE_SERVER: &str = "
const http = require('http'), crypto = require('crypto');
const frame = (first, content) => {
  const length = content.length < 126 ? [content.length]
    : [126, content.length >> 8, content.length & 255];
  return Buffer.concat([Buffer.from([first, ...length]), content]);
};
const server = http.createServer((_, reply) => reply.writeHead(404).end());
let pongs = 0;
server.on('upgrade', (request, socket) => {
  if (request.url === '/no') return socket.end('HTTP/1.1 403 Forbidden\\r\\n\\r\\n');
  const accept = crypto.createHash('sha1').update(
    request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nupgrade: WebSocket\\r\\n' +
    'connection: upgrade\\r\\nsec-websocket-accept: ' +
    (request.url === '/wrong' ? 'x' : accept) + '\\r\\n\\r\\n');
  socket.on('error', () => {});
  let held = Buffer.alloc(0), messages = 0;
  socket.on('data', data => {
    held = Buffer.concat([held, data]);
    while (held.length >= 6) {
      let length = held[1] & 127, at = 2;
      if (length === 126) { length = held.readUInt16BE(2); at = 4; }
      if (held.length < at + 4 + length) return;
      const mask = held.subarray(at, at + 4);
      const content = Buffer.from(held.subarray(at + 4, at + 4 + length));
      for (let i = 0; i < length; i++) content[i] ^= mask[i % 4];
      const opcode = held[0] & 15;
      held = held.subarray(at + 4 + length);
      if (opcode === 8) return socket.end();
      if (opcode === 10) { pongs += content.equals(Buffer.from('ping')) ? 1 : 0; continue; }
      const half = length >> 1;
      socket.write(Buffer.concat([frame(opcode, content.subarray(0, half)),
        frame(0x89, Buffer.from('ping')), frame(0x80, content.subarray(half))]));
      messages += 1;
      if (messages % 20 === 0) socket.write(frame(0x88, Buffer.from([3, 233])));
    }
  });
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.on('data', () => console.log(pongs)).on('end', () => process.exit());
";

#[test]
fn a_server_of_node_may_fragment_ping_and_close() {
    let Some(mut command) = node(&[], NODE_SERVER) else {
        return;
    };
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let port = lines.next().unwrap().unwrap();
    for options in [
        &["--text", "--size", "300"][..],
        &["--size", "10", "--engine", "io-uring"],
    ] {
        // Each connection is closed by the server once its 20 messages have come back.
        let finished = throng(
            &[
                &words(
                    "load {} --json -c 4 -n 200",
                    &[&format!("ws://127.0.0.1:{port}/")],
                )[..],
                options,
            ]
            .concat(),
        );
        let result = finished.json();
        assert_eq!(finished.code, 0, "{finished:?}");
        assert_eq!(
            (&result["verified"], &result["errors"]),
            (&json!(200), &json!({})),
            "{result}"
        );
        assert_eq!(result["connections"], 12, "{result}");
    }
    for (path, kind) in [("/no", "upgrade-refused"), ("/wrong", "wrong-accept-key")] {
        let (code, result) = load(&format!("ws://127.0.0.1:{port}{path}"), &[]);
        assert_eq!(
            (code, &result["errors"]),
            (1, &json!({kind: 4})),
            "{result}"
        );
    }
    end(&mut server);
    let pongs: u32 = lines
        .next()
        .map_or(0, |line| line.unwrap().parse().unwrap());
    // The last of a connection may come when the load is over.
    assert!(pongs >= 300, "{pongs} of 400 pings were answered");
}

/// Makes the server print the number of pongs, and ends it.
fn end(server: &mut Child) {
    use std::io::Write as _;
    let mut stdin = server.stdin.take().expect("it is piped");
    stdin.write_all(b"\n").expect("it reads");
    drop(stdin);
    server.wait().expect("it was started");
}

/// An echo by the package websockets of Python.
const PYTHON_SERVER: &str = "
import asyncio, websockets
async def echo(connection, *_):
    async for message in connection:
        await connection.send(message)
async def main():
    server = await websockets.serve(echo, '127.0.0.1', 0, ping_interval=0.05)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(input)
asyncio.run(main())
";

#[test]
fn a_server_of_python_echoes() {
    // Debian's, which has python3-websockets where that is installed.
    let python = if Path::new("/usr/bin/python3").exists() {
        "/usr/bin/python3"
    } else {
        "python3"
    };
    let there = Command::new(python)
        .args(["-c", "import websockets"])
        .stderr(Stdio::null())
        .status();
    if !there.is_ok_and(|status| status.success()) {
        println!("skipped: python3-websockets is not installed");
        return;
    }
    let mut command = Command::new(python);
    command
        .args(["-c", PYTHON_SERVER])
        .stderr(Stdio::null())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let url = format!("ws://127.0.0.1:{}/", lines.next().unwrap().unwrap());
    for options in [&["--text"][..], &["--size", "200kB"], &["--think", "5ms"]] {
        let (code, result) = load(&url, options);
        assert_eq!(code, 0, "{result}");
        assert_eq!(
            (&result["verified"], &result["errors"]),
            (&json!(200), &json!({})),
            "{result}"
        );
    }
    drop(server.stdin.take());
    server.wait().unwrap();
}
