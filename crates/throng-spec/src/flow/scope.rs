//! The variables of a flow.

use std::collections::BTreeMap;

use throng_protocol::{Encoding, Initial, Part};

use super::Context;

/// The variables that are known so far, each with its place.
pub(super) struct Scope {
    places: BTreeMap<String, usize>,
    variables: Vec<Initial>,
}

impl Scope {
    /// The variables before the first step.
    pub(super) fn new(context: &Context<'_>) -> Self {
        let mut scope = Self {
            places: BTreeMap::new(),
            variables: Vec::new(),
        };
        for (column, name) in (0..).zip(context.rows.iter().flat_map(|rows| &rows.columns)) {
            scope.add(name, Initial::Column(column));
        }
        for (name, value) in context.variables {
            scope.add(name, Initial::Given(value.as_bytes().into()));
        }
        scope
    }

    fn add(&mut self, name: &str, initial: Initial) {
        if let Some(place) = self.places.get(name) {
            // The user's value goes before that of a column.
            self.variables[*place] = initial;
        } else {
            self.places.insert(name.to_owned(), self.variables.len());
            self.variables.push(initial);
        }
    }

    /// The place of a variable that a step captures.
    pub(super) fn capture(&mut self, name: &str) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        self.add(name, Initial::Captured);
        self.variables.len() - 1
    }

    /// The names of all variables, in the order of their places.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<(&String, &usize)> = self.places.iter().collect();
        names.sort_by_key(|(_, place)| **place);
        names.into_iter().map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn into_variables(self) -> Vec<Initial> {
        self.variables
    }

    /// Splits a text at its variables, like `{{name}}`.
    ///
    /// # Errors
    /// The place in the text, in bytes, and why.
    pub(super) fn parts(
        &self,
        text: &str,
        encoding: Encoding,
    ) -> Result<Vec<Part>, (usize, String)> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find("{{") {
            let at = text.len() - rest.len() + open;
            let Some(length) = rest[open..].find("}}") else {
                return Err((at, "a variable ends with `}}`".to_owned()));
            };
            let name = rest[open + 2..open + length].trim();
            if open > 0 {
                parts.push(Part::Text(rest[..open].into()));
            }
            parts.push(self.variable(name, encoding).map_err(|why| (at, why))?);
            rest = &rest[open + length + 2..];
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.into()));
        }
        Ok(parts)
    }

    fn variable(&self, name: &str, encoding: Encoding) -> Result<Part, String> {
        if name == "newUuid" {
            return Ok(Part::Uuid);
        }
        if let Some(place) = self.places.get(name) {
            return Ok(Part::Variable(*place, encoding));
        }
        if !is_name(name) {
            return Err(format!(
                "`{{{{{name}}}}}` is not supported: only names of variables and newUuid are"
            ));
        }
        let names: Vec<&str> = self.places.keys().map(String::as_str).collect();
        let known = match &names[..] {
            [] => "none is known here".to_owned(),
            names => format!("known here: {}", names.join(", ")),
        };
        Err(format!(
            "no earlier step captures `{name}`, and neither --variable nor --data-file has it; {known}"
        ))
    }
}

/// Whether a text can be the name of a variable.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic())
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || "_-".contains(c))
}
