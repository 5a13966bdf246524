//! A request: method, path, headers, body, and the statuses that count as correct.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use super::super::{Mix, Statuses};
use super::template::{self, Encoding, Piece};

/// Headers that the client writes itself, since they determine the framing.
const OWN: [&str; 2] = ["content-length", "transfer-encoding"];

/// One request of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    method: Cow<'static, str>,
    path: Cow<'static, str>,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    expected: Option<Statuses>,
    /// Whether `{number}` and the like are variables.
    has_variables: bool,
    /// The names of the feed's variables, in their order.
    names: &'static [String],
}

/// `GET /` without headers or body.
pub(crate) static GET: HttpRequest = HttpRequest {
    method: Cow::Borrowed("GET"),
    path: Cow::Borrowed("/"),
    headers: Vec::new(),
    body: None,
    expected: None,
    has_variables: false,
    names: &[],
};

/// The part of a request that has an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestPart {
    /// Its method.
    Method,
    /// Its path.
    Path,
    /// A header.
    Header,
    /// Its body.
    Body,
}

impl HttpRequest {
    /// A request with these headers, each `Name: value`. The default method is POST with a body and GET without. The
    /// default `Content-Type` is JSON for a JSON body, and a form otherwise.
    ///
    /// # Errors
    /// The part that is wrong, and why.
    pub fn new(
        method: Option<&str>,
        path: &str,
        headers: &[String],
        body: Option<Vec<u8>>,
    ) -> Result<Self, (RequestPart, String)> {
        let usual = if body.is_some() { "POST" } else { "GET" };
        let checked_method = check_method(method.unwrap_or(usual));
        let checked_path = check_path(path);
        let parsed = headers.iter().map(|header| parse_header(header));
        let of = |part| move |why| (part, why);
        Ok(Self {
            method: checked_method
                .map_err(of(RequestPart::Method))?
                .to_owned()
                .into(),
            path: checked_path
                .map_err(of(RequestPart::Path))?
                .to_owned()
                .into(),
            headers: parsed
                .collect::<Result<_, _>>()
                .map_err(of(RequestPart::Header))?,
            body,
            expected: None,
            has_variables: false,
            names: &[],
        })
    }

