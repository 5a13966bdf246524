//! Figures of a reference run of all models.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A run of all models under several crowds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Its directory, from the root of the repository.
    pub run: String,
    /// The machine, in words.
    pub host: String,
    /// The day.
    pub made_at: String,
    /// One for each model and crowd.
    pub rows: Vec<Row>,
}

/// A model under a crowd. What was not measured is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The model.
    pub model: String,
    /// Clients.
    pub clients: u32,
    /// Of these, how many were served.
    pub served: u32,
    /// Replies a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replies_per_s: Option<f64>,
    /// CPU time of the server for a reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us_per_reply: Option<f64>,
    /// Memory that each client beside the first adds; absent where all of them add too little to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_client: Option<f64>,
    /// Jain's index of the replies of the clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<f64>,
    /// System calls for a reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syscalls_per_reply: Option<f64>,
}

/// A figure of a row, and which is better.
#[derive(Debug, Clone, Copy)]
pub struct Measure {
    /// For the head of a column.
    pub title: &'static str,
    /// Its value.
    pub value: fn(&Row) -> Option<f64>,
    /// Whether more is better.
    pub more_is_better: bool,
    /// Its value in words.
    pub in_words: fn(f64) -> String,
}

/// What is shown of each row.
pub const MEASURES: &[Measure] = &[
    Measure {
        title: "replies/s",
        value: |row| row.replies_per_s,
        more_is_better: true,
        in_words: crate::report::format::number,
    },
    Measure {
        title: "CPU µs/reply",
        value: |row| row.cpu_us_per_reply,
        more_is_better: false,
        in_words: crate::report::format::number,
    },
    Measure {
        title: "calls/reply",
        value: |row| row.syscalls_per_reply,
        more_is_better: false,
        in_words: crate::report::format::number,
    },
    Measure {
        title: "memory/client",
        value: |row| row.bytes_per_client,
        more_is_better: false,
        in_words: crate::report::format::bytes,
    },
    Measure {
        title: "fairness",
        value: |row| row.fairness,
        more_is_better: true,
        in_words: crate::report::format::index,
    },
];

/// How a value stands among those of all models that served everybody.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// 1 for the best; those that are equal share the better one.
    pub rank: usize,
    /// The value over that of the best.
    pub of_best: f64,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ratio = crate::report::format::hundredths(self.of_best);
        write!(f, "×{ratio} #{}", self.rank)
    }
}

impl Figures {
    /// The rows of a model, by clients.
    pub fn of<'a>(&'a self, model: &'a str) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().filter(move |row| row.model == model)
    }

    /// How a row stands by a measure among the models under the same crowd; none where it left clients
    /// unserved, since these are no longer the same work.
    pub fn standing(&self, row: &Row, measure: &Measure) -> Option<Standing> {
        let own = (measure.value)(row).filter(|_| row.served == row.clients)?;
        let others = self
            .rows
            .iter()
            .filter(|other| other.clients == row.clients);
        let others = others.filter(|other| other.served == other.clients);
        let values: Vec<f64> = others.filter_map(|other| (measure.value)(other)).collect();
        let better = |one: f64, other: f64| {
            if measure.more_is_better {
                one > other
            } else {
                one < other
            }
        };
        let best = values.iter().copied().reduce(
            |best, value| {
                if better(value, best) { value } else { best }
            },
        )?;
        (best != 0.0).then(|| Standing {
            rank: 1 + values.iter().filter(|value| better(**value, own)).count(),
            of_best: own / best,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(model: &str, served: u32, replies_per_s: f64) -> Row {
        Row {
            model: model.to_owned(),
            clients: 10,
            served,
            replies_per_s: Some(replies_per_s),
            cpu_us_per_reply: None,
            bytes_per_client: None,
            fairness: None,
            syscalls_per_reply: None,
        }
    }

    #[test]
    fn only_those_that_serve_everybody_are_ranked() {
        let figures = Figures {
            run: String::new(),
            host: String::new(),
            made_at: String::new(),
            rows: vec![row("a", 10, 50.0), row("b", 10, 100.0), row("c", 3, 500.0)],
        };
        let standing = |place: usize| figures.standing(&figures.rows[place], &MEASURES[0]);
        let second = standing(0).unwrap();
        assert_eq!(second.rank, 2);
        assert_eq!(second.to_string(), "×0.50 #2");
        assert_eq!(standing(1).unwrap().rank, 1);
        assert_eq!(standing(2), None);
        assert_eq!(figures.standing(&figures.rows[0], &MEASURES[1]), None);
    }
}
