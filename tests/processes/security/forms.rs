//! Malformed requests to throng's HTTP server, compared with nginx.

use std::fs;
use std::io::Write as _;
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::server::Server;

const FORMS: &str = include_str!("request_forms.txt");

/// Forms that nginx refuses although they are correct by RFC 9110 and 9112. throng answers the first two with 405.
const RIGHT: [&str; 3] = [
    r"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
    r"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    r"GET / HTTP/1.1\r\nHost:\ta\t\r\n\r\n",
];

const CONFIGURATION: &str = "
daemon off;
master_process off;
pid nginx.pid;
error_log errors.log;
events {}
http {
  access_log off;
  client_body_temp_path temporary;
  server { listen unix:DIRECTORY/nginx.socket; location / { return 200 'hello'; } }
}
";

struct Nginx(Child);

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn nginx(directory: &Path) -> Option<Nginx> {
    let place = directory.display().to_string();
    let file = directory.join("nginx.conf");
    fs::write(&file, CONFIGURATION.replace("DIRECTORY", &place)).expect("it is ours");
    let mut command = Command::new("nginx");
    command.args(["-p", &place, "-c"]).arg(&file);
    command.stderr(Stdio::null());
    let started = Nginx(command.spawn().ok()?);
    let deadline = Instant::now() + Duration::from_mins(2);
    while UnixStream::connect(directory.join("nginx.socket")).is_err() {
        assert!(Instant::now() < deadline, "nginx does not listen");
        std::thread::sleep(Duration::from_millis(2));
    }
    Some(started)
}

/// The bytes of a form.
fn bytes(form: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = form.chars();
    while let Some(c) = rest.next() {
        let escaped = match (c, (c == '\\').then(|| rest.next()).flatten()) {
            (_, Some('r')) => b'\r',
            (_, Some('n')) => b'\n',
            (_, Some('t')) => b'\t',
            (_, Some('0')) => 0,
            (_, Some('x')) => {
                let digits: String = rest.by_ref().take(2).collect();
                u8::from_str_radix(&digits, 16).expect("two digits")
            }
            (c, None) => u8::try_from(c).expect("ASCII"),
            (_, Some(other)) => panic!("\\{other} in {form}"),
        };
        bytes.push(escaped);
    }
    bytes
}

/// The status of the first reply; none without a reply, or with one of HTTP/0.9.
fn status(mut reply: impl std::io::Read) -> Option<u16> {
    let mut bytes = Vec::new();
    // A reset ends it too.
    let _ = reply.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    text.strip_prefix("HTTP/1.")?.get(2..5)?.parse().ok()
}

/// Whether a request was accepted as valid, whatever its status.
fn is_taken(status: Option<u16>) -> bool {
    matches!(status, Some(100..400 | 404 | 405))
}

#[test]
fn malformed_requests_that_nginx_refuses_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let Some(_nginx) = nginx(directory.path()) else {
        return println!("not tried: nginx is not installed");
    };
    let server = Server::start(&["epoll", "--protocol", "http", "--size", "10"]).unwrap();
    let mut laxer = Vec::new();
    for form in FORMS.lines().filter(|line| !line.starts_with('#')) {
        let mut to_nginx = UnixStream::connect(directory.path().join("nginx.socket")).unwrap();
        let mut to_throng = TcpStream::connect(server.address()).unwrap();
        let _ = to_nginx.write_all(&bytes(form));
        let _ = to_throng.write_all(&bytes(form));
        let _ = to_nginx.shutdown(Shutdown::Write);
        let _ = to_throng.shutdown(Shutdown::Write);
        let (nginx, throng) = (status(to_nginx), status(to_throng));
        if is_taken(throng) && !is_taken(nginx) && !RIGHT.contains(&form) {
            laxer.push(format!("{form}: nginx {nginx:?}, throng {throng:?}"));
        }
    }
    assert!(laxer.is_empty(), "{laxer:#?}");
}
