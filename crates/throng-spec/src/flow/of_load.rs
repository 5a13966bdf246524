//! The flow of a load.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use throng_protocol::{Feed, Flow};

use super::super::files::{self, Hashes};
use super::super::{LoadSpec, RequestFile, SpecError};
use super::scope::{Scope, is_name};
use super::{Context, Format, Order, Read, Rows, Wrong, is_plain, read};

/// What a flow was read from. Equal ones are read once, since a measuring process asks for its flow before each trial.
type Source = (
    String,
    [Vec<String>; 2],
    Option<String>,
    Order,
    bool,
    Option<String>,
);

/// What a feed was read from.
type FeedSource = (Vec<String>, Hashes, Order);
/// A feed, and the names of its variables.
type FeedAndNames = (&'static Feed, &'static [String]);

impl LoadSpec {
    /// The file of steps and its format, if the load's requests are the steps of a flow.
    fn steps(&self) -> Option<(&RequestFile, Format)> {
        let file = self.request_file.as_ref()?;
        Some((file, Format::of(file.path())?))
    }

    /// Whether the load's requests are the steps of a flow.
    pub fn has_flow(&self) -> bool {
        self.steps().is_some()
    }

    /// Where the flow's requests go, like `http://localhost:8080`, if the file says it.
    ///
    /// # Errors
    /// When the flow cannot be read, or is wrong.
    pub fn flow_origin(&self) -> Result<Option<String>, SpecError> {
        let Some((file, format)) = self.steps() else {
            return Ok(None);
        };
        let text = file.read()?;
        Ok(self.read_flow(&text, format, &mut Hashes::new())?.origin)
    }

    /// The names of its flow's steps, in order; empty without a flow.
    ///
    /// # Errors
    /// When the flow cannot be read, or is wrong.
    pub fn step_names(&self) -> Result<Vec<String>, SpecError> {
        let steps = self.flow()?.map(|flow| &flow.steps);
        let names = steps.into_iter().flatten().map(|step| step.name.clone());
        Ok(names.collect())
    }

