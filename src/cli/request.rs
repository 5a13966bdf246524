//! Flags for what clients send, and how they check replies.

use std::io::Read as _;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Usage, output, values};
use crate::protocol::{BodyRule, Expectation, LARGEST_SIZE, PROTOCOLS, Statuses};
use crate::spec::{
    Data, LoadSpec, Order, Paths, Payload, RequestFile, Sizes, SpecError, weighted_path,
};

#[expect(
    clippy::struct_excessive_bools,
    reason = "each one is a flag of its own"
)]
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Requests")]
pub(super) struct RequestFlags {
    /// Protocol (`throng list protocols`) [default: http for URLs and commands, else echo].
    #[arg(long)]
    protocol: Option<String>,
    /// Speak HTTP/2, like --protocol http2: by prior knowledge, or over TLS by ALPN.
    #[arg(long, conflicts_with = "protocol")]
    http2: bool,
    /// Call a method of gRPC, like package.Service/Method. Calls whose grpc-status is not 0 count as errors.
    #[arg(long, value_name = "METHOD", value_parser = grpc_path,
          conflicts_with_all = ["protocol", "http2", "paths", "request_file"])]
    grpc: Option<String>,
    /// File that declares the service of --grpc. --data is then the message in JSON [default: {}], otherwise its
    /// bytes.
    #[arg(long, value_name = "FILE")]
    proto: Option<PathBuf>,
    /// Bytes per request, like 1000, 64KiB or 10MB [default: 1000].
    ///
    /// Mix several sizes by weight, like 100kB:3,1MB:1.
    #[arg(long, value_name = "BYTES")]
    size: Option<Sizes>,
    /// Path to request by http or websocket. Repeat for a mix, with weights like /:3 and /news:1
    /// [default: that of the URL, or /].
    #[arg(long = "path", value_name = "PATH[:WEIGHT]", value_parser = weighted_path)]
    paths: Vec<(String, u32)>,
    /// Send websocket text messages instead of binary ones.
    #[arg(long)]
    text: bool,
    /// HTTP method [default: GET, or POST with --data].
    #[arg(
        short = 'X',
        short_alias = 'm',
        long,
        alias = "request",
        value_name = "METHOD"
    )]
    http_method: Option<String>,
    /// Header for http or websocket, like 'Accept: text/html'.
    ///
    /// Repeat for more. Records keep headers.
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    headers: Vec<String>,
    /// HTTP request body: text, @FILE, or - for standard input.
    #[arg(long, alias = "body", value_name = "BODY")]
    data: Option<Data>,
    /// Read HTTP requests from a file. A file of Hurl (NAME.hurl) or a recording (NAME.har) has the steps of each
    /// client's sessions. Any other has one JSON object per line, like {"method": "POST", "path": "/a",
    /// "headers": {"A": "b"}, "body": "c", "weight": 2, "expect": 201}. All keys are optional.
    /// {"file": "NAME"} as the body sends a file.
    #[arg(long, visible_aliases = ["flow", "har"], value_name = "FILE")]
    request_file: Option<PathBuf>,
    /// Variable of requests, the same for all clients. Repeat for more. Without a flow, it needs --variables.
    #[arg(long = "variable", value_name = "NAME=VALUE", value_parser = variable)]
    variable: Vec<String>,
    /// Rows whose columns are variables of requests: CSV with names in its first row, or lines of JSON (NAME.jsonl).
    /// Each session takes the next row, and without a flow each request, which needs --variables.
    #[arg(long, value_name = "FILE")]
    data_file: Option<PathBuf>,
    /// Which row a session takes [default: in-turn].
    #[arg(long, value_name = "in-turn|random", requires = "data_file", hide_possible_values = true,
          value_parser = values::one_of(&Order::NAMED))]
    data_order: Option<Order>,
    /// Wait between the steps of a recording as long as its user did.
    #[arg(long)]
    recorded_delays: bool,
    /// The server whose requests of a recording count, like example.org:8080 [default: that of the first request].
    #[arg(long, value_name = "HOST[:PORT]")]
    recorded_host: Option<String>,
    /// Replace variables in paths, headers and bodies: those of --data-file and --variable, {number} (unique per request), {client}, {random:8}
    /// (letters and digits) and {uuid}. Write {{ for a literal brace. JSON braces stay as they are.
    #[arg(long)]
    variables: bool,
    /// Have each client send back the cookies it receives.
    #[arg(long)]
    cookies: bool,
    /// Content-Type of --data [default: application/json if it begins with { or [, else
    /// application/x-www-form-urlencoded].
    #[arg(long, short_alias = 'T', value_name = "TYPE", requires = "data")]
    content_type: Option<String>,
    /// Name and password for HTTP basic authentication. Records keep them.
    #[arg(
        short,
        short_alias = 'a',
        long,
        value_name = "NAME:PASSWORD",
        conflicts_with = "send"
    )]
    user: Option<String>,
    /// Correct HTTP statuses, like 200,404 or 2xx. Others count as errors [default: 2xx,3xx].
    #[arg(long, value_name = "LIST", value_parser = statuses)]
    expect_status: Option<String>,
    /// Required length of HTTP reply bodies with status 2xx [default: any].
    #[arg(long, value_name = "BYTES")]
    expect_length: Option<u64>,
    /// Required HTTP reply body with status 2xx: same (as the first reply for its path), text:STRING (exactly),
    /// contains:STRING or regex:RE [default: any].
    #[arg(long, value_name = "SPEC", value_parser = body_rule)]
    expect_body: Option<String>,
    /// Send these bytes as each request, instead of a protocol's. Text may contain \r \n \t \0 \xNN and \\.
    /// Write \x40 for a leading @. Files are sent unchanged.
    #[arg(long, value_name = "TEXT|@FILE", conflicts_with = "size")]
    send: Option<Payload>,
    /// Where a reply to --send ends, and what makes it correct. bytes:N: after N bytes. text:STRING: exactly
    /// STRING. until:STRING: at the first STRING. regex:RE: as soon as RE matches; ^ is the start of the reply.
    /// close: when the server closes.
    #[arg(long, value_name = "SPEC", value_parser = expectation)]
    expect: Option<String>,
}

