//! Flows: the steps of users' sessions, from a file that people already have.
//!
//! A file of Hurl (`.hurl`) or a recording of a browser (`.har`) becomes a [`Flow`]: steps with variables, captures and
//! conditions. All its requests go to one server. Whatever a load cannot do is an error with its place, and is never
//! ignored.

mod cursor;
mod har;
mod hurl;
mod of_load;
mod rows;
mod scope;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use throng_protocol::{Feed, Flow, FlowStep};

pub use rows::Order;
pub(super) use rows::Rows;
use scope::Scope;

/// How the steps of a session are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Hurl,
    Har,
}

impl Format {
    /// The format of a file with this name; `None` if it is not one of steps.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let ending = path.extension()?;
        [("hurl", Self::Hurl), ("har", Self::Har)]
            .into_iter()
            .find(|(name, _)| ending.eq_ignore_ascii_case(name))
            .map(|(_, format)| format)
    }
}

/// An error in a file, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    /// From 1.
    pub(super) line: usize,
    /// From 1, in characters.
    pub(super) column: usize,
    pub(super) why: String,
}

/// What a file of steps is read with.
pub(super) struct Context<'a> {
    /// Variables with one value for all clients.
    pub(super) variables: &'a BTreeMap<String, String>,
    pub(super) rows: Option<&'a Rows>,
    pub(super) order: Order,
    /// Whether the steps of a recording wait as long as the user did.
    pub(super) keeps_delays: bool,
    /// The server whose requests of a recording count, like `example.org:8080`; that of the first one if absent.
    pub(super) recorded_host: Option<&'a str>,
    /// Headers of every request that has none of these names.
    pub(super) headers: &'a [String],
    /// Reads a file that a step sends.
    pub(super) read: &'a dyn Fn(&Path) -> Result<Vec<u8>, String>,
}

/// A file of steps that was read.
pub(super) struct Read {
    pub(super) flow: Flow,
    /// Where its requests go, like `http://localhost:8080`, as far as that is known.
    pub(super) origin: Option<String>,
}

/// Reads the steps of a session.
pub(super) fn read(format: Format, text: &str, context: &Context<'_>) -> Result<Read, Wrong> {
    let mut scope = Scope::new(context);
    let found = match format {
        Format::Hurl => hurl::steps(text, &mut scope, context)?,
        Format::Har => har::steps(text, &mut scope, context)?,
    };
    let mut steps = found.steps;
    if steps.is_empty() {
        return Err(Wrong {
            line: 1,
            column: 1,
            why: "the file has no steps".to_owned(),
        });
    }
    name_apart(&mut steps);
    Ok(Read {
        flow: Flow {
            steps,
            feed: feed(scope, context),
        },
        origin: found.origin,
    })
}

/// The variables of a scope, with their rows.
fn feed(scope: Scope, context: &Context<'_>) -> Feed {
    Feed {
        variables: scope.into_variables(),
        rows: context.rows.map(Rows::values).unwrap_or_default(),
        is_random: context.order == Order::Random,
    }
}

/// The steps of a file, and where they go.
pub(super) struct Found {
    steps: Vec<FlowStep>,
    origin: Option<String>,
}

/// Whether steps are only a request, which needs no session: no variables, no conditions and no delays.
pub(super) fn is_plain(flow: &Flow) -> bool {
    let [step] = &flow.steps[..] else {
        return false;
    };
    let texts = step.headers.iter().map(|(_, value)| value);
    let mut parts = texts.chain([&step.path]).chain(&step.body).flatten();
    // By itself, a request gets a type for its body, which a step has only if the file says it.
    let has_type = step
        .headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    (step.body.is_none() || has_type)
        && step.captures.is_empty()
        && step.asserts.is_empty()
        && step.cookies.is_empty()
        && step.limit.is_none()
        && step.delay == Duration::ZERO
        && parts.all(|part| matches!(part, throng_protocol::Part::Text(_)))
}

/// Gives equal names of steps a number.
fn name_apart(steps: &mut [FlowStep]) {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for step in steps {
        let count = seen.entry(step.name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            step.name = format!("{}-{count}", step.name);
        }
    }
}

/// A step's name from its path: the last part that is a word, like `login` of `/api/login?a=b`.
fn name_of(method: &str, path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let is_word = |part: &&str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    let last = path.rsplit('/').find(is_word);
    last.map_or_else(|| method.to_ascii_lowercase(), str::to_owned)
}

/// Splits a URL into where it goes and its path: `http://h:1/a` into `http://h:1` and `/a`.
fn split_url(url: &str) -> Option<(&str, &str)> {
    let after = match url.find("://") {
        Some(at) if url.starts_with("http") => at + 3,
        _ if url.starts_with("{{") => url.find("}}")? + 2,
        _ => return None,
    };
    let path = url[after..]
        .find(['/', '?'])
        .map_or(url.len(), |at| after + at);
    Some(url.split_at(path))
}

/// The error of a request to another server than the first one.
fn elsewhere(origin: &str, first: &str) -> String {
    format!(
        "all requests of a load go to one server; this one goes to {origin}, the first one to {first}"
    )
}
