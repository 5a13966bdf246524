//! What clients say, and how they know a right answer.

use super::Usage;
use super::values::{self, Destination};
use crate::protocol::{Dialogue, Mix, PROTOCOLS, Settings, parse_weight};
use crate::registry;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// What to say; `throng list protocols` says what there is [default: echo, or http with a URL].
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
}

impl Arguments {
    /// What is said to servers like this one, and how.
    pub(super) fn resolve(
        &self,
        server: &Destination,
    ) -> anyhow::Result<(&'static dyn Dialogue, Settings)> {
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
                    "{} is a URL for http, not for {name}; write HOST:PORT",
                    server.host
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
