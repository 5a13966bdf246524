//! Requests of a load in a file, one per line.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use throng_protocol::{HttpRequest, Mix, RequestPart, Statuses};

use super::SpecError;
use super::files::{self, Hashes};
use super::flow::Format;
use super::text::deserialize_number;

/// The key of a load for such a file.
const KEY: &str = "request-file";
/// Records contain only the hash of larger files.
const MOST_KEPT: usize = 64 * 1024;
/// Maximum sum of all weights.
const MOST_REQUESTS: u64 = 1_000_000;

/// A file with a JSON request per line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(from = "Written", into = "Written")]
pub struct RequestFile {
    path: PathBuf,
    content: Option<Content>,
}

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Content {
    sha256: String,
    /// Its lines, unless they are too long to keep.
    lines: Option<Vec<String>>,
}

impl RequestFile {
    /// A file that was not read yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            content: None,
        }
    }

    /// Whether it is named as one of steps.
    pub fn has_steps(&self) -> bool {
        Format::of(&self.path).is_some()
    }

    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The hash of its content, if known.
    pub fn sha256(&self) -> Option<&str> {
        self.content.as_ref().map(|content| content.sha256.as_str())
    }

    /// With its content, so that the file is no longer needed, or changes to it are noticed.
    ///
    /// # Errors
    /// When it cannot be read, or is not a file of requests.
    pub(super) fn read(&self) -> Result<Self, SpecError> {
        if self.content.is_some() {
            return Ok(self.clone());
        }
        Self::holding(self.path.clone(), &self.text()?)
    }

    /// With this content.
    ///
    /// # Errors
    /// The place of the error.
    pub fn holding(path: impl Into<PathBuf>, text: &str) -> Result<Self, SpecError> {
        let is_short = text.len() <= MOST_KEPT;
        let file = Self {
            path: path.into(),
            content: Some(Content {
                sha256: hash(text),
                lines: is_short.then(|| text.lines().map(str::to_owned).collect()),
            }),
        };
        if Format::of(&file.path).is_none() {
            file.lines(text)?;
        }
        Ok(file)
    }

    fn text(&self) -> Result<String, SpecError> {
        let bytes = files::read(KEY, &self.path, &Hashes::new())?;
        String::from_utf8(bytes).map_err(|error| {
            let end = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..end].split(|byte| *byte == b'\n').count();
            self.wrong(line, 1, "it is not UTF-8 text")
        })
    }

    /// The text, from memory or from the file, which must not have changed.
    pub(super) fn known_text(&self) -> Result<String, SpecError> {
        let content = self.content.as_ref();
        if let Some(lines) = content.and_then(|content| content.lines.as_ref()) {
            return Ok(lines.join("\n"));
        }
        let text = self.text()?;
        match self.sha256() {
            Some(known) if hash(&text) != known => {
                let why = format!("`{KEY}`: {}", files::changed(&self.path, known));
                Err(SpecError::value(KEY, why))
            }
            _ => Ok(text),
        }
    }

    /// Adds the hashes of all body files.
    pub(super) fn remember_bodies(&self, known: &mut Hashes) -> Result<(), SpecError> {
        let whole = self.known_text()?;
        for (number, text, line) in self.lines(&whole)? {
            if let Some(Body::File { file: path }) = &line.body {
                files::remember(KEY, &self.in_its_directory(path), known)
                    .map_err(|error| self.wrong(number, column(text, "body"), &error.why))?;
            }
        }
        Ok(())
    }

    /// The path of a file that this one names, relative to its directory.
    pub(super) fn in_its_directory(&self, path: &Path) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(path)
    }

    /// Its requests. Each of these headers is added to all requests without a header of that name. Body files must
    /// match their hash, if that is known.
    pub(super) fn requests(
        &self,
        headers: &[String],
        (variables, names): (bool, &'static [String]),
        known: &Hashes,
    ) -> Result<Mix<&'static HttpRequest>, SpecError> {
        let text = self.known_text()?;
        let mut bodies = BTreeMap::new();
        let mut parts = Vec::new();
        for (number, line_text, line) in self.lines(&text)? {
            let wrong = |key: &str, why: &str| self.wrong(number, column(line_text, key), why);
            let body = line
                .body
                .as_ref()
                .map(|body| self.body(body, known, &mut bodies))
                .transpose()
                .map_err(|error| wrong("body", &error.why))?;
            let mut request = HttpRequest::new(
                line.method.as_deref(),
                line.path.as_deref().unwrap_or("/"),
                &line.headers.under(headers),
                body,
            )
            .and_then(|request| request.with_variables_if(variables, names))
            .map_err(|(part, why)| wrong(key_of(part), &why))?;
            if let Some(expected) = line.expect {
                request = request.expecting(expected);
            }
            parts.push((request, line.weight));
        }
        Ok(HttpRequest::intern(parts))
    }

    /// The bytes of a body; each file is read once.
    fn body(
        &self,
        body: &Body,
        known: &Hashes,
        read: &mut BTreeMap<PathBuf, Vec<u8>>,
    ) -> Result<Vec<u8>, SpecError> {
        let path = match body {
            Body::Text(text) => return Ok(text.clone().into_bytes()),
            Body::File { file: path } => self.in_its_directory(path),
        };
        if let Some(bytes) = read.get(&path) {
            return Ok(bytes.clone());
        }
        let bytes = files::read(KEY, &path, known)?;
        read.insert(path, bytes.clone());
        Ok(bytes)
    }

    /// All non-empty lines, each with its number.
    fn lines<'a>(&self, text: &'a str) -> Result<Vec<(usize, &'a str, Line)>, SpecError> {
        let mut lines = Vec::new();
        let mut weights = 0;
        for (place, line_text) in text.lines().enumerate() {
            if line_text.trim().is_empty() {
                continue;
            }
            let number = place + 1;
            let line: Line = serde_json::from_str(line_text).map_err(|error| {
                let whole = error.to_string();
                let without_place = whole
                    .rsplit_once(" at line ")
                    .map_or(&*whole, |(why, _)| why);
                // Its keys are not those of a load.
                let why = without_place.replace('`', "'");
                self.wrong(number, error.column().max(1), &why)
            })?;
            weights += u64::from(line.weight);
            if line.weight == 0 || weights > MOST_REQUESTS {
                let why = match line.weight {
                    0 => "a weight must be at least 1".to_owned(),
                    _ => format!("the sum of all weights exceeds {MOST_REQUESTS}"),
                };
                return Err(self.wrong(number, column(line_text, "weight"), &why));
            }
            lines.push((number, line_text, line));
        }
        if lines.is_empty() {
            return Err(self.wrong(1, 1, "the file has no requests"));
        }
        Ok(lines)
    }

    /// The error and its place.
    fn wrong(&self, line: usize, column: usize, why: &str) -> SpecError {
        let path = self.path.display();
        let why = format!(
            "{path}:{line}:{column}: {why}; each line is a request, like \
             {{\"method\": \"POST\", \"path\": \"/a\", \"headers\": {{\"A\": \"b\"}}, \"body\": \"c\", \"weight\": 2}}"
        );
        SpecError::value(KEY, why)
    }
}

