//! The trials of a record that match a query, and the clients of one trial.

use std::path::Path;

use super::address::value;
use super::progress::EndedTrial;
use throng_record::{self as record, Trial, read_trials};
use throng_report::clients::{OneClient, read_of};
use throng_report::series::TimeSeries;

/// A query for trials.
#[derive(Debug, Default)]
pub(super) struct TrialQuery {
    /// The server of the trials; `None` for all servers.
    pub(super) server: Option<String>,
    /// The number of clients; `None` for all trials.
    pub(super) clients: Option<u32>,
    /// The page, from 1.
    pub(super) page: usize,
    pub(super) trials: Vec<EndedTrial>,
}

impl TrialQuery {
    /// The matching trials of a record.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(super) fn of(directory: &Path, query: &str) -> anyhow::Result<Self> {
        let mut selected = Self {
            server: value(query, "server"),
            clients: value(query, "clients").and_then(|clients| clients.parse().ok()),
            page: page(query),
            trials: Vec::new(),
        };
        let trials = read_trials(directory)?;
        let is_meant = |trial: &&Trial| {
            let clients = selected
                .clients
                .is_none_or(|clients| clients == trial.clients);
            let server = selected.server.as_ref();
            clients && server.is_none_or(|server| *server == trial.server)
        };
        selected.trials = trials.iter().filter(is_meant).map(EndedTrial::of).collect();
        Ok(selected)
    }
}

/// The page in a query, from 1.
fn page(query: &str) -> usize {
    let page = value(query, "page").and_then(|page| page.parse().ok());
    page.unwrap_or(1).max(1)
}

/// The order of clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Order {
    /// By number.
    #[default]
    Number,
    /// Clients with errors first, then those without a reply, then by the time to the first reply, longest first.
    Slowest,
    /// Clients with the fewest replies first.
    Fewest,
    /// Clients with the most replies first.
    Most,
}

impl Order {
    pub(super) const ALL: [Self; 4] = [Self::Number, Self::Slowest, Self::Fewest, Self::Most];

    /// Its name in URLs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Slowest => "slowest",
            Self::Fewest => "fewest",
            Self::Most => "most",
        }
    }

    /// Its title on a page.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Slowest => "errors and slowest first reply",
            Self::Fewest => "fewest replies",
            Self::Most => "most replies",
        }
    }

    fn sort(self, clients: &mut [OneClient]) {
        match self {
            Self::Number => clients.sort_by_key(|client| client.number),
            Self::Slowest => clients.sort_by(|one, other| {
                let of = |client: &OneClient| {
                    let first = client.first_reply_us.unwrap_or(f64::INFINITY);
                    (client.error.is_empty(), -first)
                };
                let (one, other) = (of(one), of(other));
                one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
            }),
            Self::Fewest => clients.sort_by_key(|client| client.window_replies),
            Self::Most => clients.sort_by_key(|client| std::cmp::Reverse(client.window_replies)),
        }
    }
}

/// A trial with all its data.
pub(super) struct TrialDetail {
    pub(super) trial: Trial,
    pub(super) series: Option<TimeSeries>,
    /// Its clients in the chosen order; `None` if it has no file of clients.
    pub(super) clients: Option<Vec<OneClient>>,
    pub(super) order: Order,
    /// The page of its clients, from 1.
    pub(super) page: usize,
    /// Its line in the record, indented.
    pub(super) raw: String,
    /// Whether it has a file of samples.
    pub(super) has_samples: bool,
    /// Errors from unreadable files.
    pub(super) problems: Vec<String>,
}

impl TrialDetail {
    /// The trial that a query selects; `None` if there is no such trial.
    ///
    /// # Errors
    /// When the trials cannot be read. Other unreadable files are listed on its page.
    pub(super) fn of(directory: &Path, query: &str) -> anyhow::Result<Option<Self>> {
        let Some(trial) = trial(directory, query)? else {
            return Ok(None);
        };
        let order = value(query, "order").unwrap_or_default();
        let order = Order::ALL.into_iter().find(|one| one.name() == order);
        let order = order.unwrap_or_default();
        let mut problems = Vec::new();
        let mut clients = read_of(directory, &trial).unwrap_or_else(|error| {
            problems.push(format!("{error:#}"));
            None
        });
        if let Some(clients) = &mut clients {
            order.sort(clients);
        }
        let series = TimeSeries::read(directory, &trial);
        let series = series
            .map_err(|error| problems.push(format!("{error:#}")))
            .ok();
        Ok(Some(Self {
            raw: serde_json::to_string_pretty(&trial)?,
            has_samples: file_of(directory, "samples", &trial).is_some(),
            page: page(query),
            trial,
            series,
            clients,
            order,
            problems,
        }))
    }
}

/// The trial with the index in a query; `None` if there is no such trial.
///
/// # Errors
/// When they cannot be read.
pub(super) fn trial(directory: &Path, query: &str) -> anyhow::Result<Option<Trial>> {
    let index: Option<u32> = value(query, "index").and_then(|index| index.parse().ok());
    let Some(index) = index else {
        return Ok(None);
    };
    let trials = read_trials(directory)?;
    let is_meant = |trial: &Trial| trial.index == index;
    Ok(trials.into_iter().find(is_meant))
}

/// The file of a trial in the directory `part` of its record, if it exists.
pub(super) fn file_of(directory: &Path, part: &str, trial: &Trial) -> Option<std::fs::File> {
    let name = trial.file_stem() + ".csv";
    record::open_in(directory, part, &name).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_come_in_the_order_that_was_asked_for() {
        let client = |number, first_reply_us, window_replies, error: &str| OneClient {
            number,
            first_reply_us,
            window_replies: Some(window_replies),
            error: error.to_owned(),
            ..OneClient::default()
        };
        let mut clients = [
            client(0, Some(5.0), 3, ""),
            client(1, None, 0, ""),
            client(2, Some(9.0), 7, ""),
            client(3, Some(1.0), 5, "refused"),
        ];
        for (order, numbers) in [
            (Order::Slowest, [3, 1, 2, 0]),
            (Order::Fewest, [1, 0, 3, 2]),
            (Order::Most, [2, 3, 0, 1]),
            (Order::Number, [0, 1, 2, 3]),
        ] {
            order.sort(&mut clients);
            let found = clients.each_ref().map(|client| client.number);
            assert_eq!(found, numbers, "{order:?}");
        }
    }
}
