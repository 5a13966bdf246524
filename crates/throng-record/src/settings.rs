//! Differences between the settings of two runs.

use super::{Link, Settings};

impl Settings {
    /// How the load of another run differs, as text; empty if it does not.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        self.differing(other)
            .into_iter()
            .map(|(what, now, then)| format!("{what} {then}, and now {now}"))
            .collect()
    }

    /// How the load of another run differs: key, value here, and value there.
    pub fn differing(&self, other: &Self) -> Vec<(String, String, String)> {
        let cpus = |cpus: &[u32]| format!("{cpus:?}");
        let in_words =
            |link: Option<Link>| link.map_or_else(|| "none".to_owned(), |link| link.words());
        let own = [
            (
                "clients",
                format!("{:?}", self.clients),
                format!("{:?}", other.clients),
            ),
            (
                "backlog",
                self.backlog.to_string(),
                other.backlog.to_string(),
            ),
            ("simulated link", in_words(self.link), in_words(other.link)),
            (
                "server CPUs",
                cpus(&self.server_cpus),
                cpus(&other.server_cpus),
            ),
            (
                "client CPUs",
                cpus(&self.client_cpus),
                cpus(&other.client_cpus),
            ),
            (
                "load threads",
                self.load_threads.to_string(),
                other.load_threads.to_string(),
            ),
        ]
        .into_iter()
        .filter(|(_, now, then)| now != then)
        .map(|(what, now, then)| (what.to_owned(), now, then));
        // The numbers of clients are compared above.
        let of_load = self.load.differing(&other.load).into_iter();
        of_load
            .filter(|(key, ..)| key != "clients")
            .chain(own)
            .collect()
    }
}
