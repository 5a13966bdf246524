//! What clients say, and how they know a right answer.

use std::path::PathBuf;

use super::Usage;
use super::values::{self, Destination};
use crate::protocol::{
    Custom, Dialogue, Expectation, LARGEST_SIZE, Mix, PROTOCOLS, Settings, parse_weight, unescape,
};
use crate::registry;

#[derive(Debug, clap::Args)]
pub(super) struct Speech {
    /// What to say; `throng list protocols` says what there is [default: echo, or http with a URL and
    /// where a server that is not throng's own is compared].
    #[arg(long)]
    protocol: Option<String>,
    /// Bytes in a request, for protocols that let you choose: a number like 1000, 64KiB or 10MB; or
    /// several by weight, like 100kB:3,1MB:1. A server's own count of echo requests is right only
    /// for one size.
    #[arg(long, value_name = "BYTES[:WEIGHT],...", default_value = "1000",
          value_parser = values::request_sizes)]
    size: Mix<usize>,
    /// A path to ask for by http; several times for a mix, each with a weight, like /:3 and /news:1.
    /// Of each, what is granted must always have the same length.
    #[arg(long = "path", value_name = "PATH[:WEIGHT]", value_parser = weighted_path)]
    paths: Vec<(&'static str, u32)>,
    /// Instead of a protocol: bytes to send, the same each time. Text may have \r \n \t \0 \xNN and
    /// \\ in it (and begins with \x40 for an @); of a file everything is sent as it is.
    #[arg(long, value_name = "TEXT|@FILE", requires = "expect", value_parser = what_to_send,
          conflicts_with_all = ["protocol", "size", "paths"])]
    send: Option<Sent>,
    /// How a reply to --send ends, and what is right: bytes:N for so many bytes; text:STRING for
    /// exactly this; until:STRING for anything that ends with the first STRING; regex:RE for
    /// anything, as soon as RE matches in it (^ is where the reply begins); close for anything up to
    /// where the server closes.
    #[arg(long, value_name = "SPEC", requires = "send", value_parser = expectation)]
    expect: Option<&'static Expectation>,
}

/// What is sent without a protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Sent {
    Text(Vec<u8>),
    File(PathBuf),
}

impl Speech {
    /// Whether what is sent was written out.
    pub(super) fn is_custom(&self) -> bool {
        self.send.is_some()
    }

    /// The protocol that was named.
    pub(super) fn named_protocol(&self) -> Option<&str> {
        self.protocol.as_deref()
    }

    /// Bytes in the largest request asked for.
    pub(super) fn largest(&self) -> usize {
        self.size.largest()
    }

    /// What is said to servers like this one, and how.
    pub(super) fn resolve(
        &self,
        server: &Destination,
    ) -> anyhow::Result<(&'static dyn Dialogue, Settings)> {
        if let (Some(sent), Some(expectation)) = (&self.send, self.expect) {
            if server.is_url {
                return Err(Usage(format!(
                    "http://{}{} is a URL, but --send says what to ask; write HOST:PORT",
                    server.host, server.path
                ))
                .into());
            }
            let custom = Custom::new(&sent.bytes()?, expectation)
                .map_err(|why| Usage(format!("--send: {why}")))?;
            return Ok((Box::leak(Box::new(custom)), Settings::default()));
        }
        let name = self.name(server)?;
        let protocol = registry::find("protocol", PROTOCOLS, name)?;
        let settings = Settings {
            size: self.size,
            host: server.host,
            paths: self.paths(server, name)?,
        };
        Ok((protocol, settings))
    }

    fn name(&self, server: &Destination) -> anyhow::Result<&str> {
        Ok(match (&self.protocol, server.is_url) {
            (Some(name), true) if name != "http" => {
                return Err(Usage(format!(
                    "http://{}{} is for http, not for {name}; write HOST:PORT",
                    server.host, server.path
                ))
                .into());
            }
            (Some(name), _) => name,
            (None, true) => "http",
            (None, false) => "echo",
        })
    }

