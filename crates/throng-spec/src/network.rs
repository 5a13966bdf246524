//! Source addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::text::as_text;

/// Consecutive addresses, written as `10.1.0.0/16` or `::1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    /// The first address.
    base: IpAddr,
    /// Common leading bits.
    prefix: u32,
}

impl Network {
    /// The first address.
    pub fn base(&self) -> IpAddr {
        self.base
    }

    /// Bits in which the addresses differ.
    pub fn host_bits(&self) -> u32 {
        width(self.base) - self.prefix
    }
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not an address or a network; write it like 10.0.0.7 or 127.0.1.0/24"
            )
        };
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let ip: IpAddr = address.parse().map_err(|_| wrong())?;
        let width = width(ip);
        let bits = prefix.map_or(Ok(width), str::parse).map_err(|_| wrong())?;
        let host_bits = width.checked_sub(bits).ok_or_else(wrong)?;
        let base = match ip {
            IpAddr::V4(ip) => {
                let kept = u64::from(ip.to_bits()) >> host_bits << host_bits;
                Ipv4Addr::from_bits(kept as u32).into()
            }
            IpAddr::V6(ip) => {
                let kept = ip.to_bits().checked_shr(host_bits).unwrap_or(0);
                Ipv6Addr::from_bits(kept.checked_shl(host_bits).unwrap_or(0)).into()
            }
        };
        Ok(Self { base, prefix: bits })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.base.fmt(f)?;
        if self.host_bits() > 0 {
            write!(f, "/{}", self.prefix)?;
        }
        Ok(())
    }
}

as_text!(
    Network,
    "an address or a network, like \"10.0.0.7\" or \"127.0.1.0/24\""
);