    /// Keeps requests with their weights until the program ends. Equal ones are kept only once, since a measuring
    /// process creates them before each trial.
    pub fn intern(mut parts: Vec<(Self, u32)>) -> Mix<&'static Self> {
        static INTERNED: Mutex<Vec<Mix<&'static HttpRequest>>> = Mutex::new(Vec::new());
        if let [(_, weight)] = &mut parts[..] {
            *weight = 1;
        }
        let mut interned = INTERNED.lock().unwrap_or_else(PoisonError::into_inner);
        let are_same = |mix: &&Mix<&'static Self>| {
            let mut known = mix.parts();
            let all = parts.iter().all(|(request, weight)| {
                known
                    .next()
                    .is_some_and(|(r, w)| r == request && w == *weight)
            });
            all && known.next().is_none()
        };
        if let Some(mix) = interned.iter().find(are_same) {
            return *mix;
        }
        let parts: Vec<(&'static Self, u32)> = parts
            .leak()
            .iter()
            .map(|(request, weight)| (request, *weight))
            .collect();
        let mix = match parts[..] {
            [(only, _)] => Mix::One(only),
            _ => Mix::Several(parts.leak()),
        };
        interned.push(mix);
        mix
    }

    /// The same request with another body.
    pub(super) fn with_body(self, body: Option<Vec<u8>>) -> Self {
        Self { body, ..self }
    }

    /// The same request with its own set of correct statuses.
    #[must_use]
    pub fn expecting(self, expected: Statuses) -> Self {
        Self {
            expected: Some(expected),
            ..self
        }
    }

    /// The same request, with variables if `has_variables`: `{number}` and the like, and those of the feed with these
    /// names, are replaced in path, headers and body.
    ///
    /// # Errors
    /// If a variable is unknown.
    pub fn with_variables_if(
        self,
        has_variables: bool,
        names: &'static [String],
    ) -> Result<Self, (RequestPart, String)> {
        if !has_variables {
            return Ok(self);
        }
        let values = self
            .headers
            .iter()
            .map(|(_, value)| value)
            .map(|value| (RequestPart::Header, value.as_bytes()));
        let body = self.body.as_deref().unwrap_or_default();
        let path = (RequestPart::Path, self.path.as_bytes());
        for (part, text) in values.chain([path, (RequestPart::Body, body)]) {
            template::pieces(text, names, Encoding::Plain).map_err(|why| (part, why))?;
        }
        Ok(Self {
            has_variables: true,
            names,
            ..self
        })
    }

    /// Whether its replies have no body, regardless of their headers.
    pub(super) fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    /// The method, like "POST".
    pub(super) fn method(&self) -> &str {
        &self.method
    }

    /// Its path.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Its body; empty without one.
    pub(super) fn body(&self) -> &[u8] {
        self.body.as_deref().unwrap_or_default()
    }

    /// Its own correct statuses, if any.
    pub(super) fn expected(&self) -> Option<Statuses> {
        self.expected
    }

    /// Whether it has variables.
    pub(super) fn is_variable(&self) -> bool {
        self.has_variables
    }

    /// The bytes to send to a host, without variables.
    pub(crate) fn wire(&self, host: &str) -> Vec<u8> {
        let mut wire = self.head(host);
        if self.has_length() {
            wire.extend_from_slice(format!("Content-Length: {}\r\n", self.body().len()).as_bytes());
        }
        wire.extend_from_slice(b"\r\n");
        wire.extend_from_slice(self.body());
        wire
    }

    /// The pieces of its head and of its body, for a host.
    pub(super) fn pieces(&self, host: &str) -> (Vec<Piece>, Vec<Piece>) {
        let text = |text: &[u8]| Piece::Text(text.to_vec());
        let mut head = vec![text(format!("{} ", self.method).as_bytes())];
        head.extend(self.read(self.path.as_bytes(), Encoding::Path));
        head.push(text(b" HTTP/1.1\r\n"));
        for (name, value) in self.headers(host) {
            head.push(text(format!("{name}: ").as_bytes()));
            head.extend(self.read(value.as_bytes(), Encoding::Header));
            head.push(text(b"\r\n"));
        }
        if self.has_length() {
            head.extend([text(b"Content-Length: "), Piece::BodyLength, text(b"\r\n")]);
        }
        head.extend([Piece::Cookies, text(b"\r\n")]);
        (template::joined(head), self.body_pieces())
    }

    /// The pieces of its body.
    pub(super) fn body_pieces(&self) -> Vec<Piece> {
        self.read(self.body(), Encoding::Plain)
    }

    /// The pieces of a part of it, if that has variables.
    pub(super) fn variable_pieces(&self, part: &str, encoding: Encoding) -> Option<Vec<Piece>> {
        let pieces = self.read(part.as_bytes(), encoding);
        let is_constant = matches!(pieces[..], [] | [Piece::Text(_)]);
        (!is_constant).then_some(pieces)
    }

    fn read(&self, bytes: &[u8], encoding: Encoding) -> Vec<Piece> {
        if self.has_variables {
            template::pieces(bytes, self.names, encoding).unwrap_or_default() // checked when the variables were requested
        } else {
            vec![Piece::Text(bytes.to_vec())]
        }
    }

    /// Request line and headers, except for the length of the body.
    fn head(&self, host: &str) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in self.headers(host) {
            head += &format!("{name}: {value}\r\n");
        }
        head.into_bytes()
    }

    /// Its headers, except for the length of the body.
    pub(super) fn headers<'a>(&'a self, host: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let body = self.body.as_ref().filter(|_| !self.has("content-type"));
        self.usual_headers(host)
            .chain(self.headers.iter().map(|(name, value)| (&**name, &**value)))
            .chain(body.map(|body| ("Content-Type", guess_type(body))))
    }

    /// The headers of every request that does not have its own ones of these names.
    pub(super) fn usual_headers<'a>(
        &'a self,
        host: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let usual = [("Host", host), ("User-Agent", "throng")].into_iter();
        usual.filter(|(name, _)| !self.has(name))
    }

    fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(own, _)| is(own, name))
    }

    /// Whether it has a Content-Length.
    pub(super) fn has_length(&self) -> bool {
        self.body.is_some() || ["POST", "PUT", "PATCH"].contains(&&*self.method)
    }
}

