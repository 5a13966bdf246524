//! Values that a check lacks, with reasons. A shared reason appears once.

use super::name::Name;
use throng_record::format::{counted, list};

/// Maximum number of groups named; the rest are counted.
const NAMED: usize = 3;

/// A missing value, or something else that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Missing {
    /// The value; `None` if the reason says it all.
    pub(super) value: Option<Name>,
    /// Why it is missing.
    pub(super) why: String,
    /// Whether the reason is a limit of this machine, or a setting that all servers share.
    pub(super) is_censored: bool,
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

/// The missing values in words, each reason once.
pub(super) fn sentences(missing: &[Missing]) -> Vec<String> {
    let mut reasons: Vec<&str> = Vec::new();
    for one in missing {
        if !reasons.contains(&one.why.as_str()) {
            reasons.push(&one.why);
        }
    }
    let sentences = reasons.into_iter().map(|why| {
        let of_it = missing.iter().filter(|one| one.why == why);
        let values: Vec<&Name> = of_it.filter_map(|one| one.value.as_ref()).collect();
        if values.is_empty() {
            why.to_owned()
        } else {
            format!("{}: {why}", names(&values))
        }
    });
    sentences.collect()
}

/// "cache misses/reply of thread and select in part two with 2 clients, and of thread with 8 clients"
fn names(values: &[&Name]) -> String {
    let alike =
        |a: &Name, b: &Name| (&a.metric, &a.part, a.clients) == (&b.metric, &b.part, b.clients);
    let mut groups: Vec<(&Name, Vec<&str>)> = Vec::new();
    for value in values {
        match groups.iter_mut().find(|(first, _)| alike(first, value)) {
            Some((_, servers)) => servers.push(&value.server),
            None => groups.push((value, vec![&value.server])),
        }
    }
    let (mut metric, mut part) = ("", None);
    let mut texts = Vec::new();
    for (first, servers) in groups.iter().take(NAMED) {
        let mut text = String::new();
        if first.metric != metric {
            text += &format!("{} ", first.metric);
            part = None;
        }
        text += &format!("of {}", list(servers));
        if let Some(own) = first.part.as_ref().filter(|own| part != Some(*own)) {
            text += &format!(" in part {own}");
        }
        if let Some(clients) = first.clients {
            text += &format!(" with {}", counted(clients, "client"));
        }
        (metric, part) = (&first.metric, first.part.as_ref());
        texts.push(text);
    }
    let more: usize = groups
        .iter()
        .skip(NAMED)
        .map(|(_, servers)| servers.len())
        .sum();
    if more > 0 {
        texts.push(format!("{more} more"));
    }
    list(&texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_that_several_share_is_reported_once() {
        let absent = |metric: &str, server: &str, clients, why: &str| Missing {
            value: Some(Name {
                metric: metric.to_owned(),
                server: server.to_owned(),
                part: Some("two".to_owned()),
                clients: Some(clients),
            }),
            why: why.to_owned(),
            is_censored: false,
        };
        let all = [
            absent("branch misses/reply", "iterative", 2, "no counter"),
            absent("branch misses/reply", "thread", 2, "no counter"),
            Missing::from("part b was not run"),
            absent("branch misses/reply", "thread", 8, "no counter"),
            absent("faults/reply", "thread", 8, "no counter"),
            absent("faults/reply", "thread", 9, "no counter"),
        ];
        let expected = [
            "branch misses/reply of iterative and thread in part two with 2 clients, of thread with 8 clients, \
             faults/reply of thread in part two with 8 clients and 1 more: no counter",
            "part b was not run",
        ];
        assert_eq!(sentences(&all), expected);
    }
}
