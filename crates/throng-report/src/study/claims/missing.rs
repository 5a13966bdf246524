//! Values that a check lacks, and why: a reason that several values share is given once.

use throng_record::format::{counted, list};

/// So many are named, the others counted.
const NAMED: usize = 3;

/// A missing value, or something else that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Missing {
    /// The value; none where the reason says it all.
    pub(super) value: Option<Absent>,
    /// Why it is not there.
    pub(super) why: String,
    /// Whether that is a limit of this machine, or a setting that all have in common.
    pub(super) is_censored: bool,
}

/// A value that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Absent {
    /// The metric, as it stands in a sentence.
    pub(super) metric: String,
    /// The server, with its part where there are several.
    pub(super) server: String,
    /// The number of clients, where it is not over all of them.
    pub(super) clients: Option<u32>,
}

impl From<String> for Missing {
    fn from(why: String) -> Self {
        Self {
            value: None,
            why,
            is_censored: false,
        }
    }
}

impl From<&str> for Missing {
    fn from(why: &str) -> Self {
        why.to_owned().into()
    }
}

/// All of them in words, each reason once.
pub(super) fn sentences(missing: &[Missing]) -> Vec<String> {
    let mut reasons: Vec<&str> = Vec::new();
    for one in missing {
        if !reasons.contains(&one.why.as_str()) {
            reasons.push(&one.why);
        }
    }
    let sentences = reasons.into_iter().map(|why| {
        let of_it = missing.iter().filter(|one| one.why == why);
        let values: Vec<&Absent> = of_it.filter_map(|one| one.value.as_ref()).collect();
        if values.is_empty() {
            why.to_owned()
        } else {
            format!("{}: {why}", names(&values))
        }
    });
    sentences.collect()
}

/// "cache misses/reply of thread and select with 2 clients and of thread with 8 clients"
fn names(values: &[&Absent]) -> String {
    let alike = |a: &Absent, b: &Absent| a.metric == b.metric && a.clients == b.clients;
    let mut groups: Vec<(&Absent, Vec<&str>)> = Vec::new();
    for value in values {
        match groups.iter_mut().find(|(first, _)| alike(first, value)) {
            Some((_, servers)) => servers.push(&value.server),
            None => groups.push((value, vec![&value.server])),
        }
    }
    let mut before = "";
    let mut texts = Vec::new();
    for (first, servers) in groups.iter().take(NAMED) {
        let metric = if first.metric == before {
            String::new()
        } else {
            format!("{} ", first.metric)
        };
        before = &first.metric;
        let with = first.clients.map_or_else(String::new, |clients| {
            format!(" with {}", counted(clients, "client"))
        });
        texts.push(format!("{metric}of {}{with}", list(servers)));
    }
    if groups.len() > NAMED {
        texts.push(format!("{} more", groups.len() - NAMED));
    }
    list(&texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_that_several_share_is_reported_once() {
        let absent = |metric: &str, server: &str, clients, why: &str| Missing {
            value: Some(Absent {
                metric: metric.to_owned(),
                server: server.to_owned(),
                clients: Some(clients),
            }),
            why: why.to_owned(),
            is_censored: false,
        };
        let all = [
            absent("branch misses/reply", "iterative (two)", 2, "no counter"),
            absent("branch misses/reply", "thread (two)", 2, "no counter"),
            Missing::from("part b was not run"),
            absent("branch misses/reply", "thread (two)", 8, "no counter"),
            absent("faults/reply", "thread (two)", 8, "no counter"),
            absent("faults/reply", "thread (two)", 9, "no counter"),
        ];
        let expected = [
            "branch misses/reply of iterative (two) and thread (two) with 2 clients, of thread (two) with \
             8 clients, faults/reply of thread (two) with 8 clients and 1 more: no counter",
            "part b was not run",
        ];
        assert_eq!(sentences(&all), expected);
    }
}