    /// The options with which `throng serve` says the same.
    ///
    /// # Errors
    /// When it cannot.
    pub(super) fn served(&self, server: &Destination) -> anyhow::Result<Vec<String>> {
        if self.send.is_some() {
            return Err(Usage(
                "--calibrate needs a protocol that throng serves too, not --send".to_owned(),
            )
            .into());
        }
        let size = self.size.largest();
        let options = [
            ("--protocol", self.name(server)?.to_owned()),
            ("--size", size.to_string()),
            ("--max-upload", u64::MAX.to_string()),
        ];
        let words = options.map(|(name, value)| [name.to_owned(), value]);
        Ok(words.into_iter().flatten().collect())
    }

    fn paths(&self, server: &Destination, protocol: &str) -> Result<Mix<&'static str>, Usage> {
        if self.paths.is_empty() {
            return Ok(Mix::One(server.path));
        }
        if protocol != "http" {
            let what = format!("--path is for http, not for {protocol}; add --protocol http");
            return Err(Usage(what));
        }
        if server.path != "/" {
            return Err(Usage(format!(
                "{} stands behind the address and --path names others; write all of them with --path",
                server.path
            )));
        }
        Mix::new(&self.paths).map_err(|why| Usage(format!("the mix of --path: {why}")))
    }
}

impl Sent {
    fn bytes(&self) -> Result<Vec<u8>, Usage> {
        let path = match self {
            Self::Text(bytes) => return Ok(bytes.clone()),
            Self::File(path) => path,
        };
        let bytes = std::fs::read(path)
            .map_err(|error| Usage(format!("--send: cannot read {}: {error}", path.display())))?;
        if bytes.len() > LARGEST_SIZE {
            return Err(Usage(format!(
                "--send: {} has more than {LARGEST_SIZE} bytes",
                path.display()
            )));
        }
        Ok(bytes)
    }
}

fn what_to_send(text: &str) -> Result<Sent, String> {
    match text.strip_prefix('@') {
        Some("") => Err("the name of a file has to follow the @".to_owned()),
        Some(path) => Ok(Sent::File(path.into())),
        None => unescape(text).map(Sent::Text),
    }
}

/// An expectation, which lives as long as the program.
fn expectation(spec: &str) -> Result<&'static Expectation, String> {
    Expectation::parse(spec).map(|expectation| &*Box::leak(Box::new(expectation)))
}

/// A path, and a weight if what follows the last colon is a number. It lives as long as the program.
fn weighted_path(text: &str) -> Result<(&'static str, u32), String> {
    let weight = text.rsplit_once(':').filter(|(_, weight)| {
        !weight.is_empty() && weight.bytes().all(|byte| byte.is_ascii_digit())
    });
    let (path, weight) = match weight {
        Some((path, weight)) => (path, parse_weight(weight)?),
        None => (text, 1),
    };
    if !path.starts_with('/') {
        return Err(format!("`{path}` is no path; it begins with a slash"));
    }
    if !path.bytes().all(|byte| byte.is_ascii_graphic()) || path.contains('#') {
        return Err(format!(
            "`{path}` has characters that must be written as %XX"
        ));
    }
    Ok((path.to_owned().leak(), weight))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_text_or_a_file() {
        assert_eq!(
            what_to_send("PING\\r\\n"),
            Ok(Sent::Text(b"PING\r\n".to_vec()))
        );
        assert_eq!(what_to_send("\\x40a"), Ok(Sent::Text(b"@a".to_vec())));
        assert_eq!(what_to_send("@a/b"), Ok(Sent::File("a/b".into())));
        assert!(what_to_send("@").is_err());
        assert!(what_to_send("\\q").is_err());
    }

    #[test]
    fn a_path_may_have_a_weight() {
        assert_eq!(weighted_path("/"), Ok(("/", 1)));
        assert_eq!(weighted_path("/a:3"), Ok(("/a", 3)));
        assert_eq!(weighted_path("/a:3:2"), Ok(("/a:3", 2)));
        assert_eq!(weighted_path("/a:b?c=d"), Ok(("/a:b?c=d", 1)));
        assert_eq!(weighted_path("/a:"), Ok(("/a:", 1)));
        for (wrong, why) in [
            ("", "begins with a slash"),
            ("a", "begins with a slash"),
            ("/a:0", "at least 1"),
            ("/a:99999999999", "is no weight"),
            ("/a b", "%XX"),
            ("/a#b", "%XX"),
            ("/\u{e4}", "%XX"),
        ] {
            let error = weighted_path(wrong).unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }
}
