//! What a request says beside its path: method, headers and body.

use std::borrow::Cow;

/// Headers that the client writes itself, since they say how a message is framed.
const OWN: [&str; 2] = ["content-length", "transfer-encoding"];

/// Method, headers and body of all requests of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    method: Cow<'static, str>,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// `GET` without anything else.
pub(crate) static GET: HttpRequest = HttpRequest {
    method: Cow::Borrowed("GET"),
    headers: Vec::new(),
    body: Vec::new(),
};

impl HttpRequest {
    /// A request with these headers, each `Name: value`. Without a method it is POST with a body and GET without.
    /// A body without a `Content-Type` has that of JSON if it is JSON, and else that of a form.
    ///
    /// # Errors
    /// Says which method or header is wrong.
    pub fn new(
        method: Option<&str>,
        headers: &[String],
        body: Option<Vec<u8>>,
    ) -> Result<Self, String> {
        let usual = if body.is_some() { "POST" } else { "GET" };
        let method = check_method(method.unwrap_or(usual))?.to_owned();
        let mut headers: Vec<(String, String)> = headers
            .iter()
            .map(|header| parse_header(header))
            .collect::<Result<_, _>>()?;
        if let Some(body) = &body {
            if !headers.iter().any(|(name, _)| is(name, "content-type")) {
                headers.push(("Content-Type".to_owned(), guess_type(body).to_owned()));
            }
            headers.push(("Content-Length".to_owned(), body.len().to_string()));
        } else if ["POST", "PUT", "PATCH"].contains(&&*method) {
            headers.push(("Content-Length".to_owned(), "0".to_owned()));
        }
        Ok(Self {
            method: method.into(),
            headers,
            body: body.unwrap_or_default(),
        })
    }

    /// Whether replies have no body, whatever their heads say.
    pub(super) fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    /// In words, before the paths: "POST".
    pub(super) fn method(&self) -> &str {
        &self.method
    }

    pub(super) fn body_bytes(&self) -> usize {
        self.body.len()
    }

    /// Its bytes, for one path of one host.
    pub(super) fn wire(&self, host: &str, path: &str) -> Vec<u8> {
        let mut head = format!("{} {path} HTTP/1.1\r\n", self.method);
        for (name, value) in [("Host", host), ("User-Agent", "throng")] {
            if !self.headers.iter().any(|(own, _)| is(own, name)) {
                head += &format!("{name}: {value}\r\n");
            }
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        [head.as_bytes(), &self.body].concat()
    }
}

fn is(name: &str, other: &str) -> bool {
    name.eq_ignore_ascii_case(other)
}

/// A method that a request can have.
fn check_method(method: &str) -> Result<&str, String> {
    if !is_token(method) {
        return Err(format!("`{method}` is not a method like GET or POST"));
    }
    if is(method, "CONNECT") {
        return Err("CONNECT asks for a tunnel, which has no replies to measure".to_owned());
    }
    Ok(method)
}

/// Splits `Name: value`.
fn parse_header(header: &str) -> Result<(String, String), String> {
    let Some((name, value)) = header.split_once(':') else {
        return Err(format!("`{header}` is not a header like `Name: value`"));
    };
    let value = value.trim();
    if !is_token(name) {
        return Err(format!(
            "`{name}` is no name of a header: letters, digits and - can be in one"
        ));
    }
    if value.chars().any(|c| c.is_control() && c != '\t') {
        return Err(format!("the header `{name}` has a control character in it"));
    }
    if OWN.iter().any(|own| is(name, own)) {
        return Err(format!(
            "`{name}` follows from the body and cannot be given"
        ));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// What methods and names of headers are made of (RFC 9110, section 5.6.2).
fn is_token(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_part)
}

/// The type of a body about which nothing is said.
fn guess_type(body: &[u8]) -> &'static str {
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    match first {
        Some(b'{' | b'[') => "application/json",
        _ => "application/x-www-form-urlencoded",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(method: Option<&str>, headers: &[&str], body: Option<&str>) -> String {
        let headers: Vec<String> = headers.iter().map(ToString::to_string).collect();
        let body = body.map(|body| body.as_bytes().to_vec());
        let request = HttpRequest::new(method, &headers, body).unwrap();
        String::from_utf8(request.wire("h:1", "/p")).unwrap()
    }

    #[test]
    fn requests_on_the_wire() {
        let usual = "Host: h:1\r\nUser-Agent: throng\r\n";
        assert_eq!(
            wire(None, &[], None),
            format!("GET /p HTTP/1.1\r\n{usual}\r\n")
        );
        assert_eq!(
            String::from_utf8(GET.wire("h:1", "/p")).unwrap(),
            wire(None, &[], None)
        );
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
    fn what_no_request_can_have_is_refused() {
        for (method, header, why) in [
            ("G T", "A: b", "`G T` is not a method"),
            ("", "A: b", "`` is not a method"),
            ("connect", "A: b", "tunnel"),
            ("GET", "A", "`A` is not a header"),
            ("GET", "A b: c", "`A b` is no name"),
            ("GET", "A: b\r\nC: d", "`A` has a control character"),
            ("GET", "content-length: 3", "follows from the body"),
            ("GET", "Transfer-Encoding: chunked", "follows from the body"),
        ] {
            let error = HttpRequest::new(Some(method), &[header.to_owned()], None).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
