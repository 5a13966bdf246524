//! Values in replies, and what they must be.

use std::cell::OnceCell;
use std::cmp::Ordering;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use serde_json::Value as Json;
use serde_json_path::JsonPath;

use super::super::cookies::{field, lines, set_value};
use super::super::feed::Known;
use super::Part;

/// Where a value is in a reply.
#[derive(Debug)]
pub enum Query {
    /// Its status.
    Status,
    /// The header of this name, or all of them.
    Header(String),
    /// A cookie that it sets.
    Cookie(String),
    /// Its body.
    Body,
    /// A node of its body, which is JSON.
    JsonPath(Box<JsonPath>),
    /// What the first group of a regular expression matches in its body.
    Regex(Expression),
}

/// A value in a reply.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A node of JSON, or a status.
    Json(Json),
    /// Several nodes of JSON.
    Nodes(Vec<Json>),
}

/// What a value must be.
#[derive(Debug)]
pub enum Predicate {
    /// It is there.
    Exists,
    /// It equals this.
    Equals(Value),
    /// It has this order to a number.
    Compares(&'static [Ordering], f64),
    /// As text, it is this.
    EqualsText(Vec<Part>),
    /// It is this text, or has an element that is.
    Includes(Vec<Part>),
    /// It has this part.
    Contains(Vec<Part>),
    /// It begins so.
    StartsWith(Vec<Part>),
    /// It ends so.
    EndsWith(Vec<Part>),
    /// It matches a regular expression.
    Matches(Expression),
    /// It has this many elements.
    Counts(usize),
    /// It has no elements.
    IsEmpty,
}

/// A regular expression.
#[derive(Debug)]
pub struct Expression(Regex);

impl Expression {
    /// Compiles an expression in the syntax of the crate `regex`, for bytes.
    ///
    /// # Errors
    /// If it is invalid.
    pub fn new(expression: &str) -> Result<Self, String> {
        Regex::builder()
            .syntax(syntax::Config::new().utf8(false))
            .configure(Regex::config().utf8_empty(false))
            .build(expression)
            .map(Self)
            .map_err(|error| match error.syntax_error() {
                Some(wrong) => wrong.to_string(),
                None => error.to_string(),
            })
    }

    /// The number of its groups.
    pub fn groups(&self) -> usize {
        self.0.captures_len() - 1
    }

    fn first_group<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        let mut captures = self.0.create_captures();
        self.0.captures(text, &mut captures);
        captures.get_group(1).map(|span| &text[span.range()])
    }
}

/// A reply that values are looked up in.
pub(super) struct Seen<'a> {
    status: u16,
    head: &'a [u8],
    body: &'a [u8],
    json: OnceCell<Option<Json>>,
}

impl<'a> Seen<'a> {
    pub(super) fn new(status: u16, head: &'a [u8], body: &'a [u8]) -> Self {
        Self {
            status,
            head,
            body,
            json: OnceCell::new(),
        }
    }

    fn json(&self) -> Option<&Json> {
        self.json
            .get_or_init(|| serde_json::from_slice(self.body).ok())
            .as_ref()
    }
}

impl Query {
    /// Whether it looks at the body.
    pub(super) fn reads_body(&self) -> bool {
        matches!(self, Self::Body | Self::JsonPath(_) | Self::Regex(_))
    }

    /// The value in a reply, if it is there.
    pub(super) fn find(&self, seen: &Seen<'_>) -> Option<Value> {
        let text = |bytes: &[u8]| Value::Text(String::from_utf8_lossy(bytes).into_owned());
        match self {
            Self::Status => Some(Value::Json(seen.status.into())),
            Self::Header(name) => {
                let mut values: Vec<Value> = lines(seen.head)
                    .filter_map(|line| field(line, name))
                    .map(text)
                    .collect();
                match values.len() {
                    0 | 1 => values.pop(),
                    _ => {
                        let nodes = values.into_iter().map(Value::into_text);
                        Some(Value::Nodes(nodes.map(Json::String).collect()))
                    }
                }
            }
            Self::Cookie(name) => set_value(seen.head, name.as_bytes()).map(text),
            Self::Body => Some(text(seen.body)),
            Self::JsonPath(path) => {
                let nodes = path.query(seen.json()?).all();
                match nodes[..] {
                    [] => None,
                    [one] => Some(Value::Json(one.clone())),
                    _ => Some(Value::Nodes(nodes.into_iter().cloned().collect())),
                }
            }
            Self::Regex(expression) => expression.first_group(seen.body).map(text),
        }
    }
}

impl Value {
    /// As it is written into a request.
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Text(text) | Self::Json(Json::String(text)) => text,
            Self::Json(json) => json.to_string(),
            Self::Nodes(nodes) => Json::Array(nodes).to_string(),
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Json(Json::String(text)) => Some(text),
            _ => None,
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Self::Json(json) => json.as_f64(),
            _ => None,
        }
    }

    fn elements(&self) -> Option<usize> {
        match self {
            Self::Nodes(nodes) => Some(nodes.len()),
            Self::Json(Json::Array(array)) => Some(array.len()),
            Self::Json(Json::Object(object)) => Some(object.len()),
            Self::Json(_) | Self::Text(_) => None,
        }
    }

    fn is_empty(&self) -> bool {
        self.text().map(str::len).or(self.elements()) == Some(0)
    }

    fn contains(&self, part: &str) -> bool {
        match self.text() {
            Some(text) => text.contains(part),
            None => self.includes(part),
        }
    }

    fn includes(&self, text: &str) -> bool {
        match self {
            Self::Nodes(nodes) | Self::Json(Json::Array(nodes)) => {
                nodes.iter().any(|node| node.as_str() == Some(text))
            }
            _ => self.text() == Some(text),
        }
    }
}

/// A text with the values of its variables.
fn text_of(parts: &[Part], known: &[Known]) -> String {
    let mut text = Vec::new();
    for part in parts {
        match part {
            Part::Text(plain) => text.extend_from_slice(plain),
            Part::Variable(place, _) => text.extend_from_slice(known[*place].bytes()),
            Part::Uuid => {}
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

impl Predicate {
    /// Whether a value is so.
    pub(super) fn holds(&self, value: Option<&Value>, known: &[Known]) -> bool {
        let Some(value) = value else {
            return false;
        };
        match self {
            Self::Exists => true,
            Self::Equals(expected) => match (value.text(), expected.text()) {
                (Some(text), Some(other)) => text == other,
                _ => match (value.number(), expected.number()) {
                    (Some(number), Some(other)) => number.total_cmp(&other).is_eq(),
                    _ => value == expected,
                },
            },
            Self::Compares(orders, number) => value
                .number()
                .is_some_and(|value| orders.contains(&value.total_cmp(number))),
            Self::EqualsText(expected) => value.clone().into_text() == text_of(expected, known),
            Self::Includes(expected) => value.includes(&text_of(expected, known)),
            Self::Contains(part) => value.contains(&text_of(part, known)),
            Self::StartsWith(start) => value
                .text()
                .is_some_and(|text| text.starts_with(&text_of(start, known))),
            Self::EndsWith(end) => value
                .text()
                .is_some_and(|text| text.ends_with(&text_of(end, known))),
            Self::Matches(expression) => {
                value.text().is_some_and(|text| expression.0.is_match(text))
            }
            Self::Counts(count) => value.elements() == Some(*count),
            Self::IsEmpty => value.is_empty(),
        }
    }
}
