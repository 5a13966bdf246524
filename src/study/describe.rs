//! A study in words: its parts, its servers, its loads, and how long it takes about.

use std::fmt::Write as _;
use std::time::Duration;

use super::options::Value;
use super::part::{ServerKind, read_time};
use super::scale::number;
use super::{Part, Study};
use crate::report::format::{counted, list, whole};

/// What a trial takes beside the time that counts: starting, verifying, connecting, looking, ending.
const OF_A_TRIAL: Duration = Duration::from_millis(450);
/// What a client takes beside, to connect and to be looked at.
const OF_A_CLIENT: Duration = Duration::from_micros(100);
/// Of a search: where it begins and ends if nobody says, how many trials it takes about to close in, and
/// how often the server is looked at below its limit.
const USUAL_FROM: u32 = 16;
const USUAL_MOST: u32 = 10_000;
const CLOSING_IN: u32 = 5;
const BELOW_A_LIMIT: u32 = 2;

impl Study {
    /// How long it takes about.
    pub fn about(&self) -> Duration {
        self.parts.iter().map(Part::about).sum()
    }

    /// What it does, in text for a terminal.
    pub fn describe(&self) -> String {
        let mut text = format!("{}: {}\n", self.name, self.question);
        if let Some(summary) = &self.summary {
            let _ = writeln!(text, "\n{}", summary.trim());
        }
        if let Some(source) = &self.source {
            let _ = writeln!(text, "\nPublished figures: {}", source.trim());
        }
        for part in &self.parts {
            let _ = writeln!(text, "\n{}", part.describe(self.flat));
        }
        if !self.claims.is_empty() {
            text += "\nclaims\n";
        }
        for claim in &self.claims {
            let _ = writeln!(text, "  {}", claim.text);
        }
        let _ = write!(text, "\nIt takes about {}.", about(self.about()));
        text
    }
}

impl Part {
    /// How long it takes about.
    fn about(&self) -> Duration {
        let servers = self.server_names().len() as u32;
        if self.is_search() {
            return self.search() * servers;
        }
        let measured_twice = u32::from(
            self.control
                .as_ref()
                .is_none_or(|name| name.get_ref() != "none"),
        );
        let in_a_round = servers + measured_twice + u32::from(self.ceiling);
        let timed = in_a_round * self.repeats + servers * self.below.len() as u32;
        // What counts events has a round of its own, with shorter trials.
        let counting = !self.probes.get_ref().iter().any(|name| name == "none");
        let counted = if counting { servers } else { 0 } * self.counted_repeats;
        let slow: Duration = ["think", "ramp"]
            .into_iter()
            .filter_map(|name| self.time_of(name))
            .sum();
        let all = |count: u32, each: Duration| each * count;
        self.clients
            .iter()
            .map(|clients| {
                let beside = OF_A_TRIAL + OF_A_CLIENT * *clients + slow + self.warm_up;
                let short = self
                    .duration
                    .min(Duration::from_millis(500).max(self.duration / 4));
                all(timed, beside + self.duration) + all(counted, beside + short)
            })
            .sum()
    }

    /// How long the search for the limit of a server takes about: it rises and closes in, then looks
    /// again at what it found, mostly with fewer clients than it may try.
    fn search(&self) -> Duration {
        let said = |name: &str, usual: u32| number(&self.limit, name).unwrap_or(usual);
        let most = said("most", USUAL_MOST);
        let rises = (most / said("from", USUAL_FROM).min(most).max(1)).ilog2();
        let tries = (rises + CLOSING_IN + 2 * said("confirm", 3)).min(said("tries", 60));
        let clients = number(&self.limit, "clients").unwrap_or(most / 2);
        let each = OF_A_TRIAL + OF_A_CLIENT * clients + self.warm_up + self.duration;
        let limit = match self.limit.get("search-time").map(|choice| &choice.value) {
            Some(Value::Typed(values)) => values.first().and_then(|time| read_time(time)),
            _ => None,
        };
        (each * tries).min(limit.unwrap_or(Duration::from_mins(10))) + each * BELOW_A_LIMIT
    }

    /// The time that an option of the load says.
    fn time_of(&self, name: &str) -> Option<Duration> {
        let Value::Typed(values) = &self.load.get(name)?.value else {
            return None;
        };
        super::scale::longest(values.first()?)
    }

    fn describe(&self, alone: bool) -> String {
        let mut text = String::new();
        if !alone {
            let _ = writeln!(
                text,
                "{}: {}",
                self.name(),
                self.question.as_deref().unwrap_or(self.heading())
            );
        }
        let servers = if self.servers.is_empty() {
            vec!["every model that this machine supports".to_owned()]
        } else {
            self.servers
                .iter()
                .map(|server| match &server.kind {
                    ServerKind::Own { model, options } => {
                        let command = std::iter::once(model.clone()).chain(options.words());
                        let command = command.collect::<Vec<_>>().join(" ");
                        if command == server.name {
                            command
                        } else {
                            format!("{} ({command})", server.name)
                        }
                    }
                    ServerKind::Foreign { command, .. } => {
                        format!("{} ({})", server.name, command.join(" "))
                    }
                })
                .collect()
        };
        let clients: Vec<String> = self
            .clients
            .iter()
            .map(|clients| whole(f64::from(*clients)))
            .collect();
        let load = self.load_options().words().join(" ");
        let _ = writeln!(text, "  servers   {}", list(&servers));
        if self.is_search() {
            let limit = self.limit.words().join(" ");
            let _ = writeln!(
                text,
                "  limit     {}",
                format!("throng limit {limit}").trim()
            );
        } else {
            let _ = writeln!(text, "  clients   {}", clients.join("; "));
        }
        if !load.is_empty() {
            let _ = writeln!(text, "  load      {load}");
        }
        let _ = write!(
            text,
            "  trials    {}, replies count for {} s after {} s; about {}",
            if self.is_search() {
                "as many as it takes".to_owned()
            } else {
                counted(self.repeats, "trial") + " each"
            },
            self.duration.as_secs_f64(),
            self.warm_up.as_secs_f64(),
            about(self.about())
        );
        text
    }
}

/// A time in words.
fn about(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..90 => counted(seconds.max(1) as u32, "second"),
        seconds @ ..5400 => counted(((seconds + 30) / 60) as u32, "minute"),
        seconds => format!("{:.1} hours", seconds as f64 / 3600.0),
    }
}
