//! What is claimed about the servers of a study, and how it is checked.

use serde::Deserialize;
use toml::Spanned;

use super::Study;
use super::StudyError;
use super::part::Part;
use crate::record;
use crate::report::study::claims::Check;
use crate::report::study::claims::language::Value;

/// A claim.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Claim {
    /// In words.
    pub text: String,
    /// Statements about the results, all of which must be so.
    pub checks: Spanned<Vec<Spanned<String>>>,
    /// What the figures show about the cause that was stated.
    pub why: Option<String>,
}

impl Claim {
    /// Checks that every check can be read, and that what it names is there.
    pub(super) fn check(&self, study: &Study) -> Result<(), StudyError> {
        if self.checks.get_ref().is_empty() {
            let why = "a claim needs at least one check";
            return Err(study.file.wrong(&self.checks.span(), why));
        }
        for text in self.checks.get_ref() {
            let wrong = |at: &std::ops::Range<usize>, why: &str| {
                let within = &study.file;
                within.wrong_within(&text.span(), text.get_ref(), at, why)
            };
            let check =
                Check::parse(text.get_ref()).map_err(|error| wrong(&error.at, &error.why))?;
            for value in check.values() {
                there_is(value, &study.parts).map_err(|why| wrong(&value.at, &why))?;
            }
        }
        Ok(())
    }

    /// The same as it stands in a record.
    pub(super) fn record(&self) -> record::Claim {
        let checks = self.checks.get_ref().iter();
        record::Claim {
            text: self.text.clone(),
            checks: checks.map(|check| check.get_ref().clone()).collect(),
            why: self.why.clone(),
        }
    }
}

/// Whether a value's part and server are there.
fn there_is(value: &Value, parts: &[Part]) -> Result<(), String> {
    let names = || parts.iter().map(Part::name).collect::<Vec<_>>().join(", ");
    let part = match (&value.part, parts) {
        (None, [one]) => one,
        (None, _) => {
            let (metric, names) = (value.metric.name(), names());
            return Err(format!(
                "the study has several parts, so say which, like `PART.{metric}(...)`; there are: {names}"
            ));
        }
        (Some(name), parts) => {
            let found = parts.iter().find(|part| part.name() == name);
            found.ok_or_else(|| format!("there is no part `{name}`; there are: {}", names()))?
        }
    };
    part.measures(value.metric)?;
    let servers = part.server_names();
    if let Some(server) = value
        .server
        .as_ref()
        .filter(|server| !servers.contains(server))
    {
        let (part, servers) = (part.name(), servers.join(", "));
        return Err(format!(
            "no server of the part `{part}` is called `{server}`; there are: {servers}"
        ));
    }
    if let Some(clients) = value
        .clients
        .filter(|clients| !part.clients.contains(clients))
    {
        let (name, there) = (part.name(), &part.clients);
        return Err(format!(
            "the part `{name}` has no {clients} clients; there are: {there:?}"
        ));
    }
    Ok(())
}
