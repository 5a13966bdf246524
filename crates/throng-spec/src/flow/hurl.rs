//! Files of Hurl (<https://hurl.dev>), as far as a load can do what they say.
//!
//! The grammar is line by line: a request line, headers, sections in brackets, a body; then, if there is one, what the
//! reply must be. Everything that is not understood is an error at its place.

use std::cmp::Ordering::{Equal, Greater, Less};
use std::time::Duration;

use throng_protocol::{
    Assert, Capture, Encoding, Expression, FlowStep, HttpRequest, Part, Predicate, Query,
    RequestPart, Statuses, Value,
};

use super::cursor::{Cursor, uncommented, unescaped};
use super::scope::{Scope, is_name};
use super::{Context, Found, Wrong, elsewhere, name_of, split_url};

/// Reads all steps.
pub(super) fn steps(text: &str, scope: &mut Scope, context: &Context<'_>) -> Result<Found, Wrong> {
    let mut reader = Reader {
        lines: text.trim_start_matches('\u{feff}').lines().collect(),
        at: 0,
        scope,
        context,
        name: None,
    };
    let mut found = Found {
        steps: Vec::new(),
        origin: None,
    };
    let mut first: Option<String> = None;
    while reader.next_line().is_some() {
        let entry = reader.entry(&mut first)?;
        found.steps.extend(entry);
    }
    found.origin = first.and_then(|origin| reader.known_origin(&origin));
    Ok(found)
}

/// A file, line by line.
struct Reader<'a, 'b> {
    lines: Vec<&'a str>,
    /// The current line, from 0.
    at: usize,
    scope: &'b mut Scope,
    context: &'b Context<'b>,
    /// The last comment of one word, with its line: the name of a step, if that is the next line.
    name: Option<(usize, String)>,
}

/// What an entry says of its request.
struct Request {
    step: FlowStep,
    method: String,
    headers: Vec<(usize, String, Vec<Part>)>,
    query: Vec<Part>,
    form: Option<Vec<Part>>,
    is_skipped: bool,
}

