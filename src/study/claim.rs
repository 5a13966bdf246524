//! Checks that a study can produce what its claims expect: their metrics, parts, servers and numbers of clients
//! exist, and the keys of an expectation are compatible.

use super::part::Part;
use super::{Study, StudyError};
use crate::record::claim::{Baseline, Clients, Expectation, Mechanism, Reference, Relation};
use crate::record::findings::FINDINGS;
use crate::record::metrics::{Metric, find};

/// The wrong key with its parent keys, and the reason.
type KeyError = (String, String);

/// Checks every claim of a study.
pub(super) fn check(study: &Study) -> Result<(), StudyError> {
    for (place, claim) in study.claims.iter().enumerate() {
        let wrong = |key: &str, why: &str| study.file.wrong_at(&format!("claim.{place}{key}"), why);
        if study.flat {
            let why = "claims need a [[part]] to be about";
            return Err(wrong("", why));
        }
        if claim.leads && study.claims[..place].iter().any(|other| other.leads) {
            return Err(wrong(".leads", "only one claim can lead the page"));
        }
        if claim.expect.is_empty() {
            return Err(wrong(
                ".expect",
                "a claim needs at least one [[claim.expect]]",
            ));
        }
        for (number, expect) in claim.expect.iter().enumerate() {
            let checker = Checker { expect, study };
            checker
                .check()
                .map_err(|(key, why)| wrong(&format!(".expect.{number}.{key}"), &why))?;
        }
        if let Some(mechanism) = &claim.mechanism {
            check_mechanism(mechanism, study)
                .map_err(|(key, why)| wrong(&format!(".mechanism{key}"), &why))?;
        }
    }
    Ok(())
}

/// Checks that a cause has evidence, and evidence has a cause.
fn check_mechanism(mechanism: &Mechanism, study: &Study) -> Result<(), KeyError> {
    let wrong = |key: &str, why: &str| Err((key.to_owned(), why.to_owned()));
    match (&mechanism.text, mechanism.expect.as_slice()) {
        (Some(_), []) => {
            let why = "a cause needs at least one [[claim.mechanism.expect]] that shows it";
            return wrong(".text", why);
        }
        (None, [_, ..]) => {
            return wrong(
                "",
                "a mechanism with `expect` needs a `text` that names the cause",
            );
        }
        (None, []) if mechanism.metrics.is_empty() => {
            return wrong(
                "",
                "a mechanism has a `text` with what shows it, or `metrics`",
            );
        }
        _ => {}
    }
    for (place, name) in mechanism.metrics.iter().enumerate() {
        let known = find(name).map_err(|unknown| unknown.to_string());
        let metric = known.map_err(at(&format!(".metrics.{place}")))?;
        if metric.is_over_clients() {
            let why = "the metric is a single value for all numbers of clients";
            return wrong(&format!(".metrics.{place}"), why);
        }
    }
    for (number, expect) in mechanism.expect.iter().enumerate() {
        let checked = Checker { expect, study }.check();
        checked.map_err(|(key, why)| (format!(".expect.{number}.{key}"), why))?;
    }
    Ok(())
}

struct Checker<'a> {
    expect: &'a Expectation,
    study: &'a Study,
}

