//! The dialogue of a load's clients.

use super::{Close, Data, LoadSpec, Paths, Payload, SpecError, files};
use crate::registry;
use throng_protocol::{
    BodyRule, Custom, Dialogue, Expectation, HttpRequest, Mix, PROTOCOLS, RequestPart, Settings,
    has_variables,
};

impl LoadSpec {
    /// The dialogue with a server of this [name](super::Target::host). It lives as long as the program.
    ///
    /// # Errors
    /// The wrong key of the load.
    pub fn dialogue(&self, host: &str) -> Result<(&'static dyn Dialogue, Settings), SpecError> {
        if let (Some(sent), Some(expect)) = (&self.send, &self.expect) {
            let expectation =
                Expectation::parse(expect).map_err(|why| SpecError::value("expect", why))?;
            let custom = Custom::new(&self.sent_bytes(sent)?, Box::leak(Box::new(expectation)))
                .map_err(|why| SpecError::value("send", format!("`send`: {why}")))?;
            return Ok((Box::leak(Box::new(custom)), Settings::default()));
        }
        let name = self.protocol.as_deref().unwrap_or("echo");
        let protocol = registry::find("protocol", PROTOCOLS, name)
            .map_err(|unknown| SpecError::value("protocol", unknown.to_string()))?;
        // The default port is left out.
        let usual = if self.tls.is_some() { ":443" } else { ":80" };
        let host = host.strip_suffix(usual).unwrap_or(host);
        let flow = self.flow()?;
        let feed = flow
            .map(|flow| &flow.feed)
            .or(self.feed()?.map(|(feed, _)| feed));
        let settings = Settings {
            size: Mix::new(self.size.parts()).map_err(|why| SpecError::value("size", why))?,
            host: host.to_owned().leak(),
            requests: self.http_requests()?,
            cookies: self.cookies,
            flow: flow.filter(|flow| !Self::is_plain_flow(flow)),
            feed,
            clients: self.clients.into(),
            seed: self.seed,
            expected: self.expected_statuses()?,
            length: self.expect_length,
            body: self.body_rule()?.map(|rule| &*Box::leak(Box::new(rule))),
            text: self.text,
            is_encrypted: self.tls.is_some(),
        };
        Ok((protocol, settings))
    }

    /// The name of its protocol in TLS's ALPN, if it has one.
    pub fn alpn(&self) -> Option<&'static str> {
        let name = self.protocol.as_deref()?;
        let protocol = registry::find("protocol", PROTOCOLS, name).ok()?;
        protocol.alpn()
    }

    /// The HTTP requests of clients.
    fn http_requests(&self) -> Result<Mix<&'static HttpRequest>, SpecError> {
        if let Some(flow) = self.flow()? {
            let steps = flow.steps.iter();
            return Ok(HttpRequest::intern(
                steps.map(|step| (step.as_request(), 1)).collect(),
            ));
        }
        if let Some(file) = &self.request_file {
            let names = self.variable_names()?;
            return file.requests(&self.headers(), (self.variables, names), &self.files);
        }
        let data = self.data.as_ref().map(|data| data.bytes(&self.files));
        let body = match &self.proto {
            Some(proto) => Some(self.grpc_message(proto, data.transpose()?.as_deref())?),
            None => data.transpose()?,
        };
        let mut parts = Vec::new();
        for (path, weight) in self.paths().parts() {
            let request = self.http_request(path, body.clone())?;
            parts.push((request, *weight));
        }
        Ok(HttpRequest::intern(parts))
    }

    /// Whether each request asks the server to close, since no other request follows on its connection. Clients that
    /// close with a reset do it themselves.
    pub fn asks_to_close(&self) -> bool {
        self.protocol.as_deref() == Some("http")
            && self.requests_per_connection == Some(1)
            && self.close == Close::Orderly
    }

    /// The headers of all requests.
    pub(super) fn headers(&self) -> Vec<String> {
        let mut headers = self.header.clone();
        let is_given = |header: &String| {
            let name = header.split(':').next().unwrap_or_default();
            name.eq_ignore_ascii_case("connection")
        };
        if self.asks_to_close() && !headers.iter().any(is_given) {
            headers.push("Connection: close".to_owned());
        }
        headers
    }

    /// The requests for one path.
    fn http_request(&self, path: &str, body: Option<Vec<u8>>) -> Result<HttpRequest, SpecError> {
        let plain = HttpRequest::new(self.http_method.as_deref(), path, &self.headers(), body);
        let names = self.variable_names()?;
        let request = plain.and_then(|request| request.with_variables_if(self.variables, names));
        request.map_err(|(part, why)| {
            let key = match part {
                RequestPart::Method => "http-method",
                RequestPart::Path => "path",
                RequestPart::Header => "header",
                RequestPart::Body => "data",
            };
            SpecError::value(key, why)
        })
    }

    /// Whether text that looks like a variable is sent literally, without --variables.
    pub fn looks_variable(&self) -> bool {
        let paths = self.path.iter().flat_map(Paths::parts);
        let texts = paths.map(|(path, _)| path).chain(&self.header);
        !self.variables && texts.map(String::as_bytes).any(has_variables)
    }

    /// The check of http reply bodies.
    pub(super) fn body_rule(&self) -> Result<Option<BodyRule>, SpecError> {
        let rule = self.expect_body.as_deref().map(BodyRule::parse);
        rule.transpose()
            .map_err(|why| SpecError::value("expect-body", why))
    }

    /// Rejects impossible requests.
    pub(super) fn check_requests(&self) -> Result<(), SpecError> {
        // The sender checks whether a file can be read.
        let body = match &self.data {
            Some(Data::Text(text)) => Some(text.clone().into_bytes()),
            Some(Data::File(_)) => Some(Vec::new()),
            None => None,
        };
        for (path, _) in self.paths().parts() {
            self.http_request(path, body.clone())?;
        }
        Ok(())
    }

    /// The bytes to send.
    fn sent_bytes(&self, sent: &Payload) -> Result<Vec<u8>, SpecError> {
        match sent {
            Payload::Text(bytes) => Ok(bytes.clone()),
            Payload::File(path) => files::read("send", path, &self.files),
        }
    }
}
