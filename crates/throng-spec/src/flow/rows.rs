//! Rows of data for clients, from CSV or lines of JSON.

use std::path::Path;

use serde_json::Value as Json;

use super::Wrong;

/// Most values of all rows.
const MOST_VALUES: usize = 50_000_000;

/// Which row a session gets.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// A client gets its own row first, and then those of the clients after all others: no row is taken twice before
    /// each was taken once.
    #[default]
    InTurn,
    /// Any of them, by chance.
    Random,
}

impl Order {
    /// All variants, by name.
    pub const NAMED: [(&'static str, Self); 2] =
        [("in-turn", Self::InTurn), ("random", Self::Random)];
}

/// Rows with a value per column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Rows {
    pub(super) columns: Vec<String>,
    rows: Vec<Vec<Box<[u8]>>>,
}

impl Rows {
    /// Reads rows; a file whose name ends in `.jsonl`, `.ndjson` or `.json` has lines of JSON, any other is CSV.
    pub(in super::super) fn read(path: &Path, text: &str) -> Result<Self, Wrong> {
        let ending = path.extension().unwrap_or_default();
        let is_json = ["jsonl", "ndjson", "json"]
            .iter()
            .any(|json| ending == *json);
        let rows = if is_json { of_json(text) } else { of_csv(text) }?;
        if rows.rows.is_empty() {
            return Err(wrong(1, 1, "the file has no rows".to_owned()));
        }
        Ok(rows)
    }

    pub(super) fn values(&self) -> Vec<Vec<Box<[u8]>>> {
        self.rows.clone()
    }
}

fn wrong(line: usize, column: usize, why: String) -> Wrong {
    Wrong { line, column, why }
}

/// Rows of CSV (RFC 4180), whose first row has the names.
fn of_csv(text: &str) -> Result<Rows, Wrong> {
    check_quotes(text)?;
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .trim(csv::Trim::Headers)
        .from_reader(text.as_bytes());
    let columns: Vec<String> = match reader.headers() {
        Ok(names) => names.iter().map(str::to_owned).collect(),
        Err(error) => return Err(wrong(1, 1, error.to_string())),
    };
    check_names(&columns, 1)?;
    let mut rows = Vec::new();
    for row in reader.records() {
        let row = row.map_err(|error| {
            let line = error.position().map_or(1, |place| place.line() as usize);
            wrong(line, 1, error.to_string())
        })?;
        let line = row.position().map_or(1, |place| place.line() as usize);
        if row.len() != columns.len() {
            let written = text
                .lines()
                .nth(line - 1)
                .map_or(0, |line| line.chars().count());
            let why = format!(
                "the row has {} of {} values ({})",
                row.len(),
                columns.len(),
                columns.join(", ")
            );
            return Err(wrong(line, written + 1, why));
        }
        rows.push(row.iter().map(|value| value.as_bytes().into()).collect());
        check_size(rows.len(), columns.len(), line)?;
    }
    Ok(Rows { columns, rows })
}

/// Rejects quotes that RFC 4180 does not allow, which a lenient reader takes as text.
fn check_quotes(text: &str) -> Result<(), Wrong> {
    let (mut line, mut column) = (1, 0);
    // Where the current quoted value began.
    let mut open: Option<(usize, usize)> = None;
    let mut is_start = true;
    let mut was_closed = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        column += 1;
        match (letter, open) {
            ('"', Some(_)) if letters.peek() == Some(&'"') => {
                letters.next();
                column += 1;
            }
            ('"', Some(_)) => (open, was_closed) = (None, true),
            ('"', None) if is_start => open = Some((line, column)),
            ('"', None) => {
                let why =
                    "a quote within a value: quote the whole value, and write \"\" for a quote";
                return Err(wrong(line, column, why.to_owned()));
            }
            (',' | '\n' | '\r', None) => was_closed = false,
            (_, None) if was_closed => {
                let why = "text after a closing quote: write \"\" for a quote within a value";
                return Err(wrong(line, column, why.to_owned()));
            }
            _ => {}
        }
        if letter == '\n' {
            (line, column) = (line + 1, 0);
        }
        is_start = open.is_none() && matches!(letter, ',' | '\n' | '\r');
    }
    match open {
        Some((at_line, at_column)) => {
            Err(wrong(at_line, at_column, "the quote has no end".to_owned()))
        }
        None => Ok(()),
    }
}

/// Rows of JSON, an object in each line.
fn of_json(text: &str) -> Result<Rows, Wrong> {
    let mut columns: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for (line, written) in (1..).zip(text.lines()) {
        if written.trim().is_empty() {
            continue;
        }
        let row: serde_json::Map<String, Json> = serde_json::from_str(written)
            .map_err(|error| wrong(line, error.column().max(1), error.to_string()))?;
        if rows.is_empty() {
            columns = row.keys().cloned().collect();
            check_names(&columns, line)?;
        }
        if let Some(other) = row.keys().find(|name| !columns.contains(name)) {
            let at = written.find(other.as_str()).unwrap_or_default() + 1;
            return Err(wrong(line, at, format!("the first row has no `{other}`")));
        }
        let mut values: Vec<Box<[u8]>> = Vec::with_capacity(columns.len());
        for name in &columns {
            let cell = match row.get(name) {
                Some(Json::String(string)) => string.clone(),
                Some(value @ (Json::Number(_) | Json::Bool(_))) => value.to_string(),
                Some(_) => {
                    let why = format!("`{name}` is neither text nor a number");
                    return Err(wrong(line, 1, why));
                }
                None => return Err(wrong(line, 1, format!("the row has no `{name}`"))),
            };
            values.push(cell.into_bytes().into());
        }
        rows.push(values);
        check_size(rows.len(), columns.len(), line)?;
    }
    Ok(Rows { columns, rows })
}

fn check_names(names: &[String], line: usize) -> Result<(), Wrong> {
    for (place, name) in names.iter().enumerate() {
        if !super::scope::is_name(name) {
            let why = format!("`{name}` is no name of a column: use letters, digits, - and _");
            return Err(wrong(line, 1, why));
        }
        if names[..place].contains(name) {
            return Err(wrong(line, 1, format!("two columns are named `{name}`")));
        }
    }
    Ok(())
}

fn check_size(rows: usize, columns: usize, line: usize) -> Result<(), Wrong> {
    if rows * columns > MOST_VALUES {
        let why = format!("the file has more than {MOST_VALUES} values");
        return Err(wrong(line, 1, why));
    }
    Ok(())
}