impl RequestFlags {
    /// All headers from all flags.
    fn headers(&self) -> Result<Vec<String>, Usage> {
        let mut headers = self.headers.clone();
        let kind = self.content_type.iter();
        headers.extend(kind.map(|kind| format!("Content-Type: {kind}")));
        if let Some(user) = &self.user {
            if !user.contains(':') {
                return Err(Usage(format!(
                    "--user {user} has no password; write NAME:PASSWORD"
                )));
            }
            headers.push(format!("Authorization: Basic {}", STANDARD.encode(user)));
        }
        Ok(headers)
    }

    /// Applies the given flags to a load.
    pub(super) fn apply(&self, load: &mut LoadSpec) -> Result<(), Usage> {
        if let Some(protocol) = &self.protocol {
            load.protocol = Some(protocol.clone());
        }
        if self.http2 {
            load.protocol = Some("http2".to_owned());
        }
        if let Some(path) = &self.grpc {
            load.protocol = Some("grpc".to_owned());
            load.path = Some(Paths::one(path.clone()));
        }
        if let Some(proto) = &self.proto {
            load.proto = Some(proto.clone());
        }
        if let Some(size) = &self.size {
            load.size = size.clone();
            check_size(load)?;
        }
        if !self.paths.is_empty() {
            let paths = Paths::new(self.paths.clone());
            load.path = Some(paths.map_err(|why| Usage(format!("--path: {why}")))?);
        }
        load.text |= self.text;
        if let Some(method) = &self.http_method {
            load.http_method = Some(method.clone());
        }
        if let Some(path) = &self.request_file {
            load.request_file = Some(RequestFile::new(path));
        }
        load.variable.extend(self.variable.iter().cloned());
        if let Some(path) = &self.data_file {
            load.data_file = Some(path.clone());
        }
        if let Some(order) = self.data_order {
            load.data_order = order;
        }
        load.recorded_delays |= self.recorded_delays;
        if let Some(host) = &self.recorded_host {
            load.recorded_host = Some(host.clone());
        }
        load.variables |= self.variables;
        load.cookies |= self.cookies;
        load.header.extend(self.headers()?);
        if let Some(data) = &self.data {
            load.data = Some(whole(data)?);
        }
        if self.expect_length.is_some() {
            load.expect_length = self.expect_length;
        }
        if let Some(rule) = &self.expect_body {
            load.expect_body = Some(rule.clone());
        }
        if let Some(statuses) = &self.expect_status {
            load.expect_status = Some(statuses.clone());
        }
        if let Some(sent) = &self.send {
            load.send = Some(sent.clone());
        }
        if let Some(expect) = &self.expect {
            load.expect = Some(expect.clone());
        }
        Ok(())
    }
}

/// Rejects a size for a protocol whose requests have a fixed size.
pub(super) fn check_size(load: &LoadSpec) -> Result<(), Usage> {
    let name = load.protocol.as_deref().unwrap_or_default();
    let known = PROTOCOLS.iter().find(|known| known.name() == name);
    match known {
        Some(protocol) if load.size.largest() != protocol.size(load.size.largest()) => {
            Err(Usage(format!(
                "--size does not apply to {name}, whose requests always have {} bytes; leave it out",
                protocol.size(1)
            )))
        }
        _ => Ok(()),
    }
}

/// Completes a load with the contents of its files. Warns about variables that are not replaced.
pub(super) fn complete(load: LoadSpec) -> Result<LoadSpec, SpecError> {
    if load.looks_variable() {
        output::warning(
            "variables like {number} are sent literally; add --variables to replace them",
        );
    }
    load.with_files()
}

/// The data, which is read from standard input for `-`.
fn whole(data: &Data) -> Result<Data, Usage> {
    if *data != Data::Text("-".to_owned()) {
        return Ok(data.clone());
    }
    let mut text = String::new();
    let mut input = std::io::stdin().take(LARGEST_SIZE as u64);
    let read = input.read_to_string(&mut text);
    read.map_err(|error| Usage(format!("cannot read --data from standard input: {error}")))?;
    Ok(Data::Text(text))
}

/// Checks the form of a variable, and keeps it as written.
fn variable(given: &str) -> Result<String, String> {
    match given.split_once('=') {
        Some((name, _)) if !name.is_empty() => Ok(given.to_owned()),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

/// The path of a method of gRPC.
fn grpc_path(method: &str) -> Result<String, String> {
    let method = method.strip_prefix('/').unwrap_or(method);
    match method.split_once('/') {
        Some((service, name)) if !service.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(format!("/{method}"))
        }
        _ => Err("write PACKAGE.SERVICE/METHOD".to_owned()),
    }
}

/// Checks a rule for bodies, and keeps it as written.
fn body_rule(spec: &str) -> Result<String, String> {
    BodyRule::parse(spec).map(|_| spec.to_owned())
}

/// Checks a list of statuses, and keeps it as written.
fn statuses(list: &str) -> Result<String, String> {
    list.parse::<Statuses>().map(|_| list.to_owned())
}

/// Checks an expectation, and keeps it as written.
fn expectation(spec: &str) -> Result<String, String> {
    Expectation::parse(spec).map(|_| spec.to_owned())
}
