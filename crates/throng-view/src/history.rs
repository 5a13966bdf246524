//! The history of servers over runs.

use std::collections::BTreeMap;

use super::address::value;
use super::glances::GlanceState;
use super::run_entry::RunEntry;
use throng_report::glance::{Glance, Occasion};

/// Maximum number of runs shown; of more, the newest.
pub(super) const MOST_RUNS: usize = 500;

/// A query for the history of a server.
#[derive(Debug, Default)]
pub(super) struct HistoryQuery {
    pub(super) server: Option<String>,
    pub(super) clients: Option<u32>,
    /// Words that the machine must contain.
    pub(super) host: String,
    /// Words that the command and the program must contain.
    pub(super) command: String,
    /// Words that the version of throng must contain.
    pub(super) commit: String,
}

impl HistoryQuery {
    pub(super) fn of(query: &str) -> Self {
        let words = |name| value(query, name).unwrap_or_default();
        Self {
            server: value(query, "server"),
            clients: value(query, "clients").and_then(|clients| clients.parse().ok()),
            host: words("host"),
            command: words("command"),
            commit: words("commit"),
        }
    }

    /// Whether a result matches.
    fn means(&self, occasion: &Occasion, server: &str) -> bool {
        let has = |text: &str, words: &str| {
            let text = text.to_lowercase();
            let mut words = words.split_whitespace();
            words.all(|word| text.contains(&word.to_lowercase()))
        };
        let program = occasion.programs.get(server).map_or("", String::as_str);
        has(&occasion.machine, &self.host)
            && has(program, &self.command)
            && has(&occasion.throng, &self.commit)
    }
}

/// All servers.
#[derive(Debug, Default)]
pub(super) struct ServerIndex {
    /// Every server and number of clients, with the number of runs.
    pub(super) servers: BTreeMap<String, BTreeMap<u32, usize>>,
    /// Runs that are still being read.
    pub(super) waiting: usize,
}

impl ServerIndex {
    pub(super) fn of(runs: &[(RunEntry, GlanceState)]) -> Self {
        let waiting = runs.iter();
        let waiting = waiting.filter(|(_, glanced)| matches!(glanced, GlanceState::Waiting));
        let mut known = Self {
            waiting: waiting.count(),
            ..Self::default()
        };
        let glances = runs.iter().filter_map(|(_, glanced)| glanced.known());
        for course in glances
            .flat_map(|glance| &glance.occasions)
            .flat_map(|one| &one.courses)
        {
            let of_server = known.servers.entry(course.server.clone()).or_default();
            *of_server.entry(course.clients).or_default() += 1;
        }
        known
    }

    /// The default number of clients of a server: the one with the most runs, or the largest of these on a tie.
    pub(super) fn usual_clients(&self, server: &str) -> Option<u32> {
        let clients = self.servers.get(server)?.iter();
        let usual = clients.max_by_key(|(clients, runs)| (**runs, **clients));
        usual.map(|(clients, _)| *clients)
    }
}

/// The results of a server, in order of time, each with the name of its record.
pub(super) fn occasions<'a>(
    asked: &HistoryQuery,
    server: &str,
    runs: &'a [(RunEntry, GlanceState)],
) -> Vec<(String, &'a Occasion)> {
    let glances = runs.iter();
    let glances = glances.filter_map(|(run, glanced)| Some((run, glanced.known()?)));
    let mut all: Vec<(String, &Occasion)> = glances
        .flat_map(|(run, glance): (&RunEntry, &Glance)| {
            glance.occasions.iter().map(move |occasion| {
                let name = match &occasion.part {
                    Some(part) => format!("{}/{part}", run.name),
                    None => run.name.clone(),
                };
                (name, occasion)
            })
        })
        .filter(|(_, occasion)| asked.means(occasion, server))
        .collect();
    all.sort_by(|(one, then), (other, now)| {
        let by_time = then.started_at.cmp(&now.started_at);
        by_time.then_with(|| one.cmp(other))
    });
    all
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use throng_report::glance::ServerMeasures;

    #[test]
    fn the_runs_of_a_server_come_in_order_of_time_and_can_be_narrowed() {
        let occasion = |started_at: &str, machine: &str, clients| Occasion {
            started_at: started_at.to_owned(),
            machine: machine.to_owned(),
            courses: vec![ServerMeasures {
                server: "epoll".to_owned(),
                clients,
                ..ServerMeasures::default()
            }],
            ..Occasion::default()
        };
        let run = |name: &str, occasions| {
            let glance = Glance {
                occasions,
                ..Glance::default()
            };
            (
                RunEntry::starting(name),
                GlanceState::Known(Arc::new(glance)),
            )
        };
        let part = Occasion {
            part: Some("crowd".to_owned()),
            ..occasion("2026-01-01", "Old CPU", 10)
        };
        let runs = [
            run("b", vec![occasion("2026-01-03", "New CPU", 10)]),
            run("a", vec![occasion("2026-01-02", "New CPU", 1000)]),
            run("study", vec![part]),
            (RunEntry::starting("c"), GlanceState::Waiting),
        ];
        let known = ServerIndex::of(&runs);
        assert_eq!((known.waiting, known.usual_clients("epoll")), (1, Some(10)));
        assert_eq!(known.usual_clients("poll"), None);
        let names = |query: &str| -> Vec<String> {
            let found = occasions(&HistoryQuery::of(query), "epoll", &runs);
            found.into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(""), ["study/crowd", "a", "b"]);
        assert_eq!(names("host=cpu+NEW"), ["a", "b"]);
        assert!(names("command=nothing").is_empty());
    }
}
