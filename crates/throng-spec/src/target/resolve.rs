//! Name resolution.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use super::{Endpoint, Place, Target};

/// Connection timeout per address before the next one is tried.
const TIMEOUT: Duration = Duration::from_millis(500);

impl Target {
    /// The address to connect to. Of several addresses, this is the first that accepts a connection, or else the first
    /// one. Only addresses of this machine count, unless others are allowed.
    ///
    /// # Errors
    /// When the name has no address, or no allowed one.
    pub fn endpoint(&self, allow_remote: bool) -> Result<Endpoint, String> {
        let mut endpoints = self.endpoints(allow_remote)?;
        let takes = |endpoint: &Endpoint| {
            let address = endpoint.tcp();
            address.is_some_and(|address| TcpStream::connect_timeout(&address, TIMEOUT).is_ok())
        };
        // A single address is not tried: a server should not see connections without requests.
        let chosen = match endpoints.len() {
            1 => 0,
            _ => endpoints.iter().position(takes).unwrap_or(0),
        };
        Ok(endpoints.swap_remove(chosen))
    }

    /// All its addresses, in the system's order.
    ///
    /// # Errors
    /// When the name has no address, or no allowed one.
    pub fn endpoints(&self, allow_remote: bool) -> Result<Vec<Endpoint>, String> {
        let (name, port) = match &self.place {
            Place::Unix(path) => return Ok(vec![Endpoint::Unix(path.clone())]),
            Place::Host { name, port } => (name, *port),
        };
        let found = (name.as_str(), port)
            .to_socket_addrs()
            .map_err(|error| format!("cannot look up {name}: {}", plainly(&error)))?;
        let mut addresses: Vec<SocketAddr> = Vec::new();
        for address in found {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        let Some(first) = addresses.first().copied() else {
            return Err(format!("{name} has no address"));
        };
        let endpoints = addresses.into_iter().map(Endpoint::from);
        let allowed: Vec<Endpoint> = endpoints
            .filter(|endpoint| allow_remote || endpoint.is_local())
            .collect();
        if allowed.is_empty() {
            let address = first.ip();
            let what = if address.to_string() == *name {
                name.clone()
            } else {
                format!("{name} ({address})")
            };
            return Err(format!(
                "{what} is not on this machine's loopback, and a load can harm servers; add --allow-remote if the \
                 server is yours"
            ));
        }
        Ok(allowed)
    }
}

/// The resolver's message, without the words that Rust adds.
pub(super) fn plainly(error: &std::io::Error) -> String {
    let text = error.to_string();
    let known = text.strip_prefix("failed to lookup address information: ");
    known.unwrap_or(&text).to_lowercase()
}