    /// The flow, which lives as long as the program.
    pub(in super::super) fn flow(&self) -> Result<Option<&'static Flow>, SpecError> {
        static FLOWS: Mutex<Vec<(Source, &'static Flow)>> = Mutex::new(Vec::new());
        let Some((file, format)) = self.steps() else {
            return Ok(None);
        };
        let rows = self.data_file.as_ref();
        let source = (
            file.known_text()?,
            [self.variable.clone(), self.headers()],
            rows.and_then(|path| self.files.get(&path.display().to_string()).cloned()),
            self.data_order,
            self.recorded_delays,
            self.recorded_host.clone(),
        );
        let mut flows = FLOWS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, flow)) = flows.iter().find(|(known, _)| *known == source) {
            return Ok(Some(flow));
        }
        let read = self.read_flow(file, format, &mut self.files.clone())?.flow;
        let flow: &'static Flow = Box::leak(Box::new(read));
        flows.push((source, flow));
        Ok(Some(flow))
    }

    /// Adds the hashes of the files that a flow reads, and of the rows of data.
    pub(in super::super) fn remember_flow(&self, known: &mut Hashes) -> Result<(), SpecError> {
        if let Some((file, format)) = self.steps() {
            self.read_flow(file, format, known)?;
        } else {
            self.rows(known)?;
        }
        Ok(())
    }

    /// Whether the flow is one request that needs no session.
    pub(in super::super) fn is_plain_flow(flow: &Flow) -> bool {
        is_plain(flow)
    }

    /// Reads the flow, and adds the hashes of the files that it sends.
    fn read_flow(
        &self,
        file: &RequestFile,
        format: Format,
        known: &mut Hashes,
    ) -> Result<Read, SpecError> {
        let variables = self.given_variables()?;
        let rows = self.rows(known)?;
        let cell = RefCell::new(known);
        let read_file = |name: &Path| {
            let path = file.in_its_directory(name);
            let mut guard = cell.borrow_mut();
            files::remember("request-file", &path, &mut guard)
                .and_then(|()| files::read("request-file", &path, &guard))
                .map_err(|error| error.why)
        };
        let context = Context {
            variables: &variables,
            rows: rows.as_ref(),
            order: self.data_order,
            keeps_delays: self.recorded_delays,
            recorded_host: self.recorded_host.as_deref(),
            headers: &self.headers(),
            read: &read_file,
        };
        let text = file.known_text()?;
        read(format, &text, &context)
            .map_err(|wrong| placed("request-file", file.path(), &text, &wrong))
    }

    /// The variables of `variable`, by name.
    fn given_variables(&self) -> Result<BTreeMap<String, String>, SpecError> {
        let mut variables = BTreeMap::new();
        for given in &self.variable {
            match given.split_once('=') {
                Some((name, value)) if is_name(name) => {
                    variables.insert(name.to_owned(), value.to_owned());
                }
                _ => {
                    let why = format!("`variable`: write NAME=VALUE, not `{given}`");
                    return Err(SpecError::value("variable", why));
                }
            }
        }
        Ok(variables)
    }

    /// The variables of requests that are not the steps of a flow, and their names. Both live as long as the program.
    pub(in super::super) fn feed(&self) -> Result<Option<FeedAndNames>, SpecError> {
        static FEEDS: Mutex<Vec<(FeedSource, FeedAndNames)>> = Mutex::new(Vec::new());
        if self.has_flow() || (self.variable.is_empty() && self.data_file.is_none()) {
            return Ok(None);
        }
        let variables = self.given_variables()?;
        let mut known = self.files.clone();
        let rows = self.rows(&mut known)?;
        let source = (self.variable.clone(), known, self.data_order);
        let mut feeds = FEEDS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, feed)) = feeds.iter().find(|(other, _)| *other == source) {
            return Ok(Some(*feed));
        }
        let context = Context {
            variables: &variables,
            rows: rows.as_ref(),
            order: self.data_order,
            keeps_delays: false,
            recorded_host: None,
            headers: &[],
            read: &|_| Err(String::new()),
        };
        let scope = Scope::new(&context);
        let names: &'static [String] = scope.names().leak();
        let feed: &'static Feed = Box::leak(Box::new(super::feed(scope, &context)));
        feeds.push((source, (feed, names)));
        Ok(Some((feed, names)))
    }

    /// The names of the variables of requests, besides `{number}` and the like.
    pub(in super::super) fn variable_names(&self) -> Result<&'static [String], SpecError> {
        Ok(self.feed()?.map_or(&[], |(_, names)| names))
    }

    /// The rows of data.
    fn rows(&self, known: &mut Hashes) -> Result<Option<Rows>, SpecError> {
        let Some(path) = &self.data_file else {
            return Ok(None);
        };
        files::remember("data-file", path, known)?;
        let bytes = files::read("data-file", path, known)?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let end = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..end].split(|byte| *byte == b'\n').count();
            let why = "it is not UTF-8 text".to_owned();
            let wrong = Wrong {
                line,
                column: 1,
                why,
            };
            placed("data-file", path, "", &wrong)
        })?;
        Rows::read(path, &text)
            .map(Some)
            .map_err(|wrong| placed("data-file", path, &text, &wrong))
    }
}

/// An error with its place, the line, and a mark below it.
fn placed(key: &'static str, path: &Path, text: &str, wrong: &Wrong) -> SpecError {
    let Wrong { line, column, why } = wrong;
    let place = format!("{}:{line}:{column}: {why}", path.display());
    let shown: String = text
        .lines()
        .nth(line - 1)
        .unwrap_or_default()
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect();
    let reason = if shown.trim().is_empty() {
        place
    } else {
        format!("{place}\n  {shown}\n  {}^", " ".repeat(column - 1))
    };
    SpecError::value(key, reason)
}
