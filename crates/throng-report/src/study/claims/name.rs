//! Names of values in a sentence: what they have in common appears once.

use throng_record::format::counted;

/// A value of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Name {
    /// The metric, as used in a sentence.
    pub(super) metric: String,
    /// The server.
    pub(super) server: String,
    /// The part, if the study has several.
    pub(super) part: Option<String>,
    /// The number of clients; `None` for a value over all numbers of clients.
    pub(super) clients: Option<u32>,
}

/// Two values of a metric in a sentence.
pub(super) struct NamedPair {
    /// What both have in common: "In part crowd, with 100 clients, "; empty if nothing.
    pub(super) shared: String,
    /// Both servers, each with what sets it apart: "epoll with 10 clients".
    pub(super) each: [String; 2],
}

impl Name {
    /// "in part crowd, with 100 clients, "
    pub(super) fn circumstances(&self) -> String {
        shared(self.part.as_deref(), self.clients)
    }

    /// This name paired with another.
    pub(super) fn and(&self, other: &Self) -> NamedPair {
        let (same_part, same_clients) = (self.part == other.part, self.clients == other.clients);
        let own = |one: &Self| {
            let mut words = one.server.clone();
            if let Some(part) = one.part.as_ref().filter(|_| !same_part) {
                words += &format!(" in {part}");
            }
            if let Some(clients) = one.clients.filter(|_| !same_clients) {
                words += &format!(" with {}", counted(clients, "client"));
            }
            words
        };
        NamedPair {
            shared: shared(
                self.part.as_deref().filter(|_| same_part),
                self.clients.filter(|_| same_clients),
            ),
            each: [own(self), own(other)],
        }
    }
}

fn shared(part: Option<&str>, clients: Option<u32>) -> String {
    let part = part.map(|part| format!("in part {part}, "));
    let clients = clients.map(|clients| format!("with {}, ", counted(clients, "client")));
    part.into_iter().chain(clients).collect()
}
