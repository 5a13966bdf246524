//! What the clients of a load say, from what is asked for.

use super::{Data, LoadSpec, Sent, SpecError, data};
use throng_protocol::{
    BodyRule, Custom, Dialogue, Expectation, HttpRequest, Mix, PROTOCOLS, Settings,
};
use throng_registry as registry;

impl LoadSpec {
    /// What is said to a server at this address, HOST:PORT, and how. It lives as long as the program.
    ///
    /// # Errors
    /// Names the key of the load that is wrong.
    pub fn dialogue(&self, address: &str) -> Result<(&'static dyn Dialogue, Settings), SpecError> {
        if let (Some(sent), Some(expect)) = (&self.send, &self.expect) {
            let expectation = Expectation::parse(expect);
            let expectation = expectation.map_err(|why| SpecError::value("expect", why))?;
            let custom = Custom::new(&bytes(sent)?, Box::leak(Box::new(expectation)))
                .map_err(|why| SpecError::value("send", format!("`send`: {why}")))?;
            return Ok((Box::leak(Box::new(custom)), Settings::default()));
        }
        let name = self.protocol.as_deref().unwrap_or("echo");
        let protocol = registry::find("protocol", PROTOCOLS, name)
            .map_err(|unknown| SpecError::value("protocol", unknown.to_string()))?;
        let paths: Vec<(&'static str, u32)> = self
            .paths()
            .parts()
            .iter()
            .map(|(path, weight)| (&*path.clone().leak(), *weight))
            .collect();
        // A port that is usual is not named.
        let usual = if self.tls.is_some() { ":443" } else { ":80" };
        let host = address.strip_suffix(usual).unwrap_or(address);
        let settings = Settings {
            size: Mix::new(self.size.parts()).map_err(|why| SpecError::value("size", why))?,
            host: host.to_owned().leak(),
            paths: Mix::new(&paths).map_err(|why| SpecError::value("path", why))?,
            request: Box::leak(Box::new(self.http_request()?)),
            expected: self.expected_statuses()?,
            length: self.expect_length,
            body: self.body_rule()?.map(|rule| &*Box::leak(Box::new(rule))),
        };
        Ok((protocol, settings))
    }

    /// What requests by http say beside their path.
    fn http_request(&self) -> Result<HttpRequest, SpecError> {
        let body = self.data.as_ref().map(Data::bytes).transpose()?;
        let request = HttpRequest::new(self.http_method.as_deref(), &self.header, body);
        let of_method = HttpRequest::new(self.http_method.as_deref(), &[], None).is_err();
        let key = if of_method { "http-method" } else { "header" };
        request.map_err(|why| SpecError::value(key, why))
    }

    /// The rule for bodies of replies by http.
    pub(super) fn body_rule(&self) -> Result<Option<BodyRule>, SpecError> {
        let rule = self.expect_body.as_deref().map(BodyRule::parse);
        rule.transpose()
            .map_err(|why| SpecError::value("expect-body", why))
    }

    /// Refuses methods and headers that no request can have.
    pub(super) fn check_request(&self) -> Result<(), SpecError> {
        // Whether a file can be read is for those who send it to see.
        Self {
            data: None,
            ..self.clone()
        }
        .http_request()
        .map(|_| ())
    }
}

/// The bytes to send.
fn bytes(sent: &Sent) -> Result<Vec<u8>, SpecError> {
    match sent {
        Sent::Text(bytes) => Ok(bytes.clone()),
        Sent::File(path) => data::read("send", path),
    }
}