impl<'a> Reader<'a, '_> {
    fn wrong<T>(&self, column: usize, why: impl Into<String>) -> Result<T, Wrong> {
        Err(Wrong {
            line: self.at + 1,
            column,
            why: why.into(),
        })
    }

    /// The next line that is neither empty nor a comment, if there is one; it becomes the current one.
    fn next_line(&mut self) -> Option<&'a str> {
        loop {
            let line = *self.lines.get(self.at)?;
            let text = line.trim();
            if let Some(comment) = text.strip_prefix('#') {
                let comment = comment.trim();
                self.name = is_name(comment).then(|| (self.at, comment.to_owned()));
            } else if !text.is_empty() {
                return Some(line);
            }
            self.at += 1;
        }
    }

    fn cursor(&self) -> Cursor<'a> {
        Cursor {
            line: self.at,
            text: self.lines[self.at],
            at: 0,
        }
    }

    /// An entry: a request, and what its reply must be. `None` if it is skipped.
    fn entry(&mut self, first: &mut Option<String>) -> Result<Option<FlowStep>, Wrong> {
        let mut request = self.request_line(first)?;
        while let Some(line) = self.next_line() {
            if is_request(line) || is_reply(line) {
                break;
            }
            if let Some(section) = section(line) {
                self.request_section(section, &mut request)?;
            } else if is_body(line) {
                request.step.body = Some(self.body(&mut request.headers)?);
            } else {
                let (name, value) = self.pair(Encoding::Header)?;
                request.headers.push((self.at, name, value));
                self.at += 1;
            }
        }
        self.reply(&mut request.step)?;
        self.finish(request)
    }

    fn request_line(&mut self, first: &mut Option<String>) -> Result<Request, Wrong> {
        let mut cursor = self.cursor();
        let method = cursor.word().to_owned();
        if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return self.wrong(
                1,
                "a step begins with a method and a URL, like `GET http://localhost:8080/`",
            );
        }
        cursor.skip_spaces();
        let column = cursor.column();
        let url = cursor.url();
        cursor.end()?;
        let Some((origin, path)) = split_url(url) else {
            return self.wrong(
                column,
                "a URL begins with http://, https:// or a variable, like `{{host}}/path`",
            );
        };
        match first {
            Some(first) if first != origin => {
                return self.wrong(column, elsewhere(origin, first));
            }
            Some(_) => {}
            None => *first = Some(origin.to_owned()),
        }
        let without_fragment = path.split('#').next().unwrap_or_default();
        let requested = match without_fragment.strip_prefix('?') {
            _ if without_fragment.is_empty() => "/".to_owned(),
            Some(_) => format!("/{without_fragment}"),
            None => without_fragment.to_owned(),
        };
        let start = column + origin.chars().count();
        let parts = self.parts(&requested, Encoding::Path, start)?;
        let above = self.name.take().filter(|(line, _)| line + 1 == self.at);
        let name = above.map_or_else(|| name_of(&method, &requested), |(_, name)| name);
        self.at += 1;
        Ok(Request {
            step: FlowStep {
                name,
                request: throng_protocol::HttpRequest::new(None, "/", &[], None).map_err(
                    |(_, why)| Wrong {
                        line: self.at,
                        column: 1,
                        why,
                    },
                )?,
                path: parts,
                headers: Vec::new(),
                cookies: Vec::new(),
                body: None,
                expected: None,
                delay: Duration::ZERO,
                limit: None,
                captures: Vec::new(),
                asserts: Vec::new(),
            },
            method,
            headers: Vec::new(),
            query: Vec::new(),
            form: None,
            is_skipped: false,
        })
    }

    /// A text's parts, with the place of an error in this line.
    fn parts(&self, text: &str, encoding: Encoding, column: usize) -> Result<Vec<Part>, Wrong> {
        self.scope.parts(text, encoding).or_else(|(at, why)| {
            let before = text[..at].chars().count();
            self.wrong(column + before, why)
        })
    }

    /// A line `key: value`.
    fn pair(&self, encoding: Encoding) -> Result<(String, Vec<Part>), Wrong> {
        let mut cursor = self.cursor();
        cursor.skip_spaces();
        let start = cursor.column();
        let Some(colon) = cursor.rest().find(':') else {
            return self.wrong(start, "expected `name: value`");
        };
        let name = unescaped(cursor.rest()[..colon].trim());
        cursor.at += colon + 1;
        cursor.skip_spaces();
        let column = cursor.column();
        let value = uncommented(cursor.rest()).trim_end();
        Ok((name, self.parts(&unescaped(value), encoding, column)?))
    }

    fn request_section(&mut self, section: &str, request: &mut Request) -> Result<(), Wrong> {
        let column = 1;
        match section {
            "Query" | "QueryStringParams" => {
                self.at += 1;
                while let Some((name, value)) = self.section_pair(Encoding::Form)? {
                    add_pair(&mut request.query, &name, value);
                }
            }
            "Form" | "FormParams" => {
                self.at += 1;
                let form = request.form.get_or_insert_default();
                while let Some((name, value)) = self.section_pair(Encoding::Form)? {
                    add_pair(form, &name, value);
                }
            }
            "Cookies" => {
                self.at += 1;
                while let Some((name, value)) = self.section_pair(Encoding::Header)? {
                    let cookies = &mut request.step.cookies;
                    if !cookies.is_empty() {
                        cookies.push(Part::Text(b"; ".to_vec()));
                    }
                    cookies.push(Part::Text(format!("{name}=").into_bytes()));
                    cookies.extend(value);
                }
            }
            "BasicAuth" => {
                let why = "the section [BasicAuth] is not supported: write the header \
                           `Authorization: Basic ...`, or use --user";
                return self.wrong(column, why);
            }
            "Options" => self.options(request)?,
            "Captures" | "Asserts" => {
                let why = format!("[{section}] comes after the line `HTTP`, which is missing");
                return self.wrong(column, why);
            }
            other => {
                return self.wrong(column, format!("the section [{other}] is not supported"));
            }
        }
        Ok(())
    }

    /// The next line of a section, if it goes on.
    fn section_pair(&mut self, encoding: Encoding) -> Result<Option<(String, Vec<Part>)>, Wrong> {
        match self.next_line() {
            Some(line) if !ends_section(line) => {
                let pair = self.pair(encoding)?;
                self.at += 1;
                Ok(Some(pair))
            }
            _ => Ok(None),
        }
    }

    fn options(&mut self, request: &mut Request) -> Result<(), Wrong> {
        self.at += 1;
        while let Some(line) = self.next_line() {
            if ends_section(line) {
                break;
            }
            let mut cursor = self.cursor();
            cursor.skip_spaces();
            let start = cursor.column();
            let Some((name, value)) = cursor.rest().split_once(':') else {
                return self.wrong(start, "expected `option: value`");
            };
            let value = uncommented(value).trim();
            let column = start + line[..line.find(value).unwrap_or_default()].chars().count();
            match (name.trim(), value) {
                ("delay", time) => match delay(time) {
                    Some(delay) => request.step.delay = delay,
                    None => {
                        return self
                            .wrong(column, "a delay is a number with ms, s or m, like 500ms");
                    }
                },
                ("skip", "true") => request.is_skipped = true,
                ("skip", "false") => {}
                ("skip", _) => return self.wrong(column, "`skip` is true or false"),
                (other, _) => {
                    return self.wrong(start, format!("the option `{other}` is not supported"));
                }
            }
            self.at += 1;
        }
        Ok(())
    }

    /// A body. It may add the header with its type.
    fn body(&mut self, headers: &mut Vec<(usize, String, Vec<Part>)>) -> Result<Vec<Part>, Wrong> {
        let line = self.lines[self.at];
        let start = line.len() - line.trim_start().len();
        let text = line.trim_start();
        if text.starts_with("```") {
            return self.multiline();
        }
        if let Some(rest) = text.strip_prefix('`') {
            let Some(end) = rest.find('`') else {
                return self.wrong(start + 1, "the text has no closing `");
            };
            let parts = self.parts(&rest[..end], Encoding::Plain, start + 2)?;
            self.at += 1;
            return Ok(parts);
        }
        if let Some(rest) = text.strip_prefix("file,") {
            let Some(name) = rest.split_once(';').map(|(name, _)| name.trim()) else {
                return self.wrong(start + 1, "a file is written `file,NAME;`");
            };
            let read = (self.context.read)(unescaped(name).as_ref());
            let bytes = read.or_else(|why| self.wrong(start + 6, why))?;
            self.at += 1;
            return Ok(vec![Part::Text(bytes)]);
        }
        for (kind, name) in [("base64,", "base64"), ("hex,", "hex"), ("<", "XML")] {
            if text.starts_with(kind) {
                let why =
                    format!("a body of {name} is not supported; put it in a file: `file,NAME;`");
                return self.wrong(start + 1, why);
            }
        }
        if is_scalar(text) {
            self.at += 1;
            self.is_json(headers);
            return Ok(vec![Part::Text(uncommented(text).trim().into())]);
        }
        self.json(headers)
    }

    /// Adds the type of a body of JSON, unless the step has one.
    fn is_json(&self, headers: &mut Vec<(usize, String, Vec<Part>)>) {
        let is_set = |(_, name, _): &(usize, String, _)| name.eq_ignore_ascii_case("content-type");
        if !headers.iter().any(is_set) {
            let value = vec![Part::Text(b"application/json".to_vec())];
            headers.push((self.at, "Content-Type".to_owned(), value));
        }
    }

    /// A text between two lines of three backticks.
    fn multiline(&mut self) -> Result<Vec<Part>, Wrong> {
        let opening = self.at;
        let line = self.lines[self.at].trim();
        let hint = &line[3..];
        if let Some(text) = hint.strip_suffix("```") {
            let parts = self.parts(text, Encoding::Plain, 4)?;
            self.at += 1;
            return Ok(parts);
        }
        if !["", "json", "text", "raw", "xml", "graphql"].contains(&hint) || hint == "graphql" {
            return self.wrong(4, format!("a text of the kind `{hint}` is not supported"));
        }
        let mut parts = Vec::new();
        loop {
            self.at += 1;
            let Some(inner) = self.lines.get(self.at) else {
                self.at = opening;
                return self.wrong(1, "the text has no closing line ```");
            };
            if inner.trim() == "```" {
                break;
            }
            parts.extend(self.parts(inner, Encoding::Plain, 1)?);
            parts.push(Part::Text(b"\n".to_vec()));
        }
        self.at += 1;
        Ok(parts)
    }

    /// A body of JSON, which may have variables as values and within strings.
    fn json(&mut self, headers: &mut Vec<(usize, String, Vec<Part>)>) -> Result<Vec<Part>, Wrong> {
        let first = self.at;
        let mut parts = Vec::new();
        // The same with variables replaced, to check it.
        let mut plain = String::new();
        let (mut depth, mut in_string) = (0_usize, false);
        'lines: loop {
            let Some(line) = self.lines.get(self.at).copied() else {
                self.at = first;
                return self.wrong(1, "the JSON has no end");
            };
            let mut text = String::new();
            let mut letters = line.char_indices().peekable();
            let mut is_over = false;
            while let Some((at, letter)) = letters.next() {
                if line[at..].starts_with("{{")
                    && let Some(end) = line[at..].find("}}")
                    && is_name(line[at + 2..at + end].trim())
                {
                    parts.push(Part::Text(std::mem::take(&mut text).into_bytes()));
                    let encoding = if in_string {
                        Encoding::Json
                    } else {
                        Encoding::Plain
                    };
                    let column = line[..at].chars().count() + 1;
                    parts.extend(self.parts(&line[at..at + end + 2], encoding, column)?);
                    plain.push('0');
                    while letters.next_if(|(next, _)| *next < at + end + 2).is_some() {}
                    continue;
                }
                match letter {
                    '\\' if in_string => {
                        text.push(letter);
                        plain.push(letter);
                        if let Some((_, escaped)) = letters.next() {
                            text.push(escaped);
                            plain.push(escaped);
                        }
                        continue;
                    }
                    '"' => in_string = !in_string,
                    '{' | '[' if !in_string => depth += 1,
                    '}' | ']' if !in_string => depth = depth.saturating_sub(1),
                    _ => {}
                }
                text.push(letter);
                plain.push(letter);
                if depth == 0 && !in_string && matches!(letter, '}' | ']' | '"') {
                    is_over = true;
                    let after = uncommented(&line[at + letter.len_utf8()..]).trim();
                    if !after.is_empty() {
                        let column = line[..=at].chars().count() + 1;
                        return self.wrong(column, "text after the end of the JSON");
                    }
                    break;
                }
            }
            parts.push(Part::Text(text.into_bytes()));
            self.at += 1;
            if is_over {
                break 'lines;
            }
            parts.push(Part::Text(b"\n".to_vec()));
            plain.push('\n');
        }
        if let Err(error) = serde_json::from_str::<serde_json::Value>(&plain) {
            return Err(Wrong {
                line: first + error.line(),
                column: error.column().max(1),
                why: format!("the JSON is wrong: {error}"),
            });
        }
        self.is_json(headers);
        Ok(parts)
    }

    /// What the reply must be, if the entry says it.
    fn reply(&mut self, step: &mut FlowStep) -> Result<(), Wrong> {
        match self.next_line() {
            Some(line) if is_reply(line) => {}
            _ => return Ok(()),
        }
        let mut cursor = self.cursor();
        cursor.skip_spaces();
        let version = cursor.word();
        if !["HTTP", "HTTP/1.1"].contains(&version) {
            let why = format!("`{version}` is not supported: clients speak HTTP/1.1; write HTTP");
            return self.wrong(1, why);
        }
        cursor.skip_spaces();
        let column = cursor.column();
        let listed = uncommented(cursor.rest()).trim();
        let all = "1xx,2xx,3xx,4xx,5xx";
        let statuses = if listed == "*" { all } else { listed };
        match statuses.parse::<Statuses>() {
            Ok(statuses) => step.expected = Some(statuses),
            Err(why) => return self.wrong(column, why),
        }
        self.at += 1;
        while let Some(line) = self.next_line() {
            if is_request(line) {
                break;
            }
            match section(line) {
                Some("Captures") => self.captures(step)?,
                Some("Asserts") => self.asserts(step)?,
                Some(other) => {
                    return self.wrong(1, format!("the section [{other}] is not supported"));
                }
                None if is_body(line) => {
                    let why = "a whole body as a condition is not supported: use [Asserts], like \
                               `body contains \"...\"`";
                    return self.wrong(1, why);
                }
                None => {
                    let (name, value) = self.pair(Encoding::Plain)?;
                    step.asserts.push(Assert {
                        query: Query::Header(name),
                        predicate: Predicate::Includes(value),
                        is_negated: false,
                        failure: said(&step.name, line),
                    });
                    self.at += 1;
                }
            }
        }
        Ok(())
    }

    fn captures(&mut self, step: &mut FlowStep) -> Result<(), Wrong> {
        self.at += 1;
        while let Some(line) = self.next_line() {
            if ends_section(line) {
                break;
            }
            let mut cursor = self.cursor();
            cursor.skip_spaces();
            let column = cursor.column();
            let Some((name, _)) = cursor.rest().split_once(':') else {
                return self.wrong(column, "expected `name: query`");
            };
            let written = name.trim();
            if !is_name(written) {
                return self.wrong(column, format!("`{written}` is no name of a variable"));
            }
            cursor.at += name.len() + 1;
            let query = self.query(&mut cursor)?;
            let rest = cursor.column();
            if let Some(filter) = cursor.next_word() {
                let why = format!("the filter `{filter}` is not supported");
                return self.wrong(rest + 1, why);
            }
            step.captures.push(Capture {
                variable: self.scope.capture(written),
                name: written.to_owned(),
                query,
                failure: said(&step.name, &format!("nothing to capture: {}", line.trim())),
            });
            self.at += 1;
        }
        Ok(())
    }

    /// A value of a reply: `status`, `header "X"`, `cookie "x"`, `body`, `jsonpath "$.x"` or `regex /x/`.
    fn query(&self, cursor: &mut Cursor<'a>) -> Result<Query, Wrong> {
        cursor.skip_spaces();
        let column = cursor.column();
        let kind = cursor.word();
        Ok(match kind {
            "status" => Query::Status,
            "body" => Query::Body,
            "header" => Query::Header(self.constant(cursor)?.1),
            "cookie" => {
                let (at, name) = self.constant(cursor)?;
                if name.contains('[') {
                    return self.wrong(at, "attributes of cookies are not supported");
                }
                Query::Cookie(name)
            }
            "jsonpath" => {
                let (at, path) = self.constant(cursor)?;
                match serde_json_path::JsonPath::parse(&path) {
                    Ok(path) => Query::JsonPath(Box::new(path)),
                    Err(error) => {
                        return self.wrong(
                            at + 1 + error.position(),
                            format!("the JSONPath is wrong: {}", error.message()),
                        );
                    }
                }
            }
            "regex" => {
                let (at, expression) = self.expression(cursor)?;
                if expression.groups() == 0 {
                    let why = "the expression has no group ( ), which is what is taken";
                    return self.wrong(at, why);
                }
                Query::Regex(expression)
            }
            other => return self.wrong(column, format!("the query `{other}` is not supported")),
        })
    }

    /// A quoted text without variables, and its place.
    fn constant(&self, cursor: &mut Cursor<'a>) -> Result<(usize, String), Wrong> {
        cursor.skip_spaces();
        let column = cursor.column();
        let Some(text) = cursor.quoted()? else {
            return self.wrong(column, "expected a text in quotes");
        };
        if text.contains("{{") {
            return self.wrong(column, "variables are not supported here");
        }
        Ok((column, text))
    }

    /// A regular expression, between slashes or in quotes, and its place.
    fn expression(&self, cursor: &mut Cursor<'a>) -> Result<(usize, Expression), Wrong> {
        cursor.skip_spaces();
        let column = cursor.column();
        let text = match cursor.slashed()? {
            Some(text) => text,
            None => self.constant(cursor)?.1,
        };
        let parsed = Expression::new(&text);
        let expression = parsed
            .or_else(|why| self.wrong(column, format!("the regular expression is wrong: {why}")))?;
        Ok((column, expression))
    }

    fn asserts(&mut self, step: &mut FlowStep) -> Result<(), Wrong> {
        self.at += 1;
        while let Some(line) = self.next_line() {
            if ends_section(line) {
                break;
            }
            let mut cursor = self.cursor();
            cursor.skip_spaces();
            if cursor.rest().starts_with("duration") {
                step.limit = Some(self.limit(&mut cursor)?);
            } else {
                let query = self.query(&mut cursor)?;
                let (predicate, is_negated) = self.predicate(&mut cursor)?;
                step.asserts.push(Assert {
                    query,
                    predicate,
                    is_negated,
                    failure: said(&step.name, uncommented(line).trim()),
                });
            }
            let column = cursor.column();
            if let Some(rest) = cursor.next_word() {
                return self.wrong(column + 1, format!("`{rest}` is not understood here"));
            }
            self.at += 1;
        }
        Ok(())
    }

    /// `duration < 1000`.
    fn limit(&self, cursor: &mut Cursor<'a>) -> Result<Duration, Wrong> {
        cursor.word();
        cursor.skip_spaces();
        let column = cursor.column();
        let sign = cursor.word();
        cursor.skip_spaces();
        let time = cursor.word();
        match (sign, time.parse()) {
            ("<" | "<=", Ok(milliseconds)) => Ok(Duration::from_millis(milliseconds)),
            _ => self.wrong(
                column,
                "a duration is compared as `duration < N`, in milliseconds",
            ),
        }
    }

    fn predicate(&self, cursor: &mut Cursor<'a>) -> Result<(Predicate, bool), Wrong> {
        cursor.skip_spaces();
        let mut is_negated = false;
        let mut column = cursor.column();
        let mut word = cursor.word();
        if word == "not" {
            is_negated = true;
            cursor.skip_spaces();
            column = cursor.column();
            word = cursor.word();
        }
        let predicate = match word {
            "exists" => Predicate::Exists,
            "isEmpty" => Predicate::IsEmpty,
            "==" | "equals" => self.equals(cursor)?,
            "!=" | "notEquals" => {
                is_negated = !is_negated;
                self.equals(cursor)?
            }
            "<" | "lessThan" => Predicate::Compares(&[Less], self.number(cursor)?),
            "<=" | "lessThanOrEquals" => Predicate::Compares(&[Less, Equal], self.number(cursor)?),
            ">" | "greaterThan" => Predicate::Compares(&[Greater], self.number(cursor)?),
            ">=" | "greaterThanOrEquals" => {
                Predicate::Compares(&[Greater, Equal], self.number(cursor)?)
            }
            "contains" => Predicate::Contains(self.text(cursor)?),
            "includes" => Predicate::Includes(self.text(cursor)?),
            "startsWith" => Predicate::StartsWith(self.text(cursor)?),
            "endsWith" => Predicate::EndsWith(self.text(cursor)?),
            "matches" => Predicate::Matches(self.expression(cursor)?.1),
            "count" => {
                cursor.skip_spaces();
                let at = cursor.column();
                if !["==", "equals"].contains(&cursor.word()) {
                    return self.wrong(at, "a count is compared with ==");
                }
                Predicate::Counts(self.number(cursor)? as usize)
            }
            other => {
                let why = format!("the predicate or filter `{other}` is not supported");
                return self.wrong(column, why);
            }
        };
        Ok((predicate, is_negated))
    }

    /// What a value is compared with: a text, a number, true, false, null or a variable.
    fn equals(&self, cursor: &mut Cursor<'a>) -> Result<Predicate, Wrong> {
        cursor.skip_spaces();
        if cursor.rest().starts_with(['"', '`', '{']) {
            return Ok(Predicate::EqualsText(self.text(cursor)?));
        }
        let column = cursor.column();
        let word = cursor.word();
        match serde_json::from_str(word) {
            Ok(value) => Ok(Predicate::Equals(Value::Json(value))),
            Err(_) => self.wrong(
                column,
                format!("`{word}` is no value; write a text in quotes"),
            ),
        }
    }

    fn number(&self, cursor: &mut Cursor<'a>) -> Result<f64, Wrong> {
        cursor.skip_spaces();
        let column = cursor.column();
        let word = cursor.word();
        word.parse()
            .or_else(|_| self.wrong(column, format!("`{word}` is not a number")))
    }

    /// A text in quotes, or a variable.
    fn text(&self, cursor: &mut Cursor<'a>) -> Result<Vec<Part>, Wrong> {
        cursor.skip_spaces();
        let column = cursor.column();
        if let Some(text) = cursor.quoted()? {
            return self.parts(&text, Encoding::Plain, column + 1);
        }
        match (cursor.rest().starts_with("{{"), cursor.rest().find("}}")) {
            (true, Some(end)) => {
                let text = &cursor.rest()[..end + 2];
                cursor.at += text.len();
                self.parts(text, Encoding::Plain, column)
            }
            _ => self.wrong(column, "expected a text in quotes"),
        }
    }

    /// Puts an entry together, and checks what is the same for all clients.
    fn finish(&self, request: Request) -> Result<Option<FlowStep>, Wrong> {
        let Request {
            mut step,
            method,
            headers,
            query,
            form,
            is_skipped,
        } = request;
        let at_end = |why: String| Wrong {
            line: self.at,
            column: 1,
            why,
        };
        if !query.is_empty() {
            let has_query = step
                .path
                .iter()
                .any(|part| matches!(part, Part::Text(text) if text.contains(&b'?')));
            let sign = if has_query { b"&" } else { b"?" };
            step.path.push(Part::Text(sign.to_vec()));
            step.path.extend(query);
        }
        step.headers = headers
            .iter()
            .map(|(_, name, value)| (name.clone(), value.clone()))
            .collect();
        if let Some(form) = form {
            if step.body.replace(form).is_some() {
                return Err(at_end("a step has a form or a body, not both".to_owned()));
            }
            let value = vec![Part::Text(b"application/x-www-form-urlencoded".to_vec())];
            step.headers.push(("Content-Type".to_owned(), value));
        }
        let is_set = |name: &str| {
            let mut set = step.headers.iter();
            set.any(|(own, _)| own.eq_ignore_ascii_case(name))
        };
        let mut added = Vec::new();
        for header in self.context.headers {
            let (name, value) = header.split_once(':').unwrap_or((header, ""));
            if !is_set(name.trim()) {
                let value = vec![Part::Text(value.trim().into())];
                added.push((name.trim().to_owned(), value));
            }
        }
        step.headers.extend(added);
        let plain: Vec<String> = step
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", as_example(value)))
            .collect();
        let made = HttpRequest::new(Some(&method), &as_example(&step.path), &plain, None);
        step.request = made.map_err(|(part, why)| {
            let header = headers.iter().find(|(_, name, _)| why.contains(&**name));
            let line = match (part, header) {
                (RequestPart::Header, Some((line, ..))) => line + 1,
                _ => self.at,
            };
            Wrong {
                line,
                column: 1,
                why,
            }
        })?;
        Ok((!is_skipped).then_some(step))
    }

    /// Where requests go, if that has no unknown variables.
    fn known_origin(&self, origin: &str) -> Option<String> {
        let mut known = String::new();
        let mut rest = origin;
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, after) = after.split_once("}}")?;
            known += before;
            known += self.context.variables.get(name.trim())?;
            rest = after;
        }
        Some(known + rest)
    }
}