impl Checker<'_> {
    fn check(&self) -> Result<(), KeyError> {
        let expect = self.expect;
        let metric = find(&expect.metric)
            .map_err(|unknown| unknown.to_string())
            .map_err(at("metric"))?;
        if let Some(name) = &expect.published {
            find(name)
                .map_err(|unknown| unknown.to_string())
                .map_err(at("published"))?;
        }
        self.form(metric)?;
        let parts = self.parts()?;
        for part in &parts {
            part.measures(metric).map_err(at("metric"))?;
            for (place, server) in expect.servers.iter().enumerate() {
                has_server(part, server).map_err(at(&format!("servers.{place}")))?;
            }
            self.clients(part)?;
        }
        match &expect.baseline {
            None => Ok(()),
            Some(Baseline::Value(other)) => parts
                .iter()
                .try_for_each(|part| self.reference(part, other, metric)),
            Some(number) => {
                let text = number.number().unwrap_or_default();
                let parsed = metric.unit.parse(&text);
                parsed.map(drop).map_err(at("baseline"))
            }
        }
    }

    /// Checks that the keys are compatible.
    fn form(&self, metric: &Metric) -> Result<(), KeyError> {
        let expect = self.expect;
        let relation = expect.relation;
        let wrong = |key: &str, why: &str| Err((key.to_owned(), why.to_owned()));
        match (relation.has_baseline(), &expect.baseline) {
            (Some(true), None) => {
                let why = "the relation needs a `baseline`: { server = \"NAME\" }, or a number like \"10ms\"";
                return wrong("relation", why);
            }
            (Some(false), Some(_)) => return wrong("baseline", "this relation has no baseline"),
            (None, None) if expect.servers.len() == 1 => {
                let why =
                    "a single server has nothing to be equal to; add servers, or a `baseline`";
                return wrong("servers", why);
            }
            _ => {}
        }
        if relation.is_extreme() && expect.servers.is_empty() {
            let why = "the relation needs `servers`, to compare with the others of the part";
            return wrong("relation", why);
        }
        if metric.is_over_clients() && relation.is_trend() {
            let why = "the metric is a single value for all numbers of clients, and has no trend";
            return wrong("relation", why);
        }
        if metric.is_over_clients() && expect.clients.is_some() {
            return wrong(
                "clients",
                "the metric is a single value for all numbers of clients",
            );
        }
        self.causes(metric)?;
        match expect.margin {
            Some(_) if !expect.has_margin() => {
                let why = "a margin is for comparisons with measured values, not with a number; leave it out";
                wrong("margin", why)
            }
            Some(margin) if !(margin.is_finite() && margin >= 0.0) => {
                wrong("margin", "a margin must be a percentage of at least 0")
            }
            _ => Ok(()),
        }
    }

    /// Checks that causes of a limit are given exactly where they are expected.
    fn causes(&self, metric: &Metric) -> Result<(), KeyError> {
        let causes = &self.expect.causes;
        let wrong = |key: &str, why: String| Err((key.to_owned(), why));
        match (self.expect.relation, causes.as_slice()) {
            (Relation::EndedBy, []) => {
                return wrong(
                    "relation",
                    "the relation needs `causes`, like [\"threads\"]".to_owned(),
                );
            }
            (Relation::EndedBy, _) if metric.name != "limit" => {
                return wrong("metric", "`ended-by` needs the metric `limit`".to_owned());
            }
            (Relation::EndedBy, _) | (_, []) => {}
            (_, [_, ..]) => {
                let why = "`causes` need the relation `ended-by`".to_owned();
                return wrong("causes", why);
            }
        }
        let known: Vec<&str> = FINDINGS
            .iter()
            .filter(|kind| kind.is_cause())
            .map(|kind| kind.name)
            .collect();
        match causes
            .iter()
            .position(|cause| !known.contains(&cause.as_str()))
        {
            Some(place) => {
                let why = format!("unknown cause; expected one of: {}", known.join(", "));
                wrong(&format!("causes.{place}"), why)
            }
            None => Ok(()),
        }
    }

    /// The parts that the expectation is about.
    fn parts(&self) -> Result<Vec<&Part>, KeyError> {
        match (self.expect.parts.as_slice(), self.study.parts.as_slice()) {
            ([], [one]) => Ok(vec![one]),
            ([], parts) => {
                let why = format!(
                    "the study has several parts; choose some, like `parts = [\"{}\"]`, of: {}",
                    parts[0].name(),
                    names(parts)
                );
                Err((String::new(), why))
            }
            (named, _) => {
                let numbered = named.iter().enumerate();
                numbered
                    .map(|(place, name)| self.part(name).map_err(at(&format!("parts.{place}"))))
                    .collect()
            }
        }
    }

    fn part(&self, name: &str) -> Result<&Part, String> {
        let parts = &self.study.parts;
        let found = parts.iter().find(|part| part.name() == name);
        found.ok_or_else(|| format!("unknown part `{name}`; expected one of: {}", names(parts)))
    }

    /// Checks that a part has the numbers of clients.
    fn clients(&self, part: &Part) -> Result<(), KeyError> {
        if let Some(Clients::Numbers(numbers)) = &self.expect.clients {
            for (place, clients) in numbers.iter().enumerate() {
                has_clients(part, *clients).map_err(at(&format!("clients.{place}")))?;
            }
        }
        let meant = part
            .clients
            .iter()
            .filter(|clients| self.expect.is_about(**clients))
            .count();
        let (name, there) = (part.name(), &part.clients);
        if self.expect.clients.is_some() && meant == 0 {
            let why = format!("the part `{name}` has none of these; expected some of {there:?}");
            return Err(("clients".to_owned(), why));
        }
        if self.expect.relation.is_trend() && meant < 2 {
            let why = format!(
                "the relation needs two numbers of clients, but has {meant} in part `{name}`"
            );
            return Err(("relation".to_owned(), why));
        }
        Ok(())
    }

    /// Checks that the values of a part have something to be compared with.
    fn reference(&self, own: &Part, other: &Reference, metric: &Metric) -> Result<(), KeyError> {
        let Reference {
            server,
            part,
            clients,
            factor,
        } = other;
        if server.is_none() && part.is_none() && clients.is_none() {
            let why = "the baseline is the value itself; add a `server`, a `part` or a number of `clients`";
            return Err(("baseline".to_owned(), why.to_owned()));
        }
        let found = part
            .as_ref()
            .map_or(Ok(own), |name| self.part(name))
            .map_err(at("baseline.part"))?;
        found.measures(metric).map_err(at("baseline.part"))?;
        let same = own.server_names();
        let (key, wanted) = match (server, self.expect.servers.as_slice()) {
            (Some(server), _) => ("baseline.server", std::slice::from_ref(server)),
            (None, []) => ("baseline", same.as_slice()),
            (None, named) => ("baseline", named),
        };
        wanted
            .iter()
            .try_for_each(|named| has_server(found, named).map_err(at(key)))?;
        if let Some(clients) = clients {
            if metric.is_over_clients() {
                let why = "the metric is a single value for all numbers of clients".to_owned();
                return Err(("baseline.clients".to_owned(), why));
            }
            has_clients(found, *clients).map_err(at("baseline.clients"))?;
        }
        match factor {
            Some(factor) if !(factor.is_finite() && *factor > 0.0) => Err((
                "baseline.factor".to_owned(),
                "a factor must be above 0".to_owned(),
            )),
            _ => Ok(()),
        }
    }
}

fn at(key: &str) -> impl Fn(String) -> KeyError {
    let key = key.to_owned();
    move |why| (key.clone(), why)
}

fn names(parts: &[Part]) -> String {
    let names: Vec<&str> = parts.iter().map(Part::name).collect();
    names.join(", ")
}

fn has_server(part: &Part, name: &str) -> Result<(), String> {
    let servers = part.server_names();
    if servers.iter().any(|server| server == name) {
        return Ok(());
    }
    let (part, servers) = (part.name(), servers.join(", "));
    Err(format!(
        "the part `{part}` has no server `{name}`; expected one of: {servers}"
    ))
}

fn has_clients(part: &Part, clients: u32) -> Result<(), String> {
    if part.clients.contains(&clients) {
        return Ok(());
    }
    let (part, there) = (part.name(), &part.clients);
    Err(format!(
        "the part `{part}` has no {clients} clients; expected one of {there:?}"
    ))
}
