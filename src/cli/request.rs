//! Flags for what clients say, and how they know a right answer.

use std::io::Read as _;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Usage, output};
use crate::protocol::{BodyRule, Expectation, LARGEST_SIZE, Statuses};
use crate::record::spec::{
    Data, LoadSpec, Paths, RequestFile, Sent, Sizes, SpecError, weighted_path,
};

#[derive(Debug, clap::Args)]
pub(super) struct RequestFlags {
    /// Protocol (`throng list protocols`) [default: http for URLs and commands, else echo].
    #[arg(long)]
    protocol: Option<String>,
    /// Bytes in a request, for protocols that let you choose: a number like 1000, 64KiB or 10MB; or
    /// several by weight, like 100kB:3,1MB:1. A server's own count of echo requests is right only
    /// for one size [default: 1000].
    #[arg(long, value_name = "BYTES[:WEIGHT],...")]
    size: Option<Sizes>,
    /// A path to ask for by http or websocket; several times for a mix, each with a weight, like /:3 and /news:1.
    #[arg(long = "path", value_name = "PATH[:WEIGHT]", value_parser = weighted_path)]
    paths: Vec<(String, u32)>,
    /// Send text messages by websocket instead of binary ones.
    #[arg(long, conflicts_with = "send")]
    text: bool,
    /// The method of requests by http [default: GET, or POST with --data].
    #[arg(short = 'X', long, value_name = "NAME", conflicts_with = "send")]
    http_method: Option<String>,
    /// A header of requests by http or websocket, like 'Accept: text/html'; several times for more. The record keeps it.
    #[arg(
        short = 'H',
        long = "header",
        value_name = "NAME: VALUE",
        conflicts_with = "send"
    )]
    headers: Vec<String>,
    /// The body of requests by http: text as it stands, @ and the name of a file, or - for standard input.
    #[arg(
        long,
        alias = "body",
        value_name = "TEXT|@FILE|-",
        conflicts_with = "send"
    )]
    data: Option<Data>,
    /// Requests by http from a file, one a line as JSON, like {"method": "POST", "path": "/a", "headers": {"A": "b"},
    /// "body": "c", "weight": 2, "expect": 201}. All are optional. A body may be {"file": "NAME"}.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["paths", "http_method", "data", "send"])]
    request_file: Option<PathBuf>,
    /// Fill in variables in paths, headers and bodies: {n} (a number of its own for each request), {client},
    /// {random:8} (letters and digits) and {uuid}; {{ stands for a brace. Other braces, as in JSON, stay.
    #[arg(long, conflicts_with = "send")]
    variables: bool,
    /// Have each client send back the cookies that it was given, by name.
    #[arg(long, conflicts_with = "send")]
    cookies: bool,
    /// What kind of body it is [default: application/json if it begins with { or [, else
    /// application/x-www-form-urlencoded].
    #[arg(long, value_name = "TYPE", requires = "data")]
    content_type: Option<String>,
    /// Name and password for basic authentication by http. The record keeps them.
    #[arg(short, long, value_name = "NAME:PASSWORD", conflicts_with = "send")]
    user: Option<String>,
    /// Statuses that are right for http, like 200,404 or 2xx; replies of any other count as errors
    /// [default: 2xx,3xx].
    #[arg(long, value_name = "LIST", conflicts_with = "send", value_parser = statuses)]
    expect_status: Option<String>,
    /// How many bytes the body of each right reply by http has, if its status is 2xx [default: any number].
    #[arg(long, value_name = "BYTES", conflicts_with = "send")]
    expect_length: Option<u64>,
    /// Which body each right reply by http has, if its status is 2xx: same as the first for its path;
    /// text:STRING for exactly this; contains:STRING; regex:RE for a match somewhere in it [default: any].
    #[arg(long, value_name = "SPEC", conflicts_with = "send", value_parser = body_rule)]
    expect_body: Option<String>,
    /// Instead of a protocol: bytes to send, the same each time. Text may have \r \n \t \0 \xNN and
    /// \\ in it (and begins with \x40 for an @); of a file everything is sent as it is.
    #[arg(long, value_name = "TEXT|@FILE", requires = "expect",
          conflicts_with_all = ["protocol", "size", "paths"])]
    send: Option<Sent>,
    /// How a reply to --send ends, and what is right: bytes:N for so many bytes; text:STRING for
    /// exactly this; until:STRING for anything that ends with the first STRING; regex:RE for
    /// anything, as soon as RE matches in it (^ is where the reply begins); close for anything up to
    /// where the server closes.
    #[arg(long, value_name = "SPEC", requires = "send", value_parser = expectation)]
    expect: Option<String>,
}

impl RequestFlags {
    /// All headers that were typed, in whatever way.
    fn headers(&self) -> Result<Vec<String>, Usage> {
        let mut headers = self.headers.clone();
        let kind = self.content_type.iter();
        headers.extend(kind.map(|kind| format!("Content-Type: {kind}")));
        if let Some(user) = &self.user {
            if !user.contains(':') {
                return Err(Usage(
                    "--user needs a name and a password: NAME:PASSWORD".to_owned(),
                ));
            }
            headers.push(format!("Authorization: Basic {}", STANDARD.encode(user)));
        }
        Ok(headers)
    }

    /// Gives a load what was typed.
    pub(super) fn apply(&self, load: &mut LoadSpec) -> Result<(), Usage> {
        if let Some(protocol) = &self.protocol {
            load.protocol = Some(protocol.clone());
        }
        if let Some(size) = &self.size {
            load.size = size.clone();
        }
        if !self.paths.is_empty() {
            let paths = Paths::new(self.paths.clone());
            load.path = Some(paths.map_err(|why| Usage(format!("the mix of --path: {why}")))?);
        }
        load.text |= self.text;
        if let Some(method) = &self.http_method {
            load.http_method = Some(method.clone());
        }
        if let Some(path) = &self.request_file {
            load.request_file = Some(RequestFile::new(path));
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
        if let (Some(sent), Some(expect)) = (&self.send, &self.expect) {
            load.protocol = None;
            load.send = Some(sent.clone());
            load.expect = Some(expect.clone());
        }
        Ok(())
    }
}

/// A load with what is in the files that it names, and a word about what is likely meant otherwise.
pub(super) fn complete(load: LoadSpec) -> Result<LoadSpec, SpecError> {
    if load.looks_variable() {
        output::warning("variables like {n} are sent as they stand; --variables fills them in");
    }
    load.with_files()
}

/// Data, read if it is what standard input says.
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

/// A rule for bodies, kept as it was written.
fn body_rule(spec: &str) -> Result<String, String> {
    BodyRule::parse(spec).map(|_| spec.to_owned())
}

/// A list of statuses, kept as it was written.
fn statuses(list: &str) -> Result<String, String> {
    list.parse::<Statuses>().map(|_| list.to_owned())
}

/// An expectation, kept as it was written.
fn expectation(spec: &str) -> Result<String, String> {
    Expectation::parse(spec).map(|_| spec.to_owned())
}