fn is(name: &str, other: &str) -> bool {
    name.eq_ignore_ascii_case(other)
}

/// Checks that a method is valid.
fn check_method(method: &str) -> Result<&str, String> {
    if !is_token(method) {
        return Err(format!("`{method}` is not a method like GET or POST"));
    }
    if is(method, "CONNECT") {
        return Err("CONNECT opens a tunnel, which has no replies to measure".to_owned());
    }
    Ok(method)
}

/// Checks that the path of a request, query included, is valid.
fn check_path(path: &str) -> Result<&str, String> {
    if !path.starts_with('/') {
        return Err(format!("the path `{path}` must begin with a slash"));
    }
    if !path.bytes().all(|byte| byte.is_ascii_graphic()) || path.contains('#') {
        return Err(format!(
            "the path `{path}` has characters that must be written as %XX"
        ));
    }
    Ok(path)
}

/// Splits `Name: value`.
fn parse_header(header: &str) -> Result<(String, String), String> {
    let Some((name, value)) = header.split_once(':') else {
        return Err(format!(
            "`{header}` is not a header; write it like `Name: value`"
        ));
    };
    let value = value.trim();
    if !is_token(name) {
        return Err(format!(
            "`{name}` is not a name of a header; use letters, digits and -"
        ));
    }
    if value.chars().any(|c| c.is_control() && c != '\t') {
        return Err(format!("the header `{name}` has a control character"));
    }
    if OWN.iter().any(|own| is(name, own)) {
        return Err(format!(
            "the header `{name}` cannot be set, since the body determines it"
        ));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Whether it is a token, as methods and header names must be (RFC 9110, section 5.6.2).
fn is_token(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_part)
}

/// The default Content-Type of a body.
fn guess_type(body: &[u8]) -> &'static str {
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    match first {
        Some(b'{' | b'[') => "application/json",
        _ => "application/x-www-form-urlencoded",
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Settings;
    use super::super::cookies::Jar;
    use super::super::template::Values;
    use super::*;

    fn request(
        method: Option<&str>,
        path: &str,
        headers: &[&str],
        body: Option<&str>,
    ) -> HttpRequest {
        let headers: Vec<String> = headers.iter().map(ToString::to_string).collect();
        let body = body.map(|body| body.as_bytes().to_vec());
        HttpRequest::new(method, path, &headers, body).unwrap()
    }

    fn wire(method: Option<&str>, headers: &[&str], body: Option<&str>) -> String {
        String::from_utf8(request(method, "/p", headers, body).wire("h:1")).unwrap()
    }

    #[test]
    fn requests_on_the_wire() {
        let usual = "Host: h:1\r\nUser-Agent: throng\r\n";
        assert_eq!(
            wire(None, &[], None),
            format!("GET /p HTTP/1.1\r\n{usual}\r\n")
        );
        assert_eq!(GET, request(None, "/", &[], None));
        assert_eq!(
            wire(None, &["X-A:  b c "], Some("{}")),
            format!(
                "POST /p HTTP/1.1\r\n{usual}X-A: b c\r\nContent-Type: application/json\r\n\
                 Content-Length: 2\r\n\r\n{{}}"
            )
        );
        assert_eq!(
            wire(
                Some("PUT"),
                &["content-type: text/plain", "HOST: other"],
                Some("x")
            ),
            "PUT /p HTTP/1.1\r\nUser-Agent: throng\r\ncontent-type: text/plain\r\nHOST: other\r\n\
             Content-Length: 1\r\n\r\nx"
        );
        assert!(wire(Some("DELETE"), &[], None).starts_with("DELETE /p HTTP/1.1\r\n"));
        assert!(wire(Some("POST"), &[], None).contains("\r\nContent-Length: 0\r\n"));
        assert!(wire(None, &[], Some("a=b")).contains("x-www-form-urlencoded"));
    }

    #[test]
    fn equal_requests_are_kept_once() {
        let of = |paths: &[(&str, u32)]| {
            let parts = paths
                .iter()
                .map(|(path, weight)| (request(None, path, &[], None), *weight));
            HttpRequest::intern(parts.collect())
        };
        let place = |mix: Mix<&'static HttpRequest>| match mix {
            Mix::One(only) => std::ptr::from_ref(only).addr(),
            Mix::Several(parts) => parts.as_ptr().addr(),
        };
        let several = of(&[("/a", 1), ("/b", 2)]);
        assert_eq!(place(several), place(of(&[("/a", 1), ("/b", 2)])));
        assert_ne!(place(several), place(of(&[("/a", 1), ("/b", 3)])));
        assert_eq!(place(of(&[("/a", 5)])), place(of(&[("/a", 1)])));
        assert_eq!(several.parts().count(), 2);
    }

    #[test]
    fn pieces_make_the_same_wire() {
        for request in [
            GET.clone(),
            request(
                Some("PUT"),
                "/a",
                &["A: {number}"],
                Some("{\"a\": {number}}"),
            ),
            request(Some("POST"), "/", &[], None),
        ] {
            let (head, body) = request.pieces("h:1");
            let mut out = Vec::new();
            Values::new(&Settings::default(), 0).write(&head, &body, &Jar::EMPTY, &mut out);
            assert_eq!(out, request.wire("h:1"));
        }
        let variable = request(None, "/{number}", &["A: {client}"], Some("<{number}>"));
        let (head, body) = variable.with_variables_if(true, &[]).unwrap().pieces("h:1");
        let settings = Settings {
            clients: 2,
            ..Settings::default()
        };
        let mut values = Values::new(&settings, 8);
        let wires = [(); 2].map(|()| {
            let mut out = Vec::new();
            values.write(&head, &body, &Jar::EMPTY, &mut out);
            values.advance();
            String::from_utf8(out).unwrap()
        });
        let expected = |number: u32, length: u32| {
            format!(
                "POST /{number} HTTP/1.1\r\nHost: h:1\r\nUser-Agent: throng\r\nA: 8\r\n\
                 Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n<{number}>"
            )
        };
        assert_eq!(wires, [expected(8, 3), expected(10, 4)]);
    }

    #[test]
    fn invalid_request_parts_are_rejected() {
        use RequestPart::{Header, Method, Path};
        for (method, path, header, part, why) in [
            ("G T", "/", "A: b", Method, "`G T` is not a method"),
            ("", "/", "A: b", Method, "`` is not a method"),
            ("connect", "/", "A: b", Method, "tunnel"),
            ("GET", "a", "A: b", Path, "must begin with a slash"),
            ("GET", "/a b", "A: b", Path, "%XX"),
            ("GET", "/", "A", Header, "`A` is not a header"),
            ("GET", "/", "A b: c", Header, "`A b` is not a name"),
            (
                "GET",
                "/",
                "A: b\r\nC: d",
                Header,
                "`A` has a control character",
            ),
            (
                "GET",
                "/",
                "content-length: 3",
                Header,
                "the body determines it",
            ),
            (
                "GET",
                "/",
                "Transfer-Encoding: chunked",
                Header,
                "the body determines it",
            ),
        ] {
            let headers = [header.to_owned()];
            let (found, error) = HttpRequest::new(Some(method), path, &headers, None).unwrap_err();
            assert_eq!(found, part, "{error}");
            assert!(error.contains(why), "{error}");
        }
        let unknown = request(None, "/", &["A: {who}"], None).with_variables_if(true, &[]);
        assert_eq!(unknown.unwrap_err().0, Header);
    }
}