fn hash(text: &str) -> String {
    // Trailing newlines make no difference.
    files::hash(text.trim_end().as_bytes())
}

/// The column of a key in a line, from 1.
fn column(line: &str, key: &str) -> usize {
    line.find(&format!("\"{key}\"")).map_or(1, |at| at + 1)
}

fn key_of(part: RequestPart) -> &'static str {
    match part {
        RequestPart::Method => "method",
        RequestPart::Path => "path",
        RequestPart::Header => "headers",
        RequestPart::Body => "body",
    }
}

impl fmt::Display for RequestFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

/// The name of the file; in a record, with its content.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected the name of a file"
)]
enum Written {
    Name(PathBuf),
    File {
        path: PathBuf,
        sha256: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lines: Option<Vec<String>>,
    },
}

impl From<RequestFile> for Written {
    fn from(RequestFile { path, content }: RequestFile) -> Self {
        match content {
            None => Self::Name(path),
            Some(Content { sha256, lines }) => Self::File {
                path,
                sha256,
                lines,
            },
        }
    }
}

impl From<Written> for RequestFile {
    fn from(written: Written) -> Self {
        match written {
            Written::Name(path) => Self::new(path),
            Written::File {
                path,
                sha256,
                lines,
            } => Self {
                path,
                content: Some(Content { sha256, lines }),
            },
        }
    }
}

/// A line of such a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    headers: Headers,
    #[serde(default)]
    body: Option<Body>,
    #[serde(default = "one")]
    weight: u32,
    #[serde(default, deserialize_with = "statuses")]
    expect: Option<Statuses>,
}

fn one() -> u32 {
    1
}

/// Headers, each `Name: value`.
#[derive(Debug, Default)]
struct Headers(Vec<String>);

impl Headers {
    /// These headers, and the others whose names are not among them.
    fn under(&self, others: &[String]) -> Vec<String> {
        let name = |header: &str| {
            let name = header.split(':').next().unwrap_or_default();
            name.to_ascii_lowercase()
        };
        let is_own = |other: &&String| self.0.iter().any(|own| name(own) == name(other));
        let others = others.iter().filter(|other| !is_own(other));
        others.chain(&self.0).cloned().collect()
    }
}

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Headers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("headers, like {\"Accept\": \"text/html\"} or [\"Accept: text/html\"]")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Headers, A::Error> {
                let mut headers = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, String>()? {
                    headers.push(format!("{name}: {value}"));
                }
                Ok(Headers(headers))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Headers, A::Error> {
                let mut headers = Vec::new();
                while let Some(header) = list.next_element()? {
                    headers.push(header);
                }
                Ok(Headers(headers))
            }
        }

        from.deserialize_any(Reader)
    }
}

/// The body of a request.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "a body is a text, or {\"file\": \"NAME\"}"
)]
enum Body {
    /// Literal.
    Text(String),
    /// The content of this file.
    File {
        /// Its name, relative to the file of requests.
        file: PathBuf,
    },
}

fn statuses<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Statuses>, D::Error> {
    let expected = "statuses, like 404 or \"2xx,404\"";
    deserialize_number(from, expected, str::parse).map(Some)
}

#[cfg(test)]
#[path = "request_file/tests.rs"]
mod tests;
