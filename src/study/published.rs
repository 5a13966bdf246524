//! Published figures about a part's servers, for comparison with measured ones.

use std::collections::BTreeMap;
use std::ops::Range;
use std::slice;

use serde::Deserialize;
use toml::Spanned;

use crate::record;
use crate::record::metrics::{Metric, find};

/// One metric of some servers as published.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Published {
    /// The name of the metric.
    pub metric: Spanned<String>,
    /// The unit of its values.
    pub unit: Spanned<String>,
    /// Numbers of clients that the values are for [default: those of the part].
    pub clients: Option<Spanned<Vec<u32>>>,
    /// A note for readers.
    pub note: Option<String>,
    /// The other system that they are of.
    pub system: Option<String>,
    /// The values of each server, one per number of clients.
    pub values: BTreeMap<Spanned<String>, Spanned<Values>>,
}

/// The values of a server: one, or one per number of clients.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a number, a reason why there is none, or a list of these"
)]
pub(super) enum Values {
    One(record::PublishedValue),
    Several(Vec<record::PublishedValue>),
}

impl Values {
    fn all(&self) -> &[record::PublishedValue] {
        match self {
            Self::One(value) => slice::from_ref(value),
            Self::Several(values) => values,
        }
    }
}

impl Published {
    /// Resolves the figures for the record of a part with these servers and numbers of clients. `measures` checks the
    /// metric.
    ///
    /// # Errors
    /// The first error with its position.
    pub(super) fn resolve(
        &self,
        servers: &[String],
        clients: &[u32],
        measures: impl Fn(&Metric) -> Result<(), String>,
    ) -> Result<record::Published, (Range<usize>, String)> {
        let metric = find(self.metric.get_ref())
            .map_err(|unknown| (self.metric.span(), unknown.to_string()))?;
        measures(metric).map_err(|why| (self.metric.span(), why))?;
        metric
            .unit
            .read(1.0, self.unit.get_ref())
            .map_err(|why| (self.unit.span(), why))?;
        let clients = match (&self.clients, metric.is_over_clients()) {
            (None, true) => Vec::new(),
            (None, false) => clients.to_vec(),
            (Some(given), false) => given.get_ref().clone(),
            (Some(given), true) => {
                let why = format!("`{}` is one value over all clients", metric.name);
                return Err((given.span(), why));
            }
        };
        let mut values = BTreeMap::new();
        for (server, given) in &self.values {
            if !servers.contains(server.get_ref()) {
                let why = format!(
                    "the part has no server `{}`; expected one of: {}",
                    server.get_ref(),
                    servers.join(", ")
                );
                return Err((server.span(), why));
            }
            let (wanted, got) = (clients.len().max(1), given.get_ref().all().len());
            if wanted != got {
                let why =
                    format!("expected {wanted} values, one for each of `clients`, but got {got}");
                return Err((given.span(), why));
            }
            values.insert(server.get_ref().clone(), given.get_ref().all().to_vec());
        }
        Ok(record::Published {
            metric: metric.name.to_owned(),
            unit: self.unit.get_ref().clone(),
            clients,
            note: self.note.clone(),
            system: self.system.clone(),
            values,
        })
    }
}
