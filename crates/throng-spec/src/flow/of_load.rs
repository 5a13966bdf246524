//! The flow of a load.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use throng_protocol::Flow;

use super::super::files::{self, Hashes};
use super::super::{LoadSpec, RequestFile, SpecError};
use super::{Context, Format, Order, Read, Rows, Wrong, is_plain, read};

/// What a flow was read from. Equal ones are read once, since a measuring process asks for its flow before each trial.
type Source = (
    String,
    Vec<String>,
    Vec<String>,
    Option<String>,
    Order,
    bool,
);

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
        let file = file.read()?;
        Ok(self.read_flow(&file, format, &mut Hashes::new())?.origin)
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
            self.variable.clone(),
            self.headers(),
            rows.and_then(|path| self.files.get(&path.display().to_string()).cloned()),
            self.data_order,
            self.recorded_delays,
        );
        let mut flows = FLOWS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, flow)) = flows.iter().find(|(known, _)| *known == source) {
            return Ok(Some(flow));
        }
        let flow = self.read_flow(file, format, &mut self.files.clone())?.flow;
        let flow: &'static Flow = Box::leak(Box::new(flow));
        flows.push((source, flow));
        Ok(Some(flow))
    }

    /// Adds the hashes of the files that a flow reads.
    pub(in super::super) fn remember_flow(&self, known: &mut Hashes) -> Result<(), SpecError> {
        if let Some((file, format)) = self.steps() {
            self.read_flow(file, format, known)?;
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
        let mut variables = BTreeMap::new();
        for given in &self.variable {
            let Some((name, value)) = given.split_once('=') else {
                let why = format!("`variable`: write NAME=VALUE, not `{given}`");
                return Err(SpecError::value("variable", why));
            };
            variables.insert(name.to_owned(), value.to_owned());
        }
        let rows = self.rows(known)?;
        let known = RefCell::new(known);
        let read_file = |name: &Path| {
            let path = file.in_its_directory(name);
            let mut known = known.borrow_mut();
            files::remember("request-file", &path, &mut known)
                .and_then(|()| files::read("request-file", &path, &known))
                .map_err(|error| error.why)
        };
        let context = Context {
            variables: &variables,
            rows: rows.as_ref(),
            order: self.data_order,
            keeps_delays: self.recorded_delays,
            headers: &self.headers(),
            read: &read_file,
        };
        let text = file.known_text()?;
        read(format, &text, &context)
            .map_err(|wrong| placed("request-file", file.path(), &text, &wrong))
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
    let why = if shown.trim().is_empty() {
        place
    } else {
        format!("{place}\n  {shown}\n  {}^", " ".repeat(column - 1))
    };
    SpecError::value(key, why)
}
