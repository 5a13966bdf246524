//! The traced system calls of one request.

use serde::{Deserialize, Serialize};

/// The steps of a server for one client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traced {
    /// The system and its kernel: "Linux 6.18".
    pub system: String,
    /// The request: "echo of 1000 bytes".
    pub asked: String,
    /// The options of the server.
    pub options: String,
    /// A client that connects, sends a request and disconnects.
    pub steps: Vec<Step>,
}

/// A step of the client, and the server's calls for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The step.
    pub about: ClientStep,
    /// The server's calls, in order.
    pub calls: Vec<Call>,
}

/// A step of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientStep {
    /// It connects.
    Comes,
    /// It sends a request, not its first one.
    Asks,
    /// It closes its connection.
    Leaves,
}

/// A system call, or another event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The thread or process.
    pub who: String,
    /// The name of the call; for other events, their kind: "signal".
    pub name: String,
    /// Its arguments, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arguments: String,
    /// Its result, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub outcome: String,
    /// Its relation to the step.
    pub kind: Kind,
    /// Number of repetitions, alone or together with its neighbours.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub times: usize,
}

/// The relation of a call to its step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Made in it.
    Made,
    /// Begun before it: the thread slept in it until now.
    Woken,
    /// Begun in it, and not finished at its end: the thread sleeps in it from now on.
    Sleeps,
    /// Not a call, but an event of the kernel.
    Event,
}

fn once() -> usize {
    1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_once(times: &usize) -> bool {
    *times == 1
}

impl Traced {
    /// The calls of a step; empty if there is no such step.
    pub fn step(&self, about: ClientStep) -> &[Call] {
        let step = self.steps.iter().find(|step| step.about == about);
        step.map_or(&[], |step| &step.calls)
    }
}

impl Call {
    /// Whether it is a system call and counts for its step.
    pub fn counts(&self) -> bool {
        matches!(self.kind, Kind::Made | Kind::Sleeps)
    }
}

/// Merges repeated calls, alone or in groups of up to four, into one with their number.
pub fn gathered(calls: &[Call]) -> Vec<Call> {
    const LONGEST: usize = 4;
    const FEWEST: usize = 3;
    let mut gathered: Vec<Call> = Vec::new();
    let mut rest = calls;
    while !rest.is_empty() {
        let found = (1..=LONGEST).find_map(|length| {
            let group = rest.get(..length)?;
            let times = rest
                .chunks_exact(length)
                .take_while(|next| *next == group)
                .count();
            (times >= FEWEST).then_some((length, times))
        });
        let (length, times) = found.unwrap_or((1, 1));
        gathered.extend(
            rest[..length]
                .iter()
                .cloned()
                .map(|call| Call { times, ..call }),
        );
        rest = &rest[length * times..];
    }
    gathered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str) -> Call {
        Call {
            who: "server".to_owned(),
            name: name.to_owned(),
            arguments: String::new(),
            outcome: String::new(),
            kind: Kind::Made,
            times: 1,
        }
    }

    #[test]
    fn rounds_are_gathered() {
        let named = |names: &str| names.split(' ').map(call).collect::<Vec<_>>();
        let reported = |names: &str| {
            let gathered = gathered(&named(names));
            let words = gathered.iter().map(|call| match call.times {
                1 => call.name.clone(),
                times => format!("{}*{times}", call.name),
            });
            words.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(reported("poll recv send poll"), "poll recv send poll");
        assert_eq!(reported("a b a b a b a c"), "a*3 b*3 a c");
        assert_eq!(reported("x a a a a"), "x a*4");
        assert_eq!(reported("a a b"), "a a b");
    }
}
