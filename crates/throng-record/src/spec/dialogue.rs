//! What the clients of a load say, from what is asked for.

use super::{LoadSpec, Sent, SpecError};
use throng_protocol::{Custom, Dialogue, Expectation, LARGEST_SIZE, Mix, PROTOCOLS, Settings};
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
        let host = address.strip_suffix(":80").unwrap_or(address);
        let settings = Settings {
            size: Mix::new(self.size.parts()).map_err(|why| SpecError::value("size", why))?,
            host: host.to_owned().leak(),
            paths: Mix::new(&paths).map_err(|why| SpecError::value("path", why))?,
            expected: self.expected_statuses()?,
        };
        Ok((protocol, settings))
    }
}

/// The bytes to send.
fn bytes(sent: &Sent) -> Result<Vec<u8>, SpecError> {
    let path = match sent {
        Sent::Text(bytes) => return Ok(bytes.clone()),
        Sent::File(path) => path,
    };
    let refused = |why: String| SpecError::value("send", format!("`send`: {why}"));
    let bytes = std::fs::read(path)
        .map_err(|error| refused(format!("cannot read {}: {error}", path.display())))?;
    if bytes.len() > LARGEST_SIZE {
        return Err(refused(format!(
            "{} has more than {LARGEST_SIZE} bytes",
            path.display()
        )));
    }
    Ok(bytes)
}
