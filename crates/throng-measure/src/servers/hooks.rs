//! Command lines of a server: placeholders for its address, and the commands before and after all of its trials, or
//! each one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use super::ports;
use super::socket_file::SocketFile;
use crate::processes::process::{OutputCapture, Process, Unfinished};
use crate::stage::{Halt, Stage, failed};
use throng_record::{FailedStage, ServerInfo};
use throng_spec::Endpoint;
use throng_sys::signal::Stop;

/// Maximum ports that a server can request.
pub const MOST_PORTS: usize = 9;
/// Attempts to get a port that differs from the others.
const TRIES: u32 = 100;

/// Placeholder of the path of a unix socket in a command line.
const SOCKET: &str = "{socket}";

/// Where a server listens, or should listen.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// ADDRESS:PORT.
    pub(crate) address: String,
    /// Its port, and further free ones: `{port}`, `{port2}`, `{port3}`, ...
    pub(crate) ports: Vec<u16>,
    /// The unix socket to listen on instead.
    socket: Option<Arc<SocketFile>>,
}

impl Place {
    /// The free ports that a server requests.
    ///
    /// # Errors
    /// What is missing.
    pub(crate) fn free(info: &ServerInfo, at: IpAddr) -> Result<Self, String> {
        let mut ports: Vec<u16> = Vec::new();
        let mut tries = 0;
        while ports.len() < ports_asked_for(info) {
            let port = ports::free()
                .ok()
                .filter(|_| tries < TRIES)
                .ok_or("there is no free port")?;
            tries += 1;
            if !ports.contains(&port) {
                ports.push(port);
            }
        }
        let wants_socket = info.command.iter().any(|word| word.contains(SOCKET));
        let socket = wants_socket.then(SocketFile::new).transpose()?;
        Ok(Self {
            address: SocketAddr::new(at, ports[0]).to_string(),
            ports,
            socket: socket.map(Arc::new),
        })
    }

    /// A place on loopback with every port, before the first trial.
    pub(crate) fn example() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)).to_string(),
            ports: vec![1; MOST_PORTS],
            socket: None,
        }
    }

    /// An existing address: HOST:PORT.
    pub(crate) fn of(address: &str) -> Self {
        let port = address
            .rsplit(':')
            .next()
            .and_then(|port| port.parse().ok());
        Self {
            address: address.to_owned(),
            ports: port.into_iter().collect(),
            socket: None,
        }
    }

    /// Candidate addresses. Many servers listen on only one of the two loopback addresses.
    pub(crate) fn endpoints(&self) -> Vec<Endpoint> {
        if let Some(socket) = &self.socket {
            return vec![socket.endpoint()];
        }
        let Ok(address) = self.address.parse::<SocketAddr>() else {
            return Vec::new();
        };
        let mut addresses = vec![address];
        if address.ip() == IpAddr::V4(Ipv4Addr::LOCALHOST) {
            addresses.push((Ipv6Addr::LOCALHOST, address.port()).into());
        }
        addresses.into_iter().map(Endpoint::from).collect()
    }

    /// As text.
    pub(crate) fn in_words(&self) -> String {
        match &self.socket {
            Some(socket) => format!("the unix socket {}", socket.written()),
            None => self.address.clone(),
        }
    }

    /// A word with its placeholders replaced.
    pub(crate) fn substitute(&self, word: &str) -> String {
        let mut word = word.replace("{address}", &self.address);
        if let Some(socket) = &self.socket {
            word = word.replace(SOCKET, &socket.written());
        }
        for (place, port) in self.ports.iter().enumerate() {
            word = word.replace(&name_of(place), &port.to_string());
        }
        word
    }
}

/// The placeholder of a port in a command line.
fn name_of(place: usize) -> String {
    match place {
        0 => "{port}".to_owned(),
        place => format!("{{port{}}}", place + 1),
    }
}

/// The number of ports that a server requests, at least one.
fn ports_asked_for(info: &ServerInfo) -> usize {
    let foreign = info.foreign.as_ref();
    let ready = foreign.and_then(|foreign| foreign.ready.as_ref());
    let words: Vec<&String> = [&info.command, &info.prepare, &info.conclude]
        .into_iter()
        .flatten()
        .chain(ready)
        .collect();
    let is_named = |place: &usize| words.iter().any(|word| word.contains(&name_of(*place)));
    let highest = (1..MOST_PORTS).rev().find(is_named);
    highest.map_or(1, |place| place + 1)
}

/// A command line with the environment and directory of a server, and with its address filled in.
pub(crate) fn command(info: &ServerInfo, words: &[String], place: Option<&Place>) -> Command {
    let mut substituted = words
        .iter()
        .map(|word| place.map_or_else(|| word.clone(), |place| place.substitute(word)));
    let mut command = Command::new(substituted.next().unwrap_or_default());
    command.args(substituted);
    command.envs(&info.environment);
    if let Some(directory) = &info.cwd {
        command.current_dir(directory);
    }
    for (number, port) in place
        .iter()
        .flat_map(|place| place.ports.iter().enumerate())
    {
        let name = match number {
            0 => "PORT".to_owned(),
            number => format!("PORT{}", number + 1),
        };
        command.env(name, port.to_string());
    }
    command
}

/// Runs a command line to its end, and fails if the command does. `stage` is the name of its option.
pub(crate) fn run(
    stage: FailedStage,
    command: Command,
    limit: Duration,
    heed: Option<Stop>,
) -> Stage<()> {
    let what = format!("the command of --{stage}");
    let started = Process::start(&what, command, &[], OutputCapture::Output);
    let mut process =
        started.or_else(|error| failed(stage, format!("{error:#}"), String::new()))?;
    process.is_outlived();
    match process.finish(limit, heed) {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => failed(stage, process.ending(), process.output()),
        Err(Unfinished::Interrupted) => Err(Halt::Interrupted),
        Err(Unfinished::Late) => failed(
            stage,
            format!("{what} did not finish within {limit:?} (--hook-timeout)"),
            process.output(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(command: &[&str]) -> ServerInfo {
        ServerInfo {
            command: command.iter().map(ToString::to_string).collect(),
            cwd: Some("/tmp".to_owned()),
            ..ServerInfo::default()
        }
    }

    #[test]
    fn a_server_has_as_many_ports_as_it_names() {
        let localhost = std::net::Ipv4Addr::LOCALHOST.into();
        let none = Place::free(&server(&["a"]), localhost).unwrap();
        assert_eq!(none.ports.len(), 1);
        let info = server(&["a", "--admin={port3}", "{address}:{port}"]);
        let place = Place::free(&info, localhost).unwrap();
        let [one, two, three] = place.ports[..] else {
            panic!("{place:?}");
        };
        assert!(one != two && two != three && one != three);
        let command = command(&info, &info.command, Some(&place));
        let words: Vec<String> = command
            .get_args()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        assert_eq!(words[0], format!("--admin={three}"));
        assert_eq!(words[1], format!("127.0.0.1:{one}:{one}"));
        let variables: Vec<_> = command.get_envs().map(|(name, _)| name).collect();
        assert_eq!(variables, ["PORT", "PORT2", "PORT3"]);
        assert_eq!(
            command.get_current_dir(),
            Some(std::path::Path::new("/tmp"))
        );
    }

    #[test]
    fn a_place_that_is_there_has_its_own_port() {
        let place = Place::of("localhost:8080");
        assert_eq!(
            place.substitute("{port} at {address}"),
            "8080 at localhost:8080"
        );
        assert_eq!(place.substitute("{port2}"), "{port2}");
    }
}
