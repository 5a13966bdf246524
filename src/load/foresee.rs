//! What a load would run into, known before it starts.

use std::fmt;

/// What this machine gives a process that makes connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resources {
    /// Descriptors a process may have, at most.
    pub descriptors: Option<u64>,
    /// First and last ephemeral port.
    pub ports: Option<(u16, u16)>,
}

/// Descriptors a load generator needs beside one a client.
pub const OWN_DESCRIPTORS: u64 = 32;

/// More clients than this machine lets one load have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shortage {
    /// Of descriptors.
    Descriptors {
        /// Clients wanted.
        wanted: u32,
        /// The limit.
        limit: u64,
    },
    /// Of local ports for one destination.
    Ports {
        /// Clients wanted.
        wanted: u32,
        /// How many there are.
        ports: u32,
        /// First and last.
        range: (u16, u16),
    },
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Descriptors { wanted, limit } => write!(
                f,
                "{wanted} clients need {} descriptors and a process may have {limit}; \
                 raise the hard limit (ulimit -Hn) or take at most {} clients",
                u64::from(*wanted) + OWN_DESCRIPTORS,
                limit.saturating_sub(OWN_DESCRIPTORS),
            ),
            Self::Ports {
                wanted,
                ports,
                range,
            } => write!(
                f,
                "{wanted} clients need as many local ports and there are {ports} ({} to {}) for \
                 one destination; widen net.ipv4.ip_local_port_range or take at most {ports} \
                 clients",
                range.0, range.1,
            ),
        }
    }
}

impl std::error::Error for Shortage {}

/// Checks that so many clients can exist.
///
/// # Errors
/// The first thing there is too little of.
pub fn check(clients: u32, resources: &Resources) -> Result<(), Shortage> {
    if let Some(limit) = resources.descriptors
        && u64::from(clients) + OWN_DESCRIPTORS > limit
    {
        return Err(Shortage::Descriptors {
            wanted: clients,
            limit,
        });
    }
    if let Some(range) = resources.ports {
        let ports = u32::from(range.1.saturating_sub(range.0)) + 1;
        if clients > ports {
            return Err(Shortage::Ports {
                wanted: clients,
                ports,
                range,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESOURCES: Resources = Resources {
        descriptors: Some(20_000),
        ports: Some((32_768, 33_767)),
    };

    #[test]
    fn enough_is_enough() {
        assert_eq!(check(1000, &RESOURCES), Ok(()));
    }

    #[test]
    fn names_the_limit_and_the_remedy() {
        let ports = check(1001, &RESOURCES).unwrap_err().to_string();
        assert!(ports.contains("there are 1000 (32768 to 33767)"), "{ports}");
        let descriptors = check(19_969, &RESOURCES).unwrap_err().to_string();
        assert!(descriptors.contains("may have 20000"), "{descriptors}");
        assert!(
            descriptors.contains("at most 19968 clients"),
            "{descriptors}"
        );
    }
}