/// A text with `x` for each variable.
fn as_example(parts: &[Part]) -> String {
    let text = |part: &Part| match part {
        Part::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Part::Variable(..) | Part::Uuid => "x".to_owned(),
    };
    parts.iter().map(text).collect()
}

/// The message for a step whose reply is not as it must be. It lives as long as the flow.
fn said(step: &str, condition: &str) -> &'static str {
    format!("{step}: {condition}").leak()
}

fn add_pair(to: &mut Vec<Part>, name: &str, value: Vec<Part>) {
    let written = |byte: u8, is_plain: bool| {
        if is_plain {
            (byte as char).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    let encoded = |text: &[u8]| {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
        let bytes = text.iter().map(|byte| written(*byte, is_plain(byte)));
        bytes.collect::<String>()
    };
    // As Hurl does, which leaves brackets in names as they are.
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b"&=#+%".contains(byte);
    let name: String = name
        .bytes()
        .map(|byte| written(byte, is_plain(&byte)))
        .collect();
    let and = if to.is_empty() { "" } else { "&" };
    to.push(Part::Text(format!("{and}{name}=").into_bytes()));
    to.extend(value.into_iter().map(|part| match part {
        Part::Text(text) => Part::Text(encoded(&text).into_bytes()),
        other => other,
    }));
}

/// Whether a line begins an entry.
fn is_request(line: &str) -> bool {
    let Some((method, rest)) = line.trim().split_once(' ') else {
        return false;
    };
    // No method of HTTP is shorter.
    method.len() >= 3
        && method != "HTTP"
        && method.bytes().all(|byte| byte.is_ascii_uppercase())
        && !rest.trim().is_empty()
}

/// Whether a line begins what a reply must be.
fn is_reply(line: &str) -> bool {
    let rest = line.trim().strip_prefix("HTTP");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '/']))
}

/// The name of the section that a line begins.
fn section(line: &str) -> Option<&str> {
    let line = uncommented(line).trim();
    let name = line.strip_prefix('[')?.strip_suffix(']')?;
    (!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic())).then_some(name)
}

fn ends_section(line: &str) -> bool {
    is_request(line) || is_reply(line) || section(line).is_some() || is_body(line)
}

/// Whether a line begins a body.
fn is_body(line: &str) -> bool {
    let line = line.trim_start();
    let marks = ["```", "`", "{", "[", "\"", "<", "file,", "base64,", "hex,"];
    is_scalar(line) || section(line).is_none() && marks.iter().any(|mark| line.starts_with(mark))
}

/// Whether a line is a number, true, false or null: a body of JSON.
fn is_scalar(line: &str) -> bool {
    let text = uncommented(line).trim();
    !text.starts_with(['{', '[', '"']) && serde_json::from_str::<serde_json::Value>(text).is_ok()
}

/// A time like `500ms`, `2s`, `1m` or `500`.
fn delay(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    match &text[digits.len()..] {
        "" | "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number.checked_mul(60)?)),
        _ => None,
    }
}
